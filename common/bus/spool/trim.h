/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Retention of a topic: removes the oldest segments over the caps, of all writers. */
#ifndef NT_COMMON_BUS_SPOOL_TRIM_H
#define NT_COMMON_BUS_SPOOL_TRIM_H

#include "common/bus/spool/partition.h"

/*
 * Brings the topic under the size cap, with room for the next segment of `own`, and, if `by_age`,
 * removes expired segments. The newest segment of a partition is kept: it holds the offset. Removed
 * segments are counted in the partition's stats.
 */
NT_MUST_CHECK int nt_spool_trim(int topic, const struct nt_spool_partition *own, bool by_age,
				uint64_t now_real_ns);

#endif
