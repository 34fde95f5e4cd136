/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How well scores find labelled rows. Each row counts by itself: no point adjustment, with which even
 * a random score looks good (Kim et al., AAAI 2022).
 */
#ifndef NT_BENCH_ANOMALY_MEASURES_H
#define NT_BENCH_ANOMALY_MEASURES_H

#include <stddef.h>
#include <stdint.h>

struct measures {
	double best_f1; /* at the threshold that is best for this series */
	double f1; /* of the alarms */
	double auc_pr;
	/*
	 * Volume under the surface of precision and recall (Paparrizos et al., VLDB 2022): the mean of
	 * the area over labels that are widened by 0 to 100 rows.
	 */
	double vus_pr;
	double false_alarms; /* runs of alarm that touch no labelled row */
};

/* alarm: NULL: none. Returns false if memory ran out. */
int measure(const double *score, const uint8_t *alarm, const uint8_t *label, size_t n,
	    struct measures *ret_measures);

#endif
