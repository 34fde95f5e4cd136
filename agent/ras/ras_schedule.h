/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * When the status of a job is requested from NCCL: seldom, as all processes of the job take part in
 * an answer. Agents do not communicate, so that the nodes of a job take turns by their number: node n
 * may request in the nth minute. A node requests once a minute at most, whatever its jobs.
 */
#ifndef NT_AGENT_RAS_RAS_SCHEDULE_H
#define NT_AGENT_RAS_RAS_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/duration.h"

enum {
	NT_RAS_SCHEDULE_FILES = 16, /* library files that are wanted; further ones wait */
	NT_RAS_SCHEDULE_TRIES = 3, /* per file */
};

#define NT_RAS_SCHEDULE_TURN_NS  NT_MINUTE
#define NT_RAS_SCHEDULE_AGAIN_NS NT_HOUR /* from one try of a file to the next */

/* A process with communicators of NCCL whose place in the job is not known. */
struct nt_ras_want {
	uint32_t pid;
	uint64_t start_ns; /* of the process, boot time */
	/* The library, not 0: one request is enough for all of its owner's processes. */
	uint64_t file, owner;
	bool has_node;
	uint32_t node; /* number of this node in the job */
};

/* Zeroed: nothing was requested yet. */
struct nt_ras_schedule {
	struct {
		uint64_t file, owner, due_ns;
		uint64_t seen_ns; /* when it was wanted first */
		uint32_t tries;
		bool is_unplaced; /* counted once */
	} of[NT_RAS_SCHEDULE_FILES];
	size_t files;
	uint64_t last_ns; /* of any file; 0: never */
	/* So far: files without room, counted each time; files of jobs without known node numbers. */
	uint64_t over_cap, unplaced;
};

/* The process to request from now, or NULL. now_ns: a clock that only runs forward. */
const struct nt_ras_want *nt_ras_schedule_pick(struct nt_ras_schedule *schedule,
					       const struct nt_ras_want *want, size_t wants,
					       uint64_t now_ns);

#endif
