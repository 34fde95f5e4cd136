/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Shortages: nodes whose agents omit data because a cap is reached. The last node vector of each
 * counts, while it is fresh. Shortages are displayed only and are not saved.
 */
#ifndef NT_ENGINE_AGENTS_SHORTAGE_H
#define NT_ENGINE_AGENTS_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/table.h"
#include "common/system/clock.h"
#include "proto/wire.h"

#define NT_SHORTAGE_KEEP_NS (30 * NT_SECOND)

enum {
	NT_SHORTAGE_LIMITS = 8, /* kept per node */
	NT_SHORTAGE_WORD = 32, /* bytes including the NUL; longer ones are cut */
	NT_SHORTAGE_OWNER = 96,
};

/* As struct nt_node_limit. */
struct nt_shortage_limit {
	char what[NT_SHORTAGE_WORD], unit[NT_SHORTAGE_WORD], owner[NT_SHORTAGE_OWNER];
	uint64_t left_out, owner_left_out;
	uint32_t cap;
};

struct nt_shortage {
	char *node; /* owned */
	uint64_t real_ns; /* of the vector */
	uint64_t quiet_ns; /* time waited since then */
	struct nt_shortage_limit limit[NT_SHORTAGE_LIMITS];
	size_t limits;
	UT_hash_handle hh;
};

/* Zero-initialised: empty. */
struct nt_shortages {
	struct nt_shortage *node; /* uthash by name, owned */
	uint64_t lead_ns; /* real time of the newest vector */
	uint64_t over_cap;
};

void nt_shortages_release(struct nt_shortages *shortages);

/* Processes a node vector. `max`: limit of nodes; further ones are counted. -ENOMEM. */
NT_MUST_CHECK int nt_shortages_take(struct nt_shortages *shortages,
				    const struct nt_message *message, size_t max);

/* Adds idle time of the bus and drops stale entries. */
void nt_shortages_wait(struct nt_shortages *shortages, uint64_t waited_ns);

/* Whether the entry is recent enough to be shown. */
bool nt_shortage_is_fresh(const struct nt_shortages *shortages, const struct nt_shortage *shortage);

#endif
