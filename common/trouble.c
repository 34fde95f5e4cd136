/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/trouble.h"

#include <stdbool.h>

#include "common/clock.h"

#define WELL_NS (5 * NT_SECOND)

enum nt_trouble_news nt_trouble_look(struct nt_trouble *trouble, unsigned int cause,
				     uint64_t now_ns)
{
	const uint32_t bit = 1U << (cause & 31);

	if (cause) {
		const bool is_new = !(trouble->told & bit);

		trouble->told |= bit;
		trouble->well_ns = 0;
		return is_new ? NT_TROUBLE_BEGINS : NT_TROUBLE_NONE;
	}
	if (!trouble->told)
		return NT_TROUBLE_NONE;
	if (!trouble->well_ns)
		trouble->well_ns = now_ns;
	if (now_ns - trouble->well_ns < WELL_NS)
		return NT_TROUBLE_NONE;
	*trouble = (struct nt_trouble){0};
	return NT_TROUBLE_ENDS;
}
