/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each rank against its peers: how far it is from them, and the evidence that this adds. */
#ifndef NT_DETECT_KPI_H
#define NT_DETECT_KPI_H

#include <stdbool.h>

#include "detect/core.h"

/* Adds what the frame says of a rank to its sums. */
void nt_kpi_sum(struct nt_detect *detect, struct nt_rank *rank, const struct nt_frame_rank *seen);
/*
 * Judges the groups whose ranks have ended steps. Windows of ranks end at their own step boundaries,
 * so a frame may hold the steps of some ranks alone: a group then waits for the rest, up to
 * three frames. Returns 0.
 */
int nt_kpi_rounds(struct nt_detect *detect, const struct nt_frame *frame);
/* The smallest value that a KPI is divided by: the peers' or a part of the step. */
double nt_kpi_base(const struct nt_rules *rules, double peers, double step);

#endif
