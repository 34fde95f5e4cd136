/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dumps of the flight recorder: who is named when a job stands still, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/flight.h"
#include "cli/input.h"
#include "cli/judge.h"
#include "cli/report.h"
#include "common/buf.h"

enum {
	RANKS = 4,
	SECOND = 1000000000,
};

static const uint64_t START_NS = 1700000000ull * SECOND;

/* What the ranks of a job recorded, and the files of it. */
struct job {
	struct nt_buf entries[RANKS];
	char path[RANKS][64];
	const char *path_list[RANKS];
	uint64_t seq[RANKS], record[RANKS], now_ns;
	const char *config; /* pg_config */
	uint64_t written_ns[RANKS];
};

static int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	job->now_ns = START_NS;
	job->config =
		"{\"0\": {\"name\": \"0\", \"desc\": \"default_pg\", \"ranks\": \"[0, 1, 2, 3]\"}}";
	for (int i = 0; i < RANKS; i++) {
		(void)snprintf(job->path[i], sizeof(job->path[i]),
			       "build/test-flight-%d-rank_%d.json", (int)getpid(), i);
		job->path_list[i] = job->path[i];
	}
	*state = job;
	return 0;
}

static int end(void **state)
{
	struct job *job = *state;

	for (int i = 0; i < RANKS; i++) {
		nt_buf_release(&job->entries[i]);
		(void)unlink(job->path[i]);
	}
	free(job);
	return 0;
}

struct entry {
	const char *op, *group, *state, *type;
	uint64_t elements;
	bool p2p, retired;
	unsigned int timeout_s; /* 0: it does not say */
};

/* One rank enqueues a call now. */
static void call(struct job *job, int rank, const struct entry *entry)
{
	struct nt_buf *buf = &job->entries[rank];
	const bool completed = strcmp(entry->state, "completed") == 0;
	const bool started = completed || strcmp(entry->state, "started") == 0;

	assert_int_equal(
		nt_buf_printf(buf,
			      "%s{\"record_id\": %" PRIu64
			      ", \"pg_id\": 0, \"process_group\": [\"%s\", \"d\"], "
			      "\"collective_seq_id\": %" PRIu64
			      ", \"p2p_seq_id\": 0, \"op_id\": 1, "
			      "\"profiling_name\": \"%s\", \"time_created_ns\": %" PRIu64 ", "
			      "\"input_sizes\": [[%" PRIu64 "]], \"input_dtypes\": [\"%s\"], "
			      "\"output_sizes\": [[%" PRIu64 "]], \"output_dtypes\": [\"%s\"], "
			      "\"state\": \"%s\", \"time_discovered_started_ns\": %" PRIu64 ", "
			      "\"time_discovered_completed_ns\": %" PRIu64
			      ", \"retired\": %s, \"is_p2p\": %s, \"timeout_ms\": %s%u}",
			      buf->len ? ", " : "", job->record[rank]++,
			      entry->group ? entry->group : "0", job->seq[rank], entry->op,
			      job->now_ns, entry->elements, entry->type ? entry->type : "Float",
			      entry->elements, entry->type ? entry->type : "Float", entry->state,
			      started ? job->now_ns + 1000 : 0, completed ? job->now_ns + 2000 : 0,
			      entry->retired ? "true" : "false", entry->p2p ? "true" : "false",
			      entry->timeout_s ? "" : "-",
			      entry->timeout_s ? entry->timeout_s * 1000 : 1),
		0);
}

static const struct entry done = {.op = "nccl:all_reduce", .elements = 1000, .state = "completed"};
static const struct entry open_call = {
	.op = "nccl:all_reduce", .elements = 1000, .state = "scheduled"};

/* All ranks make a call now; the next is a second later. */
static void all_call(struct job *job, const struct entry *entry, int except)
{
	for (int i = 0; i < RANKS; i++) {
		if (i == except)
			continue;
		job->seq[i]++;
		call(job, i, entry);
	}
	job->now_ns += SECOND;
}

static void work(struct job *job, int calls)
{
	for (int i = 0; i < calls; i++)
		all_call(job, &done, -1);
}

static void put_text(const char *path, const char *text, size_t len, uint64_t written_ns)
{
	const struct timespec times[2] = {
		{.tv_sec = (time_t)(written_ns / SECOND), .tv_nsec = (long)(written_ns % SECOND)},
		{.tv_sec = (time_t)(written_ns / SECOND), .tv_nsec = (long)(written_ns % SECOND)},
	};
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* The dumps are written so long after the last call; rank `except` writes none. */
static struct nt_trace *read_dumps(struct job *job, uint64_t seconds, int except)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;
	size_t n = 0;

	for (int i = 0; i < RANKS; i++) {
		nt_autobuf struct nt_buf text = {0};

		if (i == except)
			continue;
		assert_int_equal(
			nt_buf_printf(&text,
				      "{\"version\": \"2.10\", \"pg_config\": %s, \"pg_status\": "
				      "{\"0\": {\"last_completed_collective\": \"-1\"}}, "
				      "\"entries\": [%.*s]}",
				      job->config, (int)job->entries[i].len,
				      job->entries[i].len ? (char *)job->entries[i].data : ""),
			0);
		put_text(job->path[i], (const char *)text.data, text.len,
			 job->written_ns[i] ? job->written_ns[i] : job->now_ns + seconds * SECOND);
		job->path_list[n++] = job->path[i];
	}
	if (nt_trace_read_flight(job->path_list, n, &trace, &error) != 0)
		fail_msg("%s", error.text);
	return trace;
}

static struct nt_judgement *judge_trace(const struct nt_trace *trace)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_judgement *judgement = NULL;

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_judge_trace(trace, &rules, judgement), 0);
	return judgement;
}

static struct nt_judgement *judge(struct job *job, uint64_t seconds, int except)
{
	nt_auto(nt_trace) struct nt_trace *trace = read_dumps(job, seconds, except);

	return judge_trace(trace);
}

static void assert_names(const struct nt_judgement *judgement, const char *class, const char *cause,
			 uint32_t rank)
{
	const struct nt_incident *incident = &judgement->judged[0].incident;

	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(incident->class, class);
	assert_string_equal(incident->cause, cause);
	assert_int_equal(incident->culprits, 1);
	assert_string_equal(incident->culprit[0].kind, "rank");
	assert_int_equal(incident->culprit[0].rank, rank);
}

/* ---- verdicts ----------------------------------------------------------------------------- */

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

static void another_operation_is_a_mismatch_that_shows_both_sides(void **state)
{
	const struct entry other = {
		.op = "nccl:_all_gather_base", .elements = 1000, .state = "scheduled"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, 1);
	job->seq[1]++;
	call(job, 1, &other);
	judgement = judge(job, 20, -1);
	assert_names(judgement, "mismatch", "", 1);
	assert_int_equal(judgement->judged[0].incident.evidences, 2);
	assert_string_equal(judgement->judged[0].incident.evidence[0].what, "number of the call");
	assert_true(judgement->judged[0].incident.evidence[0].value == 11);
	assert_string_equal(judgement->judged[0].incident.evidence[1].what,
			    "operation of the call");
	assert_true(judgement->judged[0].incident.evidence[1].value == NT_OP_ALL_GATHER);
	assert_true(judgement->judged[0].incident.evidence[1].peers == NT_OP_ALL_REDUCE);
}

static void another_size_is_a_mismatch_too(void **state)
{
	const struct entry other = {.op = "nccl:all_reduce", .elements = 999, .state = "scheduled"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, 3);
	job->seq[3]++;
	call(job, 3, &other);
	judgement = judge(job, 20, -1);
	assert_names(judgement, "mismatch", "", 3);
	assert_true(judgement->judged[0].incident.evidence[1].value == 999);
}

/* The device took a call of another type; the job stood only later. */
static void a_mismatch_that_went_through_is_found_where_it_was(void **state)
{
	const struct entry other = {
		.op = "nccl:all_reduce", .elements = 1000, .state = "completed", .type = "Half"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	work(job, 100);
	for (int i = 0; i < RANKS; i++) {
		job->seq[i]++;
		call(job, i, i == 2 ? &other : &done);
	}
	work(job, 40);
	all_call(job, &open_call, -1);
	judgement = judge(job, 20, -1);
	assert_names(judgement, "mismatch", "", 2);
	assert_true(judgement->judged[0].incident.evidence[0].value == 101);
}

static void members_that_always_differ_are_no_mismatch(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct job *job = *state;

	for (int n = 0; n < 40; n++) {
		for (int i = 0; i < RANKS; i++) {
			struct entry own = done;

			own.elements = 1000 + (uint64_t)i;
			job->seq[i]++;
			call(job, i, &own);
		}
		job->now_ns += SECOND;
	}
	judgement = judge(job, 20, -1);
	assert_int_equal(judgement->incidents, 0);
}

static void all_inside_one_call_is_the_network(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_incident *incident;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, -1);
	judgement = judge(job, 20, -1);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "hang");
	assert_string_equal(incident->cause, "network");
	assert_int_equal(incident->culprits, 1);
	assert_string_equal(incident->culprit[0].kind, "communicator");
}

/* Somebody whose dump is not there may be the one. */
static void all_given_inside_while_one_is_not_given_has_no_cause(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	work(job, 10);
	all_call(job, &open_call, 2);
	trace = read_dumps(job, 20, 2);
	assert_int_equal(trace->world, 4);
	judgement = judge_trace(trace);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, "hang");
	assert_string_equal(judgement->judged[0].incident.cause, "");
	assert_int_equal(judgement->judged[0].incident.culprits, 0);
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

/* A send that nobody takes must not pass for a call of the group. */
static void sends_and_receives_are_no_calls_of_their_group(void **state)
{
	const struct entry send = {
		.op = "nccl:send 0->1", .elements = 5, .state = "scheduled", .p2p = true};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct job *job = *state;

	work(job, 10);
	call(job, 0, &send);
	work(job, 3);
	trace = read_dumps(job, 20, -1);
	assert_int_equal(trace->frame[0].rank[0].comms, 2);
	assert_int_equal(trace->frame[0].rank[1].comms, 1);
	judgement = judge_trace(trace);
	assert_int_equal(judgement->incidents, 0);
}

/* One sends what the other receives: calls of one number that differ by nature. */
static void a_pipeline_is_no_mismatch(void **state)
{
	struct entry part = {
		.op = "nccl:send 0->1", .elements = 5, .state = "completed", .p2p = true};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_frame *last;
	struct job *job = *state;

	work(job, 10);
	for (int n = 0; n < 20; n++) {
		part.op = "nccl:send 0->1";
		call(job, 0, &part);
		part.op = "nccl:recv 1<-0";
		call(job, 1, &part);
		job->now_ns += SECOND;
	}
	trace = read_dumps(job, 20, -1);
	last = &trace->frame[trace->frames - 1].frame;
	assert_true(last->rank[0].comm[1].rolling_hash == last->rank[1].comm[1].rolling_hash);
	judgement = judge_trace(trace);
	assert_int_equal(judgement->incidents, 0);
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
			       "0 (d); not entered by 2\n"));
	assert_int_equal(nt_report_json(&report, &json), 0);
	assert_non_null(memmem(json.data, json.len, "\"waits_left_out\": 0", 19));
	assert_non_null(memmem(json.data, json.len, "\"process_group\": \"0 (d)\"", 24));
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

/* ---- files -------------------------------------------------------------------------------- */

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

	assert_refused(job, "", ":1: no JSON at byte 0");
	assert_refused(job, "{\"version\": \"2.5\",\n \"entries\": [{\"record_id\": 0, ",
		       ":2: no JSON at byte 49");
	assert_refused(job, "[]", "no 'version'");
	assert_refused(job, "{\"entries\": []}", "no 'version'");
	assert_refused(job, "{\"version\": \"1.5\"}", "a dump of version '1.5'");
	assert_refused(job, "{\"version\": \"2.5\"}", "no calls in any of the dumps");
	assert_refused(job, "{\"version\": \"2.5\", \"entries\": 7}", "'entries' is no list");
	assert_refused(job, DUMP_OF("3"), "entry 0 is no object");
	assert_refused(job, DUMP_OF("{}"), "entry 0: process_group is not");
	assert_refused(job, DUMP_OF(ENTRY_OF(PG, "7", "1", "[]", "\"started\"", CREATED)),
		       "entry 0: profiling_name is not");
	assert_refused(job, DUMP_OF(ENTRY_OF(PG, NAME, "-1", "[]", "\"started\"", CREATED)),
		       "entry 0: collective_seq_id is not a number");
	assert_refused(job, DUMP_OF(ENTRY_OF(PG, NAME, "1", "[[-3]]", "\"started\"", CREATED)),
		       "input_sizes is not");
	assert_refused(job,
		       DUMP_OF(ENTRY_OF(PG, NAME, "1", "[[4294967296, 4294967296]]", "\"started\"",
					CREATED)),
		       "input_sizes is not");
	assert_refused(job, DUMP_OF(ENTRY_OF(PG, NAME, "1", "[]", "\"asleep\"", CREATED)),
		       "state is not scheduled, started or completed");
	assert_refused(job, DUMP_OF(ENTRY_OF(PG, NAME, "1", "[]", "\"started\"", "")),
		       "time_created_ns is not");
	assert_refused(job,
		       DUMP_OF(ENTRY_OF(PG, NAME, "1", "[]", "\"started\"",
					", \"time_created_ns\": 9000000000000000000")),
		       "time_created_ns is not");
	assert_refused(job, "{\"version\": \"2.5\", \"pg_config\": []}", "pg_config is no object");
	assert_refused(job,
		       "{\"version\": \"2.5\", \"pg_config\": {\"1\": {\"ranks\": \"[0, x]\"}}}",
		       "the ranks of process group '1'");
	assert_refused(job,
		       "{\"version\": \"2.5\", \"pg_config\": {\"1\": {\"ranks\": \"[0, 1\"}}}",
		       "the ranks of process group '1'");
	assert_refused(job, "{\"version\": \"2.5\", \"rank\": -1}", "rank unknown");
	assert_refused(job, "{\"version\": \"2.5\", \"rank\": 131072}", "rank unknown");
}

static void a_dump_of_a_rank_that_its_group_does_not_have_is_refused(void **state)
{
	assert_refused(
		*state,
		"{\"version\": \"2.5\", \"rank\": 7, \"pg_config\": {\"0\": {\"ranks\": \"[0, 1]\"}}, "
		"\"entries\": [" ENTRY_OF(PG, NAME, "1", "[]", "\"started\"", CREATED) "]}",
		"entry 0: rank 7 calls in process group '0'");
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

static void a_pickle_is_refused_with_what_to_do(void **state)
{
	struct job *job = *state;

	assert_refused(job, "\x80\x02}(X\x07version", "a pickle; put it into JSON");
}

static void more_entries_than_the_cap_are_refused(void **state)
{
	nt_autobuf struct nt_buf text = {0};
	struct job *job = *state;

	assert_int_equal(nt_buf_printf(&text, "{\"version\": \"2.5\", \"entries\": [0"), 0);
	for (int i = 0; i < 1 << 17; i++)
		assert_int_equal(nt_buf_append(&text, ",0", 2), 0);
	assert_int_equal(nt_buf_printf(&text, "]}"), 0);
	assert_refused(job, (const char *)text.data, "more than 131072 entries");
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
	assert_non_null(strstr(error.text, "not of one job, which had 4 or 3 ranks"));
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

/* Recorded by PyTorch 2.15: four ranks over Gloo, of which rank 2 stayed out of the last call. */
static void the_laggard_of_a_real_job_is_named(void **state)
{
	static const char *const paths[] = {
		"tests/data/flight/gloo/rank_0.json.gz", "tests/data/flight/gloo/rank_1.json.gz",
		"tests/data/flight/gloo/rank_2.json.gz", "tests/data/flight/gloo/rank_3.json.gz"};
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};

	(void)state;
	if (nt_trace_read_flight(paths, 4, &trace, &error) != 0)
		fail_msg("%s", error.text);
	/* The group of all, and its own pair. */
	assert_int_equal(trace->frame[0].rank[0].comms, 2);
	judgement = judge_trace(trace);
	assert_names(judgement, "hang", "laggard", 2);
}

#define FLIGHT_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLIGHT_TEST(a_rank_that_never_entered_is_the_laggard),
		FLIGHT_TEST(a_file_that_was_copied_later_tells_of_no_longer_wait_than_the_timeout),
		FLIGHT_TEST(a_hang_of_a_few_seconds_is_none_yet),
		FLIGHT_TEST(a_dump_that_is_older_than_the_others_accuses_nobody),
		FLIGHT_TEST(a_healthy_job_accuses_nobody_however_late_its_dumps_are_read),
		FLIGHT_TEST(another_operation_is_a_mismatch_that_shows_both_sides),
		FLIGHT_TEST(another_size_is_a_mismatch_too),
		FLIGHT_TEST(a_mismatch_that_went_through_is_found_where_it_was),
		FLIGHT_TEST(members_that_always_differ_are_no_mismatch),
		FLIGHT_TEST(all_inside_one_call_is_the_network),
		FLIGHT_TEST(all_given_inside_while_one_is_not_given_has_no_cause),
		FLIGHT_TEST(a_rank_whose_device_never_reached_the_call_is_the_laggard),
		FLIGHT_TEST(who_waits_in_another_group_is_not_the_laggard),
		FLIGHT_TEST(calls_of_gloo_are_done_when_they_are_retired),
		FLIGHT_TEST(sends_and_receives_are_no_calls_of_their_group),
		FLIGHT_TEST(a_pipeline_is_no_mismatch),
		FLIGHT_TEST(the_entries_of_a_coalesced_group_are_one_call),
		FLIGHT_TEST(a_rank_that_never_called_in_a_group_is_late_in_it),
		FLIGHT_TEST(the_report_says_who_waits_in_what_and_who_does_not),
		FLIGHT_TEST(calls_that_are_waited_in_beyond_the_cap_are_counted),
		FLIGHT_TEST(a_damaged_dump_is_refused_with_its_place),
		FLIGHT_TEST(a_dump_cut_short_in_its_compression_is_refused),
		FLIGHT_TEST(names_out_of_a_dump_do_not_steer_the_terminal),
		FLIGHT_TEST(a_dump_of_a_rank_that_its_group_does_not_have_is_refused),
		FLIGHT_TEST(a_pickle_is_refused_with_what_to_do),
		FLIGHT_TEST(more_entries_than_the_cap_are_refused),
		FLIGHT_TEST(groups_beyond_the_cap_are_left_out_and_counted),
		FLIGHT_TEST(dumps_of_one_rank_or_of_two_jobs_are_refused),
		FLIGHT_TEST(the_rank_is_the_number_behind_rank_or_the_last_of_the_name),
		FLIGHT_TEST(a_dump_is_told_from_a_profiler_trace_by_its_content),
		FLIGHT_TEST(the_laggard_of_a_real_job_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
