/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How far each partition of the bus has been read. After a restart the bus is wound back to the
 * windows that still waited for their frame; what was taken before is then read again.
 */
#ifndef NT_AGGREGATOR_GROUP_OFFSETS_H
#define NT_AGGREGATOR_GROUP_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"

struct nt_offsets;

NT_MUST_CHECK int nt_offsets_new(struct nt_offsets **ret_places);
void nt_offsets_free(struct nt_offsets *places);
NT_DEFINE_AUTO(nt_offsets, nt_offsets_free)

/* The record is taken. *ret_again: it had been taken before the state was saved. -ENOMEM. */
NT_MUST_CHECK int nt_offsets_take(struct nt_offsets *places, const struct nt_bus_record *record,
				  bool *ret_again);

/*
 * Where to read a partition from: behind what was taken, or further back to the windows that waited
 * when the state was saved. -ENOENT where it was never read. Needs no look at the bus.
 */
NT_MUST_CHECK int nt_offsets_start(const struct nt_offsets *places, enum nt_topic topic,
				   uint32_t partition, uint64_t *ret_offset);

/* What had been taken before and is still to be read once more is not there any more. */
void nt_offsets_caught_up(struct nt_offsets *places);

/* Winds the reader to where it was, or further back to the windows that waited. */
NT_MUST_CHECK int nt_offsets_seek(const struct nt_offsets *places, struct nt_bus_reader *reader);

/* The last record taken of each partition. The caller frees *ret_position. */
NT_MUST_CHECK int nt_offsets_list(const struct nt_offsets *places,
				  struct nt_bus_position **ret_position, size_t *ret_count);

/* waiting_ns: the end of the oldest window that waits for its frame; UINT64_MAX: none does. */
NT_MUST_CHECK int nt_offsets_save(const struct nt_offsets *places, uint64_t waiting_ns,
				  struct nt_buf *buf);
NT_MUST_CHECK int nt_offsets_load(struct nt_offsets *places, const void *data, size_t size);

#endif
