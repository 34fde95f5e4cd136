/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compaction: of all records with one key only the newest is kept. A record without a value deletes
 * its key, and is itself removed an hour later, so that lagging readers still receive it.
 *
 * The closed segments are rewritten in groups, each under the name of its first segment. Every
 * record to be kept is in a segment at any instant. The new file replaces the first segment
 * atomically, and the others are removed only then. Until they are, records are present twice,
 * under the same offsets, and readers skip the duplicates.
 */
#ifndef NT_COMMON_BUS_SPOOL_COMPACT_H
#define NT_COMMON_BUS_SPOOL_COMPACT_H

#include "common/bus/spool/partition.h"

/*
 * All segments of the partition must be closed. Does nothing until more data has been added than
 * was left by the last compaction. On an error no record is lost.
 */
NT_MUST_CHECK int nt_spool_compact(const struct nt_spool_partition *partition,
				   uint64_t now_real_ns);

#endif
