/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads exports of Nsight Systems: kernels, copies, calls of the runtime, and steps. */
#include "cli/kineto/nsys.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kineto/kineto.h"
#include "cli/kineto/nsys_db.h"
#include "common/base/hash.h"

static const int64_t MAX_NS = INT64_MAX / 4;

static void release_export(struct nt_nsys_export *export)
{
	nt_nsys_close(export);
	for (size_t i = 0; i < export->processes; i++)
		nt_kineto_rank_release(&export->process[i].rank);
	export->processes = 0;
}

/* ---- tables ----------------------------------------------------------------------------------- */

static struct nt_nsys_process *find_process(struct nt_nsys_export *export, int64_t id)
{
	for (size_t i = export->processes; i-- > 0;)
		if (export->process[i].id == id)
			return &export->process[i];
	if (export->processes == NT_NSYS_MAX_PROCESSES)
		return NULL;
	export->process[export->processes] = (struct nt_nsys_process){
		.id = id, .device = UINT32_MAX, .rank = {.path = export->path}};
	return &export->process[export->processes++];
}

/* Start and end of a row, in nanoseconds of the export's clock. */
static bool read_times(const struct nt_nsys_export *export, sqlite3_stmt *stmt,
		       struct nt_kineto_interval *ret_interval)
{
	const int64_t start = sqlite3_column_int64(stmt, 0), end = sqlite3_column_int64(stmt, 1);

	if (start < 0 || end < start || end > MAX_NS)
		return false;
	ret_interval->start_ns = export->epoch_ns + (uint64_t)start;
	ret_interval->end_ns = export->epoch_ns + (uint64_t)end;
	return true;
}

/* 0: none. */
static uint32_t correlation_of(sqlite3_stmt *stmt, int column)
{
	const int64_t value = sqlite3_column_int64(stmt, column);

	return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* A kernel, a copy, or a fill of memory; copies have no name. */
static int add_kernel(struct nt_nsys_export *export, sqlite3_stmt *stmt, const char *table)
{
	const char *name = (const char *)sqlite3_column_text(stmt, 4);
	const int64_t device = sqlite3_column_int64(stmt, 3);
	struct nt_nsys_process *process = find_process(export, sqlite3_column_int64(stmt, 2));
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
	interval.correlation = correlation_of(stmt, 6);
	return nt_kineto_add_interval(&process->rank.kernel, &process->rank.kernels, &interval);
}

/* Adds all rows of a table of device activity, if it is there. */
static int read_activity(struct nt_nsys_export *export, const char *table, const char *name_column)
{
	nt_nsys_auto_stmt *stmt = NULL;
	char sql[512];
	int code, r, has_pid, has_device, has_call;

	r = nt_nsys_has_column(export, table, "start");
	if (r <= 0)
		return r;
	has_pid = nt_nsys_has_column(export, table, "globalPid");
	has_device = nt_nsys_has_column(export, table, "deviceId");
	has_call = nt_nsys_has_column(export, table, "correlationId");
	if (has_pid < 0 || has_device < 0 || has_call < 0)
		return has_pid < 0 ? has_pid : has_device < 0 ? has_device : has_call;
	(void)snprintf(sql, sizeof(sql),
		       "SELECT k.start, k.end, %s, %s, %s, k.rowid, %s FROM %s k%s%s",
		       has_pid ? "k.globalPid" : "0", has_device ? "k.deviceId" : "0",
		       name_column ? "s.value" : "NULL", has_call ? "k.correlationId" : "0", table,
		       name_column ? " LEFT JOIN StringIds s ON s.id = k." : "",
		       name_column ? name_column : "");
	code = sqlite3_prepare_v2(export->db, sql, -1, &stmt, NULL);
	if (code != SQLITE_OK)
		return nt_nsys_refuse(export, code);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		r = add_kernel(export, stmt, table);
		if (r < 0)
			return r;
	}
	return code == SQLITE_DONE ? 0 : nt_nsys_refuse(export, code);
}

/*
 * Calls of the runtime: what launched kernels, and waits. Old exports, and those of some settings,
 * have none.
 */
static int read_runtime(struct nt_nsys_export *export)
{
	static const char *const column[] = {"start", "end", "globalTid", "correlationId",
					     "nameId"};
	nt_nsys_auto_stmt *stmt = NULL;
	int code, r = 1;

	for (size_t i = 0; i < sizeof(column) / sizeof(column[0]) && r > 0; i++)
		r = nt_nsys_has_column(export, "CUPTI_ACTIVITY_KIND_RUNTIME", column[i]);
	if (r <= 0)
		return r;
	code = sqlite3_prepare_v2(
		export->db,
		"SELECT r.start, r.end, r.globalTid & ~0xffffff, r.correlationId, s.value FROM "
		"CUPTI_ACTIVITY_KIND_RUNTIME r LEFT JOIN StringIds s ON s.id = r.nameId",
		-1, &stmt, NULL);
	if (code != SQLITE_OK)
		return nt_nsys_refuse(export, code);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(stmt, 4);
		const int64_t id = sqlite3_column_int64(stmt, 2);
		struct nt_kineto_interval interval = {0};

		/* A call that did not return has no end. */
		if (!read_times(export, stmt, &interval))
			continue;
		for (size_t i = 0; i < export->processes; i++) {
			if (export->process[i].id != id)
				continue;
			r = nt_kineto_add_call(&export->process[i].rank, name ? name : "",
					       correlation_of(stmt, 3), &interval);
			if (r < 0)
				return r;
		}
	}
	return code == SQLITE_DONE ? 0 : nt_nsys_refuse(export, code);
}

/* The profiler's steps, if the program marked them (torch.profiler, or by hand). */
static int read_steps(struct nt_nsys_export *export)
{
	nt_nsys_auto_stmt *stmt = NULL;
	int code, has_id = nt_nsys_has_column(export, "NVTX_EVENTS", "textId"), r;

	r = has_id < 0 ? has_id : nt_nsys_has_column(export, "NVTX_EVENTS", "globalTid");
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
		return nt_nsys_refuse(export, code);
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
	return code == SQLITE_DONE ? 0 : nt_nsys_refuse(export, code);
}

/* The wall clock at the beginning: times count from there. Old exports have none. */
static int read_epoch(struct nt_nsys_export *export)
{
	nt_nsys_auto_stmt *stmt = NULL;
	int code, r = nt_nsys_has_column(export, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs");

	if (r <= 0)
		return r;
	code = sqlite3_prepare_v2(export->db,
				  "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME", -1,
				  &stmt, NULL);
	if (code != SQLITE_OK)
		return nt_nsys_refuse(export, code);
	code = sqlite3_step(stmt);
	if (code == SQLITE_ROW && sqlite3_column_int64(stmt, 0) > 0 &&
	    sqlite3_column_int64(stmt, 0) < MAX_NS)
		export->epoch_ns = (uint64_t)sqlite3_column_int64(stmt, 0);
	return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : nt_nsys_refuse(export, code);
}

/* Of jobs that nsys traced with MPI. */
static int read_mpi_ranks(struct nt_nsys_export *export)
{
	nt_nsys_auto_stmt *stmt = NULL;
	int code, r = nt_nsys_has_column(export, "MPI_RANKS", "rank");

	r = r <= 0 ? r : nt_nsys_has_column(export, "MPI_RANKS", "globalPid");
	if (r <= 0)
		return r;
	code = sqlite3_prepare_v2(export->db, "SELECT globalPid, rank FROM MPI_RANKS", -1, &stmt,
				  NULL);
	if (code != SQLITE_OK)
		return nt_nsys_refuse(export, code);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		const int64_t rank = sqlite3_column_int64(stmt, 1);

		for (size_t i = 0; i < export->processes; i++) {
			struct nt_nsys_process *process = &export->process[i];

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
	return code == SQLITE_DONE ? 0 : nt_nsys_refuse(export, code);
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
	const struct nt_nsys_process *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Drops helpers: where some processes communicate, the others are no ranks. */
static void drop_helpers(struct nt_nsys_export *export)
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

static int read_export(struct nt_nsys_export *export)
{
	const char *name_column = "shortName";
	int r;

	r = nt_nsys_open(export);
	r = r ?: nt_nsys_has_column(export, "CUPTI_ACTIVITY_KIND_KERNEL", "shortName");
	if (r == 0)
		r = nt_nsys_has_column(export, "CUPTI_ACTIVITY_KIND_KERNEL",
				       name_column = "demangledName");
	if (r > 0)
		r = nt_nsys_has_column(export, "StringIds", "value");
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
	r = r ?: read_runtime(export);
	r = r ?: read_steps(export);
	r = r ?: read_mpi_ranks(export);
	if (r < 0)
		return r;
	nt_nsys_close(export);
	drop_helpers(export);
	if (!export->processes)
		return nt_trace_refuse(export->error, "%s: no GPU kernels", export->path);
	export->has_number = read_number(export->path, &export->number);
	return 0;
}

/* ---- all exports ------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
	const struct nt_nsys_export *x = *(const struct nt_nsys_export *const *)a;
	const struct nt_nsys_export *y = *(const struct nt_nsys_export *const *)b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return strcmp(x->path, y->path);
}

struct exports {
	struct nt_nsys_export **export;
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
		const struct nt_nsys_export *export = all->export[i];

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
		struct nt_nsys_export *export = all->export[i];

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
	all.export = calloc(count, sizeof(struct nt_nsys_export *));
	if (!all.export)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct nt_nsys_export *export = calloc(1, sizeof(*export));

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
	trace->groupless = true;
	r = r ?: nt_kineto_make_trace(&in, trace, ret_error);
	if (r < 0)
		return r;
	*ret_trace = nt_take(trace);
	return 0;
}
