/* SPDX-License-Identifier: GPL-3.0-or-later */
/* This file is built without sanitizers and coverage: what measures is not measured. */
#include "tests/fuzz/lib/cost.h"

#include <errno.h>
#include <inttypes.h>
#include <sanitizer/allocator_interface.h>
#include <sanitizer/asan_interface.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/system/clock.h"

enum {
	LIBRARY_STEP_BYTES = 16,
	CPU_TRIES = 3, /* beside the first */
	STEP_NS = 50, /* what a counted step may take on the slowest of machines */
	GROW_ONE_IN = 256, /* mutations of which one makes the input much larger */
	MUTATED_BYTES = 4096, /* to which libFuzzer's own mutations may let a smaller input grow */
};

/* Signed: what was allocated before a run may be freed in it. */
struct usage {
	int64_t live, peak, total;
};

static struct usage usage;
static uint64_t steps;
static bool is_measuring;

struct measured {
	uint64_t peak, total, steps, cpu_ns;
};

/* The most that any run took, in thousandths of its bound. */
static struct measured worst;

/* ---- memory ------------------------------------------------------------------------------------- */

static void on_malloc(const volatile void *ptr, size_t size)
{
	(void)ptr;
	if (!is_measuring)
		return;
	usage.total += (int64_t)size;
	usage.live += (int64_t)size;
	if (usage.peak < usage.live)
		usage.peak = usage.live;
}

static void on_free(const volatile void *ptr)
{
	if (is_measuring && ptr)
		usage.live -= (int64_t)__sanitizer_get_allocated_size(ptr);
}

/* ---- steps -------------------------------------------------------------------------------------- */

/* libFuzzer has a use of its own, long gone, for these two names: --wrap gives them to us. */
void __wrap___sanitizer_cov_trace_pc_guard(uint32_t *guard);
void __wrap___sanitizer_cov_trace_pc_guard_init(uint32_t *start, const uint32_t *stop);

void __wrap___sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
	(void)guard;
	steps++;
}

void __wrap___sanitizer_cov_trace_pc_guard_init(uint32_t *start, const uint32_t *stop)
{
	(void)start;
	(void)stop;
}

void fuzz_count_bytes(size_t bytes)
{
	steps += bytes / LIBRARY_STEP_BYTES;
}

/* A function of the library, and the bytes that it went over. */
#define COUNTED(type, name, params, args, bytes)                                                   \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		type r = __real_##name args;                                                       \
		fuzz_count_bytes(bytes);                                                           \
		return r;                                                                          \
	}

/* clang-format off */
COUNTED(void *, memchr, (const void *at, int c, size_t n), (at, c, n),
	r ? (size_t)((const char *)r - (const char *)at) : n)
COUNTED(void *, memmem, (const void *at, size_t n, const void *what, size_t len), (at, n, what, len),
	r ? (size_t)((const char *)r - (const char *)at) : n)
COUNTED(int, memcmp, (const void *a, const void *b, size_t n), (a, b, n), r ? 0 : n)
COUNTED(size_t, strlen, (const char *text), (text), r)
COUNTED(size_t, strnlen, (const char *text, size_t n), (text, n), r)
COUNTED(size_t, strspn, (const char *text, const char *set), (text, set), r)
COUNTED(size_t, strcspn, (const char *text, const char *set), (text, set), r)
COUNTED(char *, strchr, (const char *text, int c), (text, c),
	r ? (size_t)(r - text) : __real_strlen(text))
COUNTED(char *, strrchr, (const char *text, int c), (text, c), __real_strlen(text))
COUNTED(char *, strstr, (const char *text, const char *what), (text, what),
	r ? (size_t)(r - text) : __real_strlen(text))
COUNTED(char *, strdup, (const char *text), (text), __real_strlen(text))
COUNTED(char *, strndup, (const char *text, size_t n), (text, n), r ? __real_strlen(r) : 0)
COUNTED(int, strcmp, (const char *a, const char *b), (a, b), r ? 0 : __real_strlen(a))
COUNTED(void *, __asan_memcpy, (void *to, const void *from, size_t n), (to, from, n), n)
COUNTED(void *, __asan_memmove, (void *to, const void *from, size_t n), (to, from, n), n)
COUNTED(void *, __asan_memset, (void *to, int c, size_t n), (to, c, n), n)
/* clang-format on */

/* Built without sanitizers, which would make a sum of all that there is: see tests/make/test.mk. */
uint32_t __real_nt_crc32c(uint32_t crc, const void *data, size_t size);
uint32_t __wrap_nt_crc32c(uint32_t crc, const void *data, size_t size);

uint32_t __wrap_nt_crc32c(uint32_t crc, const void *data, size_t size)
{
	if (__asan_region_is_poisoned((void *)(uintptr_t)data, size))
		abort();
	fuzz_count_bytes(size);
	return __real_nt_crc32c(crc, data, size);
}

/* ---- a run -------------------------------------------------------------------------------------- */

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NT_SECOND + (uint64_t)now.tv_nsec;
}

static int measure(int (*run)(const uint8_t *data, size_t size), const uint8_t *data, size_t size,
		   clockid_t clock, struct measured *ret_measured)
{
	const uint64_t start_ns = read_clock(clock);
	uint64_t taken;
	int r;

	usage = (struct usage){0};
	steps = 0;
	is_measuring = true;
	r = run(data, size);
	is_measuring = false;
	taken = steps;
	*ret_measured = (struct measured){
		.peak = (uint64_t)usage.peak,
		.total = (uint64_t)usage.total,
		.steps = taken,
		.cpu_ns = read_clock(clock) - start_ns,
	};
	return r;
}

static uint64_t allowed(const struct fuzz_bound *bound, size_t size)
{
	return bound->fixed + bound->per_byte * size;
}

static void check(const char *what, uint64_t took, const struct fuzz_bound *bound, size_t size,
		  uint64_t *worst_permille)
{
	const uint64_t most = allowed(bound, size);
	const uint64_t permille = took * 1000 / (most ? most : 1);

	if (*worst_permille < permille)
		*worst_permille = permille;
	if (took <= most)
		return;
	(void)fprintf(stderr,
		      "%s: an input of %zu bytes cost %" PRIu64 " %s; its bound is %" PRIu64
		      " (%" PRIu64 " + %" PRIu64 " a byte)\n",
		      program_invocation_short_name, size, took, what, most, bound->fixed,
		      bound->per_byte);
	abort();
}

static void report(void)
{
	(void)fprintf(stderr,
		      "cost: at most %" PRIu64 " %% of the bound in peak, %" PRIu64
		      " %% in total, %" PRIu64 " %% in steps, %" PRIu64 " %% in time\n",
		      worst.peak / 10, worst.total / 10, worst.steps / 10, worst.cpu_ns / 10);
}

/* What was freed stays apart for as long as a run lasts, and no longer: fresh pages are slow. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=8";
}

static void start(void)
{
	static bool has_started;

	if (has_started)
		return;
	has_started = true;
	if (!__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) || atexit(report))
		abort();
}

int fuzz_run(const struct fuzz_cost *cost, int (*run)(const uint8_t *data, size_t size),
	     const uint8_t *data, size_t size)
{
	struct fuzz_bound total = cost->total, cpu_ns = cost->cpu_ns;
	struct measured measured, again;
	int r;

	if (!total.fixed)
		total = (struct fuzz_bound){16 * cost->peak.fixed, 16 * cost->peak.per_byte};
	if (!cpu_ns.fixed)
		cpu_ns = (struct fuzz_bound){50000000, 1000};
	start();
	r = measure(run, data, size, CLOCK_MONOTONIC, &measured);
	cpu_ns.fixed += measured.steps * STEP_NS;
	for (int i = 0; i < CPU_TRIES && measured.cpu_ns > allowed(&cpu_ns, size); i++) {
		(void)measure(run, data, size, CLOCK_THREAD_CPUTIME_ID, &again);
		if (measured.cpu_ns > again.cpu_ns)
			measured.cpu_ns = again.cpu_ns;
	}
	check("bytes of memory at once", measured.peak, &cost->peak, size, &worst.peak);
	check("bytes of memory in total", measured.total, &total, size, &worst.total);
	check("steps", measured.steps, &cost->steps, size, &worst.steps);
	check("ns of processor time", measured.cpu_ns, &cpu_ns, size, &worst.cpu_ns);
	return r;
}

/* ---- inputs that are large ---------------------------------------------------------------------- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);

static uint32_t draw(uint32_t *seed, size_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return below ? (*seed >> 8) % below : 0;
}

/* Repeats a piece of the input until it is of a size that is as likely small as large. */
static size_t grow(uint8_t *data, size_t size, size_t max, uint32_t *seed)
{
	const size_t from = draw(seed, size),
		     len = 1 + draw(seed, size - from < 256 ? size - from : 256);
	size_t until = (size_t)64 << draw(seed, 16);
	size_t more;

	if (until > max)
		until = max;
	if (from + len > size || until <= size)
		return 0;
	more = (until - size) / len * len;
	memmove(data + from + len + more, data + from + len, size - from - len);
	for (size_t at = from + len; at < from + len + more; at += len)
		memcpy(data + at, data + from, len);
	return size + more;
}

/* A cost that is not linear shows where the input is large, to which libFuzzer takes hours. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	size_t grown = 0;

	if (size && draw(&seed, GROW_ONE_IN) == 0)
		grown = grow(data, size, max, &seed);
	if (grown)
		return grown;
	if (max > MUTATED_BYTES)
		max = size > MUTATED_BYTES ? size : MUTATED_BYTES;
	return LLVMFuzzerMutate(data, size, max);
}
