/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Roles of two ranks: whether one of them can be told from the other. */
#ifndef NT_DETECT_BASELINE_PEER_PAIR_H
#define NT_DETECT_BASELINE_PEER_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/detector_state.h"
#include "detect/model/group.h"
#include "detect/model/rank.h"
#include "detect/thresholds/rules.h"

/*
 * Adds a round, in which the second rank works longer than the first by `difference`: own work relative
 * to the faster one, host work as a part of the step, as hosts that hardly work differ by much of that.
 * Raises *width to how much they differ where they agree. Returns whether only one of them falls behind,
 * often but not always: then the other one is its peer.
 */
bool nt_peer_pair_judge(struct nt_group_past *past, enum nt_series series,
			const struct nt_rules *rules, double difference, double *width);
/* How much the difference of the two varies, whatever it is. */
double nt_peer_pair_scatter(const struct nt_group_past *past, enum nt_series series);
/*
 * Whether each falls behind at times, as with work of random length. A rank that has now been behind
 * for NT_PAIR_BEHIND windows in a row does not: the turns before are no reason to leave it out.
 */
bool nt_peer_pair_takes_turns(const struct nt_group_past *past, enum nt_series series,
			      const struct nt_rules *rules);
/* Notes the longest host work of the job's ranks in this frame, or in their last round; before its rounds. */
void nt_peer_hosts_note(struct nt_detect *detect);
/*
 * The longest host of ranks outside a group of two takes the place of the faster one of the two, sorted[0],
 * if it works longer than that. Returns what it exceeds it by, ns, at least 0. Negative: the slower one
 * does not exceed it by more than that, or the others are fewer than NT_PAIR_HOSTS.
 */
double nt_peer_hosts_replace(const struct nt_detect *detect, const struct nt_group *group,
			     double *sorted);

#endif
