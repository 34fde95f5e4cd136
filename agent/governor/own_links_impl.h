/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Internals of own links: files, processes and their links; for agent/governor/own_links*.c alone.
 */
#ifndef NT_AGENT_GOVERNOR_OWN_LINKS_IMPL_H
#define NT_AGENT_GOVERNOR_OWN_LINKS_IMPL_H

#include <stdbool.h>
#include <stdint.h>

/* Out of memory is reported to the caller; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "agent/governor/duplicate_call.h"
#include "agent/governor/own_links.h"
#include "agent/probes/link_set.h"

enum phase {
	PHASE_SHARED,
	PHASE_OPENING, /* own links are being made */
	PHASE_LINGERING, /* both attached; shared links go soon */
	PHASE_SPLIT,
	PHASE_JOINING, /* shared links are being made */
	PHASE_LEAVING, /* both attached; own links go soon */
};

struct nt_own_process;

struct nt_own_file {
	uintptr_t key; /* address of `attached` */
	bool is_lost;
	struct nt_attached *attached; /* borrowed */
	enum phase phase;
	enum nt_attached_split split; /* wanted or reached */
	bool merged; /* staying functions share links with the rest: splits are whole */
	uint32_t libraries; /* bits of enum nt_library whose functions it holds */
	uint64_t cut_ns; /* time of the last cut */
	uint64_t opened_ns; /* start of PHASE_OPENING */
	uint64_t opened; /* the last use's number at opened_ns */
	uint64_t token; /* of the request for shared links; 0: none */
	uint64_t retry_ns; /* not requested again before this */
	struct nt_link_set *shared; /* owned: freed when lingering ends */
	uint64_t calm_ns; /* since when no process of it is governed; 0: one is */
	struct nt_own_use *uses;
	UT_hash_handle hh;
};

/* The use of a file by a process that maps it. */
struct nt_own_use {
	struct nt_own_process *process;
	struct nt_own_file *file;
	uint64_t number; /* in order of creation */
	struct nt_link_set *link_set; /* owned; NULL: it has no own links */
	uint64_t made; /* state that the link set has; 0: none */
	uint64_t token; /* of the request for links; 0: none */
	uint64_t making;
	bool has_own; /* it has had own links since the file was split */
	uint64_t retry_ns; /* not requested again before this */
	uint64_t inside_ns; /* the last look that found a call from before the cut */
	bool ended; /* the process has ended, but that was not reported yet */
	struct nt_own_use *next; /* of the file */
};

struct nt_own_process {
	uint32_t pid;
	bool is_lost;
	uint64_t start_ns;
	uint64_t owner; /* nt_owner.id; 0: not known */
	struct nt_governor_plan plan;
	bool on; /* in a slice, or always observed */
	uint64_t paused_ns; /* since when it is not observed; 0: observed */
	uint64_t resumed_ns;
	uint64_t unobserved_ns; /* sum of ended pauses */
	uint64_t looked_ns;
	uint32_t looks; /* looks in progress */
	struct nt_own_use *use[NT_OWN_LINKS_FILES];
	size_t uses;
	UT_hash_handle hh;
};

/* A request to the linker, and the use or file that it is for. */
struct nt_own_request {
	uint64_t token;
	bool is_lost;
	uint32_t pid;
	uint64_t owner; /* of the process; 0: of none */
	uintptr_t file;
	bool look, shared;
	UT_hash_handle hh;
};

struct nt_own_links {
	struct nt_duplicate_calls duplicates;
	struct nt_attach *attach;
	struct nt_linker *linker;
	struct nt_own_links_hooks hooks;
	struct nt_own_file *file; /* uthash, owned */
	struct nt_own_process *process; /* uthash, owned */
	struct nt_own_request *request; /* uthash, owned */
	uint64_t tokens, uses; /* so far: source of numbers */
	uint64_t looked_ns; /* when the last look at all threads began; 0: none */
	uint32_t turn; /* last result of nt_own_links_turn() */
	struct nt_own_links_stats stats;
};

void nt_own_joined(struct nt_own_links *own, struct nt_own_file *file,
		   struct nt_link_set *link_set);
/* The shared links could not be made, or not be moved into the file. */
void nt_own_part(struct nt_own_links *own, struct nt_own_file *file);
void nt_own_tick_file(struct nt_own_links *own, struct nt_own_file *file, uint64_t boot_ns);
struct nt_own_request *nt_own_request_new(struct nt_own_links *own, const struct nt_own_use *use,
					  bool look);
/* owner: of the process that the links are of; 0: the links are shared. Accepts NULL. */
void nt_own_detach(struct nt_own_links *own, uint64_t owner, struct nt_link_set *link_set);
void nt_own_drop_link_set(struct nt_own_links *own, struct nt_own_use *use);
struct nt_own_file *nt_own_find_file(const struct nt_own_links *own, uintptr_t key);
struct nt_own_process *nt_own_find_process(const struct nt_own_links *own, uint32_t pid);
void nt_own_forget(struct nt_own_links *own, struct nt_own_request *request);
/* True if calls in the file are observed by own links alone. */
bool nt_own_is_cut(const struct nt_own_file *file);
/* True if the use has all the own links that it needs. */
bool nt_own_is_settled(const struct nt_own_use *use);
bool nt_own_is_split_off(const struct nt_own_file *file, const struct nt_probe_target *target);
/*
 * Requests the links of a use, or a look at hot functions. 1: they are being made; 0: there is
 * nothing to attach; negative: the request failed, and has to be repeated.
 */
int nt_own_make(struct nt_own_links *own, struct nt_own_use *use, bool look);
void nt_own_pause(struct nt_own_links *own, struct nt_own_process *process, uint64_t boot_ns);
/* Moves a use towards its wanted state. */
void nt_own_pursue(struct nt_own_links *own, struct nt_own_use *use);
/* Ends the pause of a process once all its links are made, or the file is shared again. */
void nt_own_review(struct nt_own_links *own, struct nt_own_process *process);

#endif
