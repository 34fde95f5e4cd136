/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compaction: of the records with one key the newest stays. A record without a value deletes its
 * key and goes itself an hour later, so that readers who are behind see it first.
 *
 * The closed segments are written anew in groups, each under the name of its first one. At every
 * instant every record that must stay is in a segment: a group's new file replaces its first
 * segment in one step, and the others are removed only then. Until they are, records are there
 * twice, under the same offsets, and readers skip the second ones.
 */
#ifndef NT_COMMON_BUS_SPOOL_COMPACT_H
#define NT_COMMON_BUS_SPOOL_COMPACT_H

#include "common/bus/spool/partition.h"

/*
 * Of a partition whose segments are all closed. Does nothing while what has come since the last
 * time is less than what was left then. After an error everything is still there.
 */
NT_MUST_CHECK int nt_spool_compact(const struct nt_spool_partition *partition,
				   uint64_t now_real_ns);

#endif
