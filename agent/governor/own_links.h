/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Own links: links of one process each, in place of a file's shared ones. What one process calls
 * too often is detached without an effect on the others.
 *
 * A file is *split* when a process that maps it is governed (agent/governor/governor.h). Every
 * process gets links of its own, then the shared ones are detached. While both are attached the
 * kernel side ignores the hits of one of them (bpf/event.h, enum nt_split), so no call is lost or
 * reported twice. The file is *joined* again when none of its processes has been governed for a
 * while.
 *
 * Files beyond the first 31 have no such switch. There a call that makes an event at its entry
 * alone makes two, and the second is dropped (agent/governor/duplicate_call.h). A call that is only
 * counted is counted twice while both are attached.
 *
 * For the loop's thread; agent/probes/linker.h makes and frees the links.
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
	/* Calls of the process are not observed from boot_ns on, except staying functions. */
	void (*paused)(void *data, uint32_t pid, uint64_t boot_ns);
	void (*resumed)(void *data, uint32_t pid, uint64_t boot_ns);
	/* Calls of the process may have been lost: their numbers are uncertain. */
	void (*missed)(void *data, uint32_t pid);
	/* A look at the hot functions of the process has ended. */
	void (*looked)(void *data, uint32_t pid, uint64_t look_ns);
	void *data;
};

struct nt_own_links_stats {
	uint64_t files_split, processes, link_sets; /* now */
	uint64_t splits, joins, looks; /* so far */
	uint64_t failed; /* requests that the kernel refused */
	uint64_t put_off; /* requests that were postponed */
};

/* How an event is to be used. */
enum nt_own_links_verdict {
	NT_OWN_LINKS_TAKE,
	NT_OWN_LINKS_COUNT, /* count the cost, ignore the call */
	NT_OWN_LINKS_DROP, /* a duplicate from another link */
};

NT_MUST_CHECK int nt_own_links_new(struct nt_attach *attach, struct nt_linker *linker,
				   const struct nt_own_links_hooks *hooks,
				   struct nt_own_links **ret_own);
/* Links not returned by the linker yet stay with it. Accepts NULL. */
void nt_own_links_free(struct nt_own_links *own);
NT_DEFINE_AUTO(nt_own_links, nt_own_links_free)

/* Records that the process maps the file, which is attached. */
void nt_own_links_use(struct nt_own_links *own, uint32_t pid, uint64_t start_boot_ns, dev_t dev,
		      ino_t ino);
/* True for a running process that maps a file with probes. */
bool nt_own_links_has(const struct nt_own_links *own, uint32_t pid);
void nt_own_links_end(struct nt_own_links *own, uint32_t pid, uint64_t start_boot_ns);
/*
 * To be called before nt_attach_drop(): the file is no longer observed in processes that still map
 * it.
 */
void nt_own_links_drop(struct nt_own_links *own, dev_t dev, ino_t ino);

/* Sets what is observed of the process. The plan is copied. */
void nt_own_links_plan(struct nt_own_links *own, uint32_t pid, const struct nt_governor_plan *plan);

/* Begins and ends slices, looks, splits and joins. To be called several times a second. */
void nt_own_links_tick(struct nt_own_links *own, uint64_t boot_ns, uint64_t real_ns);
/*
 * Handles the linker's results. Events up to now must have been passed to nt_own_links_judge()
 * before.
 */
void nt_own_links_settle(struct nt_own_links *own);

/*
 * Reports a thread found inside a call that was entered at entry_ns. Links through which it may
 * have entered are kept until it leaves, for up to a minute. nt_own_links_looked() follows all such
 * threads; look_ns: when the look began.
 */
void nt_own_links_inside(struct nt_own_links *own, uint32_t pid, uint16_t row, uint64_t entry_ns,
			 uint64_t look_ns);
void nt_own_links_looked(struct nt_own_links *own, uint64_t look_ns);

enum nt_own_links_verdict nt_own_links_judge(struct nt_own_links *own,
					     const struct nt_event_call *call);

/* Returns up to max processes, round-robin, for sampling, and their number. */
size_t nt_own_links_turn(struct nt_own_links *own, uint32_t *ret_pid, size_t max);

/* Boot time in which the process was observed so far; all of it if it is not governed. */
uint64_t nt_own_links_observed_ns(const struct nt_own_links *own, uint32_t pid, uint64_t boot_ns);

void nt_own_links_stats(const struct nt_own_links *own, struct nt_own_links_stats *ret_stats);

#endif
