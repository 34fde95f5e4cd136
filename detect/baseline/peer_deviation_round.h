/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A round: the ranks of a group that have ended steps, judged side by side. */
#ifndef NT_DETECT_BASELINE_PEER_DEVIATION_ROUND_H
#define NT_DETECT_BASELINE_PEER_DEVIATION_ROUND_H

struct nt_detect;
struct nt_frame;
struct nt_frame_rank;
struct nt_detect_rank;

/* Adds what the frame says of a rank to its sums. */
void nt_peer_deviation_sum(struct nt_detect *detect, struct nt_detect_rank *rank,
			   const struct nt_frame_rank *seen);
/*
 * Judges the groups whose ranks have ended steps. Windows of ranks end at their own step boundaries,
 * so a frame may hold the steps of some ranks alone: a group then waits for the rest, up to
 * three frames. Returns 0.
 */
int nt_peer_deviation_rounds(struct nt_detect *detect, const struct nt_frame *frame);

#endif
