/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How often a communicator's transfers are slow: a fault that shows in some of its rounds only. */
#ifndef NT_DETECT_BASELINE_NETWORK_RATE_H
#define NT_DETECT_BASELINE_NETWORK_RATE_H

#include <stdbool.h>

struct nt_cusum_window;
struct nt_detect;
struct nt_network;

/*
 * Adds a window to network->rate: the logarithm of its likelihood ratio (Page, 1954). A slow network is
 * slow in NT_FAR_RATE_FAULTY of its rounds, a healthy one in NT_NETWORK_FAR of them.
 */
void nt_network_count_far(const struct nt_detect *detect, struct nt_network *network,
			  const struct nt_cusum_window *window);
/* Adds the rounds from which its past was learned. */
void nt_network_count_far_before(const struct nt_detect *detect, struct nt_network *network);
/* Whether it is slow in some rounds, often enough and not at equal distances. */
bool nt_network_is_often_far(const struct nt_detect *detect, const struct nt_network *network);

#endif
