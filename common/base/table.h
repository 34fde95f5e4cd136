/* SPDX-License-Identifier: GPL-3.0-or-later */
/* uthash, configured to report failed allocations instead of exiting. Replaces <uthash.h>. */
#ifndef NT_COMMON_BASE_TABLE_H
#define NT_COMMON_BASE_TABLE_H

#define HASH_NONFATAL_OOM 1

#include <uthash.h>

/* After HASH_ADD and HASH_REPLACE: false if memory ran out; the entry is then in no table. */
#define nt_table_has(entry) ((entry)->hh.tbl != NULL)

#endif
