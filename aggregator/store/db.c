/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/store/db.h"

#include <errno.h>

int nt_db_error(sqlite3 *db)
{
	int os = sqlite3_system_errno(db);

	switch (sqlite3_errcode(db) & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_CANTOPEN:
		return os ? -os : -EACCES;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_INTERRUPT:
		return -ETIMEDOUT;
	case SQLITE_TOOBIG:
		return -EMSGSIZE;
	default:
		return os == ENOSPC || os == EDQUOT ? -ENOSPC : -EIO;
	}
}

int nt_db_exec(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : nt_db_error(db);
}

int nt_db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_stmt)
{
	return sqlite3_prepare_v2(db, sql, -1, ret_stmt, NULL) == SQLITE_OK ? 0 : nt_db_error(db);
}

int nt_db_number(sqlite3 *db, const char *sql, int64_t *ret_number)
{
	nt_autostmt sqlite3_stmt *stmt = NULL;
	int r;

	r = nt_db_prepare(db, sql, &stmt);
	if (r < 0)
		return r;
	r = nt_db_step(stmt);
	if (r < 0)
		return r;
	*ret_number = r ? sqlite3_column_int64(stmt, 0) : 0;
	return 0;
}

void nt_db_bind_text(sqlite3_stmt *stmt, int index, const char *text)
{
	(void)sqlite3_bind_text(stmt, index, text, -1, SQLITE_TRANSIENT);
}

void nt_db_bind_number(sqlite3_stmt *stmt, int index, uint64_t number)
{
	(void)sqlite3_bind_int64(stmt, index, (sqlite3_int64)number);
}

void nt_db_bind_blob(sqlite3_stmt *stmt, int index, const void *data, size_t size)
{
	(void)sqlite3_bind_blob64(stmt, index, size ? data : "", size, SQLITE_TRANSIENT);
}

int nt_db_step(sqlite3_stmt *stmt)
{
	int r = sqlite3_step(stmt);

	if (r == SQLITE_ROW)
		return 1;
	return r == SQLITE_DONE ? 0 : nt_db_error(sqlite3_db_handle(stmt));
}

int nt_db_run(sqlite3_stmt *stmt)
{
	int r;

	do {
		r = nt_db_step(stmt);
	} while (r > 0);
	return r;
}

const char *nt_db_text(sqlite3_stmt *stmt, int column)
{
	const unsigned char *text = sqlite3_column_text(stmt, column);

	return text ? (const char *)text : "";
}

uint64_t nt_db_column(sqlite3_stmt *stmt, int column)
{
	return (uint64_t)sqlite3_column_int64(stmt, column);
}
