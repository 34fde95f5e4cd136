/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a disk queue's backlog does to the aggregator: brokers were away for a while, live messages go
 * on at once, and what was kept follows between them, oldest first.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "engine/ingest.h"

#include "tests/unit/engine/window_feed.h"

enum {
	RANKS = 8, /* four on each of two nodes */
	RUN_S = 220,
	WINDOW_MS = 520,
	MAX_MESSAGES = 16384,
	BACKLOG_A_LIVE = 2, /* late messages between two live ones */
};

/* What is done to a run. Times are seconds. */
struct fault_notice {
	uint64_t from_s, to_s; /* in which messages do not come through */
	bool both; /* of both nodes, or of the second alone */
	uint64_t killed_s; /* then its agent starts anew; 0: never */
	uint64_t lost_every; /* so many messages, one never comes; 0: none */
	double slow_ms; /* own work of rank 5 from 40 s on; 0: as the others */
};

struct outcome {
	struct nt_buf verdicts; /* incidents that fire and end, in order */
	uint64_t messages, withheld;
	struct nt_dedup_counters dedup;
	uint64_t duplicates, late_windows, jobs, attempts, splits, live;
	uint64_t incomplete, after; /* frames; after: incomplete ones 15 s after the trouble */
	double completeness; /* the least in the trouble */
	double said, sure; /* completeness and confidence of the last incident */
	bool missing_are_silent; /* ranks without a window in the trouble */
};

static struct nt_message *message[MAX_MESSAGES];
static size_t messages;
static struct nt_ingest *ingest;
static struct nt_engine *engine;
static struct outcome *outcome;
static const struct fault_notice *fault_notice;

static bool is_in_fault_notice(uint64_t ns)
{
	return ns >= REAL_0 + fault_notice->from_s * SECOND &&
	       ns < REAL_0 + fault_notice->to_s * SECOND;
}

static void note_frame(void *data, const struct nt_job *job, const struct nt_frame *frame)
{
	/* While others speak, one that does not is given time. */
	const uint64_t silent_ns = REAL_0 + fault_notice->from_s * SECOND + NT_JOBS_SILENCE_NS;

	(void)data;
	(void)job;
	outcome->incomplete += frame->completeness < 1;
	if (is_in_fault_notice(frame->start_ns) && is_in_fault_notice(frame->end_ns)) {
		if (frame->completeness < outcome->completeness)
			outcome->completeness = frame->completeness;
		for (size_t i = 0; i < frame->ranks; i++)
			if (!frame->rank[i].observed && !frame->rank[i].silent &&
			    (fault_notice->both || frame->start_ns > silent_ns))
				outcome->missing_are_silent = false;
	}
	if (frame->completeness < 1 &&
	    frame->start_ns > REAL_0 + (fault_notice->to_s + 15) * SECOND &&
	    frame->end_ns < REAL_0 + (RUN_S - 15) * SECOND)
		outcome->after++;
}

static void note_incident(void *data, const struct nt_wire_incident *incident)
{
	static char last[128];
	char now[128];

	(void)data;
	if (strcmp(incident->state, "pending") == 0)
		return;
	outcome->said = incident->completeness;
	outcome->sure = incident->confidence;
	(void)snprintf(now, sizeof(now), "%s %s %s", incident->id, incident->state,
		       incident->class);
	if (outcome->verdicts.len && strcmp(now, last) == 0)
		return;
	memcpy(last, now, sizeof(last));
	assert_int_equal(nt_buf_printf(&outcome->verdicts, "%s\n", now), 0);
}

static void add(struct nt_message *one)
{
	assert_true(messages < MAX_MESSAGES);
	message[messages++] = one;
}

/* One node's windows. Its agent may be another from some time on. */
static void make_node(const char *name, uint32_t first)
{
	struct feed_agent agent = feed_agent(name, "job");
	bool is_killed = fault_notice->killed_s && first;

	for (uint64_t n = 0; (n + 1) * WINDOW_MS < RUN_S * 1000; n++) {
		if (is_killed && n * WINDOW_MS >= fault_notice->killed_s * 1000) {
			agent.boot++;
			agent.seq = 0;
			is_killed = false;
		}
		for (uint32_t rank = first; rank < first + RANKS / 2; rank++) {
			const bool is_slow =
				rank == 5 && fault_notice->slow_ms > 0 && n * WINDOW_MS >= 40000;
			const struct feed_window window = {
				.rank = rank,
				.size = RANKS,
				.from_ms = n * WINDOW_MS + rank,
				.to_ms = (n + 1) * WINDOW_MS + rank,
				.steps = 10,
				.own_ms = is_slow ? fault_notice->slow_ms
						  : 30 + 0.1 * (double)(n % 7),
				.step_ms = 52,
				.comm = 0xabc,
				.last = 10 * (n + 1),
			};

			add(feed_window(&agent, &window));
		}
	}
}

static int by_real_time(const void *a, const void *b)
{
	const struct nt_message *left = *(struct nt_message *const *)a;
	const struct nt_message *right = *(struct nt_message *const *)b;
	int order;

	if (left->real_ns != right->real_ns)
		return left->real_ns < right->real_ns ? -1 : 1;
	order = strcmp(left->agent, right->agent);
	return order ? order : (int)(left->seq - right->seq);
}

static void deliver(size_t i)
{
	nt_autobuf struct nt_buf buf = {0};
	nt_auto(nt_message) struct nt_message *sent = nt_take(message[i]);
	const struct nt_bus_record record = feed_record(sent, &buf);
	struct nt_message *taken = NULL;
	int r = nt_ingest_take(ingest, &record, 0, false, &taken);

	assert_true(r >= 0);
	if (taken)
		assert_int_equal(nt_engine_push(engine, taken, false), 0);
}

/* The live ones as they come; those that were withheld between them, once the trouble is over. */
static void deliver_all(void)
{
	static size_t late[MAX_MESSAGES];
	size_t lates = 0, next = 0;
	uint64_t swept_ns = 0;

	for (size_t i = 0; i < messages; i++) {
		const bool is_hit = fault_notice->both || strcmp(message[i]->agent, "n1") == 0;

		if (fault_notice->lost_every && i % fault_notice->lost_every == 0) {
			nt_message_free(nt_take(message[i]));
			continue;
		}
		if (is_hit && is_in_fault_notice(message[i]->real_ns)) {
			late[lates++] = i;
			/* Where nothing comes at all, time goes on by itself. */
			if (!swept_ns || !fault_notice->both)
				swept_ns = message[i]->real_ns;
			if (message[i]->real_ns >= swept_ns + SECOND) {
				assert_int_equal(nt_engine_sweep(engine, SECOND), 0);
				swept_ns += SECOND;
			}
			continue;
		}
		deliver(i);
		for (int n = 0; is_hit && n < BACKLOG_A_LIVE && next < lates; n++)
			deliver(late[next++]);
	}
	outcome->withheld = lates;
	while (next < lates)
		deliver(late[next++]);
}

static void run(const struct fault_notice *what, struct outcome *ret_outcome)
{
	const struct nt_engine_options options = nt_engine_options_default();
	const struct nt_engine_handler handler = {
		.frame = note_frame,
		.incident = note_incident,
	};
	const struct nt_jobs_counters *jobs;

	fault_notice = what;
	outcome = ret_outcome;
	*outcome = (struct outcome){.completeness = 1, .missing_are_silent = true};
	messages = 0;
	make_node("n0", 0);
	make_node("n1", RANKS / 2);
	qsort(message, messages, sizeof(struct nt_message *), by_real_time);
	outcome->messages = messages;
	assert_int_equal(nt_ingest_new(NULL, NULL, &ingest), 0);
	assert_int_equal(nt_engine_new(&options, &handler, &engine), 0);
	deliver_all();
	jobs = nt_jobs_counters(nt_engine_jobs(engine));
	outcome->dedup = nt_ingest_counters(ingest)->dedup;
	outcome->duplicates = nt_ingest_counters(ingest)->duplicates;
	outcome->late_windows = jobs->session.late_windows;
	outcome->jobs = jobs->jobs;
	outcome->attempts = jobs->attempts;
	outcome->splits = jobs->splits;
	outcome->live = nt_jobs_keys(nt_engine_jobs(engine))->job->live;
	nt_engine_free(nt_take(engine));
	nt_ingest_free(nt_take(ingest));
}

static const char *verdicts(struct outcome *of)
{
	assert_int_equal(nt_buf_reserve(&of->verdicts, 1), 0);
	of->verdicts.data[of->verdicts.len] = '\0';
	return (const char *)of->verdicts.data;
}

/* Against the same run without trouble: nothing but the time that was missed differs. */
static void compare(const struct fault_notice *what, const char *verdicts_then)
{
	struct outcome got;

	run(what, &got);
	assert_true(got.withheld > 0);
	assert_string_equal(verdicts(&got), verdicts_then);
	assert_int_equal(got.dedup.gaps - got.dedup.filled, 0);
	assert_int_equal(got.dedup.forgotten, 0);
	assert_int_equal(got.duplicates, 0);
	assert_int_equal(got.jobs, 1);
	assert_int_equal(got.attempts, 0);
	assert_int_equal(got.splits, 0);
	assert_int_equal(got.live, RANKS);
	assert_int_equal(got.after, 0);
	assert_true(got.missing_are_silent);
	if (what->to_s - what->from_s >= 15) {
		assert_true(got.completeness <= (what->both ? 0.0 : 0.5));
		/* But for those of the last seconds. */
		assert_in_range(got.late_windows, got.withheld * 3 / 4, got.withheld);
	}
	nt_buf_release(&got.verdicts);
}

static const uint64_t lengths_s[] = {2, 4, 11, 20, 35, 70};

static void compare_all(struct fault_notice what)
{
	const struct fault_notice none = {.slow_ms = what.slow_ms};
	struct outcome calm;

	run(&none, &calm);
	assert_int_equal(calm.withheld, 0);
	assert_int_equal(calm.incomplete, 0);
	assert_int_equal(calm.verdicts.len > 0, what.slow_ms > 0);
	what.from_s = 100;
	for (size_t i = 0; i < sizeof(lengths_s) / sizeof(lengths_s[0]); i++) {
		what.to_s = what.from_s + lengths_s[i];
		compare(&what, verdicts(&calm));
	}
	nt_buf_release(&calm.verdicts);
}

static void a_node_that_was_cut_off_changes_no_verdict(void **state)
{
	(void)state;
	compare_all((struct fault_notice){.both = false});
}

static void brokers_that_were_away_for_all_change_no_verdict(void **state)
{
	(void)state;
	compare_all((struct fault_notice){.both = true});
}

static void a_fault_that_goes_on_all_the_while_stays_one_incident(void **state)
{
	(void)state;
	compare_all((struct fault_notice){.both = true, .slow_ms = 45});
	compare_all((struct fault_notice){.both = false, .slow_ms = 45});
}

/* Its backlog is of another boot than what it sends now. */
static void an_agent_that_starts_anew_in_the_outage_changes_no_verdict(void **state)
{
	(void)state;
	compare_all((struct fault_notice){.both = true, .killed_s = 101});
	compare_all((struct fault_notice){.both = false, .killed_s = 101});
	compare_all((struct fault_notice){.both = true, .killed_s = 101, .slow_ms = 45});
}

/* Evenly lost: what is left is of the finding's windows as much as of all. */
static void a_verdict_on_what_is_left_says_how_much_is_missing(void **state)
{
	const struct fault_notice none = {.slow_ms = 45}, lossy = {.slow_ms = 45, .lost_every = 33};
	struct outcome whole, part;

	(void)state;
	run(&none, &whole);
	run(&lossy, &part);
	assert_string_equal(verdicts(&part), verdicts(&whole));
	assert_true(whole.said == 1);
	assert_true(whole.sure > 0.999);
	assert_true(part.said > 1 - 1.5 / 33 && part.said < 1 - 0.5 / 33);
	assert_true(part.sure > part.said - 0.001 && part.sure <= part.said);
	nt_buf_release(&whole.verdicts);
	nt_buf_release(&part.verdicts);
}

/* A process that lived and died while nobody could hear of it makes no job when its windows come. */
static void what_was_over_before_it_was_heard_of_is_counted_and_makes_no_job(void **state)
{
	const struct nt_engine_options options = nt_engine_options_default();
	struct feed_agent agent = feed_agent("n0", "job"), other = feed_agent("n1", "job");
	struct feed_window window = {
		.size = 2, .steps = 10, .own_ms = 30, .step_ms = 52, .comm = 0xabc};
	const struct nt_jobs_counters *jobs;

	(void)state;
	assert_int_equal(nt_engine_new(&options, NULL, &engine), 0);
	jobs = nt_jobs_counters(nt_engine_jobs(engine));
	for (uint64_t n = 0; n < 60; n++) {
		window.from_ms = n * WINDOW_MS;
		window.to_ms = (n + 1) * WINDOW_MS;
		window.last = 10 * (n + 1);
		for (window.rank = 0; window.rank < 2; window.rank++)
			assert_int_equal(
				nt_engine_push(engine, feed_window(&agent, &window), false), 0);
	}
	window.rank = 1;
	window.pid = 999;
	window.from_ms = 5000;
	window.to_ms = 5500;
	assert_int_equal(nt_engine_push(engine, feed_window(&other, &window), false), 0);
	assert_int_equal(nt_engine_finish(engine), 0);
	assert_int_equal(jobs->session.late_windows, 1);
	assert_int_equal(jobs->jobs, 1);
	assert_int_equal(jobs->splits, 0);
	assert_int_equal(nt_jobs_keys(nt_engine_jobs(engine))->sessions, 2);
	nt_engine_free(nt_take(engine));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_was_cut_off_changes_no_verdict),
		cmocka_unit_test(brokers_that_were_away_for_all_change_no_verdict),
		cmocka_unit_test(a_fault_that_goes_on_all_the_while_stays_one_incident),
		cmocka_unit_test(an_agent_that_starts_anew_in_the_outage_changes_no_verdict),
		cmocka_unit_test(a_verdict_on_what_is_left_says_how_much_is_missing),
		cmocka_unit_test(what_was_over_before_it_was_heard_of_is_counted_and_makes_no_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
