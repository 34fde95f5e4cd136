/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The links that attach some functions of one file: of all processes that map it, or of one. Making and
 * freeing a bundle takes some milliseconds, or 0.1 s for each perf link: agent/probes/linker.h does it beside
 * the loop.
 */
#ifndef NT_AGENT_PROBES_BUNDLE_H
#define NT_AGENT_PROBES_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/probes/bpf_loader.h"
#include "agent/probes/probe.h"
#include "common/base/cleanup.h"

/* How a row is attached. */
enum nt_probe_target_kind {
	NT_PROBE_TARGET_COUNT, /* only counted */
	NT_PROBE_TARGET_ENTRY,
	NT_PROBE_TARGET_PAIR, /* entry and return */
	NT_PROBE_TARGET_KINDS,
};

/* A function of a file that can be attached. */
struct nt_probe_target {
	struct nt_place place;
	uint64_t function; /* its start in the file: aliases share it */
	uint16_t row;
	enum nt_subject subject;
	enum nt_probe_target_kind kind;
	bool stays; /* nt_probe_stays() */
};

enum nt_probe_target_kind nt_probe_target_kind_of(const struct nt_probe *probe);

struct nt_bundle;

/*
 * pid 0: of all processes; else of that one alone, and its events carry NT_CALL_OWN. All targets or
 * none. path as of nt_link_new(). Thread-safe: it changes nothing in the kernel's object.
 */
NT_MUST_CHECK int nt_bundle_new(const struct nt_bpf_loader *kernel, const char *path, uint32_t pid,
				const struct nt_probe_target *target, size_t targets,
				struct nt_bundle **ret_bundle);
/*
 * The same of all processes, without the targets that the kernel does not take: ret_refused, one for
 * each target, says which. The targets are sorted by nt_probe_target_by_link(), and what differs by it shares no
 * link. Negative errno, and nothing is attached: -ENOMEM, -EPERM, -EACCES, -EMFILE, -ENFILE.
 */
NT_MUST_CHECK int nt_bundle_attach(const struct nt_bpf_loader *kernel, const char *path,
				   const struct nt_probe_target *target, size_t targets,
				   bool *ret_refused, struct nt_bundle **ret_bundle);
int nt_probe_target_by_link(const void *left, const void *right);
/* Detaches. Accepts NULL. */
void nt_bundle_free(struct nt_bundle *bundle);
NT_DEFINE_AUTO(nt_bundle, nt_bundle_free)

/*
 * An empty one, and links put in and taken out in the same order; they are owned while they are in it.
 * stays: of nt_bundle_attach(), are the link's targets those that stay?
 */
struct nt_bundle *nt_bundle_empty(void);
bool nt_bundle_add(struct nt_bundle *bundle, struct nt_link *link,
		   bool stays); /* false: no memory */
struct nt_link *nt_bundle_take(struct nt_bundle *bundle, bool *ret_stays); /* NULL: none is left */

size_t nt_bundle_links(const struct nt_bundle *bundle);

#endif
