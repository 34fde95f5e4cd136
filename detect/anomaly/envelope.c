/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/anomaly/envelope.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

/* An empty range: state holds finite numbers only. */
static const double empty_low = 1.0, empty_high = -1.0;

static bool new_range(size_t n, double **ret_low, double **ret_high)
{
	*ret_low = malloc(n * sizeof(**ret_low));
	*ret_high = malloc(n * sizeof(**ret_high));
	for (size_t i = 0; *ret_low && *ret_high && i < n; i++) {
		(*ret_low)[i] = empty_low;
		(*ret_high)[i] = empty_high;
	}
	return *ret_low && *ret_high;
}

/* Where the range and the open block's overlap. */
static void set_stay(struct nt_envelopes *envelopes, size_t i)
{
	size_t at = envelopes->block * envelopes->values + i;
	double low = envelopes->low[i], high = envelopes->high[i];

	envelopes->stay_low[i] = nt_stats_max(low, (double)envelopes->block_low[at]);
	envelopes->stay_high[i] = nt_stats_min(high, (double)envelopes->block_high[at]);
	if (low > high) {
		envelopes->stay_low[i] = empty_low;
		envelopes->stay_high[i] = empty_high;
	}
}

static void set_all_stay(struct nt_envelopes *envelopes)
{
	for (size_t i = 0; i < envelopes->values; i++)
		set_stay(envelopes, i);
}

static void clear_block(struct nt_envelopes *envelopes, size_t block)
{
	for (size_t i = 0; i < envelopes->values; i++) {
		envelopes->block_low[block * envelopes->values + i] = (float)empty_low;
		envelopes->block_high[block * envelopes->values + i] = (float)empty_high;
	}
}

int nt_envelopes_new(struct nt_envelopes *envelopes, size_t values)
{
	const size_t cells = values * NT_ANOMALY_BLOCKS;

	*envelopes = (struct nt_envelopes){.values = values};
	envelopes->block_low = malloc(cells * sizeof(*envelopes->block_low));
	envelopes->block_high = malloc(cells * sizeof(*envelopes->block_high));
	if (!new_range(values, &envelopes->low, &envelopes->high) ||
	    !new_range(values, &envelopes->stay_low, &envelopes->stay_high) ||
	    !envelopes->block_low || !envelopes->block_high) {
		nt_envelopes_release(envelopes);
		return -ENOMEM;
	}
	for (size_t b = 0; b < NT_ANOMALY_BLOCKS; b++)
		clear_block(envelopes, b);
	return 0;
}

void nt_envelopes_release(struct nt_envelopes *envelopes)
{
	free(envelopes->low);
	free(envelopes->high);
	free(envelopes->stay_low);
	free(envelopes->stay_high);
	free(envelopes->block_low);
	free(envelopes->block_high);
	*envelopes = (struct nt_envelopes){0};
}

size_t nt_envelopes_bytes(const struct nt_envelopes *envelopes)
{
	const size_t range = sizeof(*envelopes->low) + sizeof(*envelopes->high);
	const size_t stay = sizeof(*envelopes->stay_low) + sizeof(*envelopes->stay_high);
	const size_t block = sizeof(*envelopes->block_low) + sizeof(*envelopes->block_high);

	return envelopes->values * (range + stay + NT_ANOMALY_BLOCKS * block);
}

bool nt_envelopes_has(const struct nt_envelopes *envelopes, size_t i)
{
	return envelopes->low[i] <= envelopes->high[i];
}

static void extend(double *low, double *high, double value)
{
	if (*low > *high) {
		*low = *high = value;
	} else if (value > *high) {
		*high = value;
	} else if (value < *low) {
		*low = value;
	}
}

/* A block's range, as floats, covers the value. */
static void extend_block(float *low, float *high, double value)
{
	if (*low > *high) {
		*low = FLT_MAX;
		*high = -FLT_MAX;
	}
	if (value > (double)*high) {
		*high = (float)value;
		if ((double)*high < value)
			*high = nextafterf(*high, INFINITY);
	}
	if (value < (double)*low) {
		*low = (float)value;
		if ((double)*low > value)
			*low = nextafterf(*low, -INFINITY);
	}
}

double nt_envelopes_move(struct nt_envelopes *envelopes, size_t i, double value, double creep)
{
	size_t at = envelopes->block * envelopes->values + i;
	double low = envelopes->low[i], high = envelopes->high[i];

	if (low <= high && value > high)
		value = high + creep * (value - high);
	else if (low <= high && value < low)
		value = low + creep * (value - low);
	extend(&envelopes->low[i], &envelopes->high[i], value);
	extend_block(&envelopes->block_low[at], &envelopes->block_high[at], value);
	set_stay(envelopes, i);
	return value;
}

void nt_envelopes_forget(struct nt_envelopes *envelopes, size_t i)
{
	envelopes->low[i] = empty_low;
	envelopes->high[i] = empty_high;
	for (size_t b = 0; b < NT_ANOMALY_BLOCKS; b++) {
		envelopes->block_low[b * envelopes->values + i] = (float)empty_low;
		envelopes->block_high[b * envelopes->values + i] = (float)empty_high;
	}
	set_stay(envelopes, i);
}

void nt_envelopes_scale(struct nt_envelopes *envelopes, size_t i, double factor)
{
	envelopes->low[i] *= factor;
	envelopes->high[i] *= factor;
	for (size_t b = 0; b < NT_ANOMALY_BLOCKS; b++) {
		envelopes->block_low[b * envelopes->values + i] *= (float)factor;
		envelopes->block_high[b * envelopes->values + i] *= (float)factor;
	}
	set_stay(envelopes, i);
}

void nt_envelopes_step(struct nt_envelopes *envelopes)
{
	if (++envelopes->rows < NT_ANOMALY_BLOCK_ROWS)
		return;
	envelopes->rows = 0;
	envelopes->block = (envelopes->block + 1) % NT_ANOMALY_BLOCKS;
	clear_block(envelopes, envelopes->block);
	set_all_stay(envelopes);
}

void nt_envelopes_renew(struct nt_envelopes *envelopes)
{
	for (size_t i = 0; i < envelopes->values; i++) {
		double low = empty_low, high = empty_high;

		for (size_t b = 0; b < NT_ANOMALY_BLOCKS; b++) {
			size_t at = b * envelopes->values + i;

			if (envelopes->block_low[at] > envelopes->block_high[at])
				continue;
			extend(&low, &high, envelopes->block_low[at]);
			extend(&low, &high, envelopes->block_high[at]);
		}
		envelopes->low[i] = low;
		envelopes->high[i] = high;
	}
	set_all_stay(envelopes);
}

/* Floats as numbers: a range that was stored is read back as it was. */
static void code_block(struct nt_codec *codec, float *value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		nt_code_float(codec, &value[i]);
}

void nt_envelopes_code(struct nt_codec *codec, struct nt_envelopes *envelopes)
{
	nt_code_u32(codec, &envelopes->block, NT_ANOMALY_BLOCKS - 1);
	nt_code_u32(codec, &envelopes->rows, NT_ANOMALY_BLOCK_ROWS - 1);
	nt_code_reals(codec, envelopes->low, envelopes->values);
	nt_code_reals(codec, envelopes->high, envelopes->values);
	code_block(codec, envelopes->block_low, envelopes->values * NT_ANOMALY_BLOCKS);
	code_block(codec, envelopes->block_high, envelopes->values * NT_ANOMALY_BLOCKS);
	if (codec->loads && !codec->error)
		set_all_stay(envelopes);
}
