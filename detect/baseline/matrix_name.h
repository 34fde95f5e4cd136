/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which row, column or cell of the delay matrix is slow, and by how much. */
#ifndef NT_DETECT_BASELINE_MATRIX_NAME_H
#define NT_DETECT_BASELINE_MATRIX_NAME_H

#include <stdbool.h>
#include <stdint.h>

struct nt_cell;
struct nt_culprit_link;
struct nt_detect;

/* The slow cell that costs most, and what all slow ones do, of the step. NULL: none is slow. */
const struct nt_cell *nt_matrix_slowest(const struct nt_detect *detect, double *ret_cost);
/* Row, column or cell, by all cells together. False: not clear. */
bool nt_matrix_name(const struct nt_detect *detect, struct nt_culprit_link *ret_link);
/* Means over the slow cells of the link that leave the node (or enter it), ms a call now and before. */
bool nt_matrix_tell(const struct nt_detect *detect, const struct nt_culprit_link *link, bool leaves,
		    double *ret_now_ms, double *ret_before_ms, uint32_t *ret_windows);
/* What the slowest cells of the link cost in this frame, of the step; negative: none was heard. */
double nt_matrix_cost(const struct nt_detect *detect, const struct nt_culprit_link *link);

#endif
