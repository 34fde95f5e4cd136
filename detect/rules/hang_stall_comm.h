/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A stall, by the members of one communicator that some of them wait in. */
#ifndef NT_DETECT_RULES_HANG_STALL_COMM_H
#define NT_DETECT_RULES_HANG_STALL_COMM_H

#include <stdint.h>

#include "detect/rules/hang_stall.h"

struct nt_detect_comm;
struct nt_frame;

/*
 * Adds what the communicator tells, of calls in which somebody waits for need_ns. `member` and `epoch` are room
 * for all ranks. Where the members differ in their call, that is raised. -ENOMEM.
 */
int nt_stall_check_comm(struct nt_detect *detect, const struct nt_frame *frame,
			struct nt_detect_comm *comm, uint64_t need_ns,
			struct nt_stall_member *member, uint64_t *epoch, struct nt_stall *stall);

#endif
