/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/agents/shortage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/ascii.h"

static void free_shortage(struct nt_shortage *shortage)
{
	free(shortage->node);
	free(shortage);
}

static void forget(struct nt_shortages *shortages, struct nt_shortage *shortage)
{
	HASH_DEL(shortages->node, shortage);
	free_shortage(shortage);
}

void nt_shortages_release(struct nt_shortages *shortages)
{
	struct nt_shortage *shortage, *next;

	HASH_ITER(hh, shortages->node, shortage, next)
	forget(shortages, shortage);
}

static struct nt_shortage *add(struct nt_shortages *shortages, const char *node)
{
	struct nt_shortage *shortage = calloc(1, sizeof(*shortage));

	if (!shortage)
		return NULL;
	shortage->node = strdup(node);
	if (!shortage->node) {
		free(shortage);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, shortages->node, shortage->node, strlen(shortage->node), shortage);
	if (!nt_table_has(shortage)) {
		free_shortage(shortage);
		return NULL;
	}
	return shortage;
}

static void copy(struct nt_shortage *shortage, const struct nt_node_vector *vector)
{
	shortage->limits = 0;
	for (size_t i = 0; i < vector->limits && i < NT_SHORTAGE_LIMITS; i++) {
		const struct nt_node_limit *from = &vector->limit[i];
		struct nt_shortage_limit *to = &shortage->limit[shortage->limits++];

		nt_ascii_copy_text(to->what, sizeof(to->what), from->what);
		nt_ascii_copy_text(to->unit, sizeof(to->unit), from->unit);
		nt_ascii_copy_text(to->owner, sizeof(to->owner), from->owner);
		to->left_out = from->left_out;
		to->owner_left_out = from->owner_left_out;
		to->cap = from->cap;
	}
}

int nt_shortages_take(struct nt_shortages *shortages, const struct nt_message *message, size_t max)
{
	const struct nt_node_vector *vector = &message->node;
	struct nt_shortage *shortage;

	if (message->real_ns > shortages->lead_ns)
		shortages->lead_ns = message->real_ns;
	HASH_FIND_STR(shortages->node, vector->node, shortage);
	if (shortage && message->real_ns < shortage->real_ns)
		return 0; /* it was delayed in transit */
	if (!vector->limits) {
		if (shortage)
			forget(shortages, shortage);
		return 0;
	}
	if (!shortage && HASH_COUNT(shortages->node) >= max) {
		shortages->over_cap++;
		return 0;
	}
	if (!shortage)
		shortage = add(shortages, vector->node);
	if (!shortage)
		return -ENOMEM;
	copy(shortage, vector);
	shortage->real_ns = message->real_ns;
	shortage->quiet_ns = 0;
	return 0;
}

bool nt_shortage_is_fresh(const struct nt_shortages *shortages, const struct nt_shortage *shortage)
{
	return shortage->quiet_ns < NT_SHORTAGE_KEEP_NS &&
	       shortages->lead_ns - shortage->real_ns < NT_SHORTAGE_KEEP_NS;
}

void nt_shortages_wait(struct nt_shortages *shortages, uint64_t waited_ns)
{
	struct nt_shortage *shortage, *next;

	HASH_ITER(hh, shortages->node, shortage, next)
	{
		shortage->quiet_ns += waited_ns;
		if (!nt_shortage_is_fresh(shortages, shortage))
			forget(shortages, shortage);
	}
}
