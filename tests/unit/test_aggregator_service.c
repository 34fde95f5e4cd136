/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records on a spool through the whole service: pictures, incidents, refused records, restarts. */
#include "aggregator/service.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/file.h"
#include "tests/unit/feed.h"
#include "tests/unit/scratch.h"

enum {
	RANKS = 8,
	SLOW = 5,
	MAX_TOLD = 1024,
};

/* ---- a store in memory ------------------------------------------------------------------------- */

struct memory {
	struct nt_buf name[64], bytes[64];
	size_t items;
	uint64_t saves;
	int error;
};

static void clear_memory(struct memory *memory)
{
	for (size_t i = 0; i < 64; i++) {
		nt_buf_release(&memory->name[i]);
		nt_buf_release(&memory->bytes[i]);
	}
	memory->items = 0;
}

static int save_set(void *data, const struct nt_state_set *set)
{
	struct memory *memory = data;

	if (memory->error)
		return memory->error;
	clear_memory(memory);
	assert_true(set->items <= 64);
	for (size_t i = 0; i < set->items; i++) {
		assert_int_equal(nt_buf_append(&memory->name[i], set->item[i].name,
					       strlen(set->item[i].name) + 1),
				 0);
		assert_int_equal(
			nt_buf_append(&memory->bytes[i], set->item[i].bytes, set->item[i].size), 0);
	}
	memory->items = set->items;
	memory->saves++;
	return 0;
}

static int load_set(void *data, uint32_t shard,
		    int (*loaded)(void *loader, const struct nt_state_set *set), void *loader)
{
	struct memory *memory = data;
	struct nt_state_item item[64];
	const struct nt_state_set set = {.item = item, .items = memory->items};

	(void)shard;
	if (!memory->items)
		return -ENOENT;
	for (size_t i = 0; i < memory->items; i++)
		item[i] = (struct nt_state_item){
			.name = (const char *)memory->name[i].data,
			.bytes = memory->bytes[i].data,
			.size = memory->bytes[i].len,
		};
	return loaded(loader, &set);
}

/* ---- the service under test --------------------------------------------------------------------- */

static char dir[SCRATCH_BYTES], url[SCRATCH_BYTES + 16];
static struct nt_bus *bus;
static struct nt_board *board;
static struct nt_service *service;
static struct memory memory;
static struct feed_agent agent;
static char *told[MAX_TOLD]; /* "id version state: summary", each new one once, as a store does */
static size_t tolds;
static uint64_t picture_every_ns; /* 0: as the service likes */

/* A store drops what it has already. */
static int take_incident(void *data, const struct nt_incident *incident)
{
	char *line;

	(void)data;
	assert_true(asprintf(&line, "%s %llu %s %s: %s", incident->id,
			     (unsigned long long)incident->version, incident->state,
			     incident->class, incident->summary) > 0);
	for (size_t i = 0; i < tolds; i++)
		if (strcmp(told[i], line) == 0) {
			free(line);
			return 0;
		}
	assert_true(tolds < MAX_TOLD);
	told[tolds++] = line;
	return 0;
}

static const struct nt_sink sink = {.incident = take_incident};
static const struct nt_state_store states = {.save = save_set, .load = load_set, .data = &memory};

static void start_service(void)
{
	const struct nt_service_options options = {
		.bus_url = url,
		.engine = nt_engine_options_default(),
		.sink = &sink,
		.states = &states,
		.picture_every_ns = picture_every_ns,
	};

	assert_int_equal(nt_service_new(&options, board, &service), 0);
}

/* As by kill -9: nothing is saved. */
static void kill_service(void)
{
	nt_service_free(service);
	service = NULL;
}

/* In good order: saves. */
static void stop_service(void)
{
	nt_service_stop(service);
	assert_int_equal(nt_service_run(service), 0);
	kill_service();
}

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(url, sizeof(url), "spool:%s/spool", dir);
	assert_int_equal(nt_bus_open(url, NULL, &bus), 0);
	assert_int_equal(nt_board_new(&board), 0);
	agent = feed_agent("gpu-01", "job");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kill_service();
	nt_bus_close(bus);
	bus = NULL;
	nt_board_free(board);
	board = NULL;
	clear_memory(&memory);
	memory = (struct memory){0};
	while (tolds)
		free(told[--tolds]);
	picture_every_ns = 0;
	scratch_remove(dir);
	return 0;
}

static void publish(struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {0};
	const struct nt_bus_record record = feed_record(message, &buf);

	assert_int_equal(nt_bus_publish(bus, &record), 0);
	nt_message_free(message);
}

/* A job of eight ranks on a node; from slow_ms on one of them needs 1.5 times as long. */
static void publish_run(uint64_t from_ms, uint64_t to_ms, uint64_t slow_ms)
{
	for (uint64_t at = from_ms; at < to_ms; at += 520)
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			const bool slow = rank == SLOW && at >= slow_ms;
			/* Nothing in the world is as even as a constant. */
			const double noise = (double)((at / 520 * 7 + rank * 13) % 17) * 0.01;
			const struct feed_window window = {
				.rank = rank,
				.size = RANKS,
				.from_ms = at,
				.to_ms = at + 520,
				.steps = 10,
				.own_ms = (slow ? 30 : 20) + noise,
				.step_ms = at >= slow_ms ? 31 : 21,
				.comm = 0xabc,
				.last = at / 52 + 10,
				.gpu = "GPU-5f",
			};

			publish(feed_window(&agent, &window));
		}
	assert_int_equal(nt_bus_flush(bus), 0);
}

static void turn_until_read(void)
{
	for (int i = 0; i < 50; i++) {
		assert_int_equal(nt_service_turn(service, 0), 0);
		if (nt_service_caught_up(service))
			break;
	}
	assert_true(nt_service_caught_up(service));
	assert_int_equal(nt_service_turn(service, 0), 0);
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

static size_t count_told(const char *what)
{
	size_t count = 0;

	for (size_t i = 0; i < tolds; i++)
		count += strstr(told[i], what) != NULL;
	return count;
}

/* ---- tests -------------------------------------------------------------------------------------- */

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

static void an_alarm_is_shown_before_the_next_picture_is_due(void **state)
{
	const struct nt_snapshot *snapshot;

	(void)state;
	picture_every_ns = NT_MINUTE;
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
	picture_every_ns = 1;
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

/* What was told, in the order in which it first was, as one text. */
static char *all_told(void)
{
	nt_autobuf struct nt_buf buf = {0};

	for (size_t i = 0; i < tolds; i++)
		assert_int_equal(nt_buf_printf(&buf, "%s\n", told[i]), 0);
	assert_int_equal(nt_buf_append(&buf, "", 1), 0);
	return (char *)nt_take(buf.data);
}

static void forget_told(void)
{
	while (tolds)
		free(told[--tolds]);
}

static double windows_counted(void)
{
	const struct nt_snapshot *snapshot = nt_snapshot_acquire(board);
	double calls = 0;

	for (size_t i = 0; i < snapshot->job[0]->ranks; i++)
		calls += (double)snapshot->job[0]->rank[i].op[0].calls;
	nt_snapshot_release(snapshot);
	return calls;
}

static void a_restart_in_good_order_changes_nothing(void **state)
{
	nt_autofree char *want = NULL, *got = NULL;
	double calls;

	(void)state;
	/* Once in one go … */
	publish_run(0, 60000, 30000);
	start_service();
	turn_until_read();
	want = all_told();
	calls = windows_counted();
	kill_service();
	forget_told();
	tear_down(NULL);
	/* … and once with restarts all the time. */
	set_up(NULL);
	for (uint64_t at = 0; at < 60000; at += 5200) {
		uint64_t to = at + 5200 < 60000 ? at + 5200 : 60000;

		publish_run(at, to, 30000);
		start_service();
		turn_until_read();
		stop_service();
	}
	start_service();
	turn_until_read();
	got = all_told();
	assert_string_equal(want, got);
	assert_true(windows_counted() == calls);
}

static void a_crash_repeats_what_followed_the_last_saving_and_no_more(void **state)
{
	nt_autofree char *want = NULL, *got = NULL;
	double calls;

	(void)state;
	publish_run(0, 60000, 30000);
	start_service();
	turn_until_read();
	want = all_told();
	calls = windows_counted();
	kill_service();
	forget_told();
	tear_down(NULL);

	set_up(NULL);
	publish_run(0, 20800, 30000);
	start_service();
	turn_until_read();
	stop_service();
	publish_run(20800, 45760, 30000);
	start_service();
	turn_until_read();
	kill_service(); /* between saving and death an incident was told */
	publish_run(45760, 60000, 30000);
	start_service();
	turn_until_read();
	got = all_told();
	assert_string_equal(want, got);
	assert_true(windows_counted() == calls);
}

static void a_damaged_state_is_left_behind(void **state)
{
	(void)state;
	publish_run(0, 30000, UINT64_MAX);
	start_service();
	turn_until_read();
	stop_service();
	assert_true(memory.items >= 3);
	memory.bytes[2].len /= 2;
	start_service();
	turn_until_read();
	assert_true(windows_counted() == 58 * 10 * RANKS);
}

static void a_spool_that_was_begun_anew_is_read(void **state)
{
	(void)state;
	publish_run(0, 30000, UINT64_MAX);
	start_service();
	turn_until_read();
	stop_service();
	nt_bus_close(bus);
	scratch_remove(dir);
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(url, sizeof(url), "spool:%s/spool", dir);
	assert_int_equal(nt_bus_open(url, NULL, &bus), 0);
	publish_run(60000 + 320, 65000, UINT64_MAX);
	start_service();
	turn_until_read();
	assert_true(windows_counted() == (58 + 9) * 10 * RANKS);
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

static void a_store_that_fails_stops_nothing(void **state)
{
	(void)state;
	memory.error = -ENOSPC;
	publish_run(0, 60000, 30000);
	start_service();
	turn_until_read();
	nt_service_stop(service);
	assert_int_equal(nt_service_run(service), 0);
	assert_int_equal(memory.saves, 0);
	assert_true(count_told(" firing ") > 0);
}

static void *read_pictures(void *data)
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

static void readers_of_pictures_and_the_loop_do_not_disturb_each_other(void **state)
{
	const struct timespec pause = {.tv_nsec = 60 * MS};
	bool stop = false;
	pthread_t reader[3];

	(void)state;
	publish_run(0, 5000, UINT64_MAX);
	start_service();
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&reader[i], NULL, read_pictures, &stop), 0);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slow_rank_is_told_and_shown),
		TEST(an_alarm_is_shown_before_the_next_picture_is_due),
		TEST(a_healthy_job_makes_no_incident),
		TEST(incidents_are_published_on_the_bus),
		TEST(a_damaged_segment_of_the_bus_is_named_in_the_log_just_once),
		TEST(what_cannot_be_read_goes_to_the_dead_letters),
		TEST(a_restart_in_good_order_changes_nothing),
		TEST(a_crash_repeats_what_followed_the_last_saving_and_no_more),
		TEST(a_damaged_state_is_left_behind),
		TEST(a_spool_that_was_begun_anew_is_read),
		TEST(a_job_that_ends_is_shown_as_ended_and_its_incident_resolved),
		TEST(taking_now_as_normal_ends_the_incident),
		TEST(a_store_that_fails_stops_nothing),
		TEST(readers_of_pictures_and_the_loop_do_not_disturb_each_other),
		TEST(a_bus_that_cannot_be_used_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
