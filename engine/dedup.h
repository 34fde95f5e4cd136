/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which numbers of one stream were seen. Near the newest every number has a bit; what is missing
 * further back is remembered as holes, so that a backlog that comes minutes late is told from what
 * comes twice, and fills the gaps that were counted.
 */
#ifndef NT_ENGINE_DEDUP_H
#define NT_ENGINE_DEDUP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/codec.h"

enum {
	NT_DEDUP_WINDOW = 256, /* numbers with a bit of their own, the newest included */
	NT_DEDUP_MAX_HOLES = 16, /* the oldest is forgotten for a new one */
};

/* Monotonic. What never came: gaps - filled. */
struct nt_dedup_counters {
	uint64_t gaps; /* numbers that were missing when others had gone far ahead */
	uint64_t filled; /* and that came after all */
	uint64_t forgotten; /* and that would now be taken for something seen before */
};

struct nt_dedup_hole {
	uint64_t from, to; /* [from, to) */
	bool counted; /* as gaps */
};

struct nt_dedup {
	uint64_t joined; /* the first number ever seen: what is below may never have been ours */
	uint64_t first; /* numbers below are counted already, if they are at all */
	uint64_t newest;
	uint64_t seen[NT_DEDUP_WINDOW / 64]; /* bit i is number newest - i */
	struct nt_dedup_hole *hole; /* ascending, none of them within the window; NULL: none yet */
	uint32_t holes;
};

/* As if nothing were seen, but the numbers begin here. */
void nt_dedup_start(struct nt_dedup *sequence, uint64_t number);
void nt_dedup_release(struct nt_dedup *sequence);

/* 1: it is new. 0: it was seen before, or is so old that nobody can tell. -ENOMEM. */
NT_MUST_CHECK int nt_dedup_take(struct nt_dedup *sequence, uint64_t number,
				struct nt_dedup_counters *counters);

void nt_dedup_save(const struct nt_dedup *sequence, struct nt_codec *codec);
/* Fills a zeroed one; the codec keeps the error. */
void nt_dedup_load(struct nt_dedup *sequence, struct nt_codec *codec);

#endif
