/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The audit log: which requests changed something or were refused, by whom, from where and when.
 *
 * The newest 2,048 changes are in memory, and the newest 512 others: refused requests, and sessions
 * that began or ended. A client without a token of scope admin can therefore not displace the changes.
 *
 * Each is also a line of a file, written before nt_audit_add() returns. The file is read at the start,
 * and written anew by a thread of its own when it has twice that number of lines. Lines are not
 * synchronized to the disk: a crash of the machine can lose the newest. All functions are thread-safe.
 */
#ifndef NT_AGGREGATOR_API_AUDIT_H
#define NT_AGGREGATOR_API_AUDIT_H

#include <stddef.h>
#include <stdint.h>

#include "aggregator/api/audit_line.h"
#include "common/base/cleanup.h"
#include "common/http/httpd.h"

enum {
	NT_AUDIT_MAX_CHANGES = 2048,
	NT_AUDIT_MAX_REFUSED = 512,
};

#define NT_AUDIT_SESSION "/api/v1/session"

struct nt_audit_stats {
	uint64_t changes, refused; /* since the start */
	uint64_t dropped; /* the oldest entries, removed at the caps */
	uint64_t unwritten; /* entries in memory only, because the file could not be written */
	uint64_t unreadable; /* lines of the file that were left out at the start */
};

struct nt_audit;

/*
 * path NULL: in memory only. -ENOMEM, -EINVAL for what is no regular file, or the error of the file,
 * such as -EACCES.
 */
NT_MUST_CHECK int nt_audit_open(const char *path, struct nt_audit **ret_audit);
void nt_audit_close(struct nt_audit *audit);
NT_DEFINE_AUTO(nt_audit, nt_audit_close)

/* Adds an entry. It waits for the disk only if the file has grown to four times its caps meanwhile. */
void nt_audit_add(struct nt_audit *audit, const struct nt_httpd_write *write, uint64_t real_ns);

/* Up to max entries with numbers below `before`, the newest first. Returns how many. */
size_t nt_audit_list(struct nt_audit *audit, uint64_t before, size_t max,
		     struct nt_audit_entry *ret_entry);

void nt_audit_stats(struct nt_audit *audit, struct nt_audit_stats *ret_stats);

#endif
