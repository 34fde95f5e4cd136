/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One program at many places of one file, by uprobe.multi where the kernel has it and by a perf
 * link per place where not. libbpf before 1.3 has no call for the former: it is made here.
 */
#ifndef NT_AGENT_PROBES_LINK_H
#define NT_AGENT_PROBES_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "common/base/cleanup.h"

/* Attach types that linux/bpf.h has only from 6.6 and 6.13 on. */
enum {
	NT_UPROBE_MULTI = 48,
	NT_UPROBE_SESSION = 57,
};

/* A place: where in the file, and what the program is told there. */
struct nt_place {
	uint64_t offset, cookie;
	uint64_t semaphore; /* offset of 16 bits that are counted up meanwhile; 0: none */
};

enum nt_link_kind {
	NT_LINK_MULTI_ENTRY,
	NT_LINK_MULTI_RETURN,
	NT_LINK_MULTI_SESSION,
	NT_LINK_PERF_ENTRY,
	NT_LINK_PERF_RETURN,
};

struct nt_link;

/*
 * pid: of one process alone, whichever of its threads comes by (before 46ba0e49b642 of 6.10 a multi
 * link took this to be its first thread); the breakpoints are in its memory, and in that of children
 * that it forks meanwhile. 0: of all.
 *
 * All places or none: a single one that the kernel does not take fails the link. path may lead
 * through /proc/self/fd. Negative errno as of bpf(2) or perf_event_open(2).
 */
NT_MUST_CHECK int nt_link_new(const struct bpf_program *program, enum nt_link_kind kind,
			      const char *path, uint32_t pid, const struct nt_place *place,
			      size_t places, struct nt_link **ret_link);
/* Detaches. Accepts NULL. About 0.1 s per perf link, whatever their number for a multi link. */
void nt_link_free(struct nt_link *link);
NT_DEFINE_AUTO(nt_link, nt_link_free)

#endif
