/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/oom/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	MAX_ALLOCATIONS = 100000, /* of one run: a sweep is quadratic */
};

static struct {
	bool on;
	bool rest; /* all behind the failing one fail too */
	size_t fail_at; /* counted from 1; 0: none */
	size_t count, failures;
} state;

static bool fails(void)
{
	if (!state.on)
		return false;
	state.count++;
	if (!state.fail_at || state.count < state.fail_at)
		return false;
	if (state.count > state.fail_at && !state.rest)
		return false;
	state.failures++;
	errno = ENOMEM;
	return true;
}

/* The linker turns a call of f() into one of __wrap_f(), and __real_f() into f(). */
#define WRAP(type, name, params, args)                                                             \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		if (fails())                                                                       \
			return NULL;                                                               \
		return __real_##name args;                                                         \
	}

WRAP(void *, malloc, (size_t size), (size))
WRAP(void *, calloc, (size_t count, size_t size), (count, size))
WRAP(void *, realloc, (void *old, size_t size), (old, size))
WRAP(void *, reallocarray, (void *old, size_t count, size_t size), (old, count, size))
WRAP(char *, strdup, (const char *text), (text))
WRAP(char *, strndup, (const char *text, size_t len), (text, len))
WRAP(void *, aligned_alloc, (size_t align, size_t size), (align, size))

int __real_posix_memalign(void **ret, size_t align, size_t size);
int __wrap_posix_memalign(void **ret, size_t align, size_t size);
int __wrap_posix_memalign(void **ret, size_t align, size_t size)
{
	return fails() ? ENOMEM : __real_posix_memalign(ret, align, size);
}

int __real_vasprintf(char **ret, const char *fmt, va_list args);
int __wrap_vasprintf(char **ret, const char *fmt, va_list args);
int __wrap_vasprintf(char **ret, const char *fmt, va_list args)
{
	return fails() ? -1 : __real_vasprintf(ret, fmt, args);
}

int __wrap_asprintf(char **ret, const char *fmt, ...);
int __wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = __wrap_vasprintf(ret, fmt, args);
	va_end(args);
	return n;
}

/* The one that is given next: another one after a run, and the run has left something open. */
static int free_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)close(fd);
	return fd;
}

static int run(nt_oom_fn fn, void *data, size_t fail_at, bool rest)
{
	const int descriptor = free_descriptor();
	int r;

	memset(&state, 0, sizeof(state));
	state.fail_at = fail_at;
	state.rest = rest;
	state.on = true;
	r = fn(data);
	state.on = false;
	if (fail_at && free_descriptor() != descriptor)
		fail_msg("allocation %zu failed, and a descriptor is left open", fail_at);
	return r;
}

static size_t sweep(nt_oom_fn fn, void *data, bool strict)
{
	for (size_t n = 1; n < MAX_ALLOCATIONS; n++) {
		for (int rest = 0; rest < 2; rest++) {
			int r = run(fn, data, n, rest);

			if (!state.failures) {
				if (r != 0)
					fail_msg("without a failed allocation: %d", r);
				if (n == 1)
					fail_msg("the code under test allocates nothing");
				return n - 1;
			}
			if (strict && r != -ENOMEM)
				fail_msg("allocation %zu%s failed, and the result is %d", n,
					 rest ? " and all behind it" : "", r);
		}
	}
	fail_msg("more than %d allocations", MAX_ALLOCATIONS);
	return 0;
}

size_t nt_oom_sweep(nt_oom_fn fn, void *data)
{
	return sweep(fn, data, true);
}

size_t nt_oom_sweep_lenient(nt_oom_fn fn, void *data)
{
	return sweep(fn, data, false);
}

void nt_oom_use_one_processor(void)
{
	const int cpu = sched_getcpu();
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu < 0 ? 0 : cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}
