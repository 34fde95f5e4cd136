/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stand-in libraries do what the tests of the product rely on. Four ranks in one process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/job.h"
#include "tests/sim/lib/nccl/nccl.h"
#include "tests/sim/lib/standin.h"

enum {
	RANKS = 4,
	COUNT = 1000,
	MS = 1000000,
};

static ncclComm_t comm[RANKS];
static cudaStream_t stream[RANKS];
static float *sent[RANKS], *received[RANKS];
static unsigned int failures, tests;

static const struct sim_function timed = {.magic = SIM_FUNCTION_MAGIC, .kind = SIM_FUNCTION_TIMED};

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)printf("# %s:%d: %s\n", __func__, __LINE__, #condition);             \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static void kernel(cudaStream_t on, uint64_t ns)
{
	void *args[] = {&ns};
	dim3 one = {1, 1, 1};

	CHECK(cudaLaunchKernel(&timed, one, one, args, 0, on) == cudaSuccess);
}

static void device(int rank)
{
	CHECK(cudaSetDevice(rank) == cudaSuccess);
}

/* sent[r][i] = 1000 r + i; received is set to -1. */
static void fill(void)
{
	static float value[RANKS * COUNT];

	for (int r = 0; r < RANKS; r++) {
		device(r);
		for (int i = 0; i < RANKS * COUNT; i++)
			value[i] = (float)(1000 * r + i);
		CHECK(cudaMemcpy(sent[r], value, sizeof(value), cudaMemcpyHostToDevice) == 0);
		for (int i = 0; i < RANKS * COUNT; i++)
			value[i] = -1;
		CHECK(cudaMemcpy(received[r], value, sizeof(value), cudaMemcpyHostToDevice) == 0);
	}
}

static float at(int rank, int index)
{
	float value = -2;

	device(rank);
	CHECK(cudaMemcpy(&value, received[rank] + index, sizeof(value), cudaMemcpyDeviceToHost) ==
	      0);
	return value;
}

static void wait_all(void)
{
	for (int r = 0; r < RANKS; r++) {
		device(r);
		CHECK(cudaStreamSynchronize(stream[r]) == cudaSuccess);
	}
}

#define GROUP(call)                                                                                \
	do {                                                                                       \
		CHECK(ncclGroupStart() == ncclSuccess);                                            \
		for (int r = 0; r < RANKS; r++)                                                    \
			CHECK((call) == ncclSuccess);                                              \
		CHECK(ncclGroupEnd() == ncclSuccess);                                              \
		wait_all();                                                                        \
	} while (0)

static void all_reduce_sums_over_the_ranks(void)
{
	fill();
	GROUP(ncclAllReduce(sent[r], received[r], COUNT, ncclFloat32, ncclSum, comm[r], stream[r]));
	for (int r = 0; r < RANKS; r++)
		CHECK(at(r, 7) == 6000 + 4 * 7);
	GROUP(ncclAllReduceConfig(sent[r], received[r], COUNT, ncclFloat32, ncclMax, comm[r],
				  stream[r], NULL));
	CHECK(at(1, 7) == 3007);
	GROUP(ncclAllReduce(sent[r], received[r], COUNT, ncclFloat32, ncclAvg, comm[r], stream[r]));
	CHECK(at(1, 8) == 1508);
}

static void all_gather_puts_the_ranks_side_by_side(void)
{
	fill();
	GROUP(ncclAllGather(sent[r], received[r], COUNT, ncclFloat32, comm[r], stream[r]));
	for (int r = 0; r < RANKS; r++)
		CHECK(at(r, 2 * COUNT + 5) == 2005);
}

static void reduce_scatter_gives_each_its_block(void)
{
	fill();
	GROUP(ncclReduceScatter(sent[r], received[r], COUNT, ncclFloat32, ncclSum, comm[r],
				stream[r]));
	for (int r = 0; r < RANKS; r++)
		CHECK(at(r, 3) == (float)(6000 + 4 * (r * COUNT + 3)));
}

static void all_to_all_transposes(void)
{
	fill();
	GROUP(ncclAlltoAll(sent[r], received[r], COUNT, ncclFloat32, comm[r], stream[r]));
	CHECK(at(2, 1 * COUNT + 9) == 1000 + 2 * COUNT + 9);
}

static void rooted_calls_move_what_they_should(void)
{
	fill();
	GROUP(ncclBroadcast(sent[r], received[r], COUNT, ncclFloat32, 2, comm[r], stream[r]));
	CHECK(at(0, 1) == 2001);
	GROUP(ncclReduce(sent[r], received[r], COUNT, ncclFloat32, ncclSum, 1, comm[r], stream[r]));
	CHECK(at(1, 1) == 6004 && at(0, 1) == 2001);
	GROUP(ncclGather(sent[r], received[r], COUNT, ncclFloat32, 3, comm[r], stream[r]));
	CHECK(at(3, COUNT) == 1000);
	GROUP(ncclScatter(sent[r], received[r], COUNT, ncclFloat32, 1, comm[r], stream[r]));
	CHECK(at(2, 4) == 1000 + 2 * COUNT + 4);
}

static void sends_and_receives_of_a_group_do_not_block_each_other(void)
{
	fill();
	CHECK(ncclGroupStart() == ncclSuccess);
	for (int r = 0; r < RANKS; r++) {
		CHECK(ncclRecv(received[r], COUNT, ncclFloat32, (r + 3) % RANKS, comm[r],
			       stream[r]) == ncclSuccess);
		CHECK(ncclSend(sent[r], COUNT, ncclFloat32, (r + 1) % RANKS, comm[r], stream[r]) ==
		      ncclSuccess);
	}
	CHECK(ncclGroupEnd() == ncclSuccess);
	wait_all();
	CHECK(at(1, 6) == 6 && at(0, 6) == 3006);
}

static void split_communicators_reduce_among_their_members(void)
{
	ncclComm_t half[RANKS];
	int size = 0;

	fill();
	CHECK(ncclGroupStart() == ncclSuccess);
	for (int r = 0; r < RANKS; r++)
		CHECK(ncclCommSplit(comm[r], r == 3 ? NCCL_SPLIT_NOCOLOR : r % 2, -r, &half[r],
				    NULL) == ncclSuccess);
	CHECK(ncclGroupEnd() == ncclSuccess);
	CHECK(half[3] == NULL && half[0] && half[2]);
	CHECK(ncclCommUserRank(half[2], &size) == ncclSuccess && size == 0); /* by key */
	CHECK(ncclCommCount(half[0], &size) == ncclSuccess && size == 2);
	CHECK(ncclGroupStart() == ncclSuccess);
	for (int r = 0; r < 3; r++)
		CHECK(ncclAllReduce(sent[r], received[r], COUNT, ncclFloat32, ncclSum, half[r],
				    stream[r]) == ncclSuccess);
	CHECK(ncclGroupEnd() == ncclSuccess);
	wait_all();
	CHECK(at(0, 1) == 2002 && at(2, 1) == 2002 && at(1, 1) == 1001);
	for (int r = 0; r < 3; r++)
		CHECK(ncclCommDestroy(half[r]) == ncclSuccess);
}

static double ended_ms(cudaEvent_t from, cudaEvent_t to)
{
	float ms = -1;

	CHECK(cudaEventElapsedTime(&ms, from, to) == cudaSuccess);
	return (double)ms;
}

/* When each rank's stream is through `call`, rank 0 coming 50 ms after the others. */
static void time_of(bool broadcast, double *ret_ms)
{
	cudaEvent_t begin[RANKS], end[RANKS];

	for (int r = 0; r < RANKS; r++) {
		device(r);
		CHECK(cudaEventCreate(&begin[r]) == 0 && cudaEventCreate(&end[r]) == 0);
		CHECK(cudaEventRecord(begin[r], stream[r]) == 0);
		kernel(stream[r], r == 0 ? 60 * MS : 10 * MS);
	}
	CHECK(ncclGroupStart() == ncclSuccess);
	for (int r = 0; r < RANKS; r++)
		CHECK((broadcast ? ncclBroadcast(sent[r], received[r], COUNT, ncclFloat32, 3,
						 comm[r], stream[r])
				 : ncclAllReduce(sent[r], received[r], COUNT, ncclFloat32, ncclSum,
						 comm[r], stream[r])) == ncclSuccess);
	CHECK(ncclGroupEnd() == ncclSuccess);
	for (int r = 0; r < RANKS; r++) {
		device(r);
		CHECK(cudaEventRecord(end[r], stream[r]) == 0);
	}
	wait_all();
	for (int r = 0; r < RANKS; r++) {
		ret_ms[r] = ended_ms(begin[r], end[r]);
		CHECK(cudaEventDestroy(begin[r]) == 0 && cudaEventDestroy(end[r]) == 0);
	}
}

static void an_all_reduce_ends_for_all_when_the_last_has_come(void)
{
	double ms[RANKS];

	time_of(false, ms);
	for (int r = 0; r < RANKS; r++)
		CHECK(ms[r] > 59 && ms[r] < 70);
}

static void a_broadcast_waits_for_its_root_alone(void)
{
	double ms[RANKS];

	time_of(true, ms);
	CHECK(ms[0] > 59);
	for (int r = 1; r < RANKS; r++)
		CHECK(ms[r] > 9 && ms[r] < 20);
}

static void a_slow_nic_stretches_the_transfer(void)
{
	double healthy[RANKS], slow[RANKS];

	time_of(false, healthy);
	ncclSimSlowNic(2000);
	time_of(false, slow);
	ncclSimSlowNic(1);
	CHECK(slow[1] > healthy[1] + 20);
}

static void a_launch_returns_before_the_kernel_ends(void)
{
	uint64_t start = sim_now_ns(), launched;

	device(0);
	kernel(stream[0], 50 * MS);
	launched = sim_now_ns() - start;
	CHECK(cudaStreamQuery(stream[0]) == cudaErrorNotReady);
	CHECK(cudaStreamSynchronize(stream[0]) == cudaSuccess);
	CHECK(launched < 40 * MS && sim_now_ns() - start >= 50 * MS);
	CHECK(cudaStreamQuery(stream[0]) == cudaSuccess);
	(void)cudaGetLastError();
}

static void streams_run_beside_each_other_and_wait_by_events(void)
{
	cudaStream_t other;
	cudaEvent_t event;
	uint64_t start;

	device(0);
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == 0);
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == 0);
	start = sim_now_ns();
	kernel(stream[0], 40 * MS);
	kernel(other, 40 * MS);
	CHECK(cudaDeviceSynchronize() == cudaSuccess);
	CHECK(sim_now_ns() - start < 75 * MS);

	start = sim_now_ns();
	kernel(stream[0], 40 * MS);
	CHECK(cudaEventRecord(event, stream[0]) == 0);
	CHECK(cudaStreamWaitEvent(other, event, 0) == 0);
	kernel(other, 40 * MS);
	CHECK(cudaStreamSynchronize(other) == cudaSuccess);
	CHECK(sim_now_ns() - start >= 80 * MS);
	CHECK(cudaEventDestroy(event) == 0 && cudaStreamDestroy(other) == 0);
}

static void the_default_stream_waits_for_blocking_streams(void)
{
	cudaStream_t blocking;
	uint64_t start = sim_now_ns();

	device(0);
	CHECK(cudaStreamCreate(&blocking) == 0);
	kernel(blocking, 30 * MS);
	kernel(NULL, 30 * MS);
	kernel(blocking, 30 * MS);
	CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
	CHECK(sim_now_ns() - start >= 90 * MS);
	CHECK(cudaStreamDestroy(blocking) == 0);
}

static void set_flag(void *data)
{
	*(uint64_t *)data = sim_now_ns();
}

static void a_host_function_runs_at_its_place_in_the_stream(void)
{
	uint64_t called_ns = 0, start = sim_now_ns();

	device(0);
	kernel(stream[0], 30 * MS);
	CHECK(cudaLaunchHostFunc(stream[0], set_flag, &called_ns) == 0);
	kernel(stream[0], 10 * MS);
	CHECK(cudaStreamSynchronize(stream[0]) == cudaSuccess);
	CHECK(called_ns >= start + 30 * MS && sim_now_ns() >= called_ns + 10 * MS);
}

static void a_captured_collective_runs_with_each_launch_of_the_graph(void)
{
	cudaGraph_t graph[RANKS];
	cudaGraphExec_t exec[RANKS];

	fill();
	for (int r = 0; r < RANKS; r++) {
		device(r);
		CHECK(cudaStreamBeginCapture(stream[r], 0) == 0);
		kernel(stream[r], 10 * MS);
		CHECK(ncclAllReduce(received[r], received[r], COUNT, ncclFloat32, ncclSum, comm[r],
				    stream[r]) == ncclSuccess);
		CHECK(cudaStreamEndCapture(stream[r], &graph[r]) == 0);
		CHECK(cudaGraphInstantiate(&exec[r], graph[r], 0) == 0);
		CHECK(cudaGraphDestroy(graph[r]) == 0);
	}
	CHECK(at(0, 0) == -1); /* capturing ran nothing */
	for (int i = 0; i < 2; i++)
		for (int r = 0; r < RANKS; r++) {
			device(r);
			CHECK(cudaGraphLaunch(exec[r], stream[r]) == 0);
		}
	wait_all();
	for (int r = 0; r < RANKS; r++) {
		CHECK(at(r, 11) == -16);
		CHECK(cudaGraphExecDestroy(exec[r]) == 0);
	}
}

static void late_readers_find_rank_and_size_in_the_communicator(void)
{
	uint32_t rank, size;
	uint64_t magic[2];

	for (uint32_t r = 0; r < RANKS; r++) {
		const char *bytes = (const char *)comm[r];

		memcpy(&magic[0], bytes, sizeof(magic[0]));
		memcpy(&magic[1], bytes + 0x1044c0, sizeof(magic[1]));
		memcpy(&rank, bytes + 0x1044d0, sizeof(rank));
		memcpy(&size, bytes + 0x1044d4, sizeof(size));
		CHECK(magic[0] == 0x0280028002800280U && magic[1] == magic[0]);
		CHECK(rank == r && size == RANKS);
	}
}

static void wrong_arguments_are_refused(void)
{
	dim3 one = {1, 1, 1};

	CHECK(cudaLaunchKernel(NULL, one, one, NULL, 0, stream[0]) ==
	      cudaErrorInvalidDeviceFunction);
	CHECK(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
	CHECK(cudaGetLastError() == cudaSuccess);
	CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice);
	(void)cudaGetLastError();
	CHECK(ncclAllReduce(sent[0], received[0], 1, ncclFloat32, ncclSum, NULL, stream[0]) ==
	      ncclInvalidArgument);
	CHECK(ncclAllReduce(sent[0], received[0], 1, 99, ncclSum, comm[0], stream[0]) ==
	      ncclInvalidArgument);
}

static void run(const char *name, void (*test)(void))
{
	unsigned int before = failures;

	test();
	(void)printf("%s %u - %s\n", failures == before ? "ok" : "not ok", ++tests, name);
	(void)fflush(stdout);
}

#define RUN(test) run(#test, test)

int main(void)
{
	(void)printf("1..18\n");
	if (ncclCommInitAll(comm, RANKS, NULL) != ncclSuccess)
		return 1;
	for (int r = 0; r < RANKS; r++) {
		device(r);
		CHECK(cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking) == 0);
		CHECK(cudaMalloc((void **)&sent[r], RANKS * COUNT * sizeof(float)) == 0);
		CHECK(cudaMalloc((void **)&received[r], RANKS * COUNT * sizeof(float)) == 0);
	}
	RUN(all_reduce_sums_over_the_ranks);
	RUN(all_gather_puts_the_ranks_side_by_side);
	RUN(reduce_scatter_gives_each_its_block);
	RUN(all_to_all_transposes);
	RUN(rooted_calls_move_what_they_should);
	RUN(sends_and_receives_of_a_group_do_not_block_each_other);
	RUN(split_communicators_reduce_among_their_members);
	RUN(an_all_reduce_ends_for_all_when_the_last_has_come);
	RUN(a_broadcast_waits_for_its_root_alone);
	RUN(a_slow_nic_stretches_the_transfer);
	RUN(a_launch_returns_before_the_kernel_ends);
	RUN(streams_run_beside_each_other_and_wait_by_events);
	RUN(the_default_stream_waits_for_blocking_streams);
	RUN(a_host_function_runs_at_its_place_in_the_stream);
	RUN(a_captured_collective_runs_with_each_launch_of_the_graph);
	RUN(late_readers_find_rank_and_size_in_the_communicator);
	RUN(wrong_arguments_are_refused);
	for (int r = 0; r < RANKS; r++)
		CHECK(ncclCommDestroy(comm[r]) == ncclSuccess);
	(void)printf("%s 18 - communicators_end\n", failures ? "not ok" : "ok");
	return failures != 0;
}
