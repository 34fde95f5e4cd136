/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compares the transfers of communicators that are alike: what was slow from the start. */
#ifndef NT_DETECT_BASELINE_NETWORK_ALIKE_H
#define NT_DETECT_BASELINE_NETWORK_ALIKE_H

#include <stdbool.h>

struct nt_detect_comm;
struct nt_detect;

/*
 * Compares the past of a communicator once with those of all alike: of as many ranks on as many
 * nodes, with calls of one operation and size. The reference is the median of the faster half. True
 * if it was much slower from the start: sets network.reference.
 */
bool nt_network_compare(struct nt_detect *detect, struct nt_detect_comm *comm);

#endif
