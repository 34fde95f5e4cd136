/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Flight recorder dumps of a job of four ranks, for the tests of their reader. */
#ifndef NT_TESTS_UNIT_CLI_FLIGHT_JOB_H
#define NT_TESTS_UNIT_CLI_FLIGHT_JOB_H

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

#include "cli/flight/flight.h"
#include "cli/replay/replay.h"
#include "cli/report/report.h"
#include "common/base/buf.h"

enum {
	RANKS = 4,
	SECOND = 1000000000,
};

static const uint64_t START_NS = 1700000000ull * SECOND;

/* The calls recorded by the ranks, and the job's files. */
struct job {
	struct nt_buf entries[RANKS];
	char path[RANKS][64];
	const char *path_list[RANKS];
	uint64_t seq[RANKS], record[RANKS], now_ns;
	const char *config; /* pg_config */
	const char *status[RANKS]; /* pg_status; NULL: of no group */
	uint64_t written_ns[RANKS];
};

static inline int begin(void **state)
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

static inline int end(void **state)
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
	const char *op, *group, *desc, *state, *type;
	uint64_t elements;
	bool p2p, retired;
	bool bare; /* it has no tensors */
	unsigned int pg_id;
	unsigned int p2p_seq;
	unsigned int timeout_s; /* 0: unknown */
};

/* One rank enqueues a call now. */
static inline void call(struct job *job, int rank, const struct entry *entry)
{
	struct nt_buf *buf = &job->entries[rank];
	const char *quote = entry->type && !*entry->type ? "" : "\""; /* "": omitted */
	const bool completed = strcmp(entry->state, "completed") == 0;
	char sizes[32];
	const bool started = completed || strcmp(entry->state, "started") == 0;

	(void)snprintf(sizes, sizeof(sizes), entry->bare ? "[]" : "[[%" PRIu64 "]]",
		       entry->elements);
	assert_int_equal(
		nt_buf_printf(buf,
			      "%s{\"record_id\": %" PRIu64
			      ", \"pg_id\": %u, \"process_group\": [\"%s\", \"%s\"], "
			      "\"collective_seq_id\": %" PRIu64
			      ", \"p2p_seq_id\": %u, \"op_id\": 1, "
			      "\"profiling_name\": \"%s\", \"time_created_ns\": %" PRIu64 ", "
			      "\"input_sizes\": %s, \"input_dtypes\": [%s%s%s], "
			      "\"output_sizes\": [[%" PRIu64 "]], \"output_dtypes\": [\"%s\"], "
			      "\"state\": \"%s\", \"time_discovered_started_ns\": %" PRIu64 ", "
			      "\"time_discovered_completed_ns\": %" PRIu64
			      ", \"retired\": %s, \"is_p2p\": %s, \"timeout_ms\": %s%u}",
			      buf->len ? ", " : "", job->record[rank]++, entry->pg_id,
			      entry->group ? entry->group : "0", entry->desc ? entry->desc : "d",
			      job->seq[rank], entry->p2p_seq, entry->op, job->now_ns, sizes, quote,
			      entry->type ? entry->type : "Float", quote, entry->elements,
			      entry->type ? entry->type : "Float", entry->state,
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
static inline void all_call(struct job *job, const struct entry *entry, int except)
{
	for (int i = 0; i < RANKS; i++) {
		if (i == except)
			continue;
		job->seq[i]++;
		call(job, i, entry);
	}
	job->now_ns += SECOND;
}

static inline void work(struct job *job, int calls)
{
	for (int i = 0; i < calls; i++)
		all_call(job, &done, -1);
}

static inline void put_text(const char *path, const char *text, size_t len, uint64_t written_ns)
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
static inline struct nt_trace *read_dumps(struct job *job, uint64_t seconds, int except)
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
				      "%s, \"entries\": [%.*s]}",
				      job->config,
				      job->status[i]
					      ? job->status[i]
					      : "{\"0\": {\"last_completed_collective\": \"-1\"}}",
				      (int)job->entries[i].len,
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

static inline struct nt_judgement *judge_trace(const struct nt_trace *trace)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_judgement *judgement = NULL;

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	return judgement;
}

static inline struct nt_judgement *judge(struct job *job, uint64_t seconds, int except)
{
	nt_auto(nt_trace) struct nt_trace *trace = read_dumps(job, seconds, except);

	return judge_trace(trace);
}

static inline void assert_names(const struct nt_judgement *judgement, const char *class,
				const char *cause, uint32_t rank)
{
	const struct nt_wire_incident *incident = &judgement->judged[0].incident;

	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(incident->class, class);
	assert_string_equal(incident->cause, cause);
	assert_int_equal(incident->culprits, 1);
	assert_string_equal(incident->culprit[0].kind, "rank");
	assert_int_equal(incident->culprit[0].rank, rank);
}

#define FLIGHT_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
