/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Causes in the host that tracepoints show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "detect/incidents/host_cause.h"
#include "detect/model/incident.h"
#include "detect/model/rank.h"
#include "detect/thresholds/thresholds.h"

#define MS 1e6

static const char *cause_of(const struct nt_rank_evidence *evidence, enum nt_class class)
{
	enum nt_evidence_text cause;

	assert_int_equal(nt_host_cause(evidence, 100.0 * MS, &cause), class);
	return nt_evidence_text(cause);
}

static struct nt_rank_evidence traced(void)
{
	struct nt_rank_evidence evidence = {.weight = 5.0};

	evidence.value[NT_STEP_METRIC_SYSTEM] = evidence.peers[NT_STEP_METRIC_SYSTEM] = 300.0 * MS;
	return evidence;
}

static void a_quota_that_explains_the_run_queue_is_the_cause(void **state)
{
	struct nt_rank_evidence evidence = traced();

	(void)state;
	evidence.value[NT_STEP_METRIC_RUN_QUEUE] = 80.0 * MS;
	evidence.value[NT_STEP_METRIC_QUOTA] = 0.99 * NT_EXPLAINS * 80.0 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "cpu contention");
	evidence.value[NT_STEP_METRIC_QUOTA] = NT_EXPLAINS * 80.0 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "cpu quota");
	/* What the peers wait for their quotas, too, explains nothing. */
	evidence.peers[NT_STEP_METRIC_QUOTA] = 1.0 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "cpu contention");
}

/* Ranks of MPI yield while they wait for the slow one. */
static void peers_that_spin_do_not_hide_a_quota(void **state)
{
	struct nt_rank_evidence evidence = traced();

	(void)state;
	evidence.value[NT_STEP_METRIC_RUN_QUEUE] = 80.0 * MS;
	evidence.peers[NT_STEP_METRIC_RUN_QUEUE] = 60.0 * MS;
	evidence.value[NT_STEP_METRIC_QUOTA] = 75.0 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "cpu quota");
}

static void page_faults_with_reclaim_are_memory_pressure(void **state)
{
	struct nt_rank_evidence evidence = traced();

	(void)state;
	evidence.value[NT_STEP_METRIC_FAULT_WAIT] = 60.0 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "page faults");
	evidence.value[NT_STEP_METRIC_RECLAIM] = 0.5 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "page faults");
	evidence.value[NT_STEP_METRIC_RECLAIM] = 1.0 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "memory pressure");
	/* Reclaim alone, too. */
	evidence.value[NT_STEP_METRIC_FAULT_WAIT] = 0.0;
	assert_null(cause_of(&evidence, NT_CLASS_HOST));
	evidence.value[NT_STEP_METRIC_RECLAIM] = 50.0 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "memory pressure");
}

static void many_page_faults_with_reclaim_explain_the_run_queue(void **state)
{
	struct nt_rank_evidence evidence = traced();

	(void)state;
	evidence.value[NT_STEP_METRIC_RUN_QUEUE] = 70.0 * MS;
	evidence.value[NT_STEP_METRIC_FAULT_WAIT] = 9.0 * MS;
	evidence.value[NT_STEP_METRIC_RECLAIM] = 1.0 * MS;
	evidence.value[NT_STEP_METRIC_FAULTS] = NT_PAGE_FAULTS - 1.0;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "cpu contention");
	evidence.value[NT_STEP_METRIC_FAULTS] = NT_PAGE_FAULTS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "memory pressure");
	evidence.value[NT_STEP_METRIC_RUN_QUEUE] = 0.0;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "memory pressure");
	evidence.value[NT_STEP_METRIC_FAULT_WAIT] = 8.9 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "page faults");
}

static void slow_storage_is_a_device_or_network_files(void **state)
{
	struct nt_rank_evidence evidence = traced();

	(void)state;
	evidence.value[NT_STEP_METRIC_IO] = 70.0 * MS;
	evidence.value[NT_STEP_METRIC_READ] = evidence.peers[NT_STEP_METRIC_READ] = 1 << 20;
	assert_string_equal(cause_of(&evidence, NT_CLASS_STORAGE), "block device");
	evidence.value[NT_STEP_METRIC_FILE] = 34.9 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_STORAGE), "block device");
	evidence.value[NT_STEP_METRIC_FILE] = 35.0 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_STORAGE), "network file system");
	/* Who reads more has more to wait for. */
	evidence.value[NT_STEP_METRIC_READ] *= 2.0;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "data loading");
}

static void without_tracepoints_nothing_more_is_named(void **state)
{
	struct nt_rank_evidence evidence = {.weight = 5.0};

	(void)state;
	evidence.value[NT_STEP_METRIC_IO] = 70.0 * MS;
	evidence.value[NT_STEP_METRIC_READ] = evidence.peers[NT_STEP_METRIC_READ] = 1 << 20;
	assert_null(cause_of(&evidence, NT_CLASS_STORAGE));
	evidence = (struct nt_rank_evidence){.weight = 5.0};
	evidence.value[NT_STEP_METRIC_RUN_QUEUE] = 70.0 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "cpu contention");
	evidence.value[NT_STEP_METRIC_RUN_QUEUE] = 0.0;
	assert_null(cause_of(&evidence, NT_CLASS_HOST));
}

static void a_worker_that_reads_keeps_the_thread_waiting(void **state)
{
	struct nt_rank_evidence evidence = traced();

	(void)state;
	evidence.value[NT_STEP_METRIC_PROCESS_IO] = 49.0 * MS;
	assert_null(cause_of(&evidence, NT_CLASS_HOST));
	evidence.value[NT_STEP_METRIC_PROCESS_IO] = 50.0 * MS;
	assert_string_equal(cause_of(&evidence, NT_CLASS_HOST), "data loading");
}

static void evidence_is_added_as_far_as_there_is_room(void **state)
{
	struct nt_rank_evidence evidence = traced();
	struct nt_proposal proposal = {0};

	(void)state;
	evidence.value[NT_STEP_METRIC_QUOTA] = 5.0 * MS;
	evidence.peers[NT_STEP_METRIC_QUOTA] = 1.0 * MS;
	evidence.value[NT_STEP_METRIC_RECLAIM] = 7.0 * MS;
	nt_host_cause_add_evidence(&evidence, NT_EVIDENCE_TEXT_RATIO, 4, &proposal);
	assert_int_equal(proposal.evidences, 2);
	assert_int_equal(proposal.evidence[0].what, NT_EVIDENCE_TEXT_QUOTA_WAIT);
	assert_true(proposal.evidence[0].value == 5.0);
	assert_true(proposal.evidence[0].peers == 1.0);
	assert_int_equal(proposal.evidence[0].windows, 4);
	assert_int_equal(proposal.evidence[1].what, NT_EVIDENCE_TEXT_RECLAIM);
	proposal.evidences = NT_FINDING_MAX_EVIDENCE - 1;
	nt_host_cause_add_evidence(&evidence, NT_EVIDENCE_TEXT_RATIO, 4, &proposal);
	assert_int_equal(proposal.evidences, NT_FINDING_MAX_EVIDENCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quota_that_explains_the_run_queue_is_the_cause),
		cmocka_unit_test(peers_that_spin_do_not_hide_a_quota),
		cmocka_unit_test(page_faults_with_reclaim_are_memory_pressure),
		cmocka_unit_test(many_page_faults_with_reclaim_explain_the_run_queue),
		cmocka_unit_test(slow_storage_is_a_device_or_network_files),
		cmocka_unit_test(without_tracepoints_nothing_more_is_named),
		cmocka_unit_test(a_worker_that_reads_keeps_the_thread_waiting),
		cmocka_unit_test(evidence_is_added_as_far_as_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
