/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/nodes/score_history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The upper half of a float: its sign, exponent and the first bits of its fraction, rounded. */
static uint16_t shorten(double value)
{
	float whole = (float)value;
	uint32_t bits;

	if (!isfinite(whole))
		whole = NAN;
	memcpy(&bits, &whole, sizeof(bits));
	return (uint16_t)((isnan(whole) ? bits : bits + 0x8000) >> 16);
}

static double widen(uint16_t half)
{
	uint32_t bits = (uint32_t)half << 16;
	float whole;

	memcpy(&whole, &bits, sizeof(whole));
	return (double)whole;
}

void nt_score_history_release(struct nt_score_history *history)
{
	free(history->score);
	free(history->row);
	*history = (struct nt_score_history){0};
}

/* Rows of more metrics than before: the old ones get missing values. */
static int widen_rows(struct nt_score_history *history, size_t width)
{
	uint16_t *row;

	if (width <= history->width)
		return 0;
	row = malloc(NT_SCORE_HISTORY_ROWS * width * sizeof(*row));
	if (!row)
		return -ENOMEM;
	for (size_t i = 0; i < NT_SCORE_HISTORY_ROWS; i++)
		for (size_t j = 0; j < width; j++)
			row[i * width + j] = j < history->width
						     ? history->row[i * history->width + j]
						     : shorten(NAN);
	free(history->row);
	history->row = row;
	history->width = width;
	return 0;
}

int nt_score_history_add(struct nt_score_history *history, uint64_t minute,
			 const struct nt_score_entry *entry, const double *row, size_t width)
{
	struct nt_score_entry *score;
	uint16_t *to;
	int r;

	if (!history->score) {
		history->score = calloc(NT_SCORE_HISTORY_SCORES, sizeof(*history->score));
		if (!history->score)
			return -ENOMEM;
	}
	r = widen_rows(history, width);
	if (r < 0)
		return r;
	score = &history->score[history->scores++ % NT_SCORE_HISTORY_SCORES];
	*score = *entry;
	score->minute = (uint16_t)minute;
	history->minute = minute;
	to = &history->row[history->rows++ % NT_SCORE_HISTORY_ROWS * history->width];
	for (size_t j = 0; j < history->width; j++)
		to[j] = shorten(j < width ? row[j] : NAN);
	return 0;
}

static const struct nt_score_entry *entry_at(const struct nt_score_history *history, uint64_t i)
{
	return &history->score[i % NT_SCORE_HISTORY_SCORES];
}

static uint64_t minute_of(const struct nt_score_history *history, const struct nt_score_entry *at)
{
	return history->minute - (uint16_t)((uint16_t)history->minute - at->minute);
}

size_t nt_score_history_scores(const struct nt_score_history *history,
			       struct nt_score_point *ret_point)
{
	const uint64_t first = history->scores > NT_SCORE_HISTORY_SCORES
				       ? history->scores - NT_SCORE_HISTORY_SCORES
				       : 0;
	size_t n = 0;

	for (uint64_t i = first; i < history->scores; i++) {
		const struct nt_score_entry *at = entry_at(history, i);

		ret_point[n++] = (struct nt_score_point){minute_of(history, at), (double)at->score,
							 at->leading, at->state};
	}
	return n;
}

size_t nt_score_history_series(const struct nt_score_history *history, size_t column,
			       struct nt_score_point *ret_point)
{
	const uint64_t n =
		history->rows < NT_SCORE_HISTORY_ROWS ? history->rows : NT_SCORE_HISTORY_ROWS;

	if (column >= history->width)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t row = history->rows - n + i, score = history->scores - n + i;
		const struct nt_score_entry *at = entry_at(history, score);

		ret_point[i] = (struct nt_score_point){
			minute_of(history, at),
			widen(history->row[row % NT_SCORE_HISTORY_ROWS * history->width + column]),
			at->leading, at->state};
	}
	return (size_t)n;
}

size_t nt_score_history_bytes(const struct nt_score_history *history)
{
	return (history->score ? NT_SCORE_HISTORY_SCORES * sizeof(*history->score) : 0) +
	       NT_SCORE_HISTORY_ROWS * history->width * sizeof(*history->row);
}
