/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The detection state: for each shard one set of items, and the bus positions that it covers. */
#include <errno.h>
#include <string.h>

#include "aggregator/store/store_impl.h"

static int clear(struct nt_store *store, const char *sql, uint32_t shard)
{
	nt_autostmt sqlite3_stmt *remove = NULL;
	int r = nt_db_prepare(store->db, sql, &remove);

	if (r < 0)
		return r;
	nt_db_bind_number(remove, 1, shard);
	return nt_db_run(remove);
}

static int write_items(struct nt_store *store, const struct nt_state_set *set)
{
	nt_autostmt sqlite3_stmt *insert = NULL;
	int r;

	r = clear(store, "DELETE FROM state WHERE shard = ?", set->shard);
	if (r == 0)
		r = nt_db_prepare(store->db,
				  "INSERT INTO state (shard, name, bytes) VALUES (?, ?, ?)",
				  &insert);
	for (size_t i = 0; r == 0 && i < set->items; i++) {
		(void)sqlite3_reset(insert);
		nt_db_bind_number(insert, 1, set->shard);
		nt_db_bind_text(insert, 2, set->item[i].name);
		nt_db_bind_blob(insert, 3, set->item[i].bytes, set->item[i].size);
		r = nt_db_run(insert);
	}
	return r;
}

static int write_positions(struct nt_store *store, const struct nt_state_set *set)
{
	nt_autostmt sqlite3_stmt *insert = NULL;
	int r;

	r = clear(store, "DELETE FROM position WHERE shard = ?", set->shard);
	if (r == 0)
		r = nt_db_prepare(store->db,
				  "INSERT INTO position (shard, topic, partition, offset)"
				  " VALUES (?, ?, ?, ?)",
				  &insert);
	for (size_t i = 0; r == 0 && i < set->positions; i++) {
		(void)sqlite3_reset(insert);
		nt_db_bind_number(insert, 1, set->shard);
		nt_db_bind_text(insert, 2, nt_topic_name(set->position[i].topic));
		nt_db_bind_number(insert, 3, set->position[i].partition);
		nt_db_bind_number(insert, 4, set->position[i].offset);
		r = nt_db_run(insert);
	}
	return r;
}

static int write_time(struct nt_store *store, uint32_t shard, uint64_t real_ns)
{
	nt_autostmt sqlite3_stmt *insert = NULL;
	int r;

	r = nt_db_prepare(store->db,
			  "INSERT OR REPLACE INTO state_time (shard, real_ns) VALUES (?, ?)",
			  &insert);
	if (r < 0)
		return r;
	nt_db_bind_number(insert, 1, shard);
	nt_db_bind_number(insert, 2, real_ns);
	return nt_db_run(insert);
}

int nt_store_save_state(void *data, const struct nt_state_set *set)
{
	struct nt_store *store = data;
	uint64_t bytes = 0;
	int r;

	pthread_mutex_lock(&store->lock);
	/* Unsaved incidents are written first: saved positions past them would lose them. */
	r = nt_store_flush(store);
	if (r == 0)
		r = nt_store_begin(store);
	if (r == 0) {
		r = write_items(store, set);
		if (r == 0)
			r = write_positions(store, set);
		if (r == 0)
			r = write_time(store, set->shard, set->real_ns);
		r = nt_store_end(store, r);
	}
	pthread_mutex_unlock(&store->lock);
	if (r < 0)
		return r;
	for (size_t i = 0; i < set->items; i++)
		bytes += set->item[i].size;
	atomic_fetch_add(&store->states_written, 1);
	atomic_fetch_add(&store->state_bytes, bytes);
	return 0;
}

/* A loaded set, which owns its texts and bytes. */
struct loaded_set {
	struct nt_state_item *item;
	struct nt_bus_position *position;
	size_t items, positions;
};

static void release_set(struct loaded_set *set)
{
	for (size_t i = 0; i < set->items; i++) {
		free((void *)(uintptr_t)set->item[i].name);
		free((void *)(uintptr_t)set->item[i].bytes);
	}
	free(set->item);
	free(set->position);
}

static int read_item(sqlite3_stmt *select, struct nt_state_item *ret_item)
{
	size_t size = (size_t)sqlite3_column_bytes(select, 1);
	const void *bytes = sqlite3_column_blob(select, 1);
	nt_autofree char *name = strdup(nt_db_text(select, 0));
	nt_autofree void *copy = malloc(size + 1);

	if (!name || !copy)
		return -ENOMEM;
	if (size)
		memcpy(copy, bytes, size);
	*ret_item = (struct nt_state_item){nt_take(name), nt_take(copy), size};
	return 0;
}

static int read_items(struct nt_store *store, uint32_t shard, struct loaded_set *set)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	struct nt_state_item *items;
	int r;

	r = nt_db_prepare(store->db, "SELECT name, bytes FROM state WHERE shard = ? ORDER BY name",
			  &select);
	if (r < 0)
		return r;
	nt_db_bind_number(select, 1, shard);
	while (r == 0 && (r = nt_db_step(select)) > 0) {
		items = reallocarray(set->item, set->items + 1, sizeof(*items));
		if (!items)
			return -ENOMEM;
		set->item = items;
		r = read_item(select, &items[set->items]);
		set->items += r == 0;
	}
	return r;
}

static int read_positions(struct nt_store *store, uint32_t shard, struct loaded_set *set)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	struct nt_bus_position *positions;
	int r;

	r = nt_db_prepare(store->db,
			  "SELECT topic, partition, offset FROM position WHERE shard = ?"
			  " ORDER BY 1, 2",
			  &select);
	if (r < 0)
		return r;
	nt_db_bind_number(select, 1, shard);
	while (r == 0 && (r = nt_db_step(select)) > 0) {
		enum nt_topic topic = 0;

		while (topic < NT_TOPIC_END &&
		       strcmp(nt_db_text(select, 0), nt_topic_name(topic)) != 0)
			topic++;
		if (topic == NT_TOPIC_END) {
			r = 0; /* a topic of another version: skipped */
			continue;
		}
		positions = reallocarray(set->position, set->positions + 1, sizeof(*positions));
		if (!positions)
			return -ENOMEM;
		set->position = positions;
		positions[set->positions++] = (struct nt_bus_position){
			.topic = topic,
			.partition = (uint32_t)nt_db_column(select, 1),
			.offset = nt_db_column(select, 2),
		};
		r = 0;
	}
	return r;
}

/* 1: there is a state; 0: none. */
static int read_time(struct nt_store *store, uint32_t shard, uint64_t *ret_real_ns)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	int r;

	r = nt_db_prepare(store->db, "SELECT real_ns FROM state_time WHERE shard = ?", &select);
	if (r < 0)
		return r;
	nt_db_bind_number(select, 1, shard);
	r = nt_db_step(select);
	if (r > 0)
		*ret_real_ns = nt_db_column(select, 0);
	return r;
}

int nt_store_load_state(void *data, uint32_t shard,
			int (*loaded)(void *loader, const struct nt_state_set *set), void *loader)
{
	__attribute__((cleanup(release_set))) struct loaded_set own = {0};
	struct nt_store *store = data;
	uint64_t real_ns = 0;
	int saved, r;

	pthread_mutex_lock(&store->lock);
	r = saved = read_time(store, shard, &real_ns);
	if (r >= 0)
		r = read_items(store, shard, &own);
	if (r == 0)
		r = read_positions(store, shard, &own);
	pthread_mutex_unlock(&store->lock);
	if (r < 0)
		return r;
	if (!saved)
		return -ENOENT;
	return loaded(loader, &(struct nt_state_set){
				      .real_ns = real_ns,
				      .item = own.item,
				      .items = own.items,
				      .position = own.position,
				      .positions = own.positions,
				      .shard = shard,
			      });
}
