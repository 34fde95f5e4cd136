/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes and frees bundles of links on a thread of its own, in the order of agent/probes/link_queue.h: either
 * takes milliseconds to seconds, which the agent's loop must not wait for. Results come back to the loop,
 * and a descriptor becomes readable; no other data is shared.
 */
#ifndef NT_AGENT_PROBES_LINKER_H
#define NT_AGENT_PROBES_LINKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/probes/bundle.h"
#include "agent/probes/gc_probe.h"
#include "common/base/cleanup.h"

struct nt_linker;

struct nt_linker_request {
	uint64_t token; /* comes back in the result */
	uint64_t owner; /* whose turn it is; 0: nobody's that is known */
	int fd; /* the open file; duplicated */
	uint32_t pid;
	bool halves; /* as nt_bundle_attach(), else all or none, as nt_bundle_new() */
	const struct nt_probe_target *target; /* copied */
	size_t targets;
	/* copied; a span is made there, and no bundle; or NULL */
	const struct nt_gc_probe_places *places;
	uint64_t look_ns; /* freed again after this time; 0: handed over */
};

struct nt_linker_result {
	uint64_t token; /* of the request */
	int r; /* of a bundle that was to be made */
	struct nt_bundle *bundle; /* handed over; NULL where none was made, or it was freed again */
	struct nt_gc_probe *span; /* handed over; or NULL */
	bool *refused; /* handed over; of nt_bundle_attach(), else NULL */
	uint64_t from_ns, until_ns; /* boot time: attached since; of a look, and until */
};

/* The kernel is borrowed. */
NT_MUST_CHECK int nt_linker_new(const struct nt_bpf_loader *kernel, struct nt_linker **ret_linker);
/* Carries out what waits for being freed, and drops the rest. Accepts NULL. */
void nt_linker_free(struct nt_linker *linker);
NT_DEFINE_AUTO(nt_linker, nt_linker_free)

/* Readable when there are results. */
int nt_linker_fd(const struct nt_linker *linker);

/* Makes a bundle or a span. -EAGAIN: so much waits already, of all or of this owner. */
NT_MUST_CHECK int nt_linker_make(struct nt_linker *linker, const struct nt_linker_request *wanted);
/* Would nt_linker_make() find room? */
bool nt_linker_has_room(struct nt_linker *linker, uint64_t owner, bool look);
/* Frees the bundle, or the span, which is consumed; no result comes of it. */
void nt_linker_drop(struct nt_linker *linker, struct nt_bundle *bundle);
void nt_linker_drop_span(struct nt_linker *linker, struct nt_gc_probe *span);

/* The next result; false: none. */
bool nt_linker_next(struct nt_linker *linker, struct nt_linker_result *ret_result);

#endif
