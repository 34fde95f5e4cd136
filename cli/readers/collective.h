/* SPDX-License-Identifier: GPL-3.0-or-later */
/* PyTorch's names of collectives and element types, as in its records of all kinds. */
#ifndef NT_CLI_READERS_COLLECTIVE_H
#define NT_CLI_READERS_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire.h"

/*
 * Maps "nccl:_all_gather_base", "allreduce", "nccl:send 0->1" to the operation. *ret_uneven:
 * members may give different counts.
 */
enum nt_op nt_collective_op(const char *name, bool *ret_uneven);

/* NCCL's number of the type ("Float", NULL), as in the live service; others get one of ours. */
uint32_t nt_collective_type(const char *name);

/* Bytes of an element; 0: unknown. */
uint32_t nt_collective_type_bytes(const char *name);

/*
 * The size class of a call. Calls of one operation are aggregated, but the shortest of small and
 * large calls says nothing about the large ones. The minimum is therefore taken over calls of the
 * class that moves most; sizes in one class differ by less than a factor of two.
 */
uint8_t nt_collective_size(uint64_t bytes);
/* The mean minimum per call: times `calls` it is the time of the `most` calls of that size. */
uint64_t nt_collective_spread(uint64_t shortest_ns, uint64_t most, uint64_t calls);

#endif
