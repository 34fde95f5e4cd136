/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How often a communicator's transfers are slow: a fault that shows in some of its rounds only. */
#ifndef NT_DETECT_BASELINE_NETWORK_RATE_H
#define NT_DETECT_BASELINE_NETWORK_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct nt_cusum;
struct nt_cusum_window;
struct nt_detect;
struct nt_network;

/*
 * Adds a window to network->rate: the logarithm of its likelihood ratio (Page, 1954). A slow network is
 * slow in NT_FAR_RATE_FAULTY of its rounds, a healthy one in NT_NETWORK_FAR of them. A sum that rounds at
 * equal distances have raised to the threshold is cleared: the program does that.
 */
void nt_network_count_far(const struct nt_detect *detect, struct nt_network *network,
			  const struct nt_cusum_window *window);
/* Adds the rounds from which its past was learned, if the job's step is known by then. */
void nt_network_count_far_before(const struct nt_detect *detect, struct nt_network *network);
/* Whether it is slow often enough, and costs enough. */
bool nt_network_is_often_far(const struct nt_detect *detect, const struct nt_network *network);
/* Whether its level is high enough, lasts, and costs enough. */
bool nt_network_is_level_high(const struct nt_detect *detect, const struct nt_network *network);
/* The sum that accuses it: of all rounds or, if that does not suffice, of how often they are slow. */
const struct nt_cusum *nt_network_sum(const struct nt_detect *detect,
				      const struct nt_network *network);
/* Whether one of its sums left zero about then. */
bool nt_network_began_at(const struct nt_detect *detect, const struct nt_network *network,
			 uint64_t onset_ns);
/*
 * The transfer time of a step, ns, to be shown: of the last round or, if that is longer, on average since
 * the onset. Single rounds of a slow network may be as usual.
 */
double nt_network_shown(const struct nt_detect *detect, const struct nt_network *network);

#endif
