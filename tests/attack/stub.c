/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Libraries whose functions do next to nothing under the names that the agent probes: a loop over
 * one makes as many probed calls as the machine can, and a communicator costs no memory. Built
 * unoptimised, so that each function begins with a push, as those of the real libraries do. One
 * source for three libraries: STUB_CUDA, STUB_NCCL or STUB_MPI.
 */
#include <stdint.h>

static volatile int sink;

/* Handles are addresses in here: what is read there must be readable, and is all zeros. */
enum {
	ARENA_BYTES = 256 << 20,
	HANDLE_BYTES = 256,
	ARENA_TAIL = 4 << 20, /* behind the last handle: readers look far */
};

static char arena[ARENA_BYTES];
static volatile uint64_t handles;

static __attribute__((unused)) void *new_handle(void)
{
	uint64_t at = __atomic_fetch_add(&handles, 1, __ATOMIC_RELAXED) * HANDLE_BYTES;

	return arena + at % (ARENA_BYTES - ARENA_TAIL);
}

#define NOTHING(name)                                                                              \
	int name(void);                                                                            \
	int name(void)                                                                             \
	{                                                                                          \
		return sink;                                                                       \
	}

/* What a call costs that nobody probes. */
#ifdef STUB_CUDA
NOTHING(cudaNothing)
NOTHING(cudaLaunchKernel)
NOTHING(cudaStreamSynchronize)
NOTHING(cudaMemcpyAsync)
NOTHING(cudaEventRecord)
#endif

#ifdef STUB_NCCL
NOTHING(ncclNothing)
NOTHING(ncclAllReduce)
NOTHING(ncclCommInitAll)
NOTHING(ncclGroupStart)
NOTHING(ncclGroupEnd)
NOTHING(ncclSend)
NOTHING(ncclCommDestroy)

struct id {
	char internal[128];
};

int ncclCommInitRank(void **comm, int ranks, struct id id, int rank);

int ncclCommInitRank(void **comm, int ranks, struct id id, int rank)
{
	(void)ranks, (void)id, (void)rank;
	*comm = new_handle();
	return sink;
}
#endif

#ifdef STUB_MPI
NOTHING(MPI_Nothing)
NOTHING(MPI_Init)
NOTHING(MPI_Send)
NOTHING(MPI_Recv)
NOTHING(MPI_Wait)
NOTHING(MPI_Allreduce)

int MPI_Comm_rank(void *comm, int *rank);
int MPI_Comm_dup(void *comm, void **ret);

int MPI_Comm_rank(void *comm, int *rank)
{
	(void)comm, (void)rank;
	return sink;
}

int MPI_Comm_dup(void *comm, void **ret)
{
	(void)comm;
	*ret = new_handle();
	return sink;
}
#endif
