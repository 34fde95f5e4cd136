/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the nsys reader: an export, opened as a database. */
#ifndef NT_CLI_KINETO_NSYS_DB_H
#define NT_CLI_KINETO_NSYS_DB_H

#include <sqlite3.h>

#include "cli/kineto/kineto.h"

enum {
	NT_NSYS_MAX_PROCESSES = 64, /* of one export */
};

/* A process of an export. */
struct nt_nsys_process {
	int64_t id; /* globalPid */
	uint32_t device; /* the lowest on which it ran a kernel */
	bool communicates, numbered;
	struct nt_kineto_rank rank;
};

struct nt_nsys_export {
	const char *path;
	sqlite3 *db;
	void *map; /* of a file without a name */
	size_t map_bytes;
	uint64_t ops_left;
	uint64_t epoch_ns;
	bool has_number; /* in its name */
	uint32_t number;
	struct nt_nsys_process process[NT_NSYS_MAX_PROCESSES];
	size_t processes;
	struct nt_trace_error *error;
};

/* Opens the file at `path`. -EBADMSG with *export->error; else as stat(). */
NT_MUST_CHECK int nt_nsys_open(struct nt_nsys_export *export);
void nt_nsys_close(struct nt_nsys_export *export);

/* 1: the table has the column; 0: there is no such table, or no such column in it. */
NT_MUST_CHECK int nt_nsys_has_column(struct nt_nsys_export *export, const char *table,
				     const char *column);

/* Formats what SQLite refused with that code, and returns -EBADMSG. */
int nt_nsys_refuse(struct nt_nsys_export *export, int code);

void nt_nsys_finish(sqlite3_stmt **stmt);
#define nt_nsys_auto_stmt __attribute__((cleanup(nt_nsys_finish))) sqlite3_stmt

#endif
