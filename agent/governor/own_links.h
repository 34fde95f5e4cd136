/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Links of one process each, in place of a file's shared ones, so that what one process calls too often
 * can be detached without blinding its neighbours.
 *
 * A file is *split* when a process that maps it is governed (agent/governor/governor.h): every process gets links
 * of its own, then the shared ones go. While both are attached the kernel side passes over the hits of
 * one of them (bpf/event.h, enum nt_split): no call of a neighbour is lost, or seen twice. The file is
 * *joined* again when none of its processes has been governed for a while.
 *
 * Of more than 31 files the others have no such switch: a call that makes an event at its entry alone then
 * makes two, of which the second is dropped (agent/governor/repeat.h), and one that is only counted is counted
 * twice while both are attached.
 *
 * For the loop's thread; links are made and freed by agent/probes/linker.h.
 */
#ifndef NT_AGENT_GOVERNOR_OWN_LINKS_H
#define NT_AGENT_GOVERNOR_OWN_LINKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/governor/governor.h"
#include "agent/probes/attach.h"
#include "agent/probes/linker.h"
#include "common/base/cleanup.h"

enum {
	NT_OWN_LINKS_FILES = 32, /* of one process: as many as discovery reports */
};

struct nt_own_links;

struct nt_own_links_hooks {
	/* From the boot time on calls of the process are not observed, but those that stay. */
	void (*paused)(void *data, uint32_t pid, uint64_t boot_ns);
	void (*resumed)(void *data, uint32_t pid, uint64_t boot_ns);
	/* Calls of it may have been missed: their numbers are uncertain. */
	void (*missed)(void *data, uint32_t pid);
	/* A look at the hot functions of the process has ended. */
	void (*looked)(void *data, uint32_t pid, uint64_t look_ns);
	void *data;
};

struct nt_own_links_stats {
	uint64_t files_split, processes, bundles; /* now */
	uint64_t splits, joins, looks; /* so far */
	uint64_t failed; /* links that the kernel did not make */
	uint64_t put_off; /* of which the making was not even begun */
};

/* What an event is good for. */
enum nt_own_links_verdict {
	NT_OWN_LINKS_TAKE,
	NT_OWN_LINKS_COUNT, /* a hit that cost the process, of a call that is not to be used */
	NT_OWN_LINKS_DROP, /* the same call came from another link */
};

NT_MUST_CHECK int nt_own_links_new(struct nt_attach *attach, struct nt_linker *linker,
				   const struct nt_own_links_hooks *hooks,
				   struct nt_own_links **ret_own);
/* What the linker has not handed back is the linker's. Accepts NULL. */
void nt_own_links_free(struct nt_own_links *own);
NT_DEFINE_AUTO(nt_own_links, nt_own_links_free)

/* The process maps the file, which is attached. */
void nt_own_links_use(struct nt_own_links *own, uint32_t pid, uint64_t start_boot_ns, dev_t dev,
		      ino_t ino);
/* Some process that maps a file with probes, and has not ended. */
bool nt_own_links_knows(const struct nt_own_links *own, uint32_t pid);
void nt_own_links_end(struct nt_own_links *own, uint32_t pid, uint64_t start_boot_ns);
/* To be called before nt_attach_drop(): processes that still map the file are not observed there. */
void nt_own_links_drop(struct nt_own_links *own, dev_t dev, ino_t ino);

/* What is to be observed of the process from now on. The plan is copied. */
void nt_own_links_plan(struct nt_own_links *own, uint32_t pid, const struct nt_governor_plan *plan);

/* Begins and ends slices, looks, splits and joins. Several times a second. */
void nt_own_links_tick(struct nt_own_links *own, uint64_t boot_ns, uint64_t real_ns);
/* Takes what the linker has done. Events up to now must have been given before. */
void nt_own_links_settle(struct nt_own_links *own);

/*
 * A thread of the process was inside a call, entered at this time, when it was looked for: links that
 * this may have been entered by stay until it is left, for up to a minute. After all threads that are
 * inside: when the look began.
 */
void nt_own_links_inside(struct nt_own_links *own, uint32_t pid, uint16_t row, uint64_t entry_ns,
			 uint64_t look_ns);
void nt_own_links_looked(struct nt_own_links *own, uint64_t look_ns);

enum nt_own_links_verdict nt_own_links_judge(struct nt_own_links *own,
					     const struct nt_event_call *call);

/* Processes in turn, for sampling: all come round. Returns how many. */
size_t nt_own_links_turn(struct nt_own_links *own, uint32_t *ret_pid, size_t max);

/* Boot time in which the process was observed so far; all of it for one that is not governed. */
uint64_t nt_own_links_observed_ns(const struct nt_own_links *own, uint32_t pid, uint64_t boot_ns);

void nt_own_links_stats(const struct nt_own_links *own, struct nt_own_links_stats *ret_stats);

#endif
