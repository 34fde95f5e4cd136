/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory that is given out piece by piece and released at once. Not for two threads at a time. */
#ifndef NT_AGGREGATOR_ARENA_H
#define NT_AGGREGATOR_ARENA_H

#include <stddef.h>

#include "common/cleanup.h"

struct nt_arena;

NT_MUST_CHECK int nt_arena_new(struct nt_arena **ret_arena);
void nt_arena_free(struct nt_arena *arena);
NT_DEFINE_AUTO(nt_arena, nt_arena_free)

/* Zeroed, aligned for anything. NULL where memory ran out; zero pieces are not NULL. */
void *nt_arena_alloc(struct nt_arena *arena, size_t count, size_t size);
/* NULL text is "". */
const char *nt_arena_text(struct nt_arena *arena, const char *text);
const char *nt_arena_printf(struct nt_arena *arena, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Takes back all that was given out, and keeps some of the memory for the next round. */
void nt_arena_reset(struct nt_arena *arena);

#endif
