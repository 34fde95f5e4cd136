/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A rank probe: a timed, batched or queried row of the probe table (agent/probes/probe.h), attached
 * to one process. Other processes that run the same file are not slowed.
 */
#ifndef NT_AGENT_PROBES_RANK_PROBE_H
#define NT_AGENT_PROBES_RANK_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/probes/bpf_loader.h"
#include "agent/probes/link.h"
#include "agent/probes/probe.h"
#include "common/base/cleanup.h"

enum {
	NT_RANK_PROBE_SITES = 8, /* copies of one function or mark; a row with more is not probed */
};

struct nt_rank_probe;

/* The sites in a file where a row's time begins and ends; a batched row has no ends. */
struct nt_rank_probe_sites {
	uint32_t row, begins, ends, at_return;
	struct nt_probe_site begin[NT_RANK_PROBE_SITES], end[NT_RANK_PROBE_SITES];
};

/*
 * Finds the first row of `library` that the open file defines. -ENOENT: none. Blocks while it reads
 * the file: for workers.
 */
NT_MUST_CHECK int nt_rank_probe_find(int fd, int library, struct nt_rank_probe_sites *ret_sites);

/*
 * Attaches to the given sites; cookies are computed from the row. -ESTALE or -ESRCH: the process
 * has ended.
 */
NT_MUST_CHECK int nt_rank_probe_new_at(const struct nt_bpf_loader *loader, int fd, uint32_t pid,
				       const struct nt_rank_probe_sites *sites,
				       struct nt_rank_probe **ret_probe);

/* Detaches. Accepts NULL. */
void nt_rank_probe_free(struct nt_rank_probe *probe);
NT_DEFINE_AUTO(nt_rank_probe, nt_rank_probe_free)

#endif
