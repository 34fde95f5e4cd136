/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/refit.h"

#include <errno.h>
#include <lapacke.h>
#include <stdlib.h>
#include <string.h>

/* OpenBLAS's own; absent in other implementations of LAPACK. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

int nt_refit_new(size_t metrics, struct nt_refit **ret_refit)
{
	nt_auto(nt_refit) struct nt_refit *refit = calloc(1, sizeof(*refit));

	if (!refit)
		return -ENOMEM;
	refit->metrics = metrics;
	refit->covariance = calloc(metrics * metrics, sizeof(*refit->covariance));
	refit->variance = calloc(metrics, sizeof(*refit->variance));
	refit->basis = calloc(metrics * metrics, sizeof(*refit->basis));
	if (!refit->covariance || !refit->variance || !refit->basis)
		return -ENOMEM;
	*ret_refit = nt_take(refit);
	return 0;
}

void nt_refit_free(struct nt_refit *refit)
{
	if (!refit)
		return;
	free(refit->covariance);
	free(refit->variance);
	free(refit->basis);
	free(refit);
}

int nt_refit_solve(struct nt_refit *refit)
{
	const size_t n = refit->metrics;
	const lapack_int order = (lapack_int)n;
	double total = 0.0, held = 0.0;
	size_t k = 0;

	/* Matrices this small are solved faster by one thread, and others would spin meanwhile. */
	if (openblas_set_num_threads)
		openblas_set_num_threads(1);
	/* Column-major: the upper triangle of the columns is the lower one of our rows. */
	if (n && LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', order, refit->covariance, order,
				refit->variance) != 0)
		return -EDOM;
	for (size_t i = 0; i < n; i++)
		total += refit->variance[i] > 0.0 ? refit->variance[i] : 0.0;
	/* Eigenvalues ascend, so the directions are taken from the end. */
	while (k + 1 < n && held < refit->share * total) {
		memcpy(refit->basis + k * n, refit->covariance + (n - 1 - k) * n,
		       n * sizeof(*refit->basis));
		held += refit->variance[n - 1 - k];
		k++;
	}
	refit->directions = k;
	return 0;
}
