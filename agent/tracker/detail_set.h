/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The processes of the node that are at level L1 or above, and the rate of records of each. Rates are
 * divided so that no process, no owner and not the node can have more than its limit.
 */
#ifndef NT_AGENT_TRACKER_DETAIL_SET_H
#define NT_AGENT_TRACKER_DETAIL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

/* A process at this level or above counts as so many others. */
enum {
	NT_DETAIL_SET_MORE_LEVEL = 3,
	NT_DETAIL_SET_MORE = 4,
};

/* Records a second. */
struct nt_detail_set_limits {
	uint32_t rank, owner, node;
};

struct nt_detailed {
	uint32_t pid, level;
	uint64_t start_boot_ns;
	uint64_t owner;
	uint32_t rate; /* by nt_detail_set_divide() */
	double granted; /* part of it that its budget leaves: set by the caller */
	bool is_limited; /* the kernel side has limits of it: set by the caller */
};

struct nt_detail_set;

NT_MUST_CHECK int nt_detail_set_new(const struct nt_detail_set_limits *limits,
				    struct nt_detail_set **ret_set);
void nt_detail_set_free(struct nt_detail_set *set);
NT_DEFINE_AUTO(nt_detail_set, nt_detail_set_free)

enum {
	NT_DETAIL_SET_MOST = 1024, /* processes: as many as the tracker watches */
};

/* Adds or changes one. -ENOSPC at the cap, -ENOMEM. */
NT_MUST_CHECK int nt_detail_set_put(struct nt_detail_set *set, uint32_t pid, uint64_t start_boot_ns,
				    uint32_t level, uint64_t owner);
/* False: it is not in the set, or another process with this number. */
bool nt_detail_set_remove(struct nt_detail_set *set, uint32_t pid, uint64_t start_boot_ns);
struct nt_detailed *nt_detail_set_find(struct nt_detail_set *set, uint32_t pid);

size_t nt_detail_set_count(const struct nt_detail_set *set);
/* In any order; the index is below the count. Removals change the order. */
struct nt_detailed *nt_detail_set_at(struct nt_detail_set *set, size_t index);

/* Computes all rates anew. */
void nt_detail_set_divide(struct nt_detail_set *set);

#endif
