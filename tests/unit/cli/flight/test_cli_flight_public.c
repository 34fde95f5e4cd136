/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recorded dumps of jobs with known culprits: see tests/data/README.md. Some are left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cli/flight/flight.h"
#include "cli/replay/replay.h"
#include "cli/report/remediation.h"
#include "cli/report/report.h"

enum {
	JOB = 16,
};

/* The dumps of the ranks of which the bit in `without` is not set. */
static void read_job(const char *name, uint32_t without, struct nt_trace **ret_trace,
		     struct nt_judgement **ret_judgement)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_trace_error error = {0};
	const char *paths[JOB];
	char path[JOB][64];
	size_t n = 0;

	for (int i = 0; i < JOB; i++) {
		(void)snprintf(path[i], sizeof(path[i]), "tests/data/flight/%s/_dump_%d.gz", name,
			       i);
		if (!(without >> i & 1))
			paths[n++] = path[i];
	}
	if (nt_trace_read_flight(paths, n, ret_trace, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(nt_judgement_new(ret_judgement), 0);
	assert_int_equal(nt_replay_trace(*ret_trace, &rules, *ret_judgement), 0);
}

static void assert_two(const char *name, uint32_t without, const char *cause, uint32_t one,
		       uint32_t other)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_wire_incident *incident;

	read_job(name, without, &trace, &judgement);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, "hang");
	assert_string_equal(incident->cause, cause);
	assert_int_equal(incident->culprits, one == other ? 1 : 2);
	assert_int_equal(incident->culprit[0].rank, one);
	assert_int_equal(incident->culprit[incident->culprits - 1].rank, other);
	assert_null(strstr(nt_remediation_find(incident), "All "));
}

static void ranks_with_failed_gpus_are_named(void **state)
{
	(void)state;
	assert_two("gpu_error_1st", 0, "device or link", 12, 14);
}

static void ranks_whose_interpreter_was_locked_are_named(void **state)
{
	(void)state;
	assert_two("lock_gil_1st", 0, "laggard", 9, 14);
}

static void innocent_ranks_without_a_dump_are_not_named(void **state)
{
	(void)state;
	assert_two("gpu_error_1st", 1 << 13, "device or link", 12, 14);
	assert_two("gpu_error_1st", 0xf, "device or link", 12, 14);
	assert_two("lock_gil_1st", 0xff, "laggard", 9, 14);
	assert_two("lock_gil_1st", 1 << 8 | 1 << 10, "laggard", 9, 14);
}

static void culprits_without_a_dump_are_named_as_such(void **state)
{
	(void)state;
	assert_two("gpu_error_1st", 1 << 12 | 1 << 14, "no dump", 12, 14);
	assert_two("lock_gil_1st", 1 << 9 | 1 << 14, "no dump", 9, 14);
}

/* The stage of rank 0 waits behind its receives from the stage of 9 and 14: that explains it. */
static void a_rank_without_a_dump_whose_peers_wait_for_others_is_not_named(void **state)
{
	(void)state;
	assert_two("gpu_error_1st", 1 | 1 << 12 | 1 << 14, "no dump", 12, 14);
	assert_two("lock_gil_1st", 1 | 1 << 9 | 1 << 14, "no dump", 9, 14);
}

/* The other one has no dump: the report says so. */
static void one_of_two_culprits_is_named_and_the_other_is_noted(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_report report = {.source = "dumps"};
	nt_autobuf struct nt_buf text = {0};

	(void)state;
	assert_two("gpu_error_1st", 1 << 14, "device or link", 12, 12);
	assert_two("lock_gil_1st", 1 << 14, "laggard", 9, 9);
	read_job("lock_gil_1st", 1 << 14, &trace, &judgement);
	nt_report_trace(&report, trace, judgement);
	assert_int_equal(nt_report_text(&report, &text), 0);
	assert_int_equal(nt_buf_append(&text, "", 1), 0);
	assert_non_null(strstr((const char *)text.data, "\n15 of 16 ranks were given: incomplete\n"
							"no dump of rank 14: "));
}

/* Four ranks over Gloo. */
static void assert_gloo(const char *name, const char *class, const char *cause, uint32_t rank)
{
	const struct nt_rules rules = nt_rules_default();
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error = {0};
	const struct nt_wire_incident *incident;
	const char *paths[4];
	char path[4][64];

	for (int i = 0; i < 4; i++) {
		(void)snprintf(path[i], sizeof(path[i]), "tests/data/flight/%s/fr_rank_%d.gz", name,
			       i);
		paths[i] = path[i];
	}
	if (nt_trace_read_flight(paths, 4, &trace, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	incident = &judgement->judged[0].incident;
	assert_string_equal(incident->class, class);
	assert_string_equal(incident->cause, cause);
	assert_int_equal(incident->culprits, 1);
	assert_int_equal(incident->culprit[0].rank, rank);
}

static void uneven_all_gathers_of_a_real_job_are_mismatches(void **state)
{
	(void)state;
	assert_gloo("gloo_coalesced", "mismatch", "", 2);
	assert_gloo("gloo_uneven", "mismatch", "", 2);
}

static void a_real_status_that_lags_behind_accuses_nobody(void **state)
{
	(void)state;
	assert_gloo("gloo_pairs", "hang", "laggard", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_with_failed_gpus_are_named),
		cmocka_unit_test(ranks_whose_interpreter_was_locked_are_named),
		cmocka_unit_test(innocent_ranks_without_a_dump_are_not_named),
		cmocka_unit_test(culprits_without_a_dump_are_named_as_such),
		cmocka_unit_test(a_rank_without_a_dump_whose_peers_wait_for_others_is_not_named),
		cmocka_unit_test(uneven_all_gathers_of_a_real_job_are_mismatches),
		cmocka_unit_test(a_real_status_that_lags_behind_accuses_nobody),
		cmocka_unit_test(one_of_two_culprits_is_named_and_the_other_is_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
