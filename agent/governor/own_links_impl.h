/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files, processes and their links from inside; for agent/own_links*.c alone. */
#ifndef NT_AGENT_GOVERNOR_OWN_LINKS_IMPL_H
#define NT_AGENT_GOVERNOR_OWN_LINKS_IMPL_H

#include <stdbool.h>
#include <stdint.h>

/* Out of memory is for us to handle, not for the table to exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "agent/governor/own_links.h"
#include "agent/governor/repeat.h"
#include "agent/probes/bundle.h"

enum phase {
	PHASE_SHARED,
	PHASE_OPENING, /* own links are being made */
	PHASE_LINGERING, /* they are there; the shared ones go soon */
	PHASE_SPLIT,
	PHASE_JOINING, /* shared links are being made */
	PHASE_LEAVING, /* they are there; the own ones go soon */
};

struct nt_own_process;

struct nt_own_file {
	uintptr_t key; /* the address of `attached` */
	bool is_lost;
	struct nt_attached *attached; /* borrowed */
	enum phase phase;
	enum nt_attached_split split; /* that is aimed at or reached */
	bool merged; /* what stays shares links with the rest: it can only be split as a whole */
	uint32_t libraries; /* bits of enum nt_library whose functions it holds */
	uint64_t cut_ns; /* of the phase before */
	uint64_t opened_ns; /* since when own links are being made */
	uint64_t opened; /* number of the last use before */
	uint64_t token; /* of the shared links that are being made; 0: none */
	uint64_t retry_ns; /* before this they are not asked for again */
	struct nt_bundle *shared; /* owned: to go when lingering ends */
	uint64_t calm_ns; /* since when none of its processes is governed; 0: one is */
	struct nt_own_use *uses;
	UT_hash_handle hh;
};

/* A process maps a file. */
struct nt_own_use {
	struct nt_own_process *process;
	struct nt_own_file *file;
	uint64_t number; /* those that come later have larger ones */
	struct nt_bundle *bundle; /* owned; NULL: nothing of its own is attached */
	uint64_t made; /* what the bundle holds; 0: nothing */
	uint64_t token; /* of what is being made; 0: nothing is */
	uint64_t making;
	bool has_own; /* links of its own have been there since the file was split */
	uint64_t retry_ns; /* before this they are not asked for again */
	uint64_t inside_ns; /* the last look that found a call of before the cut */
	bool ended; /* the process is gone, though its end is not known yet */
	struct nt_own_use *next; /* of the file */
};

struct nt_own_process {
	uint32_t pid;
	bool is_lost;
	uint64_t start_ns;
	uint64_t owner; /* nt_owner.id; 0: not known */
	struct nt_governor_plan plan;
	bool on; /* a slice runs, or all is observed */
	uint64_t paused_ns; /* since when it is not observed; 0: it is */
	uint64_t resumed_ns;
	uint64_t unobserved_ns; /* sum of the pauses that have ended */
	uint64_t looked_ns;
	uint32_t looks; /* under way */
	struct nt_own_use *use[NT_OWN_LINKS_FILES];
	size_t uses;
	UT_hash_handle hh;
};

/* A request to the linker: which use or file its result belongs to. */
struct nt_own_request {
	uint64_t token;
	bool is_lost;
	uint32_t pid;
	uintptr_t file;
	bool look, shared;
	UT_hash_handle hh;
};

struct nt_own_links {
	struct nt_repeats repeats;
	struct nt_attach *attach;
	struct nt_linker *linker;
	struct nt_own_links_hooks hooks;
	struct nt_own_file *file; /* uthash, owned */
	struct nt_own_process *process; /* uthash, owned */
	struct nt_own_request *request; /* uthash, owned */
	uint64_t tokens, uses; /* so far: numbers */
	uint64_t looked_ns; /* when the last look at all threads began; 0: there was none */
	uint32_t turn; /* the process that nt_own_links_turn() gave last */
	struct nt_own_links_stats stats;
};

void nt_own_joined(struct nt_own_links *own, struct nt_own_file *file, struct nt_bundle *bundle);
/* The shared links could not be made, or not be kept. */
void nt_own_part(struct nt_own_links *own, struct nt_own_file *file);
void nt_own_tick_file(struct nt_own_links *own, struct nt_own_file *file, uint64_t boot_ns);
struct nt_own_request *nt_own_ask(struct nt_own_links *own, const struct nt_own_use *use,
				  bool look);
void nt_own_detach(struct nt_own_links *own, struct nt_bundle *bundle);
void nt_own_drop_bundle(struct nt_own_links *own, struct nt_own_use *use);
struct nt_own_file *nt_own_find_file(const struct nt_own_links *own, uintptr_t key);
struct nt_own_process *nt_own_find_process(const struct nt_own_links *own, uint32_t pid);
void nt_own_forget(struct nt_own_links *own, struct nt_own_request *request);
/* Is what a process calls there seen by links of its own alone? */
bool nt_own_is_cut(const struct nt_own_file *file);
/* Where its calls are not seen by shared links, has it all links of its own? */
bool nt_own_is_settled(const struct nt_own_use *use);
bool nt_own_is_split_off(const struct nt_own_file *file, const struct nt_probe_target *target);
/*
 * Asks for the links of a use, or for a look at what is hot. 1: they are being made; 0: there is nothing
 * to attach; negative: they are not made, and have to be asked for again.
 */
int nt_own_make(struct nt_own_links *own, struct nt_own_use *use, bool look);
void nt_own_pause(struct nt_own_links *own, struct nt_own_process *process, uint64_t boot_ns);
/* Brings a use nearer to the state that it should be in. */
void nt_own_pursue(struct nt_own_links *own, struct nt_own_use *use);
/* Once all its links are there, or the file is shared again. */
void nt_own_review(struct nt_own_links *own, struct nt_own_process *process);

#endif
