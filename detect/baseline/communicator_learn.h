/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Learns communicators from the reports of their members. */
#ifndef NT_DETECT_BASELINE_COMMUNICATOR_LEARN_H
#define NT_DETECT_BASELINE_COMMUNICATOR_LEARN_H

#include <stdint.h>

struct nt_detect_comm;
struct nt_detect;
struct nt_frame_rank;
struct nt_detect_rank;

/* Merges one rank's communicators of a frame. -ENOMEM. */
int nt_detect_comm_learn(struct nt_detect *detect, struct nt_detect_rank *rank,
			 const struct nt_frame_rank *seen);
/* Finds or creates the communicator; NULL at the cap or on allocation failure. */
struct nt_detect_comm *nt_detect_comm_add(struct nt_detect *detect, uint64_t id);
void nt_detect_comm_free_all(struct nt_detect *detect);

#endif
