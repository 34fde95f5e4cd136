/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rank is in the middle of, and for how long. */
#ifndef NT_DETECT_RULES_HANG_H
#define NT_DETECT_RULES_HANG_H

#include <stdint.h>

struct nt_detect;
struct nt_frame_rank;
struct nt_detect_rank;

/* Remembers what the rank is in the middle of. */
void nt_hang_note(struct nt_detect *detect, struct nt_detect_rank *rank,
		  const struct nt_frame_rank *seen);
/* How long the rank has been in the call that it is in; 0 of who is in none, is gone or not heard of. */
uint64_t nt_hang_waited(const struct nt_detect *detect, const struct nt_detect_rank *rank);

#endif
