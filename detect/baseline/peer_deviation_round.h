/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A round: compares the ranks of a group that completed steps. */
#ifndef NT_DETECT_BASELINE_PEER_DEVIATION_ROUND_H
#define NT_DETECT_BASELINE_PEER_DEVIATION_ROUND_H

struct nt_detect;
struct nt_frame;
struct nt_frame_rank;
struct nt_detect_rank;

/* Adds the rank's window to its sums. */
void nt_peer_deviation_sum(struct nt_detect *detect, struct nt_detect_rank *rank,
			   const struct nt_frame_rank *seen);
/*
 * Judges the groups whose ranks completed steps. Windows end at each rank's own step boundaries,
 * so a frame may hold steps of some ranks only. The round then stays open for up to three frames.
 * Returns 0.
 */
int nt_peer_deviation_rounds(struct nt_detect *detect, const struct nt_frame *frame);

#endif
