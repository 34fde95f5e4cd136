/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening, migrating and closing the file; the state of the detection; how the store is. */
#include "aggregator/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "aggregator/store_impl.h"
#include "common/clock.h"
#include "common/file.h"

enum {
	APPLICATION_ID = 0x4e545243, /* "NTRC": a file with another one is not ours */
	DEFAULT_MAX_INCIDENTS = 100000,
	BUSY_MS = 5000,
	PROGRESS_STEPS = 10000, /* of SQLite's machine, between two looks at the clock */
};

static const uint64_t default_max_bytes = 256ULL << 20;
static const uint64_t default_max_age_ns = 365 * NT_DAY;

/* Each brings a file of the version that is its index to the next one. Never changed, only added. */
static const char *const migrations[] = {
	"CREATE TABLE incident ("
	"  number INTEGER PRIMARY KEY AUTOINCREMENT," /* in the order of their first appearance */
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
	"  body TEXT," /* NULL once it is done */
	"  UNIQUE (incident, receiver, event, severity));"
	"CREATE INDEX message_waiting ON message (next_ns) WHERE state = 'waiting';"
	"CREATE TABLE state (name TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE position (topic TEXT NOT NULL, partition INTEGER NOT NULL,"
	"  offset INTEGER NOT NULL, PRIMARY KEY (topic, partition)) WITHOUT ROWID;"
	"CREATE TABLE state_time (one INTEGER PRIMARY KEY CHECK (one = 1), real_ns INTEGER NOT NULL);",
};

enum {
	SCHEMA = sizeof(migrations) / sizeof(migrations[0]),
};

/* ---- opening ------------------------------------------------------------------------------------ */

static int refuse(struct nt_store_error *error, int r, const char *path, const char *why)
{
	(void)snprintf(error->text, sizeof(error->text), "store '%s': %s", path,
		       why ? why : strerrordesc_np(-r));
	return r;
}

/* Two aggregators on one file would undo each other. A lock of our own: SQLite's are not for ever. */
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

/* 0 for an empty file, 1 for one of ours. Reads only: a file that is refused stays as it was. */
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
		*ret_why = "it is no database, or damaged; move it away to start afresh";
	if (r < 0)
		return r;
	if (application == 0 && version == 0 && tables == 0)
		return 0;
	if (application != APPLICATION_ID) {
		*ret_why = "it is a database of another program";
		return -EBADMSG;
	}
	if (version > SCHEMA) {
		*ret_why = "a newer version of NeuTracer made it";
		return -ENOTSUP;
	}
	r = nt_db_prepare(db, "PRAGMA quick_check(1)", &check);
	if (r == 0)
		r = nt_db_step(check);
	if (r >= 0 && strcmp(nt_db_text(check, 0), "ok") != 0)
		r = -EBADMSG;
	if (r == -EBADMSG)
		*ret_why = "it is damaged; move it away to start afresh";
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
	int64_t page_bytes = 0, incidents = 0, waiting = 0;
	char cap[64];
	int r;

	r = nt_db_exec(store->db,
		       "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
		       "PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 8388608;"
		       "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
	if (r == 0)
		r = migrate(store->db);
	if (r == 0)
		r = nt_db_number(store->db, "PRAGMA page_size", &page_bytes);
	if (r == 0)
		r = nt_db_number(store->db, "SELECT count(*) FROM incident", &incidents);
	if (r == 0)
		r = nt_db_number(store->db, "SELECT count(*) FROM message WHERE state = 'waiting'",
				 &waiting);
	if (r < 0)
		return r;
	if (page_bytes <= 0)
		return -EBADMSG;
	(void)snprintf(cap, sizeof(cap), "PRAGMA max_page_count = %llu",
		       (unsigned long long)(store->options.max_bytes / (uint64_t)page_bytes));
	atomic_store(&store->incidents_now, (uint64_t)incidents);
	atomic_store(&store->outbox_now, (uint64_t)waiting);
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

	/* SQLite makes its files with the process's mask: those of the store are the owner's alone. */
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
		why = "another process has it open";
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

/* ---- transactions -------------------------------------------------------------------------------- */

static const char *problem_of(int r)
{
	switch (-r) {
	case ENOSPC:
		return "the disk is full, or the database has reached its cap";
	case EBADMSG:
		return "the database is damaged";
	case EROFS:
		return "the database is read-only";
	case EBUSY:
		return "another process holds the database";
	default:
		return "the database cannot be written";
	}
}

int nt_store_begin(struct nt_store *store)
{
	int r = nt_db_exec(store->db, "BEGIN IMMEDIATE");

	if (r < 0) {
		atomic_fetch_add(&store->write_errors, 1);
		atomic_store(&store->problem, problem_of(r));
	}
	return r;
}

int nt_store_end(struct nt_store *store, int r)
{
	if (r == 0)
		r = nt_db_exec(store->db, "COMMIT");
	if (r < 0) {
		/* SQLite rolls back by itself on some errors; a second one then does no harm. */
		(void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
		atomic_fetch_add(&store->write_errors, 1);
		atomic_store(&store->problem, problem_of(r));
		return r;
	}
	if (!store->unsaved)
		atomic_store(&store->problem, NULL);
	return 0;
}

/* ---- the state of the detection ------------------------------------------------------------------- */

static int write_items(struct nt_store *store, const struct nt_state_set *set)
{
	nt_autostmt sqlite3_stmt *insert = NULL;
	int r;

	r = nt_db_exec(store->db, "DELETE FROM state");
	if (r == 0)
		r = nt_db_prepare(store->db, "INSERT INTO state (name, bytes) VALUES (?, ?)",
				  &insert);
	for (size_t i = 0; r == 0 && i < set->items; i++) {
		(void)sqlite3_reset(insert);
		nt_db_bind_text(insert, 1, set->item[i].name);
		nt_db_bind_blob(insert, 2, set->item[i].bytes, set->item[i].size);
		r = nt_db_run(insert);
	}
	return r;
}

static int write_positions(struct nt_store *store, const struct nt_state_set *set)
{
	nt_autostmt sqlite3_stmt *insert = NULL;
	int r;

	r = nt_db_exec(store->db, "DELETE FROM position");
	if (r == 0)
		r = nt_db_prepare(
			store->db,
			"INSERT INTO position (topic, partition, offset) VALUES (?, ?, ?)",
			&insert);
	for (size_t i = 0; r == 0 && i < set->positions; i++) {
		(void)sqlite3_reset(insert);
		nt_db_bind_text(insert, 1, nt_topic_name(set->position[i].topic));
		nt_db_bind_number(insert, 2, set->position[i].partition);
		nt_db_bind_number(insert, 3, set->position[i].offset);
		r = nt_db_run(insert);
	}
	return r;
}

static int write_time(struct nt_store *store, uint64_t real_ns)
{
	nt_autostmt sqlite3_stmt *insert = NULL;
	int r;

	r = nt_db_prepare(store->db,
			  "INSERT OR REPLACE INTO state_time (one, real_ns) VALUES (1, ?)",
			  &insert);
	if (r < 0)
		return r;
	nt_db_bind_number(insert, 1, real_ns);
	return nt_db_run(insert);
}

static int save_state(void *data, const struct nt_state_set *set)
{
	struct nt_store *store = data;
	uint64_t bytes = 0;
	int r;

	pthread_mutex_lock(&store->lock);
	/* Positions beyond an incident that is only in memory would lose it: it goes first. */
	r = nt_store_flush(store);
	if (r == 0)
		r = nt_store_begin(store);
	if (r == 0) {
		r = write_items(store, set);
		if (r == 0)
			r = write_positions(store, set);
		if (r == 0)
			r = write_time(store, set->real_ns);
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

/* A set that is read back; its texts and bytes are its own. */
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

static int read_items(struct nt_store *store, struct loaded_set *set)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	struct nt_state_item *items;
	int r;

	r = nt_db_prepare(store->db, "SELECT name, bytes FROM state ORDER BY name", &select);
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

static int read_positions(struct nt_store *store, struct loaded_set *set)
{
	nt_autostmt sqlite3_stmt *select = NULL;
	struct nt_bus_position *positions;
	int r;

	r = nt_db_prepare(store->db, "SELECT topic, partition, offset FROM position ORDER BY 1, 2",
			  &select);
	while (r == 0 && (r = nt_db_step(select)) > 0) {
		enum nt_topic topic = 0;

		while (topic < NT_TOPIC_END &&
		       strcmp(nt_db_text(select, 0), nt_topic_name(topic)) != 0)
			topic++;
		if (topic == NT_TOPIC_END) {
			r = 0; /* of another version: nobody here reads that topic */
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

static int load_state(void *data, int (*loaded)(void *loader, const struct nt_state_set *set),
		      void *loader)
{
	__attribute__((cleanup(release_set))) struct loaded_set own = {0};
	struct nt_store *store = data;
	int64_t real_ns = 0, saved = 0;
	int r;

	pthread_mutex_lock(&store->lock);
	r = nt_db_number(store->db, "SELECT count(*) FROM state_time", &saved);
	if (r == 0)
		r = nt_db_number(store->db, "SELECT real_ns FROM state_time", &real_ns);
	if (r == 0)
		r = read_items(store, &own);
	if (r == 0)
		r = read_positions(store, &own);
	pthread_mutex_unlock(&store->lock);
	if (r < 0)
		return r;
	if (!saved)
		return -ENOENT;
	return loaded(loader, &(struct nt_state_set){
				      .real_ns = (uint64_t)real_ns,
				      .item = own.item,
				      .items = own.items,
				      .position = own.position,
				      .positions = own.positions,
			      });
}

struct nt_sink nt_store_sink(struct nt_store *store)
{
	return (struct nt_sink){.incident = nt_store_put, .data = store};
}

struct nt_state_store nt_store_states(struct nt_store *store)
{
	return (struct nt_state_store){.save = save_state, .load = load_state, .data = store};
}

/* ---- how it is ------------------------------------------------------------------------------------ */

void nt_store_tick(struct nt_store *store, uint64_t real_ns)
{
	int64_t pages = 0, page_bytes = 0;

	pthread_mutex_lock(&store->lock);
	/* Failures are counted and show as the store's problem; the next tick tries again. */
	if (nt_store_flush(store) == 0)
		(void)!nt_store_prune(store, real_ns);
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
		.outbox_now = atomic_load(&store->outbox_now),
		.incidents_now = atomic_load(&store->incidents_now),
		.file_bytes_now = atomic_load(&store->file_bytes_now),
		.healthy = !problem,
	};
	(void)snprintf(ret_stats->problem, sizeof(ret_stats->problem), "%s",
		       problem ? problem : "");
}
