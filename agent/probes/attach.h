/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The probes in the kernel: load, attach per library file and subject, detach, counters. How to
 * attach (session, multi or perf link) is found out by loading and attaching, never by version.
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
struct nt_gc_probe_places;

/* -EPERM without the capabilities, -ENOTSUP where no mode works. */
NT_MUST_CHECK int nt_attach_new(const struct nt_attach_options *options,
				struct nt_attach **ret_attach);
/* Detaches all. Accepts NULL. */
void nt_attach_free(struct nt_attach *attach);
NT_DEFINE_AUTO(nt_attach, nt_attach_free)

enum nt_attach_mode nt_attach_mode(const struct nt_attach *attach);

struct nt_attach_order {
	int fd; /* of the open file, which the caller keeps */
	const struct nt_symbols *symbols; /* that were looked up already: nothing is read here */
	dev_t dev;
	ino_t ino;
	uint32_t subjects;
	const char *name; /* of the file, for `attached` */
	uint64_t owner; /* whose turn it is (agent/probes/linker.h) */
};

/*
 * Attaches the functions whose symbols the order has, for the subjects whose bit is set. The file is
 * known by (dev, ino): a second call for the same file adds only missing subjects. Returns the number
 * of functions now attached in the file by this call (0: nothing new), or a negative errno. Without a
 * thread it may wait for long. With one that makes the links, and their number is of those that are to
 * be attached; -EAGAIN: too many wait.
 */
NT_MUST_CHECK int nt_attach_opened(struct nt_attach *attach, const struct nt_attach_order *order);
/* With a thread: readable when nt_attach_settle() has something to do; else -1. */
int nt_attach_links_fd(const struct nt_attach *attach);
void nt_attach_settle(struct nt_attach *attach);
/* Lets go of a file. Its links are freed by the thread, where there is one. */
void nt_attach_drop(struct nt_attach *attach, dev_t dev, ino_t ino);

/*
 * A file that is attached. Its links are of all processes that map it until it is split: then those that
 * split off are replaced by links of each process, which agent/governor/own_links.h makes.
 */
struct nt_attached;
struct nt_bundle; /* agent/probes/bundle.h */
struct nt_probe_target;
struct nt_bpf_loader;

enum nt_attached_split {
	NT_ATTACHED_SHARED, /* it is not split */
	NT_ATTACHED_BUT_STAYING, /* all but what stays (nt_probe_stays()) is split off */
	NT_ATTACHED_ALL,
};

/* NULL: it is not attached. Valid until nt_attach_drop() of its last name. */
struct nt_attached *nt_attach_find(struct nt_attach *attach, dev_t dev, ino_t ino);
const struct nt_probe_target *nt_attached_targets(const struct nt_attached *file,
						  size_t *ret_targets);
int nt_attached_fd(const struct nt_attached *file);
/*
 * Does the kernel side see each call once, while links of all processes and of one are attached? False
 * for files that came when 31 others were attached: then each of the links sees it.
 */
bool nt_attached_sees_once(const struct nt_attached *file);
/* (dev, ino) pairs that lead to it: with the last one it goes. */
size_t nt_attached_names(const struct nt_attached *file);
enum nt_attached_split nt_attached_split(const struct nt_attached *file);
/*
 * Hands over the links that the split replaces; they are attached until the bundle is freed. NULL where
 * memory is short: nothing has changed.
 */
struct nt_bundle *nt_attach_split(struct nt_attach *attach, struct nt_attached *file,
				  enum nt_attached_split split);
/*
 * Takes the links of all processes back out of the bundle, and what was split is shared again. -ENOMEM:
 * nothing has changed.
 */
NT_MUST_CHECK int nt_attach_join(struct nt_attach *attach, struct nt_attached *file, bool stays,
				 struct nt_bundle *bundle);

/* Borrowed. For what makes links beside these: agent/probes/linker.h. */
const struct nt_bpf_loader *nt_attach_kernel(const struct nt_attach *attach);

struct nt_attach_span_order {
	int fd; /* of the open file, which the caller keeps */
	uint32_t pid;
	uint64_t start_ns; /* for `spanned` */
	uint64_t owner; /* whose turn it is (agent/probes/linker.h) */
	const struct nt_gc_probe_places *places; /* that are known */
};

/*
 * Attaches what is timed of a library in the open file, for one process: by the thread, which there is.
 * -EAGAIN: too many wait.
 */
NT_MUST_CHECK int nt_attach_order_span(struct nt_attach *attach,
				       const struct nt_attach_span_order *order);
/* The thread frees it, which there is. */
void nt_attach_drop_span(struct nt_attach *attach, struct nt_gc_probe *span);

/* Ring buffer: an epoll fd, and a poll that hands out size-checked events. */
int nt_attach_fd(const struct nt_attach *attach);
/*
 * 1: it has taken as many events, or as long, as one poll may: there may be more, and the descriptor need
 * not be readable for them. 0: all that was there has been given.
 */
NT_MUST_CHECK int nt_attach_poll(struct nt_attach *attach, nt_event_fn fn, void *data);

/* Counters of a process so far; false: none. */
bool nt_attach_counters(const struct nt_attach *attach, uint32_t pid,
			struct nt_process_counters *ret_counters);
/* Every thread that is inside a probed call now: for calls that never return. */
NT_MUST_CHECK int nt_attach_inside(struct nt_attach *attach, nt_inside_fn fn, void *data);
/* Forgets a process that has ended. */
void nt_attach_forget(struct nt_attach *attach, uint32_t pid);

void nt_attach_stats(const struct nt_attach *attach, struct nt_attach_stats *ret_stats);

#endif
