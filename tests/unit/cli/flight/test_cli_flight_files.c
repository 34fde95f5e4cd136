/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dumps of the flight recorder as files: what is taken, told apart and refused. */
#include "tests/unit/cli/flight_job.h"

#include "cli/readers/input.h"

static void assert_refused(struct job *job, const char *text, const char *why)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	put_text(job->path[0], text, strlen(text), START_NS);
	assert_int_equal(nt_trace_read_flight(job->path_list, 1, &trace, &error), -EBADMSG);
	assert_null(trace);
	if (!strstr(error.text, why) || !strstr(error.text, job->path[0]))
		fail_msg("'%s' does not say '%s' of its file", error.text, why);
}

#define ENTRY_OF(pg, name, seq, sizes, state, more)                                                \
	"{\"record_id\": 0, \"process_group\": " pg ", \"profiling_name\": " name                  \
	", \"collective_seq_id\": " seq ", \"input_sizes\": " sizes ", \"state\": " state more "}"
#define DUMP_OF(entry) "{\"version\": \"2.5\", \"entries\": [" entry "]}"
#define PG             "[\"0\", \"\"]"
#define NAME           "\"nccl:all_reduce\""
#define CREATED        ", \"time_created_ns\": 5"

static void a_damaged_dump_is_refused_with_its_place(void **state)
{
	struct job *job = *state;

	assert_refused(job, "", ":1: invalid JSON at byte 0");
	assert_refused(job, "{\"version\": \"2.5\",\n \"entries\": [{\"record_id\": 0, ",
		       ":2: invalid JSON at byte 49");
	assert_refused(job, "[]", "no 'version'");
	assert_refused(job, "{\"entries\": []}", "no 'version'");
	assert_refused(job, "{\"version\": \"3.5\"}", "dump version '3.5' is not supported");
	assert_refused(job, "{\"version\": \"1.4\", \"pg_config\": {\"a\": [0]}}",
		       "pg_config: 'a' is not the number of a process group");
	assert_refused(
		job, "{\"version\": \"1.4\", \"entries\": [{\"profiling_name\": \"x\"}]}",
		"entry 0: pg_id is not given: expected a number from 0 to 9223372036854775807");
	assert_refused(
		job,
		"{\"version\": \"1.4\", \"entries\": [{\"profiling_name\": \"nccl:send 0->1\", "
		"\"pg_id\": 0, \"seq_id\": 1, \"time_created_ns\": 1}]}",
		"entry 0: a send or receive");
	assert_refused(job, "{\"version\": \"2.5\"}", "no calls in any of the dumps");
	assert_refused(job, "{\"version\": \"2.5\", \"entries\": 7}", "'entries' is not a list");
	assert_refused(job, DUMP_OF("3"), "entry 0: not an object");
	assert_refused(job, DUMP_OF("{}"),
		       "entry 0: process_group is not given: expected a list of a name");
	assert_refused(job, DUMP_OF(ENTRY_OF(PG, "7", "1", "[]", "\"started\"", CREATED)),
		       "entry 0: profiling_name is 7: expected the name of an operation");
	assert_refused(
		job, DUMP_OF(ENTRY_OF(PG, NAME, "-1", "[]", "\"started\"", CREATED)),
		"entry 0: collective_seq_id is -1: expected a number from 0 to 9223372036854775807");
	assert_refused(job, DUMP_OF(ENTRY_OF(PG, NAME, "1", "[[-3]]", "\"started\"", CREATED)),
		       "input_sizes is [[-3]]: expected a list of the sizes of tensors");
	assert_refused(job,
		       DUMP_OF(ENTRY_OF(PG, NAME, "1", "[[4294967296, 4294967296]]", "\"started\"",
					CREATED)),
		       "input_sizes is [[4294967296,4294967296]]: expected");
	assert_refused(job, DUMP_OF(ENTRY_OF(PG, NAME, "1", "[]", "\"asleep\"", CREATED)),
		       "state is \"asleep\": expected scheduled, started or completed");
	assert_refused(
		job, DUMP_OF(ENTRY_OF(PG, NAME, "1", "[]", "\"started\"", "")),
		"time_created_ns is not given: expected a number from 0 to 4611686018427387904 ns");
	assert_refused(
		job,
		DUMP_OF(ENTRY_OF(PG, NAME, "1", "[]", "\"started\"",
				 ", \"time_created_ns\": 9000000000000000000")),
		"time_created_ns is 9000000000000000000: expected a number from 0 to 4611686018427387904 ns");
	assert_refused(job, "{\"version\": \"2.5\", \"pg_config\": []}",
		       ":1: pg_config: not an object of at most");
	assert_refused(job,
		       "{\"version\": \"2.5\", \"pg_config\": {\"1\": {\"ranks\": \"[0, x]\"}}}",
		       "the ranks of process group '1'");
	assert_refused(job,
		       "{\"version\": \"2.5\", \"pg_config\": {\"1\": {\"ranks\": \"[0, 1\"}}}",
		       "the ranks of process group '1'");
	assert_refused(job, "{\"version\": \"2.5\", \"rank\": -1}", "rank unknown");
	assert_refused(job, "{\"version\": \"2.5\", \"rank\": 131072}", "rank unknown");
}

/* Texts that look like lists, lists in lists, and a list of that name that is another one's. */
static void a_lie_is_refused_with_its_line(void **state)
{
	const char *good = ENTRY_OF(PG, NAME, "1", "[[2,\n2]]", "\"started\"",
				    CREATED ", \"frames\": [{\"name\": \"[{\\\"\"}, {}]");

	for (int n = 0; n < 3; n++) {
		nt_autobuf struct nt_buf text = {0};
		char why[64];

		assert_int_equal(nt_buf_printf(&text, "{\"version\": \"2.5\",\n\"pg_config\": "
						      "{\"entries\": {\"ranks\": [0,\n1]}},"
						      "\n\n\"entries\" :\n["),
				 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(nt_buf_printf(&text, "%s%s", i ? ",\n" : "", good), 0);
		assert_int_equal(
			nt_buf_printf(&text, "%s\n{\"process_group\": [\"0\"]}]}", n ? "," : ""),
			0);
		assert_int_equal(nt_buf_append(&text, "", 1), 0);
		/* A line for the break in each good one, and one from each to the next. */
		(void)snprintf(why, sizeof(why), ":%d: entry %d: profiling_name is not given",
			       n ? 6 + 2 * n : 7, n);
		assert_refused(*state, (const char *)text.data, why);
	}
	assert_refused(*state,
		       "{\"version\": \"2.5\",\n\n \"pg_config\": {\"1\": {\"ranks\": \"x\"}}}",
		       ":3: pg_config: the ranks of process group '1'");
}

static void a_dump_of_a_rank_that_its_group_does_not_have_is_refused(void **state)
{
	assert_refused(
		*state,
		"{\"version\": \"2.5\", \"rank\": 7, \"pg_config\": {\"0\": {\"ranks\": \"[0, 1]\"}}, "
		"\"entries\": [" ENTRY_OF(PG, NAME, "1", "[]", "\"started\"", CREATED) "]}",
		"entry 0: rank 7 has calls in process group '0'");
}

/* The entries are judged by the members that follow them, and by the last of several. */
static void members_of_a_dump_come_in_any_order(void **state)
{
	assert_refused(
		*state,
		"{\"entries\": [{}],\n\"entries\": [" ENTRY_OF(
			PG, NAME, "1", "[]", "\"started\"",
			CREATED) "],\n\"pg_config\": 7, \"rank\": 7, \"pg_config\": {\"0\": {\"ranks\": "
				 "\"[0, 1]\"}}, \"version\": \"2.5\"}",
		":2: entry 0: rank 7 has calls in process group '0'");
	/* A malformed end counts more than a bad entry before it. */
	assert_refused(*state, "{\"version\": \"2.5\", \"entries\": [{}],\n!",
		       ":2: invalid JSON at byte 36");
}

static void a_dump_cut_short_in_its_compression_is_refused(void **state)
{
	struct job *job = *state;
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;
	char bytes[600];
	FILE *file = fopen("tests/data/flight/gloo/rank_0.json.gz", "r");

	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	(void)fclose(file);
	put_text(job->path[0], bytes, sizeof(bytes), START_NS);
	assert_int_equal(nt_trace_read_flight(job->path_list, 1, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "cut short at byte "));
}

static void names_out_of_a_dump_do_not_steer_the_terminal(void **state)
{
	assert_refused(*state,
		       "{\"version\": \"2.5\", \"pg_config\": {\"\\u001b[31m\": {\"ranks\": 7}}}",
		       "the ranks of process group '?[31m'");
}

static void a_damaged_pickle_is_refused_with_its_place(void **state)
{
	struct job *job = *state;

	assert_refused(job, "\x80\x02}(X\x07version", "cut short: the pickle ends at byte 13");
	assert_refused(job, "\x80\x02]q.", "cut short: the pickle ends at byte 5");
	assert_refused(job, "\x80\x02N.", "no 'version'");
}

static void more_entries_than_the_cap_are_refused(void **state)
{
	nt_autobuf struct nt_buf text = {0};
	struct job *job = *state;

	assert_int_equal(nt_buf_printf(&text, "{\"version\": \"2.5\", \"entries\": [0"), 0);
	for (int i = 0; i < 1 << 17; i++)
		assert_int_equal(nt_buf_append(&text, ",0", 2), 0);
	assert_int_equal(nt_buf_printf(&text, "]}"), 0);
	assert_refused(job, (const char *)text.data, "131073 entries: expected at most 131072");
}

static void groups_beyond_the_cap_are_left_out_and_counted(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_report report = {.source = "dumps"};
	nt_autobuf struct nt_buf text = {0};
	struct job *job = *state;
	char name[16];

	job->config = "{}";
	for (int i = 0; i < 66; i++) {
		struct entry own = done;

		(void)snprintf(name, sizeof(name), "g%d", i);
		own.group = name;
		for (int rank = 0; rank < RANKS; rank++) {
			job->seq[rank] = 1;
			call(job, rank, &own);
		}
	}
	trace = read_dumps(job, 20, -1);
	assert_int_equal(trace->frame[0].rank[0].comms, 64);
	assert_int_equal(trace->dropped, 2 * RANKS);
	judgement = judge_trace(trace);
	nt_report_trace(&report, trace, judgement);
	assert_int_equal(nt_report_text(&report, &text), 0);
	assert_non_null(strstr((const char *)text.data,
			       "\n8 calls of process groups beyond 64 of a rank were left out\n"));
}

static void dumps_of_one_rank_or_of_two_jobs_are_refused(void **state)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;
	struct job *job = *state;
	const char *twice[] = {job->path[1], job->path[1]};
	const char *three = "{\"version\": \"2.5\", \"pg_config\": "
			    "{\"0\": {\"desc\": \"default_pg\", \"ranks\": \"[0, 1, 2]\"}}}";

	work(job, 3);
	nt_trace_free(read_dumps(job, 20, -1));
	assert_int_equal(nt_trace_read_flight(twice, 2, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "both are of rank 1"));
	put_text(job->path[2], three, strlen(three), START_NS);
	assert_int_equal(nt_trace_read_flight(job->path_list, 4, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "not of one job: the sizes are 4 and 3 ranks"));
}

static void the_rank_is_the_number_behind_rank_or_the_last_of_the_name(void **state)
{
	static const struct {
		const char *name;
		uint32_t rank;
	} files[] = {
		{"nccl_trace_rank_12", 12},
		{"2024-11-rank3.gen7.json", 3},
		{"_dump_5.json", 5},
		{"job42_host7.json", 7},
	};
	struct job *job = *state;

	work(job, 1);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const char text[] = DUMP_OF(ENTRY_OF(PG, NAME, "1", "[]", "\"started\"", CREATED));
		nt_auto(nt_trace) struct nt_trace *trace = NULL;
		struct nt_trace_error error = {0};
		char path[64];
		const char *paths[] = {path};

		(void)snprintf(path, sizeof(path), "build/%s", files[i].name);
		put_text(path, text, strlen(text), START_NS);
		assert_int_equal(nt_trace_read_flight(paths, 1, &trace, &error), 0);
		assert_int_equal(trace->frame[0].rank[0].rank, files[i].rank);
		(void)unlink(path);
	}
}

static void a_dump_is_told_from_a_profiler_trace_by_its_content(void **state)
{
	static const struct {
		const char *text;
		bool is_flight;
	} files[] = {
		{"{\"comm_lib_version\":\"\",\"entries\":[]}", true},
		{" {\"version\": \"2.5\", \"pg_config\": {}}", true},
		{"\x80\x02}(X\x07version pg_config", true},
		{"\x80\x04](}(X\x0eprofiling_name", true},
		{"\x80\x09}(X\x07version pg_config", false},
		{"{\"distributedInfo\": {\"pg_config\": []}, \"traceEvents\": []}", false},
		{"{\"a\\\"entries\": \"x\", \"traceEvents\": [], \"entries\": 1}", false},
		{"[{\"entries\": 1}]", false},
		{"", false},
		{"\"entries", false},
	};
	struct job *job = *state;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		put_text(job->path[0], files[i].text, strlen(files[i].text), START_NS);
		assert_int_equal(nt_input_is_flight(job->path[0]), files[i].is_flight);
	}
	assert_false(nt_input_is_flight("build/no-such-file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLIGHT_TEST(a_damaged_dump_is_refused_with_its_place),
		FLIGHT_TEST(a_dump_cut_short_in_its_compression_is_refused),
		FLIGHT_TEST(names_out_of_a_dump_do_not_steer_the_terminal),
		FLIGHT_TEST(a_lie_is_refused_with_its_line),
		FLIGHT_TEST(a_dump_of_a_rank_that_its_group_does_not_have_is_refused),
		FLIGHT_TEST(members_of_a_dump_come_in_any_order),
		FLIGHT_TEST(a_damaged_pickle_is_refused_with_its_place),
		FLIGHT_TEST(more_entries_than_the_cap_are_refused),
		FLIGHT_TEST(groups_beyond_the_cap_are_left_out_and_counted),
		FLIGHT_TEST(dumps_of_one_rank_or_of_two_jobs_are_refused),
		FLIGHT_TEST(the_rank_is_the_number_behind_rank_or_the_last_of_the_name),
		FLIGHT_TEST(a_dump_is_told_from_a_profiler_trace_by_its_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
