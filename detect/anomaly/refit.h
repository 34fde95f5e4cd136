/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The refit of the subspace: the directions that hold most of the variance of a node's metrics.
 *
 * It reads a copy of the moments and writes a basis, so it can run on another thread than the rows:
 * nt_chart_begin_refit() makes the copy, nt_refit_solve() works, nt_chart_end_refit() takes the
 * result. This is the only file that calls LAPACK.
 */
#ifndef NT_DETECT_ANOMALY_REFIT_H
#define NT_DETECT_ANOMALY_REFIT_H

#include <stddef.h>

#include "detect/anomaly/metric.h"

struct nt_refit {
	size_t metrics;
	double *covariance; /* metrics²; the lower triangle is read; destroyed by the solution */
	double *variance; /* scratch: the eigenvalues */
	double share; /* of the variance that the directions hold */
	/* The result: unit vectors, one after the other, that of most variance first. */
	double *basis;
	size_t directions; /* fewer than metrics, so that a residual remains */
};

/* -ENOMEM. */
NT_MUST_CHECK int nt_refit_new(size_t metrics, struct nt_refit **ret_refit);
void nt_refit_free(struct nt_refit *refit);
NT_DEFINE_AUTO(nt_refit, nt_refit_free)

/* -EDOM: the eigenvalue problem did not converge; the old basis should stay. */
NT_MUST_CHECK int nt_refit_solve(struct nt_refit *refit);

#endif
