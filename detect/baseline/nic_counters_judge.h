/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds nodes whose NIC counters exceed their baseline, and the onset. */
#ifndef NT_DETECT_BASELINE_NIC_COUNTERS_JUDGE_H
#define NT_DETECT_BASELINE_NIC_COUNTERS_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/nic_counters.h"

struct nt_culprit_link;
struct nt_detect;
struct nt_frame_rank;

/* Records the NIC counters in a rank's window; one of them is not zero. -ENOMEM. */
int nt_nic_counters_add(struct nt_detect *detect, const struct nt_frame_rank *seen);
/* Judges the counters that were recorded in this frame. */
void nt_nic_counters_judge(struct nt_detect *detect);
/*
 * Names the node, or the two nodes, whose counters rose at the onset and stand out from all others.
 * False: ambiguous.
 */
bool nt_nic_counters_name(const struct nt_detect *detect, uint64_t onset_ns,
			  struct nt_culprit_link *ret_link);
/*
 * Which counter of a node rose, and its rate: a mean, as agents read counters less than once a
 * window.
 */
struct nt_nic_counter_account {
	enum nt_nic_counter_kind kind;
	double rate, usual; /* per second: mean since the rise, and the learned maximum */
	uint32_t windows;
};
/* Fills in the counter that rose most. False: none exceeds its baseline. */
bool nt_nic_counters_rose(const struct nt_detect *detect, uint32_t node,
			  struct nt_nic_counter_account *ret_account);

#endif
