/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recovery test: whether a fault has ended, by its mean cost in the last windows. */
#ifndef NT_DETECT_MODEL_RECOVERY_H
#define NT_DETECT_MODEL_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "detect/thresholds/rules.h"

enum {
	NT_RECOVERY_BUCKETS = 40,
};

struct nt_recovery {
	struct nt_recovery_bucket {
		uint64_t start_ns;
		uint32_t windows;
		double sum;
	} bucket[NT_RECOVERY_BUCKETS]; /* oldest first */
	uint32_t buckets;
	/*
	 * The end of the fault so far: of the last bad window such that those after the end before cost half
	 * of the mean of all, the healthy ones between bad ones included. `height`: cost of a bad window.
	 */
	uint64_t bad_ns;
	uint64_t seen_ns; /* end of the last window */
	struct nt_recovery_part {
		double cost, windows; /* sums */
	} before, since; /* up to that end, and after it */
	double height;
	bool ended; /* the drop is more than gaps between the windows of a fault explain */
};

/* Adds a window; `whole`: cost of the fault as a whole, as far as known. */
void nt_recovery_add(struct nt_recovery *recovery, const struct nt_rules *rules, uint64_t start_ns,
		     uint64_t end_ns, double cost, double whole);
/*
 * Whether the fault is over. Over the last max(resolve_min, resolve_windows), of which the last
 * `absent` windows had no evidence: less than half the floor on average; or none had evidence, the
 * cost dropped, and what remains is a small part of a bad window's cost. That remainder is not
 * enough to accuse the rank: noise of the machine, or a pace that changed a little meanwhile.
 */
bool nt_recovery_is_over(const struct nt_recovery *recovery, const struct nt_rules *rules,
			 uint64_t end_ns, uint32_t absent);

#endif
