/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The library files in use and their users: decides which to attach and when to detach. A file
 * stays attached for NT_ATTACHMENT_KEEP_NS after its last user, so that a job's next attempt is
 * observed from its first call.
 */
#ifndef NT_AGENT_DISCOVER_ATTACHMENT_H
#define NT_AGENT_DISCOVER_ATTACHMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/discover/discover.h"
#include "agent/discover/process_table.h"
#include "agent/identity/share.h"
#include "agent/probes/probe.h"
#include "common/base/cleanup.h"

enum {
	NT_ATTACHMENT_FILES = 512, /* mapped by processes of one owner; divided among owners */
	NT_ATTACHMENT_COMMON = 512, /* mapped by several owners; exempt from their shares */
	NT_ATTACHMENT_DROPS = 8, /* files detached per tick */
	NT_ATTACHMENT_PROCESSES = NT_PROCESS_TABLE_PROCESSES, /* as many as discovery reports */
};

#define NT_ATTACHMENT_KEEP_NS 300000000000ULL

struct nt_attachment;

struct nt_attachment_hooks {
	/* As nt_attach_opened() and nt_attach_drop(). */
	int (*attach)(void *data, const struct nt_mapped_file *file, uint32_t subjects);
	void (*drop)(void *data, dev_t dev, ino_t ino);
	void *data;
};

NT_MUST_CHECK int nt_attachment_new(const struct nt_attachment_hooks *hooks,
				    struct nt_attachment **ret_attachment);
/* Detaches nothing: that is done when the probes are freed. */
void nt_attachment_free(struct nt_attachment *attachment);
NT_DEFINE_AUTO(nt_attachment, nt_attachment_free)

/*
 * Records that a process maps the file. Returns the result of the attach hook, or 0 if it was not
 * needed.
 */
int nt_attachment_use(struct nt_attachment *attachment, const struct nt_mapped_file *file);
void nt_attachment_end(struct nt_attachment *attachment, uint32_t pid, uint64_t start_boot_ns,
		       uint64_t now_ns);
/*
 * While set, no file is detached: some processes are left out, so that a file without users may be
 * in use.
 */
void nt_attachment_hold(struct nt_attachment *attachment, bool hold);
/*
 * To be called once a second: attaches the driver for processes without a runtime, detaches unused
 * files.
 */
void nt_attachment_tick(struct nt_attachment *attachment, uint64_t now_ns);

/* The shares of file entries, and the owners that exceeded theirs. */
const struct nt_share *nt_attachment_share(const struct nt_attachment *attachment);

uint64_t nt_attachment_over_cap(const struct nt_attachment *attachment);

#endif
