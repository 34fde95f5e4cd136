/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * LESINN: how unlike the others a row is, by its similarity to the nearest row of small random
 * samples.
 *
 * Pang, Ting and Albrecht, "LeSiNN: Detecting anomalies by identifying least similar nearest
 * neighbours", ICDM workshops 2015. A row is never in its own sample, which would hide outliers.
 */
#ifndef NT_DETECT_ANOMALY_LESINN_H
#define NT_DETECT_ANOMALY_LESINN_H

#include <stddef.h>
#include <stdint.h>

/* Of a fixed sequence: the same rows give the same scores. */
static inline uint64_t nt_lesinn_random(uint64_t *state)
{
	/* Marsaglia's xorshift. */
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/*
 * Scores the last `judged` of `rows` rows of `stride` values each, which are multiples of four and
 * lie one after the other. Every score is at least 1.
 */
void nt_lesinn_score(const float *row, size_t rows, size_t stride, size_t judged, uint64_t *random,
		     float *ret_score);

#endif
