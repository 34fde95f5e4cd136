/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens, migrates and closes the file; ticks and statistics. */
#include "aggregator/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "aggregator/store/store_impl.h"
#include "common/system/clock.h"
#include "common/system/file.h"
#include "common/system/thread.h"

enum {
	APPLICATION_ID = 0x4e545243, /* "NTRC": other files are refused */
	DEFAULT_MAX_INCIDENTS = 100000,
	BUSY_MS = 5000,
	PROGRESS_STEPS = 10000, /* SQLite VM steps between two deadline checks */
};

static const uint64_t default_max_bytes = 256ULL << 20;
static const uint64_t default_max_age_ns = 365 * NT_DAY;

/* Entry n migrates a file from version n to n + 1. Entries are never changed, only added. */
static const char *const migrations[] = {
	"CREATE TABLE incident ("
	"  number INTEGER PRIMARY KEY AUTOINCREMENT," /* in order of first appearance */
	"  id TEXT NOT NULL UNIQUE,"
	"  version INTEGER NOT NULL,"
	"  state TEXT NOT NULL, severity TEXT NOT NULL, class TEXT NOT NULL,"
	"  job TEXT NOT NULL, job_key TEXT NOT NULL, attempt INTEGER NOT NULL,"
	"  since_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL," /* real time; until 0: open */
	"  body BLOB NOT NULL);" /* an encoded envelope */
	"CREATE INDEX incident_state ON incident (state, number);"
	"CREATE INDEX incident_job ON incident (job, number);"
	"CREATE TABLE message ("
	"  number INTEGER PRIMARY KEY AUTOINCREMENT,"
	"  incident TEXT NOT NULL, receiver TEXT NOT NULL,"
	"  event TEXT NOT NULL," /* firing, resolved */
	"  severity INTEGER NOT NULL,"
	"  state TEXT NOT NULL," /* waiting, sent, failed, expired, skipped */
	"  attempts INTEGER NOT NULL, queued_ns INTEGER NOT NULL, next_ns INTEGER NOT NULL,"
	"  body TEXT," /* NULL once finished */
	"  UNIQUE (incident, receiver, event, severity));"
	"CREATE INDEX message_waiting ON message (next_ns) WHERE state = 'waiting';"
	"CREATE TABLE state (name TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE position (topic TEXT NOT NULL, partition INTEGER NOT NULL,"
	"  offset INTEGER NOT NULL, PRIMARY KEY (topic, partition)) WITHOUT ROWID;"
	"CREATE TABLE state_time (one INTEGER PRIMARY KEY CHECK (one = 1), real_ns INTEGER NOT NULL);",

	/* Sharing between aggregators: a state per shard, and what is published. */
	"ALTER TABLE incident ADD COLUMN shard INTEGER NOT NULL DEFAULT 0;"
	/* `changed` counts changes to publish, `published` those that were. */
	"ALTER TABLE incident ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE incident ADD COLUMN published INTEGER NOT NULL DEFAULT 0;"
	"CREATE INDEX incident_unpublished ON incident (number) WHERE changed > published;"
	"CREATE INDEX incident_shard ON incident (shard, number);"
	"CREATE TABLE new_state (shard INTEGER NOT NULL, name TEXT NOT NULL, bytes BLOB NOT NULL,"
	"  PRIMARY KEY (shard, name)) WITHOUT ROWID;"
	"INSERT INTO new_state SELECT 0, name, bytes FROM state;"
	"DROP TABLE state;"
	"ALTER TABLE new_state RENAME TO state;"
	"CREATE TABLE new_position (shard INTEGER NOT NULL, topic TEXT NOT NULL,"
	"  partition INTEGER NOT NULL, offset INTEGER NOT NULL,"
	"  PRIMARY KEY (shard, topic, partition)) WITHOUT ROWID;"
	"INSERT INTO new_position SELECT 0, topic, partition, offset FROM position;"
	"DROP TABLE position;"
	"ALTER TABLE new_position RENAME TO position;"
	"CREATE TABLE new_time (shard INTEGER PRIMARY KEY, real_ns INTEGER NOT NULL);"
	"INSERT INTO new_time SELECT 0, real_ns FROM state_time;"
	"DROP TABLE state_time;"
	"ALTER TABLE new_time RENAME TO state_time;",

	/* Flap control: changes within the window, held keys, and incidents whose messages wait. */
	"CREATE TABLE flap_change (key TEXT NOT NULL, incident TEXT NOT NULL,"
	"  resolved INTEGER NOT NULL, real_ns INTEGER NOT NULL,"
	"  PRIMARY KEY (incident, resolved)) WITHOUT ROWID;"
	"CREATE INDEX flap_change_key ON flap_change (key, real_ns);"
	"CREATE TABLE flap (key TEXT PRIMARY KEY, changes INTEGER NOT NULL,"
	"  last_ns INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE flap_open (incident TEXT PRIMARY KEY, key TEXT NOT NULL) WITHOUT ROWID;",

	/* What people did with an incident. Times 0: not done. */
	"CREATE TABLE handling (incident TEXT PRIMARY KEY, revision INTEGER NOT NULL DEFAULT 0,"
	"  acknowledged_ns INTEGER NOT NULL DEFAULT 0, acknowledged_by TEXT NOT NULL DEFAULT '',"
	"  silenced_ns INTEGER NOT NULL DEFAULT 0, silenced_by TEXT NOT NULL DEFAULT '',"
	"  silenced_until_ns INTEGER NOT NULL DEFAULT 0, notes INTEGER NOT NULL DEFAULT 0)"
	"  WITHOUT ROWID;"
	"CREATE TABLE note (number INTEGER PRIMARY KEY AUTOINCREMENT, incident TEXT NOT NULL,"
	"  real_ns INTEGER NOT NULL, author TEXT NOT NULL, text TEXT NOT NULL);"
	"CREATE INDEX note_incident ON note (incident, number);",

	/* Lists filter by a job's name or key. */
	"CREATE INDEX incident_key ON incident (job_key, number);",
};

enum {
	SCHEMA = sizeof(migrations) / sizeof(migrations[0]),
};

/* ---- opening --------------------------------------------------------------------------------- */

/* A start as root, without --user, leaves files that a later start as another user cannot open. */
static bool is_of_another_user(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && status.st_uid != geteuid();
}

static int refuse(struct nt_store_error *error, int r, const char *path, const char *why)
{
	if (r == -EACCES && !why && is_of_another_user(path)) {
		(void)snprintf(
			error->text, sizeof(error->text),
			"store '%s': %s: an earlier start was by another user; give the files "
			"to user %u: chown %u '%s'*",
			path, strerrordesc_np(-r), (unsigned int)geteuid(), (unsigned int)geteuid(),
			path);
		return r;
	}
	if (r == -EROFS && !why)
		why = "it cannot be written; the file and its directory must be writable";
	(void)snprintf(error->text, sizeof(error->text), "store '%s': %s", path,
		       why ? why : strerrordesc_np(-r));
	return r;
}

/*
 * Excludes a second aggregator on the file for the process's lifetime, unlike SQLite's own locks.
 */
static int take_lock(const char *path, int *ret_fd)
{
	nt_autofree char *name = NULL;
	nt_autoclose int fd = -1;

	if (asprintf(&name, "%s.lock", path) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	*ret_fd = nt_take_fd(&fd);
	return 0;
}

static int connect(const char *path, int flags, sqlite3 **ret_db)
{
	sqlite3 *db = NULL;
	int r;

	if (sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		r = db ? nt_db_error(db) : -ENOMEM;
		(void)sqlite3_close(db);
		return r;
	}
	(void)sqlite3_extended_result_codes(db, 1);
	(void)sqlite3_busy_timeout(db, BUSY_MS);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	*ret_db = db;
	return 0;
}

/* 0: an empty file; 1: a store. Read-only, so that a refused file is not modified. */
static int identify(sqlite3 *db, const char **ret_why)
{
	int64_t application = 0, version = 0, tables = 0;
	nt_autostmt sqlite3_stmt *check = NULL;
	int r;

	*ret_why = NULL;
	r = nt_db_number(db, "PRAGMA application_id", &application);
	if (r == 0)
		r = nt_db_number(db, "PRAGMA user_version", &version);
	if (r == 0)
		r = nt_db_number(db, "SELECT count(*) FROM sqlite_schema", &tables);
	if (r == -EBADMSG)
		*ret_why = "it is not a database or is damaged; move it away to start with a new "
			   "one";
	if (r < 0)
		return r;
	if (application == 0 && version == 0 && tables == 0)
		return 0;
	if (application != APPLICATION_ID) {
		*ret_why = "it is a database of another program";
		return -EBADMSG;
	}
	if (version > SCHEMA) {
		*ret_why = "it was created by a newer version of NeuTracer";
		return -ENOTSUP;
	}
	r = nt_db_prepare(db, "PRAGMA quick_check(1)", &check);
	if (r == 0)
		r = nt_db_step(check);
	if (r >= 0 && strcmp(nt_db_text(check, 0), "ok") != 0)
		r = -EBADMSG;
	if (r == -EBADMSG)
		*ret_why = "it is damaged; move it away to start with a new one";
	return r < 0 ? r : 1;
}

static int migrate(sqlite3 *db)
{
	char set_version[64];
	int64_t version = 0;
	int r;

	r = nt_db_number(db, "PRAGMA user_version", &version);
	if (r < 0 || version == SCHEMA)
		return r;
	r = nt_db_exec(db, "BEGIN IMMEDIATE");
	if (r < 0)
		return r;
	for (int64_t i = version; r == 0 && i < SCHEMA; i++)
		r = nt_db_exec(db, migrations[i]);
	(void)snprintf(set_version, sizeof(set_version),
		       "PRAGMA user_version = %d; PRAGMA application_id = %d", SCHEMA,
		       APPLICATION_ID);
	if (r == 0)
		r = nt_db_exec(db, set_version);
	if (r == 0)
		r = nt_db_exec(db, "COMMIT");
	if (r < 0)
		(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

static int prepare_file(struct nt_store *store)
{
	int64_t page_bytes = 0, incidents = 0, unpublished = 0;
	char cap[64];
	int r;

	r = nt_db_exec(store->db,
		       "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
		       "PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 8388608;"
		       "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
		       "PRAGMA temp_store = MEMORY;"
		       /* The shards of this aggregator; only on a shared bus. */
		       "CREATE TEMP TABLE owned (shard INTEGER PRIMARY KEY)");
	if (r == 0)
		r = migrate(store->db);
	if (r == 0)
		r = nt_db_number(store->db, "PRAGMA page_size", &page_bytes);
	if (r == 0)
		r = nt_db_number(store->db, "SELECT count(*) FROM incident", &incidents);
	/* The owners of the incidents are known once shards are assigned. */
	if (r == 0 && store->options.shared)
		r = nt_db_exec(
			store->db,
			"UPDATE message SET state = 'parked' WHERE state = 'waiting'"
			" AND incident NOT IN (SELECT id FROM incident WHERE shard = " NT_STORE_OWN_SHARD_TEXT
			");"
			"INSERT INTO owned VALUES (" NT_STORE_OWN_SHARD_TEXT ")");
	if (r == 0)
		r = nt_db_number(store->db,
				 "SELECT count(*) FROM incident WHERE changed > published",
				 &unpublished);
	if (r < 0)
		return r;
	if (page_bytes <= 0)
		return -EBADMSG;
	(void)snprintf(cap, sizeof(cap), "PRAGMA max_page_count = %llu",
		       (unsigned long long)(store->options.max_bytes / (uint64_t)page_bytes));
	atomic_store(&store->incidents_now, (uint64_t)incidents);
	atomic_store(&store->unpublished, unpublished > 0);
	nt_store_count_outbox(store);
	return nt_db_exec(store->db, cap);
}

static int is_over_time(void *data)
{
	const struct nt_store *store = data;

	return nt_clock_mono_ns() > store->read_until_ns;
}

static int init(struct nt_store *store, const struct nt_store_options *options)
{

	store->lock_fd = -1;
	store->options = *options;
	store->options.path = NULL;
	store->options.receiver = NULL;
	if (!store->options.max_bytes)
		store->options.max_bytes = default_max_bytes;
	if (!store->options.max_incidents)
		store->options.max_incidents = DEFAULT_MAX_INCIDENTS;
	if (!store->options.max_age_ns)
		store->options.max_age_ns = default_max_age_ns;
	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->read_lock, NULL);
	nt_thread_condition_init(&store->landed);
	for (size_t i = 0; i < options->receivers; i++) {
		store->receiver[i] = strdup(options->receiver[i]);
		if (!store->receiver[i])
			return -ENOMEM;
	}
	return 0;
}

static int open_connections(struct nt_store *store, const char *path, const char **ret_why)
{
	mode_t before;
	int r;

	/*
	 * SQLite creates files with the process's umask; the store's files are private to the
	 * owner.
	 */
	before = umask(0077);
	r = connect(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &store->db);
	if (r == 0)
		r = identify(store->db, ret_why);
	if (r >= 0)
		r = prepare_file(store);
	if (r == 0)
		r = connect(path, SQLITE_OPEN_READONLY, &store->reader);
	(void)umask(before);
	if (r == 0)
		sqlite3_progress_handler(store->reader, PROGRESS_STEPS, is_over_time, store);
	return r;
}

int nt_store_open(const struct nt_store_options *options, struct nt_store **ret_store,
		  struct nt_store_error *ret_error)
{
	nt_auto(nt_store) struct nt_store *store = NULL;
	const char *why = NULL;
	int r;

	if (options->receivers > NT_STORE_MAX_RECEIVERS)
		return refuse(ret_error, -E2BIG, options->path, "too many receivers");
	for (size_t i = 0; i < options->receivers; i++) {
		size_t len = strlen(options->receiver[i]);

		if (!len || len >= NT_STORE_MAX_NAME)
			return refuse(ret_error, -EINVAL, options->path,
				      "a receiver's name has 1 to 63 bytes");
	}
	store = calloc(1, sizeof(*store));
	if (!store || init(store, options) < 0)
		return refuse(ret_error, -ENOMEM, options->path, NULL);
	r = nt_file_make_parent(options->path, 0755);
	if (r == 0)
		r = take_lock(options->path, &store->lock_fd);
	if (r == -EBUSY)
		why = "it is in use by another process";
	if (r == 0)
		r = open_connections(store, options->path, &why);
	if (r < 0)
		return refuse(ret_error, r, options->path, why);
	*ret_store = nt_take(store);
	return 0;
}

void nt_store_close(struct nt_store *store)
{
	if (!store)
		return;
	while (store->unsaved) {
		struct nt_unsaved *next = store->unsaved->next;

		nt_message_free(store->unsaved->message);
		free(store->unsaved);
		store->unsaved = next;
	}
	(void)sqlite3_close(store->reader);
	(void)sqlite3_close(store->db);
	if (store->lock_fd >= 0)
		(void)close(store->lock_fd);
	for (size_t i = 0; i < NT_STORE_MAX_RECEIVERS; i++)
		free(store->receiver[i]);
	pthread_cond_destroy(&store->landed);
	pthread_mutex_destroy(&store->lock);
	pthread_mutex_destroy(&store->read_lock);
	free(store);
}

void nt_store_on_queued(struct nt_store *store, void (*queued)(void *data), void *data)
{
	pthread_mutex_lock(&store->lock);
	store->queued = queued;
	store->queued_data = data;
	pthread_mutex_unlock(&store->lock);
}

void nt_store_on_stored(struct nt_store *store,
			void (*stored)(void *data, const struct nt_wire_incident *incident,
				       bool is_new),
			void *data)
{
	pthread_mutex_lock(&store->lock);
	store->stored = stored;
	store->stored_data = data;
	pthread_mutex_unlock(&store->lock);
}

/* ---- interfaces ------------------------------------------------------------------------------ */

struct nt_sink nt_store_sink(struct nt_store *store)
{
	return (struct nt_sink){
		.incident = nt_store_put,
		.take = nt_store_take,
		.publish = nt_store_publish,
		.adopt = nt_store_adopt,
		.release = nt_store_release,
		.data = store,
	};
}

struct nt_state_store nt_store_states(struct nt_store *store)
{
	return (struct nt_state_store){
		.save = nt_store_save_state,
		.load = nt_store_load_state,
		.data = store,
	};
}

/* ---- statistics ------------------------------------------------------------------------------ */

void nt_store_tick(struct nt_store *store, uint64_t real_ns)
{
	int64_t pages = 0, page_bytes = 0;

	pthread_mutex_lock(&store->lock);
	/* Failures are counted and reported as the store's problem; the next tick retries. */
	if (nt_store_flush(store) == 0) {
		(void)!nt_store_flap_tick(store, real_ns);
		(void)!nt_store_prune(store, real_ns);
	}
	if (nt_db_number(store->db, "PRAGMA page_count", &pages) == 0 &&
	    nt_db_number(store->db, "PRAGMA page_size", &page_bytes) == 0)
		atomic_store(&store->file_bytes_now, (uint64_t)(pages * page_bytes));
	pthread_mutex_unlock(&store->lock);
}

void nt_store_stats(struct nt_store *store, struct nt_store_stats *ret_stats)
{
	const char *problem = atomic_load(&store->problem);

	*ret_stats = (struct nt_store_stats){
		.incidents_written = atomic_load(&store->incidents_written),
		.incidents_stale = atomic_load(&store->incidents_stale),
		.states_written = atomic_load(&store->states_written),
		.state_bytes = atomic_load(&store->state_bytes),
		.write_errors = atomic_load(&store->write_errors),
		.unsaved_now = atomic_load(&store->unsaved_now),
		.unsaved_dropped = atomic_load(&store->unsaved_dropped),
		.pruned = atomic_load(&store->pruned),
		.queued = atomic_load(&store->outbox_queued),
		.queue_skipped = atomic_load(&store->outbox_skipped),
		.adopted = atomic_load(&store->adopted),
		.taken = atomic_load(&store->taken),
		.deliveries_refused = atomic_load(&store->deliveries_refused),
		.flaps = atomic_load(&store->flaps),
		.flaps_now = atomic_load(&store->flaps_now),
		.flap_held = atomic_load(&store->flap_held),
		.flap_uncounted = atomic_load(&store->flap_uncounted),
		.outbox_now = atomic_load(&store->outbox_now),
		.incidents_now = atomic_load(&store->incidents_now),
		.file_bytes_now = atomic_load(&store->file_bytes_now),
		.healthy = !problem,
	};
	(void)snprintf(ret_stats->problem, sizeof(ret_stats->problem), "%s",
		       problem ? problem : "");
}
