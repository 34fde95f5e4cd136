/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Deduplication by sequence number: which numbers of one stream were received. The newest numbers
 * have a bit each; older missing ones are kept as holes. A backlog that arrives minutes late is
 * thus distinguished from duplicates and fills the gaps that were counted.
 */
#ifndef NT_ENGINE_AGENTS_DEDUP_H
#define NT_ENGINE_AGENTS_DEDUP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/codec.h"

enum {
	NT_DEDUP_WINDOW = 256, /* numbers with a bit of their own, the newest included */
	NT_DEDUP_MAX_HOLES = 16, /* the oldest is dropped for a new one */
};

/* Monotonic. Messages lost: gaps - filled. */
struct nt_dedup_counters {
	uint64_t gaps; /* numbers still missing when they left the window */
	uint64_t filled; /* of these, received later */
	uint64_t forgotten; /* of these, dropped holes: a late arrival counts as a duplicate */
};

struct nt_dedup_hole {
	uint64_t from, to; /* [from, to) */
	bool counted; /* as gaps */
};

struct nt_dedup {
	uint64_t joined; /* first number received; lower ones may precede the subscription */
	uint64_t first; /* lower numbers are already counted, if at all */
	uint64_t newest;
	uint64_t seen[NT_DEDUP_WINDOW / 64]; /* bit i is number newest - i */
	struct nt_dedup_hole *hole; /* ascending, none of them within the window; NULL: none yet */
	uint32_t holes;
};

/* Empties the state; numbers start at `number`. */
void nt_dedup_start(struct nt_dedup *dedup, uint64_t number);
void nt_dedup_release(struct nt_dedup *dedup);

/* 1: new. 0: a duplicate, or too old to decide. -ENOMEM. */
NT_MUST_CHECK int nt_dedup_take(struct nt_dedup *dedup, uint64_t number,
				struct nt_dedup_counters *counters);

void nt_dedup_save(const struct nt_dedup *dedup, struct nt_codec *codec);
/* Loads into a zeroed object; errors are kept in the codec. */
void nt_dedup_load(struct nt_dedup *dedup, struct nt_codec *codec);

#endif
