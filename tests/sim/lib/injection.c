/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/injection.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* Recursive: the library may initialise CUDA itself. */
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static bool loaded;

static void load(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*initialize)(void) = NULL;
	void *library;

	if (!path || !path[0])
		return;
	library = dlopen(path, RTLD_NOW);
	if (!library)
		return;
	*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		(void)initialize();
}

void sim_injection_load(void)
{
	(void)pthread_mutex_lock(&mutex);
	if (!loaded) {
		loaded = true;
		load();
	}
	(void)pthread_mutex_unlock(&mutex);
}
