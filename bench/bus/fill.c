/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fills a Kafka bus as the agents of a cluster would: nodes of eight ranks, windows of 528 ms with
 * what the simulated training job publishes (two communicators, five operations a step, sampled
 * calls), through the agent's publisher and the product's bus. Each node's windows go out together
 * and alone, so that batches are as small, and compress as badly, as those of real agents. In the second half a
 * rank of the first job is slow.
 *
 *	bus_fill URL RANKS SECONDS JOB_RANKS [live]
 *
 * live: windows are sent when they end, from now on, each node at its own time, for REST beside a
 * running cluster (bench/bus/rest.sh). Otherwise they are of the past, and sent as fast as possible.
 * Prints: windows, bytes of the messages, seconds of data, nodes, jobs.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/publish/publisher.h"
#include "agent/steps/sampler.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"

enum {
	NODE_RANKS = 8,
	LANES = 16,
	STEPS = 12, /* of a window */
	SLOW_STEPS = 10,
	SLOW_RANK = 5,
	NODE_ROUNDS = 10, /* between two vectors of a node */
	COMMS = 2,
	RECENT = 4,
	SAMPLES = COMMS * NT_SAMPLER_CAP,
	TEXT = 256,
};

#define WINDOW_NS (STEPS * 44 * NT_MILLISECOND)
#define TICK_NS   (10 * NT_MILLISECOND)
#define HOUR_NS   (3600 * NT_SECOND)

struct fill_job {
	char key[TEXT], name[TEXT];
	uint32_t ranks;
	uint64_t comm[COMMS];
	bool has_slow;
};

struct node {
	const struct fill_job *job;
	struct nt_publisher *publisher;
	uint32_t first, ranks;
	char name[TEXT], pod[TEXT], container[TEXT], cgroup[TEXT];
	uint64_t booted_ns; /* real time */
	uint64_t watermark_ns; /* boot time */
};

struct fill_lane {
	struct fill *fill;
	struct nt_bus *bus;
	pthread_t thread;
	size_t number;
	int error;
};

struct fill {
	const char *url;
	uint64_t begin_ns; /* real time */
	uint64_t rounds;
	bool is_live;
	uint64_t late_ns; /* live: the most that a node was sent after its time */
	struct fill_job *job;
	struct node *node;
	size_t jobs, nodes, lanes;
	struct fill_lane lane[LANES];
	pthread_barrier_t round;
};

/* Nothing in the world is as even as a constant. */
static uint64_t draw(uint64_t a, uint64_t b, uint64_t c, uint64_t below)
{
	return nt_hash_mix(nt_hash_mix(a * 0x9e3779b97f4a7c15ULL + b) + c) % below;
}

/* ---- one window ----------------------------------------------------------------------------------- */

/* What a window consists of, with room for what it points to. */
struct sheet {
	struct nt_window window;
	struct nt_comm_window comm[COMMS];
	struct nt_comm_op op[COMMS];
	struct nt_signature recent[COMMS][RECENT];
	struct nt_sample sample[SAMPLES];
};

/* Calls a step: a small one that keeps step, and one for each bucket of gradients. */
static const uint64_t calls_a_step[COMMS] = {1, 4};
static const uint64_t bytes_a_call[COMMS] = {16, 16777224};

static void fill_comm(struct sheet *sheet, const struct node *node, size_t index, uint32_t rank,
		      uint64_t before, uint64_t steps)
{
	const uint64_t id = node->job->comm[index], calls = steps * calls_a_step[index];
	const uint64_t first = before * calls_a_step[index] + 1, last = first + calls - 1;
	const uint64_t start_ns = sheet->window.start_boot_ns;
	const uint64_t length_ns = sheet->window.end_boot_ns - start_ns;
	struct nt_comm_window *comm = &sheet->comm[index];
	struct nt_sampler sampler = {.cap = NT_SAMPLER_ALIGNED};

	sheet->op[index] = (struct nt_comm_op){
		.op = NT_OP_ALL_REDUCE,
		.calls = calls,
		.bytes = calls * bytes_a_call[index],
		.first = first,
		.last = last,
	};
	for (size_t i = 0; i < RECENT; i++)
		sheet->recent[index][i] = (struct nt_signature){
			.number = last + 1 - RECENT + i,
			.op = NT_OP_ALL_REDUCE,
			.count = bytes_a_call[index] / 4,
			.type = 7,
		};
	*comm = (struct nt_comm_window){
		.id = id,
		.epoch = 1,
		.rolling_hash = nt_hash_mix(id + last),
		.last = last,
		.rank = rank,
		.size = node->job->ranks,
		.library = NT_LIBRARY_NCCL,
		.op = &sheet->op[index],
		.ops = 1,
		.recent = sheet->recent[index],
		.recents = RECENT,
		.name = "",
	};
	for (uint64_t i = 0; i < calls; i++) {
		const struct nt_sample sample = {
			.comm = id,
			.number = first + i,
			.bytes = bytes_a_call[index],
			.epoch = 1,
			.op = NT_OP_ALL_REDUCE,
			.arrive_boot_ns = start_ns + length_ns * i / calls +
					  draw(i, rank, first, NT_MILLISECOND),
		};

		nt_sampler_offer(&sampler, &sample, first + i);
	}
	memcpy(sheet->sample + sheet->window.samples, sampler.sample,
	       sampler.count * sizeof(sampler.sample[0]));
	sheet->window.samples += sampler.count;
}

static void fill_sheet(const struct fill *fill, const struct node *node, uint32_t rank,
		       uint64_t round, struct sheet *sheet)
{
	const uint64_t slow_from = fill->rounds / 2;
	const bool is_slow = node->job->has_slow && round >= slow_from;
	const uint64_t steps = is_slow ? SLOW_STEPS : STEPS;
	const uint64_t before =
		is_slow ? slow_from * STEPS + (round - slow_from) * SLOW_STEPS : round * STEPS;
	const uint64_t start_ns = fill->begin_ns - node->booted_ns + round * WINDOW_NS;
	const uint64_t step_ns = WINDOW_NS / steps;
	const uint64_t alone_ns =
		is_slow && rank == SLOW_RANK ? step_ns * 95 / 100 : 44 * NT_MILLISECOND * 90 / 100;

	*sheet = (struct sheet){0};
	sheet->window = (struct nt_window){
		.rank =
			{
				.rank = rank,
				.size = node->job->ranks,
				.local_rank = rank - node->first,
				.pid = (uint32_t)(4000 + draw(node->booted_ns, 1, 0, 30000) +
						  (rank - node->first)),
				/* As the kernel tells it: in hundredths of a second. */
				.start_boot_ns =
					(fill->begin_ns - node->booted_ns) / TICK_NS * TICK_NS -
					60 * NT_SECOND + rank % NODE_RANKS / 2 * TICK_NS,
				.node = node->name,
				.job = node->job->name,
				.namespace = "",
				.pod = node->pod,
				.container = node->container,
				.gpu = "",
				.cgroup = node->cgroup,
				.comm = "train",
				.rank_known = true,
			},
		.start_boot_ns = start_ns + draw(rank, round, 1, NT_MILLISECOND / 2),
		.end_boot_ns = start_ns + WINDOW_NS + draw(rank, round + 1, 1, NT_MILLISECOND / 2),
		.steps = (uint32_t)steps,
		.first_step = before + 1,
		.step_epoch = node->job->comm[0] ^ node->job->comm[1],
		.own_tier = NT_TIER_T2,
		.own_ns = steps * alone_ns * (990 + draw(rank, round, 2, 20)) / 1000,
		.host_ns = 17 * NT_MILLISECOND + draw(rank, round, 3, 2 * NT_MILLISECOND),
		.step_ns = WINDOW_NS + draw(rank, round, 4, NT_MILLISECOND),
		.launches = steps * 89 + draw(rank, round, 5, 20),
		.copies = steps * 3,
		.copy_bytes = steps * 71032,
		.host =
			{
				.on_cpu_ns = 3 * NT_MILLISECOND + draw(rank, round, 6, 2000000),
				.run_queue_ns = draw(rank, round, 7, 900000),
				.read_bytes = draw(rank, round, 8, 20),
				.process_cpu_ns = 10 * NT_MILLISECOND * draw(rank, round, 11, 2),
				.state = "S",
			},
		.uses_gpu = true,
		.comm = sheet->comm,
		.comms = COMMS,
		.sample = sheet->sample,
	};
	sheet->window.blocked_ns = sheet->window.step_ns - sheet->window.host_ns;
	sheet->window.own_blocked_ns = sheet->window.own_ns - sheet->window.host_ns;
	for (size_t i = 0; i < COMMS; i++)
		fill_comm(sheet, node, i, rank, before, steps);
}

/* ---- one node ------------------------------------------------------------------------------------- */

static void publish_vector(const struct node *node, uint64_t round)
{
	static const char *const names[] = {
#define NT_NODE_METRIC(name, kind, unit, scored, about) #name,
#include "proto/node_metric.def"
	};
	struct nt_metric_value metric[sizeof(names) / sizeof(names[0])];
	const char *job = node->job->key;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		metric[i] = (struct nt_metric_value){
			.name = names[i],
			.value = (double)draw(node->booted_ns, round, i, 100000) / 1000,
		};
	nt_publisher_node(node->publisher, &(struct nt_node_vector){
						   .node = node->name,
						   .metric = metric,
						   .metrics = sizeof(names) / sizeof(names[0]),
						   .job = &job,
						   .jobs = 1,
					   });
}

/* Live: the nodes of a cluster send one after the other, over the length of a window. */
static void wait_until(struct fill *fill, uint64_t real_ns)
{
	const struct timespec when = {
		.tv_sec = (time_t)(real_ns / NT_SECOND),
		.tv_nsec = (long)(real_ns % NT_SECOND),
	};
	uint64_t now_ns;

	while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &when, NULL) == EINTR)
		continue;
	now_ns = nt_clock_real_ns();
	if (now_ns > real_ns + fill->late_ns)
		fill->late_ns = now_ns - real_ns;
}

static int publish_round(struct fill *fill, struct node *node, uint64_t round)
{
	const uint64_t turn = (uint64_t)(node - fill->node);
	const uint64_t real_ns = fill->begin_ns + (round + 1) * WINDOW_NS + 50 * NT_MILLISECOND +
				 (fill->is_live ? turn * WINDOW_NS / fill->nodes : 0);
	uint64_t least_ns = UINT64_MAX;
	struct sheet sheet;
	int r;

	if (fill->is_live)
		wait_until(fill, real_ns);
	nt_publisher_set_time(node->publisher, real_ns - node->booted_ns, real_ns);
	for (uint32_t i = 0; i < node->ranks; i++) {
		fill_sheet(fill, node, node->first + i, round, &sheet);
		if (sheet.window.end_boot_ns < least_ns)
			least_ns = sheet.window.end_boot_ns;
		/* Until the last has spoken, it may still speak of the time before. */
		if (i + 1 == node->ranks)
			node->watermark_ns = least_ns;
		nt_publisher_window(node->publisher, node->job->key, &sheet.window,
				    node->watermark_ns);
	}
	if (round % NODE_ROUNDS == draw(node->booted_ns, 0, 0, NODE_ROUNDS))
		publish_vector(node, round);
	do
		r = nt_publisher_flush(node->publisher);
	while (r == -ETIMEDOUT);
	return r;
}

static void *run_lane(void *data)
{
	struct fill_lane *lane = data;
	struct fill *fill = lane->fill;

	for (uint64_t round = 0; round < fill->rounds; round++) {
		for (size_t i = lane->number; i < fill->nodes && lane->error == 0; i += fill->lanes)
			lane->error = publish_round(fill, &fill->node[i], round);
		/* Clocks of nodes agree; nobody is rounds ahead of the others. */
		(void)pthread_barrier_wait(&fill->round);
	}
	return NULL;
}

/* ---- the cluster ---------------------------------------------------------------------------------- */

static int make_node(struct fill *fill, const struct fill_job *job, uint32_t first, size_t index)
{
	struct node *node = &fill->node[index];
	uint64_t id[5];

	for (size_t i = 0; i < 5; i++)
		id[i] = nt_hash_mix(index * 8 + i + 1);
	node->job = job;
	node->first = first;
	node->ranks = job->ranks - first < NODE_RANKS ? job->ranks - first : NODE_RANKS;
	node->booted_ns = fill->begin_ns - HOUR_NS - draw(index, 0, 0, 720 * HOUR_NS);
	(void)snprintf(node->name, TEXT, "gpu-%05zu", index);
	(void)snprintf(node->pod, TEXT, "%.32s-worker-%u", job->name, first / NODE_RANKS);
	(void)snprintf(node->container, TEXT,
		       "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, id[0], id[1], id[2],
		       id[3]);
	(void)snprintf(node->cgroup, TEXT,
		       "/kubepods.slice/kubepods-pod%016" PRIx64
		       ".slice/cri-containerd-%.64s.scope",
		       id[4], node->container);
	return nt_publisher_new(fill->lane[index % fill->lanes].bus, node->name, id[0],
				&node->publisher);
}

static int make_cluster(struct fill *fill, uint32_t ranks, uint32_t job_ranks)
{
	uint32_t left = ranks;
	int r;

	fill->jobs = (ranks + job_ranks - 1) / job_ranks;
	fill->job = calloc(fill->jobs, sizeof(*fill->job));
	fill->node = calloc(ranks / NODE_RANKS + fill->jobs + 1, sizeof(*fill->node));
	if (!fill->job || !fill->node)
		return -ENOMEM;
	for (size_t i = 0; i < fill->jobs; i++) {
		struct fill_job *job = &fill->job[i];

		job->ranks = left < job_ranks ? left : job_ranks;
		left -= job->ranks;
		job->has_slow = i == 0;
		(void)snprintf(job->name, TEXT, "llm-%zu", i);
		(void)snprintf(job->key, TEXT, "torch:10.%zu.3.17:29500/%016" PRIx64, i,
			       nt_hash_mix(i + 77));
		for (size_t j = 0; j < COMMS; j++)
			job->comm[j] = nt_hash_mix((i + 1) * COMMS + j);
		for (uint32_t first = 0; first < job->ranks; first += NODE_RANKS) {
			r = make_node(fill, job, first, fill->nodes);
			if (r < 0)
				return r;
			fill->nodes++;
		}
	}
	return 0;
}

static int open_lanes(struct fill *fill)
{
	const struct nt_bus_options options = {.is_small = true}; /* as an agent's */

	for (size_t i = 0; i < fill->lanes; i++) {
		int r = nt_bus_open(fill->url, &options, &fill->lane[i].bus);

		if (r < 0)
			return r;
		fill->lane[i].fill = fill;
		fill->lane[i].number = i;
	}
	return -pthread_barrier_init(&fill->round, NULL, (unsigned int)fill->lanes);
}

static int run_lanes(struct fill *fill)
{
	int r = 0;

	for (size_t i = 0; i < fill->lanes; i++)
		if (pthread_create(&fill->lane[i].thread, NULL, run_lane, &fill->lane[i]) != 0)
			exit(1);
	for (size_t i = 0; i < fill->lanes; i++) {
		(void)pthread_join(fill->lane[i].thread, NULL);
		if (fill->lane[i].error < 0)
			r = fill->lane[i].error;
		nt_bus_close(fill->lane[i].bus);
	}
	return r;
}

static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
	uint64_t value;

	if (nt_parse_u64(text, strlen(text), least, most, &value) < 0) {
		(void)fprintf(stderr, "bus_fill: '%s' is no number of %" PRIu64 " to %" PRIu64 "\n",
			      text, least, most);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	struct fill fill = {.lanes = LANES};
	uint64_t messages = 0, bytes = 0, dropped = 0;
	struct nt_publisher_stats stats;
	uint64_t ranks, seconds;
	int r;

	fill.is_live = argc == 6 && strcmp(argv[5], "live") == 0;
	if (argc != 5 && !fill.is_live)
		return 2;
	fill.url = argv[1];
	if (fill.is_live || strncmp(fill.url, "spool:", 6) == 0)
		fill.lanes = 1; /* a spool has one writer */
	ranks = number(argv[2], 1, 1000000);
	seconds = number(argv[3], 1, 86400);
	fill.rounds = (seconds * NT_SECOND + WINDOW_NS - 1) / WINDOW_NS;
	fill.begin_ns = nt_clock_real_ns() - (fill.is_live ? 0 : fill.rounds * WINDOW_NS);
	r = open_lanes(&fill);
	if (r == 0)
		r = make_cluster(&fill, (uint32_t)ranks, (uint32_t)number(argv[4], 2, 131072));
	if (r == 0)
		r = run_lanes(&fill);
	if (r < 0) {
		(void)fprintf(stderr, "bus_fill: %s\n", strerrordesc_np(-r));
		return 1;
	}
	for (size_t i = 0; i < fill.nodes; i++) {
		nt_publisher_stats(fill.node[i].publisher, &stats);
		messages += stats.messages;
		bytes += stats.bytes;
		dropped += stats.dropped_bus + stats.dropped_invalid + stats.dropped_keys;
		nt_publisher_free(fill.node[i].publisher);
	}
	if (dropped) {
		(void)fprintf(stderr, "bus_fill: %" PRIu64 " messages found no room\n", dropped);
		return 1;
	}
	(void)printf("%" PRIu64 " %" PRIu64 " %.3f %zu %zu\n", ranks * fill.rounds, bytes,
		     (double)(fill.rounds * WINDOW_NS) / 1e9, fill.nodes, fill.jobs);
	(void)fprintf(stderr, "%" PRIu64 " messages, at most %" PRIu64 " ms after their time\n",
		      messages, (uint64_t)(fill.late_ns / NT_MILLISECOND));
	free(fill.node);
	free(fill.job);
	return 0;
}
