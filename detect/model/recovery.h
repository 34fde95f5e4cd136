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
	/* end of the last window that cost half of the floor and of the fault; see recovery.c */
	uint64_t bad_ns;
};

/* Adds a window; `whole`: cost of the fault as a whole, as far as known. */
void nt_recovery_add(struct nt_recovery *recovery, const struct nt_rules *rules, uint64_t start_ns,
		     uint64_t end_ns, double cost, double whole);
/* Whether the last max(resolve_min, resolve_windows) cost less than half the floor on average. */
bool nt_recovery_is_over(const struct nt_recovery *recovery, const struct nt_rules *rules,
			 uint64_t end_ns);

#endif
