/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * SPOT and DSPOT: the threshold that a stream of scores exceeds with a given probability, by extreme
 * value theory. The first values give a high level; what exceeds it later follows a generalised
 * Pareto distribution, whose quantile is the threshold. Values over the threshold are anomalies and
 * are not learned. DSPOT first subtracts the mean of the last normal values.
 *
 * Siffer et al., "Anomaly detection in streams with extreme value theory", KDD 2017.
 */
#ifndef NT_DETECT_ANOMALY_SPOT_H
#define NT_DETECT_ANOMALY_SPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/anomaly/metric.h"

struct nt_spot_rules {
	double probability; /* that a normal value exceeds the threshold */
	double level; /* quantile of the first values above which the tail begins */
	uint32_t first; /* values that give the level */
	uint32_t depth; /* values whose mean is subtracted; 0: SPOT */
};

struct nt_spot;

struct nt_spot_rules nt_spot_rules_default(void);

/* -ENOMEM; -EINVAL for rules out of range. */
NT_MUST_CHECK int nt_spot_new(const struct nt_spot_rules *rules, struct nt_spot **ret_spot);
void nt_spot_free(struct nt_spot *spot);
NT_DEFINE_AUTO(nt_spot, nt_spot_free)

/*
 * Judges a finite value and learns from it. True: it exceeds the threshold. *ret_threshold: in units
 * of the value; infinite while the first values are collected.
 */
bool nt_spot_take(struct nt_spot *spot, double value, double *ret_threshold);

#endif
