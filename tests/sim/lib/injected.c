/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a test names in CUDA_INJECTION64_PATH: counts how often it was initialised. */
#include "tests/sim/lib/cuda.h"

int InitializeInjection(void);

unsigned int sim_injected;

int InitializeInjection(void)
{
	sim_injected++;
	(void)cuInit(0); /* does not end here again */
	return 1;
}
