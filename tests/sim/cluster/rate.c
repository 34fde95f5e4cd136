/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/rate.h"

#include <stdio.h>

void cl_rate_print(const char *before, uint32_t part, uint32_t whole)
{
	if (whole)
		(void)printf("%s%.4f", before, (double)part / whole);
	else
		(void)printf("%s-", before);
}
