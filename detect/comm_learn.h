/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Communicators, learned from what the ranks say of them. */
#ifndef NT_DETECT_COMM_LEARN_H
#define NT_DETECT_COMM_LEARN_H

#include <stdint.h>

struct nt_comm;
struct nt_detect;
struct nt_frame_rank;
struct nt_rank;

/* Takes in what one rank says of its communicators. -ENOMEM. */
int nt_comm_learn(struct nt_detect *detect, struct nt_rank *rank, const struct nt_frame_rank *seen);
/* Made where it is new; NULL at the cap or without memory. */
struct nt_comm *nt_comm_add(struct nt_detect *detect, uint64_t id);
void nt_comm_free_all(struct nt_detect *detect);

#endif
