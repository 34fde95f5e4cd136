/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is said of incidents that are over. */
#include "tests/unit/detect/detect_lives.h"

/* Leads eight ranks until what `turn` does to them, from frame 30 to frame 70, has resolved. */
static void lead_until_resolved(void (*begin)(struct sim *sim),
				void (*turn)(struct sim *sim, bool on),
				struct nt_finding *ret_fault, struct nt_finding *ret_resolved,
				bool saved)
{
	const struct nt_rules rules = hasty_rules();
	struct nt_detect *detect = NULL;
	bool resolved = false;
	struct sim sim;

	assert_int_equal(nt_detect_new(&rules, 7, 3, &detect), 0);
	begin(&sim);
	for (uint32_t frame = 0; frame < 200 && !resolved; frame++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		if (frame == 30 || frame == 70)
			turn(&sim, frame == 30);
		if (saved)
			detect = reload(&rules, detect);
		assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
		for (size_t i = 0; i < findings && !resolved; i++) {
			resolved = finding[i].state == NT_INCIDENT_RESOLVED;
			*ret_resolved = finding[i];
		}
		if (resolved)
			assert_in_range(frame, 75, 199);
		if (frame != 69)
			continue;
		nt_detect_open(detect, &finding, &findings);
		assert_int_equal(findings, 1);
		*ret_fault = finding[0];
	}
	assert_true(resolved);
	/* Only what lies in them is looked at, not what they point to. */
	ret_fault->culprit = ret_resolved->culprit = NULL;
	nt_detect_free(detect);
	sim_free(&sim);
}

static void assert_near(double got, double want, double part)
{
	if (got >= want * (1.0 - part) && got <= want * (1.0 + part))
		return;
	print_error("got %g, want %g\n", got, want);
	fail();
}

static void slow_down_a_rank(struct sim *sim, bool on)
{
	slow(sim, 3, on ? 1.5 : 1.0 / 1.5);
}

static void slow_down_the_network(struct sim *sim, bool on)
{
	sim->comm[0].transfer *= on ? 3.0 : 1.0 / 3.0;
}

static void slow_down_all(struct sim *sim, bool on)
{
	for (uint32_t i = 0; i < sim->ranks; i++)
		slow(sim, i, on ? 1.5 : 1.0 / 1.5);
}

static void what_has_resolved_is_told_as_it_was_while_it_lasted(void **state)
{
	static const struct {
		void (*begin)(struct sim *sim);
		void (*turn)(struct sim *sim, bool on);
		enum nt_class class;
	} cases[] = {
		{begin_data, slow_down_a_rank, NT_CLASS_COMPUTE},
		{begin_network, slow_down_the_network, NT_CLASS_NETWORK},
		{begin_data, slow_down_all, NT_CLASS_JOB_WIDE},
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_finding fault, resolved;

		lead_until_resolved(cases[i / 2].begin, cases[i / 2].turn, &fault, &resolved,
				    i % 2);
		assert_int_equal(fault.class, cases[i / 2].class);
		assert_int_equal(resolved.class, fault.class);
		assert_int_equal(resolved.id, fault.id);
		assert_true(fault.slowdown > 1.1);
		assert_near(resolved.slowdown, fault.slowdown, 0.02);
		/* The time of the recovery is not charged. */
		assert_near(resolved.gpu_hours, fault.gpu_hours, 0.05);
		assert_int_equal(resolved.evidences, fault.evidences);
		for (size_t j = 0; j < fault.evidences; j++) {
			assert_ptr_equal(resolved.evidence[j].what, fault.evidence[j].what);
			assert_near(resolved.evidence[j].value, fault.evidence[j].value, 0.03);
			assert_near(resolved.evidence[j].peers, fault.evidence[j].peers, 0.03);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_resolved_is_told_as_it_was_while_it_lasted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
