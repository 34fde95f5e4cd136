/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The job's step against its own past: permanent, a ramp, over again, and again; each is one
 * incident that tells how much, from which step on and for how many, and that ends once.
 */
#include "tests/unit/detect/detect_frames.h"

enum {
	BEFORE = 60, /* windows */
	LASTS = 150,
	AFTER = 250,
	MOST = 8,
};

struct life {
	uint64_t id;
	uint32_t opened, fired, resolved; /* windows, how often */
	struct nt_finding last;
	double step_ms, step_was_ms, steps, first;
};

struct lives {
	struct life life[MOST];
	size_t count;
};

static const struct nt_finding_evidence *find_row(const struct nt_finding *finding,
						  const char *what)
{
	for (size_t i = 0; i < finding->evidences; i++)
		if (strcmp(finding->evidence[i].what, what) == 0)
			return &finding->evidence[i];
	return NULL;
}

static void note(struct lives *lives, const struct nt_finding *finding)
{
	const struct nt_finding_evidence *step, *steps;
	struct life *life = NULL;

	/* What never fires is not told. */
	if (finding->state == NT_INCIDENT_PENDING)
		return;
	for (size_t i = 0; i < lives->count; i++)
		if (lives->life[i].id == finding->id)
			life = &lives->life[i];
	if (!life) {
		if (finding->state == NT_INCIDENT_RESOLVED && !finding->seen_ns)
			return;
		assert_true(lives->count < MOST);
		life = &lives->life[lives->count++];
		life->id = finding->id;
	}
	life->fired +=
		life->last.state != NT_INCIDENT_FIRING && finding->state == NT_INCIDENT_FIRING;
	life->resolved += finding->state == NT_INCIDENT_RESOLVED;
	life->last = *finding;
	step = find_row(finding, "step time");
	steps = find_row(finding, "steps concerned, and steps seen before");
	assert_true(!step == !steps);
	if (!step)
		return;
	life->step_ms = step->value;
	life->step_was_ms = step->peers;
	life->steps = steps->value;
	life->first = steps->peers;
}

static void pass(struct sim *sim, struct nt_detect *detect, uint32_t frames, struct lives *lives)
{
	for (uint32_t i = 0; i < frames; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, sim_next(sim), &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++)
			note(lives, &finding[j]);
	}
}

/* Which of its ranks are slower, and what of them. */
enum cause {
	ALL_WORK,
	TRANSFER, /* the communicator is named */
	ALL_UNSEEN, /* the device's, where hosts run ahead: the step alone tells */
	ONE_RANK,
	CAUSES,
};

static void scale(struct sim *sim, enum cause cause, double factor)
{
	for (uint32_t i = 0; i < sim->ranks; i++) {
		if (cause == ONE_RANK && i != 5)
			continue;
		if (cause == TRANSFER)
			continue;
		sim->rank[i].device = 70.0 * SIM_MS * factor;
		if (cause != ALL_UNSEEN)
			sim->rank[i].host = 10.0 * SIM_MS * factor;
	}
	/* As much as the work would grow by. */
	if (cause == TRANSFER)
		sim->comm[0].transfer = 5.0 * SIM_MS + 40.0 * SIM_MS * (factor - 1.0);
}

static void start(struct sim *sim, enum cause cause, double jitter, uint64_t seed)
{
	sim_init(sim, 8, seed);
	sim->jitter = jitter;
	if (cause == ALL_UNSEEN)
		for (uint32_t i = 0; i < sim->ranks; i++)
			sim->rank[i].tier = NT_FRAME_T1;
}

static void finish(struct sim *sim, struct nt_detect *detect)
{
	nt_detect_free(detect);
	sim_free(sim);
}

static void assert_near(double got, double want, double part, const char *what, int line)
{
	if (fabs(got - want) > part * want)
		fail_msg("line %d: %s is %g, not %g", line, what, got, want);
}

#define NEAR(got, want, part) assert_near(got, want, part, #got, __LINE__)

static void print_lives(const struct lives *lives, const struct sim *sim)
{
	for (size_t i = 0; i < lives->count; i++) {
		const struct nt_finding *f = &lives->life[i].last;

		print_error("%s from %.0f s ago to %.0f s ago, seen %.0f s ago, x%.3f, fired %u, "
			    "resolved %u: step %.1f of %.1f ms, %.0f steps after %.0f\n",
			    nt_class_name(f->class), (double)(sim->now_ns - f->since_ns) / 1e9,
			    f->until_ns ? (double)(sim->now_ns - f->until_ns) / 1e9 : -1.0,
			    (double)(sim->now_ns - f->seen_ns) / 1e9, f->slowdown,
			    lives->life[i].fired, lives->life[i].resolved, lives->life[i].step_ms,
			    lives->life[i].step_was_ms, lives->life[i].steps, lives->life[i].first);
	}
}

/* One incident, and so many ends of it. */
static void assert_one(const struct lives *lives, uint32_t ends, enum cause cause, double jitter,
		       const struct sim *sim)
{
	if (lives->count == 1 && lives->life[0].resolved == ends)
		return;
	print_lives(lives, sim);
	fail_msg("cause %d, jitter %g: %zu incidents", cause, jitter, lives->count);
}

/* Who is named, where anybody can be. */
static void assert_names(const struct life *life, enum cause cause)
{
	const struct nt_finding *finding = &life->last;

	assert_int_equal(life->fired, 1);
	assert_int_equal(finding->class, cause == ONE_RANK   ? NT_CLASS_COMPUTE
					 : cause == TRANSFER ? NT_CLASS_NETWORK
							     : NT_CLASS_JOB_WIDE);
	if (finding->class == NT_CLASS_JOB_WIDE)
		assert_int_equal(finding->severity, NT_SEVERITY_INFO);
}

static const double jitters[] = {0.002, 0.02};

enum {
	JITTERS = sizeof(jitters) / sizeof(jitters[0]),
	SEEDS = 5,
};

/* Steps of a window, half a second of them. */
static double steps_of(const struct sim *sim, uint32_t windows)
{
	return (double)windows * sim->steps;
}

static double mean_step(const struct sim *sim, uint64_t since_ns, uint32_t windows)
{
	return (double)(sim->now_ns - since_ns) / 1e6 / steps_of(sim, windows);
}

static void a_permanent_one_is_told_once_and_stays(void **state)
{
	(void)state;
	for (int i = 0; i < CAUSES * JITTERS * SEEDS; i++) {
		const enum cause cause = (enum cause)(i % CAUSES);
		const double jitter = jitters[i / CAUSES % JITTERS];
		struct nt_detect *detect;
		struct lives lives = {0};
		const struct life *life = &lives.life[0];
		uint64_t began;
		double healthy;
		struct sim sim;

		/* How long a transfer takes where ranks come late is not for here. */
		if (cause == TRANSFER && jitter > 0.01)
			continue;
		detect = sim_detect();
		start(&sim, cause, jitter, 100 + (uint64_t)i);
		began = sim.now_ns;
		pass(&sim, detect, BEFORE, &lives);
		assert_int_equal(lives.count, 0);
		healthy = mean_step(&sim, began, BEFORE);
		began = sim.now_ns;
		scale(&sim, cause, 1.1);
		pass(&sim, detect, 1000, &lives);
		assert_one(&lives, 0, cause, jitter, &sim);
		assert_names(life, cause);
		assert_int_equal(life->resolved, 0);
		NEAR(life->step_was_ms, healthy, 0.01);
		if (fabs(life->step_ms - mean_step(&sim, began, 1000)) > 0.7)
			print_lives(&lives, &sim);
		NEAR(life->step_ms, mean_step(&sim, began, 1000), 0.01);
		NEAR(life->first, steps_of(&sim, BEFORE), 0.1);
		NEAR(life->first + life->steps, steps_of(&sim, BEFORE + 1000), 0.1);
		finish(&sim, detect);
	}
}

static void one_that_ends_is_resolved_once_with_its_length(void **state)
{
	(void)state;
	for (int i = 0; i < CAUSES * JITTERS * SEEDS; i++) {
		const enum cause cause = (enum cause)(i % CAUSES);
		const double jitter = jitters[i / CAUSES % JITTERS];
		struct nt_detect *detect;
		struct lives lives = {0};
		const struct life *life = &lives.life[0];
		uint64_t began, ended;
		double healthy, slow;
		struct sim sim;

		if (cause == TRANSFER && jitter > 0.01)
			continue;
		detect = sim_detect();
		start(&sim, cause, jitter, 300 + (uint64_t)i);
		began = sim.now_ns;
		pass(&sim, detect, BEFORE, &lives);
		healthy = mean_step(&sim, began, BEFORE);
		began = sim.now_ns;
		scale(&sim, cause, 1.1);
		pass(&sim, detect, LASTS + 100, &lives);
		ended = sim.now_ns;
		slow = mean_step(&sim, began, LASTS + 100);
		scale(&sim, cause, 1.0);
		pass(&sim, detect, AFTER, &lives);
		assert_one(&lives, 1, cause, jitter, &sim);
		assert_names(life, cause);
		NEAR((double)(life->last.until_ns - life->last.since_ns), (double)(ended - began),
		     0.2);
		NEAR(life->step_was_ms, healthy, 0.01);
		if (fabs(life->step_ms - slow) > 0.7)
			print_lives(&lives, &sim);
		NEAR(life->step_ms, slow, 0.01);
		NEAR(life->steps, steps_of(&sim, LASTS + 100), 0.15);
		finish(&sim, detect);
	}
}

static void a_ramp_is_one(void **state)
{
	(void)state;
	for (int i = 0; i < CAUSES * JITTERS * SEEDS; i++) {
		const enum cause cause = (enum cause)(i % CAUSES);
		const double jitter = jitters[i / CAUSES % JITTERS];
		struct nt_detect *detect;
		struct lives lives = {0};
		const struct life *life = &lives.life[0];
		struct sim sim;

		if (cause == TRANSFER && jitter > 0.01)
			continue;
		detect = sim_detect();
		start(&sim, cause, jitter, 500 + (uint64_t)i);
		pass(&sim, detect, BEFORE, &lives);
		for (int j = 1; j <= 300; j++) {
			scale(&sim, cause, 1.0 + 0.5 * j / 300.0);
			pass(&sim, detect, 1, &lives);
		}
		pass(&sim, detect, 100, &lives);
		scale(&sim, cause, 1.0);
		pass(&sim, detect, AFTER, &lives);
		assert_one(&lives, 1, cause, jitter, &sim);
		assert_names(life, cause);
		/* A fourth longer in the mean of the ramp, half at its end. */
		if (life->step_ms / life->step_was_ms < 1.2)
			print_lives(&lives, &sim);
		assert_true(life->step_ms / life->step_was_ms > 1.2 &&
			    life->step_ms / life->step_was_ms < 1.45);
		finish(&sim, detect);
	}
}

static void what_comes_again_is_another_one_each_time(void **state)
{
	(void)state;
	for (int i = 0; i < CAUSES * JITTERS; i++) {
		const enum cause cause = (enum cause)(i % CAUSES);
		const double jitter = jitters[i / CAUSES % JITTERS];
		struct nt_detect *detect;
		struct lives lives = {0};
		struct sim sim;

		if (cause == TRANSFER && jitter > 0.01)
			continue;
		detect = sim_detect();
		start(&sim, cause, jitter, 700 + (uint64_t)i);
		pass(&sim, detect, BEFORE, &lives);
		for (int j = 0; j < 3; j++) {
			scale(&sim, cause, 1.1);
			pass(&sim, detect, LASTS + 100, &lives);
			scale(&sim, cause, 1.0);
			pass(&sim, detect, AFTER, &lives);
		}
		if (lives.count != 3)
			print_lives(&lives, &sim);
		if (lives.count != 3)
			fail_msg("cause %d, jitter %g: %zu incidents", cause, jitter, lives.count);
		for (size_t j = 0; j < 3; j++) {
			assert_names(&lives.life[j], cause);
			assert_int_equal(lives.life[j].resolved, 1);
		}
		finish(&sim, detect);
	}
}

static void healthy_jobs_and_short_spells_are_silent(void **state)
{
	(void)state;
	for (int i = 0; i < CAUSES * JITTERS * SEEDS; i++) {
		const enum cause cause = (enum cause)(i % CAUSES);
		struct nt_detect *detect;
		struct lives lives = {0};
		struct sim sim;

		detect = sim_detect();
		start(&sim, cause, jitters[i / CAUSES % JITTERS], 900 + (uint64_t)i);
		pass(&sim, detect, 500, &lives);
		/* A minute is not over yet. */
		if (cause == ALL_UNSEEN) {
			scale(&sim, cause, 1.3);
			pass(&sim, detect, 60, &lives);
			scale(&sim, cause, 1.0);
			pass(&sim, detect, 500, &lives);
		}
		assert_int_equal(lives.count, 0);
		finish(&sim, detect);
	}
}

/*
 * Two ranks are judged by their pasts: what both share from then on is not the culprit's. It is a note
 * of the whole job, and the incident ends.
 */
static void a_fault_ends_though_the_whole_job_is_slower_since_then(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 2, 911);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, BEFORE);
	sim.rank[1].device *= 1.4;
	sim_pass(&sim, detect, 30);
	assert_names_rank(sim_firing(detect, 0), 1);
	sim.rank[1].device /= 1.4;
	for (int i = 0; i < 2; i++)
		sim.rank[i].device *= 1.06;
	sim_pass(&sim, detect, AFTER);
	assert_accuses_nobody(detect);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* Longer sequences since an hour: what all ranks grew by then is no part of what one grows by now. */
static void after_all_grew_one_that_grows_is_named(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *named = NULL;
	struct sim sim;

	(void)state;
	sim_init(&sim, 16, 5);
	sim.jitter = 0.01;
	sim_pass(&sim, detect, 80);
	for (uint32_t i = 0; i < 16; i++)
		sim.rank[i].device *= 1.5;
	sim_pass(&sim, detect, 60);
	sim.rank[3].device *= 1.25;
	sim_pass(&sim, detect, 20);
	for (uint32_t i = 0; sim_firing(detect, i); i++)
		if (sim_firing(detect, i)->severity != NT_SEVERITY_INFO)
			named = sim_firing(detect, i);
	assert_non_null(named);
	assert_names_rank(named, 3);
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_permanent_one_is_told_once_and_stays),
		cmocka_unit_test(one_that_ends_is_resolved_once_with_its_length),
		cmocka_unit_test(a_ramp_is_one),
		cmocka_unit_test(what_comes_again_is_another_one_each_time),
		cmocka_unit_test(a_fault_ends_though_the_whole_job_is_slower_since_then),
		cmocka_unit_test(healthy_jobs_and_short_spells_are_silent),
		cmocka_unit_test(after_all_grew_one_that_grows_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
