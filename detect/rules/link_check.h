/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Attributes a slow network to a NIC or a path. The evidence is, in this order: transfer times
 * between nodes (matrix.h), and counters that rose at the onset (nic_counters.h). Then follows the
 * link that slow communicators share and the others do not use. If all are ambiguous, the
 * communicator is named.
 */
#ifndef NT_DETECT_RULES_LINK_CHECK_H
#define NT_DETECT_RULES_LINK_CHECK_H

struct nt_detect;
struct nt_frame;
struct nt_frame_rank;

/* Records a rank's transfers and NIC counters. -ENOMEM. */
int nt_detect_link_note(struct nt_detect *detect, const struct nt_frame_rank *seen);
/*
 * Called after the communicators are measured and before any is raised. Names and raises the link,
 * and merges open incidents of communicators that it slows. -ENOMEM.
 */
int nt_detect_link_check(struct nt_detect *detect, const struct nt_frame *frame);

#endif
