/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The timed rows of the table (agent/probes/probe.h), attached to one process alone: its file is run by
 * many that are none of our business, and who is not probed pays nothing.
 */
#ifndef NT_AGENT_PROBES_GC_PROBE_H
#define NT_AGENT_PROBES_GC_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/probes/bpf_loader.h"
#include "agent/probes/link.h"
#include "agent/probes/probe.h"
#include "common/base/cleanup.h"

enum {
	NT_GC_PROBE_PLACES = 8, /* copies of one function or mark; with more it is not probed */
};

struct nt_gc_probe;

/* Where a row's time begins and ends in a file. */
struct nt_gc_probe_places {
	uint32_t row, begins, ends, at_return;
	struct nt_place begin[NT_GC_PROBE_PLACES], end[NT_GC_PROBE_PLACES];
};

/*
 * The first row of `library` that the open file has. -ENOENT: it has none. Reads the file, which may
 * take a while: for workers.
 */
NT_MUST_CHECK int nt_gc_probe_find(int fd, int library, struct nt_gc_probe_places *ret_places);

/*
 * Attaches there. The cookies are those of the row, whatever the places say. -ESTALE or -ESRCH: the
 * process is gone.
 */
NT_MUST_CHECK int nt_gc_probe_new_at(const struct nt_bpf_loader *kernel, int fd, uint32_t pid,
				     const struct nt_gc_probe_places *places,
				     struct nt_gc_probe **ret_span);

/* Detaches. Accepts NULL. */
void nt_gc_probe_free(struct nt_gc_probe *span);
NT_DEFINE_AUTO(nt_gc_probe, nt_gc_probe_free)

#endif
