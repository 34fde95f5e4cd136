/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The timed rows of the table (agent/probe.h), attached to one process alone: its file is run by
 * many that are none of our business, and who is not probed pays nothing.
 */
#ifndef NT_AGENT_SPAN_H
#define NT_AGENT_SPAN_H

#include <stddef.h>
#include <stdint.h>

#include "agent/kernel.h"
#include "agent/link.h"
#include "agent/probe.h"
#include "common/cleanup.h"

enum {
	NT_SPAN_PLACES = 8, /* copies of one function or mark; with more it is not probed */
};

struct nt_span;

/* Where a row's time begins and ends in a file. */
struct nt_span_places {
	uint32_t row, begins, ends, at_return;
	struct nt_place begin[NT_SPAN_PLACES], end[NT_SPAN_PLACES];
};

/*
 * The first row of `library` that the open file has. -ENOENT: it has none. Reads the file, which may
 * take a while: for workers.
 */
NT_MUST_CHECK int nt_span_find(int fd, int library, struct nt_span_places *ret_places);

/*
 * Attaches there. The cookies are those of the row, whatever the places say. -ESTALE or -ESRCH: the
 * process is gone.
 */
NT_MUST_CHECK int nt_span_new_at(const struct nt_kernel *kernel, int fd, uint32_t pid,
				 const struct nt_span_places *places, struct nt_span **ret_span);

/* Detaches. Accepts NULL. */
void nt_span_free(struct nt_span *span);
NT_DEFINE_AUTO(nt_span, nt_span_free)

#endif
