/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds in the distances of equal events how many of them make one round: a round has one distance
 * much longer than the others, always at the same place. Four gradient buckets of equal size are
 * one step, though by their kind alone each might be.
 */
#ifndef NT_AGENT_STEPS_CALL_PERIOD_H
#define NT_AGENT_STEPS_CALL_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NT_CALL_PERIOD_GAPS = 256, /* more are not looked at */
	NT_CALL_PERIOD_LONGEST = 64, /* events of the longest round */
};

/*
 * gap_us[j]: from event j + 1 to event j, event 0 being the newest. Returns the events of a round,
 * 0 where there is none. hint: a length that something else speaks for, which then needs less of a
 * difference; 0: none. Events j with j % round == *ret_first begin a round.
 */
uint32_t nt_call_period_find(const uint32_t *gap_us, uint32_t count, uint32_t hint,
			     uint32_t *ret_first);

/*
 * The same for distances without what the events themselves take. Nothing else evens them out, so a
 * smaller difference will do if it is seen for longer.
 */
uint32_t nt_call_period_find_idle(const uint32_t *idle_us, uint32_t count, uint32_t hint,
				  uint32_t *ret_first);

/*
 * The same in what lies between the events and is counted, such as launches: the same on all ranks,
 * and not touched by anything that is slow. Returns 1 where all distances are alike: then no event
 * begins a round before another does. 0: it tells nothing. `steps`: the distances are as long as steps are,
 * so that a round of many may be steps with an evaluation now and then, and no round of parts of a step.
 */
uint32_t nt_call_period_count(const uint32_t *value, uint32_t count, bool steps,
			      uint32_t *ret_first);

#endif
