/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/dedup.h"

#include <errno.h>
#include <string.h>

enum {
	WINDOW = NT_DEDUP_WINDOW,
	WORDS = WINDOW / 64,
};

static bool test_bit(const struct nt_dedup *sequence, uint64_t behind)
{
	return sequence->seen[behind / 64] >> (behind % 64) & 1;
}

static void set_bit(struct nt_dedup *sequence, uint64_t behind)
{
	sequence->seen[behind / 64] |= 1ULL << (behind % 64);
}

void nt_dedup_release(struct nt_dedup *sequence)
{
	free(sequence->hole);
	*sequence = (struct nt_dedup){0};
}

void nt_dedup_start(struct nt_dedup *sequence, uint64_t number)
{
	sequence->joined = sequence->first = sequence->newest = number;
}

/* ---- holes ----------------------------------------------------------------------------------- */

static int make_holes(struct nt_dedup *sequence)
{
	if (!sequence->hole)
		sequence->hole = calloc(NT_DEDUP_MAX_HOLES, sizeof(*sequence->hole));
	return sequence->hole ? 0 : -ENOMEM;
}

static void remove_hole(struct nt_dedup *sequence, uint32_t at)
{
	sequence->holes--;
	memmove(sequence->hole + at, sequence->hole + at + 1,
		(sequence->holes - at) * sizeof(*sequence->hole));
}

static void forget_oldest(struct nt_dedup *sequence, struct nt_dedup_counters *counters)
{
	const struct nt_dedup_hole *oldest = &sequence->hole[0];

	if (oldest->counted)
		counters->forgotten += oldest->to - oldest->from;
	remove_hole(sequence, 0);
}

/* Appends a hole; make_holes() has been called. */
static void add_hole(struct nt_dedup *sequence, uint64_t from, uint64_t to, bool counted,
		     struct nt_dedup_counters *counters)
{
	struct nt_dedup_hole *last;

	if (sequence->holes) {
		last = &sequence->hole[sequence->holes - 1];
		if (last->to == from && last->counted == counted) {
			last->to = to;
			return;
		}
	}
	if (sequence->holes == NT_DEDUP_MAX_HOLES)
		forget_oldest(sequence, counters);
	sequence->hole[sequence->holes++] = (struct nt_dedup_hole){
		.from = from,
		.to = to,
		.counted = counted,
	};
}

/* Splits a hole. At the cap the oldest is dropped, which may be the front part of this one. */
static void split_hole(struct nt_dedup *sequence, uint32_t at, uint64_t number,
		       struct nt_dedup_counters *counters)
{
	const struct nt_dedup_hole whole = sequence->hole[at];

	sequence->hole[at].to = number;
	if (sequence->holes == NT_DEDUP_MAX_HOLES) {
		forget_oldest(sequence, counters);
		/* If its front part was dropped, the remaining part has its index. */
		at = at ? at - 1 : UINT32_MAX;
	}
	at++;
	memmove(sequence->hole + at + 1, sequence->hole + at,
		(sequence->holes - at) * sizeof(*sequence->hole));
	sequence->hole[at] = (struct nt_dedup_hole){
		.from = number + 1,
		.to = whole.to,
		.counted = whole.counted,
	};
	sequence->holes++;
}

/* Removes the number from its hole; false if it was in none. */
static bool fill_hole(struct nt_dedup *sequence, uint64_t number,
		      struct nt_dedup_counters *counters)
{
	for (uint32_t i = 0; i < sequence->holes; i++) {
		struct nt_dedup_hole *hole = &sequence->hole[i];

		if (number < hole->from || number >= hole->to)
			continue;
		counters->filled += hole->counted;
		if (hole->to - hole->from == 1)
			remove_hole(sequence, i);
		else if (number == hole->from)
			hole->from++;
		else if (number == hole->to - 1)
			hole->to--;
		else
			split_hole(sequence, i, number, counters);
		return true;
	}
	return false;
}

/* ---- the window ------------------------------------------------------------------------------ */

/* The number leaves the window without having been received. */
static void miss(struct nt_dedup *sequence, uint64_t number, struct nt_dedup_counters *counters)
{
	if (!number)
		return;
	counters->gaps += number >= sequence->first;
	add_hole(sequence, number, number + 1, number >= sequence->joined, counters);
}

/* Shifts the window by one number; a number that leaves it unseen is missing. */
static void shift(struct nt_dedup *sequence, struct nt_dedup_counters *counters)
{
	if (sequence->newest >= WINDOW - 1 && !test_bit(sequence, WINDOW - 1))
		miss(sequence, sequence->newest - (WINDOW - 1), counters);
	for (size_t i = WORDS - 1; i > 0; i--)
		sequence->seen[i] = sequence->seen[i] << 1 | sequence->seen[i - 1] >> 63;
	sequence->seen[0] <<= 1;
	sequence->newest++;
}

/* All unseen numbers of the window are missing, and a hole of `skipped` follows. */
static void jump(struct nt_dedup *sequence, uint64_t number, struct nt_dedup_counters *counters)
{
	const uint64_t skipped = number - sequence->newest - 1;

	for (uint64_t i = WINDOW - 1; i > 0; i--)
		if (i <= sequence->newest && !test_bit(sequence, i))
			miss(sequence, sequence->newest - i, counters);
	/* Numbers in the new window are covered by its bits. */
	add_hole(sequence, sequence->newest + 1, number - (WINDOW - 1), true, counters);
	counters->gaps += skipped;
	memset(sequence->seen, 0, sizeof(sequence->seen));
	sequence->first = sequence->newest = number;
}

/* Numbers before the first one received and before the window. */
static int remember_past(struct nt_dedup *sequence, struct nt_dedup_counters *counters)
{
	int r;

	if (sequence->newest != sequence->joined || sequence->newest < WINDOW + 1 ||
	    test_bit(sequence, 0))
		return 0;
	r = make_holes(sequence);
	if (r == 0)
		add_hole(sequence, 1, sequence->newest - (WINDOW - 1), false, counters);
	return r;
}

int nt_dedup_take(struct nt_dedup *sequence, uint64_t number, struct nt_dedup_counters *counters)
{
	uint64_t behind;
	int r = remember_past(sequence, counters);

	if (r == 0 && number > sequence->newest && number >= WINDOW)
		r = make_holes(sequence);
	if (r < 0)
		return r;
	if (number > sequence->newest && number - sequence->newest > WINDOW)
		jump(sequence, number, counters);
	while (sequence->newest < number)
		shift(sequence, counters);
	behind = sequence->newest - number;
	if (behind >= WINDOW)
		return fill_hole(sequence, number, counters);
	if (test_bit(sequence, behind))
		return 0;
	set_bit(sequence, behind);
	/* These were counted as gaps when the numbers jumped over them. */
	counters->filled += number >= sequence->joined && number < sequence->first;
	return 1;
}

/* ---- saved ----------------------------------------------------------------------------------- */

void nt_dedup_save(const struct nt_dedup *sequence, struct nt_codec *codec)
{
	nt_codec_put_u64(codec, sequence->joined);
	nt_codec_put_u64(codec, sequence->first);
	nt_codec_put_u64(codec, sequence->newest);
	for (size_t i = 0; i < WORDS; i++)
		nt_codec_put_u64(codec, sequence->seen[i]);
	nt_codec_put_u32(codec, sequence->holes);
	for (uint32_t i = 0; i < sequence->holes; i++) {
		nt_codec_put_u64(codec, sequence->hole[i].from);
		nt_codec_put_u64(codec, sequence->hole[i].to);
		nt_codec_put_u32(codec, sequence->hole[i].counted);
	}
}

static void load_holes(struct nt_dedup *sequence, struct nt_codec *codec)
{
	const uint32_t holes = nt_codec_get_count(codec, NT_DEDUP_MAX_HOLES);
	uint64_t end = 1;

	if (codec->error || !holes)
		return;
	codec->error = make_holes(sequence);
	for (uint32_t i = 0; i < holes && !codec->error; i++) {
		struct nt_dedup_hole *hole = &sequence->hole[i];

		hole->from = nt_codec_get_u64(codec);
		hole->to = nt_codec_get_u64(codec);
		hole->counted = nt_codec_get_bool(codec);
		if (hole->from < end || hole->to <= hole->from)
			codec->error = -EBADMSG;
		end = hole->to;
	}
	sequence->holes = holes;
}

void nt_dedup_load(struct nt_dedup *sequence, struct nt_codec *codec)
{
	sequence->joined = nt_codec_get_u64(codec);
	sequence->first = nt_codec_get_u64(codec);
	sequence->newest = nt_codec_get_u64(codec);
	for (size_t i = 0; i < WORDS; i++)
		sequence->seen[i] = nt_codec_get_u64(codec);
	load_holes(sequence, codec);
}
