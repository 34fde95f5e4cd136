/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Read offsets of each partition of the bus. After a restart reading resumes at the oldest window
 * that still waited for its frame; records taken before are replayed.
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

NT_MUST_CHECK int nt_offsets_new(struct nt_offsets **ret_offsets);
void nt_offsets_free(struct nt_offsets *offsets);
NT_DEFINE_AUTO(nt_offsets, nt_offsets_free)

/*
 * Records that a record is taken. *ret_again: it is a replay of the time before the save. -ENOMEM.
 */
NT_MUST_CHECK int nt_offsets_take(struct nt_offsets *offsets, const struct nt_bus_record *record,
				  bool *ret_again);

/*
 * The start offset of a partition: after the records taken, or earlier, at the windows that waited
 * when the state was saved. -ENOENT if it was never read. Does not access the bus.
 */
NT_MUST_CHECK int nt_offsets_start(const struct nt_offsets *offsets, enum nt_topic topic,
				   uint32_t partition, uint64_t *ret_offset);

/* Ends the replay: its remaining records no longer exist. */
void nt_offsets_caught_up(struct nt_offsets *offsets);

/* Seeks the reader to nt_offsets_start() of each partition. */
NT_MUST_CHECK int nt_offsets_seek(const struct nt_offsets *offsets, struct nt_bus_reader *reader);

/* The last record taken of each partition. The caller frees *ret_position. */
NT_MUST_CHECK int nt_offsets_list(const struct nt_offsets *offsets,
				  struct nt_bus_position **ret_position, size_t *ret_count);

/* waiting_ns: end of the oldest window that waits for its frame; UINT64_MAX: none. */
NT_MUST_CHECK int nt_offsets_save(const struct nt_offsets *offsets, uint64_t waiting_ns,
				  struct nt_buf *buf);
NT_MUST_CHECK int nt_offsets_load(struct nt_offsets *offsets, const void *data, size_t size);

#endif
