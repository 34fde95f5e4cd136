/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Roles of two ranks: whether one of them can be told from the other. */
#ifndef NT_DETECT_BASELINE_PEER_PAIR_H
#define NT_DETECT_BASELINE_PEER_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/model/group.h"
#include "detect/model/rank.h"
#include "detect/thresholds/rules.h"

/*
 * Adds a round, in which the second rank works longer than the first by `difference`, relative to
 * the faster one. Raises *width to how much they differ where they agree. Returns whether only one
 * of them falls behind, often but not always: then the other one is its peer.
 */
bool nt_peer_pair_judge(struct nt_group_past *past, enum nt_series series,
			const struct nt_rules *rules, double difference, double *width);
/*
 * Whether each falls behind at times, as with work of random length. A rank that has now been behind
 * for NT_PAIR_BEHIND windows in a row does not: the turns before are no reason to leave it out.
 */
bool nt_peer_pair_takes_turns(const struct nt_group_past *past, enum nt_series series,
			      const struct nt_rules *rules);

#endif
