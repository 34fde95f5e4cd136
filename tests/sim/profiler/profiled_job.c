/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/profiler/profiled_job.h"

#include <stdlib.h>
#include <time.h>

#include "tests/sim/lib/standin.h"

enum {
	PATIENCE_MS = 20000,
};

struct sim_plugin_counts *seen;
ncclComm_t comm[RANKS];
cudaStream_t stream[RANKS];
float *buffer[RANKS];
unsigned int failures;

static const struct sim_function timed = {.magic = SIM_FUNCTION_MAGIC, .kind = SIM_FUNCTION_TIMED};

void set(const char *name, const char *value)
{
	CHECK(setenv(name, value, 1) == 0);
}

void use(const char *release, const char *plugin, int mask)
{
	char text[16];

	set("SIM_NCCL_VERSION", release);
	set("NCCL_PROFILER_PLUGIN", plugin);
	(void)snprintf(text, sizeof(text), "%d", mask);
	set("SIM_PLUGIN_MASK", text);
}

void set_mask(int mask)
{
	__atomic_store_n((int *)(uintptr_t)seen->mask, mask, __ATOMIC_RELAXED);
}

void device(int rank)
{
	CHECK(cudaSetDevice(rank) == cudaSuccess);
}

void open_ranks(void)
{
	CHECK(ncclCommInitAll(comm, RANKS, NULL) == ncclSuccess);
	for (int r = 0; r < RANKS; r++) {
		device(r);
		CHECK(cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking) == 0);
		CHECK(cudaMalloc((void **)&buffer[r], (1 << 20) * sizeof(float)) == 0);
	}
}

void close_ranks(void)
{
	for (int r = 0; r < RANKS; r++)
		CHECK(ncclCommDestroy(comm[r]) == ncclSuccess);
}

void wait_all(void)
{
	for (int r = 0; r < RANKS; r++) {
		device(r);
		CHECK(cudaStreamSynchronize(stream[r]) == cudaSuccess);
	}
}

void all_reduce(int times)
{
	for (int i = 0; i < times; i++)
		for (int r = 0; r < RANKS; r++) {
			device(r);
			CHECK(ncclAllReduce(buffer[r], buffer[r], COUNT, ncclFloat32, ncclSum,
					    comm[r], stream[r]) == ncclSuccess);
		}
	wait_all();
}

bool comes(const uint64_t *count, uint64_t wanted)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (__atomic_load_n(count, __ATOMIC_SEQ_CST) >= wanted)
			return true;
		sim_sleep_ns(MS);
	}
	return false;
}

void no_errors(void)
{
	if (seen->errors) {
		(void)printf("# %llu rules were broken: %s\n", (unsigned long long)seen->errors,
			     seen->error);
		failures++;
	}
}

uint64_t time_of_day(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

int mask_now(void)
{
	return __atomic_load_n((int *)(uintptr_t)seen->mask, __ATOMIC_RELAXED);
}

void open_single(ncclComm_t *ret)
{
	ncclUniqueId id;

	CHECK(ncclGetUniqueId(&id) == ncclSuccess);
	CHECK(ncclCommInitRank(ret, 1, id, 0) == ncclSuccess);
	if (stream[0])
		return;
	CHECK(cudaStreamCreateWithFlags(&stream[0], cudaStreamNonBlocking) == 0);
	CHECK(cudaMalloc((void **)&buffer[0], COUNT * sizeof(float)) == 0);
}

void run_kernel(int rank, uint64_t ns)
{
	void *args[] = {&ns};
	dim3 one = {1, 1, 1};

	device(rank);
	CHECK(cudaLaunchKernel(&timed, one, one, args, 0, stream[rank]) == cudaSuccess);
}
