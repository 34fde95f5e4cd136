/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file is hostile. It is opened immutable, without its journal, views, triggers or virtual
 * tables. What SQLite may do with it is bounded by its size.
 */
#include "cli/kineto/nsys.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kineto/kineto.h"
#include "cli/readers/input.h"
#include "common/base/buf.h"
#include "common/base/hash.h"
#include "proto/text.h"

enum {
	MAX_VALUE_BYTES = 1 << 20, /* names of kernels are templates */
	PROGRESS_OPS = 10000, /* of SQLite, between checks */
	OPS_PER_BYTE = 16, /* a row of 30 bytes takes some 40 */
	FREE_OPS = 10 << 20,
	HEAP_BYTES = 64 << 20, /* of SQLite: a damaged file may request any amount */
};

static const int64_t MAX_NS = INT64_MAX / 4;

/* A process of an export. */
struct process {
	int64_t id; /* globalPid */
	uint32_t device; /* the lowest on which it ran a kernel */
	bool communicates, numbered;
	struct nt_kineto_rank rank;
};

struct export
{
	const char *path;
	sqlite3 *db;
	void *map; /* of a file without a name */
	size_t map_bytes;
	uint64_t ops_left;
	uint64_t epoch_ns;
	bool has_number; /* in its name */
	uint32_t number;
	struct process process[NT_NSYS_MAX_PROCESSES];
	size_t processes;
	struct nt_trace_error *error;
};

static void close_export(struct export *export)
{
	(void)sqlite3_close(export->db);
	export->db = NULL;
	if (export->map)
		(void)munmap(export->map, export->map_bytes);
	export->map = NULL;
}

static void release_export(struct export *export)
{
	close_export(export);
	for (size_t i = 0; i < export->processes; i++)
		nt_kineto_rank_release(&export->process[i].rank);
	export->processes = 0;
}

static void finish(sqlite3_stmt **stmt)
{
	(void)sqlite3_finalize(*stmt);
}

#define auto_stmt __attribute__((cleanup(finish))) sqlite3_stmt

static int refuse_db(struct export *export, int code)
{
	/* A damaged page may request too much, too. */
	if (code == SQLITE_NOMEM)
		return nt_trace_refuse(export->error,
				       "%s: too little memory to read it, or the file is damaged",
				       export->path);
	if (code == SQLITE_INTERRUPT)
		return nt_trace_refuse(export->error,
				       "%s: damaged: reading it takes too long for its size",
				       export->path);
	return nt_trace_refuse(export->error, "%s: %s", export->path,
			       export->db ? sqlite3_errmsg(export->db) : sqlite3_errstr(code));
}

/* ---- opening ---------------------------------------------------------------------------------- */

static int check_progress(void *data)
{
	struct export *export = data;

	if (export->ops_left < PROGRESS_OPS)
		return 1;
	export->ops_left -= PROGRESS_OPS;
	return 0;
}

/* "file:PATH?immutable=1", where the path's own ?, # and % are escaped. */
static int open_named(struct export *export)
{
	nt_autobuf struct nt_buf uri = {0};
	int r = nt_buf_printf(&uri, *export->path == '/' ? "file:" : "file:./");

	for (const char *in = export->path; *in && r == 0; in++)
		r = nt_buf_printf(&uri, strchr("?#%", *in) ? "%%%02x" : "%c", *in);
	r = r ?: nt_buf_printf(&uri, "?immutable=1");
	return r < 0 ? SQLITE_NOMEM
		     : sqlite3_open_v2((const char *)uri.data, &export->db,
				       SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
}

/* SQLite resolves links, so it cannot open /proc/self/fd/N of a file without a name. */
static int open_nameless(struct export *export, const char *place, size_t bytes)
{
	nt_autoclose int fd = open(place, O_RDONLY | O_CLOEXEC);
	int code;

	if (fd < 0)
		return SQLITE_CANTOPEN;
	export->map = mmap(NULL, bytes ? bytes : 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (export->map == MAP_FAILED) {
		export->map = NULL;
		return SQLITE_NOMEM;
	}
	export->map_bytes = bytes ? bytes : 1;
	code = sqlite3_open_v2(":memory:", &export->db, SQLITE_OPEN_READWRITE, NULL);
	return code
		       ?: sqlite3_deserialize(export->db, "main", export->map, (sqlite3_int64)bytes,
					      (sqlite3_int64)bytes, SQLITE_DESERIALIZE_READONLY);
}

static int open_export(struct export *export)
{
	char place[NT_INPUT_PLACE_BYTES];
	const char *path = nt_input_place(export->path, place);
	struct stat st;
	int code;

	if (stat(path, &st) < 0) {
		const int r = -errno;

		(void)nt_trace_refuse(export->error, "%s: %s", export->path, strerrordesc_np(-r));
		return r;
	}
	(void)sqlite3_hard_heap_limit64(HEAP_BYTES);
	export->ops_left = FREE_OPS + OPS_PER_BYTE * (uint64_t)st.st_size;
	if (strncmp(path, "/proc/self/fd/", strlen("/proc/self/fd/")) == 0)
		code = open_nameless(export, path, (size_t)st.st_size);
	else
		code = open_named(export);
	if (code != SQLITE_OK)
		return refuse_db(export, code);
	(void)sqlite3_db_config(export->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(export->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_db_config(export->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	(void)sqlite3_db_config(export->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	(void)sqlite3_limit(export->db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
	(void)sqlite3_limit(export->db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_progress_handler(export->db, PROGRESS_OPS, check_progress, export);
	return 0;
}

/* ---- tables ----------------------------------------------------------------------------------- */

/* 1: the table has the column; 0: there is no such table, or no such column in it. */
static int has_column(struct export *export, const char *table, const char *column)
{
	auto_stmt *stmt = NULL;
	int code;

	code = sqlite3_prepare_v2(export->db,
				  "SELECT 1 FROM pragma_table_info(?) WHERE name = ? AND EXISTS "
				  "(SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? "
				  "AND sql LIKE 'CREATE TABLE%')",
				  -1, &stmt, NULL);
	if (code != SQLITE_OK)
		return refuse_db(export, code);
	(void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(stmt, 2, column, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(stmt, 3, table, -1, SQLITE_STATIC);
	code = sqlite3_step(stmt);
	return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : refuse_db(export, code);
}

static struct process *find_process(struct export *export, int64_t id)
{
	for (size_t i = export->processes; i-- > 0;)
		if (export->process[i].id == id)
			return &export->process[i];
	if (export->processes == NT_NSYS_MAX_PROCESSES)
		return NULL;
	export->process[export->processes] =
		(struct process){.id = id, .device = UINT32_MAX, .rank = {.path = export->path}};
	return &export->process[export->processes++];
}

/* Start and end of a row, in nanoseconds of the export's clock. */
static bool read_times(const struct export *export, sqlite3_stmt *stmt,
		       struct nt_kineto_interval *ret_interval)
{
	const int64_t start = sqlite3_column_int64(stmt, 0), end = sqlite3_column_int64(stmt, 1);

	if (start < 0 || end < start || end > MAX_NS)
		return false;
	ret_interval->start_ns = export->epoch_ns + (uint64_t)start;
	ret_interval->end_ns = export->epoch_ns + (uint64_t)end;
	return true;
}

/* A kernel, a copy, or a fill of memory; copies have no name. */
static int add_kernel(struct export *export, sqlite3_stmt *stmt, const char *table)
{
	const char *name = (const char *)sqlite3_column_text(stmt, 4);
	const int64_t device = sqlite3_column_int64(stmt, 3);
	struct process *process = find_process(export, sqlite3_column_int64(stmt, 2));
	struct nt_kineto_interval interval = {0};

	if (!read_times(export, stmt, &interval))
		return nt_trace_refuse(export->error,
				       "%s: %s: row %" PRId64 ": expected start and end in ns",
				       export->path, table, (int64_t)sqlite3_column_int64(stmt, 5));
	if (!process)
		return nt_trace_refuse(export->error, "%s: more than %d processes", export->path,
				       NT_NSYS_MAX_PROCESSES);
	if (process->rank.kernels == NT_KINETO_MAX_KERNELS)
		return nt_trace_refuse(export->error, "%s: more than %d kernels", export->path,
				       NT_KINETO_MAX_KERNELS);
	if (device >= 0 && device < process->device)
		process->device = (uint32_t)device;
	if (name && strncmp(name, "nccl", 4) == 0) {
		interval.comm = process->communicates = true;
		nt_kineto_collective_name(name, interval.name, sizeof(interval.name));
	} else {
		interval.kind = (uint32_t)nt_hash_text(NT_HASH_SEED, name ? name : "");
	}
	return nt_kineto_add_interval(&process->rank.kernel, &process->rank.kernels, &interval);
}

/* Adds all rows of a table of device activity, if it is there. */
static int read_activity(struct export *export, const char *table, const char *name_column)
{
	auto_stmt *stmt = NULL;
	char sql[512];
	int code, r, has_pid, has_device;

	r = has_column(export, table, "start");
	if (r <= 0)
		return r;
	has_pid = has_column(export, table, "globalPid");
	has_device = has_column(export, table, "deviceId");
	if (has_pid < 0 || has_device < 0)
		return has_pid < 0 ? has_pid : has_device;
	(void)snprintf(sql, sizeof(sql), "SELECT k.start, k.end, %s, %s, %s, k.rowid FROM %s k%s%s",
		       has_pid ? "k.globalPid" : "0", has_device ? "k.deviceId" : "0",
		       name_column ? "s.value" : "NULL", table,
		       name_column ? " LEFT JOIN StringIds s ON s.id = k." : "",
		       name_column ? name_column : "");
	code = sqlite3_prepare_v2(export->db, sql, -1, &stmt, NULL);
	if (code != SQLITE_OK)
		return refuse_db(export, code);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		r = add_kernel(export, stmt, table);
		if (r < 0)
			return r;
	}
	return code == SQLITE_DONE ? 0 : refuse_db(export, code);
}

/* The profiler's steps, if the program marked them (torch.profiler, or by hand). */
static int read_steps(struct export *export)
{
	auto_stmt *stmt = NULL;
	int code, has_id = has_column(export, "NVTX_EVENTS", "textId"), r;

	r = has_id < 0 ? has_id : has_column(export, "NVTX_EVENTS", "globalTid");
	if (r <= 0)
		return r;
	/* A thread's identifier is that of its process in all but the lowest 24 bits. */
	code = sqlite3_prepare_v2(
		export->db,
		has_id ? "SELECT n.start, n.end, n.globalTid & ~0xffffff, coalesce(n.text, "
			 "s.value) AS name FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = "
			 "n.textId WHERE name LIKE 'ProfilerStep#%' AND n.end IS NOT NULL"
		       : "SELECT start, end, globalTid & ~0xffffff, text FROM NVTX_EVENTS WHERE "
			 "text LIKE 'ProfilerStep#%' AND end IS NOT NULL",
		-1, &stmt, NULL);
	if (code != SQLITE_OK)
		return refuse_db(export, code);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct nt_kineto_interval interval = {0};
		const int64_t id = sqlite3_column_int64(stmt, 2);

		if (!read_times(export, stmt, &interval))
			continue;
		for (size_t i = 0; i < export->processes; i++) {
			struct nt_kineto_rank *rank = &export->process[i].rank;

			if (export->process[i].id != id || rank->steps == NT_KINETO_MAX_KERNELS)
				continue;
			r = nt_kineto_add_interval(&rank->step, &rank->steps, &interval);
			if (r < 0)
				return r;
		}
	}
	return code == SQLITE_DONE ? 0 : refuse_db(export, code);
}

/* The wall clock at the beginning: times count from there. Old exports have none. */
static int read_epoch(struct export *export)
{
	auto_stmt *stmt = NULL;
	int code, r = has_column(export, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs");

	if (r <= 0)
		return r;
	code = sqlite3_prepare_v2(export->db,
				  "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME", -1,
				  &stmt, NULL);
	if (code != SQLITE_OK)
		return refuse_db(export, code);
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW && sqlite3_column_int64(stmt, 0) > 0 &&
	    sqlite3_column_int64(stmt, 0) < MAX_NS)
		export->epoch_ns = (uint64_t)sqlite3_column_int64(stmt, 0);
	return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : refuse_db(export, code);
}

/* Of jobs that nsys traced with MPI. */
static int read_mpi_ranks(struct export *export)
{
	auto_stmt *stmt = NULL;
	int code, r = has_column(export, "MPI_RANKS", "rank");

	r = r <= 0 ? r : has_column(export, "MPI_RANKS", "globalPid");
	if (r <= 0)
		return r;
	code = sqlite3_prepare_v2(export->db, "SELECT globalPid, rank FROM MPI_RANKS", -1, &stmt,
				  NULL);
	if (code != SQLITE_OK)
		return refuse_db(export, code);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		const int64_t rank = sqlite3_column_int64(stmt, 1);

		for (size_t i = 0; i < export->processes; i++) {
			struct process *process = &export->process[i];

			if (process->id != sqlite3_column_int64(stmt, 0))
				continue;
			if (rank < 0 || rank >= NT_FRAME_MAX_RANKS)
				return nt_trace_refuse(
					export->error,
					"%s: MPI_RANKS: a rank is not a number from 0 to %d",
					export->path, NT_FRAME_MAX_RANKS - 1);
			process->rank.rank = (uint32_t)rank;
			process->numbered = true;
		}
	}
	return code == SQLITE_DONE ? 0 : refuse_db(export, code);
}

/* ---- one export ------------------------------------------------------------------------------- */

/* The number behind the last "rank" in the file's name, else the last number in it. */
static bool read_number(const char *path, uint32_t *ret_number)
{
	const char *base = strrchr(path, '/'), *digits = NULL;
	bool stated = false;
	uint64_t number = 0;

	base = base ? base + 1 : path;
	for (const char *at = base; *at; at++) {
		const bool begins = isdigit((unsigned char)*at) &&
				    (at == base || !isdigit((unsigned char)at[-1]));
		const char *from = at;

		/* sqlite3 is no rank. */
		if (!begins || strncasecmp(at - (at - base < 7 ? 0 : 7), ".sqlite", 7) == 0)
			continue;
		while (from > base && strchr("_-. ", from[-1]))
			from--;
		if (from - base >= 4 && strncasecmp(from - 4, "rank", 4) == 0)
			stated = true;
		else if (stated)
			continue;
		digits = at;
	}
	for (int n = 0; digits && n < 9 && isdigit((unsigned char)digits[n]); n++)
		number = number * 10 + (uint64_t)(digits[n] - '0');
	*ret_number = (uint32_t)number;
	return digits && number < NT_FRAME_MAX_RANKS;
}

static int by_device(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Drops helpers: where some processes communicate, the others are no ranks. */
static void drop_helpers(struct export *export)
{
	size_t kept = 0;
	bool any = false;

	for (size_t i = 0; i < export->processes; i++)
		any |= export->process[i].communicates;
	for (size_t i = 0; i < export->processes; i++) {
		if (any && !export->process[i].communicates)
			nt_kineto_rank_release(&export->process[i].rank);
		else
			export->process[kept++] = export->process[i];
	}
	export->processes = kept;
	if (kept)
		qsort(export->process, kept, sizeof(*export->process), by_device);
}

static int read_export(struct export *export)
{
	const char *name_column = "shortName";
	int r;

	r = open_export(export);
	r = r ?: has_column(export, "CUPTI_ACTIVITY_KIND_KERNEL", "shortName");
	if (r == 0)
		r = has_column(export, "CUPTI_ACTIVITY_KIND_KERNEL", name_column = "demangledName");
	if (r > 0)
		r = has_column(export, "StringIds", "value");
	if (r < 0)
		return r;
	if (r == 0)
		return nt_trace_refuse(export->error,
				       "%s: no table of GPU kernels: was it recorded with nsys "
				       "profile --trace=cuda?",
				       export->path);
	r = read_epoch(export);
	r = r ?: read_activity(export, "CUPTI_ACTIVITY_KIND_KERNEL", name_column);
	r = r ?: read_activity(export, "CUPTI_ACTIVITY_KIND_MEMCPY", NULL);
	r = r ?: read_activity(export, "CUPTI_ACTIVITY_KIND_MEMSET", NULL);
	r = r ?: read_steps(export);
	r = r ?: read_mpi_ranks(export);
	if (r < 0)
		return r;
	close_export(export);
	drop_helpers(export);
	if (!export->processes)
		return nt_trace_refuse(export->error, "%s: no GPU kernels", export->path);
	export->has_number = read_number(export->path, &export->number);
	return 0;
}

/* ---- all exports ------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
	const struct export *x = *(const struct export *const *)a;
	const struct export *y = *(const struct export *const *)b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return strcmp(x->path, y->path);
}

struct exports {
	struct export **export;
	size_t exports;
};

static void release_exports(struct exports *all)
{
	for (size_t i = 0; i < all->exports; i++) {
		release_export(all->export[i]);
		free(all->export[i]);
	}
	free(all->export);
}

/* Gives ranks to processes that have none yet. */
static int number_ranks(struct exports *all, struct nt_trace *trace, struct nt_trace_error *error)
{
	size_t ranks = 0, numbered = 0;
	bool single = true;

	qsort(all->export, all->exports, sizeof(*all->export), by_number);
	for (size_t i = 0; i < all->exports; i++) {
		const struct export *export = all->export[i];

		single &= export->processes == 1 && export->has_number;
		ranks += export->processes;
		for (size_t j = 0; j < export->processes; j++)
			numbered += export->process[j].numbered;
	}
	if (ranks > NT_FRAME_MAX_RANKS)
		return nt_trace_refuse(error, "more than %d ranks", NT_FRAME_MAX_RANKS);
	if (numbered == ranks)
		return 0;
	if (numbered)
		return nt_trace_refuse(
			error, "MPI_RANKS has only %zu of the %zu processes with GPU kernels",
			numbered, ranks);
	ranks = 0;
	for (size_t i = 0; i < all->exports; i++) {
		struct export *export = all->export[i];

		if (!single && !export->has_number && all->exports > 1)
			return nt_trace_refuse(
				error,
				"%s: rank unknown: no MPI_RANKS, and no number in the file's name",
				export->path);
		for (size_t j = 0; j < export->processes; j++)
			export->process[j].rank.rank = single ? export->number : (uint32_t)ranks++;
	}
	if (!single)
		trace->remark = "the exports do not name ranks: they are numbered by the number "
				"in the file's name, then by device";
	return 0;
}

static int collect(struct exports *all, struct nt_kineto_ranks *in)
{
	size_t ranks = 0;

	for (size_t i = 0; i < all->exports; i++)
		ranks += all->export[i] -> processes;
	in->rank = calloc(ranks + 1, sizeof(*in->rank));
	if (!in->rank)
		return -ENOMEM;
	for (size_t i = 0; i < all->exports; i++) {
		for (size_t j = 0; j < all->export[i] -> processes; j++) {
			struct nt_kineto_rank *rank = &in->rank[in->ranks++];
			int r;

			*rank = all->export[i] -> process[j].rank;
			all->export[i] -> process[j].rank = (struct nt_kineto_rank){0};
			r = nt_kineto_settle(rank);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int nt_trace_read_nsys(const char *const *paths, size_t count, struct nt_trace **ret_trace,
		       struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(nt_kineto_ranks_release))) struct nt_kineto_ranks in = {0};
	__attribute__((cleanup(release_exports))) struct exports all = {0};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	int r;

	r = nt_trace_new(count, &trace);
	if (r < 0)
		return r;
	all.export = calloc(count, sizeof(struct export *));
	if (!all.export)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct export *export = calloc(1, sizeof(*export));

		if (!export)
			return -ENOMEM;
		all.export[all.exports++] = export;
		export->path = paths[i];
		export->error = ret_error;
		r = read_export(export);
		if (r == 0)
			continue;
		release_export(export);
		free(export);
		all.exports--;
		r = nt_trace_leave_out(trace, r, ret_error);
		if (r < 0)
			return r;
	}
	r = nt_trace_check_read(trace, all.exports, ret_error);
	r = r ?: number_ranks(&all, trace, ret_error);
	r = r ?: collect(&all, &in);
	r = r ?: nt_kineto_make_trace(&in, trace, ret_error);
	if (r < 0)
		return r;
	*ret_trace = nt_take(trace);
	return 0;
}
