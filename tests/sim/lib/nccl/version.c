/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PLAYED = 22809,
};

/* The last release of each. */
static const struct {
	const char *text;
	int version;
} releases[] = {{"2.23", 22304}, {"2.24", 22403}, {"2.25", 22501}, {"2.26", 22606},
		{"2.27", 22707}, {"2.28", 22809}, {"2.29", 22907}, {"2.30", 23007},
		{"2.31", 23102}, {"2.32", 23203}};

int sim_nccl_version(void)
{
	const char *wanted = getenv("SIM_NCCL_VERSION");

	if (!wanted)
		return PLAYED;
	for (size_t i = 0; i < sizeof(releases) / sizeof(*releases); i++)
		if (strcmp(wanted, releases[i].text) == 0)
			return releases[i].version;
	(void)fprintf(stderr, "libnccl: SIM_NCCL_VERSION=%s is none of 2.23 to 2.32\n", wanted);
	abort();
}

int sim_nccl_minor(void)
{
	static int minor; /* atomic; 0: not read yet */
	int value = __atomic_load_n(&minor, __ATOMIC_RELAXED);

	if (value == 0) {
		value = sim_nccl_version() / 100 % 100;
		__atomic_store_n(&minor, value, __ATOMIC_RELAXED);
	}
	return value;
}
