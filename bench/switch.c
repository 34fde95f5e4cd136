/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What system events cost a context switch, and how long they take to attach and to detach: medians.
 *
 *	switch [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/system/system.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"

enum {
	ROUNDS_MAX = 1000,
	ROUNDS = 15,
};

static int by_size(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static void print_median(const char *what, const char *unit, uint64_t *value, int rounds)
{
	qsort(value, (size_t)rounds, sizeof(*value), by_size);
	printf("%-52s %8llu %s (%llu to %llu)\n", what, (unsigned long long)value[rounds / 2], unit,
	       (unsigned long long)value[rounds / 4],
	       (unsigned long long)value[rounds - 1 - rounds / 4]);
}

int main(int argc, char **argv)
{
	static uint64_t passed[ROUNDS_MAX], thread[ROUNDS_MAX], attach[ROUNDS_MAX],
		detach[ROUNDS_MAX];
	const struct nt_system_options options = {.ring_bytes = 64 << 10, .events_max = 1000};
	uint64_t wanted;
	int rounds = ROUNDS;

	if (argc > 1 && nt_parse_u64(argv[1], strlen(argv[1]), 1, ROUNDS_MAX, &wanted) == 0)
		rounds = (int)wanted;
	for (int i = 0; i < rounds; i++) {
		struct nt_system_stats stats;
		struct nt_system *system;
		uint64_t start_ns;
		int r = nt_system_new(&options, &system);

		if (r < 0) {
			fprintf(stderr, "load the tracepoints: %s\n", strerrordesc_np(-r));
			return 1;
		}
		nt_system_stats(system, &stats);
		passed[i] = stats.switch_ns;
		thread[i] = stats.side_ns;
		start_ns = nt_clock_mono_ns();
		nt_system_enrol(system, (uint32_t)getpid(), 1, 1);
		attach[i] = (nt_clock_mono_ns() - start_ns) / NT_MICROSECOND;
		start_ns = nt_clock_mono_ns();
		nt_system_leave(system, (uint32_t)getpid(), 1);
		detach[i] = (nt_clock_mono_ns() - start_ns) / NT_MICROSECOND;
		nt_system_free(system);
	}
	print_median("a context switch of other processes", "ns", passed, rounds);
	print_median("each observed thread in it, in addition", "ns", thread, rounds);
	print_median("attaching all tracepoints, with the first rank", "us", attach, rounds);
	print_median("detaching all", "us", detach, rounds);
	return 0;
}
