/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sharing between aggregators. Incidents of others are stored too. Delivery states are published
 * with an incident, so that the next owner of its shard continues from them. Messages that another
 * aggregator must send are `parked`.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/store/store_delivery.h"
#include "aggregator/store/store_impl.h"
#include "common/system/clock.h"
#include "common/system/thread.h"

enum {
	PUBLISH_BATCH = 64, /* incidents per batch, to keep the loop responsive */
	ADOPT_BATCH = 256,
};

/* Resolved messages are sent for this time; the notifier gives up after the same time. */
static const uint64_t resend_ns = NT_HOUR;
/* Maximum wait for messages in flight; a webhook's own timeouts are shorter. */
static const uint64_t landing_ns = 20 * NT_SECOND;

/* ---- taking ---------------------------------------------------------------------------------- */

/* Whether the incident's delivery state is at least as certain as the row's. */
static bool is_recorded(const struct nt_wire_incident *incident, const struct nt_delivery_row *row)
{
	for (size_t i = 0; i < incident->deliveries; i++) {
		struct nt_delivery_rows delivery = {.count = 1};

		if (nt_delivery_read(&incident->delivery[i], &delivery.row[0]) == 0 &&
		    nt_delivery_find(&delivery, row) && delivery.row[0].outcome >= row->outcome)
			return true;
	}
	return false;
}

/* Of a message that waits elsewhere an attempt is news: the receiver may know it. */
static bool is_news(const struct nt_delivery_row *delivery, const struct nt_delivery_row *row)
{
	if (delivery->outcome <= NT_OUTCOME_WAITING)
		return row->outcome == NT_OUTCOME_PARKED && delivery->attempts > row->attempts;
	return delivery->outcome > row->outcome;
}

static int take_deliveries(struct nt_store *store, const struct nt_wire_incident *incident,
			   const struct nt_delivery_rows *known)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < incident->deliveries; i++) {
		const struct nt_delivery_row *row;
		struct nt_delivery_row delivery;

		if (nt_delivery_read(&incident->delivery[i], &delivery) < 0) {
			atomic_fetch_add(&store->deliveries_refused, 1);
			continue;
		}
		row = nt_delivery_find(known, &delivery);
		if (row && !is_news(&delivery, row))
			continue;
		if (row)
			delivery.severity = row->severity;
		r = nt_delivery_write_row(store, incident->id, &delivery);
	}
	return r;
}

enum taken {
	TAKEN_NOTHING,
	TAKEN_NEW,
	TAKEN_CHANGED,
};

static int take_now(struct nt_store *store, const struct nt_wire_incident *incident,
		    const struct nt_buf *body, bool is_ours, enum taken *ret_taken)
{
	uint64_t version = 0;
	struct nt_delivery_rows known;
	bool is_behind = false;
	int existed, r;

	existed = nt_store_version(store, incident->id, &version);
	if (existed < 0)
		return existed;
	if (!is_ours && (!existed || incident->version > version)) {
		r = nt_store_write(store, incident, body, false);
		if (r < 0)
			return r;
		*ret_taken = existed ? TAKEN_CHANGED : TAKEN_NEW;
		atomic_fetch_add(&store->taken, 1);
		atomic_fetch_add(&store->incidents_now, existed ? 0 : 1);
	}
	r = nt_delivery_read_rows(store, incident->id, &known);
	if (r == 0)
		r = take_deliveries(store, incident, &known);
	if (r == 0)
		r = nt_store_take_handling(store, incident, &is_behind);
	if (r < 0 || !is_ours || !existed)
		return r;
	/*
	 * Was the last version written by a former owner? The owner's data take precedence. A
	 * waiting message need not be published, as the next owner queues it anyway.
	 */
	is_behind |= incident->version < version;
	for (size_t i = 0; i < known.count && !is_behind; i++)
		is_behind = known.row[i].outcome > NT_OUTCOME_WAITING &&
			    !is_recorded(incident, &known.row[i]);
	return is_behind ? nt_store_touch(store, incident->id) : 0;
}

int nt_store_take(void *data, const struct nt_wire_incident *incident, bool is_ours)
{
	nt_autobuf struct nt_buf body = {0};
	struct nt_store *store = data;
	enum taken taken = TAKEN_NOTHING;
	int r;

	if (!strcmp(incident->state, "pending"))
		return 0;
	if (!*incident->id || strlen(incident->id) >= NT_STORE_MAX_NAME)
		return -EINVAL;
	r = nt_store_encode(incident, &body);
	if (r < 0)
		return r;
	pthread_mutex_lock(&store->lock);
	r = nt_store_begin(store);
	if (r == 0)
		r = nt_store_end(store, take_now(store, incident, &body, is_ours, &taken));
	if (r == 0 && taken && store->stored)
		store->stored(store->stored_data, incident, taken == TAKEN_NEW);
	nt_store_count_outbox(store);
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* ---- publishing ------------------------------------------------------------------------------ */

struct batch {
	struct nt_message *message[PUBLISH_BATCH];
	uint64_t changed[PUBLISH_BATCH];
	struct nt_delivery_rows rows[PUBLISH_BATCH];
	struct nt_store_handling handling[PUBLISH_BATCH];
	size_t count;
};

static void release_batch(struct batch **batch)
{
	for (size_t i = 0; *batch && i < (*batch)->count; i++)
		nt_message_free((*batch)->message[i]);
	free(*batch);
}

static int read_batch(struct nt_store *store, struct batch *batch)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	int r;

	r = nt_db_prepare(store->db,
			  "SELECT changed, body, " NT_STORE_HANDLING_COLUMNS " FROM incident"
			  " LEFT JOIN handling ON handling.incident = incident.id"
			  " WHERE changed > published"
			  " AND shard <> " NT_STORE_OWN_SHARD_TEXT " ORDER BY number LIMIT ?",
			  &select);
	if (r < 0)
		return r;
	nt_db_bind_number(select, 1, PUBLISH_BATCH);
	while ((r = nt_db_step(select)) > 0) {
		const size_t i = batch->count;

		batch->changed[i] = nt_db_column(select, 0);
		r = nt_store_decode(select, 1, &batch->message[i]);
		if (r < 0)
			return r;
		nt_store_read_handling(select, 2, &batch->handling[i]);
		batch->count++;
		r = nt_delivery_read_rows(store, batch->message[i]->incident.id, &batch->rows[i]);
		if (r < 0)
			return r;
	}
	return r;
}

static int publish_one(const struct nt_wire_incident *incident, const struct nt_delivery_rows *rows,
		       const struct nt_store_handling *handling,
		       const struct nt_sink_bus_producer *bus_producer)
{
	struct nt_delivery delivery[NT_WIRE_MAX_DELIVERIES];
	struct nt_wire_incident published = *incident;

	for (size_t i = 0; i < rows->count; i++)
		delivery[i] = nt_delivery_of(&rows->row[i]);
	published.handling = nt_store_handling_of(handling);
	published.delivery = delivery;
	published.deliveries = rows->count;
	return bus_producer->incident(bus_producer->data, &published);
}

static int note_published(struct nt_store *store, const struct batch *batch)
{
	nt_autostmt sqlite3_stmt *update = NULL;
	int r;

	r = nt_db_prepare(store->db,
			  "UPDATE incident SET published = max(published, ?) WHERE id = ?",
			  &update);
	for (size_t i = 0; r == 0 && i < batch->count; i++) {
		(void)sqlite3_reset(update);
		nt_db_bind_number(update, 1, batch->changed[i]);
		nt_db_bind_text(update, 2, batch->message[i]->incident.id);
		r = nt_db_run(update);
	}
	return r;
}

int nt_store_publish(void *data, const struct nt_sink_bus_producer *bus_producer)
{
	__attribute__((cleanup(release_batch))) struct batch *batch = NULL;
	struct nt_store *store = data;
	int r;

	if (!atomic_exchange(&store->unpublished, false))
		return 0;
	batch = calloc(1, sizeof(*batch));
	r = batch ? 0 : -ENOMEM;
	if (r == 0) {
		pthread_mutex_lock(&store->lock);
		r = read_batch(store, batch);
		pthread_mutex_unlock(&store->lock);
	}
	/* Without the lock: the bus may be slow, and the notifier needs the store. */
	for (size_t i = 0; r == 0 && i < batch->count; i++)
		r = publish_one(&batch->message[i]->incident, &batch->rows[i], &batch->handling[i],
				bus_producer);
	if (r == 0 && batch->count)
		r = bus_producer->flush(bus_producer->data);
	if (r == 0 && batch->count) {
		pthread_mutex_lock(&store->lock);
		r = nt_store_begin(store);
		if (r == 0)
			r = nt_store_end(store, note_published(store, batch));
		pthread_mutex_unlock(&store->lock);
	}
	if (r < 0 || batch->count == PUBLISH_BATCH)
		atomic_store(&store->unpublished, true);
	return r < 0 ? r : (int)batch->count;
}

/* ---- ownership of shards --------------------------------------------------------------------- */

/*
 * Rebuilds the body of an adopted message from the current incident. One that was never attempted
 * waits for the end of a silence, as in insert_message().
 */
static int fill_body(struct nt_store *store, const struct nt_wire_incident *incident,
		     const struct nt_delivery_row *row)
{
	nt_autobuf struct nt_buf body = {0};
	nt_autostmt sqlite3_stmt *update = NULL;
	struct nt_wire_incident delivery = *incident;
	uint64_t until_ns = 0;
	int r;

	if (!row->resolved) {
		delivery.state = "firing";
		delivery.until_real_ns = 0;
		delivery.severity = nt_store_severity_name(row->severity);
	}
	delivery.deliveries = 0;
	r = nt_store_body(&delivery, row->resolved, 0, &body);
	if (r == 0 && !row->resolved && !row->attempts)
		r = nt_store_silenced_until(store, incident->id, nt_clock_real_ns(), &until_ns);
	if (r < 0)
		return r;
	r = nt_db_prepare(
		store->db,
		"UPDATE message SET state = 'waiting', next_ns = ?6, queued_ns = max(queued_ns, ?6),"
		" body = coalesce(body, CAST(?5 AS TEXT)) WHERE incident = ?1"
		" AND receiver = ?2 AND event = ?3 AND severity = ?4 AND state = 'parked'",
		&update);
	if (r < 0)
		return r;
	nt_db_bind_text(update, 1, incident->id);
	nt_db_bind_text(update, 2, row->receiver);
	nt_db_bind_text(update, 3, row->resolved ? "resolved" : "firing");
	nt_db_bind_number(update, 4, row->severity);
	nt_db_bind_blob(update, 5, body.data, body.len);
	nt_db_bind_number(update, 6, until_ns);
	return nt_db_run(update);
}

static int adopt_one(struct nt_store *store, const struct nt_wire_incident *incident)
{
	struct nt_delivery_rows rows;
	size_t adopted = 0;
	int r;

	r = nt_delivery_read_rows(store, incident->id, &rows);
	for (size_t i = 0; r == 0 && i < rows.count; i++) {
		if (rows.row[i].outcome != NT_OUTCOME_PARKED)
			continue;
		r = fill_body(store, incident, &rows.row[i]);
		adopted++;
	}
	if (r == 0)
		r = nt_store_queue(store, incident, &adopted);
	if (r == 0 && adopted)
		r = nt_store_touch(store, incident->id);
	if (r == 0)
		atomic_fetch_add(&store->adopted, adopted);
	return r;
}

/* An end that was held back is missing, although the beginning was sent: the receiver waits for it. */
#define LACKS_END                                                                                  \
	"EXISTS (SELECT 1 FROM message AS begun WHERE begun.incident = incident.id"                \
	" AND begun.event = 'firing' AND begun.state IN ('sent', 'expired') AND NOT EXISTS"        \
	" (SELECT 1 FROM message AS ended WHERE ended.incident = incident.id"                      \
	" AND ended.receiver = begun.receiver AND ended.event = 'resolved'))"

/* Adopts a batch after `number`; returns its size or an errno. */
static int adopt_batch(struct nt_store *store, uint32_t shard, uint64_t real_ns, uint64_t *number)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	int count = 0, r;

	r = nt_db_prepare(store->db,
			  "SELECT number, body FROM incident WHERE shard = ?1 AND number > ?2"
			  " AND (state = 'firing' OR until_ns >= ?3 OR (until_ns >= ?5"
			  " AND " LACKS_END ")) ORDER BY number LIMIT ?4",
			  &select);
	if (r < 0)
		return r;
	nt_db_bind_number(select, 1, shard);
	nt_db_bind_number(select, 2, *number);
	nt_db_bind_number(select, 3, nt_store_before(real_ns, resend_ns));
	nt_db_bind_number(select, 4, ADOPT_BATCH);
	nt_db_bind_number(select, 5, nt_store_before(real_ns, NT_STORE_FLAP_FOREIGN_NS));
	while ((r = nt_db_step(select)) > 0) {
		nt_auto(nt_message) struct nt_message *message = NULL;

		*number = nt_db_column(select, 0);
		count++;
		r = nt_store_decode(select, 1, &message);
		if (r == 0)
			r = adopt_one(store, &message->incident);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : count;
}

/* Reminders are sent of the incidents of owned shards alone. */
static int own(struct nt_store *store, uint32_t shard, const char *statement)
{
	nt_autostmt sqlite3_stmt *change = NULL;
	int r = nt_db_prepare(store->db, statement, &change);

	if (r < 0)
		return r;
	nt_db_bind_number(change, 1, shard);
	return nt_db_run(change);
}

int nt_store_adopt(void *data, uint32_t shard, uint64_t real_ns)
{
	struct nt_store *store = data;
	uint64_t number = 0;
	int count, r;

	pthread_mutex_lock(&store->lock);
	do {
		count = 0;
		r = nt_store_flush(store);
		if (r == 0)
			r = nt_store_begin(store);
		if (r == 0) {
			count = adopt_batch(store, shard, real_ns, &number);
			r = nt_store_end(store, count < 0 ? count : 0);
		}
	} while (r == 0 && count == ADOPT_BATCH);
	if (r == 0)
		r = own(store, shard, "INSERT OR IGNORE INTO owned VALUES (?)");
	nt_store_count_outbox(store);
	if (atomic_load(&store->outbox_now) && store->queued)
		store->queued(store->queued_data);
	pthread_mutex_unlock(&store->lock);
	return r;
}

static int park(struct nt_store *store, uint32_t shard)
{
	nt_autostmt sqlite3_stmt *update = NULL;
	int r;

	r = nt_db_prepare(store->db,
			  "UPDATE message SET state = 'parked' WHERE state = 'waiting' AND incident"
			  " IN (SELECT id FROM incident WHERE shard = ?)",
			  &update);
	if (r < 0)
		return r;
	nt_db_bind_number(update, 1, shard);
	return nt_db_run(update);
}

/* Whether the message is of the shard; true if that cannot be read. */
static bool is_of(struct nt_store *store, uint64_t number, uint32_t shard)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	int r;

	r = nt_db_prepare(store->db,
			  "SELECT 1 FROM message JOIN incident ON incident.id = message.incident"
			  " WHERE message.number = ? AND incident.shard = ?",
			  &select);
	if (r < 0)
		return true;
	nt_db_bind_number(select, 1, number);
	nt_db_bind_number(select, 2, shard);
	return nt_db_step(select) != 0;
}

struct flight {
	uint64_t number[NT_STORE_MAX_RECEIVERS][NT_STORE_MAX_BATCH];
};

/* The shard's messages in flight; 0: none. */
static void list_flying(struct nt_store *store, uint32_t shard, struct flight *flight)
{
	for (size_t i = 0; i < NT_STORE_MAX_RECEIVERS; i++) {
		for (size_t k = 0; k < NT_STORE_MAX_BATCH; k++) {
			const uint64_t number = store->flying[i][k];

			flight->number[i][k] = number && is_of(store, number, shard) ? number : 0;
		}
	}
}

static bool is_flying(const struct nt_store *store, const struct flight *flight)
{
	for (size_t i = 0; i < NT_STORE_MAX_RECEIVERS; i++) {
		for (size_t k = 0; k < NT_STORE_MAX_BATCH; k++) {
			const uint64_t number = flight->number[i][k];

			if (number && store->flying[i][k] == number)
				return true;
		}
	}
	return false;
}

int nt_store_release(void *data, uint32_t shard)
{
	const uint64_t until_ns = nt_clock_mono_ns() + landing_ns;
	struct nt_store *store = data;
	struct flight flight;
	int r;

	pthread_mutex_lock(&store->lock);
	/* The bus has the incident, so the next owner has it too. */
	for (struct nt_unsaved *unsaved = store->unsaved; unsaved; unsaved = unsaved->next)
		unsaved->is_given_up |= unsaved->message->incident.shard == shard;
	(void)!own(store, shard, "DELETE FROM owned WHERE shard = ?");
	r = nt_store_begin(store);
	if (r == 0)
		r = nt_store_end(store, park(store, shard));
	nt_store_count_outbox(store);
	/*
	 * Waits for messages in flight, whose results the next owner needs. Messages of other
	 * shards are not awaited: the waits would add up when many shards are released.
	 */
	list_flying(store, shard, &flight);
	while (r == 0 && is_flying(store, &flight) &&
	       nt_thread_wait(&store->landed, &store->lock, until_ns))
		;
	pthread_mutex_unlock(&store->lock);
	return r;
}
