/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/pareto.h"

#include <math.h>

#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

struct excesses {
	const double *value;
	size_t n;
	double mean, least, most;
};

/* The mean of log(1 + x·value), which is the shape that belongs to x. */
static double shape_of(const struct excesses *excesses, double x)
{
	double sum = 0.0;

	for (size_t i = 0; i < excesses->n; i++)
		sum += log1p(x * excesses->value[i]);
	return sum / (double)excesses->n;
}

/* Its roots are the candidates. */
static double grimshaw(const struct excesses *excesses, double x)
{
	double sum = 0.0;

	for (size_t i = 0; i < excesses->n; i++)
		sum += 1.0 / (1.0 + x * excesses->value[i]);
	return sum / (double)excesses->n * (1.0 + shape_of(excesses, x)) - 1.0;
}

static double likelihood(const struct excesses *excesses, const struct nt_pareto *pareto)
{
	double n = (double)excesses->n, x = pareto->shape / pareto->scale;

	if (pareto->shape == 0.0)
		return -n * (log(pareto->scale) + excesses->mean / pareto->scale);
	return -n * (log(pareto->scale) + (1.0 + 1.0 / pareto->shape) * shape_of(excesses, x));
}

static double find_root(const struct excesses *excesses, double low, double high)
{
	double at_low = grimshaw(excesses, low);

	for (int i = 0; i < NT_PARETO_HALVINGS; i++) {
		double middle = (low + high) / 2.0, at = grimshaw(excesses, middle);

		if ((at < 0.0) == (at_low < 0.0))
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2.0;
}

/* Tries each root between two borders. 0 is always a root, and stands for the exponential. */
static void try_roots(const struct excesses *excesses, double from, double to,
		      struct nt_pareto *best, double *best_likelihood)
{
	double step = (to - from) / NT_PARETO_STEPS, before = grimshaw(excesses, from);

	for (int i = 1; i <= NT_PARETO_STEPS; i++) {
		double x = from + i * step, at = grimshaw(excesses, x);

		if ((at < 0.0) != (before < 0.0)) {
			double root = find_root(excesses, x - step, x);
			struct nt_pareto pareto = {.shape = shape_of(excesses, root)};
			double value;

			pareto.scale = pareto.shape / root;
			value = pareto.scale > 0.0 ? likelihood(excesses, &pareto) : -INFINITY;
			if (value > *best_likelihood) {
				*best = pareto;
				*best_likelihood = value;
			}
		}
		before = at;
	}
}

struct nt_pareto nt_pareto_fit(const double *excess, size_t n)
{
	struct excesses excesses = {.value = excess, .n = n, .least = INFINITY};
	struct nt_pareto best = {0};
	double best_likelihood, close;

	for (size_t i = 0; i < n; i++) {
		excesses.mean += excess[i] / (double)n;
		excesses.least = nt_stats_min(excesses.least, excess[i]);
		excesses.most = nt_stats_max(excesses.most, excess[i]);
	}
	if (!n || excesses.mean <= 0.0)
		return best;
	best.scale = excesses.mean;
	best_likelihood = likelihood(&excesses, &best);
	close = NT_PARETO_CLOSE / excesses.mean;
	if (1.0 / excesses.most > 2.0 * close)
		try_roots(&excesses, -1.0 / excesses.most + close, -close, &best, &best_likelihood);
	if (excesses.mean > excesses.least && excesses.least > 0.0)
		try_roots(&excesses, close,
			  2.0 * (excesses.mean - excesses.least) /
				  (excesses.least * excesses.least),
			  &best, &best_likelihood);
	return best;
}

double nt_pareto_quantile(const struct nt_pareto *pareto, double probability)
{
	if (probability >= 1.0 || pareto->scale <= 0.0)
		return 0.0;
	if (pareto->shape == 0.0)
		return -pareto->scale * log(probability);
	return pareto->scale / pareto->shape * (pow(probability, -pareto->shape) - 1.0);
}
