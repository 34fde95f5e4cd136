/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many seeds a test plays: 1, or NT_SIM_SEEDS (make check-more). */
#ifndef NT_TESTS_UNIT_SIM_SEEDS_H
#define NT_TESTS_UNIT_SIM_SEEDS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse_number.h"

static inline uint32_t sim_seeds(void)
{
	const char *text = getenv("NT_SIM_SEEDS");
	uint64_t seeds;

	return text && nt_parse_u64(text, strlen(text), 1, 1000, &seeds) == 0 ? (uint32_t)seeds : 1;
}

#endif
