/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sysTrace's marker files, one per rank, under build/ while a test runs. */
#ifndef NT_TESTS_UNIT_CLI_SYSTRACE_FILES_H
#define NT_TESTS_UNIT_CLI_SYSTRACE_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#define HEADER "Flag,Id,Kind,Name,SourceKind,Timestamp,DeviceId,StreamId,ProcessId,ThreadId\n"
#define GATHER "comm:HcclAllGather!tp!fp16!1024"

enum {
	MAX_FILES = 16,
};

static char path[MAX_FILES][64];

static inline void put_bytes(int rank, const void *text, size_t len)
{
	FILE *file;

	(void)snprintf(path[rank], sizeof(path[rank]), "build/hccl_activity-10.0.%d.1-.%d.csv",
		       (int)getpid(), rank);
	file = fopen(path[rank], "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static inline void put_file(int rank, const char *text)
{
	put_bytes(rank, text, strlen(text));
}

static inline int remove_files(void **state)
{
	(void)state;
	for (int i = 0; i < MAX_FILES; i++) {
		if (*path[i])
			(void)unlink(path[i]);
		*path[i] = '\0';
	}
	return 0;
}

#endif
