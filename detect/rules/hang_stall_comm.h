/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stall analysis of one communicator in which some members wait. */
#ifndef NT_DETECT_RULES_HANG_STALL_COMM_H
#define NT_DETECT_RULES_HANG_STALL_COMM_H

#include <stdint.h>

#include "detect/rules/hang_stall.h"

struct nt_detect_comm;
struct nt_frame;

/*
 * Adds the communicator's part to the stall, for calls with a wait of need_ns or more. `member` and
 * `epoch` have room for all ranks. Raises a mismatch if the members' calls differ. -ENOMEM.
 */
int nt_stall_check_comm(struct nt_detect *detect, const struct nt_frame *frame,
			struct nt_detect_comm *comm, uint64_t need_ns,
			struct nt_stall_member *member, uint64_t *epoch, struct nt_stall *stall);

#endif
