/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stand-in libcupti does what a tracing library relies on. In the environment:
 * CUDA_INJECTION64_PATH is set by this program itself.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/cupti_client.h"
#include "tests/sim/job.h"
#include "tests/sim/lib/call_id.h"
#include "tests/sim/lib/nccl/nccl.h"
#include "tests/sim/lib/standin.h"

enum {
	KERNELS = 1000,
	KERNEL_NS = 20000,
	MANY_KERNELS = 4000,
	FULL_BUFFERS = 12 + 2, /* of 315 of them, of 1638 calls */
	MS = 1000000,
	COUNT = 1000,
};

static unsigned int failures, tests;
static cudaStream_t streams[2];
static void *memory;

static const struct sim_function timed = {
	.magic = SIM_FUNCTION_MAGIC, .kind = SIM_FUNCTION_TIMED, .name = "gemm(float*, int)"};

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

static void enable(enum sim_cupti_kind kind)
{
	CHECK(cuptiActivityEnable(kind) == SIM_CUPTI_SUCCESS);
}

static void disable(enum sim_cupti_kind kind)
{
	CHECK(cuptiActivityDisable(kind) == SIM_CUPTI_SUCCESS);
}

static size_t dropped(void)
{
	size_t count = 0;

	CHECK(cuptiActivityGetNumDroppedRecords(NULL, 0, &count) == SIM_CUPTI_SUCCESS);
	return count;
}

static void begin(void)
{
	sim_client_clear();
	enable(SIM_CUPTI_CONCURRENT_KERNEL);
	enable(SIM_CUPTI_RUNTIME);
	enable(SIM_CUPTI_DRIVER);
}

static void end(void)
{
	CHECK(cudaDeviceSynchronize() == cudaSuccess);
	CHECK(sim_client_flush(0));
	disable(SIM_CUPTI_CONCURRENT_KERNEL);
	disable(SIM_CUPTI_RUNTIME);
	disable(SIM_CUPTI_DRIVER);
}

static uint32_t id_of(cudaStream_t stream)
{
	uint32_t id = 0;

	CHECK(cuptiGetStreamIdEx(NULL, (struct CUstream_st *)stream, 0, &id) == SIM_CUPTI_SUCCESS);
	return id;
}

/* ---- the library that is injected ---- */

static void a_library_is_injected_once_into_the_initialisation(const char *path)
{
	const unsigned int *count;
	void *library;
	int devices;

	CHECK(setenv("CUDA_INJECTION64_PATH", path, 1) == 0);
	CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL);
	CHECK(cudaGetDeviceCount(&devices) == cudaSuccess);
	CHECK(cuInit(0) == CUDA_SUCCESS);
	library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	CHECK(library != NULL);
	count = library ? dlsym(library, "sim_injected") : NULL;
	CHECK(count && *count == 1);
}

/* ---- kernels and calls ---- */

static void all_kernels_of_two_streams_have_a_record(void)
{
	const struct sim_client_kernel *last[2] = {NULL, NULL};
	uint32_t id[2] = {id_of(streams[0]), id_of(streams[1])};
	uint64_t sum_ns = 0, start_ns, end_ns;

	begin();
	CHECK(cuptiGetTimestamp(&start_ns) == SIM_CUPTI_SUCCESS);
	for (int i = 0; i < KERNELS; i++)
		kernel(streams[i % 2], KERNEL_NS);
	end();
	CHECK(cuptiGetTimestamp(&end_ns) == SIM_CUPTI_SUCCESS);
	CHECK(end_ns > start_ns && start_ns > sim_now_ns());
	CHECK(sim_client.kernels == KERNELS && sim_client.apis == KERNELS + 1);
	CHECK(sim_client.others == 0 && dropped() == 0);
	for (size_t i = 0; i < sim_client.kernels; i++) {
		const struct sim_client_kernel *this = &sim_client.kernel[i];
		const struct sim_cupti_api *call = sim_client_call(this->record.correlation);
		int which = this->record.stream == id[1];

		sum_ns += this->record.end - this->record.start;
		CHECK(this->record.stream == id[which] && this->record.device == 0);
		CHECK(this->record.graph == 0 && strcmp(this->name, timed.name) == 0);
		CHECK(!last[which] || (last[which]->record.end <= this->record.start &&
				       last[which]->record.correlation < this->record.correlation));
		last[which] = this;
		CHECK(call && call->kind == SIM_CUPTI_RUNTIME && call->result == 0);
		CHECK(call && call->cbid == SIM_RUNTIME_LAUNCH_KERNEL);
		CHECK(call && call->process == (uint32_t)getpid());
		CHECK(call && call->thread == (uint32_t)pthread_self());
		CHECK(call && start_ns <= call->start && call->start <= call->end);
		CHECK(call && call->start <= this->record.start && this->record.end <= end_ns);
	}
	CHECK(sum_ns == (uint64_t)KERNELS * KERNEL_NS);
	/* 64 KiB hold 315 kernels. */
	CHECK(sim_client.buffers >= 4);
}

/* Within seconds, so many buffers. */
static bool comes(size_t buffers)
{
	for (int i = 0; i < 1000; i++) {
		if (__atomic_load_n(&sim_client.buffers, __ATOMIC_SEQ_CST) >= buffers)
			return true;
		sim_sleep_ns(10 * MS);
	}
	return false;
}

static void full_buffers_come_from_another_thread_and_the_rest_by_a_flush(void)
{
	begin();
	for (int i = 0; i < MANY_KERNELS; i++)
		kernel(streams[0], 1000);
	CHECK(cudaDeviceSynchronize() == cudaSuccess);
	CHECK(comes(FULL_BUFFERS) && sim_client.own_buffers == 0);
	end();
	CHECK(sim_client.own_buffers == 2 && sim_client.kernels == MANY_KERNELS);
}

static void with_a_period_full_buffers_wait_for_it(void)
{
	begin();
	CHECK(cuptiActivityFlushPeriod(60000) == SIM_CUPTI_SUCCESS);
	for (int i = 0; i < MANY_KERNELS; i++)
		kernel(streams[0], 1000);
	CHECK(cudaDeviceSynchronize() == cudaSuccess);
	sim_sleep_ns(50 * MS);
	CHECK(sim_client.buffers == 0);
	CHECK(cuptiActivityFlushPeriod(20) == SIM_CUPTI_SUCCESS);
	CHECK(comes(FULL_BUFFERS) && sim_client.own_buffers == 0);
	CHECK(cuptiActivityFlushPeriod(0) == SIM_CUPTI_SUCCESS);
	end();
	CHECK(sim_client.kernels == MANY_KERNELS);
}

static void a_kernel_has_no_record_before_its_end(void)
{
	begin();
	kernel(streams[0], 200 * MS);
	kernel(streams[1], 1000);
	CHECK(cudaStreamSynchronize(streams[1]) == cudaSuccess);
	CHECK(sim_client_flush(SIM_CUPTI_FLUSH_FORCED));
	CHECK(sim_client.kernels == 1 && sim_client.apis == 3);
	end();
	CHECK(sim_client.kernels == 2);
}

static void declined_buffers_are_counted(void)
{
	begin();
	sim_client.declines = true;
	for (int i = 0; i < 10; i++)
		kernel(streams[0], 1000);
	CHECK(cudaDeviceSynchronize() == cudaSuccess);
	CHECK(sim_client_flush(0));
	CHECK(sim_client.kernels == 0 && sim_client.apis == 0);
	CHECK(dropped() == 10 + 11 && dropped() == 0);
	sim_client.declines = false;
	kernel(streams[0], 1000);
	end();
	CHECK(sim_client.kernels == 1 && sim_client.apis == 2 && dropped() == 0);
}

static void a_call_of_the_driver_is_one_of_the_driver(void)
{
	uint64_t ns = 1000;
	void *args[] = {&ns};

	begin();
	CHECK(cuLaunchKernel((CUfunction)(uintptr_t)&timed, 1, 1, 1, 1, 1, 1, 0, streams[0], args,
			     NULL) == CUDA_SUCCESS);
	CHECK(cuptiSetThreadIdType(SIM_CUPTI_THREAD_SYSTEM) == SIM_CUPTI_SUCCESS);
	kernel(streams[0], 1000);
	CHECK(cuptiSetThreadIdType(SIM_CUPTI_THREAD_PTHREAD) == SIM_CUPTI_SUCCESS);
	end();
	CHECK(sim_client.apis == 3 && sim_client.kernels == 2);
	CHECK(sim_client.api[0].kind == SIM_CUPTI_DRIVER &&
	      sim_client.api[0].cbid == SIM_DRIVER_LAUNCH_KERNEL);
	CHECK(sim_client.api[1].kind == SIM_CUPTI_RUNTIME &&
	      sim_client.api[1].thread == (uint32_t)syscall(SYS_gettid));
	CHECK(sim_client.api[2].cbid == SIM_RUNTIME_DEVICE_SYNCHRONIZE);
}

static void single_calls_can_be_chosen(void)
{
	sim_client_clear();
	enable(SIM_CUPTI_CONCURRENT_KERNEL);
	CHECK(cuptiActivityEnableRuntimeApi(SIM_RUNTIME_LAUNCH_KERNEL, 1) == SIM_CUPTI_SUCCESS);
	kernel(streams[0], 1000);
	end();
	CHECK(sim_client.kernels == 1 && sim_client.apis == 1);
	kernel(streams[0], 1000); /* nothing is enabled */
	CHECK(cudaDeviceSynchronize() == cudaSuccess);
	CHECK(sim_client_flush(0) && sim_client.kernels == 1 && sim_client.apis == 1);
	CHECK(cuptiActivityEnable(0) == SIM_CUPTI_INVALID_KIND);
	CHECK(cuptiActivityEnable(1000) == SIM_CUPTI_INVALID_KIND);
}

static void copies_and_sets_have_records(void)
{
	static char bytes[4096];

	sim_client_clear();
	enable(SIM_CUPTI_MEMCPY);
	enable(SIM_CUPTI_MEMSET);
	CHECK(cudaMemsetAsync(memory, 7, 4096, streams[0]) == cudaSuccess);
	CHECK(cudaMemcpy(bytes, memory, 4000, cudaMemcpyDeviceToHost) == cudaSuccess);
	CHECK(cudaDeviceSynchronize() == cudaSuccess && sim_client_flush(0));
	CHECK(sim_client.sets == 1 && sim_client.set.value == 7 && sim_client.set.bytes == 4096);
	CHECK(sim_client.copies == 1 && sim_client.copy.bytes == 4000);
	CHECK(sim_client.copy.copy_kind == SIM_CUPTI_MEMCPY_DTOH &&
	      sim_client.copy.source_kind == SIM_PLACE_DEVICE &&
	      sim_client.copy.target_kind == SIM_PLACE_PAGEABLE);
	CHECK(sim_client.copy.end > sim_client.copy.start && sim_client.copy.correlation != 0);
	disable(SIM_CUPTI_MEMCPY);
	disable(SIM_CUPTI_MEMSET);
}

static void kernels_of_a_graph_belong_to_its_launch(void)
{
	uint32_t id = 0, correlation;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaStreamBeginCapture(streams[0], 0) == cudaSuccess);
	kernel(streams[0], 1000);
	kernel(streams[0], 2000);
	CHECK(cudaStreamEndCapture(streams[0], &graph) == cudaSuccess);
	CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
	CHECK(cuptiGetGraphExecId((struct CUgraphExec_st *)exec, &id) == SIM_CUPTI_SUCCESS);
	begin();
	CHECK(cudaGraphLaunch(exec, streams[0]) == cudaSuccess);
	end();
	CHECK(sim_client.apis == 2 && sim_client.kernels == 2);
	CHECK(sim_client.api[0].cbid == SIM_RUNTIME_GRAPH_LAUNCH);
	correlation = sim_client.api[0].correlation;
	for (int i = 0; i < 2; i++)
		CHECK(sim_client.kernel[i].record.graph == id && id != 0 &&
		      sim_client.kernel[i].record.correlation == correlation);
	CHECK(sim_client.kernel[0].record.graph_node != sim_client.kernel[1].record.graph_node);

	begin();
	enable(SIM_CUPTI_GRAPH_TRACE);
	CHECK(cudaGraphLaunch(exec, streams[0]) == cudaSuccess);
	end();
	disable(SIM_CUPTI_GRAPH_TRACE);
	CHECK(sim_client.kernels == 0 && sim_client.graphs == 1 && sim_client.graph.graph == id);
	CHECK(sim_client.graph.end - sim_client.graph.start == 3000);
	CHECK(cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
}

/* ---- two processes ---- */

struct meeting {
	ncclUniqueId id;
	int is_ready;
	uint64_t start_ns[2], end_ns[2]; /* of the all-reduce */
};

/* Rank 1 comes 50 ms later. The collective's other calls have names of their own. */
static void reduce(struct meeting *meeting, int rank)
{
	static const char *const name[] = {
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"ncclDevKernel_Reduce_MinMax_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"};
	cudaStream_t on = streams[0];
	float *from = memory, *to = from + (1 << 16);
	ncclComm_t comm;

	CHECK(ncclCommInitRank(&comm, 2, meeting->id, rank) == ncclSuccess);
	CHECK(cudaDeviceSynchronize() == cudaSuccess);
	begin();
	if (rank == 1)
		sim_sleep_ns(50 * MS);
	CHECK(ncclAllReduce(from, to, COUNT, ncclFloat32, ncclSum, comm, on) == ncclSuccess);
	CHECK(ncclBroadcast(from, to, COUNT, ncclFloat32, 0, comm, on) == ncclSuccess);
	CHECK(ncclReduceScatter(from, to, COUNT, ncclFloat32, ncclSum, comm, on) == ncclSuccess);
	CHECK(ncclAllGather(from, to, COUNT, ncclFloat32, comm, on) == ncclSuccess);
	CHECK(ncclReduce(from, to, COUNT, ncclFloat32, ncclMax, 0, comm, on) == ncclSuccess);
	CHECK((rank == 0 ? ncclSend(from, COUNT, ncclFloat32, 1, comm, on)
			 : ncclRecv(to, COUNT, ncclFloat32, 0, comm, on)) == ncclSuccess);
	end();
	CHECK(sim_client.kernels == 6 && sim_client.apis == 7);
	for (size_t i = 0; i < sim_client.kernels; i++) {
		const struct sim_client_kernel *this = &sim_client.kernel[i];
		const struct sim_cupti_api *call = sim_client_call(this->record.correlation);

		CHECK(strcmp(this->name, name[i]) == 0);
		CHECK(call && call->kind == SIM_CUPTI_DRIVER &&
		      call->cbid == SIM_DRIVER_LAUNCH_KERNEL_EX);
	}
	meeting->start_ns[rank] = sim_client.kernel[0].record.start;
	meeting->end_ns[rank] = sim_client.kernel[0].record.end;
	CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

static void set_up(void)
{
	/* As in the libraries of applications, the client starts before anything runs. */
	sim_client_start();
	for (int i = 0; i < 2; i++)
		CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) == 0);
	CHECK(cudaMalloc(&memory, 1 << 20) == cudaSuccess);
}

/* Before anything of CUDA is called in this process. */
static pid_t start_rank_1(struct meeting *meeting)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	set_up();
	while (!__atomic_load_n(&meeting->is_ready, __ATOMIC_SEQ_CST))
		sim_sleep_ns(MS);
	reduce(meeting, 1);
	_exit(failures != 0);
}

static void collectives_are_kernels_of_the_names_that_the_real_ones_have(struct meeting *meeting,
									 pid_t rank_1)
{
	int status = -1;

	CHECK(ncclGetUniqueId(&meeting->id) == ncclSuccess);
	__atomic_store_n(&meeting->is_ready, 1, __ATOMIC_SEQ_CST);
	reduce(meeting, 0);
	CHECK(waitpid(rank_1, &status, 0) == rank_1 && status == 0);
	/* It lasts from when the own stream gets there until all have come: the last one's is short. */
	CHECK(meeting->start_ns[1] > meeting->start_ns[0] + 40 * MS);
	CHECK(meeting->end_ns[0] > meeting->start_ns[1] &&
	      meeting->end_ns[1] > meeting->start_ns[1]);
	CHECK(meeting->end_ns[1] - meeting->start_ns[1] < 20 * MS);
}

/* ---- versions, and the end ---- */

/* In a process of its own, by settings of its environment. */
static void run_version(void)
{
	const char *wanted = getenv("SIM_CUPTI_KERNEL_BYTES");
	char bytes[32];
	uint32_t version = 0;

	set_up();
	CHECK(cuptiGetVersion(&version) == SIM_CUPTI_SUCCESS && version == 18);
	begin();
	for (int i = 0; i < 400; i++)
		kernel(streams[0], 1000);
	end();
	CHECK(sim_client.kernels == 400 && sim_client.kernel[399].record.correlation == 400);
	(void)snprintf(bytes, sizeof(bytes), "%zu", sim_client.kernel_bytes);
	CHECK(wanted && strcmp(bytes, wanted) == 0);
	exit(failures != 0);
}

static void records_have_the_sizes_of_other_versions(char *program)
{
	static const char *const bytes[] = {"200", "208", "216", "248"};
	static char argument[] = "version";
	uint32_t version = 0;

	CHECK(cuptiGetVersion(&version) == SIM_CUPTI_SUCCESS && version == SIM_CUPTI_VERSION);
	for (int i = 0; i < 4; i++) {
		char *args[] = {program, argument, NULL};
		int status = -1;
		pid_t pid = fork();

		if (pid == 0) {
			(void)setenv("SIM_CUPTI_KERNEL_BYTES", bytes[i], 1);
			(void)setenv("SIM_CUPTI_VERSION", "18", 1);
			(void)execv("/proc/self/exe", args);
			_exit(1);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
}

static void a_strict_flush_keeps_operations_while_any_is_under_way(void)
{
	CHECK(setenv("SIM_CUPTI_STRICT", "1", 1) == 0);
	begin();
	kernel(streams[0], 1000);
	kernel(streams[1], 100 * MS);
	CHECK(cudaStreamSynchronize(streams[0]) == cudaSuccess);
	CHECK(sim_client_flush(0) && sim_client.kernels == 0 && sim_client.apis == 3);
	CHECK(sim_client_flush(SIM_CUPTI_FLUSH_FORCED) && sim_client.kernels == 1);
	end();
	CHECK(sim_client.kernels == 2);
	CHECK(unsetenv("SIM_CUPTI_STRICT") == 0);
}

static void nothing_comes_after_the_end_of_all_clients(void)
{
	struct CUpti_Subscriber_st *first, *second;

	CHECK(cuptiSubscribe(&first, NULL, NULL) == SIM_CUPTI_SUCCESS);
	CHECK(cuptiSubscribe(&second, NULL, NULL) == SIM_CUPTI_MULTIPLE_SUBSCRIBERS);
	CHECK(cuptiUnsubscribe(first) == SIM_CUPTI_SUCCESS);
	begin();
	kernel(streams[0], 1000);
	CHECK(cuptiFinalize() == SIM_CUPTI_SUCCESS);
	kernel(streams[0], 1000);
	CHECK(cudaDeviceSynchronize() == cudaSuccess && sim_client_flush(1));
	CHECK(sim_client.kernels == 0 && sim_client.apis == 0);
	/* A client that starts once more is served. */
	sim_client_start();
	begin();
	kernel(streams[0], 1000);
	end();
	CHECK(sim_client.kernels == 1 && sim_client.apis == 2);
}

static void print_result(const char *name, unsigned int before)
{
	(void)printf("%s %u - %s\n", failures == before ? "ok" : "not ok", ++tests, name);
	(void)fflush(stdout);
}

#define RUN(test, ...)                                                                             \
	do {                                                                                       \
		unsigned int before_ = failures;                                                   \
		test(__VA_ARGS__);                                                                 \
		print_result(#test, before_);                                                      \
	} while (0)

int main(int argc, char **argv)
{
	struct meeting *meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char library[4096];
	pid_t rank_1;

	if (argc > 1)
		run_version();
	(void)printf("1..14\n");
	(void)fflush(stdout);
	if (meeting == MAP_FAILED)
		return 1;
	(void)snprintf(library, sizeof(library), "%.*s/lib/libsim-injected.so",
		       (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
	rank_1 = start_rank_1(meeting);
	RUN(a_library_is_injected_once_into_the_initialisation, library);
	set_up();
	RUN(all_kernels_of_two_streams_have_a_record);
	RUN(full_buffers_come_from_another_thread_and_the_rest_by_a_flush);
	RUN(with_a_period_full_buffers_wait_for_it);
	RUN(a_kernel_has_no_record_before_its_end);
	RUN(declined_buffers_are_counted);
	RUN(a_call_of_the_driver_is_one_of_the_driver);
	RUN(single_calls_can_be_chosen);
	RUN(copies_and_sets_have_records);
	RUN(kernels_of_a_graph_belong_to_its_launch);
	RUN(collectives_are_kernels_of_the_names_that_the_real_ones_have, meeting, rank_1);
	RUN(records_have_the_sizes_of_other_versions, argv[0]);
	RUN(a_strict_flush_keeps_operations_while_any_is_under_way);
	RUN(nothing_comes_after_the_end_of_all_clients);
	return failures != 0;
}
