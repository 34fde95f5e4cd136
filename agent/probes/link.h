/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A link: one BPF program attached to many sites of one file. It uses uprobe.multi if the kernel
 * has it, else a perf link per site. libbpf before 1.3 does not support the former, so the system
 * call is made here.
 */
#ifndef NT_AGENT_PROBES_LINK_H
#define NT_AGENT_PROBES_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "common/base/cleanup.h"

/* Attach types that linux/bpf.h defines from 6.6 and 6.13 on. */
enum {
	NT_UPROBE_MULTI = 48,
	NT_UPROBE_SESSION = 57,
};

/* An offset in the file, with the cookie that the program receives there. */
struct nt_probe_site {
	uint64_t offset, cookie;
	uint64_t semaphore; /* file offset of the 16-bit USDT semaphore; 0: none */
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
 * pid: the link covers all threads of one process; 0: all processes. (Before 46ba0e49b642 of 6.10 a
 * multi link covered only its first thread.) Breakpoints are in its memory, and in that of children
 * forked meanwhile.
 *
 * Attaches all sites or none: one site that the kernel refuses fails the link. path may lead
 * through /proc/self/fd. Negative errno as of bpf(2) or perf_event_open(2).
 */
NT_MUST_CHECK int nt_link_new(const struct bpf_program *program, enum nt_link_kind kind,
			      const char *path, uint32_t pid, const struct nt_probe_site *site,
			      size_t sites, struct nt_link **ret_link);
/*
 * Detaches. Accepts NULL. Takes 0.1 s per perf link; for a multi link the number of sites does not
 * matter.
 */
void nt_link_free(struct nt_link *link);
NT_DEFINE_AUTO(nt_link, nt_link_free)

#endif
