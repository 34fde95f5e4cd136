/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Silence is explained where it is not because all is well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "cli/report/html.h"
#include "cli/report/report.h"

#define HEADER "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"

static char path[64];
static struct nt_buf text;

static int tear_down(void **state)
{
	(void)state;
	nt_buf_release(&text);
	if (*path)
		(void)unlink(path);
	*path = '\0';
	return 0;
}

/* So many steps of so many ranks, of which the last one computes that much longer than the others. */
struct made {
	int ranks, steps;
	double factor;
	bool turns; /* in each step another rank does */
	bool stages; /* each rank is a stage of its own */
	bool collectives; /* with a reduce-scatter */
};

static struct nt_trace *make(const struct made *made)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;
	FILE *file;

	(void)snprintf(path, sizeof(path), "build/test-coverage-%d.csv", (int)getpid());
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(HEADER, file) >= 0);
	for (int step = 0; step < made->steps; step++) {
		for (int rank = 0; rank < made->ranks; rank++) {
			const double noise = (double)((step * 7 + rank * 13) % 17) * 0.0001;
			const int slow = made->turns ? step % made->ranks : made->ranks - 1;
			const double work = (rank == slow ? made->factor : 1) + noise;

			assert_true(fprintf(file, "%d,%d,%d,%d,forward-compute,0,%.4f,0,0,0,0\n",
					    made->stages ? 0 : rank, made->stages ? rank : 0, rank,
					    step, work) > 0);
			if (made->collectives)
				assert_true(fprintf(file,
						    "%d,0,%d,%d,grads-reduce-scatter,%.4f,0.1,0,"
						    "0,0,0\n",
						    rank, rank, step, work) > 0);
		}
	}
	assert_int_equal(fclose(file), 0);
	if (nt_trace_read_straggler(path, &trace, &error) != 0)
		fail_msg("%s", error.text);
	return trace;
}

/* The report on it; the text is the test's until the next call. */
static const char *report_on(const struct made *made,
			     int (*print)(const struct nt_report *report, struct nt_buf *buf),
			     size_t *ret_incidents)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = make(made);
	const struct nt_rules rules = nt_rules_default();
	struct nt_report report = {.source = "table"};

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_judgement_watch(judgement, &rules), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	nt_report_trace(&report, trace, judgement);
	nt_buf_clear(&text);
	assert_int_equal(print(&report, &text), 0);
	assert_int_equal(nt_buf_append(&text, "", 1), 0);
	if (ret_incidents)
		*ret_incidents = judgement->incidents;
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

static void too_few_steps_are_told_in_every_form(void **state)
{
	struct made made = {.ranks = 4, .steps = 3, .factor = 1.5};

	(void)state;
	says(report_on(&made, nt_report_text, NULL),
	     "\n3 steps: at least 4 are needed to name a culprit; rank 3 works 50 % longer than its 3 peers in all of them\n");
	says((const char *)text.data, "\ntoo little was recorded to name a culprit\n");
	says_not((const char *)text.data, "is to blame");
	says(report_on(&made, nt_report_json, NULL),
	     "\"3 steps: at least 4 are needed to name a culprit; ");
	says(report_on(&made, nt_html_write, NULL), "<li>3 steps: at least 4 are needed");
	says((const char *)text.data, "<h1>The recording is too short to name a culprit</h1>");
	/* Each works longer once. */
	made.turns = true;
	says(report_on(&made, nt_report_text, NULL),
	     "\n3 steps: at least 4 are needed to name a culprit; --windows lists the ranks that deviate in them\n");
	/* None works much longer. */
	made.turns = false;
	made.factor = 1.05;
	says(report_on(&made, nt_report_text, NULL),
	     "\n3 steps: at least 4 are needed to name a culprit; --windows lists the ranks that deviate in them\n");
}

/* What is promised holds: a rank far behind is named in that many, and not in fewer. */
static void as_many_steps_as_are_asked_for_are_enough(void **state)
{
	struct made made = {.ranks = 4, .steps = 0, .factor = 1.5};
	size_t incidents = 0;

	(void)state;
	for (made.steps = 1; made.steps <= 4; made.steps++) {
		(void)report_on(&made, nt_report_text, &incidents);
		assert_int_equal(incidents, made.steps == 4);
	}
	says_not((const char *)text.data, "needed");
}

static void a_long_healthy_job_is_silent_for_no_reason(void **state)
{
	const struct made made = {.ranks = 4, .steps = 30, .factor = 1};

	(void)state;
	says(report_on(&made, nt_report_text, NULL), "\nno rank, node or link is to blame\n");
	says_not((const char *)text.data, "needed");
	says(report_on(&made, nt_report_json, NULL), "\"notes\": []");
}

static void one_rank_is_said_to_have_nobody_beside_it(void **state)
{
	const struct made made = {.ranks = 1, .steps = 30, .factor = 1};

	(void)state;
	says(report_on(&made, nt_report_text, NULL),
	     "\none rank: only changes against its own history are found, and the first 20 steps ");
}

static void few_peers_are_told_until_a_past_is_known(void **state)
{
	struct made made = {.ranks = 3, .steps = 12, .factor = 1};
	size_t incidents = 0;

	(void)state;
	says(report_on(&made, nt_report_text, NULL),
	     "\n3 of 3 ranks have fewer than 3 peers: a slow one is found only after the first 20 steps");
	says((const char *)text.data, "\ntoo little was recorded to name a culprit\n");
	made.steps = 40;
	says_not(report_on(&made, nt_report_text, NULL), "fewer than");
	/* And then it does show. */
	made.factor = 1.5;
	(void)report_on(&made, nt_report_text, &incidents);
	assert_int_equal(incidents, 1);
}

static void a_network_is_not_judged_until_its_past_is_known(void **state)
{
	static const char note[] = "a slow network is found only after the first 20 steps";
	struct made made = {.ranks = 4, .steps = 3, .factor = 1, .collectives = true};

	(void)state;
	says_not(report_on(&made, nt_report_text, NULL), note);
	made.steps = 23;
	says(report_on(&made, nt_report_text, NULL), note);
	made.collectives = false;
	says_not(report_on(&made, nt_report_text, NULL), note);
	made.steps = 40;
	made.collectives = true;
	says_not(report_on(&made, nt_report_text, NULL), note);
}

static void a_long_list_of_collectives_does_not_bury_the_verdicts(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	static struct nt_trace_collective late[200];
	struct nt_report report = {.source = "traces", .collective = late, .collectives = 200};
	size_t lines = 0;

	(void)state;
	for (size_t i = 0; i < 200; i++)
		late[i] = (struct nt_trace_collective){.name = "AllReduce",
						       .number = i,
						       .ranks = 4,
						       .lateness_ns = i * 37 % 200 * 1000000};
	assert_int_equal(nt_judgement_new(&judgement), 0);
	report.judgement = judgement;
	assert_int_equal(nt_report_text(&report, &text), 0);
	assert_int_equal(nt_buf_append(&text, "", 1), 0);
	for (const char *at = (const char *)text.data; (at = strstr(at, "AllReduce")); at++)
		lines++;
	assert_int_equal(lines, 32);
	says((const char *)text.data, "  199.000 ms");
	says((const char *)text.data, "  168.000 ms");
	says_not((const char *)text.data, "  167.000 ms");
	says((const char *)text.data,
	     "\nand 168 more, at which the last rank came no later; --json lists all\n");
}

static void ranks_of_which_none_is_like_another_are_said_to_have_no_peers(void **state)
{
	const struct made made = {.ranks = 4, .steps = 30, .factor = 1, .stages = true};

	(void)state;
	says(report_on(&made, nt_report_text, NULL), "\nno rank has peers: only changes ");
}

static void several_short_jobs_are_told_by_name_up_to_a_cap(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_coverage coverage = {.stepped = 12, .ranks = 4, .needed = 7};
	struct nt_report report = {.source = "rec"};
	char name[16];

	(void)state;
	assert_int_equal(nt_judgement_new(&judgement), 0);
	for (int i = 0; i < 11; i++) {
		(void)snprintf(name, sizeof(name), "job-%d", i);
		assert_int_equal(nt_judgement_add_job(judgement, name, name, &coverage), 0);
	}
	report.judgement = judgement;
	report.jobs = 11;
	assert_int_equal(nt_report_text(&report, &text), 0);
	assert_int_equal(nt_buf_append(&text, "", 1), 0);
	says((const char *)text.data, "\njob job-7: 3 windows: at least 7 are needed ");
	says_not((const char *)text.data, "job job-8");
	says((const char *)text.data, "\n3 further jobs were judged in part or not at all\n");
}

static void the_longest_attempt_counts(void **state)
{
	struct nt_coverage coverage = {.stepped = 40, .ranks = 4, .needed = 7};

	(void)state;
	nt_coverage_restart(&coverage);
	assert_int_equal(nt_coverage_windows(&coverage), 10);
	coverage.ranks = 4;
	coverage.needed = 7;
	coverage.stepped = 8;
	assert_int_equal(nt_coverage_windows(&coverage), 10);
	assert_false(nt_coverage_is_short(&coverage));
	coverage.stepped = 48;
	assert_int_equal(nt_coverage_windows(&coverage), 12);
}

#define CASE(f) cmocka_unit_test_teardown(f, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(too_few_steps_are_told_in_every_form),
		CASE(as_many_steps_as_are_asked_for_are_enough),
		CASE(a_long_healthy_job_is_silent_for_no_reason),
		CASE(one_rank_is_said_to_have_nobody_beside_it),
		CASE(few_peers_are_told_until_a_past_is_known),
		CASE(a_network_is_not_judged_until_its_past_is_known),
		CASE(a_long_list_of_collectives_does_not_bury_the_verdicts),
		CASE(ranks_of_which_none_is_like_another_are_said_to_have_no_peers),
		CASE(several_short_jobs_are_told_by_name_up_to_a_cap),
		CASE(the_longest_attempt_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
