/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which numbers of one stream were seen. Near the newest every number has a bit; what is missing
 * further back is remembered as holes, so that a backlog that comes minutes late is told from what
 * comes twice, and fills the gaps that were counted.
 */
#ifndef NT_AGGREGATOR_SEQUENCE_H
#define NT_AGGREGATOR_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/codec.h"

enum {
	NT_SEQUENCE_WINDOW = 256, /* numbers with a bit of their own, the newest included */
	NT_SEQUENCE_MAX_HOLES = 16, /* the oldest is forgotten for a new one */
};

/* Monotonic. What never came: gaps - filled. */
struct nt_sequence_counters {
	uint64_t gaps; /* numbers that were missing when others had gone far ahead */
	uint64_t filled; /* and that came after all */
	uint64_t forgotten; /* and that would now be taken for something seen before */
};

struct nt_sequence_hole {
	uint64_t from, to; /* [from, to) */
	bool counted; /* as gaps */
};

struct nt_sequence {
	uint64_t joined; /* the first number ever seen: what is below may never have been ours */
	uint64_t first; /* numbers below are counted already, if they are at all */
	uint64_t newest;
	uint64_t seen[NT_SEQUENCE_WINDOW / 64]; /* bit i is number newest - i */
	struct nt_sequence_hole
		*hole; /* ascending, none of them within the window; NULL: none yet */
	uint32_t holes;
};

/* As if nothing were seen, but the numbers begin here. */
void nt_sequence_start(struct nt_sequence *sequence, uint64_t number);
void nt_sequence_release(struct nt_sequence *sequence);

/* 1: it is new. 0: it was seen before, or is so old that nobody can tell. -ENOMEM. */
NT_MUST_CHECK int nt_sequence_take(struct nt_sequence *sequence, uint64_t number,
				   struct nt_sequence_counters *counters);

void nt_sequence_save(const struct nt_sequence *sequence, struct nt_codec *codec);
/* Fills a zeroed one; the codec keeps the error. */
void nt_sequence_load(struct nt_sequence *sequence, struct nt_codec *codec);

#endif
