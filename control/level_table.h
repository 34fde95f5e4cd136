/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The levels and other requests in force, from the records of the control topic in any order. The
 * record that was set last replaces earlier ones of the same target and kind, even if it has expired.
 * The table keeps an operator's level until no earlier one can be in force. It has no clock.
 */
#ifndef NT_CONTROL_LEVEL_TABLE_H
#define NT_CONTROL_LEVEL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/system/clock.h"
#include "control/level_target.h"
#include "proto/wire.h"

enum {
	NT_LEVEL_TABLE_ENTRIES = 2048, /* further ones are refused, and counted */
	NT_LEVEL_TABLE_OPERATORS =
		512, /* of these, only for levels that were not set by incidents */
	NT_LEVEL_REASON = 64, /* size of the text; longer ones are cut */
};

enum {
	NT_PROFILE_SECONDS = 60,
	NT_PROFILE_HZ = 99,
};

/* Of which threads samples are kept. */
enum nt_profile_kind {
	NT_PROFILE_ALL,
	NT_PROFILE_ON_CPU, /* running, or ready to run */
	NT_PROFILE_OFF_CPU,
	NT_PROFILE_KINDS,
};

#define NT_LEVEL_MAX_TTL    (24 * NT_HOUR)
#define NT_LEVEL_MAX_AUTO   NT_HOUR /* of a level that an incident sets */
#define NT_LEVEL_MAX_ANSWER (10 * NT_MINUTE) /* of a request for stacks or a profile */
#define NT_LEVEL_MAX_AHEAD  (5 * NT_MINUTE) /* of the clocks of those who set it */

/* What a request for a profile asks for. */
struct nt_profile_wish {
	uint32_t seconds; /* 1 to NT_PROFILE_SECONDS */
	uint32_t hz; /* 1 to NT_PROFILE_HZ */
	enum nt_profile_kind kind;
};

struct nt_level_entry {
	struct nt_level_target target;
	enum nt_request request;
	uint32_t level;
	uint64_t set_real_ns, expires_real_ns;
	uint64_t id; /* of a request for stacks or a profile */
	struct nt_profile_wish profile; /* of such a request */
	char reason[NT_LEVEL_REASON];
};

struct nt_level_table_stats {
	uint64_t taken, outdated; /* outdated: a later one is known */
	uint64_t malformed; /* no valid target, level, time or request */
	uint64_t over_cap;
};

struct nt_level_table;

NT_MUST_CHECK int nt_level_table_new(struct nt_level_table **ret_table);
void nt_level_table_free(struct nt_level_table *table);
NT_DEFINE_AUTO(nt_level_table, nt_level_table_free)

/*
 * 1: taken. 0: outdated, or of a kind that this version does not have. -EBADMSG: malformed.
 * -ENOSPC: over the cap. -ENOMEM.
 */
NT_MUST_CHECK int nt_level_table_take(struct nt_level_table *table,
				      const struct nt_control *control, uint64_t now_real_ns);

/*
 * Removes what can no longer matter. `removed` is called for each; NULL: for none. It must not change
 * the table.
 */
void nt_level_table_sweep(struct nt_level_table *table, uint64_t now_real_ns,
			  void (*removed)(void *data, const struct nt_level_entry *entry),
			  void *data);

/* The highest level in force for a rank: its own, its job's and its node's. has_rank: the rank is known. */
uint32_t nt_level_table_of(const struct nt_level_table *table, const char *node, const char *key,
			   uint32_t rank, bool has_rank, uint64_t now_real_ns);

/* The request for stacks of the rank that is in force; 0: none. */
uint64_t nt_level_table_stack(const struct nt_level_table *table, const char *key, uint32_t rank,
			      uint64_t now_real_ns);

/* The same for a profile; borrowed until the next change. NULL: none. */
const struct nt_level_entry *nt_level_table_profile(const struct nt_level_table *table,
						    const char *key, uint32_t rank,
						    uint64_t now_real_ns);

bool nt_profile_wish_is_sound(const struct nt_profile_wish *wish);

/*
 * Those in force, the first `max` of them, borrowed until the next change, in the order in which they
 * came. Returns the number of all.
 */
size_t nt_level_table_list(const struct nt_level_table *table, uint64_t now_real_ns,
			   const struct nt_level_entry **ret_entry, size_t max);

const struct nt_level_table_stats *nt_level_table_stats(const struct nt_level_table *table);

#endif
