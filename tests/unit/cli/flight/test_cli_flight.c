/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dumps of the flight recorder: who is named when a job stands still. */
#include "tests/unit/cli/flight_job.h"

#include "cli/report/remediation.h"

static void a_rank_that_never_entered_is_the_laggard(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, 2);
	judgement = judge(job, 20, -1);
	assert_names(judgement, "hang", "laggard", 2);
	assert_int_equal(judgement->judged[0].incident.since_real_ns, START_NS + 10ull * SECOND);
}

/* The times of files are lost when they are copied: nobody waits longer than until the timeout. */
static void a_file_that_was_copied_later_tells_of_no_longer_wait_than_the_timeout(void **state)
{
	struct entry waits = open_call;
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	waits.timeout_s = 600;
	work(job, 10);
	all_call(job, &waits, 2);
	trace = read_dumps(job, 100000, -1);
	assert_int_equal(trace->wait[0].wait_ns, 600ull * SECOND);
	judgement = judge_trace(trace);
	assert_names(judgement, "hang", "laggard", 2);
}

static void a_hang_of_a_few_seconds_is_none_yet(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, 2);
	judgement = judge(job, 5, -1);
	assert_int_equal(judgement->incidents, 0);
}

/* The job ran on: one dump was written a minute before the others. */
static void a_dump_that_is_older_than_the_others_accuses_nobody(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	job->seq[1]++;
	call(job, 1, &open_call);
	job->seq[1]--;
	job->written_ns[1] = job->now_ns + 1;
	for (int i = 0; i < 60; i++)
		all_call(job, &done, 1);
	judgement = judge(job, 1, -1);
	assert_int_equal(judgement->incidents, 0);
}

static void a_healthy_job_accuses_nobody_however_late_its_dumps_are_read(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 50);
	judgement = judge(job, 100000, -1);
	assert_int_equal(judgement->incidents, 0);
}

static void all_devices_inside_one_call_are_held_up_by_the_network(void **state)
{
	const struct entry running = {
		.op = "nccl:all_reduce", .elements = 1000, .state = "started"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_wire_incident *incident;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &running, -1);
	judgement = judge(job, 20, -1);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "hang");
	assert_string_equal(incident->cause, "network");
	assert_int_equal(incident->culprits, 1);
	assert_string_equal(incident->culprit[0].kind, "communicator");
}

/* One of the devices may not have begun: that is not recorded. */
static void all_hosts_inside_one_call_are_no_evidence_of_the_network(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_wire_incident *incident;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, -1);
	judgement = judge(job, 20, -1);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "hang");
	assert_string_equal(incident->cause, "");
	assert_string_equal(incident->culprit[0].kind, "communicator");
	assert_non_null(strstr(nt_remediation_find(incident), "All its ranks have enqueued"));
}

/* Whose dump is not there may be the one. */
static void a_rank_without_a_dump_is_named_if_all_others_wait_for_it(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, 2);
	trace = read_dumps(job, 20, 2);
	assert_int_equal(trace->world, 4);
	judgement = judge_trace(trace);
	assert_names(judgement, "hang", "no dump", 2);
	/* 3 of 4 dumps, of which half the certainty is left. */
	assert_true(judgement->judged[0].incident.completeness > 0.7);
	assert_true(judgement->judged[0].incident.completeness < 0.8);
	assert_true(judgement->judged[0].incident.confidence < 0.4);
}

/* Gloo does not list its groups: that rank 2 is not given, the numbers of the others tell. */
static void a_rank_that_is_not_given_is_missed_where_no_file_lists_the_group(void **state)
{
	const struct entry waits = {.op = "gloo:all_reduce",
				    .elements = 1000,
				    .state = "scheduled",
				    .desc = "default_pg"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct entry retired = waits;
	struct job *job = *state;

	job->config = "{}";
	retired.retired = true;
	for (int i = 0; i < 10; i++)
		all_call(job, &retired, -1);
	all_call(job, &waits, 2);
	trace = read_dumps(job, 20, 2);
	assert_int_equal(trace->world, 4);
	judgement = judge_trace(trace);
	assert_names(judgement, "hang", "no dump", 2);
}

/* Where starts are recorded, a call that the device has not reached is not entered. */
static void a_rank_whose_device_never_reached_the_call_is_the_laggard(void **state)
{
	const struct entry running = {
		.op = "nccl:all_reduce", .elements = 1000, .state = "started"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &running, 1);
	job->seq[1]++;
	call(job, 1, &open_call);
	judgement = judge(job, 20, -1);
	assert_names(judgement, "hang", "laggard", 1);
}

/*
 * 0 and 1, 2 and 3 have a group of their own. 3 stays away from it; 2 waits there, and the others
 * wait for 2 and 3 in the group of all, in which all but 3 have enqueued their call.
 */
static void who_waits_in_another_group_is_not_the_laggard(void **state)
{
	struct entry in_pair = {.op = "nccl:all_reduce", .elements = 8, .state = "completed"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	job->config = "{\"0\": {\"desc\": \"default_pg\", \"ranks\": \"[0, 1, 2, 3]\"}}";
	for (int n = 0; n < 10; n++) {
		all_call(job, &done, -1);
		for (int i = 0; i < RANKS; i++) {
			in_pair.group = i < 2 ? "1" : "2";
			call(job, i, &in_pair);
		}
	}
	job->now_ns += SECOND;
	in_pair.state = "scheduled";
	in_pair.group = "2";
	job->seq[2]++;
	call(job, 2, &in_pair);
	job->now_ns += SECOND;
	for (int i = 0; i < 3; i++) {
		job->seq[i] = 11;
		call(job, i, &open_call);
	}
	judgement = judge(job, 30, -1);
	assert_names(judgement, "hang", "laggard", 3);
}

/* Gloo leaves every call "scheduled"; what is done leaves its list. */
static void calls_of_gloo_are_done_when_they_are_retired(void **state)
{
	const struct entry retired = {
		.op = "gloo:all_reduce", .elements = 1000, .state = "scheduled", .retired = true};
	const struct entry waits = {
		.op = "gloo:all_reduce", .elements = 1000, .state = "scheduled"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	for (int i = 0; i < 10; i++)
		all_call(job, &retired, -1);
	all_call(job, &waits, 0);
	judgement = judge(job, 20, -1);
	assert_names(judgement, "hang", "laggard", 0);
}

static void assert_notes(const struct nt_trace *trace, const struct nt_judgement *judgement,
			 const char *note)
{
	struct nt_report report = {.source = "dumps"};
	nt_autobuf struct nt_buf text = {0};

	nt_report_trace(&report, trace, judgement);
	assert_int_equal(nt_report_text(&report, &text), 0);
	assert_int_equal(nt_buf_append(&text, "", 1), 0);
	if (!strstr((const char *)text.data, note))
		fail_msg("no '%s' in: %s", note, (const char *)text.data);
}

static void a_hang_has_no_slowdown(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, 3);
	trace = read_dumps(job, 60, -1);
	judgement = judge_trace(trace);
	assert_notes(trace, judgement, "since 2023-11-14T22:13:30Z; T1, confidence 1.00");
}

static void dumps_without_a_hang_say_why_nobody_is_named(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *none = NULL, *brief = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL, *waits = NULL;
	struct job *job = *state;

	work(job, 10);
	trace = read_dumps(job, 60, -1);
	none = judge_trace(trace);
	assert_notes(trace, none, "\nno rank waits in a call: these dumps show no hang\n");
	all_call(job, &open_call, 3);
	waits = read_dumps(job, 4, -1);
	brief = judge_trace(waits);
	assert_notes(waits, brief,
		     "\nno rank waited for longer than 5.0 s: a hang takes at least 15 s\n");
}

/* Entries with one number are one call; only the last knows that it is done. */
static void the_entries_of_a_coalesced_group_are_one_call(void **state)
{
	const struct entry part = {
		.op = "nccl:_reduce_scatter_base", .elements = 10, .state = "scheduled"};
	const struct entry last = {.op = "nccl:coalesced", .state = "completed"};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame_comm *comm;
	struct job *job = *state;

	work(job, 5);
	for (int i = 0; i < RANKS; i++) {
		job->seq[i]++;
		call(job, i, &part);
		call(job, i, &part);
		call(job, i, &last);
	}
	trace = read_dumps(job, 20, -1);
	comm = &trace->frame[trace->frames - 1].rank[0].comm[0];
	assert_int_equal(comm->last, 6);
	assert_int_equal(comm->recents, 6);
	assert_int_equal(comm->recent[5].op, NT_OP_REDUCE_SCATTER);
	assert_int_equal(comm->recent[5].count, 20);
	assert_false(trace->frame[trace->frames - 1].rank[0].inside.in_call);
}

static void a_rank_that_never_called_in_a_group_is_late_in_it(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct entry first = open_call;
	struct job *job = *state;

	job->config = "{\"0\": {\"desc\": \"default_pg\", \"ranks\": [0, 1, 2, 3]}, "
		      "\"tp\": {\"desc\": \"\", \"ranks\": \"[0, 1, 2, 3]\"}}";
	work(job, 5);
	first.group = "tp";
	for (int i = 0; i < 3; i++) {
		job->seq[i] = 1;
		call(job, i, &first);
	}
	judgement = judge(job, 20, -1);
	assert_names(judgement, "hang", "laggard", 3);
}

/*
 * As PyTorch 2.3 wrote it: groups are numbers of the process. 0 and 1 are a pair, 2 and 3 another; before
 * that rank 3 made a group of its own. It stays away from its pair, in which rank 2 waits.
 */
static void version_1_knows_its_groups_by_their_ranks(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	struct job *job = *state;

	for (int i = 0; i < RANKS; i++) {
		nt_autobuf struct nt_buf text = {0};
		const int pair = i == 3 ? 2 : 1, first = i / 2 * 2;

		assert_int_equal(nt_buf_printf(&text,
					       "{\"version\": \"1.4\", \"pg_config\": {%s"
					       "\"%d\": [%d, %d], \"0\": [0, 1, 2, 3]}, "
					       "\"entries\": [",
					       i == 3 ? "\"1\": [3], " : "", pair, first,
					       first + 1),
				 0);
		for (int n = 0; n < 21 - (i == 3); n++) {
			const bool ended = n < 20 || (n == 20 && i < 2);

			assert_int_equal(
				nt_buf_printf(
					&text,
					"%s{\"record_id\": %d, \"pg_id\": %d, \"seq_id\": %d, "
					"\"op_id\": 1, \"profiling_name\": \"nccl:all_reduce\", "
					"\"time_created_ns\": %" PRIu64 ", \"input_sizes\": [[5]], "
					"\"output_sizes\": [[5]], \"state\": \"%s\", "
					"\"retired\": %s}",
					n ? ", " : "", n, n % 2 ? 0 : pair, n / 2 + 1,
					START_NS + (uint64_t)n * SECOND,
					ended ? "completed" : "scheduled",
					ended ? "true" : "false"),
				0);
		}
		assert_int_equal(nt_buf_printf(&text, "]}"), 0);
		put_text(job->path[i], (const char *)text.data, text.len,
			 START_NS + 60ull * SECOND);
	}
	if (nt_trace_read_flight(job->path_list, RANKS, &trace, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(trace->world, 4);
	judgement = judge_trace(trace);
	assert_names(judgement, "hang", "laggard", 3);
}

static void the_report_says_who_waits_in_what_and_who_does_not(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_report report = {.source = "dumps"};
	nt_autobuf struct nt_buf text = {0}, json = {0};
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, 2);
	trace = read_dumps(job, 20, -1);
	judgement = judge_trace(trace);
	nt_report_trace(&report, trace, judgement);
	assert_int_equal(nt_report_text(&report, &text), 0);
	assert_non_null(strstr((const char *)text.data,
			       "\nranks 0-1, 3 wait for 21.0 s in all-reduce 11 of process group "
			       "0 (d); not entered by 2 (last entered: 10)\n"));
	assert_int_equal(nt_report_json(&report, &json), 0);
	assert_non_null(memmem(json.data, json.len, "\"waits_left_out\": 0", 19));
	assert_non_null(memmem(json.data, json.len, "\"process_group\": \"0 (d)\"", 24));
	assert_non_null(memmem(json.data, json.len, "\"absent_last_entered\": [", 24));
}

static void calls_that_are_waited_in_beyond_the_cap_are_counted(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const char **paths = calloc(NT_TRACE_MAX_WAITS + 4, sizeof(*paths));
	struct nt_trace_error error = {0};
	char name[64], text[512];

	(void)state;
	assert_non_null(paths);
	for (int i = 0; i < NT_TRACE_MAX_WAITS + 4; i++) {
		(void)snprintf(name, sizeof(name), "build/test-waits-%d-rank%d", (int)getpid(), i);
		(void)snprintf(text, sizeof(text),
			       "{\"version\": \"2.5\", \"entries\": [{\"process_group\": [\"0\"], "
			       "\"profiling_name\": \"nccl:barrier\", \"collective_seq_id\": %d, "
			       "\"input_sizes\": [], \"state\": \"started\", "
			       "\"time_created_ns\": 5}]}",
			       i + 1);
		put_text(name, text, strlen(text), START_NS);
		paths[i] = strdup(name);
	}
	assert_int_equal(nt_trace_read_flight(paths, NT_TRACE_MAX_WAITS + 4, &trace, &error), 0);
	assert_int_equal(trace->waits, NT_TRACE_MAX_WAITS);
	assert_int_equal(trace->waits_dropped, 4);
	for (int i = 0; i < NT_TRACE_MAX_WAITS + 4; i++) {
		(void)unlink(paths[i]);
		free((void *)paths[i]);
	}
	free((void *)paths);
}

/* ---- jobs that PyTorch 2.15 recorded ------------------------------------------------------- */

static struct nt_judgement *judge_real(const char *name, struct nt_trace **ret_trace)
{
	struct nt_trace_error error = {0};
	const char *paths[RANKS];
	char path[RANKS][64];

	for (int i = 0; i < RANKS; i++) {
		(void)snprintf(path[i], sizeof(path[i]), "tests/data/flight/%s%d.%s", name, i,
			       strstr(name, "pickled") ? "gz" : "json.gz");
		paths[i] = path[i];
	}
	if (nt_trace_read_flight(paths, RANKS, ret_trace, &error) != 0)
		fail_msg("%s", error.text);
	/* The group of all, and its own pair. */
	for (int i = 0; i < RANKS; i++)
		assert_int_equal((*ret_trace)->frame[0].rank[i].comms, 2);
	assert_int_equal((*ret_trace)->waits, 1);
	return judge_trace(*ret_trace);
}

static void the_laggard_of_a_real_gloo_job_is_named(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	judgement = judge_real("gloo/rank_", &trace);
	assert_int_equal(trace->wait[0].number, 16);
	assert_names(judgement, "hang", "laggard", 2);
}

/* As PyTorch wrote them, with the stacks of all calls. */
static void the_laggard_of_a_real_gloo_job_is_named_by_pickled_dumps(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	judgement = judge_real("pickled/fr_rank_", &trace);
	assert_int_equal(trace->wait[0].number, 26);
	assert_names(judgement, "hang", "laggard", 1);
}

/* Starts are recorded. */
static void the_laggard_of_a_real_nccl_job_is_named(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	judgement = judge_real("nccl/rank_", &trace);
	assert_int_equal(trace->wait[0].number, 16);
	assert_names(judgement, "hang", "laggard", 2);
	assert_int_equal(trace->world, 4);
}

/* Rank 3 reduces 999 elements, the others 1,000. Starts are told only of calls that are done. */
static void the_mismatch_of_a_real_nccl2_job_is_named(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	judgement = judge_real("nccl2/rank_", &trace);
	assert_int_equal(trace->wait[0].number, 16);
	assert_names(judgement, "mismatch", "", 3);
	assert_true(judgement->judged[0].incident.evidence[1].value == 999);
	assert_true(judgement->judged[0].incident.evidence[1].peers == 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLIGHT_TEST(a_rank_that_never_entered_is_the_laggard),
		FLIGHT_TEST(a_file_that_was_copied_later_tells_of_no_longer_wait_than_the_timeout),
		FLIGHT_TEST(a_hang_of_a_few_seconds_is_none_yet),
		FLIGHT_TEST(a_dump_that_is_older_than_the_others_accuses_nobody),
		FLIGHT_TEST(a_healthy_job_accuses_nobody_however_late_its_dumps_are_read),
		FLIGHT_TEST(all_devices_inside_one_call_are_held_up_by_the_network),
		FLIGHT_TEST(all_hosts_inside_one_call_are_no_evidence_of_the_network),
		FLIGHT_TEST(a_rank_without_a_dump_is_named_if_all_others_wait_for_it),
		FLIGHT_TEST(a_rank_that_is_not_given_is_missed_where_no_file_lists_the_group),
		FLIGHT_TEST(a_rank_whose_device_never_reached_the_call_is_the_laggard),
		FLIGHT_TEST(who_waits_in_another_group_is_not_the_laggard),
		FLIGHT_TEST(calls_of_gloo_are_done_when_they_are_retired),
		FLIGHT_TEST(a_hang_has_no_slowdown),
		FLIGHT_TEST(dumps_without_a_hang_say_why_nobody_is_named),
		FLIGHT_TEST(the_entries_of_a_coalesced_group_are_one_call),
		FLIGHT_TEST(a_rank_that_never_called_in_a_group_is_late_in_it),
		FLIGHT_TEST(version_1_knows_its_groups_by_their_ranks),
		FLIGHT_TEST(the_report_says_who_waits_in_what_and_who_does_not),
		FLIGHT_TEST(calls_that_are_waited_in_beyond_the_cap_are_counted),
		FLIGHT_TEST(the_laggard_of_a_real_gloo_job_is_named),
		FLIGHT_TEST(the_laggard_of_a_real_gloo_job_is_named_by_pickled_dumps),
		FLIGHT_TEST(the_laggard_of_a_real_nccl_job_is_named),
		FLIGHT_TEST(the_mismatch_of_a_real_nccl2_job_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
