/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The generalised Pareto distribution of what exceeds a high level, fitted by maximum likelihood.
 *
 * Grimshaw, "Computing maximum likelihood estimates for the generalized Pareto distribution",
 * Technometrics 35 (1993): the two parameters follow from the roots of a function of one.
 */
#ifndef NT_DETECT_ANOMALY_PARETO_H
#define NT_DETECT_ANOMALY_PARETO_H

#include <stddef.h>

struct nt_pareto {
	double shape, scale; /* shape 0: exponential */
};

/* Fits positive excesses. Without any, or if all are 0, the scale is 0. */
struct nt_pareto nt_pareto_fit(const double *excess, size_t n);

/* The excess that is exceeded with this probability. */
double nt_pareto_quantile(const struct nt_pareto *pareto, double probability);

#endif
