/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What people do with incidents: acknowledgements, silences and notes. Each act is one transaction,
 * and a silence moves the messages that wait in the same one. So an aggregator that is killed has
 * either both or none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/store/store_impl.h"
#include "common/system/clock.h"
#include "proto/text.h"

enum {
	MAX_REVISION = INT32_MAX, /* of what others did: far beyond what people do */
};

/* ---- reading --------------------------------------------------------------------------------- */

void nt_store_read_handling(sqlite3_stmt *select, int first, struct nt_store_handling *ret_handling)
{
	struct nt_store_handling handling = {
		.revision = nt_db_column(select, first),
		.acknowledged_real_ns = nt_db_column(select, first + 1),
		.silenced_real_ns = nt_db_column(select, first + 3),
		.silenced_until_real_ns = nt_db_column(select, first + 5),
		.notes = (uint32_t)nt_db_column(select, first + 6),
	};

	(void)snprintf(handling.acknowledged_by, sizeof(handling.acknowledged_by), "%s",
		       nt_db_text(select, first + 2));
	(void)snprintf(handling.silenced_by, sizeof(handling.silenced_by), "%s",
		       nt_db_text(select, first + 4));
	*ret_handling = handling;
}

static int read_handling(sqlite3 *db, const char *id, struct nt_store_handling *ret_handling)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	int r = nt_db_prepare(
		db, "SELECT " NT_STORE_HANDLING_COLUMNS " FROM handling WHERE incident = ?",
		&select);

	if (r < 0)
		return r;
	nt_db_bind_text(select, 1, id);
	r = nt_db_step(select);
	if (r > 0)
		nt_store_read_handling(select, 0, ret_handling);
	return r;
}

int nt_store_get_handling(struct nt_store *store, const char *id,
			  struct nt_store_handling *ret_handling)
{
	struct nt_store_handling handling = {0};
	int r;

	nt_store_begin_read(store);
	r = read_handling(store->reader, id, &handling);
	nt_store_end_read(store);
	if (r < 0)
		return r;
	*ret_handling = handling;
	return 0;
}

static int list_notes(struct nt_store *store, const char *id, struct nt_store_note *note)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	int count = 0, r;

	r = nt_db_prepare(store->reader,
			  "SELECT real_ns, author, text FROM note WHERE incident = ?"
			  " ORDER BY number LIMIT ?",
			  &select);
	if (r < 0)
		return r;
	nt_db_bind_text(select, 1, id);
	nt_db_bind_number(select, 2, NT_STORE_MAX_NOTES);
	while ((r = nt_db_step(select)) > 0) {
		note[count].real_ns = nt_db_column(select, 0);
		(void)snprintf(note[count].by, sizeof(note->by), "%s", nt_db_text(select, 1));
		(void)snprintf(note[count].text, sizeof(note->text), "%s", nt_db_text(select, 2));
		count++;
	}
	return r < 0 ? r : count;
}

int nt_store_list_notes(struct nt_store *store, const char *id,
			struct nt_store_note ret_note[NT_STORE_MAX_NOTES])
{
	int r;

	nt_store_begin_read(store);
	r = list_notes(store, id, ret_note);
	nt_store_end_read(store);
	return r;
}

int nt_store_silenced_until(struct nt_store *store, const char *id, uint64_t real_ns,
			    uint64_t *ret_until_ns)
{
	struct nt_store_handling handling = {0};
	int r = read_handling(store->db, id, &handling);

	if (r < 0)
		return r;
	*ret_until_ns =
		handling.silenced_until_real_ns > real_ns ? handling.silenced_until_real_ns : 0;
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

int nt_store_drop_silenced(struct nt_store *store, const char *id, const char *receiver)
{
	uint64_t until_ns = 0;
	int removed, r;

	r = nt_store_silenced_until(store, id, nt_clock_real_ns(), &until_ns);
	if (r < 0 || !until_ns)
		return r;
	r = nt_store_remove_waiting(store, id, receiver, &removed);
	if (r == 0)
		atomic_fetch_add(&store->outbox_skipped, (uint64_t)removed);
	return r;
}

/* until_ns 0: what waits is due now. What was attempted may be known to the receiver, and goes on. */
static int move_messages(struct nt_store *store, const char *id, uint64_t until_ns, uint64_t now_ns)
{
	nt_autostmt sqlite3_stmt *move = NULL;
	int r = nt_db_prepare(store->db,
			      "UPDATE message SET next_ns = ?2, queued_ns = max(?2, ?3)"
			      " WHERE incident = ?1 AND event = 'firing'"
			      " AND state IN ('waiting', 'parked') AND attempts = 0",
			      &move);

	if (r < 0)
		return r;
	nt_db_bind_text(move, 1, id);
	nt_db_bind_number(move, 2, until_ns);
	nt_db_bind_number(move, 3, now_ns);
	return nt_db_run(move);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int write_handling(struct nt_store *store, const char *id,
			  const struct nt_store_handling *handling)
{
	nt_autostmt sqlite3_stmt *put = NULL;
	int r = nt_db_prepare(store->db,
			      "INSERT OR REPLACE INTO handling (incident, revision,"
			      " acknowledged_ns, acknowledged_by, silenced_ns, silenced_by,"
			      " silenced_until_ns, notes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
			      &put);

	if (r < 0)
		return r;
	nt_db_bind_text(put, 1, id);
	nt_db_bind_number(put, 2, handling->revision + 1);
	nt_db_bind_number(put, 3, handling->acknowledged_real_ns);
	nt_db_bind_text(put, 4, handling->acknowledged_by);
	nt_db_bind_number(put, 5, handling->silenced_real_ns);
	nt_db_bind_text(put, 6, handling->silenced_by);
	nt_db_bind_number(put, 7, handling->silenced_until_real_ns);
	nt_db_bind_number(put, 8, handling->notes);
	return nt_db_run(put);
}

/* ---- sharing --------------------------------------------------------------------------------- */

struct nt_handling nt_store_handling_of(const struct nt_store_handling *handling)
{
	return (struct nt_handling){
		.revision = handling->revision,
		.acknowledged_real_ns = handling->acknowledged_real_ns,
		.acknowledged_by = handling->acknowledged_by,
		.silenced_real_ns = handling->silenced_real_ns,
		.silenced_by = handling->silenced_by,
		.silenced_until_real_ns = handling->silenced_until_real_ns,
	};
}

static void take_name(const char *name, char to[NT_STORE_MAX_AUTHOR + 1])
{
	(void)nt_text_clean(name, strlen(name), to, NT_STORE_MAX_AUTHOR);
}

/* Notes are not shared. */
static struct nt_store_handling read_theirs(const struct nt_handling *handling, uint64_t now_ns)
{
	struct nt_store_handling theirs = {
		.revision = handling->revision,
		.acknowledged_real_ns = handling->acknowledged_real_ns,
		.silenced_real_ns = handling->silenced_real_ns,
		.silenced_until_real_ns = handling->silenced_until_real_ns,
	};

	take_name(handling->acknowledged_by, theirs.acknowledged_by);
	take_name(handling->silenced_by, theirs.silenced_by);
	if (theirs.silenced_until_real_ns > now_ns + NT_STORE_MAX_SILENCE_NS)
		theirs.silenced_until_real_ns = now_ns + NT_STORE_MAX_SILENCE_NS;
	return theirs;
}

/* Which of two acknowledgements, or silences, is the later one; by name if both have one time. */
static int compare(uint64_t one_ns, const char *one_by, uint64_t other_ns, const char *other_by)
{
	return one_ns == other_ns ? strcmp(one_by, other_by) : one_ns > other_ns ? 1 : -1;
}

/*
 * People may act at two aggregators at once, and give both the same revision: the later acknowledgement
 * and the later silence hold everywhere. The end of a silence is not compared, as each aggregator cuts
 * it by its own clock. An acknowledgement that is taken back has no time: it loses to one elsewhere.
 */
int nt_store_take_handling(struct nt_store *store, const struct nt_wire_incident *incident,
			   bool *ret_is_behind)
{
	const uint64_t revision = incident->handling.revision, now_ns = nt_clock_real_ns();
	struct nt_store_handling handling = {0}, theirs;
	int acknowledged = 1, silenced = 1, r = read_handling(store->db, incident->id, &handling);

	if (r < 0)
		return r;
	*ret_is_behind = handling.revision > revision;
	if (*ret_is_behind || !revision)
		return 0;
	if (revision > MAX_REVISION) {
		atomic_fetch_add(&store->deliveries_refused, 1);
		return 0;
	}
	theirs = read_theirs(&incident->handling, now_ns);
	if (revision == handling.revision) {
		acknowledged = compare(theirs.acknowledged_real_ns, theirs.acknowledged_by,
				       handling.acknowledged_real_ns, handling.acknowledged_by);
		silenced = compare(theirs.silenced_real_ns, theirs.silenced_by,
				   handling.silenced_real_ns, handling.silenced_by);
	}
	*ret_is_behind = acknowledged < 0 || silenced < 0;
	if (acknowledged <= 0 && silenced <= 0)
		return 0;
	handling.revision = revision - 1; /* which is counted when it is written */
	if (acknowledged > 0) {
		handling.acknowledged_real_ns = theirs.acknowledged_real_ns;
		memcpy(handling.acknowledged_by, theirs.acknowledged_by,
		       sizeof(handling.acknowledged_by));
	}
	if (silenced > 0) {
		if (theirs.silenced_until_real_ns != handling.silenced_until_real_ns)
			r = move_messages(store, incident->id, theirs.silenced_until_real_ns,
					  now_ns);
		handling.silenced_real_ns = theirs.silenced_real_ns;
		handling.silenced_until_real_ns = theirs.silenced_until_real_ns;
		memcpy(handling.silenced_by, theirs.silenced_by, sizeof(handling.silenced_by));
	}
	return r < 0 ? r : write_handling(store, incident->id, &handling);
}

/* ---- acting ---------------------------------------------------------------------------------- */

static bool is_sound(const struct nt_store_action *action)
{
	size_t len = action->text ? strlen(action->text) : 0;

	if (strlen(action->by) > NT_STORE_MAX_AUTHOR)
		return false;
	if (action->act == NT_STORE_ANNOTATE)
		return len > 0 && len <= NT_STORE_MAX_NOTE;
	return action->act != NT_STORE_SILENCE || action->until_real_ns > action->real_ns;
}

static int add_note(struct nt_store *store, const char *id, const struct nt_store_action *action,
		    struct nt_store_handling *handling)
{
	nt_autostmt sqlite3_stmt *insert = NULL;
	int r;

	if (handling->notes >= NT_STORE_MAX_NOTES)
		return -E2BIG;
	handling->notes++;
	r = nt_db_prepare(
		store->db,
		"INSERT INTO note (incident, real_ns, author, text) VALUES (?1, ?2, ?3, ?4)",
		&insert);
	if (r < 0)
		return r;
	nt_db_bind_text(insert, 1, id);
	nt_db_bind_number(insert, 2, action->real_ns);
	nt_db_bind_text(insert, 3, action->by);
	nt_db_bind_text(insert, 4, action->text);
	return nt_db_run(insert);
}

static int apply(struct nt_store *store, const char *id, const struct nt_store_action *action,
		 struct nt_store_handling *handling)
{
	switch (action->act) {
	case NT_STORE_ACKNOWLEDGE:
		handling->acknowledged_real_ns = action->real_ns;
		take_name(action->by, handling->acknowledged_by); /* as others get it */
		return 0;
	case NT_STORE_UNACKNOWLEDGE:
		handling->acknowledged_real_ns = 0;
		handling->acknowledged_by[0] = '\0';
		return 0;
	case NT_STORE_SILENCE:
		handling->silenced_real_ns = action->real_ns;
		handling->silenced_until_real_ns = action->until_real_ns;
		take_name(action->by, handling->silenced_by);
		return move_messages(store, id, action->until_real_ns, action->real_ns);
	case NT_STORE_UNSILENCE:
		/* Its time is later than that of the silence, whichever clock that was. */
		handling->silenced_real_ns = action->real_ns > handling->silenced_real_ns
						     ? action->real_ns
						     : handling->silenced_real_ns + 1;
		handling->silenced_until_real_ns = 0;
		handling->silenced_by[0] = '\0';
		return move_messages(store, id, 0, action->real_ns);
	case NT_STORE_ANNOTATE:
		return add_note(store, id, action, handling);
	}
	return -EINVAL;
}

static int act(struct nt_store *store, const char *id, const struct nt_store_action *action)
{
	struct nt_store_handling handling = {0};
	uint64_t version;
	int r = nt_store_version(store, id, &version);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	r = read_handling(store->db, id, &handling);
	if (r >= 0)
		r = apply(store, id, action, &handling);
	if (r >= 0)
		r = write_handling(store, id, &handling);
	/* The next owner of its shard goes on with it. */
	return r < 0 ? r : nt_store_touch(store, id);
}

/* A refusal is not a failure of the file. */
static bool is_refusal(int r)
{
	return r == -ENOENT || r == -E2BIG;
}

int nt_store_act(struct nt_store *store, const char *id, const struct nt_store_action *action)
{
	int refused = 0, r;

	if (!is_sound(action))
		return -EINVAL;
	pthread_mutex_lock(&store->lock);
	r = nt_store_begin(store);
	if (r == 0) {
		r = act(store, id, action);
		if (is_refusal(r)) {
			refused = r;
			r = 0;
		}
		r = nt_store_end(store, r);
	}
	/* A message may be due now, or the next one later. */
	if (r == 0 && !refused && store->queued)
		store->queued(store->queued_data);
	pthread_mutex_unlock(&store->lock);
	return r < 0 ? r : refused;
}

int nt_store_forget_handling(struct nt_store *store)
{
	int r = nt_db_exec(store->db,
			   "DELETE FROM handling WHERE incident NOT IN (SELECT id FROM incident)");

	if (r < 0)
		return r;
	return nt_db_exec(store->db,
			  "DELETE FROM note WHERE incident NOT IN (SELECT id FROM incident)");
}
