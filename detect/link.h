/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a slow network to the NIC or the path that makes it slow: by the times of transfers between
 * single nodes (matrix.h), by counters that turned at its onset (port.h), or by what slow communicators
 * share and the others do not touch. Where none of these is clear, the communicator is named.
 */
#ifndef NT_DETECT_LINK_H
#define NT_DETECT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/cusum.h"
#include "detect/matrix.h"
#include "detect/port.h"

struct nt_comm;
struct nt_detect;
struct nt_frame;
struct nt_frame_rank;

struct nt_links {
	struct nt_matrix matrix;
	struct nt_ports ports;
	uint64_t step_frame; /* the last that told of the job's step: at T1 nothing else shows it */
	/* What is seen now in place of what an open incident names, and for how many frames. */
	struct nt_culprit_link other;
	uint32_t others;
	/* Scratch of the step: times by peer in the frame, slow communicators. */
	size_t told, slow;
	/* Scratch of the step: what is named now; its kind is NT_CULPRIT_RANK where nothing is. */
	struct nt_culprit_link now;
};

/* What a rank tells of transfers and of its node's ports. -ENOMEM. */
int nt_link_note(struct nt_detect *detect, const struct nt_frame_rank *seen);
/*
 * After the communicators are measured, before any is raised: finds out which link it is, raises it
 * and takes over what is open for communicators that it slows. -ENOMEM.
 */
int nt_link_check(struct nt_detect *detect, const struct nt_frame *frame);
/* Do both go over one node? */
bool nt_link_is_shared(const struct nt_detect *detect, const struct nt_comm *comm,
		       const struct nt_comm *other);
/* The communicator is slow because of the link that is named now. */
bool nt_link_explains(const struct nt_detect *detect, const struct nt_comm *comm);

/* A link as the key of its incident, and back. */
uint64_t nt_link_key(const struct nt_culprit_link *link);
struct nt_culprit_link nt_link_of(uint8_t kind, uint64_t key);
/* An incident of it is over: its evidence must not open it again. */
void nt_link_release(struct nt_detect *detect, uint8_t kind, uint64_t key);
void nt_links_free(struct nt_links *links);

#endif
