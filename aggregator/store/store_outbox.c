/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The outbox. Per incident and receiver there is one firing message, another one for each increase
 * of severity, and one resolved message. Rows are kept as long as their incident, so that incidents
 * repeated after a restart are not sent again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/store/store_impl.h"
#include "common/system/clock.h"
#include "proto/json.h"

static const char *const severity_names[NT_STORE_SEVERITY_END] = {"info", "warning", "critical"};

const char *nt_store_severity_name(enum nt_store_severity severity)
{
	return (unsigned int)severity < NT_STORE_SEVERITY_END ? severity_names[severity] : NULL;
}

enum nt_store_severity nt_store_severity_of(const char *name)
{
	for (unsigned int i = 0; i < NT_STORE_SEVERITY_END; i++)
		if (!strcmp(name, severity_names[i]))
			return (enum nt_store_severity)i;
	return NT_STORE_SEVERITY_END;
}

static enum nt_store_severity severity_of(const struct nt_wire_incident *incident)
{
	enum nt_store_severity severity = nt_store_severity_of(incident->severity);

	return severity == NT_STORE_SEVERITY_END ? NT_STORE_SEVERITY_INFO : severity;
}

/* ---- queueing -------------------------------------------------------------------------------- */

/* {"type": "incident.firing", "timestamp": …, "flapping": …, "data": incident} */
int nt_store_body(const struct nt_wire_incident *incident, bool resolved, uint64_t flaps,
		  struct nt_buf *body)
{
	nt_autojson json_t *message = json_object();
	uint64_t when_ns = resolved && incident->until_real_ns ? incident->until_real_ns
							       : incident->seen_real_ns;

	if (json_object_set_new(message, "type",
				json_string(resolved ? "incident.resolved" : "incident.firing")) ||
	    json_object_set_new(message, "timestamp", nt_json_time(when_ns)) ||
	    (flaps && json_object_set_new(message, "flapping",
					  json_pack("{s:I}", "changes", (json_int_t)flaps))) ||
	    json_object_set_new(message, "data", nt_json_incident(incident)))
		return -ENOMEM;
	return nt_json_dump(message, false, body);
}

static int insert_message(struct nt_store *store, const struct nt_wire_incident *incident,
			  const char *receiver, uint64_t flaps)
{
	bool resolved = !strcmp(incident->state, "resolved");
	enum nt_store_severity severity = severity_of(incident);
	nt_autobuf struct nt_buf body = {0};
	nt_autostmt sqlite3_stmt *insert = NULL;
	uint64_t now_ns = nt_clock_real_ns(), until_ns = 0;
	int r;

	r = nt_store_body(incident, resolved, flaps, &body);
	if (r == 0 && !resolved)
		r = nt_store_silenced_until(store, incident->id, now_ns, &until_ns);
	if (r < 0)
		return r;
	r = nt_db_prepare(store->db,
			  "INSERT INTO message (incident, receiver, event, severity, state,"
			  " attempts, queued_ns, next_ns, body)"
			  " VALUES (?1, ?2, ?3, ?4, 'waiting', 0, ?5, ?7, CAST(?6 AS TEXT))",
			  &insert);
	if (r < 0)
		return r;
	nt_db_bind_text(insert, 1, incident->id);
	nt_db_bind_text(insert, 2, receiver);
	nt_db_bind_text(insert, 3, resolved ? "resolved" : "firing");
	nt_db_bind_number(insert, 4, severity);
	/* The time after which it is given up begins with the end of the silence. */
	nt_db_bind_number(insert, 5, until_ns ? until_ns : now_ns);
	nt_db_bind_blob(insert, 6, body.data, body.len);
	nt_db_bind_number(insert, 7, until_ns);
	return nt_db_run(insert);
}

/* The messages of an incident to one receiver, sent or queued. */
struct sent_state {
	int severity; /* highest of the firing messages; -1: none */
	bool taken; /* one was sent, may have been sent, or is waiting */
	bool resolved;
};

static int read_sent_state(struct nt_store *store, const char *incident, const char *receiver,
			   struct sent_state *ret_sent)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	struct sent_state sent = {.severity = -1};
	int r;

	r = nt_db_prepare(store->db,
			  "SELECT event, severity, state FROM message"
			  " WHERE incident = ? AND receiver = ?",
			  &select);
	if (r < 0)
		return r;
	nt_db_bind_text(select, 1, incident);
	nt_db_bind_text(select, 2, receiver);
	while ((r = nt_db_step(select)) > 0) {
		int severity = (int)nt_db_column(select, 1);

		if (!strcmp(nt_db_text(select, 0), "resolved")) {
			sent.resolved = true;
			continue;
		}
		if (severity > sent.severity)
			sent.severity = severity;
		sent.taken = sent.taken || strcmp(nt_db_text(select, 2), "failed") != 0;
	}
	*ret_sent = sent;
	return r;
}

int nt_store_remove_waiting(struct nt_store *store, const char *incident, const char *receiver,
			    int *ret_removed)
{
	nt_autostmt sqlite3_stmt *remove = NULL;
	int r;

	r = nt_db_prepare(store->db,
			  "DELETE FROM message WHERE incident = ? AND receiver = ?"
			  " AND event = 'firing' AND state = 'waiting' AND attempts = 0",
			  &remove);
	if (r < 0)
		return r;
	nt_db_bind_text(remove, 1, incident);
	nt_db_bind_text(remove, 2, receiver);
	r = nt_db_run(remove);
	*ret_removed = sqlite3_changes(store->db);
	return r;
}

static bool is_accepted(const struct nt_store *store, const struct nt_wire_incident *incident,
			const char *receiver)
{
	const struct nt_store_options *options = &store->options;

	if (options->accepts)
		return options->accepts(options->accepts_data, receiver, incident);
	return severity_of(incident) >= NT_STORE_SEVERITY_WARNING;
}

static int queue_end(struct nt_store *store, const struct nt_wire_incident *incident,
		     const char *receiver, const struct nt_store_flap *flap, size_t *ret_queued)
{
	int r = nt_store_flap_holds(store, flap, incident, receiver);

	if (r)
		return r < 0 ? r : 0;
	*ret_queued += 1;
	return insert_message(store, incident, receiver, 0);
}

static int queue_beginning(struct nt_store *store, const struct nt_wire_incident *incident,
			   const char *receiver, const struct nt_store_flap *flap,
			   size_t *ret_queued)
{
	int replaced = 0, r = nt_store_flap_holds(store, flap, incident, receiver);

	if (r > 0 && flap->is_new)
		atomic_fetch_add(&store->flap_held, 1);
	if (r)
		return r < 0 ? r : 0;
	r = nt_store_remove_waiting(store, incident->id, receiver, &replaced);
	if (r < 0)
		return r;
	*ret_queued += replaced ? 0 : 1;
	return insert_message(store, incident, receiver, flap->changes);
}

static int queue_for(struct nt_store *store, const struct nt_wire_incident *incident,
		     const char *receiver, const struct nt_store_flap *flap, size_t *ret_queued)
{
	struct sent_state sent = {.severity = -1};
	int r = 0;

	if (!strcmp(incident->state, "resolved"))
		r = nt_store_drop_silenced(store, incident->id, receiver);
	if (r == 0)
		r = read_sent_state(store, incident->id, receiver, &sent);
	if (r < 0 || sent.resolved)
		return r;
	if (!strcmp(incident->state, "resolved")) {
		if (sent.severity < 0)
			return 0;
		if (sent.taken)
			return queue_end(store, incident, receiver, flap, ret_queued);
		atomic_fetch_add(&store->outbox_skipped, 1);
		return 0;
	}
	if ((int)severity_of(incident) <= sent.severity || !is_accepted(store, incident, receiver))
		return 0;
	return queue_beginning(store, incident, receiver, flap, ret_queued);
}

static int queue_for_all(struct nt_store *store, const struct nt_wire_incident *incident,
			 const struct nt_store_flap *flap, size_t *ret_queued)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < store->options.receivers; i++)
		r = queue_for(store, incident, store->receiver[i], flap, ret_queued);
	return r;
}

int nt_store_queue_freely(struct nt_store *store, const struct nt_wire_incident *incident,
			  size_t *ret_queued)
{
	const struct nt_store_flap none = {.changes = 0};

	return queue_for_all(store, incident, &none, ret_queued);
}

int nt_store_queue(struct nt_store *store, const struct nt_wire_incident *incident,
		   size_t *ret_queued)
{
	struct nt_store_flap flap;
	int r = nt_store_flap_note(store, incident, &flap);

	if (r == 0)
		r = queue_for_all(store, incident, &flap, ret_queued);
	return r == 0 ? nt_store_flap_forget(store, &flap, incident) : r;
}

/* ---- delivering ------------------------------------------------------------------------------ */

void nt_outbox_message_release(struct nt_outbox_message *message)
{
	free(message->body);
	*message = (struct nt_outbox_message){0};
}

static int read_message(sqlite3_stmt *select, struct nt_outbox_message *ret_message)
{
	size_t severity = nt_db_column(select, 4);
	struct nt_outbox_message message = {
		.number = nt_db_column(select, 0),
		.resolved = !strcmp(nt_db_text(select, 3), "resolved"),
		.attempts = (uint32_t)nt_db_column(select, 5) + 1,
		.severities = (unsigned int)nt_db_column(select, 9),
		.is_over = nt_db_column(select, 10),
		.queued_real_ns = nt_db_column(select, 6),
		.next_real_ns = nt_db_column(select, 7),
	};

	if (severity >= NT_STORE_SEVERITY_END)
		return -EBADMSG;
	(void)snprintf(message.incident, sizeof(message.incident), "%s", nt_db_text(select, 1));
	(void)snprintf(message.receiver, sizeof(message.receiver), "%s", nt_db_text(select, 2));
	(void)snprintf(message.id, sizeof(message.id), "msg_%s_%s%s%s", message.incident,
		       nt_db_text(select, 3), message.resolved ? "" : "_",
		       message.resolved ? "" : severity_names[severity]);
	message.body = strdup(nt_db_text(select, 8));
	if (!message.body)
		return -ENOMEM;
	message.body_len = strlen(message.body);
	*ret_message = message;
	return 0;
}

/* Counted before the attempt: after a crash in between the message may have been sent. */
static int count_attempt(struct nt_store *store, uint64_t number)
{
	nt_autostmt sqlite3_stmt *update = NULL;
	int r;

	r = nt_db_prepare(store->db, "UPDATE message SET attempts = attempts + 1 WHERE number = ?",
			  &update);
	if (r < 0)
		return r;
	nt_db_bind_number(update, 1, number);
	return nt_db_run(update);
}

#define SELECT_WAITING                                                                             \
	"SELECT number, incident, receiver, event, severity, attempts, queued_ns, next_ns, body,"  \
	" (SELECT coalesce(sum(DISTINCT 1 << other.severity), 0) FROM message AS other"            \
	"  WHERE other.incident = this.incident AND other.receiver = this.receiver"                \
	"  AND other.event = 'firing' AND other.state <> 'failed'),"                               \
	" EXISTS (SELECT 1 FROM message AS other WHERE other.incident = this.incident"             \
	"  AND other.receiver = this.receiver AND other.event = 'resolved')"                       \
	" FROM message AS this WHERE receiver = ? AND state = 'waiting' AND NOT"                   \
	" (event = 'resolved' AND EXISTS (SELECT 1 FROM message AS other"                          \
	"  WHERE other.incident = this.incident AND other.receiver = this.receiver"                \
	"  AND other.event = 'firing' AND other.state = 'waiting'))"                               \
	" ORDER BY next_ns, number LIMIT ?"

/* The messages of one receiver in flight. */
static uint64_t *find_flying(struct nt_store *store, const char *receiver)
{
	for (size_t i = 0; i < store->options.receivers; i++) {
		if (!strcmp(store->receiver[i], receiver))
			return store->flying[i];
	}
	return NULL;
}

static bool take_off(uint64_t flying[NT_STORE_MAX_BATCH], uint64_t number)
{
	size_t place = NT_STORE_MAX_BATCH;

	for (size_t i = 0; i < NT_STORE_MAX_BATCH; i++) {
		if (flying[i] == number)
			return false;
		if (!flying[i])
			place = i;
	}
	if (place == NT_STORE_MAX_BATCH)
		return false;
	flying[place] = number;
	return true;
}

static void land(struct nt_store *store, uint64_t number)
{
	for (size_t i = 0; i < NT_STORE_MAX_RECEIVERS; i++) {
		for (size_t k = 0; k < NT_STORE_MAX_BATCH; k++) {
			if (store->flying[i][k] == number)
				store->flying[i][k] = 0;
		}
	}
}

static void release_messages(struct nt_outbox_message *message, size_t count)
{
	for (size_t i = 0; i < count; i++)
		nt_outbox_message_release(&message[i]);
}

/* Reads due messages that are not in flight. Returns their number or an errno. */
static int read_due(struct nt_store *store, const char *receiver, uint64_t real_ns, size_t max,
		    struct nt_outbox_message *message, uint64_t *ret_next_ns)
{
	uint64_t *flying = find_flying(store, receiver);
	nt_autostmt sqlite3_stmt *select = NULL;
	size_t count = 0;
	int r;

	if (!flying)
		return 0;
	r = nt_db_prepare(store->db, SELECT_WAITING, &select);
	if (r < 0)
		return r;
	nt_db_bind_text(select, 1, receiver);
	nt_db_bind_number(select, 2, max + NT_STORE_MAX_BATCH);
	while (count < max && (r = nt_db_step(select)) > 0) {
		if (nt_db_column(select, 7) > real_ns) {
			*ret_next_ns = nt_db_column(select, 7);
			break;
		}
		if (!take_off(flying, nt_db_column(select, 0)))
			continue;
		r = read_message(select, &message[count]);
		if (r < 0) {
			land(store, nt_db_column(select, 0));
			break;
		}
		count++;
	}
	if (r >= 0)
		return (int)count;
	for (size_t i = 0; i < count; i++)
		land(store, message[i].number);
	release_messages(message, count);
	return r;
}

/* If an attempt cannot be counted in the file, the message is sent anyway. */
static void count_attempts(struct nt_store *store, const struct nt_outbox_message *message,
			   size_t count)
{
	int r = nt_store_begin(store);

	if (r < 0)
		return;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = count_attempt(store, message[i].number);
	(void)!nt_store_end(store, r);
}

int nt_store_outbox_next(struct nt_store *store, const char *receiver, uint64_t real_ns,
			 struct nt_outbox_message *ret_message, uint64_t *ret_next_ns)
{
	uint64_t *flying;
	int r;

	*ret_next_ns = UINT64_MAX;
	pthread_mutex_lock(&store->lock);
	/* What its thread has not finished, for example because it was aborted, is due again. */
	flying = find_flying(store, receiver);
	if (flying)
		memset(flying, 0, sizeof(store->flying[0]));
	r = read_due(store, receiver, real_ns, 1, ret_message, ret_next_ns);
	if (r > 0)
		count_attempts(store, ret_message, 1);
	pthread_mutex_unlock(&store->lock);
	return r;
}

int nt_store_outbox_more(struct nt_store *store, const char *receiver, uint64_t real_ns, size_t max,
			 struct nt_outbox_message *ret_message, size_t *ret_count)
{
	uint64_t next_ns;
	int r;

	pthread_mutex_lock(&store->lock);
	r = read_due(store, receiver, real_ns, max, ret_message, &next_ns);
	if (r > 0)
		count_attempts(store, ret_message, (size_t)r);
	pthread_mutex_unlock(&store->lock);
	if (r < 0)
		return r;
	*ret_count = (size_t)r;
	return 0;
}

static int set_state(struct nt_store *store, uint64_t number, const char *state, uint64_t next_ns)
{
	nt_autostmt sqlite3_stmt *update = NULL;
	int r;

	r = nt_db_prepare(
		store->db,
		"UPDATE message SET next_ns = ?3,"
		/* Released while in flight: stays parked, so that the next owner may retry it. */
		" state = CASE WHEN state = 'parked' AND ?2 = 'waiting' THEN state ELSE ?2 END,"
		" body = CASE ?2 WHEN 'waiting' THEN body END WHERE number = ?1",
		&update);
	if (r < 0)
		return r;
	nt_db_bind_number(update, 1, number);
	nt_db_bind_text(update, 2, state);
	nt_db_bind_number(update, 3, next_ns);
	return nt_db_run(update);
}

/* Skips the resolved message if no firing one was sent. */
static int skip_resolved(struct nt_store *store, uint64_t number, int *ret_skipped)
{
	nt_autostmt sqlite3_stmt *update = NULL;
	int r;

	r = nt_db_prepare(
		store->db,
		"UPDATE message AS this SET state = 'skipped', body = NULL"
		" WHERE event = 'resolved' AND state = 'waiting'"
		" AND (incident, receiver) = (SELECT incident, receiver FROM message"
		"  WHERE number = ? AND event = 'firing')"
		" AND NOT EXISTS (SELECT 1 FROM message AS other"
		"  WHERE other.incident = this.incident AND other.receiver = this.receiver"
		"  AND other.event = 'firing' AND other.state <> 'failed')",
		&update);
	if (r < 0)
		return r;
	nt_db_bind_number(update, 1, number);
	r = nt_db_run(update);
	*ret_skipped = sqlite3_changes(store->db);
	return r;
}

void nt_store_count_outbox(struct nt_store *store)
{
	int64_t waiting = 0;

	if (nt_db_number(store->db, "SELECT count(*) FROM message WHERE state = 'waiting'",
			 &waiting) == 0)
		atomic_store(&store->outbox_now, (uint64_t)waiting);
}

/* Marks the incident as unpublished, as its delivery state changed. */
static int touch_incident(struct nt_store *store, uint64_t number)
{
	nt_autostmt sqlite3_stmt *update = NULL;
	int r;

	r = nt_db_prepare(store->db,
			  "UPDATE incident SET changed = changed + 1"
			  " WHERE id = (SELECT incident FROM message WHERE number = ?)",
			  &update);
	if (r < 0)
		return r;
	nt_db_bind_number(update, 1, number);
	atomic_store(&store->unpublished, true);
	return nt_db_run(update);
}

int nt_store_outbox_done(struct nt_store *store, uint64_t number, enum nt_outbox_result result,
			 uint64_t now_real_ns, uint64_t next_real_ns)
{
	static const char *const states[] = {
		[NT_OUTBOX_SENT] = "sent",
		[NT_OUTBOX_RETRY] = "waiting",
		[NT_OUTBOX_FAILED] = "failed",
		[NT_OUTBOX_EXPIRED] = "expired",
	};
	uint64_t next_ns = result == NT_OUTBOX_RETRY ? next_real_ns : now_real_ns;
	int skipped = 0, r;

	pthread_mutex_lock(&store->lock);
	r = nt_store_begin(store);
	if (r == 0) {
		r = set_state(store, number, states[result], next_ns);
		if (r == 0 && result == NT_OUTBOX_FAILED)
			r = skip_resolved(store, number, &skipped);
		if (r == 0 && result != NT_OUTBOX_RETRY)
			r = touch_incident(store, number);
		r = nt_store_end(store, r);
	}
	if (r == 0) {
		atomic_fetch_add(&store->outbox_skipped, (uint64_t)skipped);
		nt_store_count_outbox(store);
		land(store, number);
		pthread_cond_broadcast(&store->landed);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

/* Runs `what` on all waiting messages of receivers that are not configured. */
static int update_others(struct nt_store *store, const char *what, const char *end)
{
	nt_autobuf struct nt_buf sql = {0};
	nt_autostmt sqlite3_stmt *update = NULL;
	int r;

	r = nt_buf_printf(&sql, "%s WHERE state = 'waiting' AND receiver NOT IN (''", what);
	for (size_t i = 0; r == 0 && i < store->options.receivers; i++)
		r = nt_buf_printf(&sql, ", ?");
	if (r == 0)
		r = nt_buf_printf(&sql, ")%s", end);
	if (r == 0)
		r = nt_buf_append(&sql, "", 1);
	if (r == 0)
		r = nt_db_prepare(store->db, (const char *)sql.data, &update);
	if (r < 0)
		return r;
	for (size_t i = 0; i < store->options.receivers; i++)
		nt_db_bind_text(update, (int)i + 1, store->receiver[i]);
	return nt_db_run(update);
}

static int fail_others(struct nt_store *store, size_t *ret_failed)
{
	/* Their delivery states are to be published. */
	int r = update_others(store,
			      "UPDATE incident SET changed = changed + 1 WHERE id IN"
			      " (SELECT incident FROM message",
			      ")");

	if (r == 0)
		r = update_others(store, "UPDATE message SET state = 'failed', body = NULL", "");
	*ret_failed = r == 0 ? (size_t)sqlite3_changes(store->db) : 0;
	if (*ret_failed)
		atomic_store(&store->unpublished, true);
	return r;
}

int nt_store_outbox_fail_others(struct nt_store *store, size_t *ret_failed)
{
	int r;

	*ret_failed = 0;
	pthread_mutex_lock(&store->lock);
	r = nt_store_begin(store);
	if (r == 0)
		r = nt_store_end(store, fail_others(store, ret_failed));
	nt_store_count_outbox(store);
	pthread_mutex_unlock(&store->lock);
	return r;
}
