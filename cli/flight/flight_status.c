/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How far the process groups of a rank are: from its entries, and from pg_status for groups without
 * entries. pg_status has the number of a group in its process (pg_id), pg_config its name.
 */
#include "cli/flight/flight_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/parse_number.h"

/* ---- pg_status ------------------------------------------------------------------------------- */

static struct nt_flight_listed *find_listed(struct nt_flight_dump *dump, uint64_t name)
{
	for (size_t i = 0; i < dump->listeds; i++)
		if (dump->listed[i].name == name)
			return &dump->listed[i];
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int by_number(const void *a, const void *b)
{
	const struct nt_flight_listed *x = *(struct nt_flight_listed *const *)a,
				      *y = *(struct nt_flight_listed *const *)b;

	return (x->number > y->number) - (x->number < y->number);
}

/*
 * Names of groups are numbers in the order of their creation, and so are the keys of pg_status. If
 * there are as many, the n-th key belongs to the n-th group. False: there are not, or an entry says
 * otherwise.
 */
static bool match_in_order(const json_t *status, struct nt_flight_listed **listed, uint64_t *key,
			   size_t n)
{
	json_t *iterate = (json_t *)status; /* jansson's iterator does not modify it */
	const json_t *value;
	const char *name;
	size_t i = 0;

	json_object_foreach(iterate, name, value)
	{
		if (nt_parse_u64(name, strlen(name), 0, INT64_MAX, &key[i++]) < 0)
			return false;
	}
	qsort(key, n, sizeof(*key), by_value);
	qsort((void *)listed, n, sizeof(struct nt_flight_listed *), by_number);
	for (i = 0; i < n; i++)
		if (listed[i]->number == UINT64_MAX ||
		    (listed[i]->pg_id != UINT64_MAX && listed[i]->pg_id != key[i]))
			return false;
	return true;
}

int nt_flight_note_entry(struct nt_flight_dump *dump, const json_t *entry)
{
	const char *name =
		json_string_value(json_array_get(json_object_get(entry, "process_group"), 0));
	struct nt_flight_number number = {0};

	if (++dump->entries > NT_FLIGHT_MAX_CALLS || !name ||
	    !nt_flight_read_number(json_object_get(entry, "pg_id"), INT64_MAX, &number.pg_id))
		return 0;
	number.name = nt_hash_text(NT_HASH_SEED, name);
	if (dump->numbers && memcmp(&dump->number[dump->numbers - 1], &number, sizeof(number)) == 0)
		return 0;
	/* Grows at powers of two, so that no capacity is stored. */
	if ((dump->numbers & (dump->numbers - 1)) == 0) {
		struct nt_flight_number *grown = reallocarray(
			dump->number, dump->numbers ? dump->numbers * 2 : 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		dump->number = grown;
	}
	dump->number[dump->numbers++] = number;
	return 0;
}

int nt_flight_match_status(struct nt_flight_dump *dump)
{
	const size_t n = dump->listeds;
	struct nt_flight_listed **listed = NULL;
	uint64_t *key = NULL;
	size_t i;

	if (dump->old || !dump->status || !n)
		return 0;
	for (i = 0; i < dump->numbers; i++) {
		struct nt_flight_listed *of = find_listed(dump, dump->number[i].name);

		if (of && of->pg_id == UINT64_MAX)
			of->pg_id = dump->number[i].pg_id;
	}
	if (json_object_size(dump->status) != n)
		return 0;
	listed = calloc(n, sizeof(struct nt_flight_listed *));
	key = calloc(n, sizeof(*key));
	for (i = 0; listed && i < n; i++)
		listed[i] = &dump->listed[i];
	if (listed && key && match_in_order(dump->status, listed, key, n))
		for (i = 0; i < n; i++)
			listed[i]->pg_id = key[i];
	i = listed && key;
	free((void *)listed);
	free(key);
	return i ? 0 : -ENOMEM;
}

const json_t *nt_flight_status_of(const struct nt_flight_dump *dump,
				  const struct nt_flight_listed *listed)
{
	char key[32];

	if (listed->pg_id == UINT64_MAX)
		return NULL;
	(void)snprintf(key, sizeof(key), "%" PRIu64, listed->pg_id);
	return json_object_get(dump->status, key);
}

void nt_flight_count(const struct nt_flight_dump *dump, const struct nt_flight_listed *listed,
		     struct nt_flight_group *group)
{
	const json_t *status = nt_flight_status_of(dump, listed);

	/* -1, which is refused here: no call yet. */
	if (!nt_flight_read_number(json_object_get(status, "last_enqueued_collective"), INT64_MAX,
				   &group->enqueued))
		return;
	if (!nt_flight_read_number(json_object_get(status, "last_completed_collective"), INT64_MAX,
				   &group->completed))
		group->completed = 0;
	group->counted = group->completed <= group->enqueued;
}

/*
 * A batch of sends and receives takes a number of the group's collectives on the members that are
 * part of it. The status then differs by design.
 */
int nt_flight_settle_status(struct nt_flight *flight)
{
	uint64_t *name;
	size_t n = 0;

	for (size_t i = 0; i < flight->ranks; i++)
		n += flight->rank[i].groups;
	name = calloc(n + 1, sizeof(*name));
	if (!name)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < flight->ranks; i++)
		for (size_t j = 0; j < flight->rank[i].groups; j++)
			if (flight->rank[i].group[j].p2p)
				name[n++] = flight->rank[i].group[j].name;
	if (n)
		qsort(name, n, sizeof(*name), by_value);
	for (size_t i = 0; i < flight->ranks && n; i++) {
		for (size_t j = 0; j < flight->rank[i].groups; j++) {
			struct nt_flight_group *group = &flight->rank[i].group[j];

			if (bsearch(&group->name, name, n, sizeof(*name), by_value))
				group->counted = false;
		}
	}
	free(name);
	return 0;
}

/* ---- progress -------------------------------------------------------------------------------- */

const struct nt_flight_call *nt_flight_first_open(const struct nt_flight_group *group)
{
	for (size_t i = 0; i < group->calls; i++)
		if (!group->call[i].done)
			return &group->call[i];
	return NULL;
}

uint64_t nt_flight_enqueued(const struct nt_flight_group *group)
{
	const uint64_t counted = group->counted ? group->enqueued : 0;
	const uint64_t called = group->calls ? group->call[group->calls - 1].number : 0;

	return called > counted ? called : counted;
}

uint64_t nt_flight_completed(const struct nt_flight_group *group)
{
	const struct nt_flight_call *open = nt_flight_first_open(group);

	if (open)
		return open->number ? open->number - 1 : 0;
	if (group->counted)
		return group->completed;
	return group->calls ? group->call[group->calls - 1].number : 0;
}
