/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which ports count more than they use to, since when, and whose they are. */
#ifndef NT_DETECT_BASELINE_NIC_COUNTERS_JUDGE_H
#define NT_DETECT_BASELINE_NIC_COUNTERS_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/nic_counters.h"

struct nt_culprit_link;
struct nt_detect;
struct nt_frame_rank;

/* What a rank tells of its node's ports, of which something is not zero. -ENOMEM. */
int nt_nic_ports_note(struct nt_detect *detect, const struct nt_frame_rank *seen);
/* Judges what was noted in this frame. */
void nt_nic_ports_judge(struct nt_detect *detect);
/*
 * Of which node, or of which two, counters turned when something began; they must stand out from all
 * others'. False: it is not clear.
 */
bool nt_nic_ports_name(const struct nt_detect *detect, uint64_t onset_ns,
		       struct nt_culprit_link *ret_link);
/* What of a node's ports turned, and how often: a mean, as counters are read more seldom than told. */
struct nt_nic_port_account {
	enum nt_nic_port_kind kind;
	double rate, usual; /* a second: since they turned, and the most that is usual */
	uint32_t windows;
};
/* Of the kind that turned most. False: none counts more than usual. */
bool nt_nic_ports_tell(const struct nt_detect *detect, uint32_t node,
		       struct nt_nic_port_account *ret_account);

#endif
