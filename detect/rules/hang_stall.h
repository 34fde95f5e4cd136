/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A stall: whom the ranks of a job that stands still wait for, as far as their calls tell. */
#ifndef NT_DETECT_RULES_HANG_STALL_H
#define NT_DETECT_RULES_HANG_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/evidence_text.h"

struct nt_detect;
struct nt_detect_link;
struct nt_detect_rank;

/* One member of a communicator that somebody waits in. */
struct nt_stall_member {
	struct nt_detect_rank *rank;
	const struct nt_detect_link *link;
	uint64_t number;
	uint64_t waited_ns;
	bool in; /* inside the call of that number, as far as its tier tells */
	bool elsewhere; /* inside a call of another communicator */
};

/* What is found about all the communicators of the job. */
struct nt_stall {
	uint32_t *culprit;
	uint32_t culprits;
	uint64_t since_ns, longest_ns;
	uint64_t comm; /* kind communicator */
	uint32_t *members;
	uint32_t listed;
	enum nt_evidence_text cause;
	bool found, working, waiting, moving, inside_all;
	bool gone; /* a process ended and said no good-bye */
	bool going; /* somebody went on a moment ago, and may set going those who wait */
	uint32_t lost_sight; /* ranks that may be inside or outside */
	uint8_t tier;
};

/* The member is one that others wait for. */
void nt_stall_accuse(const struct nt_detect *detect, struct nt_stall *stall,
		     const struct nt_stall_member *member);
/* The member waits. */
void nt_stall_witness(struct nt_stall *stall, const struct nt_stall_member *member);
/* What else may hold up those who wait. */
void nt_stall_look_around(const struct nt_detect *detect, struct nt_stall *stall);
/*
 * A rank that waits for its device may wait for another rank there: for what a neighbour in the
 * pipeline sends, or for somebody who waits for a third. Where one is late that waits for nothing, is
 * gone, or has just gone on, that one is why.
 */
void nt_stall_acquit_waiting(const struct nt_detect *detect, struct nt_stall *stall);
/*
 * Who has just made a call, or come out of one that held it, is on its way; and so is who waits for
 * its device, where one that it may wait for went on a moment ago.
 */
bool nt_stall_has_moved(const struct nt_detect *detect, const struct nt_detect_rank *rank,
			uint64_t need_ns);
/*
 * Where communicators bind nobody to anybody, the job as a whole tells: nobody goes on, and who is in no
 * call while all others wait is whom they wait for. False: somebody goes on, or nobody waits so.
 */
bool nt_stall_is_unbound(const struct nt_detect *detect, uint64_t need_ns, struct nt_stall *stall);

#endif
