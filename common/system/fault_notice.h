/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rate limit for messages about a faulty dependency. There is one message for each cause when it
 * begins, and one when there has been no fault for a while. A flapping fault does not flood the
 * log.
 */
#ifndef NT_COMMON_SYSTEM_FAULT_NOTICE_H
#define NT_COMMON_SYSTEM_FAULT_NOTICE_H

#include <stdint.h>

/* All zero: well. */
struct nt_fault_notice {
	uint32_t reported; /* causes reported since the last recovery, as bits */
	uint64_t well_ns; /* start of recovery, if a cause was reported; 0: not well */
};

enum nt_fault_notice_news {
	NT_FAULT_NOTICE_NONE,
	NT_FAULT_NOTICE_BEGINS, /* of this cause */
	NT_FAULT_NOTICE_ENDS,
};

/* Call about once a second. The cause is under 32; 0: well. Monotonic time. */
enum nt_fault_notice_news nt_fault_notice_look(struct nt_fault_notice *fault_notice,
					       unsigned int cause, uint64_t now_ns);

#endif
