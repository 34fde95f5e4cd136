/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The orthonormal discrete cosine transform (DCT-II) of a window of rows and a group of metrics, in
 * both dimensions. What is smooth in time, or common to the group, has few large coefficients.
 */
#ifndef NT_DETECT_ANOMALY_COSINE_H
#define NT_DETECT_ANOMALY_COSINE_H

#include <stddef.h>

#include "detect/thresholds/thresholds.h"

/* A row of a group of four metrics at most; unused ones are 0. */
typedef float nt_cosine_row __attribute__((vector_size(4 * NT_SENSING_GROUP)));

struct nt_cosine {
	float rows[NT_SENSING_ROWS][NT_SENSING_ROWS / 2]; /* basis; the other half mirrors it */
	float metrics[NT_SENSING_GROUP][NT_SENSING_GROUP];
	size_t group; /* metrics in use */
};

/* For a group of that many metrics, at least 1. */
void nt_cosine_init(struct nt_cosine *cosine, size_t group);
void nt_cosine_forward(const struct nt_cosine *cosine, const nt_cosine_row *value,
		       nt_cosine_row *ret_coefficient);
void nt_cosine_inverse(const struct nt_cosine *cosine, const nt_cosine_row *coefficient,
		       nt_cosine_row *ret_value);

#endif
