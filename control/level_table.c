/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/level_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/table.h"

/* The key of an entry: zeroed before it is filled, as it is compared byte by byte. */
struct level_key {
	struct nt_level_target target;
	uint32_t request;
};

struct level_row {
	struct level_key key;
	struct nt_level_entry entry;
	UT_hash_handle hh;
};

struct nt_level_table {
	struct level_row *rows;
	struct nt_level_table_stats stats;
};

int nt_level_table_new(struct nt_level_table **ret_table)
{
	*ret_table = calloc(1, sizeof(**ret_table));
	return *ret_table ? 0 : -ENOMEM;
}

static void remove_row(struct nt_level_table *table, struct level_row *row)
{
	HASH_DEL(table->rows, row);
	free(row);
}

void nt_level_table_free(struct nt_level_table *table)
{
	struct level_row *row, *next;

	if (!table)
		return;
	HASH_ITER(hh, table->rows, row, next)
	remove_row(table, row);
	free(table);
}

static void set_key(struct level_key *key, enum nt_level_kind kind, const char *name, uint32_t rank,
		    enum nt_request request)
{
	memset(key, 0, sizeof(*key));
	key->target.kind = kind;
	(void)snprintf(key->target.name, sizeof(key->target.name), "%s", name);
	key->target.rank = rank;
	key->request = request;
}

static struct level_row *find_row(const struct nt_level_table *table, const struct level_key *key)
{
	struct level_row *row = NULL;

	HASH_FIND(hh, table->rows, key, sizeof(*key), row);
	return row;
}

/*
 * Neither this record nor an earlier one can be in force. An operator's earlier level may have been for
 * longer; what the aggregator requests by itself has the same time each time, so the last expires last.
 */
static bool is_over(enum nt_request request, uint64_t set_real_ns, uint64_t expires_real_ns,
		    uint64_t now_real_ns)
{
	return (request == NT_REQUEST_LEVEL ? set_real_ns + NT_LEVEL_MAX_TTL : expires_real_ns) <=
	       now_real_ns;
}

/* ---- taking ---------------------------------------------------------------------------------- */

bool nt_profile_wish_is_sound(const struct nt_profile_wish *wish)
{
	return wish->seconds && wish->seconds <= NT_PROFILE_SECONDS && wish->hz &&
	       wish->hz <= NT_PROFILE_HZ && wish->kind < NT_PROFILE_KINDS;
}

static struct nt_profile_wish wish_of(const struct nt_control *control)
{
	return (struct nt_profile_wish){
		.seconds = control->seconds,
		.hz = control->hz,
		.kind = (enum nt_profile_kind)control->kind,
	};
}

/* It asks a rank for something, in place of setting a level. */
static bool is_for_answer(enum nt_request request)
{
	return request == NT_REQUEST_STACK || request == NT_REQUEST_PROFILE;
}

static uint64_t max_ttl_ns(enum nt_request request)
{
	if (is_for_answer(request))
		return NT_LEVEL_MAX_ANSWER;
	return request == NT_REQUEST_AUTO_LEVEL ? NT_LEVEL_MAX_AUTO : NT_LEVEL_MAX_TTL;
}

static bool is_sound(const struct nt_control *control, const struct nt_level_target *target,
		     uint64_t now_real_ns)
{
	if (control->level > NT_LEVEL_MAX ||
	    control->set_real_ns > now_real_ns + NT_LEVEL_MAX_AHEAD)
		return false;
	if (control->expires_real_ns < control->set_real_ns ||
	    control->expires_real_ns - control->set_real_ns > max_ttl_ns(control->request))
		return false;
	if (control->request == NT_REQUEST_PROFILE) {
		const struct nt_profile_wish wish = wish_of(control);

		if (!nt_profile_wish_is_sound(&wish))
			return false;
	}
	return !is_for_answer(control->request) || (target->kind == NT_LEVEL_RANK && control->id);
}

static int add_row(struct nt_level_table *table, const struct level_key *key,
		   struct level_row **ret_row)
{
	struct level_row *row;

	const size_t most = key->request == NT_REQUEST_LEVEL
				    ? NT_LEVEL_TABLE_ENTRIES
				    : NT_LEVEL_TABLE_ENTRIES - NT_LEVEL_TABLE_OPERATORS;

	if (HASH_COUNT(table->rows) >= most) {
		table->stats.over_cap++;
		return -ENOSPC;
	}
	row = calloc(1, sizeof(*row));
	if (!row)
		return -ENOMEM;
	row->key = *key;
	HASH_ADD(hh, table->rows, key, sizeof(row->key), row);
	if (!nt_table_has(row)) {
		free(row);
		return -ENOMEM;
	}
	*ret_row = row;
	return 0;
}

static void set_entry(struct nt_level_entry *entry, const struct nt_level_target *target,
		      const struct nt_control *control)
{
	*entry = (struct nt_level_entry){
		.target = *target,
		.request = control->request,
		.level = control->level,
		.set_real_ns = control->set_real_ns,
		.expires_real_ns = control->expires_real_ns,
		.id = control->id,
		.profile = wish_of(control),
	};
	(void)snprintf(entry->reason, sizeof(entry->reason), "%.63s", control->reason);
}

int nt_level_table_take(struct nt_level_table *table, const struct nt_control *control,
			uint64_t now_real_ns)
{
	struct nt_level_target target;
	struct level_row *row;
	struct level_key key;
	int r;

	if (control->request < NT_REQUEST_LEVEL || control->request > NT_REQUEST_PROFILE)
		return 0;
	if (nt_level_target_parse(control->target, &target) < 0 ||
	    !is_sound(control, &target, now_real_ns)) {
		table->stats.malformed++;
		return -EBADMSG;
	}
	set_key(&key, target.kind, target.name, target.rank, control->request);
	row = find_row(table, &key);
	if (row ? row->entry.set_real_ns >= control->set_real_ns
		: is_over(control->request, control->set_real_ns, control->expires_real_ns,
			  now_real_ns)) {
		table->stats.outdated++;
		return 0;
	}
	if (!row) {
		nt_level_table_sweep(table, now_real_ns, NULL, NULL);
		r = add_row(table, &key, &row);
		if (r < 0)
			return r;
	}
	set_entry(&row->entry, &target, control);
	table->stats.taken++;
	return 1;
}

void nt_level_table_sweep(struct nt_level_table *table, uint64_t now_real_ns,
			  void (*removed)(void *data, const struct nt_level_entry *entry),
			  void *data)
{
	struct level_row *row, *next;

	HASH_ITER(hh, table->rows, row, next)
	{
		if (!is_over(row->entry.request, row->entry.set_real_ns, row->entry.expires_real_ns,
			     now_real_ns))
			continue;
		if (removed)
			removed(data, &row->entry);
		remove_row(table, row);
	}
}

/* ---- what is in force ------------------------------------------------------------------------ */

static bool is_in_force(const struct nt_level_entry *entry, uint64_t now_real_ns)
{
	return entry->expires_real_ns > now_real_ns &&
	       (entry->level || is_for_answer(entry->request));
}

static uint32_t level_of(const struct nt_level_table *table, enum nt_level_kind kind,
			 const char *name, uint32_t rank, uint64_t now_real_ns)
{
	uint32_t level = 0;

	for (int request = NT_REQUEST_LEVEL; request <= NT_REQUEST_AUTO_LEVEL; request++) {
		const struct level_row *row;
		struct level_key key;

		set_key(&key, kind, name, rank, request);
		row = find_row(table, &key);
		if (row && is_in_force(&row->entry, now_real_ns) && row->entry.level > level)
			level = row->entry.level;
	}
	return level;
}

uint32_t nt_level_table_of(const struct nt_level_table *table, const char *node, const char *key,
			   uint32_t rank, bool has_rank, uint64_t now_real_ns)
{
	uint32_t level, other;

	if (!table->rows)
		return 0;
	level = level_of(table, NT_LEVEL_NODE, node, 0, now_real_ns);
	other = level_of(table, NT_LEVEL_JOB, key, 0, now_real_ns);
	if (other > level)
		level = other;
	other = has_rank ? level_of(table, NT_LEVEL_RANK, key, rank, now_real_ns) : 0;
	return other > level ? other : level;
}

/* NULL: none is in force. */
static const struct nt_level_entry *entry_of_rank(const struct nt_level_table *table,
						  const char *key, uint32_t rank,
						  enum nt_request request, uint64_t now_real_ns)
{
	const struct level_row *row;
	struct level_key wanted;

	if (!table->rows)
		return NULL;
	set_key(&wanted, NT_LEVEL_RANK, key, rank, request);
	row = find_row(table, &wanted);
	return row && is_in_force(&row->entry, now_real_ns) ? &row->entry : NULL;
}

uint64_t nt_level_table_stack(const struct nt_level_table *table, const char *key, uint32_t rank,
			      uint64_t now_real_ns)
{
	const struct nt_level_entry *entry =
		entry_of_rank(table, key, rank, NT_REQUEST_STACK, now_real_ns);

	return entry ? entry->id : 0;
}

const struct nt_level_entry *nt_level_table_profile(const struct nt_level_table *table,
						    const char *key, uint32_t rank,
						    uint64_t now_real_ns)
{
	return entry_of_rank(table, key, rank, NT_REQUEST_PROFILE, now_real_ns);
}

size_t nt_level_table_list(const struct nt_level_table *table, uint64_t now_real_ns,
			   const struct nt_level_entry **ret_entry, size_t max)
{
	size_t count = 0;

	for (const struct level_row *row = table->rows; row; row = row->hh.next) {
		if (!is_in_force(&row->entry, now_real_ns))
			continue;
		if (count < max)
			ret_entry[count] = &row->entry;
		count++;
	}
	return count;
}

const struct nt_level_table_stats *nt_level_table_stats(const struct nt_level_table *table)
{
	return &table->stats;
}
