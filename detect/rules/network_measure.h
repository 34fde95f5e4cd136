/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures transfer times of communicators and compares them with their own past. */
#ifndef NT_DETECT_RULES_NETWORK_MEASURE_H
#define NT_DETECT_RULES_NETWORK_MEASURE_H

#include <stdbool.h>

struct nt_detect_comm;
struct nt_detect;
struct nt_frame;

/* Measures every communicator in the frame. Returns 0. */
int nt_network_measure(struct nt_detect *detect, const struct nt_frame *frame);
/* Whether a round ended in this frame with transfers slow for long enough to lengthen the step. */
bool nt_network_is_slow(const struct nt_detect *detect, const struct nt_detect_comm *comm);
/* Whether its last round ended no longer ago than a round takes. */
bool nt_network_is_fresh(const struct nt_detect *detect, const struct nt_detect_comm *comm);
/* Whether its last round is fresh and was slow. */
bool nt_network_was_slow(const struct nt_detect *detect, const struct nt_detect_comm *comm);

#endif
