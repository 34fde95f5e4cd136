/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SQLite wrappers: negative errnos, texts that are never NULL, 64-bit times. */
#ifndef NT_AGGREGATOR_STORE_DB_H
#define NT_AGGREGATOR_STORE_DB_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

/* The last failure of the connection as a negative errno: -ENOSPC, -EBADMSG, -EBUSY, -EROFS … */
int nt_db_error(sqlite3 *db);

/* Executes statements that return no rows. */
NT_MUST_CHECK int nt_db_exec(sqlite3 *db, const char *sql);
/* The number in the first column of the first row; 0 if there is none. */
NT_MUST_CHECK int nt_db_number(sqlite3 *db, const char *sql, int64_t *ret_number);

/* A statement finalized at scope end: `nt_autostmt sqlite3_stmt *find = NULL;` */
static inline void nt_stmt_finalizep(sqlite3_stmt **stmt)
{
	(void)sqlite3_finalize(*stmt);
}
#define nt_autostmt __attribute__((cleanup(nt_stmt_finalizep)))

NT_MUST_CHECK int nt_db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_stmt);

/* Binding fails only on allocation failure, which the step then reports. NULL binds NULL. */
void nt_db_bind_text(sqlite3_stmt *stmt, int index, const char *text);
void nt_db_bind_number(sqlite3_stmt *stmt, int index, uint64_t number);
void nt_db_bind_blob(sqlite3_stmt *stmt, int index, const void *data, size_t size);

/* 1 with a row, 0 at the end, or a negative errno. */
NT_MUST_CHECK int nt_db_step(sqlite3_stmt *stmt);
/* Steps to the end, ignoring rows: 0 or a negative errno. */
NT_MUST_CHECK int nt_db_run(sqlite3_stmt *stmt);

const char *nt_db_text(sqlite3_stmt *stmt, int column);
uint64_t nt_db_column(sqlite3_stmt *stmt, int column);

#endif
