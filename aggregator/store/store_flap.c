/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Flap control. Incidents of the same job, first culprit and class have one key. After so many
 * beginnings and ends within a window the key is held: the message of the next incident says so,
 * and its end and further incidents wait until the key has been quiet. All of it is written in the
 * transaction of the incident. Times are those of the incidents.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/store/store_impl.h"
#include "common/base/duration.h"

enum {
	RELEASE_BATCH = 64, /* keys in a tick */
	SHA256_BYTES = 32,
};

/* ---- keys ------------------------------------------------------------------------------------ */

static int write_identity(const struct nt_wire_incident *incident, struct nt_buf *identity)
{
	const struct nt_culprit *first = incident->culprits ? &incident->culprit[0] : NULL;
	const char *part[] = {
		incident->job_key,           incident->class,
		first ? first->kind : "job", first ? first->node : NULL,
		first ? first->name : NULL,  first ? first->peer : NULL,
	};
	int r = nt_buf_printf(identity, "%lld", first && first->has_rank ? first->rank : -1LL);

	/* Each ends with its NUL, so that parts cannot run into each other. */
	for (size_t i = 0; r == 0 && i < sizeof(part) / sizeof(part[0]); i++) {
		const char *text = part[i] ? part[i] : "";

		r = nt_buf_append(identity, text, strlen(text) + 1);
	}
	return r;
}

/* A digest: names come from pods, and must not be able to share a key. */
static int make_key(const struct nt_wire_incident *incident, char key[NT_STORE_FLAP_KEY])
{
	nt_autobuf struct nt_buf identity = {0};
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned int len = 0;
	int r = write_identity(incident, &identity);

	if (r < 0 || !EVP_Digest(identity.data, identity.len, sum, &len, EVP_sha256(), NULL))
		return -ENOMEM;
	for (unsigned int i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(key + 2 * (size_t)i, 3, "%02x", sum[i]);
	return 0;
}

/* The key of the incident's beginning: culprit and class may have changed since. */
static int find_key(struct nt_store *store, const struct nt_wire_incident *incident,
		    char key[NT_STORE_FLAP_KEY])
{
	nt_autostmt sqlite3_stmt *find = NULL;
	int r = nt_db_prepare(store->db,
			      "SELECT key FROM flap_change WHERE incident = ?1"
			      " UNION ALL SELECT key FROM flap_open WHERE incident = ?1 LIMIT 1",
			      &find);

	if (r < 0)
		return r;
	nt_db_bind_text(find, 1, incident->id);
	r = nt_db_step(find);
	if (r < 0)
		return r;
	if (!r)
		return make_key(incident, key);
	(void)snprintf(key, NT_STORE_FLAP_KEY, "%s", nt_db_text(find, 0));
	return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* ?1 is the key, ?2 the incident, ?3 and ?4 are numbers; a statement may use some of them. */
static int run_on(struct nt_store *store, const char *sql, const char *key, const char *incident,
		  uint64_t first, uint64_t second)
{
	nt_autostmt sqlite3_stmt *stmt = NULL;
	int r = nt_db_prepare(store->db, sql, &stmt);

	if (r < 0)
		return r;
	/* Binding one that the statement lacks fails without effect. */
	nt_db_bind_text(stmt, 1, key);
	nt_db_bind_text(stmt, 2, incident);
	nt_db_bind_number(stmt, 3, first);
	nt_db_bind_number(stmt, 4, second);
	return nt_db_run(stmt);
}

/* Over the cap a change is not counted, so its message is sent. */
static int add_change(struct nt_store *store, const char *key, const char *incident, bool resolved,
		      uint64_t when_ns, bool *ret_is_new, bool *ret_is_over_cap)
{
	int64_t changes = 0;
	int r = nt_db_number(store->db, "SELECT count(*) FROM flap_change", &changes);

	*ret_is_over_cap = r == 0 && changes >= NT_STORE_MAX_FLAP_CHANGES;
	if (*ret_is_over_cap) {
		atomic_fetch_add(&store->flap_uncounted, 1);
		return 0;
	}
	if (r == 0)
		r = run_on(store,
			   "INSERT OR IGNORE INTO flap_change (key, incident, resolved, real_ns)"
			   " VALUES (?1, ?2, ?3, ?4)",
			   key, incident, resolved, when_ns);
	*ret_is_new = r == 0 && sqlite3_changes(store->db) > 0;
	return r;
}

/* The changes of the key in the window before this one. */
static int count_changes(struct nt_store *store, const char *key, uint64_t when_ns,
			 uint64_t *ret_changes)
{
	const uint64_t window_ns = store->options.flap.window_ns;
	nt_autostmt sqlite3_stmt *count = NULL;
	int r = nt_db_prepare(store->db,
			      "SELECT count(*) FROM flap_change WHERE key = ?1 AND real_ns >= ?2",
			      &count);

	if (r < 0)
		return r;
	nt_db_bind_text(count, 1, key);
	nt_db_bind_number(count, 2, when_ns > window_ns ? when_ns - window_ns : 0);
	r = nt_db_step(count);
	if (r > 0)
		*ret_changes = nt_db_column(count, 0);
	return r < 0 ? r : 0;
}

/* ---- holding --------------------------------------------------------------------------------- */

static int read_hold(struct nt_store *store, const char *key, uint64_t *ret_changes)
{
	nt_autostmt sqlite3_stmt *find = NULL;
	int r = nt_db_prepare(store->db, "SELECT changes FROM flap WHERE key = ?1", &find);

	if (r < 0)
		return r;
	nt_db_bind_text(find, 1, key);
	r = nt_db_step(find);
	if (r > 0)
		*ret_changes = nt_db_column(find, 0);
	return r;
}

/* Goes on with a hold, or begins one where enough changes precede the beginning of an incident. */
static int hold(struct nt_store *store, struct nt_store_flap *flap, bool resolved, uint64_t when_ns)
{
	uint64_t changes = 0;
	int r = read_hold(store, flap->key, &changes);

	if (r < 0)
		return r;
	if (r > 0) {
		flap->changes = changes + flap->is_new;
		return !flap->is_new ? 0
				     : run_on(store,
					      "UPDATE flap SET changes = changes + 1,"
					      " last_ns = max(last_ns, ?3) WHERE key = ?1",
					      flap->key, NULL, when_ns, 0);
	}
	if (resolved || !flap->is_new)
		return 0;
	r = count_changes(store, flap->key, when_ns, &changes);
	if (r < 0 || changes <= store->options.flap.changes)
		return r;
	flap->changes = changes;
	atomic_fetch_add(&store->flaps, 1);
	return run_on(store, "INSERT INTO flap (key, changes, last_ns) VALUES (?1, ?4, ?3)",
		      flap->key, NULL, when_ns, changes);
}

/* The incident's messages wait: those of its end, or all. */
static int note_open(struct nt_store *store, const struct nt_store_flap *flap, const char *incident)
{
	return run_on(store, "INSERT OR IGNORE INTO flap_open (key, incident) VALUES (?1, ?2)",
		      flap->key, incident, 0, 0);
}

int nt_store_flap_note(struct nt_store *store, const struct nt_wire_incident *incident,
		       struct nt_store_flap *ret_flap)
{
	bool resolved = !strcmp(incident->state, "resolved");
	uint64_t when_ns = resolved ? incident->until_real_ns : incident->seen_real_ns;
	struct nt_store_flap flap = {.changes = 0};
	bool is_over_cap = false;
	int r;

	*ret_flap = flap;
	if (!store->options.flap.changes)
		return 0;
	r = find_key(store, incident, flap.key);
	if (r == 0)
		r = add_change(store, flap.key, incident->id, resolved, when_ns, &flap.is_new,
			       &is_over_cap);
	if (r < 0 || is_over_cap)
		return r;
	if (r == 0)
		r = hold(store, &flap, resolved, when_ns);
	if (r == 0 && flap.changes && flap.is_new && !resolved)
		r = note_open(store, &flap, incident->id);
	if (r == 0)
		*ret_flap = flap;
	return r;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool is_exempt(const struct nt_store *store, const char *receiver)
{
	const char *exempt = store->options.flap.exempt;

	return exempt && !strcmp(exempt, receiver);
}

int nt_store_flap_holds(struct nt_store *store, const struct nt_store_flap *flap,
			const struct nt_wire_incident *incident, const char *receiver)
{
	enum nt_store_severity severity = nt_store_severity_of(incident->severity);
	nt_autostmt sqlite3_stmt *find = NULL;
	int r;

	if (!flap->changes || is_exempt(store, receiver))
		return 0;
	/* Firing: another message of the hold says it already, with this severity. Resolved: held. */
	r = nt_db_prepare(store->db,
			  "SELECT 1 FROM flap_open JOIN message"
			  " ON message.incident = flap_open.incident WHERE flap_open.key = ?1"
			  " AND message.receiver = ?2 AND message.event = 'firing'"
			  " AND message.state <> 'failed' AND message.severity >= ?3"
			  " AND (?4 = '' OR message.incident = ?4) LIMIT 1",
			  &find);
	if (r < 0)
		return r;
	nt_db_bind_text(find, 1, flap->key);
	nt_db_bind_text(find, 2, receiver);
	if (!strcmp(incident->state, "resolved")) {
		nt_db_bind_number(find, 3, 0);
		nt_db_bind_text(find, 4, incident->id);
	} else {
		nt_db_bind_number(find, 3, severity);
		nt_db_bind_text(find, 4, "");
	}
	return nt_db_step(find);
}

/* An incident that ended, and of which no receiver has a message that waits for its end. */
int nt_store_flap_forget(struct nt_store *store, const struct nt_store_flap *flap,
			 const struct nt_wire_incident *incident)
{
	nt_autostmt sqlite3_stmt *remove = NULL;
	int r;

	if (!flap->changes || strcmp(incident->state, "resolved") != 0)
		return 0;
	r = nt_db_prepare(store->db,
			  "DELETE FROM flap_open WHERE incident = ?1 AND NOT EXISTS (SELECT 1"
			  " FROM message WHERE message.incident = ?1 AND event = 'firing'"
			  " AND state <> 'failed' AND receiver <> ?2)",
			  &remove);
	if (r < 0)
		return r;
	nt_db_bind_text(remove, 1, incident->id);
	nt_db_bind_text(remove, 2, store->options.flap.exempt ? store->options.flap.exempt : "");
	return nt_db_run(remove);
}

/* ---- the end of a hold ----------------------------------------------------------------------- */

/* Queues what was held back and still matters: open incidents, and ends of announced ones. */
static int queue_open(struct nt_store *store, const char *key, size_t *ret_queued)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	int r = nt_db_prepare(store->db,
			      "SELECT body FROM incident JOIN flap_open ON incident = id"
			      " WHERE key = ?1 AND (NOT ?2 OR shard IN (SELECT shard FROM owned))"
			      " ORDER BY number",
			      &select);

	if (r < 0)
		return r;
	nt_db_bind_text(select, 1, key);
	nt_db_bind_number(select, 2, store->options.shared);
	while ((r = nt_db_step(select)) > 0) {
		nt_auto(nt_message) struct nt_message *message = NULL;
		size_t before = *ret_queued;

		r = nt_store_decode(select, 0, &message);
		if (r == 0)
			r = nt_store_queue_freely(store, &message->incident, ret_queued);
		if (r == 0 && *ret_queued > before)
			r = nt_store_touch(store, message->incident.id);
		if (r < 0)
			return r;
	}
	return r;
}

static int release(struct nt_store *store, const char *key)
{
	size_t queued = 0;
	int r = nt_store_begin(store);

	if (r < 0)
		return r;
	r = queue_open(store, key, &queued);
	if (r == 0)
		r = run_on(store, "DELETE FROM flap_open WHERE key = ?1", key, NULL, 0, 0);
	if (r == 0)
		r = run_on(store, "DELETE FROM flap WHERE key = ?1", key, NULL, 0, 0);
	r = nt_store_end(store, r);
	if (r < 0)
		return r;
	atomic_fetch_add(&store->outbox_queued, queued);
	nt_store_count_outbox(store);
	if (queued && store->queued)
		store->queued(store->queued_data);
	return 0;
}

/*
 * Without flap control nothing stays held. On a shared bus a hold waits until its shard is owned, as it is
 * soon after the start, and is given up after NT_STORE_FLAP_FOREIGN_NS.
 */
static int find_quiet(struct nt_store *store, uint64_t real_ns,
		      char key[RELEASE_BATCH][NT_STORE_FLAP_KEY])
{
	const struct nt_store_flap_options *options = &store->options.flap;
	nt_autostmt sqlite3_stmt *find = NULL;
	int count = 0, r;

	r = nt_db_prepare(
		store->db,
		"SELECT key FROM flap WHERE last_ns <= ?1 AND (NOT ?3 OR last_ns <= ?4"
		" OR NOT EXISTS (SELECT 1 FROM flap_open JOIN incident ON incident = id"
		" WHERE flap_open.key = flap.key AND shard NOT IN (SELECT shard FROM owned)))"
		" ORDER BY last_ns LIMIT ?2",
		&find);
	if (r < 0)
		return r;
	nt_db_bind_number(find, 1,
			  options->changes ? nt_store_before(real_ns, options->quiet_ns)
					   : INT64_MAX);
	nt_db_bind_number(find, 2, RELEASE_BATCH);
	nt_db_bind_number(find, 3, store->options.shared);
	nt_db_bind_number(find, 4, nt_store_before(real_ns, NT_STORE_FLAP_FOREIGN_NS));
	while ((r = nt_db_step(find)) > 0)
		(void)snprintf(key[count++], NT_STORE_FLAP_KEY, "%s", nt_db_text(find, 0));
	return r < 0 ? r : count;
}

static int forget_old(struct nt_store *store, uint64_t real_ns)
{
	int64_t changes = 0, flaps = 0;
	int r = nt_db_number(store->db, "SELECT count(*) FROM flap_change", &changes);

	if (r == 0)
		r = nt_db_number(store->db, "SELECT count(*) FROM flap", &flaps);
	if (r < 0)
		return r;
	atomic_store(&store->flaps_now, (uint64_t)flaps);
	if (!changes)
		return 0;
	r = nt_store_begin(store);
	if (r < 0)
		return r;
	/* Of what is held, an open incident would be counted as a new one with its next report. */
	r = run_on(
		store,
		"DELETE FROM flap_change WHERE real_ns < ?3 AND key NOT IN (SELECT key FROM flap)",
		NULL, NULL, nt_store_before(real_ns, store->options.flap.window_ns), 0);
	return nt_store_end(store, r);
}

int nt_store_flap_tick(struct nt_store *store, uint64_t real_ns)
{
	char key[RELEASE_BATCH][NT_STORE_FLAP_KEY];
	int count = find_quiet(store, real_ns, key), failed = 0, r;

	/* One that fails leaves the others to be released. */
	for (int i = 0; i < count; i++) {
		r = release(store, key[i]);
		failed = r < 0 ? r : failed;
	}
	r = count < 0 ? count : forget_old(store, real_ns);
	return r < 0 ? r : failed;
}
