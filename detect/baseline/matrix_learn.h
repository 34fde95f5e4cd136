/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Learns the cells of the delay matrix from the transfer times that ranks report. */
#ifndef NT_DETECT_BASELINE_MATRIX_LEARN_H
#define NT_DETECT_BASELINE_MATRIX_LEARN_H

#include <stddef.h>

struct nt_detect;
struct nt_frame;

/* Merges the frame's `transfers` times of transfers between nodes. -ENOMEM. */
int nt_matrix_learn(struct nt_detect *detect, const struct nt_frame *frame, size_t transfers);

#endif
