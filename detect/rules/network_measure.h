/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures the transfers of communicators, and tells which are slow against their own past. */
#ifndef NT_DETECT_RULES_NETWORK_MEASURE_H
#define NT_DETECT_RULES_NETWORK_MEASURE_H

#include <stdbool.h>

struct nt_detect_comm;
struct nt_detect;
struct nt_frame;

/* Measures every communicator in the frame. Returns 0. */
int nt_network_measure(struct nt_detect *detect, const struct nt_frame *frame);
/* A round of it ended in this frame: its transfers became long, for long enough, and the step feels it. */
bool nt_network_is_slow(const struct nt_detect *detect, const struct nt_detect_comm *comm);
/* Not all rounds end in one frame: its last one ended no longer ago than a round takes. */
bool nt_network_is_fresh(const struct nt_detect *detect, const struct nt_detect_comm *comm);
/* It was slow in its last round, which is fresh. */
bool nt_network_was_slow(const struct nt_detect *detect, const struct nt_detect_comm *comm);

#endif
