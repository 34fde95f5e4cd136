/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The alarm threshold of a fleet: the score that healthy nodes exceed as often as the operator
 * accepts, stated as false alarms per node and day.
 *
 * All nodes feed one pool, since a node's own history holds too few extremes. A run of rows over the
 * pool's level is one peak; peaks follow a generalised Pareto distribution (SPOT, see spot.h).
 * A new fleet starts with the tail measured on recorded series, which counts like a number of rows
 * of its own.
 */
#ifndef NT_DETECT_ANOMALY_BUDGET_H
#define NT_DETECT_ANOMALY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/codec.h"
#include "detect/thresholds/thresholds.h"

struct nt_alarm_budget {
	double false_alarms; /* per node and day; setting */
	double day_rows; /* scored rows a day; setting */
	double rows; /* of learned nodes */
	uint64_t peaks; /* in all */
	double peak[NT_ANOMALY_PEAKS]; /* the last ones, as excesses over the level */
	double threshold;
};

/* Negative: the default of false alarms. */
void nt_alarm_budget_init(struct nt_alarm_budget *budget, double false_alarms, double day_rows);

/* Counts a scored row of a learned node. */
void nt_alarm_budget_row(struct nt_alarm_budget *budget);
/* A run over NT_ANOMALY_PEAK ended; its highest score. Peaks of alarms should not be given. */
void nt_alarm_budget_peak(struct nt_alarm_budget *budget, double peak);

/* The settings remain those of the program. */
void nt_alarm_budget_code(struct nt_codec *codec, struct nt_alarm_budget *budget);

#endif
