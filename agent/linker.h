/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes and frees bundles of links on a thread of its own, in the order of the requests: either takes
 * milliseconds to seconds, which the agent's loop must not wait for. Results come back to the loop,
 * and a descriptor becomes readable; no other data is shared.
 */
#ifndef NT_AGENT_LINKER_H
#define NT_AGENT_LINKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/bundle.h"
#include "common/cleanup.h"

enum {
	NT_LINKER_REQUESTS = 4096, /* waiting; beyond that -EAGAIN */
};

struct nt_linker;

struct nt_linker_result {
	uint64_t token; /* of the request */
	int r; /* of a bundle that was to be made */
	struct nt_bundle *bundle; /* handed over; NULL where none was made, or it was freed again */
	uint64_t from_ns, until_ns; /* boot time: attached since; of a look, and until */
};

/* The kernel is borrowed. */
NT_MUST_CHECK int nt_linker_new(const struct nt_kernel *kernel, struct nt_linker **ret_linker);
/* Carries out what waits for being freed, and drops the rest. Accepts NULL. */
void nt_linker_free(struct nt_linker *linker);
NT_DEFINE_AUTO(nt_linker, nt_linker_free)

/* Readable when there are results. */
int nt_linker_fd(const struct nt_linker *linker);

/*
 * Makes a bundle in the open file, whose descriptor is duplicated and whose targets are copied.
 * look_ns: frees it again after this time; 0: hands it over.
 */
NT_MUST_CHECK int nt_linker_make(struct nt_linker *linker, uint64_t token, int fd, uint32_t pid,
				 const struct nt_target *target, size_t targets, uint64_t look_ns);
/* Frees the bundle, which is consumed; no result comes of it. */
void nt_linker_drop(struct nt_linker *linker, struct nt_bundle *bundle);

/* The next result; false: none. */
bool nt_linker_next(struct nt_linker *linker, struct nt_linker_result *ret_result);

#endif
