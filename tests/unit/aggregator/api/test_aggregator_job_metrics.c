/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Series of jobs, nodes and ranks: which there are, and what is left out at each limit. */
#include "aggregator/api/job_metrics.h"

#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/api/snapshot_scene.h"

#define JOB "job_id=\"00000000000000a1\",job_name=\"llm-70b\",job_namespace=\"train\""

/* The metrics as a text with a line feed before each line. The caller frees it. */
static char *write_all(const struct nt_snapshot *snapshot, const char *wanted)
{
	struct nt_buf out = {0};

	assert_int_equal(nt_buf_append(&out, "\n", 1), 0);
	if (wanted)
		assert_int_equal(
			nt_job_metrics_write_ranks(snapshot, wanted, NT_METRICS_PROMETHEUS, &out),
			0);
	else
		assert_int_equal(nt_job_metrics_write(snapshot, NULL, NT_METRICS_PROMETHEUS, &out),
				 0);
	assert_int_equal(nt_buf_append(&out, "", 1), 0);
	return (char *)out.data;
}

static void check_line(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("no '%s' in '%s'", line, text);
}

static size_t count(const char *text, const char *what)
{
	size_t found = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		found++;
	return found;
}

static void check_left_out(const char *text, const char *what, unsigned int number)
{
	char line[128];

	(void)snprintf(line, sizeof(line),
		       "\nneutracer_aggregator_series_left_out{what=\"%s\"} %u\n", what, number);
	check_line(text, line);
}

static void running_jobs_and_nodes_have_series(void **state)
{
	struct nt_snapshot *snapshot = nt_test_snapshot();
	nt_autofree char *text = write_all(snapshot, NULL);

	(void)state;
	check_line(text, "\nneutracer_job_ranks{" JOB "} 8\n");
	check_line(text, "\nneutracer_job_step_seconds{" JOB "} 0.43\n");
	check_line(text, "\nneutracer_job_slowdown_ratio{" JOB "} 2\n");
	check_line(text, "\nneutracer_job_state{" JOB ",state=\"running\"} 1\n");
	check_line(text, "\nneutracer_job_incidents{" JOB ",severity=\"critical\"} 1\n");
	check_line(text, "\nneutracer_job_incidents{" JOB ",severity=\"info\"} 0\n");
	check_line(text, "\nneutracer_node_ranks{node=\"gpu-01\"} 2\n");
	check_line(text, "\nneutracer_node_observed{node=\"gpu-02\"} 0\n");
	/* The ended job; and a hung one whose incident is a note. */
	assert_null(strstr(text, "resnet"));
	check_line(text, ",state=\"hung\"} 1\n");
	check_line(text,
		   "\nneutracer_job_slowdown_ratio{job_id=\"00000000000000c3\",job_name=\"\ufffd"
		   "<b>\\\"evil\\\"\x1b[31m\",job_namespace=\"train\"} 1\n");
	for (int kind = 0; kind < NT_SERIES_KIND_END; kind++)
		check_left_out(text, ((const char *[]){"job", "node", "culprit", "rank"})[kind], 0);
	nt_snapshot_release(snapshot);
}

static void ranks_have_series_only_if_incidents_name_them(void **state)
{
	struct nt_snapshot *snapshot = nt_test_snapshot();
	nt_autofree char *text = write_all(snapshot, NULL);

	(void)state;
	check_line(text,
		   "\nneutracer_incident_slowdown_ratio{" JOB ",incident=\"00000000000000f1\","
		   "severity=\"critical\",class=\"compute\",cause=\"\",kind=\"rank\",rank=\"5\","
		   "node=\"gpu-07\",rank_pod=\"llm-70b-5\",device=\"\",peer=\"\"} 1.31\n");
	assert_int_equal(count(text, "\nneutracer_incident_slowdown_ratio{"), 2);
	check_line(text, "\nneutracer_rank_own_work_seconds{" JOB
			 ",rank=\"5\",node=\"gpu-03\"} 0.412000000\n");
	check_line(text, "\nneutracer_rank_peers_own_work_seconds{" JOB
			 ",rank=\"5\",node=\"gpu-03\"} 0.314500000\n");
	/* Of the rank, and of both ranks of the node. */
	assert_int_equal(count(text, "\nneutracer_rank_steps_total{"), 3);
	nt_snapshot_release(snapshot);
}

static void the_names_of_the_earlier_neutracer_stay(void **state)
{
	struct nt_snapshot *snapshot = nt_test_snapshot();
	nt_autofree char *text = write_all(snapshot, "llm-70b");

	(void)state;
	check_line(text, "\nneutracer_gpu_memory_size_bytes{" JOB ",rank=\"1\",node=\"gpu-01\","
			 "device=\"0\",pid=\"4001\"} 64424509440\n");
	check_line(text, ",device=\"unknown\",pid=\"4001\"} 1048576\n");
	check_line(text, "\nneutracer_function_calls_total{" JOB ",rank=\"0\",node=\"gpu-01\","
			 "function=\"nccl all-reduce\",process=\"python3\"} 1000\n");
	assert_int_equal(count(text, "\nneutracer_rank_steps_total{"), NT_TEST_RANKS);
	assert_int_equal(count(text, "\nneutracer_rank_flops{"), 2);
	assert_null(strstr(text, "\nneutracer_job_"));
	nt_snapshot_release(snapshot);
}

static void an_unknown_job_has_no_ranks(void **state)
{
	struct nt_snapshot *snapshot = nt_test_snapshot();
	nt_autofree char *text = write_all(snapshot, "resnet"); /* it has ended */
	nt_autofree char *other = write_all(snapshot, "nobody");

	(void)state;
	assert_null(strstr(text, "neutracer_rank_"));
	assert_null(strstr(other, "neutracer_rank_"));
	nt_snapshot_release(snapshot);
}

/* Two rows of one device or rank would be one series twice, which makes a scrape invalid. */
static void no_series_is_there_twice(void **state)
{
	struct nt_snapshot *snapshot = nt_snapshot_new();
	struct nt_snapshot_job *job =
		nt_test_job("00000000000000a1", "llm-70b", "key", NT_JOB_RUNNING);
	const struct nt_snapshot_job **list = nt_snapshot_alloc(snapshot, 1, sizeof(*list));
	static const struct nt_rank_heap heap = {
		.device = {{.number = 3, .number_known = true, .live_bytes = 4},
			   {.live_bytes = 2},
			   {.number = 3, .number_known = true, .live_bytes = 8},
			   {.live_bytes = 32}},
		.devices = 4};
	struct nt_culprit culprits[] = {nt_test_rank_5, nt_test_rank_5};
	struct nt_wire_incident incident = nt_test_incident("f1", "firing", culprits, 2);
	struct nt_snapshot_rank *rank;

	(void)state;
	nt_test_set_ranks(job, NT_TEST_RANKS);
	rank = (struct nt_snapshot_rank *)job->rank;
	rank[6].rank = 5; /* another process that claims rank 5 */
	rank[7].rank = 5;
	rank[7].rank_known = false;
	rank[5].heap = &heap;
	nt_test_set_incidents(job, &incident, 1);
	list[0] = job;
	snapshot->job = list;
	snapshot->jobs = 1;

	nt_autofree char *text = write_all(snapshot, NULL);
	nt_autofree char *ranks = write_all(snapshot, "key");

	assert_int_equal(count(text, "\nneutracer_incident_slowdown_ratio{"), 1);
	assert_int_equal(count(text, "\nneutracer_rank_steps_total{"), 1);
	check_line(text, "device=\"3\",pid=\"4005\"} 12\n");
	check_line(text, "device=\"unknown\",pid=\"4005\"} 34\n");
	assert_int_equal(count(ranks, "\nneutracer_rank_steps_total{"), 7);
	check_line(ranks,
		   "\nneutracer_rank_steps_total{job_id=\"00000000000000a1\",job_name=\"llm-70b\","
		   "job_namespace=\"train\",rank=\"process-5\",node=\"gpu-04\"} 12345\n");
	check_left_out(ranks, "rank", 1);
	nt_snapshot_release(snapshot);
}

/* ---- limits ------------------------------------------------------------------------------------ */

static struct nt_snapshot *make_large(size_t jobs, size_t nodes)
{
	struct nt_snapshot *snapshot = nt_snapshot_new();
	const struct nt_snapshot_job **job = nt_snapshot_alloc(snapshot, jobs, sizeof(*job));
	struct nt_snapshot_node *node = nt_snapshot_alloc(snapshot, nodes, sizeof(*node));
	char text[32];

	assert(snapshot && job && node);
	for (size_t i = 0; i < jobs; i++) {
		(void)snprintf(text, sizeof(text), "%016zx", i);
		job[i] = nt_test_job(text, "job", text, NT_JOB_RUNNING);
	}
	for (size_t i = 0; i < nodes; i++) {
		(void)snprintf(text, sizeof(text), "node-%05zu", i);
		node[i] = (struct nt_snapshot_node){.name = nt_snapshot_text(snapshot, text),
						    .ranks = 8};
	}
	snapshot->job = job;
	snapshot->jobs = jobs;
	snapshot->node = node;
	snapshot->nodes = nodes;
	return snapshot;
}

static void jobs_and_nodes_are_limited(void **state)
{
	(void)state;
	for (unsigned int more = 0; more < 3; more++) {
		struct nt_snapshot *snapshot =
			make_large(NT_JOB_METRICS_MAX_JOBS + more, NT_JOB_METRICS_MAX_NODES + more);
		nt_autofree char *text = write_all(snapshot, NULL);

		assert_int_equal(count(text, "\nneutracer_job_ranks{"), NT_JOB_METRICS_MAX_JOBS);
		assert_int_equal(count(text, "\nneutracer_node_ranks{"), NT_JOB_METRICS_MAX_NODES);
		check_left_out(text, "job", more);
		check_left_out(text, "node", more);
		nt_snapshot_release(snapshot);
	}
}

/* An incident a rank, and as many ranks. */
static struct nt_snapshot *make_ranks(size_t ranks)
{
	struct nt_snapshot *snapshot = make_large(1, 0);
	struct nt_snapshot_job *job = (struct nt_snapshot_job *)snapshot->job[0];
	struct nt_wire_incident *incident = calloc(ranks, sizeof(*incident));
	struct nt_culprit *culprit = calloc(ranks, sizeof(*culprit));

	assert(incident && culprit);
	nt_test_set_ranks(job, ranks);
	for (size_t i = 0; i < ranks; i++) {
		culprit[i] = nt_test_rank_5;
		culprit[i].rank = (uint32_t)i;
	}
	incident[0] = nt_test_incident("f1", "firing", culprit, ranks);
	nt_test_set_incidents(job, incident, 1);
	free(incident);
	return snapshot;
}

static void release_ranks(struct nt_snapshot *snapshot)
{
	free(snapshot->job[0]->incident[0]->culprit);
	nt_snapshot_release(snapshot);
}

static void culprits_are_limited(void **state)
{
	(void)state;
	for (unsigned int more = 0; more < 3; more++) {
		struct nt_snapshot *snapshot = make_ranks(NT_JOB_METRICS_MAX_CULPRITS + more);
		nt_autofree char *text = write_all(snapshot, NULL);

		assert_int_equal(count(text, "\nneutracer_incident_slowdown_ratio{"),
				 NT_JOB_METRICS_MAX_CULPRITS);
		assert_int_equal(count(text, "\nneutracer_rank_steps_total{"),
				 NT_JOB_METRICS_MAX_CULPRITS);
		check_left_out(text, "culprit", more);
		release_ranks(snapshot);
	}
}

static void requested_ranks_are_limited(void **state)
{
	(void)state;
	for (unsigned int more = 0; more < 3; more++) {
		struct nt_snapshot *snapshot = make_ranks(NT_JOB_METRICS_MAX_RANKS + more);
		nt_autofree char *text = write_all(snapshot, "job");

		assert_int_equal(count(text, "\nneutracer_rank_steps_total{"),
				 NT_JOB_METRICS_MAX_RANKS);
		check_left_out(text, "rank", more);
		release_ranks(snapshot);
	}
}

/* A node with more ranks than there are series for culprits. */
static void the_ranks_of_a_node_are_limited(void **state)
{
	static uint32_t numbers[NT_JOB_METRICS_MAX_CULPRITS + 2];
	struct nt_snapshot *snapshot = make_ranks(NT_JOB_METRICS_MAX_CULPRITS + 2);
	struct nt_wire_incident *incident =
		(struct nt_wire_incident *)snapshot->job[0]->incident[0];

	(void)state;
	for (uint32_t i = 0; i < NT_JOB_METRICS_MAX_CULPRITS + 2; i++)
		numbers[i] = i;
	incident->culprit[0] = nt_test_node;
	incident->culprit[0].ranks = numbers;
	incident->culprit[0].rank_count = NT_JOB_METRICS_MAX_CULPRITS + 2;
	incident->culprits = 1;

	nt_autofree char *text = write_all(snapshot, NULL);

	assert_int_equal(count(text, "\nneutracer_rank_steps_total{"), NT_JOB_METRICS_MAX_CULPRITS);
	check_left_out(text, "rank", 2);
	release_ranks(snapshot);
}

static void a_full_buffer_is_reported(void **state)
{
	struct nt_snapshot *snapshot = nt_test_snapshot();
	int r = -ENOBUFS;

	(void)state;
	for (size_t max = 1; r == -ENOBUFS; max += 500) {
		nt_autobuf struct nt_buf out = {.max = max};

		r = nt_job_metrics_write(snapshot, NULL, NT_METRICS_OPENMETRICS, &out);
		assert_true(max < 1 << 20);
	}
	assert_int_equal(r, 0);
	nt_snapshot_release(snapshot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(running_jobs_and_nodes_have_series),
		cmocka_unit_test(ranks_have_series_only_if_incidents_name_them),
		cmocka_unit_test(the_names_of_the_earlier_neutracer_stay),
		cmocka_unit_test(an_unknown_job_has_no_ranks),
		cmocka_unit_test(no_series_is_there_twice),
		cmocka_unit_test(jobs_and_nodes_are_limited),
		cmocka_unit_test(culprits_are_limited),
		cmocka_unit_test(requested_ranks_are_limited),
		cmocka_unit_test(the_ranks_of_a_node_are_limited),
		cmocka_unit_test(a_full_buffer_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
