/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds how many equal events make one round, from the intervals between them. A round has one
 * interval much longer than the others, always at the same place. Four gradient buckets of equal
 * size are one step, though by their kind alone each might be.
 */
#ifndef NT_AGENT_STEPS_CALL_PERIOD_H
#define NT_AGENT_STEPS_CALL_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NT_CALL_PERIOD_GAPS = 256, /* more are ignored */
	NT_CALL_PERIOD_LONGEST = 64, /* events of the longest round */
};

/*
 * gap_us[j]: from event j + 1 to event j, event 0 being the newest. Returns the events of a round,
 * 0 if there is none. hint: a length with other evidence, which is found at a smaller difference;
 * 0: none. Events j with j % round == *ret_first begin a round.
 */
uint32_t nt_call_period_find(const uint32_t *gap_us, uint32_t count, uint32_t hint,
			     uint32_t *ret_first);

/*
 * The same for intervals without the duration of the events. Nothing evens these out, so a smaller
 * difference suffices if it is seen for longer.
 */
uint32_t nt_call_period_find_idle(const uint32_t *idle_us, uint32_t count, uint32_t hint,
				  uint32_t *ret_first);

/*
 * The same for a count between events, such as launches, which is equal on all ranks and does not
 * depend on speed. Returns 1 if all counts are alike: each event is then a round. 0: undecided.
 * `steps`: intervals are as long as steps, so a long round may be steps with occasional
 * evaluations, not the parts of one step.
 */
uint32_t nt_call_period_count(const uint32_t *value, uint32_t count, bool steps,
			      uint32_t *ret_first);

#endif
