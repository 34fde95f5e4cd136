/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an incident is held to have been, when it has gone. */
#include "tests/unit/detect/detect_pair.h"

#include "detect/incidents/fault.h"

static void what_has_gone_is_told_as_it_was_held(void **state)
{
	struct job *job = *state;
	struct nt_detect_incident incident = {
		.family = NT_FAMILY_STALL,
		.stands = true,
		.class = NT_CLASS_HANG,
		.cause = NT_EVIDENCE_TEXT_GC,
		.tier = NT_FRAME_T3,
		.cost = 1.5,
		.chance = 0.25,
		.slowdown = 3.5,
		.gpu_hours = 4.5,
		.confidence = 0.75,
		.completeness = 1.0,
		.evidence = {{.value = 6.5}},
		.evidences = 1,
	};
	const struct nt_detect_incident was = incident;

	nt_fault_apply(&incident);
	assert_memory_equal(&incident, &was, sizeof(was));
	nt_fault_hold(job->detect, &incident);
	incident = (struct nt_detect_incident){
		.family = NT_FAMILY_STALL,
		.completeness = 0.5,
		.fault = incident.fault,
	};
	/* It does not stand, and so it is held as before. */
	nt_fault_hold(job->detect, &incident);
	nt_fault_apply(&incident);
	assert_int_equal(incident.class, NT_CLASS_HANG);
	assert_int_equal(incident.cause, NT_EVIDENCE_TEXT_GC);
	assert_int_equal(incident.tier, NT_FRAME_T3);
	assert_true(incident.cost == 1.5);
	assert_true(incident.chance == 0.25);
	assert_true(incident.slowdown == 3.5);
	assert_true(incident.gpu_hours == 4.5);
	/* How much was seen is of all its time. */
	assert_true(incident.confidence == 0.375);
	assert_true(incident.completeness == 0.5);
	assert_true(incident.evidence[0].value == 6.5);
	assert_int_equal(incident.evidences, 1);
	assert_true(incident.fault.worst_cost == 1.5);
}

/* Half of what the fault is held to cost, and half of its worst: only such a window is the fault. */
static void a_window_of_the_recovery_is_not_the_fault(void **state)
{
	static const struct {
		double cost, window_cost;
		bool stands, is_bad, counts;
	} then[] = {
		{0.5, 0.4, true, true, true},    {0.5, 0.39, true, false, true},
		{0.5, 0.25, true, false, true},  {0.5, 0.24, true, false, false},
		{0.5, 0.4, false, false, false}, {1.0, 0.49, true, false, false},
		{0.02, 0.02, true, false, true}, {0.02, 0.0149, true, false, false},
	};
	struct job *job = *state;

	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		struct nt_detect_incident incident = {
			.family = NT_FAMILY_NETWORK,
			.cost = then[i].cost,
			.window_cost = then[i].window_cost,
			.stands = then[i].stands,
			.gpu_hours = 2.0,
			.slowdown = 2.0,
			.fault = {.held = true,
				  .worst_cost = 0.8,
				  .gpu_hours = 1.0,
				  .slowdown = 1.0},
		};

		nt_fault_hold(job->detect, &incident);
		assert_true(incident.fault.gpu_hours == (then[i].counts ? 2.0 : 1.0));
		assert_true(incident.fault.slowdown == (then[i].is_bad ? 2.0 : 1.0));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(what_has_gone_is_told_as_it_was_held),
		JOB_TEST(a_window_of_the_recovery_is_not_the_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
