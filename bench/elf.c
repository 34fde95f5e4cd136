/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The CPU time of looking up the whole table of probes in each file, and the memory of it all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/elf/elf.h"
#include "agent/probes/symbols.h"

enum {
	ROUNDS = 11,
};

static double cpu_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int by_size(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static void measure(const char *path)
{
	static struct nt_symbols symbols;
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	double took[ROUNDS];
	int r = 0;

	symbols = (struct nt_symbols){0};
	for (size_t i = 0; i < ROUNDS; i++) {
		double begin = cpu_ms();

		r = nt_symbols_read(fd, NULL, NT_LIBRARY_UNKNOWN, &symbols);
		took[i] = cpu_ms() - begin;
	}
	qsort(took, ROUNDS, sizeof(*took), by_size);
	printf("%8.3f ms (%.3f to %.3f)  %3u rows%s  %s%s%s\n", took[ROUNDS / 2], took[0],
	       took[ROUNDS - 1], symbols.count, symbols.passed_over ? ", .symtab too large" : "",
	       path, r < 0 ? ": " : "", r < 0 ? strerrordesc_np(-r) : "");
}

int main(int argc, char **argv)
{
	struct rusage usage;

	for (int i = 1; i < argc; i++)
		measure(argv[i]);
	(void)getrusage(RUSAGE_SELF, &usage);
	printf("peak memory %ld KiB\n", usage.ru_maxrss);
	return 0;
}
