/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sorting and selection of doubles: MSD radix sort, insertion sort for small runs. */
#include "common/base/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	FEW = 24, /* up to this size insertion sort is faster */
	DIGIT_BITS = 8,
	BUCKETS = 1 << DIGIT_BITS,
	MANY = 4096, /* from this size on a sample narrows the range first */
	SAMPLE = 1024,
	MARGIN = 56, /* positions in the sample: 3.5 standard errors of its median */
};

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Maps doubles to unsigned integers in the same order. */
static uint64_t key_of(double value)
{
	const uint64_t bits = bits_of(value);

	return bits ^ (bits >> 63 ? UINT64_MAX : (uint64_t)1 << 63);
}

static void insert(double *value, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const double moved = value[i];
		const uint64_t key = key_of(moved);
		size_t at = i;

		for (; at && key_of(value[at - 1]) > key; at--)
			value[at] = value[at - 1];
		value[at] = moved;
	}
}

/*
 * Finds the most significant digit that differs: it begins after the bits that all keys share.
 * False: all are equal. Similar values share many bits, so digits are not at fixed positions.
 */
static bool find_digit(const double *value, size_t n, unsigned *ret_shift)
{
	const uint64_t first = bits_of(value[0]);
	uint64_t differing = 0;
	unsigned top;

	/* For values of one sign, bits differ where keys do. */
	for (size_t i = 1; i < n; i++)
		differing |= bits_of(value[i]) ^ first;
	if (!differing)
		return false;
	top = 64 - (unsigned)__builtin_clzll(differing);
	*ret_shift = top > DIGIT_BITS ? top - DIGIT_BITS : 0;
	return true;
}

static size_t digit_of(double value, unsigned shift)
{
	return key_of(value) >> shift & (BUCKETS - 1);
}

static void count_digits(const double *value, size_t n, unsigned shift, size_t *ret_count)
{
	memset(ret_count, 0, BUCKETS * sizeof(*ret_count));
	for (size_t i = 0; i < n; i++)
		ret_count[digit_of(value[i], shift)]++;
}

/* Distributes the values into buckets by digit, in place; end[i] is the end of bucket i. */
static void distribute(double *value, size_t n, unsigned shift, size_t *end)
{
	size_t next[BUCKETS], count[BUCKETS], sum = 0;

	count_digits(value, n, shift, count);
	for (size_t i = 0; i < BUCKETS; i++) {
		next[i] = sum;
		sum += count[i];
		end[i] = sum;
	}
	for (size_t i = 0; i < BUCKETS; i++) {
		while (next[i] < end[i]) {
			double moved = value[next[i]];
			size_t to = digit_of(moved, shift);

			/* Follow the cycle of misplaced values. */
			while (to != i) {
				const double swap = value[next[to]];

				value[next[to]++] = moved;
				moved = swap;
				to = digit_of(moved, shift);
			}
			value[next[i]++] = moved;
		}
	}
}

/* Each level consumes eight differing bits, so there are at most eight levels. */
void nt_sort(double *value, size_t n)
{
	size_t end[BUCKETS];
	unsigned shift;

	if (n <= FEW) {
		insert(value, n);
		return;
	}
	if (!find_digit(value, n, &shift))
		return;
	distribute(value, n, shift, end);
	for (size_t i = 0, start = 0; shift && i < BUCKETS; start = end[i++])
		if (end[i] - start > 1)
			nt_sort(&value[start], end[i] - start);
}

/* A range of keys, inclusive. */
struct key_range {
	uint64_t first, last;
};

static bool is_among(double value, const struct key_range *span)
{
	return key_of(value) - span->first <= span->last - span->first;
}

/* Moves the values in the span to value[start..end - 1], which has exactly that size. */
static void collect(double *value, size_t n, const struct key_range *span, size_t start, size_t end)
{
	size_t hole = start;

	for (size_t i = 0; i < n; i++) {
		double swap;

		if ((i >= start && i < end) || !is_among(value[i], span))
			continue;
		while (is_among(value[hole], span))
			hole++;
		swap = value[hole];
		value[hole++] = value[i];
		value[i] = swap;
	}
}

/* A range of the values that contains the selected positions. */
struct value_range {
	double *value;
	size_t n, from, to;
};

static void cut(struct value_range *part, const struct key_range *span, size_t start, size_t end)
{
	collect(part->value, part->n, span, start, end);
	part->value += start;
	part->n = end - start;
	part->from -= start;
	part->to -= start;
}

/* Narrows the range to about a sixth by a sample; no change if the sample misses the positions. */
static void cut_by_sample(struct value_range *part)
{
	const size_t n = part->n, low = part->from * SAMPLE / n, high = part->to * SAMPLE / n;
	struct key_range span = {.first = 0, .last = UINT64_MAX};
	double sample[SAMPLE];
	size_t start = 0, end = 0;
	uint32_t at = 0;

	/* Golden-ratio steps, as ranks at equal distances are often similar. */
	for (size_t i = 0; i < SAMPLE; i++, at += 0x9e3779b9)
		sample[i] = part->value[(uint64_t)at * n >> 32];
	nt_sort(sample, SAMPLE);
	if (low >= MARGIN)
		span.first = key_of(sample[low - MARGIN]);
	if (high + MARGIN < SAMPLE)
		span.last = key_of(sample[high + MARGIN]);
	for (size_t i = 0; i < n; i++) {
		const uint64_t key = key_of(part->value[i]);

		start += key < span.first;
		end += key <= span.last;
	}
	if (part->from >= start && part->to < end && end - start < n / 2)
		cut(part, &span, start, end);
}

/* Narrows the range to the bucket of the positions. False: all values are in order. */
static bool cut_by_digit(struct value_range *part)
{
	size_t count[BUCKETS], first = 0, last, start = 0, end;
	uint64_t same, below;
	unsigned shift;

	if (!find_digit(part->value, part->n, &shift))
		return false;
	count_digits(part->value, part->n, shift, count);
	for (; start + count[first] <= part->from; first++)
		start += count[first];
	end = start + count[first];
	for (last = first; end <= part->to; last++)
		end += count[last + 1];
	below = ((uint64_t)1 << shift) - 1;
	same = key_of(part->value[0]) & ~((uint64_t)(BUCKETS - 1) << shift | below);
	cut(part,
	    &(struct key_range){.first = same | (uint64_t)first << shift,
				.last = same | (uint64_t)last << shift | below},
	    start, end);
	if (first == last)
		return shift > 0;
	nt_sort(part->value, part->n);
	return false;
}

/* Like sorting, but only buckets that contain the positions are processed further. */
void nt_sort_select(double *value, size_t n, size_t from, size_t to)
{
	struct value_range part = {.value = value, .n = n, .from = from, .to = to};

	if (n >= MANY)
		cut_by_sample(&part);
	while (part.n > FEW)
		if (!cut_by_digit(&part))
			return;
	insert(part.value, part.n);
}
