/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer analyze` on what agents left on a spool: the same verdict as the live service's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "aggregator/service.h"
#include "cli/replay/replay.h"
#include "cli/report/html.h"
#include "cli/report/report.h"
#include "tests/unit/engine/window_feed.h"
#include "tests/unit/scratch.h"

enum {
	RANKS = 8,
	SLOW = 5,
	WINDOW_MS = 520,
	MAX_TOLD = 64,
};

struct job {
	struct feed_agent agent;
	const char *name;
	uint32_t ranks, slow, pid;
	uint64_t comm, process_ms;
	bool ended;
};

static char dir[SCRATCH_BYTES], url[SCRATCH_BYTES + 16];
static struct nt_bus *bus;
static struct nt_judgement *judgement;
static struct nt_recording recording;
static struct nt_trace_error error;
static struct nt_buf text;

static int set_up(void **state)
{
	(void)state;
	if (scratch_make(dir) < 0)
		return -1;
	(void)snprintf(url, sizeof(url), "spool:%s", dir);
	return nt_bus_open(url, NULL, &bus);
}

static int tear_down(void **state)
{
	(void)state;
	nt_judgement_free(judgement);
	judgement = NULL;
	nt_buf_release(&text);
	nt_bus_close(bus);
	bus = NULL;
	scratch_remove(dir);
	return 0;
}

static struct job job(const char *node, const char *key, const char *name)
{
	return (struct job){
		.agent = feed_agent(node, key),
		.name = name,
		.ranks = RANKS,
		.slow = SLOW,
		.pid = 100,
		.comm = 0xabc,
	};
}

/* One window of each rank; from 30 s on one of them needs 1.5 times as long. */
static void publish_windows(struct job *job, uint64_t at_ms)
{
	for (uint32_t rank = 0; rank < job->ranks; rank++) {
		nt_auto(nt_message) struct nt_message *message = NULL;
		const bool fault = at_ms >= 30000 && job->slow < job->ranks;
		/* Nothing in the world is as even as a constant. */
		const double noise = (double)((at_ms / WINDOW_MS * 7 + rank * 13) % 17) * 0.01;
		const struct feed_window window = {
			.rank = rank,
			.size = job->ranks,
			.pid = job->pid + rank,
			.from_ms = at_ms,
			.to_ms = at_ms + WINDOW_MS,
			.steps = 10,
			.own_ms = (fault && rank == job->slow ? 30 : 20) + noise,
			.step_ms = fault ? 31 : 21,
			.comm = job->comm,
			.last = at_ms / 52 + 10,
			.gpu = "GPU-5f",
			.job = job->name,
			.process_ms = job->process_ms,
			.ended = job->ended,
		};
		nt_autobuf struct nt_buf buf = {0};
		struct nt_bus_record record;

		message = feed_window(&job->agent, &window);
		record = feed_record(message, &buf);
		assert_int_equal(nt_bus_publish(bus, &record), 0);
	}
}

/* A minute of these jobs, side by side. */
static void publish_minute(struct job *jobs, size_t count)
{
	for (uint64_t at = 0; at < 60000; at += WINDOW_MS)
		for (size_t i = 0; i < count; i++)
			publish_windows(&jobs[i], at);
	assert_int_equal(nt_bus_flush(bus), 0);
}

static int judge(void)
{
	const struct nt_rules rules = nt_rules_default();

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_judgement_watch(judgement, &rules), 0);
	error = (struct nt_trace_error){0};
	return nt_replay_recording(dir, &rules, judgement, &recording, &error);
}

/* Either form of the report; the text is the test's until the next call. */
static const char *report(int (*print)(const struct nt_report *report, struct nt_buf *buf))
{
	struct nt_report what = {.source = "rec"};

	nt_report_recording(&what, &recording, judgement);
	nt_buf_clear(&text);
	assert_int_equal(print(&what, &text), 0);
	assert_int_equal(nt_buf_append(&text, "", 1), 0);
	return (const char *)text.data;
}

static void says(const char *report, const char *what)
{
	if (!strstr(report, what))
		fail_msg("no '%s' in: %s", what, report);
}

static void says_not(const char *report, const char *what)
{
	if (strstr(report, what))
		fail_msg("'%s' in: %s", what, report);
}

/* ---- the live service on the same spool --------------------------------------------------------- */

struct told {
	char id[MAX_TOLD][24];
	uint32_t rank[MAX_TOLD];
	size_t count;
};

static int take_incident(void *data, const struct nt_wire_incident *incident)
{
	struct told *told = data;
	size_t i = 0;

	if (strcmp(incident->state, "pending") == 0)
		return 0;
	while (i < told->count && strcmp(told->id[i], incident->id) != 0)
		i++;
	assert_true(i < MAX_TOLD);
	if (i == told->count)
		told->count++;
	(void)snprintf(told->id[i], sizeof(told->id[i]), "%s", incident->id);
	assert_int_equal(incident->culprits, 1);
	told->rank[i] = incident->culprit[0].rank;
	return 0;
}

static void serve(struct told *ret_told)
{
	const struct nt_sink sink = {.incident = take_incident, .data = ret_told};
	const struct nt_service_options options = {
		.bus_url = url,
		.engine = nt_engine_options_default(),
		.sink = &sink,
	};
	nt_auto(nt_service) struct nt_service *service = NULL;
	struct nt_board *board = NULL;

	assert_int_equal(nt_board_new(&board), 0);
	assert_int_equal(nt_service_new(&options, board, &service), 0);
	for (int i = 0; i < 50 && !nt_service_caught_up(service); i++)
		assert_int_equal(nt_service_turn(service, 0), 0);
	assert_true(nt_service_caught_up(service));
	nt_service_free(nt_take(service));
	nt_board_free(board);
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void the_slow_rank_of_a_recording_is_named_and_nobody_else(void **state)
{
	struct job jobs[] = {job("gpu-01", "k", "llm")};
	const struct nt_wire_incident *incident;

	(void)state;
	publish_minute(jobs, 1);
	assert_int_equal(judge(), 0);
	assert_int_equal(recording.ranks, RANKS);
	assert_int_equal(recording.refused, 0);
	assert_int_equal(recording.missing, 0);
	assert_true(recording.frames > 50);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->state, "firing");
	assert_string_equal(incident->class, "compute");
	assert_int_equal(incident->culprits, 1);
	assert_string_equal(incident->culprit[0].kind, "rank");
	assert_int_equal(incident->culprit[0].rank, SLOW);
	assert_string_equal(incident->culprit[0].node, "gpu-01");
	assert_true(incident->since_real_ns >= REAL_0 + 29 * SECOND);
	assert_true(incident->since_real_ns <= REAL_0 + 32 * SECOND);
	assert_true(incident->slowdown > 1.4 && incident->slowdown < 1.6);
}

static void a_recording_and_the_live_service_give_an_incident_the_same_id(void **state)
{
	struct job jobs[] = {job("gpu-01", "k", "llm")};
	struct told told = {0};

	(void)state;
	publish_minute(jobs, 1);
	serve(&told);
	assert_int_equal(judge(), 0);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.rank[0], SLOW);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.id, told.id[0]);
}

static void a_report_on_one_job_does_not_repeat_its_name(void **state)
{
	struct job jobs[] = {job("gpu-01", "k", "llm")};

	(void)state;
	publish_minute(jobs, 1);
	assert_int_equal(judge(), 0);
	assert_int_equal(recording.jobs, 1);
	says(report(nt_report_text), "rec: 8 ranks, ");
	says(report(nt_report_text), "\ncritical: rank 5 (gpu-01, GPU-5f) computes ");
	says_not(report(nt_report_text), "job ");
	says(report(nt_report_json), "\"jobs\": 1,");
	says(report(nt_report_json), "\"ranks\": 8,");
}

static void every_incident_says_of_which_of_several_jobs_it_is(void **state)
{
	struct job jobs[] = {job("gpu-01", "k", "llm"), job("gpu-02", "m", "vision")};

	(void)state;
	jobs[1].ranks = 4;
	jobs[1].slow = 1;
	publish_minute(jobs, 2);
	assert_int_equal(judge(), 0);
	assert_int_equal(recording.jobs, 2);
	assert_int_equal(recording.ranks, RANKS + 4);
	assert_int_equal(judgement->incidents, 2);
	says(report(nt_report_text), "rec: 2 jobs, 12 ranks, ");
	says(report(nt_report_text), "\ncritical: job train/llm: rank 5 (gpu-01, GPU-5f) computes");
	says(report(nt_report_text),
	     "\ncritical: job train/vision: rank 1 (gpu-02, GPU-5f) computes");
	says(report(nt_report_json), "\"jobs\": 2,");
	says(report(nt_report_json), "\"ranks\": 12,");
	says(report(nt_report_json), "\"job\": \"vision\"");
}

static void jobs_of_one_name_are_told_apart_by_their_keys(void **state)
{
	struct job jobs[] = {job("gpu-01", "k:1", "llm"), job("gpu-02", "k:2", "llm")};

	(void)state;
	jobs[1].slow = 1;
	publish_minute(jobs, 2);
	assert_int_equal(judge(), 0);
	assert_int_equal(recording.jobs, 2);
	says(report(nt_report_text), "\ncritical: job train/llm (k:1): rank 5 ");
	says(report(nt_report_text), "\ncritical: job train/llm (k:2): rank 1 ");
}

static void each_window_shows_the_slow_rank_of_its_job_and_where_it_is(void **state)
{
	struct job jobs[] = {job("gpu-01", "k:1", "llm"), job("gpu-02", "k:2", "llm")};
	const struct nt_windows *windows;
	const struct nt_windows_rank *rank;
	size_t marked[2] = {0};

	(void)state;
	jobs[1].slow = 1;
	publish_minute(jobs, 2);
	assert_int_equal(judge(), 0);
	windows = judgement->windows;
	assert_int_equal(windows->jobs, 2);
	assert_int_equal(windows->listed, recording.frames);
	for (size_t i = 0; i < windows->listed; i++) {
		const struct nt_windows_window *window = &windows->window[i];
		const bool fault = window->start_ns >= REAL_0 + 32 * SECOND;
		const bool first = strcmp(windows->job[window->job].key, "k:1") == 0;

		assert_in_range(window->marks, fault && window->judged ? 1 : 0, 1);
		if (!window->marks)
			continue;
		assert_true(window->start_ns >= REAL_0 + 29 * SECOND);
		assert_int_equal(windows->mark[window->first].rank, first ? SLOW : 1);
		marked[window->job]++;
	}
	for (size_t i = 0; i < 2; i++) {
		const bool first = strcmp(windows->job[i].key, "k:1") == 0;

		assert_true(marked[i] > 40);
		rank = nt_windows_find(&windows->job[i], first ? SLOW : 1);
		assert_non_null(rank);
		assert_int_equal(rank->marked, marked[i]);
		assert_string_equal(nt_windows_node(&windows->job[i], rank->node),
				    first ? "gpu-01" : "gpu-02");
	}
	/* Of the page: one picture each, with one frame in it, and what tells them apart. */
	says(report(nt_html_write), "<h3>Job llm (k:1)</h3>");
	says(report(nt_html_write), "<h3>Job llm (k:2)</h3>");
	says(report(nt_html_write), "class=\"named\"");
	says(report(nt_html_write), "<th scope=\"row\">rank 5</th><td>gpu-01</td>");
}

static void attempts_are_counted_as_one_job(void **state)
{
	struct job attempt = job("gpu-01", "k", "llm");

	(void)state;
	attempt.slow = UINT32_MAX;
	for (uint64_t at = 0; at < 20 * WINDOW_MS; at += WINDOW_MS)
		publish_windows(&attempt, at);
	attempt.ended = true;
	publish_windows(&attempt, 20 * WINDOW_MS);
	attempt.ended = false;
	attempt.pid += 100;
	attempt.comm++;
	attempt.process_ms = 21 * WINDOW_MS;
	for (uint64_t at = 24 * WINDOW_MS; at < 50 * WINDOW_MS; at += WINDOW_MS)
		publish_windows(&attempt, at);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(judge(), 0);
	assert_int_equal(recording.jobs, 1);
	assert_int_equal(recording.ranks, RANKS);
}

static void a_healthy_recording_accuses_nobody(void **state)
{
	struct job jobs[] = {job("gpu-01", "k", "llm")};

	(void)state;
	jobs[0].slow = UINT32_MAX;
	publish_minute(jobs, 1);
	assert_int_equal(judge(), 0);
	assert_int_equal(recording.ranks, RANKS);
	assert_int_equal(judgement->incidents, 0);
}

/* ---- damage -------------------------------------------------------------------------------------- */

#define FIRST_SEGMENT "neutracer.window.v1/0/00000000000000000000.seg"

/* Writes noise into a segment; at UINT64_MAX behind its end. */
static void spoil(const char *segment, uint64_t at, size_t size)
{
	char path[SCRATCH_BYTES + NT_BUS_SEGMENT_TEXT];
	uint64_t seed = 1;
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, segment);
	file = fopen(path, at == UINT64_MAX ? "ae" : "r+e");
	assert_non_null(file);
	if (at != UINT64_MAX)
		assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
	for (size_t i = 0; i < size; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		assert_true(fputc((int)(seed >> 56), file) >= 0);
	}
	assert_int_equal(fclose(file), 0);
}

static void a_damaged_segment_is_named_and_hides_no_culprit(void **state)
{
	struct job jobs[] = {job("gpu-01", "k", "llm")};

	(void)state;
	publish_minute(jobs, 1);
	spoil(FIRST_SEGMENT, 6000, 64);
	assert_int_equal(judge(), 0);
	assert_int_equal(recording.damages, 1);
	assert_string_equal(recording.damage[0].segment, FIRST_SEGMENT);
	assert_int_equal(recording.damage[0].places, 1);
	assert_in_range(recording.damage[0].bytes, 64, 2000);
	assert_int_equal(recording.unnamed, 0);
	/* The message that it took is one, though there is also a gap in the numbers. */
	assert_int_equal(recording.missing, 1);
	assert_int_equal(recording.refused, 0);
	says(report(nt_report_text), "\n1 message is missing or could not be read: incomplete\n");
	assert_int_equal(judgement->incidents, 1);
	assert_int_equal(judgement->judged[0].incident.culprit[0].rank, SLOW);
	says(report(nt_report_text), "\n" FIRST_SEGMENT " is damaged at 1 place: ");
	says(report(nt_report_json), "\"segment\": \"" FIRST_SEGMENT "\"");
	says(report(nt_report_json), "\"" FIRST_SEGMENT " is damaged at 1 place: ");
}

static void a_torn_end_is_named(void **state)
{
	struct job jobs[] = {job("gpu-01", "k", "llm")};

	(void)state;
	publish_minute(jobs, 1);
	spoil(FIRST_SEGMENT, UINT64_MAX, 37);
	assert_int_equal(judge(), 0);
	assert_int_equal(recording.missing, 1);
	says(report(nt_report_text),
	     "\n" FIRST_SEGMENT " ends in 37 bytes of an incomplete message");
	says(report(nt_report_json), "\"tail_bytes\": 37");
}

static void a_recording_of_noise_is_damaged_and_not_missing(void **state)
{
	struct job jobs[] = {job("gpu-01", "k", "llm")};

	(void)state;
	publish_windows(jobs, 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	spoil(FIRST_SEGMENT, 0, 100000);
	assert_int_equal(judge(), -EBADMSG);
	says(error.text, "damaged, nothing in it can be read: " FIRST_SEGMENT ": 100000 bytes");
}

static void a_recording_of_foreign_messages_says_that_none_can_be_read(void **state)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_WINDOW, .value = "\xff\xff", .value_len = 2};

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(nt_bus_publish(bus, &record), 0);
	assert_int_equal(nt_bus_flush(bus), 0);
	assert_int_equal(judge(), -EBADMSG);
	says(error.text, "none of its 3 messages can be read");
}

static void damage_in_more_segments_than_are_named_is_counted(void **state)
{
	const struct nt_bus_options options = {.max_bytes = 8 << 20, .segment_bytes = 8 << 10};
	struct job jobs[] = {job("gpu-01", "k", "llm")};
	size_t segments = 0;

	(void)state;
	nt_bus_close(bus);
	assert_int_equal(nt_bus_open(url, &options, &bus), 0);
	publish_minute(jobs, 1);
	/* A segment is called by the number of its first record, of which there are less than 1000. */
	for (uint64_t base = 0; base < 1000 && segments < 12; base++) {
		char segment[NT_BUS_SEGMENT_TEXT], path[SCRATCH_BYTES + NT_BUS_SEGMENT_TEXT];

		(void)snprintf(segment, sizeof(segment), "neutracer.window.v1/0/%020llu.seg",
			       (unsigned long long)base);
		(void)snprintf(path, sizeof(path), "%s/%s", dir, segment);
		if (access(path, F_OK) < 0)
			continue;
		spoil(segment, 1000, 8);
		segments++;
	}
	assert_int_equal(segments, 12);
	assert_int_equal(judge(), 0);
	assert_int_equal(recording.missing, 12);
	assert_int_equal(recording.damages, 8);
	assert_int_equal(recording.unnamed, 4);
	says(report(nt_report_text), "\nfurther segments are damaged at 4 places\n");
}

static void a_directory_without_messages_is_no_recording(void **state)
{
	(void)state;
	assert_int_equal(judge(), -ENOENT);
	assert_string_equal(error.text, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_slow_rank_of_a_recording_is_named_and_nobody_else),
		TEST(a_recording_and_the_live_service_give_an_incident_the_same_id),
		TEST(a_report_on_one_job_does_not_repeat_its_name),
		TEST(every_incident_says_of_which_of_several_jobs_it_is),
		TEST(jobs_of_one_name_are_told_apart_by_their_keys),
		TEST(each_window_shows_the_slow_rank_of_its_job_and_where_it_is),
		TEST(attempts_are_counted_as_one_job),
		TEST(a_healthy_recording_accuses_nobody),
		TEST(a_damaged_segment_is_named_and_hides_no_culprit),
		TEST(a_torn_end_is_named),
		TEST(a_recording_of_noise_is_damaged_and_not_missing),
		TEST(a_recording_of_foreign_messages_says_that_none_can_be_read),
		TEST(damage_in_more_segments_than_are_named_is_counted),
		TEST(a_directory_without_messages_is_no_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
