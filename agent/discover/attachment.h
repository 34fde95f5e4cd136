/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which library files are in use by whom, and so which to attach and when to let go. A file is kept
 * for a while after its last user: the next attempt of a job is then seen from its first call on.
 */
#ifndef NT_AGENT_DISCOVER_ATTACHMENT_H
#define NT_AGENT_DISCOVER_ATTACHMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/discover/discover.h"
#include "agent/discover/roster.h"
#include "agent/identity/share.h"
#include "agent/probes/probe.h"
#include "common/base/cleanup.h"

enum {
	NT_ATTACHMENT_FILES = 512, /* that one owner's processes map; shared out among owners */
	NT_ATTACHMENT_COMMON = 512, /* that several owners' processes map: none can lose them */
	NT_ATTACHMENT_DROPS = 8, /* files that are let go at one tick */
	NT_ATTACHMENT_PROCESSES = NT_ROSTER_PROCESSES, /* as many as discovery reports */
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
/* Drops nothing: what is attached goes with the probes themselves. */
void nt_attachment_free(struct nt_attachment *attachment);
NT_DEFINE_AUTO(nt_attachment, nt_attachment_free)

/* A process maps the file. Returns what the attach hook said, 0 where there was nothing to do. */
int nt_attachment_use(struct nt_attachment *attachment, const struct nt_mapped_file *file);
void nt_attachment_end(struct nt_attachment *attachment, uint32_t pid, uint64_t start_boot_ns,
		       uint64_t now_ns);
/* Processes were left out, so that nobody knows which files they still map: none is let go. */
void nt_attachment_hold(struct nt_attachment *attachment, bool hold);
/* Once a second: attaches the driver for those that turn out to have no runtime, drops a few of the unused. */
void nt_attachment_tick(struct nt_attachment *attachment, uint64_t now_ns);

/* The places of files, and which owners found none. */
const struct nt_share *nt_attachment_share(const struct nt_attachment *attachment);

uint64_t nt_attachment_over_cap(const struct nt_attachment *attachment);

#endif
