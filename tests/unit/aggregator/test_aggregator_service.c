/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records on a spool through the whole service: snapshots, incidents, refused records. */
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "common/system/clock.h"
#include "common/system/file.h"
#include "tests/unit/aggregator/service_feed.h"

static double metric(const struct nt_snapshot *snapshot, const char *name, const char *labels)
{
	for (size_t i = 0; i < snapshot->metrics; i++)
		if (strcmp(snapshot->metric[i].name, name) == 0 &&
		    strcmp(snapshot->metric[i].labels, labels) == 0)
			return snapshot->metric[i].value;
	fail_msg("no metric %s{%s}", name, labels);
	return 0;
}

static void a_slow_rank_is_told_and_shown(void **state)
{
	const struct nt_snapshot *snapshot;
	const struct nt_snapshot_job *job;

	(void)state;
	publish_run(0, 60000, 30000);
	start_service();
	turn_until_read();
	assert_true(count_told("firing compute: rank 5 (gpu-01, GPU-5f) computes") > 0);
	assert_int_equal(count_told(": rank"), tolds); /* and nobody else */
	assert_int_equal(count_told(": rank 5 "), tolds);

	snapshot = nt_snapshot_acquire(board);
	assert_non_null(snapshot);
	assert_int_equal(snapshot->jobs, 1);
	job = snapshot->job[0];
	assert_string_equal(job->name, "llm");
	assert_string_equal(job->key, "job");
	assert_int_equal(job->state, NT_JOB_RUNNING);
	assert_int_equal(job->size, RANKS);
	assert_int_equal(job->live, RANKS);
	assert_int_equal(job->nodes, 1);
	assert_true(job->step_ns > 30e6 && job->step_ns < 32e6);
	assert_ptr_equal(nt_snapshot_find(snapshot, job->id), job);
	assert_null(nt_snapshot_find(snapshot, "0000000000000000"));
	assert_int_equal(job->ranks, RANKS);
	assert_int_equal(job->rank[SLOW].rank, SLOW);
	assert_true(job->rank[SLOW].own_observable);
	assert_true(job->rank[SLOW].own_ns > 1.4 * job->rank[SLOW].own_peers_ns);
	assert_int_equal(job->rank[SLOW].peer_count, RANKS - 1);
	assert_int_equal(job->rank[SLOW].ops, 1);
	assert_int_equal(job->rank[SLOW].op[0].calls, job->rank[SLOW].total_steps);
	assert_int_equal(job->rank[SLOW].op[0].bytes, 4096 * job->rank[SLOW].total_steps);
	assert_string_equal(job->rank[SLOW].gpu, "GPU-5f");
	assert_int_equal(job->incidents, 1);
	assert_string_equal(job->incident[0]->state, "firing");
	assert_int_equal(job->incident[0]->culprit[0].rank, SLOW);
	assert_int_equal(snapshot->nodes, 1);
	assert_string_equal(snapshot->node[0].name, "gpu-01");
	assert_int_equal(snapshot->node[0].ranks, RANKS);
	assert_true(metric(snapshot, "neutracer_aggregator_windows", "") == 116 * RANKS);
	nt_snapshot_release(snapshot);
}

static void an_alarm_is_shown_before_the_next_snapshot_is_due(void **state)
{
	const struct nt_snapshot *snapshot;

	(void)state;
	snapshot_every_ns = NT_MINUTE;
	publish_run(0, 30000, UINT64_MAX);
	start_service();
	turn_until_read();
	publish_run(30160, 60000, 30160);
	/* What is to be read, and a turn in which nothing is. */
	for (int i = 0; i < 50 && !tolds; i++)
		assert_int_equal(nt_service_turn(service, 0), 0);
	assert_true(tolds > 0);
	assert_int_equal(nt_service_turn(service, 0), 0);
	snapshot = nt_snapshot_acquire(board);
	assert_int_equal(snapshot->jobs, 1);
	assert_int_equal(snapshot->job[0]->incidents, 1);
	assert_int_equal(snapshot->job[0]->incident[0]->culprit[0].rank, SLOW);
	nt_snapshot_release(snapshot);
}

static void a_healthy_job_makes_no_incident(void **state)
{
	(void)state;
	publish_run(0, 90000, UINT64_MAX);
	start_service();
	turn_until_read();
	assert_int_equal(tolds, 0);
}

static void incidents_are_published_on_the_bus(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;
	size_t seen = 0;

	(void)state;
	publish_run(0, 60000, 30000);
	start_service();
	turn_until_read();
	assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_INCIDENT, &reader), 0);
	while (nt_bus_reader_next(reader, 0, &record) == 1) {
		nt_auto(nt_message) struct nt_message *message = NULL;

		assert_int_equal(nt_message_decode(record.value, record.value_len, &message), 0);
		assert_int_equal(message->body, NT_BODY_INCIDENT);
		assert_string_equal(message->key, message->incident.id);
		assert_int_equal(message->seq, ++seen);
		assert_int_equal(message->incident.culprit[0].rank, SLOW);
	}
	assert_true(seen > 0);
}

/* What is logged from now on goes to the file. Returns what to give to restore_log(). */
static int divert_log(const char *path)
{
	nt_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int saved = dup(STDERR_FILENO);

	assert_true(fd >= 0 && saved >= 0);
	(void)fflush(stderr);
	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	return saved;
}

static void restore_log(int saved)
{
	(void)fflush(stderr);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	(void)close(saved);
}

static void spoil(uint64_t at)
{
	char path[SCRATCH_BYTES + 128];
	nt_autoclose int fd = -1;

	(void)snprintf(path, sizeof(path),
		       "%s/spool/neutracer.window.v1/0/00000000000000000000.seg", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "noise", 5, (off_t)at), 5);
}

static void a_damaged_segment_of_the_bus_is_named_in_the_log_just_once(void **state)
{
	nt_autobuf struct nt_buf log = {0};
	const struct nt_snapshot *snapshot;
	char path[SCRATCH_BYTES + 16];
	const char *line;
	int saved;

	(void)state;
	publish_run(0, 60000, 30000);
	spoil(6000);
	spoil(60000);
	(void)snprintf(path, sizeof(path), "%s/log", dir);
	snapshot_every_ns = 1;
	saved = divert_log(path);
	start_service();
	turn_until_read();
	restore_log(saved);

	assert_int_equal(nt_file_read(path, 1 << 20, &log), 0);
	assert_int_equal(nt_buf_append(&log, "", 1), 0);
	line = strstr((const char *)log.data, "level=warn");
	assert_non_null(line);
	assert_non_null(strstr(line, "segment 'neutracer.window.v1/0/00000000000000000000.seg' is "
				     "damaged: "));
	assert_null(strstr(line + 1, "level=warn"));
	snapshot = nt_snapshot_acquire(board);
	assert_true(metric(snapshot, "neutracer_aggregator_bus_corrupt", "") == 2);
	nt_snapshot_release(snapshot);
	/* And nobody goes free for it. */
	assert_true(count_told("firing compute: rank 5 (gpu-01, GPU-5f) computes") > 0);
}

static void what_cannot_be_read_goes_to_the_dead_letters(void **state)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	const struct nt_bus_record damaged = {
		.topic = NT_TOPIC_WINDOW,
		.key = "job",
		.key_len = 3,
		.value = "\xff\x00\xff",
		.value_len = 3,
		.real_ns = REAL_0,
	};
	const struct nt_snapshot *snapshot;
	struct nt_bus_record record;
	size_t seen = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(nt_bus_publish(bus, &damaged), 0);
	publish_run(0, 5000, UINT64_MAX);
	start_service();
	turn_until_read();
	assert_int_equal(nt_bus_reader_open(url, 1U << NT_TOPIC_DLQ, &reader), 0);
	while (nt_bus_reader_next(reader, 0, &record) == 1) {
		assert_int_equal(record.key_len, strlen("not a message"));
		assert_memory_equal(record.key, "not a message", record.key_len);
		assert_int_equal(record.value_len, 3);
		assert_memory_equal(record.value, damaged.value, 3);
		seen++;
	}
	/* A flood is cut, and counted. */
	assert_in_range(seen, 10, 40);
	snapshot = nt_snapshot_acquire(board);
	assert_true(metric(snapshot, "neutracer_aggregator_records_refused",
			   "why=\"undecodable\"") == 100);
	assert_true(metric(snapshot, "neutracer_aggregator_dlq_dropped", "") ==
		    (double)(100 - seen));
	nt_snapshot_release(snapshot);
}

static void a_job_that_ends_is_shown_as_ended_and_its_incident_resolved(void **state)
{
	const struct nt_snapshot *snapshot;

	(void)state;
	publish_run(0, 60000, 30000);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		const struct feed_window end = {
			.rank = rank,
			.size = RANKS,
			.from_ms = 60320,
			.to_ms = 60600,
			.ended = true,
			.finalized = true,
		};

		publish(feed_window(&agent, &end));
	}
	publish(feed_heartbeat(&agent, 62000));
	assert_int_equal(nt_bus_flush(bus), 0);
	start_service();
	turn_until_read();
	snapshot = nt_snapshot_acquire(board);
	assert_int_equal(snapshot->job[0]->state, NT_JOB_ENDED);
	assert_int_equal(snapshot->job[0]->live, 0);
	assert_int_equal(snapshot->job[0]->ended_ns, REAL_0 + 60600 * MS);
	assert_int_equal(snapshot->job[0]->incidents, 0);
	assert_int_equal(snapshot->job[0]->ranks, RANKS);
	nt_snapshot_release(snapshot);
	assert_int_equal(count_told(" resolved "), 1);
}

static void taking_now_as_normal_ends_the_incident(void **state)
{
	const struct nt_snapshot *snapshot;
	char id[NT_JOB_ID_LEN + 1];

	(void)state;
	publish_run(0, 60000, 30000);
	start_service();
	turn_until_read();
	snapshot = nt_snapshot_acquire(board);
	memcpy(id, snapshot->job[0]->id, sizeof(id));
	nt_snapshot_release(snapshot);
	assert_int_equal(nt_service_rebaseline(service, "0123456789abcdef"), -ENOENT);
	assert_int_equal(nt_service_rebaseline(service, "../../../etc"), -ENOENT);
	assert_int_equal(count_told(" resolved "), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(nt_service_rebaseline(service, id), 0);
	assert_int_equal(nt_service_turn(service, 0), 0);
	publish_run(60320, 70000, 30000);
	assert_int_equal(nt_service_turn(service, 0), 0);
	assert_int_equal(nt_service_turn(service, 0), 0);
	assert_int_equal(count_told(" resolved "), 1);
}

static void *read_snapshots(void *data)
{
	const bool *stop = data;
	uint64_t ranks = 0;

	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE)) {
		const struct nt_snapshot *snapshot = nt_snapshot_acquire(board);

		for (size_t i = 0; snapshot && i < snapshot->jobs; i++)
			for (size_t j = 0; j < snapshot->job[i]->ranks; j++)
				ranks += strlen(snapshot->job[i]->rank[j].node);
		nt_snapshot_release(snapshot);
	}
	return (void *)(uintptr_t)(ranks + 1);
}

static void readers_of_snapshots_and_the_loop_do_not_disturb_each_other(void **state)
{
	const struct timespec pause = {.tv_nsec = 60 * MS};
	bool stop = false;
	pthread_t reader[3];

	(void)state;
	publish_run(0, 5000, UINT64_MAX);
	start_service();
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&reader[i], NULL, read_snapshots, &stop), 0);
	for (uint64_t at = 5200; at < 25000; at += 1040) {
		publish_run(at, at + 1040, UINT64_MAX);
		assert_int_equal(nt_service_turn(service, 0), 0);
		(void)nanosleep(&pause, NULL);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (size_t i = 0; i < 3; i++) {
		void *ranks;

		assert_int_equal(pthread_join(reader[i], &ranks), 0);
		assert_non_null(ranks);
	}
}

static void a_bus_that_cannot_be_used_is_an_error(void **state)
{
	struct nt_service_options options = {
		.bus_url = "carrier-pigeon:loft",
		.engine = nt_engine_options_default(),
	};

	(void)state;
	assert_int_equal(nt_service_new(&options, board, &service), -EINVAL);
	assert_null(service);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slow_rank_is_told_and_shown),
		TEST(an_alarm_is_shown_before_the_next_snapshot_is_due),
		TEST(a_healthy_job_makes_no_incident),
		TEST(incidents_are_published_on_the_bus),
		TEST(a_damaged_segment_of_the_bus_is_named_in_the_log_just_once),
		TEST(what_cannot_be_read_goes_to_the_dead_letters),
		TEST(a_job_that_ends_is_shown_as_ended_and_its_incident_resolved),
		TEST(taking_now_as_normal_ends_the_incident),
		TEST(readers_of_snapshots_and_the_loop_do_not_disturb_each_other),
		TEST(a_bus_that_cannot_be_used_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
