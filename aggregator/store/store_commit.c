/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transactions of the store, and the problem of the last one. */
#include "aggregator/store/store_impl.h"

#include <errno.h>

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
		return "the database is in use by another process";
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
		/* SQLite rolls back on its own on some errors; a second rollback is harmless. */
		(void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
		atomic_fetch_add(&store->write_errors, 1);
		atomic_store(&store->problem, problem_of(r));
		return r;
	}
	if (!store->unsaved)
		atomic_store(&store->problem, NULL);
	return 0;
}
