/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Groups the ranks that do the same work, if all communicators of a job are known. Ranks that
 * reduce with each other do, in data or tensor parallelism; neighbours in a pipeline do not.
 */
#ifndef NT_CLI_READERS_STAGE_H
#define NT_CLI_READERS_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum nt_stage_use {
	NT_STAGE_SENDS = 1 << 0, /* point to point */
	NT_STAGE_REDUCES = 1 << 1, /* all-reduce, all-gather, reduce-scatter, barrier */
};

/* One rank in one communicator. */
struct nt_stage_link {
	uint64_t comm;
	uint32_t rank; /* index */
	unsigned int use; /* operations of this rank in it */
};

/*
 * Sorts the links. ret_stage[rank] is the lowest rank of those that do the same work, or -1 for a
 * rank without peers. -ENOMEM.
 */
NT_MUST_CHECK int nt_stage_find(struct nt_stage_link *link, size_t links, size_t ranks,
				int32_t *ret_stage);

#endif
