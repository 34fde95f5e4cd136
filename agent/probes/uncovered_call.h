/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Uncovered calls: communication functions that a library exports and no row of the probe table
 * covers, such as those of a newer release. A rank that calls them shows fewer calls than it makes.
 */
#ifndef NT_AGENT_PROBES_UNCOVERED_CALL_H
#define NT_AGENT_PROBES_UNCOVERED_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/elf/elf.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_UNCOVERED_NAME = 60,
};

/* Flat: sent between processes as it is. */
struct nt_uncovered_calls {
	uint32_t count;
	char first[NT_UNCOVERED_NAME]; /* by its place in the file; empty if count is 0 */
};

/* True if the name is that of a communication call of MPI or NCCL, and no row has it. */
bool nt_uncovered_call(const char *name);

/* Of the file's dynamic symbols. Counts none in libraries other than MPI's and NCCL's. */
NT_MUST_CHECK int nt_uncovered_calls_find(struct nt_elf *elf, enum nt_library library,
					  struct nt_uncovered_calls *ret_calls);

/* True if the values are possible: they may come from a compromised worker. */
bool nt_uncovered_calls_are_sound(const struct nt_uncovered_calls *calls);

#endif
