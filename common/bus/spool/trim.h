/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The caps of a topic: its oldest segments go, whoever wrote them. */
#ifndef NT_COMMON_BUS_SPOOL_TRIM_H
#define NT_COMMON_BUS_SPOOL_TRIM_H

#include "common/bus/spool/partition.h"

/*
 * Brings the topic under the size cap, with room for the next segment of `own`, and, where
 * `by_age`, removes what is too old. The newest segment of a partition stays: it knows the offset.
 * What went is counted in the partition's stats.
 */
NT_MUST_CHECK int nt_spool_trim(int topic, const struct nt_spool_partition *own, bool by_age,
				uint64_t now_real_ns);

#endif
