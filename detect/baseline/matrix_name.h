/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Locates the slow row, column or cell of the delay matrix, and its size. */
#ifndef NT_DETECT_BASELINE_MATRIX_NAME_H
#define NT_DETECT_BASELINE_MATRIX_NAME_H

#include <stdbool.h>
#include <stdint.h>

struct nt_cell;
struct nt_culprit_link;
struct nt_detect;

/* The most costly slow cell, or NULL. *ret_cost: cost of all slow cells, parts of a step. */
const struct nt_cell *nt_matrix_slowest(const struct nt_detect *detect, double *ret_cost);
/* Names the row, column or cell from all cells. False: ambiguous. */
bool nt_matrix_name(const struct nt_detect *detect, struct nt_culprit_link *ret_link);
/*
 * Means over the link's slow cells that leave the node (or enter it): ms per call, now and before.
 */
bool nt_matrix_mean(const struct nt_detect *detect, const struct nt_culprit_link *link, bool leaves,
		    double *ret_now_ms, double *ret_before_ms, uint32_t *ret_windows);
/* Cost of the link's slowest cells in this frame, parts of a step; negative: none was measured. */
double nt_matrix_cost(const struct nt_detect *detect, const struct nt_culprit_link *link);

#endif
