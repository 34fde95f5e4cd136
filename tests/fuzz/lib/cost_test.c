/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A target that exceeds its cost as its first byte says, so that each bound is seen to hold. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "tests/fuzz/lib/cost.h"

static void allocate(size_t bytes, int times)
{
	for (int i = 0; i < times; i++) {
		nt_autofree char *block = malloc(bytes);

		__asm__ volatile("" : : "r"(block) : "memory");
	}
}

static void loop(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		for (size_t j = 0; j < size; j++)
			__asm__ volatile("" : : "r"(data[j]));
}

static void search(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		__asm__ volatile("" : : "r"(memchr(data + i, '\n', size - i)) : "memory");
}

/* As a library would that nobody counts. */
__attribute__((noinline, no_sanitize("coverage"))) static void burn(void)
{
	const clock_t end = clock() + CLOCKS_PER_SEC / 5;

	while (clock() < end)
		;
}

static int run(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0]) {
	case 'p':
		allocate(2 << 20, 1);
		break;
	case 't':
		allocate(512 << 10, 100);
		break;
	case 's':
		loop(data, size);
		break;
	case 'l':
		search(data, size);
		break;
	case 'c':
		burn();
		break;
	}
	return 0;
}

FUZZ_TARGET(run, .peak = {1 << 20, 64}, .steps = {10000, 50})
