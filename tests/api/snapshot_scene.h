/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A snapshot of invented jobs, for tests of what stands behind the board: a slow rank in a job of
 * eight, an ended job, a hung one with a name from a stranger, and a node that is slow as a whole.
 */
#ifndef NT_TESTS_API_SNAPSHOT_SCENE_H
#define NT_TESTS_API_SNAPSHOT_SCENE_H

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/system/clock.h"
#include "engine/agents/shortage.h"
#include "engine/gpu/gemm_rate.h"
#include "engine/links/job_links.h"
#include "engine/snapshot.h"
#include "tests/api/timeline_scene.h"

enum {
	NT_TEST_RANKS = 8,
};

#define NT_TEST_TIME_NS (1795230012ULL * NT_SECOND) /* 2026-11-21T03:00:12Z */

static inline struct nt_wire_incident nt_test_incident(const char *id, const char *state,
						       const struct nt_culprit *culprit,
						       size_t culprits)
{
	static struct nt_wire_evidence evidence[] = {
		{.what = "own work of the step",
		 .unit = "ms",
		 .value = 412,
		 .peers = 314.5,
		 .width = 3.1,
		 .method = "ratio",
		 .windows = 9},
	};

	return (struct nt_wire_incident){
		.id = id,
		.state = state,
		.severity = "critical",
		.class = "compute",
		.cause = "",
		.job = "llm-70b",
		.job_key = "10.0.0.1:29500/run",
		.namespace = "train",
		.attempt = 1,
		.culprit = (struct nt_culprit *)culprit,
		.culprits = culprits,
		.since_real_ns = NT_TEST_TIME_NS,
		.seen_real_ns = NT_TEST_TIME_NS + 19 * NT_SECOND,
		.until_real_ns = strcmp(state, "resolved") ? 0 : NT_TEST_TIME_NS + NT_HOUR,
		.slowdown = 1.31,
		.confidence = 0.98,
		.completeness = 1,
		.cost = {.gpu_hours = 12.4},
		.tier = NT_TIER_T2,
		.own_source = NT_OWN_SOURCE_CALLS,
		.evidence = evidence,
		.evidences = 1,
		.version = strcmp(state, "resolved") ? 2 : 3,
		.summary = "rank 5 computes 31 % slower than its 3 peers",
	};
}

static const uint32_t nt_test_peers[] = {1, 3, 7};
static const uint32_t nt_test_node_ranks[] = {0, 1};

static const struct nt_culprit nt_test_rank_5 = {
	.kind = "rank",
	.rank = 5,
	.has_rank = true,
	.node = "gpu-07",
	.pod = "llm-70b-5",
	.container = "worker",
	.gpu = "",
	.peers = (uint32_t *)nt_test_peers,
	.peer_count = 3,
	.peer = "",
	.name = "",
};

static const struct nt_culprit nt_test_node = {
	.kind = "node",
	.node = "gpu-02",
	.pod = "",
	.container = "",
	.gpu = "",
	.ranks = (uint32_t *)nt_test_node_ranks,
	.rank_count = 2,
	.peer = "",
	.name = "",
};

static inline void nt_test_set_incidents(struct nt_snapshot_job *job,
					 const struct nt_wire_incident *incident, size_t count)
{
	struct nt_wire_incident *copies = nt_snapshot_job_alloc(job, count, sizeof(*copies));
	const struct nt_wire_incident **list = nt_snapshot_job_alloc(job, count, sizeof(*list));

	assert(copies && list);
	for (size_t i = 0; i < count; i++) {
		copies[i] = incident[i];
		list[i] = &copies[i];
	}
	job->incident = list;
	job->incidents = count;
}

/* A process that leaks at one of two call sites, and ran out of memory. */
static inline const struct nt_rank_heap *nt_test_heap(struct nt_snapshot_job *job)
{
	struct nt_rank_heap *heap = nt_snapshot_job_alloc(job, 1, sizeof(*heap));

	assert(heap);
	*heap = (struct nt_rank_heap){
		.device = {{0, true, 60ULL << 30, 79ULL << 30, 1 << 20, 412},
			   {0, false, 1 << 20, 1 << 20, 0, 1}},
		.devices = 2,
		.site = {{{"libcache.so", 0x1a2b}, 50ULL << 30, 400, 3ULL << 30, 0.96875, true},
			 {{"", 0x7f0012345678}, 10ULL << 30, 12, 0, 0.05, false}},
		.sites = 2,
		.since_ns = NT_TEST_TIME_NS - NT_HOUR,
		.failures = 3,
		.out_of_memory = 2,
		.failure =
			{
				.call = "cudaMalloc",
				.bytes = 2ULL << 30,
				.at_ns = NT_TEST_TIME_NS,
				.live_bytes = 60ULL << 30,
				.device_known = true,
				.place = {"train", 0x4711},
				.holder_place = {"libcache.so", 0x1a2b},
				.holder_pid = 4001,
				.holder_rank = 1,
				.holder_rank_known = true,
				.holder_bytes = 60ULL << 30,
				.holder_site_bytes = 50ULL << 30,
			},
	};
	return heap;
}

/* Of rank 0 all is known; of rank 1 its GPU and its launches are not, of rank 2 nothing. */
static const struct nt_gemm_rate nt_test_gemms[] = {
	{.flops = 412e12,
	 .mfu = 0.416,
	 .coverage = 0.83,
	 .coverage_of = NT_GEMM_COVERAGE_LAUNCHES,
	 .gpu = {.ns = 2e9, .inside_ns = 1.5e9, .end_ns = NT_TEST_TIME_NS},
	 .row = {{14, 68, 1000, 411e12, 989.4e12}, {1, 70, 3, 1e12, 67e12}},
	 .rows = 2},
	{.flops = 1e12,
	 .mfu = -1,
	 .unread = 7,
	 .graph_launches = 2,
	 .row = {{27, 76, 1, 1e12, 0}},
	 .rows = 1},
	{.flops = -1, .mfu = -1, .row = {{14, 68, 1, 0, 0}}, .rows = 1},
};

static inline void nt_test_set_ranks(struct nt_snapshot_job *job, size_t count)
{
	struct nt_snapshot_rank *rank = nt_snapshot_job_alloc(job, count, sizeof(*rank));
	struct nt_snapshot_op *op = nt_snapshot_job_alloc(job, 1, sizeof(*op));
	char node[32];

	assert(rank && op);
	*op = (struct nt_snapshot_op){
		.comm = 0xfeedface12345678,
		.library = NT_LIBRARY_NCCL,
		.op = NT_OP_ALL_REDUCE,
		.comm_size = (uint32_t)count,
		.comm_rank = 0,
		.calls = 1000,
		.bytes = 1ULL << 40,
	};
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(node, sizeof(node), "gpu-%02zu", i / 2 + 1);
		rank[i] = (struct nt_snapshot_rank){
			.rank = (uint32_t)i,
			.local_rank = i % 2,
			.pid = (uint32_t)(4000 + i),
			.rank_known = true,
			.observed = true,
			.gpu_state = {.clock_mhz = 1980,
				      .celsius = 60,
				      .activity = {.known = i % 2, .sm = 0.75, .nvlink = 1e9}},
			.node = nt_snapshot_job_text(job, node),
			.namespace = "train",
			.pod = "",
			.container = "",
			.gpu = "",
			.process = "python3",
			.gemms = i < 3 ? &nt_test_gemms[i] : NULL,
			.tier = NT_TIER_T2,
			.own_source = NT_OWN_SOURCE_NCCL,
			.steps = 3,
			.own_ns = i == 5 ? 412e6 : 314e6,
			.own_peers_ns = 314.5e6,
			.host_ns = 1e6,
			.step_ns = 430e6,
			.own_observable = true,
			.peers = nt_test_peers,
			.peer_count = 3,
			.inside = i == 2,
			.inside_op = NT_OP_ALL_REDUCE,
			.inside_comm = 0xfeedface12345678,
			.inside_since_ns = NT_TEST_TIME_NS,
			.op = op,
			.ops = 1,
			.total_steps = 12345,
			.first_seen_ns = NT_TEST_TIME_NS - NT_HOUR,
			.last_seen_ns = NT_TEST_TIME_NS,
		};
	}
	rank[1].heap = nt_test_heap(job);
	rank[1].rdma_not_visible = NT_WIRE_RDMA_EXTENDED | NT_WIRE_RDMA_SHED;
	rank[1].link_ends_over_cap = 4;
	job->rank = rank;
	job->ranks = count;
	job->size = job->live = (uint32_t)count;
	job->nodes = (uint32_t)count / 2;
}

/* Of RDMA one that is observed, with errors, and one to an address outside of the job that is not; of TCP one. */
static inline void nt_test_set_links(struct nt_snapshot_job *job)
{
	static const struct nt_job_link links[] = {
		{.rank = 0,
		 .peer = 1,
		 .has_peer = true,
		 .device = "mlx5_0",
		 .local = "fe80::1",
		 .remote = "fe80::2",
		 .pairs = 4,
		 .error_status = 12,
		 .bytes_per_s = 11.5e9,
		 .requests_per_s = 2000,
		 .sums = {.requests = 40,
			  .bytes = 230000000,
			  .completions = 38,
			  .errors = 2,
			  .timed = 38,
			  .latency_ns = 38 * 12500,
			  .least_ns = 9000,
			  .most_ns = 410000}},
		{.rank = 1,
		 .device = "",
		 .local = "",
		 .remote = "lid 7",
		 .pairs = 1,
		 .pairs_not_visible = 1,
		 .bytes_per_s = -1,
		 .requests_per_s = -1},
		{.transport = NT_LINK_TCP,
		 .rank = 1,
		 .peer = 0,
		 .has_peer = true,
		 .device = "",
		 .local = "10.0.0.2",
		 .remote = "10.0.0.1",
		 .pairs = 2,
		 .bytes_per_s = 1.25e9,
		 .requests_per_s = -1,
		 .sums = {.bytes = 75000000000,
			  .timed = 6,
			  .latency_ns = 6 * 180000,
			  .least_ns = 90000,
			  .most_ns = 400000,
			  .segments = 1200000,
			  .retransmits = 3600}},
	};
	struct nt_snapshot_link *link = nt_snapshot_job_alloc(job, 3, sizeof(*link));

	assert(link);
	link[0] = (struct nt_snapshot_link){&job->rank[0], &job->rank[1], &links[0]};
	link[1] = (struct nt_snapshot_link){&job->rank[1], NULL, &links[1]};
	link[2] = (struct nt_snapshot_link){&job->rank[1], &job->rank[0], &links[2]};
	job->link = link;
	job->links = 3;
	job->links_over_cap = 3;
}

static inline struct nt_snapshot_job *nt_test_job(const char *id, const char *name, const char *key,
						  enum nt_job_state state)
{
	struct nt_snapshot_job *job = nt_snapshot_job_new();

	assert(job && strlen(id) == NT_JOB_ID_LEN);
	memcpy(job->id, id, NT_JOB_ID_LEN + 1);
	job->name = nt_snapshot_job_text(job, name);
	job->key = nt_snapshot_job_text(job, key);
	job->namespace = nt_snapshot_job_text(job, "train");
	job->attempt = 1;
	job->state = state;
	job->step_ns = 430e6;
	job->completeness = 1;
	job->frames = 100;
	job->cell_ns = NT_SECOND / 2;
	job->since_ns = NT_TEST_TIME_NS - NT_HOUR;
	job->last_seen_ns = NT_TEST_TIME_NS;
	job->ended_ns = state == NT_JOB_ENDED ? NT_TEST_TIME_NS : 0;
	return job;
}

static inline void nt_test_set_rest(struct nt_snapshot *snapshot)
{
	struct nt_snapshot_node *node = nt_snapshot_alloc(snapshot, 2, sizeof(*node));
	struct nt_snapshot_metric *metric = nt_snapshot_alloc(snapshot, 3, sizeof(*metric));
	struct nt_shortage_limit *limit = nt_snapshot_alloc(snapshot, 1, sizeof(*limit));

	assert(node && metric && limit);
	limit[0] =
		(struct nt_shortage_limit){"processes", "processes", "user 65534", 412, 400, 1024};
	node[0] = (struct nt_snapshot_node){"gpu-01", 2, false, NT_TEST_TIME_NS, NULL, 0};
	node[1] = (struct nt_snapshot_node){"gpu-02", 2, true, NT_TEST_TIME_NS, limit, 1};
	metric[0] = (struct nt_snapshot_metric){"neutracer_aggregator_test_messages",
						"Messages of a test.", "reason=\"late\"", false, 7};
	metric[2] = (struct nt_snapshot_metric){"neutracer_aggregator_test_messages",
						"Messages of a test.", "reason=\"other\"", false,
						12345678};
	metric[1] = (struct nt_snapshot_metric){"neutracer_aggregator_test_jobs", "Jobs of a test.",
						"", true, 2.5};
	snapshot->node = node;
	snapshot->nodes = 2;
	snapshot->metric = metric;
	snapshot->metrics = 3;
	snapshot->made_ns = NT_TEST_TIME_NS;
}

/*
 * The incidents of the first job: a slow rank and a slow node that fire, a pending one never here. Its
 * timeline has the cells up to `end_ns`.
 */
static inline struct nt_snapshot *nt_test_snapshot_of(size_t ranks, size_t cells, uint64_t end_ns)
{
	struct nt_snapshot *snapshot = nt_snapshot_new();
	const struct nt_snapshot_job **job = nt_snapshot_alloc(snapshot, 3, sizeof(*job));
	struct nt_snapshot_job *slow =
		nt_test_job("00000000000000a1", "llm-70b", "10.0.0.1:29500/run", NT_JOB_RUNNING);
	struct nt_snapshot_job *ended =
		nt_test_job("00000000000000b2", "resnet", "slurm/42", NT_JOB_ENDED);
	struct nt_snapshot_job *hung =
		nt_test_job("00000000000000c3", "\xff<b>\"evil\"\x1b[31m", "mpi/7", NT_JOB_HUNG);
	struct nt_wire_incident incidents[2] = {
		nt_test_incident("00000000000000f1", "firing", &nt_test_rank_5, 1),
		nt_test_incident("00000000000000f2", "firing", &nt_test_node, 1),
	};
	struct nt_wire_incident note =
		nt_test_incident("00000000000000f3", "firing", &nt_test_rank_5, 1);

	assert(snapshot && job);
	incidents[1].slowdown = 2;
	incidents[1].severity = "warning";
	note.severity = "info";
	note.job = hung->name;
	nt_test_set_ranks(slow, ranks);
	nt_test_set_links(slow);
	nt_test_set_timeline(slow, cells, end_ns);
	nt_test_set_incidents(slow, incidents, 2);
	nt_test_set_incidents(hung, &note, 1);
	job[0] = slow;
	job[1] = hung;
	job[2] = ended;
	snapshot->job = job;
	snapshot->jobs = 3;
	nt_test_set_rest(snapshot);
	return snapshot;
}

static inline struct nt_snapshot *nt_test_snapshot(void)
{
	return nt_test_snapshot_of(NT_TEST_RANKS, NT_TEST_CELLS, NT_TEST_TIME_NS);
}

#endif
