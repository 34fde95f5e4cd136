/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * When to say that something is wrong with what we depend on: once for each cause when it begins, and
 * once when all has been well for a while. What flickers fills no log.
 */
#ifndef NT_COMMON_SYSTEM_FAULT_NOTICE_H
#define NT_COMMON_SYSTEM_FAULT_NOTICE_H

#include <stdint.h>

/* Zeroes: all is well. */
struct nt_fault_notice {
	uint32_t told; /* causes, as bits, since all was well last */
	uint64_t well_ns; /* since when, where something was told; 0: it is not well */
};

enum nt_fault_notice_news {
	NT_FAULT_NOTICE_NONE,
	NT_FAULT_NOTICE_BEGINS, /* of this cause */
	NT_FAULT_NOTICE_ENDS,
};

/* Every second or so. The cause is under 32; 0: all is well. Monotonic time. */
enum nt_fault_notice_news nt_fault_notice_look(struct nt_fault_notice *fault_notice,
					       unsigned int cause, uint64_t now_ns);

#endif
