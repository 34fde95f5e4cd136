/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The jobs of the tests of profiler plugins: two ranks in one process, and what the counting plugin has seen
 * of them. Each test is a process of its own.
 */
#ifndef NT_SIM_PROFILED_JOB_H
#define NT_SIM_PROFILED_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/sim/job.h"
#include "tests/sim/lib/nccl/nccl.h"
#include "tests/sim/lib/nccl/profiler_interface.h"
#include "tests/sim/profiler/counting_plugin.h"

enum {
	RANKS = 2,
	COUNT = 1000,
	CHANNELS = 2, /* of a collective */
	MS = 1000000,
	ALL_EVENTS = 0x0fff,
	KERNELS = SIM_PROFILE_KERNEL_CH,
};

extern struct sim_plugin_counts *seen; /* the file that the plugin writes */
extern ncclComm_t comm[RANKS];
extern cudaStream_t stream[RANKS];
extern float *buffer[RANKS];
extern unsigned int failures;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)printf("# %s:%d: %s\n", __func__, __LINE__, #condition);             \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

#define CHECK_COUNT(value, wanted)                                                                 \
	do {                                                                                       \
		unsigned long long is_ = (value), wanted_ = (wanted);                              \
		if (is_ != wanted_) {                                                              \
			(void)printf("# %s:%d: %s is %llu, not %llu\n", __func__, __LINE__,        \
				     #value, is_, wanted_);                                        \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

#define NUMBER(bit)  ((size_t)__builtin_ctz(bit))
#define STARTED(bit) (seen->started[NUMBER(SIM_PROFILE_##bit)])
#define STOPPED(bit) (seen->stopped[NUMBER(SIM_PROFILE_##bit)])
#define AGAIN(bit)   (seen->stopped_again[NUMBER(SIM_PROFILE_##bit)])
#define THREADS(bit) (seen->threads[NUMBER(SIM_PROFILE_##bit)])

#define BOTH(call)                                                                                 \
	do {                                                                                       \
		for (int r = 0; r < RANKS; r++) {                                                  \
			device(r);                                                                 \
			CHECK((call) == ncclSuccess);                                              \
		}                                                                                  \
	} while (0)

/* The release that is played, the plugin by its name, and the mask that its init sets. */
void use(const char *release, const char *plugin, int mask);
void set(const char *name, const char *value);
/* Any time later, as a plugin may. */
void set_mask(int mask);
int mask_now(void);

void device(int rank);
void open_ranks(void);
void close_ranks(void);
/* A rank of its own: of rank 0 the stream and the buffer are made too. */
void open_single(ncclComm_t *ret);
void wait_all(void);
/* So many of each rank, outside of groups; waits for them. */
void all_reduce(int times);
/* A kernel of the job itself. */
void run_kernel(int rank, uint64_t ns);

/* What a thread of the library counts, it counts in time. */
bool comes(const uint64_t *count, uint64_t wanted);
void no_errors(void);
/* As the GPU's clock, CLOCK_REALTIME. */
uint64_t time_of_day(void);

/* ---- the tests, by file ---- */

struct profiler_test {
	const char *name; /* NULL: the last one */
	void (*run)(void);
};

#define TEST(test)                                                                                 \
	{                                                                                          \
#test, test                                                                        \
	}

extern const struct profiler_test event_tests[], loading_tests[], mask_tests[], time_tests[],
	graph_tests[];
/* The folder of the libraries; shared with the processes of tests. */
extern const char *library_folder;
extern unsigned int *static_inits;

#endif
