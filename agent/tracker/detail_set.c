/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/tracker/detail_set.h"

#include <errno.h>
#include <stdlib.h>

struct nt_detail_set {
	struct nt_detail_set_limits limits;
	struct nt_detailed *process; /* owned */
	size_t count, room;
};

int nt_detail_set_new(const struct nt_detail_set_limits *limits, struct nt_detail_set **ret_set)
{
	struct nt_detail_set *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	set->limits = *limits;
	*ret_set = set;
	return 0;
}

void nt_detail_set_free(struct nt_detail_set *set)
{
	if (!set)
		return;
	free(set->process);
	free(set);
}

struct nt_detailed *nt_detail_set_find(struct nt_detail_set *set, uint32_t pid)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->process[i].pid == pid)
			return &set->process[i];
	return NULL;
}

static int make_room(struct nt_detail_set *set)
{
	size_t room = set->room ? 2 * set->room : 16;
	struct nt_detailed *grown;

	if (set->count == NT_DETAIL_SET_MOST)
		return -ENOSPC;
	if (set->count < set->room)
		return 0;
	grown = reallocarray(set->process, room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	set->process = grown;
	set->room = room;
	return 0;
}

int nt_detail_set_put(struct nt_detail_set *set, uint32_t pid, uint64_t start_boot_ns,
		      uint32_t level, uint64_t owner)
{
	struct nt_detailed *process = nt_detail_set_find(set, pid);
	int r;

	if (process && process->start_boot_ns != start_boot_ns) {
		(void)nt_detail_set_remove(set, pid, process->start_boot_ns);
		process = NULL;
	}
	if (!process) {
		r = make_room(set);
		if (r < 0)
			return r;
		process = &set->process[set->count++];
		*process = (struct nt_detailed){.pid = pid, .start_boot_ns = start_boot_ns};
	}
	process->level = level;
	process->owner = owner;
	return 0;
}

bool nt_detail_set_remove(struct nt_detail_set *set, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_detailed *process = nt_detail_set_find(set, pid);

	if (!process || process->start_boot_ns != start_boot_ns)
		return false;
	*process = set->process[--set->count];
	return true;
}

size_t nt_detail_set_count(const struct nt_detail_set *set)
{
	return set->count;
}

struct nt_detailed *nt_detail_set_at(struct nt_detail_set *set, size_t index)
{
	return &set->process[index];
}

static uint32_t smallest(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t weight_of(const struct nt_detailed *process)
{
	return process->level >= NT_DETAIL_SET_MORE_LEVEL ? NT_DETAIL_SET_MORE : 1;
}

/* Of all processes of an owner, or of the node. */
static uint32_t weight_of_all(const struct nt_detail_set *set, const uint64_t *owner)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < set->count; i++)
		if (!owner || set->process[i].owner == *owner)
			sum += weight_of(&set->process[i]);
	return sum;
}

/* Below one record a second there is none: more processes than records are not all recorded. */
void nt_detail_set_divide(struct nt_detail_set *set)
{
	const uint32_t all = weight_of_all(set, NULL);

	for (size_t i = 0; i < set->count; i++) {
		struct nt_detailed *process = &set->process[i];
		const uint32_t weight = weight_of(process);
		const uint32_t of_owner =
			set->limits.owner / weight_of_all(set, &process->owner) * weight;

		process->rate = smallest(set->limits.rank * weight,
					 smallest(of_owner, set->limits.node / all * weight));
	}
}
