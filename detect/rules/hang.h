/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The call that each rank is in, and since when. */
#ifndef NT_DETECT_RULES_HANG_H
#define NT_DETECT_RULES_HANG_H

#include <stdint.h>

struct nt_detect;
struct nt_frame_rank;
struct nt_detect_rank;

/* Records the rank's current call. */
void nt_hang_note(struct nt_detect *detect, struct nt_detect_rank *rank,
		  const struct nt_frame_rank *seen);
/* Time that the rank has been in its current call, ns; 0: in none, gone or unobserved. */
uint64_t nt_hang_waited(const struct nt_detect *detect, const struct nt_detect_rank *rank);

#endif
