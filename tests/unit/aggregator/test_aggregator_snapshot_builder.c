/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the snapshot shows of a job whose only agent is no longer heard, and when it is again. */
#include "aggregator/snapshot_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/self_metrics.h"
#include "engine/engine.h"

#include "tests/unit/engine/window_feed.h"

enum {
	RANKS = 4,
	SLOW_RANK = 2,
	WINDOW_MS = 520,
};

static struct nt_engine *engine;
static struct feed_agent agent;
static uint32_t fired, resolved;

static void note_incident(void *data, const struct nt_wire_incident *incident)
{
	(void)data;
	fired += strcmp(incident->state, "firing") == 0 && incident->version > 0;
	resolved += strcmp(incident->state, "resolved") == 0;
}

static struct nt_job_timelines *timelines;

static int set_up(void **state)
{
	struct nt_engine_options options = nt_engine_options_default();
	const struct nt_engine_handler handler = {.incident = note_incident};

	(void)state;
	fired = resolved = 0;
	agent = feed_agent("n0", "job");
	if (nt_job_timelines_new(NULL, &timelines) < 0)
		return -1;
	options.timelines = timelines;
	return nt_engine_new(&options, &handler, &engine);
}

static int tear_down(void **state)
{
	(void)state;
	nt_engine_free(engine);
	nt_job_timelines_free(timelines);
	return 0;
}

/* Whole windows of all ranks; one is slow from 20 s on. */
static void feed(uint64_t from_ms, uint64_t to_ms)
{
	for (uint64_t n = from_ms / WINDOW_MS; (n + 1) * WINDOW_MS <= to_ms; n++)
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			const bool is_slow = rank == SLOW_RANK && n * WINDOW_MS >= 20000;
			const struct feed_window window = {
				.rank = rank,
				.size = RANKS,
				.from_ms = n * WINDOW_MS + rank,
				.to_ms = (n + 1) * WINDOW_MS + rank,
				.steps = 10,
				.own_ms = is_slow ? 45 : 30 + 0.1 * (double)(n % 7),
				.step_ms = 52,
				.comm = 0xabc,
				.last = 10 * (n + 1),
				.gemms = rank == 0 ? WINDOW_MS : 0,
				.gemm_gpu_ns = rank == 0 && n * WINDOW_MS < 20000 ? 1000 : 0,
			};

			assert_int_equal(
				nt_engine_push(engine, feed_window(&agent, &window), false), 0);
		}
}

static void wait(uint64_t seconds)
{
	while (seconds-- > 0)
		assert_int_equal(nt_engine_sweep(engine, SECOND), 0);
}

static struct nt_snapshot *draw(void)
{
	struct nt_snapshot *snapshot = NULL;

	assert_int_equal(
		nt_snapshot_builder_build(
			&(struct nt_snapshot_builder){.engine = &engine, .engines = 1}, &snapshot),
		0);
	assert_int_equal(snapshot->jobs, 1);
	assert_int_equal(snapshot->nodes, 1);
	return snapshot;
}

static double metric(const struct nt_snapshot *snapshot, const char *name, const char *labels)
{
	for (size_t i = 0; i < snapshot->metrics; i++)
		if (strcmp(snapshot->metric[i].name, name) == 0 &&
		    strcmp(snapshot->metric[i].labels, labels) == 0)
			return snapshot->metric[i].value;
	fail_msg("no metric %s{%s}", name, labels);
	return 0;
}

/* Of one job on one node. */
static void check_metrics(struct nt_snapshot *snapshot, bool is_observed)
{
	const struct nt_self_metrics metrics = {0};

	assert_int_equal(nt_self_metrics_read(&metrics, snapshot), 0);
	assert_true(metric(snapshot, "neutracer_aggregator_jobs", "state=\"running\"") ==
		    is_observed);
	assert_true(metric(snapshot, "neutracer_aggregator_jobs", "state=\"unobserved\"") ==
		    !is_observed);
	assert_true(metric(snapshot, "neutracer_aggregator_nodes", "state=\"observed\"") ==
		    is_observed);
	assert_true(metric(snapshot, "neutracer_aggregator_nodes", "state=\"unobserved\"") ==
		    !is_observed);
}

static void a_job_whose_only_agent_is_gone_is_unobserved_and_comes_back(void **state)
{
	struct nt_snapshot *snapshot;
	uint64_t seen_ns;
	char id[64];

	(void)state;
	feed(0, 40000);
	snapshot = draw();
	assert_int_equal(snapshot->job[0]->state, NT_JOB_RUNNING);
	assert_int_equal(snapshot->job[0]->incidents, 1);
	assert_true(snapshot->job[0]->incident[0]->completeness == 1);
	(void)snprintf(id, sizeof(id), "%s", snapshot->job[0]->incident[0]->id);
	assert_false(snapshot->node[0].silent);
	check_metrics(snapshot, true);
	assert_true(snapshot->job[0]->completeness == 1);
	seen_ns = snapshot->job[0]->last_seen_ns;
	nt_snapshot_release(snapshot);

	wait(8);
	snapshot = draw();
	assert_int_equal(snapshot->job[0]->state, NT_JOB_RUNNING);
	assert_false(snapshot->node[0].silent);
	nt_snapshot_release(snapshot);

	wait(14);
	snapshot = draw();
	assert_int_equal(snapshot->job[0]->state, NT_JOB_UNOBSERVED);
	assert_true(snapshot->node[0].silent);
	check_metrics(snapshot, false);
	assert_true(snapshot->job[0]->completeness == 0);
	assert_int_equal(snapshot->job[0]->live, RANKS);
	assert_in_range(snapshot->job[0]->last_seen_ns, seen_ns, seen_ns + SECOND);
	for (size_t i = 0; i < RANKS; i++) {
		assert_true(snapshot->job[0]->rank[i].silent);
		assert_false(snapshot->job[0]->rank[i].observed);
		assert_false(snapshot->job[0]->rank[i].ended);
	}
	/* It stays, and says that half of its time was not seen. */
	assert_int_equal(snapshot->job[0]->incidents, 1);
	assert_string_equal(snapshot->job[0]->incident[0]->id, id);
	assert_string_equal(snapshot->job[0]->incident[0]->state, "firing");
	assert_true(snapshot->job[0]->incident[0]->completeness < 0.6);
	assert_true(snapshot->job[0]->incident[0]->confidence < 0.6);
	nt_snapshot_release(snapshot);

	agent.boot++;
	agent.seq = 0;
	feed(64000, 90000);
	snapshot = draw();
	assert_int_equal(snapshot->job[0]->state, NT_JOB_RUNNING);
	assert_false(snapshot->node[0].silent);
	assert_true(snapshot->job[0]->completeness == 1);
	assert_int_equal(snapshot->job[0]->incidents, 1);
	assert_string_equal(snapshot->job[0]->incident[0]->id, id);
	for (size_t i = 0; i < RANKS; i++) {
		assert_false(snapshot->job[0]->rank[i].silent);
		assert_true(snapshot->job[0]->rank[i].observed);
	}
	nt_snapshot_release(snapshot);
	assert_int_equal(resolved, 0);
	assert_true(fired >= 1);
}

/* Whoever looks at the store would find it firing for ever. */
static void what_a_job_leaves_behind_that_is_given_up_is_resolved(void **state)
{
	(void)state;
	feed(0, 40000);
	wait(3500);
	assert_true(fired > 0);
	assert_int_equal(resolved, 0);
	wait(120);
	assert_null(nt_jobs_keys(nt_engine_jobs(engine)));
	assert_int_equal(resolved, 1);
}

static void what_is_let_go_with_the_engine_is_not_resolved(void **state)
{
	(void)state;
	feed(0, 40000);
	assert_true(fired > 0);
	nt_engine_free(engine);
	engine = NULL;
	assert_int_equal(resolved, 0);
}

static void say_limits(const char *node, uint64_t real_ns, size_t limits)
{
	struct nt_node_limit limit = {"processes", "processes", "user 1", 5, 5, 1024};
	const struct nt_message message = {
		.agent = node,
		.key = node,
		.real_ns = real_ns,
		.body = NT_BODY_NODE,
		.node = {.node = node, .limit = &limit, .limits = limits},
	};

	assert_int_equal(nt_engine_push(engine, feed_copy(&message), false), 0);
}

/* Of a node whose job is hidden there is nothing else. */
static void nodes_that_leave_something_out_are_shown_with_ranks_and_without(void **state)
{
	struct nt_snapshot *snapshot = NULL;
	uint64_t now_ns;

	(void)state;
	feed(0, 4000);
	snapshot = draw();
	now_ns = snapshot->node[0].last_seen_ns;
	nt_snapshot_release(snapshot);
	say_limits("n0", now_ns, 1);
	say_limits("a", now_ns, 1);
	assert_int_equal(
		nt_snapshot_builder_build(
			&(struct nt_snapshot_builder){.engine = &engine, .engines = 1}, &snapshot),
		0);
	assert_int_equal(snapshot->nodes, 2);
	assert_string_equal(snapshot->node[0].name, "a");
	assert_int_equal(snapshot->node[0].ranks, 0);
	assert_int_equal(snapshot->node[0].limits, 1);
	assert_int_equal(snapshot->node[0].limit[0].left_out, 5);
	assert_string_equal(snapshot->node[1].name, "n0");
	assert_int_equal(snapshot->node[1].ranks, RANKS);
	assert_int_equal(snapshot->node[1].limits, 1);
	nt_snapshot_release(snapshot);
	say_limits("n0", now_ns + SECOND, 0);
	wait(40);
	assert_int_equal(
		nt_snapshot_builder_build(
			&(struct nt_snapshot_builder){.engine = &engine, .engines = 1}, &snapshot),
		0);
	assert_int_equal(snapshot->nodes, 1);
	assert_int_equal(snapshot->node[0].limits, 0);
	nt_snapshot_release(snapshot);
}

static void the_device_memory_of_a_rank_is_in_the_snapshot(void **state)
{
	struct nt_heap_device device = {.number = 3, .live_bytes = 4711};
	const struct feed_window window = {
		.rank = 1, .size = RANKS, .from_ms = 4000, .to_ms = 4520, .steps = 10};
	struct nt_snapshot *snapshot = NULL;
	struct nt_message *message;

	(void)state;
	feed(0, 4000);
	message = feed_window(&agent, &window);
	message->window.heap.device = &device;
	message->window.heap.devices = 1;
	assert_int_equal(nt_engine_push(engine, feed_copy(message), false), 0);
	message->window.heap.device = NULL;
	message->window.heap.devices = 0;
	nt_message_free(message);
	snapshot = draw();
	assert_null(snapshot->job[0]->rank[0].heap);
	assert_non_null(snapshot->job[0]->rank[1].heap);
	assert_int_equal(snapshot->job[0]->rank[1].heap->devices, 1);
	assert_int_equal(snapshot->job[0]->rank[1].heap->device[0].number, 3);
	assert_int_equal(snapshot->job[0]->rank[1].heap->device[0].live_bytes, 4711);
	nt_snapshot_release(snapshot);
}

/* What its last frame holds. The totals of a process that has ended cannot be read. */
static void the_rate_of_multiplications_is_that_of_the_last_frame(void **state)
{
	struct nt_snapshot *snapshot;
	const struct nt_gemm_rate *gemms;
	struct feed_window last = {.size = RANKS,
				   .from_ms = 40040,
				   .to_ms = 40300,
				   .comm = 0xabc,
				   .last = 770,
				   .ended = true};

	(void)state;
	feed(0, 40040);
	snapshot = draw();
	gemms = snapshot->job[0]->rank[0].gemms;
	assert_non_null(gemms);
	assert_null(snapshot->job[0]->rank[1].gemms);
	assert_true(gemms->flops > 0.999e12 && gemms->flops < 1.001e12);
	assert_true(gemms->mfu > 0.00999 && gemms->mfu < 0.01001);
	assert_int_equal(gemms->row[0].type, 14);
	/* No window of the last 20 s has it: it is of that time. */
	assert_true(gemms->gpu.ns > 0 && gemms->gpu.inside_ns == 0.25 * gemms->gpu.ns);
	assert_int_equal(gemms->gpu.end_ns,
			 REAL_0 + (20000 + WINDOW_MS - 1) / WINDOW_MS * WINDOW_MS * MS);
	nt_snapshot_release(snapshot);
	assert_int_equal(nt_engine_push(engine, feed_window(&agent, &last), false), 0);
	wait(20);
	snapshot = draw();
	assert_true(snapshot->job[0]->rank[0].ended);
	gemms = snapshot->job[0]->rank[0].gemms;
	assert_true(gemms->flops > 0.999e12);
	nt_snapshot_release(snapshot);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* The slow rank's work grows from 20 s on. The engine may go before the snapshot does. */
static void the_timeline_of_a_job_is_in_the_snapshot(void **state)
{
	const struct nt_snapshot_job *job;
	struct nt_job_timelines_stats stats;
	struct nt_snapshot *snapshot;
	const uint8_t *own;

	(void)state;
	feed(0, 60000);
	snapshot = draw();
	job = snapshot->job[0];
	nt_job_timelines_stats(timelines, &stats);
	assert_true(stats.bytes_now > 0);
	nt_engine_free(nt_take(engine));
	nt_job_timelines_stats(timelines, &stats);
	assert_int_equal(stats.bytes_now, 0);
	assert_in_range(job->timeline_cells, 4, 6);
	for (size_t i = 0; i < job->timeline_cells; i++)
		assert_int_equal(job->timeline[i]->ranks->count, RANKS);
	own = nt_timeline_values(job->timeline[0], NT_TIMELINE_OWN);
	assert_in_range(own[SLOW_RANK], NT_TIMELINE_ZERO + 55, NT_TIMELINE_ZERO + 62);
	own = nt_timeline_values(job->timeline[job->timeline_cells - 1], NT_TIMELINE_OWN);
	assert_in_range(own[0], NT_TIMELINE_ZERO + 55, NT_TIMELINE_ZERO + 62);
	assert_in_range(own[SLOW_RANK], NT_TIMELINE_ZERO + 84, NT_TIMELINE_ZERO + 90);
	nt_snapshot_release(snapshot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_whose_only_agent_is_gone_is_unobserved_and_comes_back),
		TEST(what_a_job_leaves_behind_that_is_given_up_is_resolved),
		TEST(what_is_let_go_with_the_engine_is_not_resolved),
		TEST(nodes_that_leave_something_out_are_shown_with_ranks_and_without),
		TEST(the_device_memory_of_a_rank_is_in_the_snapshot),
		TEST(the_rate_of_multiplications_is_that_of_the_last_frame),
		TEST(the_timeline_of_a_job_is_in_the_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
