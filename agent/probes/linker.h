/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The linker: a thread that makes and frees link sets, in the order of
 * agent/probes/link_queue.h. Either takes milliseconds to seconds, too long for the agent's loop.
 * Results are queued for the loop, and a descriptor becomes readable; no other data is shared.
 */
#ifndef NT_AGENT_PROBES_LINKER_H
#define NT_AGENT_PROBES_LINKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/probes/link_set.h"
#include "agent/probes/rank_probe.h"
#include "common/base/cleanup.h"

struct nt_linker;

struct nt_linker_request {
	uint64_t token; /* returned in the result */
	uint64_t owner; /* fairness key; 0: the owner is not known */
	int fd; /* the open file; duplicated */
	uint32_t pid;
	bool halves; /* as nt_link_set_attach(); else all or none, as nt_link_set_new() */
	const struct nt_probe_target *target; /* copied */
	size_t targets;
	/* copied; a GC probe is made at these sites in place of a link set; or NULL */
	const struct nt_rank_probe_sites *sites;
	uint64_t look_ns; /* a look: freed after this time; 0: handed over */
};

struct nt_linker_result {
	uint64_t token; /* of the request */
	int r; /* 0 or a negative errno */
	struct nt_link_set *link_set; /* handed over; NULL: not made, or freed again after a look */
	struct nt_rank_probe *probe; /* handed over; or NULL */
	bool *refused; /* handed over; of nt_link_set_attach(), else NULL; per target */
	uint64_t from_ns, until_ns; /* boot time: attached from, and for a look until */
};

/* The loader is borrowed. */
NT_MUST_CHECK int nt_linker_new(const struct nt_bpf_loader *loader, struct nt_linker **ret_linker);
/* Frees what is queued for freeing, drops other requests, and joins the thread. Accepts NULL. */
void nt_linker_free(struct nt_linker *linker);
NT_DEFINE_AUTO(nt_linker, nt_linker_free)

/* Readable when results are queued. */
int nt_linker_fd(const struct nt_linker *linker);

/*
 * Queues the making of a link set or a GC probe. -EAGAIN: the queue is full, or the owner's part of
 * it.
 */
NT_MUST_CHECK int nt_linker_make(struct nt_linker *linker, const struct nt_linker_request *wanted);
/* True if nt_linker_make() would not fail with -EAGAIN. */
bool nt_linker_has_room(struct nt_linker *linker, uint64_t owner, bool look);
/*
 * Queues the link set or the GC probe for freeing. It is consumed, and there is no result. owner: of
 * the process, as in the request; 0 for links of several.
 */
void nt_linker_drop(struct nt_linker *linker, uint64_t owner, struct nt_link_set *link_set);
void nt_linker_drop_rank_probe(struct nt_linker *linker, struct nt_rank_probe *probe);

/* Takes the next result. False: there is none. */
bool nt_linker_next(struct nt_linker *linker, struct nt_linker_result *ret_result);

#endif
