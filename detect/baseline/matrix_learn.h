/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cells of the delay matrix, from the times of transfers that the ranks tell. */
#ifndef NT_DETECT_BASELINE_MATRIX_LEARN_H
#define NT_DETECT_BASELINE_MATRIX_LEARN_H

#include <stddef.h>

struct nt_detect;
struct nt_frame;

/* Takes in what the frame tells of transfers between nodes, so many times. -ENOMEM. */
int nt_matrix_learn(struct nt_detect *detect, const struct nt_frame *frame, size_t told);

#endif
