/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Simulated ranks whose hosts run ahead of their GPUs, with the queries of PyTorch's watchdogs. The
 * truth is the share of the time in which the device of a rank is outside of communication.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "agent/steps/completion.h"
#include "common/system/clock.h"

#define MS     NT_MILLISECOND
#define STREAM 0x5000ULL

enum {
	RANKS = 4,
	POOL = 1000, /* events of a rank that are used in turn */
};

/* ---- a job ---------------------------------------------------------------------------------- */

enum watchdog {
	NCCL2, /* each second and at each collective; the oldest start or end */
	LEGACY, /* each 100 ms, the end of all */
};

struct device {
	double *start, *end; /* of the collective of each step, seconds */
};

struct sim {
	double own, comm; /* seconds of a step */
	double factor; /* of the own work of rank 0 */
	double jitter, poll; /* relative; seconds */
	uint32_t steps;
	enum watchdog watchdog;
	uint64_t seed;
	struct device device[RANKS];
};

struct result {
	uint32_t values;
	double truth, worst, sum; /* own work by step, over the step; worst error of a value */
	double first_s; /* when the first came */
};

static double draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 11) / (double)(1ULL << 53);
}

/* Of about the standard normal distribution. */
static double normal(uint64_t *seed)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += draw(seed);
	return sum - 6;
}

static void run_devices(struct sim *sim)
{
	double now = 0;

	for (int r = 0; r < RANKS; r++) {
		sim->device[r].start = calloc(sim->steps, sizeof(double));
		sim->device[r].end = calloc(sim->steps, sizeof(double));
		assert_true(sim->device[r].start && sim->device[r].end);
	}
	for (uint32_t i = 0; i < sim->steps; i++) {
		double last = 0;

		for (int r = 0; r < RANKS; r++) {
			const double own = sim->own * (r ? 1 : sim->factor) *
					   (1 + sim->jitter * normal(&sim->seed));

			sim->device[r].start[i] = now + own;
			if (now + own > last)
				last = now + own;
		}
		now = last + sim->comm * (1 + sim->jitter * normal(&sim->seed));
		for (int r = 0; r < RANKS; r++)
			sim->device[r].end[i] = now;
	}
}

static void free_devices(struct sim *sim)
{
	for (int r = 0; r < RANKS; r++) {
		free(sim->device[r].start);
		free(sim->device[r].end);
	}
}

/* A rank's program: its watchdog, and how far its queries have come. */
struct program {
	struct nt_completion *completion;
	const struct device *device;
	enum watchdog watchdog;
	uint32_t enqueued, complete; /* collectives */
	bool has_started; /* the oldest that is not complete */
};

static uint64_t event_of(uint32_t collective, bool is_end)
{
	return 0x7f0000001000ULL + ((uint64_t)collective * 2 + is_end) % (2 * POOL) * 64;
}

static uint64_t ns_of(double seconds)
{
	return (uint64_t)((seconds + 10) * 1e9);
}

static void enqueue(struct program *program)
{
	const uint32_t i = program->enqueued++;

	if (program->watchdog == NCCL2)
		nt_completion_record(program->completion, event_of(i, false), STREAM);
	nt_completion_collective(program->completion, STREAM);
	nt_completion_record(program->completion, event_of(i, true), STREAM);
}

static bool asks(struct program *program, uint32_t collective, bool is_end, double now)
{
	const double at =
		is_end ? program->device->end[collective] : program->device->start[collective];

	nt_completion_query(program->completion, event_of(collective, is_end), at <= now,
			    ns_of(now));
	return at <= now;
}

static void poll(struct program *program, double now)
{
	if (program->watchdog == LEGACY) {
		uint32_t first = program->enqueued;

		for (uint32_t i = program->complete; i < program->enqueued; i++)
			if (!asks(program, i, true, now) && i < first)
				first = i;
		program->complete = first;
		return;
	}
	while (program->complete < program->enqueued) {
		if (!program->has_started)
			program->has_started = asks(program, program->complete, false, now);
		if (!program->has_started || !asks(program, program->complete, true, now))
			return;
		program->complete++;
		program->has_started = false;
	}
}

/* The host is two steps ahead, as a queue of launches that is full allows. */
static double enqueued_at(const struct sim *sim, const struct device *device, uint32_t step,
			  uint64_t *seed)
{
	return step < 2 ? 0.001 * step
			: device->end[step - 2] + sim->own * (0.3 + 0.01 * normal(seed));
}

static void take_value(const struct sim *sim, const struct program *program, double now,
		       struct result *result)
{
	const double step = program->device->end[sim->steps - 1] / sim->steps;
	uint64_t own_ns;
	double error;

	if (!nt_completion_own(program->completion, ns_of(now), 1, (uint64_t)(step * 1e9), &own_ns))
		return;
	error = fabs((double)own_ns / 1e9 - result->truth * step) / step;
	if (!result->values++)
		result->first_s = now;
	result->sum += (double)own_ns / 1e9 / step;
	if (error > result->worst)
		result->worst = error;
}

static struct result run_rank(const struct sim *sim, int r)
{
	const struct device *device = &sim->device[r];
	struct program program = {.device = device, .watchdog = sim->watchdog};
	struct result result = {0};
	uint64_t seed = sim->seed * 31 + (uint64_t)r, measured = 0;
	double next_poll = draw(&seed) * sim->poll, begin = 0, outside = 0, last = 0;

	for (uint32_t i = 0; i < sim->steps; i++)
		outside += device->start[i] - (i ? device->end[i - 1] : 0);
	result.truth = outside / device->end[sim->steps - 1];
	assert_int_equal(nt_completion_new(&program.completion), 0);
	for (uint32_t i = 0; i < sim->steps; i++) {
		double now = enqueued_at(sim, device, i, &seed);

		if (now <= last)
			now = last + 1e-6;
		for (; next_poll < now; next_poll += sim->poll + 0.0002 * draw(&seed))
			poll(&program, next_poll);
		if (i)
			nt_completion_step(program.completion, ns_of(begin), ns_of(now));
		if (nt_completion_stats(program.completion)->measured > measured) {
			measured++;
			take_value(sim, &program, now, &result);
		}
		if (sim->watchdog == NCCL2)
			poll(&program, now);
		enqueue(&program);
		begin = last = now;
	}
	nt_completion_free(program.completion);
	return result;
}

static struct sim job_of(double step, double factor, double poll, enum watchdog watchdog,
			 double seconds)
{
	struct sim sim = {.own = step * 0.8,
			  .comm = step * 0.2,
			  .factor = factor,
			  .jitter = 0.01,
			  .poll = poll,
			  .steps = (uint32_t)(seconds / (step * (0.8 * factor + 0.2))),
			  .watchdog = watchdog,
			  .seed = (uint64_t)(step * 1000 + factor * 10)};

	run_devices(&sim);
	return sim;
}

/* ---- what queries prove --------------------------------------------------------------------- */

static const double steps_s[] = {0.05, 0.2, 0.5, 1, 2};

/*
 * nccl2: a value comes after minutes, since the watchdog asks once a second. A GPU that is 10 %
 * slower has more own work than its peers by more than the errors.
 */
static void queries_of_nccl2_show_the_slow_gpu(void **state)
{
	static const double factors[] = {1, 1.1, 1.2, 1.5};

	(void)state;
	for (size_t s = 0; s < sizeof(steps_s) / sizeof(steps_s[0]); s++) {
		for (size_t f = 0; f < sizeof(factors) / sizeof(factors[0]); f++) {
			struct sim sim = job_of(steps_s[s], factors[f], 1, NCCL2, 3600);
			double mean[RANKS];

			for (int r = 0; r < RANKS; r++) {
				const struct result result = run_rank(&sim, r);

				print_message(
					"step %.2f s x%.1f rank %d: %u values, the first after "
					"%.0f s, mean %.3f of %.3f, worst error %.3f\n",
					steps_s[s], factors[f], r, result.values, result.first_s,
					result.sum / result.values, result.truth, result.worst);
				assert_true(result.values >= 1);
				assert_true(result.worst < 0.02);
				mean[r] = result.sum / result.values;
				if (r && factors[f] > 1)
					assert_true(mean[0] - mean[r] > 0.03);
				else if (r)
					assert_true(fabs(mean[0] - mean[r]) < 0.03);
			}
			free_devices(&sim);
		}
	}
}

static void more_queries_show_it_sooner(void **state)
{
	struct sim sim = job_of(0.25, 1.3, 0.02, NCCL2, 90);

	(void)state;
	for (int r = 0; r < RANKS; r++) {
		const struct result result = run_rank(&sim, r);

		assert_true(result.values >= 5);

		assert_true(result.first_s < 40);
		assert_true(result.worst < 0.02);
	}
	free_devices(&sim);
}

/* Ends of collectives are at the same time on all ranks, so that they prove nothing of own work. */
static void queries_of_legacy_prove_nothing(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof(steps_s) / sizeof(steps_s[0]); s++) {
		struct sim sim = job_of(steps_s[s], 1.5, 0.1, LEGACY, 700);

		for (int r = 0; r < RANKS; r++)
			assert_int_equal(run_rank(&sim, r).values, 0);
		free_devices(&sim);
	}
}

/* A step of 1 s without jitter: the watchdog always asks at the same place. */
static void queries_at_one_place_of_the_step_prove_nothing(void **state)
{
	struct sim sim = {.own = 0.8, .comm = 0.2, .factor = 1, .poll = 1, .steps = 1500};

	(void)state;
	run_devices(&sim);
	for (int r = 0; r < RANKS; r++) {
		struct program program = {.device = &sim.device[r]};

		assert_int_equal(nt_completion_new(&program.completion), 0);
		for (uint32_t i = 0; i < 3; i++)
			enqueue(&program);
		for (uint32_t i = 0; i + 4 < sim.steps; i++) {
			poll(&program, i + 0.37 + 0.2 * r);
			nt_completion_step(program.completion, ns_of(i), ns_of(i + 1));
			enqueue(&program);
		}
		assert_int_equal(nt_completion_stats(program.completion)->measured, 0);
		assert_true(nt_completion_stats(program.completion)->given_up > 0);
		nt_completion_free(program.completion);
	}
	free_devices(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queries_of_nccl2_show_the_slow_gpu),
		cmocka_unit_test(more_queries_show_it_sooner),
		cmocka_unit_test(queries_of_legacy_prove_nothing),
		cmocka_unit_test(queries_at_one_place_of_the_step_prove_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
