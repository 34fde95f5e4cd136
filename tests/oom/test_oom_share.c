/* SPDX-License-Identifier: GPL-3.0-or-later */
/* States, summaries and incidents between aggregators, as allocations fail. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/group/job_summary.h"
#include "aggregator/group/shard.h"
#include "aggregator/group/state_log.h"
#include "aggregator/store/store.h"
#include "common/system/clock.h"
#include "tests/api/snapshot_scene.h"
#include "tests/oom/oom.h"
#include "tests/unit/scratch.h"

enum {
	SHARD = 1,
};

static char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16];

static int set_up(void **state)
{
	(void)state;
	if (scratch_make(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/file", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

/* A bus that hands every record to the other side at once. */
struct pipe {
	struct nt_state_log *state_log;
	struct nt_job_summaries *summaries;
};

static int pass(void *data, const struct nt_message *message)
{
	const struct pipe *pipe = data;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_message sent = *message;
	struct nt_bus_record record = {
		.topic = NT_TOPIC_STATE,
		.key = message->key,
		.key_len = strlen(message->key),
	};
	int r;

	sent.agent = "a";
	sent.boot = 1;
	r = nt_message_encode(&sent, &buf);
	if (r < 0)
		return r;
	record.value = buf.data;
	record.value_len = buf.len;
	r = pipe->state_log ? nt_state_log_take(pipe->state_log, &record) : 0;
	if (r == 0 && pipe->summaries)
		r = nt_job_summaries_take(pipe->summaries, &record, 2);
	return r;
}

static int forget(void *data, const char *key)
{
	(void)data;
	(void)key;
	return 0;
}

static int flush(void *data)
{
	(void)data;
	return 0;
}

/* ---- states -------------------------------------------------------------------------------------- */

static void ignore_incident(void *data, const struct nt_shard *shard,
			    const struct nt_wire_incident *incident)
{
	(void)data;
	(void)shard;
	(void)incident;
}

static int move_shard(void *data)
{
	const struct nt_engine_options options = nt_engine_options_default();
	const struct nt_shard_handler handler = {.incident = ignore_incident};
	nt_auto(nt_shard) struct nt_shard *from = NULL, *to = NULL;
	nt_auto(nt_state_log) struct nt_state_log *state_log = NULL;
	struct pipe pipe = {0};
	const struct nt_state_log_port port = {
		.publish = pass, .remove = forget, .flush = flush, .data = &pipe};
	int r;

	(void)data;
	r = nt_shard_new(SHARD, &options, &handler, &from);
	if (r == 0)
		r = nt_state_log_new(SHARD, &state_log);
	pipe.state_log = state_log;
	if (r == 0)
		r = nt_shard_save(from, NULL, &port);
	if (r == 0)
		r = nt_state_log_end(&port, "", &from->draft);
	if (r == 0)
		r = nt_shard_new(SHARD, &options, &handler, &to);
	if (r == 0)
		r = nt_shard_load(to, NULL, state_log);
	if (r == 0)
		assert_true(to->loaded);
	return r;
}

static void a_shard_moves_whole_or_not_at_all(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(move_shard, NULL) > 20);
}

/* ---- summaries ------------------------------------------------------------------------------- */

static int show_summary(void *data)
{
	struct nt_snapshot_job *job = nt_snapshot_job_new();
	nt_auto(nt_job_summaries) struct nt_job_summaries *ours = NULL, *theirs = NULL;
	const struct nt_snapshot_job *list[] = {job}, **shown;
	struct pipe pipe = {0};
	const struct nt_state_log_port port = {
		.publish = pass, .remove = forget, .flush = flush, .data = &pipe};
	size_t count;
	int r;

	(void)data;
	if (!job)
		return -ENOMEM;
	(void)snprintf(job->id, sizeof(job->id), "0123456789abcdef");
	r = nt_job_summaries_new(&ours);
	if (r == 0)
		r = nt_job_summaries_new(&theirs);
	pipe.summaries = theirs;
	if (r == 0)
		r = nt_job_summaries_publish(ours, &port, "http://a", SHARD, list, 1);
	if (r == 0)
		r = nt_job_summaries_list(theirs, &shown, &count);
	if (r == 0)
		assert_int_equal(count, 1);
	nt_snapshot_job_unref(job);
	return r;
}

static void a_summary_is_shown_or_the_want_of_memory_told(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(show_summary, NULL) > 8);
}

/* ---- incidents ------------------------------------------------------------------------------------ */

static int see(void *data, const struct nt_wire_incident *incident)
{
	(void)data;
	(void)incident;
	return 0;
}

static int share_incident(void *data)
{
	static const char *const receivers[] = {"webhook"};
	char name[sizeof(path) + 40], id[32];
	const struct nt_store_options options = {
		.path = name, .receiver = receivers, .receivers = 1, .shared = true};
	const struct nt_sink_bus_producer bus_producer = {.incident = see, .flush = flush};
	struct nt_delivery delivery = {.receiver = "webhook",
				       .event = "firing",
				       .state = "queued",
				       .severity = "critical"};
	nt_auto(nt_store) struct nt_store *store = NULL;
	struct nt_store_error error;
	struct nt_wire_incident incident;
	struct nt_sink sink;
	int r;

	/* A store of its own: one that has more to do each time would never be done. */
	(void)snprintf(id, sizeof(id), "id-%u", (*(unsigned int *)data)++);
	(void)snprintf(name, sizeof(name), "%s-%s", path, id);
	r = nt_store_open(&options, &store, &error);
	if (r < 0)
		return r;
	incident = nt_test_incident(id, "firing", &nt_test_rank_5, 1);
	incident.shard = SHARD;
	incident.delivery = &delivery;
	incident.deliveries = 1;
	sink = nt_store_sink(store);
	r = sink.take(sink.data, &incident, false);
	if (r == 0)
		r = sink.adopt(sink.data, SHARD, nt_clock_real_ns());
	if (r == 0)
		r = sink.publish(sink.data, &bus_producer);
	if (r >= 0)
		r = sink.release(sink.data, SHARD);
	return r;
}

static void an_incident_is_shared_or_the_want_of_memory_told(void **state)
{
	unsigned int number = 0;

	(void)state;
	/* JSON that could not be made is a message that comes later. */
	assert_true(nt_oom_sweep_lenient(share_incident, &number) > 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_shard_moves_whole_or_not_at_all),
		TEST(a_summary_is_shown_or_the_want_of_memory_told),
		TEST(an_incident_is_shared_or_the_want_of_memory_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
