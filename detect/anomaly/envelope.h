/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Envelopes: the range in which each of several values has been, over the last blocks of rows.
 *
 * While a value is learned, its range takes in whatever comes. Later the range moves towards a
 * value outside it by a small share per row (it creeps), so that an anomaly hardly widens it, and a
 * lasting new level becomes normal within days. Old ranges are dropped with their block.
 */
#ifndef NT_DETECT_ANOMALY_ENVELOPE_H
#define NT_DETECT_ANOMALY_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/codec.h"

struct nt_envelopes {
	size_t values;
	uint32_t block, rows; /* the open block, and its rows */
	double *low, *high; /* in force; low > high: no value yet; owned */
	float *block_low, *block_high; /* of each block, rounded outwards; owned */
	double *stay_low,
		*stay_high; /* what moves neither the range nor that of the open block; owned */
};

/* -ENOMEM. */
NT_MUST_CHECK int nt_envelopes_new(struct nt_envelopes *envelopes, size_t values);
void nt_envelopes_release(struct nt_envelopes *envelopes);
/* Of memory, without the structure. */
size_t nt_envelopes_bytes(const struct nt_envelopes *envelopes);

bool nt_envelopes_has(const struct nt_envelopes *envelopes, size_t i);

/* The distance from the range; 0 inside it and without one. */
static inline double nt_envelopes_distance(const struct nt_envelopes *envelopes, size_t i,
					   double value)
{
	double low = envelopes->low[i], high = envelopes->high[i];

	if (low > high)
		return 0.0;
	return value > high ? value - high : value < low ? low - value : 0.0;
}

/* nt_envelopes_take() for a value that moves a range. */
double nt_envelopes_move(struct nt_envelopes *envelopes, size_t i, double value, double creep);

/* Whether a value moves nothing. Nearly always it does not. */
static inline bool nt_envelopes_stay(const struct nt_envelopes *envelopes, size_t i, double value)
{
	return value >= envelopes->stay_low[i] && value <= envelopes->stay_high[i];
}

/* Takes in a value, wholly (creep 1) or by a share. Returns the value that was taken in. */
static inline double nt_envelopes_take(struct nt_envelopes *envelopes, size_t i, double value,
				       double creep)
{
	return nt_envelopes_stay(envelopes, i, value)
		       ? value
		       : nt_envelopes_move(envelopes, i, value, creep);
}

/* Forgets one value's range. */
void nt_envelopes_forget(struct nt_envelopes *envelopes, size_t i);

/* The unit of a value changed: all its ranges are multiplied. */
void nt_envelopes_scale(struct nt_envelopes *envelopes, size_t i, double factor);

/* A row is complete. Opens a new block when the current one is full. */
void nt_envelopes_step(struct nt_envelopes *envelopes);

/* Drops what only blocks before the last ones had seen. */
void nt_envelopes_renew(struct nt_envelopes *envelopes);

void nt_envelopes_code(struct nt_codec *codec, struct nt_envelopes *envelopes);

#endif
