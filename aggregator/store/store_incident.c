/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Incidents: written by the deciding thread, read by HTTP threads, pruned by the tick. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/store/store_impl.h"
#include "common/system/clock.h"

enum {
	PRUNE_BATCH = 200,
	PRUNE_FROM_PERCENT = 90, /* of the file's cap */
	PAGE_BYTES = 2 << 20, /* encoded incidents after which a page ends */
};

/* ---- writing --------------------------------------------------------------------------------- */

int nt_store_encode(const struct nt_wire_incident *incident, struct nt_buf *buf)
{
	const struct nt_message message = {
		.agent = "",
		.key = incident->id,
		.body = NT_BODY_INCIDENT,
		.incident = *incident,
	};

	return nt_message_encode(&message, buf);
}

int nt_store_version(struct nt_store *store, const char *id, uint64_t *ret_version)
{
	nt_autostmt sqlite3_stmt *find = NULL;
	int r;

	r = nt_db_prepare(store->db, "SELECT version FROM incident WHERE id = ?", &find);
	if (r < 0)
		return r;
	nt_db_bind_text(find, 1, id);
	r = nt_db_step(find);
	if (r < 0)
		return r;
	*ret_version = r ? nt_db_column(find, 0) : 0;
	return r;
}

int nt_store_write(struct nt_store *store, const struct nt_wire_incident *incident,
		   const struct nt_buf *body, bool is_ours)
{
	nt_autostmt sqlite3_stmt *put = NULL;
	int r;

	r = nt_db_prepare(store->db,
			  "INSERT INTO incident (id, version, state, severity, class, job, job_key,"
			  " attempt, since_ns, until_ns, body, shard, changed)"
			  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
			  " ON CONFLICT (id) DO UPDATE SET version = ?2, state = ?3, severity = ?4,"
			  " class = ?5, job = ?6, job_key = ?7, attempt = ?8, since_ns = ?9,"
			  " until_ns = ?10, body = ?11, shard = ?12, changed = changed + ?13",
			  &put);
	if (r < 0)
		return r;
	nt_db_bind_text(put, 1, incident->id);
	nt_db_bind_number(put, 2, incident->version);
	nt_db_bind_text(put, 3, incident->state);
	nt_db_bind_text(put, 4, incident->severity);
	nt_db_bind_text(put, 5, incident->class);
	nt_db_bind_text(put, 6, incident->job);
	nt_db_bind_text(put, 7, incident->job_key);
	nt_db_bind_number(put, 8, incident->attempt);
	nt_db_bind_number(put, 9, incident->since_real_ns);
	nt_db_bind_number(put, 10, incident->until_real_ns);
	nt_db_bind_blob(put, 11, body->data, body->len);
	nt_db_bind_number(put, 12, incident->shard);
	nt_db_bind_number(put, 13, is_ours);
	if (is_ours)
		atomic_store(&store->unpublished, true);
	return nt_db_run(put);
}

int nt_store_touch(struct nt_store *store, const char *id)
{
	nt_autostmt sqlite3_stmt *update = NULL;
	int r;

	r = nt_db_prepare(store->db, "UPDATE incident SET changed = changed + 1 WHERE id = ?",
			  &update);
	if (r < 0)
		return r;
	nt_db_bind_text(update, 1, id);
	atomic_store(&store->unpublished, true);
	return nt_db_run(update);
}

/* Writes the incident and its messages in one transaction. */
static int put_now(struct nt_store *store, const struct nt_wire_incident *incident, bool is_ours,
		   int (*queue)(struct nt_store *store, const struct nt_wire_incident *incident,
				size_t *ret_queued))
{
	nt_autobuf struct nt_buf body = {0};
	uint64_t known = 0;
	size_t queued = 0;
	int existed, r;

	r = nt_store_encode(incident, &body);
	if (r < 0)
		return r;
	r = nt_store_begin(store);
	if (r < 0)
		return r;
	existed = nt_store_version(store, incident->id, &known);
	if (existed > 0 && incident->version <= known) {
		atomic_fetch_add(&store->incidents_stale, 1);
		return nt_store_end(store, 0);
	}
	r = existed < 0 ? existed : nt_store_write(store, incident, &body, is_ours);
	if (r == 0 && queue)
		r = queue(store, incident, &queued);
	r = nt_store_end(store, r);
	if (r < 0)
		return r;

	atomic_fetch_add(&store->incidents_written, 1);
	atomic_fetch_add(&store->incidents_now, existed ? 0 : 1);
	atomic_fetch_add(&store->outbox_queued, queued);
	nt_store_count_outbox(store);
	if (queued && store->queued)
		store->queued(store->queued_data);
	if (store->stored)
		store->stored(store->stored_data, incident, !existed);
	return 0;
}

static void drop_oldest(struct nt_store *store)
{
	struct nt_unsaved *oldest = store->unsaved;

	store->unsaved = oldest->next;
	nt_message_free(oldest->message);
	free(oldest);
	atomic_fetch_sub(&store->unsaved_now, 1);
}

int nt_store_flush(struct nt_store *store)
{
	while (store->unsaved) {
		bool is_ours = !store->unsaved->is_given_up;
		int r = put_now(store, &store->unsaved->message->incident, is_ours,
				is_ours ? nt_store_queue : NULL);

		if (r < 0)
			return r;
		drop_oldest(store);
		if (!store->unsaved)
			atomic_store(&store->problem, NULL);
	}
	return 0;
}

static int keep(struct nt_store *store, const struct nt_wire_incident *incident)
{
	nt_autofree struct nt_unsaved *unsaved = calloc(1, sizeof(*unsaved));
	nt_autobuf struct nt_buf body = {0};
	struct nt_unsaved **end = &store->unsaved;
	int r;

	if (!unsaved)
		return -ENOMEM;
	r = nt_store_encode(incident, &body);
	if (r == 0)
		r = nt_message_decode(body.data, body.len, &unsaved->message);
	if (r < 0)
		return r;
	if (atomic_load(&store->unsaved_now) == NT_STORE_MAX_UNSAVED) {
		drop_oldest(store);
		atomic_fetch_add(&store->unsaved_dropped, 1);
	}
	while (*end)
		end = &(*end)->next;
	*end = nt_take(unsaved);
	atomic_fetch_add(&store->unsaved_now, 1);
	return 0;
}

int nt_store_put(void *data, const struct nt_wire_incident *incident)
{
	struct nt_store *store = data;
	int r, kept;

	if (!strcmp(incident->state, "pending"))
		return 0;
	if (!*incident->id || strlen(incident->id) >= NT_STORE_MAX_NAME)
		return -EINVAL;
	pthread_mutex_lock(&store->lock);
	r = nt_store_flush(store); /* in order: a resolution never overtakes its alarm */
	if (r == 0)
		r = put_now(store, incident, true, nt_store_queue);
	if (r < 0 && r != -EMSGSIZE) {
		kept = keep(store, incident);
		r = kept < 0 ? kept : r;
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* ---- of the aggregator itself ---------------------------------------------------------------- */

int nt_store_put_own(struct nt_store *store, const struct nt_wire_incident *incident)
{
	struct nt_wire_incident own = *incident;
	int r;

	if (!*incident->id || strlen(incident->id) >= NT_STORE_MAX_NAME)
		return -EINVAL;
	own.shard = NT_STORE_OWN_SHARD;
	pthread_mutex_lock(&store->lock);
	r = put_now(store, &own, false, nt_store_queue_freely);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int nt_store_list_own(struct nt_store *store, size_t max, struct nt_message **ret_incident)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	size_t count = 0;
	int r;

	pthread_mutex_lock(&store->lock);
	r = nt_db_prepare(store->db,
			  "SELECT body FROM incident WHERE shard = " NT_STORE_OWN_SHARD_TEXT
			  " AND state = 'firing' ORDER BY number",
			  &select);
	while (r >= 0 && count < max && (r = nt_db_step(select)) > 0) {
		r = nt_store_decode(select, 0, &ret_incident[count]);
		count += r == 0;
	}
	pthread_mutex_unlock(&store->lock);
	for (size_t i = 0; r < 0 && i < count; i++)
		nt_message_free(ret_incident[i]);
	return r < 0 ? r : (int)count;
}

/* ---- pruning --------------------------------------------------------------------------------- */

/* Removes the oldest incidents resolved before until_ns, at most a batch. */
static int remove_oldest(struct nt_store *store, uint64_t until_ns, size_t most, int *ret_removed)
{
	nt_autostmt sqlite3_stmt *remove = NULL;
	nt_autostmt sqlite3_stmt *forget = NULL;
	int r;

	*ret_removed = 0;
	r = nt_store_begin(store);
	if (r < 0)
		return r;
	r = nt_db_prepare(store->db,
			  "DELETE FROM incident WHERE number IN (SELECT number FROM incident"
			  " WHERE state = 'resolved' AND until_ns < ? AND NOT EXISTS"
			  " (SELECT 1 FROM message WHERE message.incident = incident.id"
			  "  AND message.state = 'waiting') AND id NOT IN"
			  " (SELECT incident FROM flap_open) ORDER BY number LIMIT ?)",
			  &remove);
	if (r == 0) {
		nt_db_bind_number(remove, 1, until_ns);
		nt_db_bind_number(remove, 2, most < PRUNE_BATCH ? most : PRUNE_BATCH);
		r = nt_db_run(remove);
		*ret_removed = sqlite3_changes(store->db);
	}
	if (r == 0)
		r = nt_db_prepare(store->db,
				  "DELETE FROM message WHERE incident NOT IN"
				  " (SELECT id FROM incident)",
				  &forget);
	if (r == 0 && *ret_removed)
		r = nt_db_run(forget);
	if (r == 0 && *ret_removed)
		r = nt_store_forget_handling(store);
	r = nt_store_end(store, r);
	if (r < 0) {
		*ret_removed = 0;
		return r;
	}
	atomic_fetch_add(&store->pruned, (uint64_t)*ret_removed);
	atomic_fetch_sub(&store->incidents_now, (uint64_t)*ret_removed);
	return 0;
}

static int prune_old(struct nt_store *store, uint64_t real_ns)
{
	nt_autostmt sqlite3_stmt *find = NULL;
	uint64_t until_ns;
	int removed, r;

	if (real_ns <= store->options.max_age_ns)
		return 0;
	until_ns = real_ns - store->options.max_age_ns;
	r = nt_db_prepare(
		store->db,
		"SELECT 1 FROM incident WHERE state = 'resolved' AND until_ns < ? LIMIT 1", &find);
	if (r < 0)
		return r;
	nt_db_bind_number(find, 1, until_ns);
	r = nt_db_step(find);
	(void)sqlite3_reset(find);
	return r > 0 ? remove_oldest(store, until_ns, PRUNE_BATCH, &removed) : r;
}

static int is_nearly_full(struct nt_store *store, bool *ret_full)
{
	int64_t pages = 0, spare = 0, most = 0;
	int r;

	r = nt_db_number(store->db, "PRAGMA page_count", &pages);
	if (r == 0)
		r = nt_db_number(store->db, "PRAGMA freelist_count", &spare);
	if (r == 0)
		r = nt_db_number(store->db, "PRAGMA max_page_count", &most);
	*ret_full = r == 0 && pages - spare > most / 100 * PRUNE_FROM_PERCENT;
	return r;
}

int nt_store_prune(struct nt_store *store, uint64_t real_ns)
{
	uint64_t before = atomic_load(&store->pruned), now;
	bool full = false;
	int removed, r;

	r = prune_old(store, real_ns);
	now = atomic_load(&store->incidents_now);
	if (r == 0 && now > store->options.max_incidents)
		r = remove_oldest(store, INT64_MAX, now - store->options.max_incidents, &removed);
	if (r == 0)
		r = is_nearly_full(store, &full);
	if (r == 0 && full)
		r = remove_oldest(store, INT64_MAX, PRUNE_BATCH, &removed);
	if (r == 0 && atomic_load(&store->pruned) != before)
		r = nt_db_exec(store->db, "PRAGMA incremental_vacuum(1000)");
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

enum {
	READ_LIMIT_MS = 2000,
};

void nt_store_begin_read(struct nt_store *store)
{
	pthread_mutex_lock(&store->read_lock);
	store->read_until_ns = nt_clock_mono_ns() + READ_LIMIT_MS * NT_MILLISECOND;
}

void nt_store_end_read(struct nt_store *store)
{
	pthread_mutex_unlock(&store->read_lock);
}

int nt_store_decode(sqlite3_stmt *stmt, int column, struct nt_message **ret_message)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	size_t size = (size_t)sqlite3_column_bytes(stmt, column);
	int r;

	r = nt_message_decode(sqlite3_column_blob(stmt, column), size, &message);
	if (r < 0)
		return r;
	if (message->body != NT_BODY_INCIDENT)
		return -EBADMSG;
	*ret_message = nt_take(message);
	return 0;
}

void nt_store_page_release(struct nt_store_page *page)
{
	for (size_t i = 0; i < page->count; i++)
		nt_message_free(page->incident[i]);
	free(page->incident);
	free(page->handling);
	free(page->number);
	*page = (struct nt_store_page){0};
}

/*
 * A test for NULL inside the query would rule out the indices. Of a job first the numbers, which
 * the indices alone have, and then the incidents.
 */
void nt_store_list_sql(const struct nt_store_filter *filter, char sql[NT_STORE_LIST_SQL])
{
	(void)snprintf(
		sql, NT_STORE_LIST_SQL,
		"SELECT number, body, " NT_STORE_HANDLING_COLUMNS " FROM incident"
		" LEFT JOIN handling ON handling.incident = incident.id"
		" WHERE number < ?7%s%s%s%s%s%s%s ORDER BY number DESC LIMIT ?8",
		filter->job ? " AND number IN"
			      " (SELECT number FROM incident WHERE job = ?1"
			      " UNION SELECT number FROM incident WHERE job_key = ?1"
			      " UNION SELECT number FROM incident"
			      "  WHERE job >= ?1 || '-' AND job < ?1 || '.' AND"
			      "  substr(job, length(?1) + 1)"
			      "  GLOB '-[0-9a-f][0-9a-f][0-9a-f][0-9a-f]')"
			    : "",
		filter->attempt ? " AND attempt = ?2" : "", filter->class ? " AND class = ?3" : "",
		filter->state ? " AND state = ?4" : "",
		filter->severity ? " AND severity = ?5" : "",
		filter->since_ns ? " AND since_ns >= ?6" : "",
		filter->at_ns ? " AND since_ns <= ?9 AND (until_ns = 0 OR until_ns > ?9)" : "");
}

static void bind_filter(sqlite3_stmt *select, const struct nt_store_filter *filter, size_t limit)
{
	nt_db_bind_text(select, 1, filter->job);
	nt_db_bind_number(select, 2, filter->attempt);
	nt_db_bind_text(select, 3, filter->class);
	nt_db_bind_text(select, 4, filter->state);
	nt_db_bind_text(select, 5, filter->severity);
	nt_db_bind_number(select, 6, filter->since_ns);
	nt_db_bind_number(select, 7, filter->before ? filter->before : INT64_MAX);
	nt_db_bind_number(select, 9, filter->at_ns);
	nt_db_bind_number(select, 8, limit + 1); /* one extra row shows that there is a next page */
}

static int read_page(struct nt_store *store, const struct nt_store_filter *filter, size_t limit,
		     struct nt_store_page *page)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	char sql[NT_STORE_LIST_SQL];
	size_t bytes = 0;
	int r;

	nt_store_list_sql(filter, sql);
	r = nt_db_prepare(store->reader, sql, &select);
	if (r < 0)
		return r;
	bind_filter(select, filter, limit);
	while ((r = nt_db_step(select)) > 0) {
		if (page->count == limit || bytes > PAGE_BYTES) {
			page->next = page->number[page->count - 1];
			return 0;
		}
		bytes += (size_t)sqlite3_column_bytes(select, 1);
		page->number[page->count] = nt_db_column(select, 0);
		r = nt_store_decode(select, 1, &page->incident[page->count]);
		if (r < 0)
			return r;
		nt_store_read_handling(select, 2, &page->handling[page->count]);
		page->count++;
	}
	return r;
}

int nt_store_list(struct nt_store *store, const struct nt_store_filter *filter,
		  struct nt_store_page *ret_page)
{
	size_t limit = filter->limit < NT_STORE_MAX_PAGE ? filter->limit : NT_STORE_MAX_PAGE;
	nt_autopage struct nt_store_page page = {0};
	int r;

	page.incident = calloc(limit + 1, sizeof(struct nt_message *));
	page.number = calloc(limit + 1, sizeof(uint64_t));
	page.handling = calloc(limit + 1, sizeof(*page.handling));
	if (!page.incident || !page.number || !page.handling)
		return -ENOMEM;
	nt_store_begin_read(store);
	r = read_page(store, filter, limit, &page);
	nt_store_end_read(store);
	if (r < 0)
		return r;
	*ret_page = page;
	page = (struct nt_store_page){0};
	return 0;
}

static int read_one(struct nt_store *store, const char *id, struct nt_message **ret_incident)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	int r;

	r = nt_db_prepare(store->reader, "SELECT body FROM incident WHERE id = ?", &select);
	if (r < 0)
		return r;
	nt_db_bind_text(select, 1, id);
	r = nt_db_step(select);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	return nt_store_decode(select, 0, ret_incident);
}

int nt_store_get(struct nt_store *store, const char *id, struct nt_message **ret_incident)
{
	int r;

	nt_store_begin_read(store);
	r = read_one(store, id, ret_incident);
	nt_store_end_read(store);
	return r;
}
