/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/system/fault_notice.h"

#include <stdbool.h>

#include "common/system/clock.h"

#define WELL_NS (5 * NT_SECOND)

enum nt_fault_notice_news nt_fault_notice_look(struct nt_fault_notice *fault_notice,
					       unsigned int cause, uint64_t now_ns)
{
	const uint32_t bit = 1U << (cause & 31);

	if (cause) {
		const bool is_new = !(fault_notice->reported & bit);

		fault_notice->reported |= bit;
		fault_notice->well_ns = 0;
		return is_new ? NT_FAULT_NOTICE_BEGINS : NT_FAULT_NOTICE_NONE;
	}
	if (!fault_notice->reported)
		return NT_FAULT_NOTICE_NONE;
	if (!fault_notice->well_ns)
		fault_notice->well_ns = now_ns;
	if (now_ns - fault_notice->well_ns < WELL_NS)
		return NT_FAULT_NOTICE_NONE;
	*fault_notice = (struct nt_fault_notice){0};
	return NT_FAULT_NOTICE_ENDS;
}
