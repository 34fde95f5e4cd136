/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collectives and element types as PyTorch calls them, in its records of all kinds. */
#ifndef NT_CLI_READERS_COLLECTIVE_H
#define NT_CLI_READERS_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire.h"

/*
 * "nccl:_all_gather_base", "allreduce", "nccl:send 0->1": the operation. *ret_uneven: members may
 * give different counts.
 */
enum nt_op nt_collective_op(const char *name, bool *ret_uneven);

/* "Float", NULL: NCCL's number of the type, which the live service shows too; others get one. */
uint32_t nt_collective_type(const char *name);

/* Bytes of an element; 0: not known. */
uint32_t nt_collective_type_bytes(const char *name);

/*
 * Calls of one operation are told of together, and how long the shortest of a small call and a large
 * one took says nothing of the large one: it is taken of calls of one size, those that move most, a
 * size being what differs by less than twice.
 */
uint8_t nt_collective_size(uint64_t bytes);
/* Of the `most` calls of that size, spread over all: their number times that is what these take. */
uint64_t nt_collective_spread(uint64_t shortest_ns, uint64_t most, uint64_t calls);

#endif
