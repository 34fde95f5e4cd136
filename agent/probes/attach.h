/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Attachment of probes: loads the BPF programs, attaches them per library file and subject,
 * detaches them, and reads their counters. The mode (session, multi or perf link) is found by
 * trial, never from the kernel's version.
 */
#ifndef NT_AGENT_PROBES_ATTACH_H
#define NT_AGENT_PROBES_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/probes/attach_options.h"
#include "agent/probes/probe.h"
#include "bpf/event.h"
#include "common/base/cleanup.h"

const char *nt_attach_mode_name(enum nt_attach_mode mode);

struct nt_attach;
struct nt_symbols; /* agent/probes/symbols.h */
struct nt_rank_probe_sites;

/* -EPERM: capabilities are missing; -ENOTSUP: no mode works. */
NT_MUST_CHECK int nt_attach_new(const struct nt_attach_options *options,
				struct nt_attach **ret_attach);
/* Detaches all. Accepts NULL. */
void nt_attach_free(struct nt_attach *attach);
NT_DEFINE_AUTO(nt_attach, nt_attach_free)

enum nt_attach_mode nt_attach_mode(const struct nt_attach *attach);

struct nt_attach_order {
	int fd; /* of the open file; borrowed */
	const struct nt_symbols *symbols; /* found before: this reads no file */
	dev_t dev;
	ino_t ino;
	uint32_t subjects;
	const char *name; /* of the file, for `attached` */
	uint64_t owner; /* fairness key of the link queue (agent/probes/linker.h) */
};

/*
 * Attaches the functions in the order's symbols, for the subjects whose bit is set. The file is
 * identified by (dev, ino); a second call for it adds only missing subjects. Returns the number of
 * functions attached by this call (0: nothing new), or a negative errno.
 *
 * Without a thread the call may block for seconds. With one, the links are queued, and the result
 * counts the functions to be attached; -EAGAIN: the queue is full.
 */
NT_MUST_CHECK int nt_attach_opened(struct nt_attach *attach, const struct nt_attach_order *order);
/* With a thread: readable when nt_attach_settle() has work; else -1. */
int nt_attach_links_fd(const struct nt_attach *attach);
void nt_attach_settle(struct nt_attach *attach);
/* Detaches a file. Its links are freed by the thread, if there is one. */
void nt_attach_drop(struct nt_attach *attach, dev_t dev, ino_t ino);

/*
 * An attached file. Its links serve all processes that map it until the file is split. Processes
 * that are split off get links of their own, which agent/governor/own_links.h makes.
 */
struct nt_attached;
struct nt_link_set; /* agent/probes/link_set.h */
struct nt_probe_target;
struct nt_bpf_loader;

enum nt_attached_split {
	NT_ATTACHED_SHARED, /* not split */
	NT_ATTACHED_BUT_STAYING, /* all but staying functions (nt_probe_stays()) are split off */
	NT_ATTACHED_ALL,
};

/* NULL: not attached. Valid until nt_attach_drop() of its last name. */
struct nt_attached *nt_attach_find(struct nt_attach *attach, dev_t dev, ino_t ino);
const struct nt_probe_target *nt_attached_targets(const struct nt_attached *file,
						  size_t *ret_targets);
int nt_attached_fd(const struct nt_attached *file);
/* Boot time since which its allocations are probed; 0: they are not, or not yet. */
uint64_t nt_attached_alloc_ns(const struct nt_attached *file);
/*
 * True if the kernel side reports each call once while shared links and links of one process are
 * attached. False for files attached beyond the first 31: there each link reports it.
 */
bool nt_attached_sees_once(const struct nt_attached *file);
/* The number of (dev, ino) pairs of the file; it is detached with the last one. */
size_t nt_attached_names(const struct nt_attached *file);
enum nt_attached_split nt_attached_split(const struct nt_attached *file);
/*
 * Returns the links that the split replaces; they stay attached until the link set is freed. NULL:
 * out of memory, and nothing has changed.
 */
struct nt_link_set *nt_attach_split(struct nt_attach *attach, struct nt_attached *file,
				    enum nt_attached_split split);
/*
 * Moves the shared links from the link set back into the file, which is then shared again. -ENOMEM:
 * nothing has changed.
 */
NT_MUST_CHECK int nt_attach_join(struct nt_attach *attach, struct nt_attached *file, bool stays,
				 struct nt_link_set *link_set);

/* Borrowed. For agent/probes/linker.h, which makes links beside these. */
const struct nt_bpf_loader *nt_attach_loader(const struct nt_attach *attach);

struct nt_attach_rank_probe_order {
	int fd; /* of the open file; borrowed */
	int library; /* this and `start_ns`: for `rank_probe_made` */
	uint32_t pid;
	uint64_t start_ns;
	uint64_t owner; /* fairness key of the link queue (agent/probes/linker.h) */
	const struct nt_rank_probe_sites *sites; /* from nt_rank_probe_find() */
};

/*
 * Attaches the row of the open file for one process (nt_probe_is_of_rank()). Requires the thread.
 * -EAGAIN: the queue is full.
 */
NT_MUST_CHECK int nt_attach_order_rank_probe(struct nt_attach *attach,
					     const struct nt_attach_rank_probe_order *order);
/* Frees the probe on the thread, which is required. */
void nt_attach_drop_rank_probe(struct nt_attach *attach, struct nt_rank_probe *probe);

/* The ring buffer: an epoll fd, and a poll that passes on size-checked events. */
int nt_attach_fd(const struct nt_attach *attach);
/*
 * 1: the limit of one poll on events or time was reached; more events may be pending although the
 * descriptor is not readable. 0: the ring was drained.
 */
NT_MUST_CHECK int nt_attach_poll(struct nt_attach *attach, nt_event_fn fn, void *data);

/*
 * Sampled calls of a process, at level L1. limits: NULL ends it, and has an effect on a process that
 * has none, too. -ESRCH: the process is gone. A process that executes another program has none.
 */
NT_MUST_CHECK int nt_attach_set_detail(struct nt_attach *attach, uint32_t pid,
				       const struct nt_detail_limits *limits);
/* How many processes have limits. 0: the kernel side looks for none. */
void nt_attach_set_detailed(struct nt_attach *attach, uint32_t processes);
/* Calls and losses of such a process so far. False: it has made none. */
bool nt_attach_detail_rates(const struct nt_attach *attach, uint32_t pid,
			    struct nt_detail_rates *ret_rates);
/* Passes the sampled calls on that are in their ring. 1: more may be there. */
NT_MUST_CHECK int nt_attach_poll_details(struct nt_attach *attach);

/* When a process ended that had counters or made calls, on the boot clock; 0: not known. */
uint64_t nt_attach_ended_ns(const struct nt_attach *attach, uint32_t pid);

/* Counters of a process so far. False: it has none. */
bool nt_attach_counters(const struct nt_attach *attach, uint32_t pid,
			struct nt_process_counters *ret_counters);
/* Matrix multiplications of a process so far. False: it has made none, or has ended. */
bool nt_attach_gemms(const struct nt_attach *attach, uint32_t pid,
		     struct nt_gemm_totals *ret_totals);
/* Verbs of a process so far. False: it has made none, or has ended. */
bool nt_attach_verbs(const struct nt_attach *attach, uint32_t pid,
		     struct nt_verbs_totals *ret_totals);
/*
 * Calls fn for every thread that is inside a probed call now: finds calls that never return. Calls
 * outside, unless NULL, for every main thread in none that has returned from one.
 */
NT_MUST_CHECK int nt_attach_inside(struct nt_attach *attach, nt_inside_fn fn, nt_outside_fn outside,
				   void *data);
/* Removes the state of a process that has ended. */
void nt_attach_forget(struct nt_attach *attach, uint32_t pid);

void nt_attach_stats(const struct nt_attach *attach, struct nt_attach_stats *ret_stats);

#endif
