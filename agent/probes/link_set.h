/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A link set: the links that attach some functions of one file, for all processes that map it or
 * for one. Making or freeing one takes milliseconds, and 0.1 s per perf link. agent/probes/linker.h
 * does it outside the loop.
 */
#ifndef NT_AGENT_PROBES_LINK_SET_H
#define NT_AGENT_PROBES_LINK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/probes/bpf_loader.h"
#include "agent/probes/probe.h"
#include "common/base/cleanup.h"

/* How a row is attached. */
enum nt_probe_target_kind {
	NT_PROBE_TARGET_COUNT, /* calls are only counted */
	NT_PROBE_TARGET_ENTRY,
	NT_PROBE_TARGET_PAIR, /* entry and return */
	NT_PROBE_TARGET_MEMORY, /* the same, of allocations and releases of device memory */
	NT_PROBE_TARGET_GEMM, /* the same, of a matrix multiplication */
	NT_PROBE_TARGET_VERBS, /* the same, of libibverbs */
	NT_PROBE_TARGET_KINDS,
};

/* A function of a file that can be probed. */
struct nt_probe_target {
	struct nt_probe_site site;
	uint64_t function; /* its start in the file: aliases share it */
	uint16_t row;
	enum nt_subject subject;
	enum nt_probe_target_kind kind;
	bool stays; /* nt_probe_stays() */
};

enum nt_probe_target_kind nt_probe_target_kind_of(const struct nt_probe *probe);
/* True if its return is recorded, too. */
bool nt_probe_target_returns(enum nt_probe_target_kind kind);

struct nt_link_set;

/*
 * pid 0: for all processes; else for one, whose events carry NT_CALL_OWN. Attaches all targets or
 * none. path as of nt_link_new(). Thread-safe: the loader is not changed.
 */
NT_MUST_CHECK int nt_link_set_new(const struct nt_bpf_loader *loader, const char *path,
				  uint32_t pid, const struct nt_probe_target *target,
				  size_t targets, struct nt_link_set **ret_link_set);
/*
 * The same for all processes, without the targets that the kernel refuses, which are set in
 * ret_refused. The targets are sorted by nt_probe_target_by_link(); those that compare unequal
 * share no link. On -ENOMEM, -EPERM, -EACCES, -EMFILE or -ENFILE nothing is attached.
 */
NT_MUST_CHECK int nt_link_set_attach(const struct nt_bpf_loader *loader, const char *path,
				     const struct nt_probe_target *target, size_t targets,
				     bool *ret_refused, struct nt_link_set **ret_link_set);
int nt_probe_target_by_link(const void *left, const void *right);
/* Detaches. Accepts NULL. */
void nt_link_set_free(struct nt_link_set *link_set);
NT_DEFINE_AUTO(nt_link_set, nt_link_set_free)

/*
 * An empty link set, to which links are added and from which they are taken in the same order. It
 * owns the links in it. stays: the link's targets are staying ones (nt_probe_stays()).
 */
struct nt_link_set *nt_link_set_empty(void);
bool nt_link_set_add(struct nt_link_set *link_set, struct nt_link *link,
		     bool stays); /* false: no memory */
struct nt_link *nt_link_set_take(struct nt_link_set *link_set,
				 bool *ret_stays); /* NULL: none is left */

size_t nt_link_set_count(const struct nt_link_set *link_set);

#endif
