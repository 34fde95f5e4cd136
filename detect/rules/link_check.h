/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a slow network to the NIC or the path that makes it slow: by the times of transfers between
 * single nodes (matrix.h), by counters that turned at its onset (port.h), or by what slow communicators
 * share and the others do not touch. Where none of these is clear, the communicator is named.
 */
#ifndef NT_DETECT_RULES_LINK_CHECK_H
#define NT_DETECT_RULES_LINK_CHECK_H

struct nt_detect;
struct nt_frame;
struct nt_frame_rank;

/* What a rank tells of transfers and of its node's ports. -ENOMEM. */
int nt_detect_link_note(struct nt_detect *detect, const struct nt_frame_rank *seen);
/*
 * After the communicators are measured, before any is raised: finds out which link it is, raises it
 * and takes over what is open for communicators that it slows. -ENOMEM.
 */
int nt_detect_link_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
