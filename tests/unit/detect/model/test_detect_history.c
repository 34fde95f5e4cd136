/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the job's steps were before an onset, and are since then; and what that costs. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/model/history.h"

static void add(struct nt_history *history, uint32_t from, uint32_t until, double step_ns)
{
	for (uint32_t i = from; i < until; i++)
		nt_history_add(history, &(const struct nt_history_round){.start_ns = 100ull * i,
									 .steps = 2.0,
									 .step_ns = step_ns,
									 .calls = 6.0});
}

static void what_was_before_is_the_median_of_the_rounds_before(void **state)
{
	struct nt_history history = {0};

	(void)state;
	assert_true(nt_history_before(&history, 1000) == 0.0);
	add(&history, 0, 2, 10.0);
	assert_true(nt_history_before(&history, 1000) == 0.0);
	add(&history, 2, 3, 30.0);
	assert_true(nt_history_before(&history, 1000) == 10.0);
	/* The round that begins with the onset is not before it. */
	assert_true(nt_history_before(&history, 200) == 0.0);
	assert_true(nt_history_before(&history, 201) == 10.0);
	add(&history, 3, 5, 30.0);
	assert_true(nt_history_before(&history, 1000) == 30.0);
}

static void only_the_last_rounds_before_count(void **state)
{
	struct nt_history history = {0};

	(void)state;
	add(&history, 0, 30, 10.0);
	add(&history, 30, 30 + NT_HISTORY_BEFORE, 20.0);
	add(&history, 60, 70, 50.0);
	assert_true(nt_history_before(&history, 6000) == 20.0);
}

static void what_is_since_then_is_summed_up(void **state)
{
	struct nt_history history = {0};
	struct nt_history_sum sum;

	(void)state;
	add(&history, 0, 10, 10.0);
	add(&history, 10, 14, 15.0);
	sum = nt_history_since(&history, 1000);
	assert_true(sum.steps == 8.0 && sum.step_ns == 120.0);
	sum = nt_history_since(&history, 1001);
	assert_true(sum.steps == 6.0 && sum.step_ns == 90.0);
	sum = nt_history_since(&history, 1301);
	assert_true(sum.steps == 0.0 && sum.step_ns == 0.0);
}

static void the_oldest_rounds_are_forgotten_and_their_steps_still_count(void **state)
{
	struct nt_history history = {0};

	(void)state;
	add(&history, 0, NT_HISTORY_ROUNDS + 5, 10.0);
	assert_int_equal(history.count, NT_HISTORY_ROUNDS);
	assert_true(history.steps == 2.0 * (NT_HISTORY_ROUNDS + 5));
	assert_true(nt_history_since(&history, 0).steps == 2.0 * NT_HISTORY_ROUNDS);
	/* Of the rounds up to the seventh two are left, and that is too few. */
	assert_true(nt_history_before(&history, 601) == 0.0);
	assert_true(nt_history_before(&history, 701) == 10.0);
	assert_int_equal(nt_history_start(&history, 0), 100 * (NT_HISTORY_ROUNDS + 4));
	assert_int_equal(nt_history_start(&history, NT_HISTORY_ROUNDS - 1), 500);
	assert_int_equal(nt_history_start(&history, NT_HISTORY_ROUNDS), 500);
	nt_history_forget(&history, 0);
	assert_true(nt_history_before(&history, 100000) == 0.0);
	assert_int_equal(nt_history_start(&history, 0), 0);
	assert_true(history.steps == 2.0 * (NT_HISTORY_ROUNDS + 5));
}

static void three_of_four_rounds_took_longer(void **state)
{
	struct nt_history history = {0};

	(void)state;
	assert_true(nt_history_low(&history, 0) == 0.0);
	add(&history, 0, 10, 10.0);
	add(&history, 10, 12, 20.0);
	add(&history, 12, 19, 30.0);
	assert_true(nt_history_low(&history, 0) == 10.0);
	/* Nine of them: two short ones are less than a fourth. */
	assert_true(nt_history_low(&history, 1000) == 30.0);
	assert_true(nt_history_low(&history, 900) < 30.0);
	assert_true(nt_history_low(&history, 1900) == 0.0);
}

static void rounds_that_were_as_long_before_the_evidence_are_of_the_fault(void **state)
{
	struct nt_history history = {0};

	(void)state;
	add(&history, 0, 30, 10.0);
	add(&history, 30, 46, 15.0);
	assert_true(nt_history_onset(&history, 3600, 0) == 3000);
	assert_true(nt_history_onset(&history, 3600, 3300) == 3600);
	assert_true(nt_history_onset(&history, 3600, 3200) == 3600);
	assert_true(nt_history_onset(&history, 3000, 0) == 3000);
	/* A healthy round among them does not end it. */
	history = (struct nt_history){0};
	add(&history, 0, 30, 10.0);
	add(&history, 30, 33, 15.0);
	add(&history, 33, 34, 10.0);
	add(&history, 34, 46, 15.0);
	assert_true(nt_history_onset(&history, 3600, 0) == 3000);
}

static void a_stall_or_noise_before_the_evidence_is_not_of_the_fault(void **state)
{
	struct nt_history history = {0};

	(void)state;
	add(&history, 0, 26, 10.0);
	add(&history, 26, 27, 500.0);
	add(&history, 27, 30, 10.0);
	add(&history, 30, 40, 15.0);
	assert_true(nt_history_onset(&history, 3000, 0) == 3000);
	history = (struct nt_history){0};
	add(&history, 0, 20, 10.0);
	add(&history, 20, 40, 10.05);
	assert_true(nt_history_onset(&history, 3000, 0) == 3000);
	/* Nothing is left to tell what was before. */
	history = (struct nt_history){0};
	add(&history, 0, 2, 10.0);
	add(&history, 2, 10, 15.0);
	assert_true(nt_history_onset(&history, 600, 0) == 600);
}

static void a_few_rounds_that_are_long_by_chance_are_not_of_the_fault(void **state)
{
	static const double random[] = {9.0, 13.0, 8.0, 11.0, 12.0, 7.0, 10.0, 14.0, 8.0, 11.0};
	struct nt_history history = {0};

	(void)state;
	/* Lengths that vary by a fifth, of which the last three before the evidence are long. */
	for (uint32_t i = 0; i < 30; i++)
		add(&history, i, i + 1, random[i % 10]);
	add(&history, 30, 33, 13.0);
	for (uint32_t i = 33; i < 46; i++)
		add(&history, i, i + 1, 1.15 * random[i % 10]);
	assert_true(nt_history_onset(&history, 3300, 0) == 3300);
	/* A change beyond that is one. */
	history = (struct nt_history){0};
	for (uint32_t i = 0; i < 46; i++)
		add(&history, i, i + 1, (i < 30 ? 1.0 : 2.0) * random[i % 10]);
	assert_true(nt_history_onset(&history, 3600, 0) == 3000);
}

static void a_stall_before_counts_as_much_as_one_since(void **state)
{
	struct nt_history history = {0};

	(void)state;
	assert_true(nt_history_before_mean(&history, 1000, 100.0) == 0.0);
	add(&history, 0, 2, 10.0);
	assert_true(nt_history_before_mean(&history, 1000, 100.0) == 0.0);
	add(&history, 2, 19, 10.0);
	add(&history, 19, 20, 500.0);
	add(&history, 20, 25, 15.0);
	assert_true(fabs(nt_history_before_mean(&history, 2000, 30.0) - 11.0) < 1e-9);
	assert_true(fabs(nt_history_before_mean(&history, 2000, INFINITY) - 34.5) < 1e-9);
	assert_true(nt_history_before_mean(&history, 1900, 30.0) == 0.0);
}

/* Rounds 16 to 24 of 35 take longer. */
static void a_stretch_of_long_rounds_is_found(void **state)
{
	struct nt_history_stretch stretch;
	struct nt_history history = {0};

	(void)state;
	assert_false(nt_history_find_stretch(&history, 0.1, &stretch));
	add(&history, 0, 35, 10.0);
	assert_false(nt_history_find_stretch(&history, 0.1, &stretch));
	history = (struct nt_history){0};
	add(&history, 0, 16, 10.0);
	add(&history, 16, 25, 16.0);
	add(&history, 25, 35, 10.0);
	assert_true(nt_history_find_stretch(&history, 0.1, &stretch));
	assert_int_equal(stretch.onset_ns, 1600);
	assert_int_equal(stretch.rounds, 9);
	assert_true(fabs(stretch.step_ns - 16.0) < 1e-9 && fabs(stretch.usual_ns - 10.0) < 1e-9);
	assert_true(fabs(stretch.lost - 54.0 / 404.0) < 1e-9);
	/* A warm-up is none. */
	history = (struct nt_history){0};
	add(&history, 0, 9, 16.0);
	add(&history, 9, 35, 10.0);
	assert_false(nt_history_find_stretch(&history, 0.1, &stretch));
	/* Nor are lengths that vary as much elsewhere. */
	history = (struct nt_history){0};
	for (uint32_t i = 0; i < 35; i++)
		add(&history, i, i + 1, i % 2 || (i > 16 && i < 24) ? 16.0 : 10.0);
	assert_false(nt_history_find_stretch(&history, 0.1, &stretch));
}

static void long_steps_before_many_short_ones_are_another_phase(void **state)
{
	struct nt_history history = {0};

	(void)state;
	add(&history, 0, 30, 18.0);
	add(&history, 30, 40, 10.0);
	add(&history, 40, 50, 14.0);
	assert_true(nt_history_onset(&history, 4200, 0) == 4000);
	/* A pause of nine rounds may be one of the fault. */
	history = (struct nt_history){0};
	add(&history, 0, 5, 10.0);
	add(&history, 5, 31, 14.0);
	add(&history, 31, 40, 10.0);
	add(&history, 40, 50, 14.0);
	assert_true(nt_history_onset(&history, 4200, 0) < 3100);
}

static void steps_that_were_not_counted_are_told_by_their_calls(void **state)
{
	struct nt_history history = {0};

	(void)state;
	assert_true(nt_history_unseen(&history, 0, false) == 0.0);
	/* The step is not known yet: one of them is taken for five. */
	nt_history_add(&history,
		       &(const struct nt_history_round){
			       .start_ns = 0, .steps = 5.0, .step_ns = 2.0, .calls = 9.0});
	assert_true(nt_history_unseen(&history, 100, false) == 0.0);
	add(&history, 1, 5, 10.0);
	assert_true(nt_history_unseen(&history, 100, false) == 3.0);
	/* And one is lost: its calls come with the next. */
	nt_history_add(&history,
		       &(const struct nt_history_round){
			       .start_ns = 500, .steps = 2.0, .step_ns = 10.0, .calls = 9.0});
	assert_true(nt_history_unseen(&history, 100, false) == 4.0);
	/* No more than there was time for: what is called for ahead comes later. */
	history.calls += 200.0;
	assert_true(fabs(nt_history_unseen(&history, 100, true) - 11.0) < 1e-9);
	history.begin_ns = 70;
	assert_true(fabs(nt_history_unseen(&history, 100, true) - 4.0) < 1e-9);
	nt_history_forget(&history, 0);
	assert_true(nt_history_unseen(&history, 0, false) == 0.0);
}

/* ---- GPU-hours ------------------------------------------------------------------------------ */

static void assert_hours(const struct nt_detect *detect, size_t index, double lost_ms, double part)
{
	const struct nt_finding *finding = sim_firing(detect, index);
	const double hours = 8.0 * lost_ms / 3600e3;

	assert_non_null(finding);
	if (fabs(finding->gpu_hours - hours) > part * hours)
		print_error("%g GPU hours, not %g\n", finding->gpu_hours, hours);
	assert_true(fabs(finding->gpu_hours - hours) <= part * hours);
}

/* Every rank needs 80 ms of own work and 10 ms for the rest; rank 3 needs `factor` of the 80. */
static double pass_slow(struct sim *sim, struct nt_detect *detect, double factor, uint32_t frames)
{
	const double was = sim->rank[3].device, host = sim->rank[3].host;

	sim->rank[3].device = was * factor;
	sim->rank[3].host = host * factor;
	sim_pass(sim, detect, frames);
	sim->rank[3].device = was;
	sim->rank[3].host = host;
	return (factor - 1.0) * (was + host) / SIM_MS * sim->steps * frames;
}

static void a_ramp_is_charged_as_it_grows(void **state)
{
	struct nt_detect *detect = sim_detect();
	double lost_ms = 0.0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 11);
	sim.jitter = 0.002;
	sim_pass(&sim, detect, 60);
	for (int i = 1; i <= 60; i++)
		lost_ms += pass_slow(&sim, detect, 1.0 + i * 0.01, 1);
	assert_names_rank(sim_firing(detect, 0), 3);
	assert_null(sim_firing(detect, 1));
	assert_hours(detect, 0, lost_ms, 0.05);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_fault_that_takes_turns_is_charged_while_it_is_there(void **state)
{
	struct nt_detect *detect = sim_detect();
	double lost_ms = 0.0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 12);
	sim.jitter = 0.002;
	sim_pass(&sim, detect, 60);
	for (int i = 0; i < 40; i++) {
		lost_ms += pass_slow(&sim, detect, 1.5, 3);
		sim_pass(&sim, detect, 2);
	}
	assert_names_rank(sim_firing(detect, 0), 3);
	assert_null(sim_firing(detect, 1));
	assert_hours(detect, 0, lost_ms, 0.05);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_fault_from_the_start_is_charged_from_the_first_window(void **state)
{
	struct nt_detect *detect = sim_detect();
	double lost_ms;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 13);
	sim.jitter = 0.002;
	lost_ms = pass_slow(&sim, detect, 1.5, 100);
	assert_hours(detect, 0, lost_ms, 0.05);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Jitter makes one of eight slower than its peers anyhow: only what the job lost is charged. */
static void what_the_job_did_not_lose_is_not_charged(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	double hours;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 14);
	sim.jitter = 0.002;
	sim_pass(&sim, detect, 60);
	/* The other ranks became faster at the same time, so that the step is as long as it was. */
	for (uint32_t i = 0; i < 8; i++) {
		sim.rank[i].device *= i == 3 ? 1.0 : 0.7;
		sim.rank[i].host *= i == 3 ? 1.0 : 0.7;
	}
	sim.rank[3].device *= 1.1;
	sim.rank[3].host *= 1.1;
	sim_pass(&sim, detect, 100);
	finding = sim_firing(detect, 0);
	assert_non_null(finding);
	assert_names_rank(finding, 3);
	hours = 8.0 * 8.0 * sim.steps * 100.0 / 3600e3;
	assert_true(fabs(finding->gpu_hours - hours) <= 0.05 * hours);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void another_normal_makes_the_time_before_no_measure(void **state)
{
	struct nt_rules rules = nt_rules_default();
	struct nt_detect *detect = NULL;
	double before, per_window;
	struct sim sim;

	(void)state;
	rules.new_normal_ns = 60ull * SIM_SECOND;
	assert_int_equal(nt_detect_new(&rules, 1, 1, &detect), 0);
	sim_init(&sim, 8, 15);
	sim.jitter = 0.002;
	sim_pass(&sim, detect, 60);
	sim.rank[3].device *= 1.5;
	sim.rank[3].host *= 1.5;
	sim_pass(&sim, detect, 60);
	assert_names_rank(sim_firing(detect, 0), 3);
	/* The user doubles the batch; in time that is normal, and the fault is still there. */
	for (uint32_t i = 0; i < 8; i++) {
		sim.rank[i].device *= 2.0;
		sim.rank[i].host *= 2.0;
	}
	sim_pass(&sim, detect, 200);
	assert_names_rank(sim_firing(detect, 0), 3);
	assert_null(sim_firing(detect, 1));
	before = sim_firing(detect, 0)->gpu_hours;
	sim_pass(&sim, detect, 50);
	/* 80 ms of 250 a step. */
	per_window = 8.0 * 80.0 * sim.steps / 3600e3;
	assert_true(fabs(sim_firing(detect, 0)->gpu_hours - before - 50.0 * per_window) <
		    0.05 * 50.0 * per_window);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Rounds of two and of three steps by turns; `odd`, `even`: the calls of each. */
static void add_bursts(struct nt_history *history, uint32_t from, uint32_t until, double even,
		       double odd)
{
	for (uint32_t i = from; i < until; i++)
		nt_history_add(history,
			       &(const struct nt_history_round){.start_ns = 100ull * i,
								.steps = i % 2 ? 3.0 : 2.0,
								.step_ns = 10.0,
								.calls = i % 2 ? odd : even});
}

static void calls_that_come_in_bursts_are_of_the_same_steps(void **state)
{
	struct nt_history history = {0};

	(void)state;
	/* The median round holds all calls before the onset, and none since. */
	add_bursts(&history, 0, 19, 105.0, 0.0);
	add_bursts(&history, 20, 41, 0.0, 105.0);
	assert_true(nt_history_same_unit(&history, 2000));
	/* Steps of half as many calls are others. */
	history = (struct nt_history){0};
	add_bursts(&history, 0, 19, 105.0, 0.0);
	add_bursts(&history, 20, 41, 0.0, 52.0);
	assert_false(nt_history_same_unit(&history, 2000));
	history = (struct nt_history){0};
	assert_true(nt_history_same_unit(&history, 2000));
}

static void faults_that_last_at_once_share_what_the_job_lost(void **state)
{
	struct nt_detect *detect = sim_detect();
	double healthy_ns, lost_ns, told_ns;
	uint64_t onset_ns;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 16);
	sim.jitter = 0.002;
	sim_pass(&sim, detect, 20);
	onset_ns = sim.now_ns;
	sim_pass(&sim, detect, 40);
	healthy_ns = (double)(sim.now_ns - onset_ns) / 40.0;
	onset_ns = sim.now_ns;
	sim.rank[3].device *= 1.3;
	sim_pass(&sim, detect, 40);
	/* From then on the job waits for the slower of the two alone. */
	sim.rank[5].device *= 1.5;
	sim_pass(&sim, detect, 60);
	lost_ns = (double)(sim.now_ns - onset_ns) - 100.0 * healthy_ns;
	assert_non_null(sim_firing(detect, 1));
	assert_null(sim_firing(detect, 2));
	told_ns = (sim_firing(detect, 0)->gpu_hours + sim_firing(detect, 1)->gpu_hours) * 3600e9 /
		  8.0;
	assert_true(fabs(told_ns - lost_ns) <= 0.05 * lost_ns);
	assert_true(sim_firing(detect, 1)->gpu_hours > 0.0);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Who is always slow costs less than its excess where the others keep each other waiting as well. */
static void what_all_would_wait_for_anyhow_is_not_charged_or_makes_it_unknown(void **state)
{
	static const double jitter[] = {0.01, 0.06};
	double hours[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		sim_init(&sim, 8, 17);
		sim.jitter = jitter[i];
		(void)pass_slow(&sim, detect, 1.5, 100);
		assert_names_rank(sim_firing(detect, 0), 3);
		hours[i] = sim_firing(detect, 0)->gpu_hours;
		nt_detect_free(detect);
		sim_free(&sim);
	}
	assert_true(hours[0] > 0.0);
	assert_true(hours[1] < 0.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_before_is_the_median_of_the_rounds_before),
		cmocka_unit_test(only_the_last_rounds_before_count),
		cmocka_unit_test(what_is_since_then_is_summed_up),
		cmocka_unit_test(the_oldest_rounds_are_forgotten_and_their_steps_still_count),
		cmocka_unit_test(three_of_four_rounds_took_longer),
		cmocka_unit_test(rounds_that_were_as_long_before_the_evidence_are_of_the_fault),
		cmocka_unit_test(a_stall_or_noise_before_the_evidence_is_not_of_the_fault),
		cmocka_unit_test(a_few_rounds_that_are_long_by_chance_are_not_of_the_fault),
		cmocka_unit_test(a_stall_before_counts_as_much_as_one_since),
		cmocka_unit_test(a_stretch_of_long_rounds_is_found),
		cmocka_unit_test(long_steps_before_many_short_ones_are_another_phase),
		cmocka_unit_test(steps_that_were_not_counted_are_told_by_their_calls),
		cmocka_unit_test(calls_that_come_in_bursts_are_of_the_same_steps),
		cmocka_unit_test(faults_that_last_at_once_share_what_the_job_lost),
		cmocka_unit_test(what_all_would_wait_for_anyhow_is_not_charged_or_makes_it_unknown),
		cmocka_unit_test(a_ramp_is_charged_as_it_grows),
		cmocka_unit_test(a_fault_that_takes_turns_is_charged_while_it_is_there),
		cmocka_unit_test(a_fault_from_the_start_is_charged_from_the_first_window),
		cmocka_unit_test(what_the_job_did_not_lose_is_not_charged),
		cmocka_unit_test(another_normal_makes_the_time_before_no_measure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
