/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Failed allocations, swept: a test gives a function that uses the code under test and returns its
 * result; it is run with the first allocation failing, then the second, and so on until it gets by
 * without a failure. Leaks and bad accesses are the sanitizers' to find. Allocations of shared
 * libraries are not reached (the linker wraps the calls of our own objects).
 */
#ifndef NT_TESTS_OOM_H
#define NT_TESTS_OOM_H

#include <stddef.h>

/* 0, or the negative errno that the code under test returned. Must clean up after itself. */
typedef int (*nt_oom_fn)(void *data);

/*
 * Fails the cmocka test unless fn returns -ENOMEM for every failed allocation and 0 without one.
 * Each n is tried twice: this one allocation fails, or it and all behind it. Returns the number of
 * allocations that a good run makes.
 */
size_t nt_oom_sweep(nt_oom_fn fn, void *data);

/* The same for code that may go on without what it did not get: any result but a crash is fine. */
size_t nt_oom_sweep_lenient(nt_oom_fn fn, void *data);

/*
 * Binds the process to one processor: code that starts a thread for each then starts none, and the
 * n-th allocation is the same one in every run.
 */
void nt_oom_use_one_processor(void);

#endif
