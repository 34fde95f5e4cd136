/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file is hostile. It is opened immutable, without its journal, views, triggers or virtual
 * tables. What SQLite may do with it is bounded by its size.
 */
#include "cli/kineto/nsys_db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/readers/input.h"
#include "common/base/buf.h"
#include "proto/text.h"

enum {
	MAX_VALUE_BYTES = 1 << 20, /* names of kernels are templates */
	PROGRESS_OPS = 10000, /* of SQLite, between checks */
	OPS_PER_BYTE = 16, /* a row of 30 bytes takes some 40 */
	FREE_OPS = 10 << 20,
	HEAP_BYTES = 64 << 20, /* of SQLite: a damaged file may request any amount */
};

void nt_nsys_close(struct nt_nsys_export *export)
{
	(void)sqlite3_close(export->db);
	export->db = NULL;
	if (export->map)
		(void)munmap(export->map, export->map_bytes);
	export->map = NULL;
}

void nt_nsys_finish(sqlite3_stmt **stmt)
{
	(void)sqlite3_finalize(*stmt);
}

int nt_nsys_refuse(struct nt_nsys_export *export, int code)
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

static int check_progress(void *data)
{
	struct nt_nsys_export *export = data;

	if (export->ops_left < PROGRESS_OPS)
		return 1;
	export->ops_left -= PROGRESS_OPS;
	return 0;
}

/* "file:PATH?immutable=1", where the path's own ?, # and % are escaped. */
static int open_named(struct nt_nsys_export *export)
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
static int open_nameless(struct nt_nsys_export *export, const char *place, size_t bytes)
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

int nt_nsys_open(struct nt_nsys_export *export)
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
		return nt_nsys_refuse(export, code);
	(void)sqlite3_db_config(export->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(export->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_db_config(export->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	(void)sqlite3_db_config(export->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	(void)sqlite3_limit(export->db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
	(void)sqlite3_limit(export->db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_progress_handler(export->db, PROGRESS_OPS, check_progress, export);
	return 0;
}

int nt_nsys_has_column(struct nt_nsys_export *export, const char *table, const char *column)
{
	nt_nsys_auto_stmt *stmt = NULL;
	int code;

	code = sqlite3_prepare_v2(export->db,
				  "SELECT 1 FROM pragma_table_info(?) WHERE name = ? AND EXISTS "
				  "(SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? "
				  "AND sql LIKE 'CREATE TABLE%')",
				  -1, &stmt, NULL);
	if (code != SQLITE_OK)
		return nt_nsys_refuse(export, code);
	(void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(stmt, 2, column, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(stmt, 3, table, -1, SQLITE_STATIC);
	code = sqlite3_step(stmt);
	return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : nt_nsys_refuse(export, code);
}
