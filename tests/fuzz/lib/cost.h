/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What one input of a fuzz target may cost: bounds that are linear in its size. A run beyond one of
 * them aborts, and libFuzzer keeps the input.
 *
 * Memory is what passes through malloc(), counted exactly. A step is an edge of the program's control
 * flow, or 16 bytes that a function of the C library compares, searches or copies: a count that is the
 * same in every run and on every machine. Time of the processor only stands for what neither
 * counts, in foreign libraries: 50 ns for each step come on top of its bound, and it is exceeded when
 * four runs in a row were.
 */
#ifndef NT_TESTS_FUZZ_COST_H
#define NT_TESTS_FUZZ_COST_H

#include <stddef.h>
#include <stdint.h>

/* fixed + per_byte * size of the input. */
struct fuzz_bound {
	uint64_t fixed, per_byte;
};

struct fuzz_cost {
	struct fuzz_bound peak; /* bytes allocated at once */
	/* bytes allocated one after the other; zeroes: 16 times the peak */
	struct fuzz_bound total;
	struct fuzz_bound steps;
	struct fuzz_bound cpu_ns; /* zeroes: 50 ms + 1 us a byte */
};

/* Calls run(data, size) and holds it to its cost. Returns what it returned. */
int fuzz_run(const struct fuzz_cost *cost, int (*run)(const uint8_t *data, size_t size),
	     const uint8_t *data, size_t size);

/* For what stands in for a function that goes over so many bytes: they are steps. */
void fuzz_count_bytes(size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The target of a program: static int run(const uint8_t *, size_t), and members of struct fuzz_cost. */
#define FUZZ_TARGET(run, ...)                                                                      \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                               \
	{                                                                                          \
		static const struct fuzz_cost cost = {__VA_ARGS__};                                \
		return fuzz_run(&cost, run, data, size);                                           \
	}

#endif
