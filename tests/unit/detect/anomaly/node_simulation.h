/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Simulated nodes of a training job: metrics that follow the job's phases, a daily rhythm, each
 * other, or nothing; counters that are nearly always 0, and constants. Minutes are rows.
 */
#ifndef NT_TESTS_UNIT_DETECT_ANOMALY_NODE_SIMULATION_H
#define NT_TESTS_UNIT_DETECT_ANOMALY_NODE_SIMULATION_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "detect/anomaly/anomaly.h"
#include "detect/anomaly/peers.h"
#include "detect/thresholds/thresholds.h"

enum {
	SIM_METRICS = 40,
	SIM_NODES = 10,
	SIM_LEARN = 1440,
	SIM_PRESSURE = 30, /* heavy-tailed metrics from here on */
	SIM_RARE = 34, /* nearly always 0 */
	SIM_CONSTANT = 37,
};

struct node_sim {
	uint64_t seed;
	double scale[SIM_METRICS];
};

static inline double sim_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005U + 1442695040888963407U;
	return (double)(*seed >> 11) * 0x1p-53;
}

static inline double sim_normal(uint64_t *seed)
{
	return sqrt(-2.0 * log(1.0 - sim_random(seed))) * cos(2.0 * M_PI * sim_random(seed));
}

static inline void sim_init(struct node_sim *sim, uint64_t seed)
{
	sim->seed = seed * 7919 + 13;
	for (int j = 0; j < SIM_METRICS; j++)
		sim->scale[j] = 1.0 + 1000.0 * sim_random(&sim->seed);
}

/* What the job does in a minute is the same on all of its nodes. */
static inline double sim_phase(size_t minute)
{
	return 0.6 + 0.2 * (minute / 45 % 2) + 0.1 * sin(2.0 * M_PI * (double)minute / 1440.0);
}

static inline void sim_row(struct node_sim *sim, size_t minute, double value[SIM_METRICS])
{
	double phase = sim_phase(minute), disk = sim_random(&sim->seed);

	for (int j = 0; j < SIM_METRICS; j++) {
		double noise = 0.02 * sim_normal(&sim->seed);

		if (j >= SIM_CONSTANT)
			value[j] = 64.0;
		else if (j >= SIM_RARE)
			value[j] = sim_random(&sim->seed) < 0.01 ? 1.0 : 0.0;
		else if (j >= SIM_PRESSURE)
			value[j] = 0.02 / (0.05 + sim_random(&sim->seed));
		else
			value[j] = (j % 3 == 0   ? phase + noise
				    : j % 3 == 1 ? 0.5 * phase + 0.3 * disk + noise
						 : disk + noise) *
				   sim->scale[j];
	}
}

static const char *const *sim_names(void)
{
	static char text[SIM_METRICS][16];
	static const char *name[SIM_METRICS];

	for (int j = 0; j < SIM_METRICS; j++) {
		(void)snprintf(text[j], sizeof(text[j]), "m%d", j);
		name[j] = text[j];
	}
	return name;
}

/* A node with its budget, and the last result. */
struct sim_node {
	struct node_sim sim;
	struct nt_anomaly_node *node;
	struct nt_alarm_budget budget;
	struct nt_anomaly_score score;
	size_t minute, alarms;
	size_t metrics; /* of the rows that it sends: the first ones */
};

static inline void sim_take(struct sim_node *at, const double *value, const double *peers)
{
	const struct nt_anomaly_row row = {
		.name = sim_names(), .value = value, .peers = peers, .metrics = at->metrics};
	struct nt_chart *chart;

	assert_int_equal(nt_anomaly_node_take(at->node, &at->budget, &row, &at->score), 0);
	at->alarms += at->score.change == NT_SCORE_ALARM_BEGAN;
	at->minute++;
	chart = nt_anomaly_node_refit_due(at->node);
	if (chart)
		assert_int_equal(nt_chart_refit(chart), 0);
}

static inline void sim_open(struct sim_node *at, uint64_t seed, enum nt_anomaly_method method)
{
	struct nt_anomaly_options options = nt_anomaly_options_default();

	memset(at, 0, sizeof(*at));
	sim_init(&at->sim, seed);
	at->metrics = SIM_METRICS;
	options.method = method;
	options.learn_rows = SIM_LEARN;
	nt_alarm_budget_init(&at->budget, NT_ANOMALY_FALSE_ALARMS, NT_ANOMALY_DAY_ROWS);
	assert_int_equal(nt_anomaly_node_new(&options, &at->node), 0);
}

/* Healthy minutes. */
static inline void sim_run(struct sim_node *at, size_t minutes)
{
	double value[SIM_METRICS];

	for (size_t i = 0; i < minutes; i++) {
		sim_row(&at->sim, at->minute, value);
		sim_take(at, value, NULL);
	}
}

static inline bool sim_names_metric(const struct sim_node *at, const char *name, size_t among)
{
	struct nt_anomaly_metric metric[NT_ANOMALY_RANKED];
	size_t n = nt_anomaly_node_explain(at->node, metric);

	for (size_t i = 0; i < n && i < among; i++)
		if (strcmp(metric[i].name, name) == 0)
			return true;
	return false;
}

#endif
