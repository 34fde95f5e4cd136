/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/agents/dedup.h"

#include <errno.h>
#include <string.h>

enum {
	WINDOW = NT_DEDUP_WINDOW,
	WORDS = WINDOW / 64,
};

static bool test_bit(const struct nt_dedup *dedup, uint64_t behind)
{
	return dedup->seen[behind / 64] >> (behind % 64) & 1;
}

static void set_bit(struct nt_dedup *dedup, uint64_t behind)
{
	dedup->seen[behind / 64] |= 1ULL << (behind % 64);
}

void nt_dedup_release(struct nt_dedup *dedup)
{
	free(dedup->hole);
	*dedup = (struct nt_dedup){0};
}

void nt_dedup_start(struct nt_dedup *dedup, uint64_t number)
{
	dedup->joined = dedup->first = dedup->newest = number;
}

/* ---- holes ----------------------------------------------------------------------------------- */

static int make_holes(struct nt_dedup *dedup)
{
	if (!dedup->hole)
		dedup->hole = calloc(NT_DEDUP_MAX_HOLES, sizeof(*dedup->hole));
	return dedup->hole ? 0 : -ENOMEM;
}

static void remove_hole(struct nt_dedup *dedup, uint32_t at)
{
	dedup->holes--;
	memmove(dedup->hole + at, dedup->hole + at + 1, (dedup->holes - at) * sizeof(*dedup->hole));
}

static void forget_oldest(struct nt_dedup *dedup, struct nt_dedup_counters *counters)
{
	const struct nt_dedup_hole *oldest = &dedup->hole[0];

	if (oldest->counted)
		counters->forgotten += oldest->to - oldest->from;
	remove_hole(dedup, 0);
}

/* Appends a hole; make_holes() has been called. */
static void add_hole(struct nt_dedup *dedup, uint64_t from, uint64_t to, bool counted,
		     struct nt_dedup_counters *counters)
{
	struct nt_dedup_hole *last;

	if (dedup->holes) {
		last = &dedup->hole[dedup->holes - 1];
		if (last->to == from && last->counted == counted) {
			last->to = to;
			return;
		}
	}
	if (dedup->holes == NT_DEDUP_MAX_HOLES)
		forget_oldest(dedup, counters);
	dedup->hole[dedup->holes++] = (struct nt_dedup_hole){
		.from = from,
		.to = to,
		.counted = counted,
	};
}

/* Splits a hole. At the cap the oldest is dropped, which may be the front part of this one. */
static void split_hole(struct nt_dedup *dedup, uint32_t at, uint64_t number,
		       struct nt_dedup_counters *counters)
{
	const struct nt_dedup_hole whole = dedup->hole[at];

	dedup->hole[at].to = number;
	if (dedup->holes == NT_DEDUP_MAX_HOLES) {
		forget_oldest(dedup, counters);
		/* If its front part was dropped, the remaining part has its index. */
		at = at ? at - 1 : UINT32_MAX;
	}
	at++;
	memmove(dedup->hole + at + 1, dedup->hole + at, (dedup->holes - at) * sizeof(*dedup->hole));
	dedup->hole[at] = (struct nt_dedup_hole){
		.from = number + 1,
		.to = whole.to,
		.counted = whole.counted,
	};
	dedup->holes++;
}

/* Removes the number from its hole; false if it was in none. */
static bool fill_hole(struct nt_dedup *dedup, uint64_t number, struct nt_dedup_counters *counters)
{
	for (uint32_t i = 0; i < dedup->holes; i++) {
		struct nt_dedup_hole *hole = &dedup->hole[i];

		if (number < hole->from || number >= hole->to)
			continue;
		counters->filled += hole->counted;
		if (hole->to - hole->from == 1)
			remove_hole(dedup, i);
		else if (number == hole->from)
			hole->from++;
		else if (number == hole->to - 1)
			hole->to--;
		else
			split_hole(dedup, i, number, counters);
		return true;
	}
	return false;
}

/* ---- the window ------------------------------------------------------------------------------ */

/* The number leaves the window without having been received. */
static void miss(struct nt_dedup *dedup, uint64_t number, struct nt_dedup_counters *counters)
{
	if (!number)
		return;
	counters->gaps += number >= dedup->first;
	add_hole(dedup, number, number + 1, number >= dedup->joined, counters);
}

/* Shifts the window by one number; a number that leaves it unseen is missing. */
static void shift(struct nt_dedup *dedup, struct nt_dedup_counters *counters)
{
	if (dedup->newest >= WINDOW - 1 && !test_bit(dedup, WINDOW - 1))
		miss(dedup, dedup->newest - (WINDOW - 1), counters);
	for (size_t i = WORDS - 1; i > 0; i--)
		dedup->seen[i] = dedup->seen[i] << 1 | dedup->seen[i - 1] >> 63;
	dedup->seen[0] <<= 1;
	dedup->newest++;
}

/* All unseen numbers of the window are missing, and a hole of `skipped` follows. */
static void jump(struct nt_dedup *dedup, uint64_t number, struct nt_dedup_counters *counters)
{
	const uint64_t skipped = number - dedup->newest - 1;

	for (uint64_t i = WINDOW - 1; i > 0; i--)
		if (i <= dedup->newest && !test_bit(dedup, i))
			miss(dedup, dedup->newest - i, counters);
	/* Numbers in the new window are covered by its bits. */
	add_hole(dedup, dedup->newest + 1, number - (WINDOW - 1), true, counters);
	counters->gaps += skipped;
	memset(dedup->seen, 0, sizeof(dedup->seen));
	dedup->first = dedup->newest = number;
}

/* Numbers before the first one received and before the window. */
static int remember_past(struct nt_dedup *dedup, struct nt_dedup_counters *counters)
{
	int r;

	if (dedup->newest != dedup->joined || dedup->newest < WINDOW + 1 || test_bit(dedup, 0))
		return 0;
	r = make_holes(dedup);
	if (r == 0)
		add_hole(dedup, 1, dedup->newest - (WINDOW - 1), false, counters);
	return r;
}

int nt_dedup_take(struct nt_dedup *dedup, uint64_t number, struct nt_dedup_counters *counters)
{
	uint64_t behind;
	int r = remember_past(dedup, counters);

	if (r == 0 && number > dedup->newest && number >= WINDOW)
		r = make_holes(dedup);
	if (r < 0)
		return r;
	if (number > dedup->newest && number - dedup->newest > WINDOW)
		jump(dedup, number, counters);
	while (dedup->newest < number)
		shift(dedup, counters);
	behind = dedup->newest - number;
	if (behind >= WINDOW)
		return fill_hole(dedup, number, counters);
	if (test_bit(dedup, behind))
		return 0;
	set_bit(dedup, behind);
	/* These were counted as gaps when the numbers jumped over them. */
	counters->filled += number >= dedup->joined && number < dedup->first;
	return 1;
}

/* ---- saved ----------------------------------------------------------------------------------- */

void nt_dedup_save(const struct nt_dedup *dedup, struct nt_codec *codec)
{
	nt_codec_put_u64(codec, dedup->joined);
	nt_codec_put_u64(codec, dedup->first);
	nt_codec_put_u64(codec, dedup->newest);
	for (size_t i = 0; i < WORDS; i++)
		nt_codec_put_u64(codec, dedup->seen[i]);
	nt_codec_put_u32(codec, dedup->holes);
	for (uint32_t i = 0; i < dedup->holes; i++) {
		nt_codec_put_u64(codec, dedup->hole[i].from);
		nt_codec_put_u64(codec, dedup->hole[i].to);
		nt_codec_put_u32(codec, dedup->hole[i].counted);
	}
}

static void load_holes(struct nt_dedup *dedup, struct nt_codec *codec)
{
	const uint32_t holes = nt_codec_get_count(codec, NT_DEDUP_MAX_HOLES);
	uint64_t end = 1;

	if (codec->error || !holes)
		return;
	codec->error = make_holes(dedup);
	for (uint32_t i = 0; i < holes && !codec->error; i++) {
		struct nt_dedup_hole *hole = &dedup->hole[i];

		hole->from = nt_codec_get_u64(codec);
		hole->to = nt_codec_get_u64(codec);
		hole->counted = nt_codec_get_bool(codec);
		if (hole->from < end || hole->to <= hole->from)
			codec->error = -EBADMSG;
		end = hole->to;
	}
	dedup->holes = holes;
}

void nt_dedup_load(struct nt_dedup *dedup, struct nt_codec *codec)
{
	dedup->joined = nt_codec_get_u64(codec);
	dedup->first = nt_codec_get_u64(codec);
	dedup->newest = nt_codec_get_u64(codec);
	for (size_t i = 0; i < WORDS; i++)
		dedup->seen[i] = nt_codec_get_u64(codec);
	load_holes(dedup, codec);
}
