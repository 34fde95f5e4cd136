/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Requests as the control topic gives them: records, each a byte of the time that passes before it and
 * two of its length, and a message. What is in force must hold whatever came before.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "control/level_table.h"
#include "tests/fuzz/lib/cost.h"

#define BEGIN_NS (1700000000 * NT_SECOND)

enum {
	LISTED = 64,
};

static void check_table(const struct nt_level_table *table, uint64_t now_ns)
{
	const struct nt_level_entry *entry[LISTED];
	size_t count = nt_level_table_list(table, now_ns, entry, LISTED);

	assert(count <= NT_LEVEL_TABLE_ENTRIES);
	for (size_t i = 0; i < count && i < LISTED; i++) {
		const struct nt_level_target *target = &entry[i]->target;
		char text[NT_LEVEL_TARGET];
		struct nt_level_target again;

		assert(entry[i]->level <= NT_LEVEL_MAX && entry[i]->expires_real_ns > now_ns);
		assert(entry[i]->set_real_ns <= now_ns + NT_LEVEL_MAX_AHEAD);
		assert(nt_level_target_format(target, text));
		assert(nt_level_target_parse(text, &again) == 0);
		assert(again.kind == target->kind && again.rank == target->rank);
		assert(strcmp(again.name, target->name) == 0);
		assert(nt_level_table_of(table, "n", target->name, target->rank, true, now_ns) <=
		       NT_LEVEL_MAX);
	}
}

/* With the time and kind that it needs, so that what lies behind their checks is reached. */
static void take_fitting(struct nt_level_table *table, struct nt_control control, uint64_t now_ns)
{
	control.level %= NT_LEVEL_MAX + 1;
	control.request = NT_REQUEST_LEVEL + control.level % 3;
	control.set_real_ns = now_ns - control.set_real_ns % NT_HOUR;
	control.expires_real_ns = control.set_real_ns + control.expires_real_ns % NT_LEVEL_MAX_TTL;
	control.id |= 1;
	(void)!nt_level_table_take(table, &control, now_ns);
}

static int run(const uint8_t *data, size_t size)
{
	nt_auto(nt_level_table) struct nt_level_table *table = NULL;
	uint64_t now_ns = BEGIN_NS;

	assert(nt_level_table_new(&table) == 0);
	while (size >= 3) {
		nt_auto(nt_message) struct nt_message *message = NULL;
		size_t len = (size_t)data[1] | (size_t)data[2] << 8;

		now_ns += data[0] * NT_MINUTE;
		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		if (nt_message_decode(data, len, &message) == 0 &&
		    message->body == NT_BODY_CONTROL) {
			(void)!nt_level_table_take(table, &message->control, now_ns);
			take_fitting(table, message->control, now_ns);
		}
		data += len;
		size -= len;
	}
	nt_level_table_sweep(table, now_ns, NULL, NULL);
	check_table(table, now_ns);
	return 0;
}

FUZZ_TARGET(run, .peak = {256 << 10, 512}, .total = {1 << 20, 16384}, .steps = {60000, 3000},
	    .cpu_ns = {100000000, 8000})
