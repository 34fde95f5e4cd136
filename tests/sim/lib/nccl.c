/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The calls of libnccl. As the real library does, it opens libcuda by itself and launches what it
 * does as kernels; the kernels' behaviour is transfer.c.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tests/sim/lib/reduce.h"
#include "tests/sim/lib/transfer.h"

enum {
	VERSION = 22809,
	GROUP_MAX_CALLS = 4096,
	GROUP_MAX_INITS = SIM_MAX_RANKS,

	/* struct ncclComm of 2.28.9: a program that attaches late reads a rank from there. */
	AT_MAGIC = 0x1044c0,
	AT_HASH = 0x1044c8,
	AT_RANK = 0x1044d0,
	AT_RANKS = 0x1044d4,
	AT_DEVICE = 0x1044d8,
	AT_BUS = 0x1044f0,
	AT_NODE = 0x104584, /* node, nodes, local rank, local ranks */
	AT_OP_COUNT = 0x1045f0,
	AT_NAME = 0x1069b8,
	COMM_BYTES = 0x107000,
};

#define COMM_MAGIC 0x0280028002800280U

/* Real builds carry it, and tools look for it. */
__attribute__((used)) static const char version_text[] = "NCCL version 2.28.9+cuda13.0";

struct ncclComm {
	uint64_t start_magic;
	struct sim_comm *comm;
	const char *last_error;
	char rest[COMM_BYTES - 24];
};

_Static_assert(sizeof(struct ncclComm) == COMM_BYTES, "offsets are of the whole");

enum init_kind {
	INIT_ID,
	INIT_SPLIT,
};

struct init {
	enum init_kind kind;
	struct ncclComm *parent;
	ncclUniqueId id;
	unsigned int ranks, rank;
	int device, color, key;
	const char *name;
	ncclComm_t *ret;
	ncclResult_t result;
	pthread_t thread;
};

struct pending {
	struct ncclComm *comm;
	cudaStream_t stream;
	struct sim_call call;
};

/* A group belongs to a thread. */
static __thread struct {
	unsigned int depth;
	struct pending *pending;
	size_t calls;
	struct init *init;
	size_t inits;
	ncclResult_t result;
} group;

static struct {
	__typeof__(cuLaunchKernelEx) *launch;
	__typeof__(cuCtxGetDevice) *get_device;
	__typeof__(cuPointerGetAttribute) *attribute;
	__typeof__(cuMemAlloc_v2) *alloc;
	__typeof__(cuMemFree_v2) *free;
	__typeof__(cuSimWatch) *watch;
	__typeof__(cuSimUnwatch) *unwatch;
	__typeof__(cuSimProgress) *progress;
	__typeof__(cuSimLock) *lock;
	__typeof__(cuSimUnlock) *unlock;
} cuda;

static const struct sim_function transfer_function = {
	.magic = SIM_FUNCTION_MAGIC, .kind = SIM_FUNCTION_MODEL, .model = &sim_transfer_model};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_cuda;

static void load(void)
{
	static const struct {
		const char *name;
		void *slot;
	} wanted[] = {
		{"cuLaunchKernelEx", &cuda.launch},
		{"cuCtxGetDevice", &cuda.get_device},
		{"cuPointerGetAttribute", &cuda.attribute},
		{"cuMemAlloc_v2", &cuda.alloc},
		{"cuMemFree_v2", &cuda.free},
		{"cuSimWatch", &cuda.watch},
		{"cuSimUnwatch", &cuda.unwatch},
		{"cuSimProgress", &cuda.progress},
		{"cuSimLock", &cuda.lock},
		{"cuSimUnlock", &cuda.unlock},
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	has_cuda = library != NULL;
	for (size_t i = 0; has_cuda && i < sizeof(wanted) / sizeof(*wanted); i++) {
		void *found = dlsym(library, wanted[i].name);

		memcpy(wanted[i].slot, &found, sizeof(found));
		has_cuda = found != NULL;
	}
}

static int device_now(void)
{
	CUdevice device = 0;

	return cuda.get_device(&device) == CUDA_SUCCESS ? device : 0;
}

/* ---- the handle ---- */

static void put(struct ncclComm *handle, size_t at, const void *value, size_t size)
{
	memcpy((char *)handle + at, value, size);
}

static struct ncclComm *handle_new(struct sim_comm *comm, const char *name)
{
	struct ncclComm *handle = calloc(1, sizeof(*handle));
	uint64_t magic = COMM_MAGIC, bus = (uint64_t)(comm->device + 1) << 12;
	uint32_t node[] = {0, 1, comm->rank, comm->ranks};

	if (!handle)
		return NULL;
	handle->start_magic = magic;
	handle->comm = comm;
	put(handle, AT_MAGIC, &magic, sizeof(magic));
	put(handle, AT_HASH, &comm->hash, sizeof(comm->hash));
	put(handle, AT_RANK, &comm->rank, sizeof(comm->rank));
	put(handle, AT_RANKS, &comm->ranks, sizeof(comm->ranks));
	put(handle, AT_DEVICE, &comm->device, sizeof(comm->device));
	put(handle, AT_BUS, &bus, sizeof(bus));
	put(handle, AT_NODE, node, sizeof(node));
	put(handle, AT_NAME, &name, sizeof(name));
	cuda.lock();
	if (cuda.watch(&comm->shared->member[comm->rank].bell) != CUDA_SUCCESS) {
		cuda.unlock();
		free(handle);
		return NULL;
	}
	cuda.unlock();
	return handle;
}

static void count_operation(struct ncclComm *handle)
{
	uint64_t *count = (uint64_t *)(void *)((char *)handle + AT_OP_COUNT);

	++*count;
}

/* What is under way is given up. */
static void handle_free(struct ncclComm *handle)
{
	struct sim_comm *comm = handle->comm;

	cuda.lock();
	comm->aborted = true;
	cuda.unwatch(&comm->shared->member[comm->rank].bell);
	cuda.progress();
	sim_comm_unref(comm);
	cuda.unlock();
	free(handle);
}

static bool is_valid(const struct ncclComm *handle)
{
	return handle && handle->start_magic == COMM_MAGIC;
}

/* ---- making communicators ---- */

static void *run_init(void *data)
{
	struct init *init = data;
	struct sim_comm *comm;
	ncclComm_t handle = NULL;

	if (init->kind == INIT_SPLIT)
		sim_comm_split(init->parent->comm, init->color, init->key, &init->rank,
			       &init->ranks, &init->id);
	if (init->ranks == 0) {
		*init->ret = NULL;
		init->result = ncclSuccess;
		return NULL;
	}
	comm = sim_comm_join(&init->id, init->ranks, init->rank, init->device);
	if (comm)
		handle = handle_new(comm, init->name);
	if (handle)
		*init->ret = handle;
	init->result = handle ? ncclSuccess : ncclSystemError;
	return NULL;
}

static ncclResult_t begin_init(const struct init *init)
{
	struct init now = *init;

	(void)pthread_once(&once, load);
	if (!has_cuda)
		return ncclUnhandledCudaError;
	now.device = init->parent && init->parent->comm ? init->parent->comm->device : device_now();
	if (init->device >= 0)
		now.device = init->device;
	if (group.depth == 0) {
		(void)run_init(&now);
		return now.result;
	}
	if (group.inits == GROUP_MAX_INITS)
		return ncclInternalError;
	if (!group.init)
		group.init = calloc(GROUP_MAX_INITS, sizeof(*group.init));
	if (!group.init)
		return ncclSystemError;
	group.init[group.inits++] = now;
	return ncclSuccess;
}

/* Several ranks of one process wait for each other, so each comes by a thread of its own. */
static ncclResult_t end_inits(void)
{
	ncclResult_t result = ncclSuccess;

	for (size_t i = 0; i < group.inits; i++)
		if (pthread_create(&group.init[i].thread, NULL, run_init, &group.init[i]) != 0)
			return ncclSystemError;
	for (size_t i = 0; i < group.inits; i++) {
		(void)pthread_join(group.init[i].thread, NULL);
		if (group.init[i].result != ncclSuccess)
			result = group.init[i].result;
	}
	group.inits = 0;
	return result;
}

static const char *name_in(const ncclConfig_t *config)
{
	return config && config->size >= sizeof(*config) ? config->comm_name : NULL;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	struct init init = {.kind = INIT_ID,
			    .id = id,
			    .ranks = (unsigned int)nranks,
			    .rank = (unsigned int)rank,
			    .device = -1,
			    .name = name_in(config),
			    .ret = comm};

	if (!comm || nranks < 1 || rank < 0 || rank >= nranks)
		return ncclInvalidArgument;
	return begin_init(&init);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	struct init init = {.kind = INIT_ID,
			    .id = id,
			    .ranks = (unsigned int)nranks,
			    .rank = (unsigned int)rank,
			    .device = -1,
			    .ret = comm};

	if (!comm || nranks < 1 || rank < 0 || rank >= nranks)
		return ncclInvalidArgument;
	return begin_init(&init);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int nid,
				      ncclUniqueId *ids, ncclConfig_t *config)
{
	struct init init = {.kind = INIT_ID,
			    .ranks = (unsigned int)nranks,
			    .rank = (unsigned int)rank,
			    .device = -1,
			    .name = name_in(config),
			    .ret = comm};

	if (!comm || !ids || nid < 1 || nranks < 1 || rank < 0 || rank >= nranks)
		return ncclInvalidArgument;
	init.id = ids[0];
	return begin_init(&init);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices)
{
	ncclUniqueId id;
	ncclResult_t r;

	if (!comms || ndev < 1)
		return ncclInvalidArgument;
	r = ncclGetUniqueId(&id);
	if (r != ncclSuccess)
		return r;
	(void)ncclGroupStart();
	for (int i = 0; i < ndev && r == ncclSuccess; i++) {
		struct init init = {.kind = INIT_ID,
				    .id = id,
				    .ranks = (unsigned int)ndev,
				    .rank = (unsigned int)i,
				    .device = devices ? devices[i] : i,
				    .ret = &comms[i]};

		r = begin_init(&init);
	}
	return r == ncclSuccess ? ncclGroupEnd() : r;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
			   ncclConfig_t *config)
{
	struct init init = {.kind = INIT_SPLIT,
			    .parent = comm,
			    .color = color,
			    .key = key,
			    .device = -1,
			    .name = name_in(config),
			    .ret = newcomm};

	if (!is_valid(comm) || !newcomm)
		return ncclInvalidArgument;
	return begin_init(&init);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *exclude, int count, ncclComm_t *newcomm,
			    ncclConfig_t *config, int flags)
{
	struct init init = {.kind = INIT_ID,
			    .parent = comm,
			    .device = -1,
			    .name = name_in(config),
			    .ret = newcomm};

	(void)flags;
	if (!is_valid(comm) || !newcomm || count < 0 || (count > 0 && !exclude))
		return ncclInvalidArgument;
	init.ranks = comm->comm->ranks - (unsigned int)count;
	init.rank = comm->comm->rank;
	for (int i = 0; i < count; i++) {
		if (exclude[i] == (int)comm->comm->rank)
			return ncclInvalidArgument;
		init.rank -= exclude[i] < (int)comm->comm->rank;
	}
	sim_comm_derive(comm->comm, sim_hash(3, exclude, (size_t)count * sizeof(*exclude)),
			&init.id);
	return begin_init(&init);
}

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id)
{
	if (!is_valid(comm) || !id)
		return ncclInvalidArgument;
	sim_comm_derive(comm->comm, 4, id);
	return ncclSuccess;
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,
			  ncclComm_t *newcomm, ncclConfig_t *config)
{
	struct init init = {.kind = INIT_ID,
			    .parent = comm,
			    .ranks = (unsigned int)nranks,
			    .rank = (unsigned int)rank,
			    .device = -1,
			    .name = name_in(config),
			    .ret = newcomm};

	if (!newcomm || (!comm && !id) || (comm && !is_valid(comm)))
		return ncclInvalidArgument;
	if (id)
		init.id = *id;
	else
		sim_comm_derive(comm->comm, 4, &init.id);
	if (rank < 0 && comm)
		init.rank = comm->comm->rank;
	return begin_init(&init);
}

/* ---- the rest of a communicator's life ---- */

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	if (!is_valid(comm))
		return ncclInvalidArgument;
	handle_free(comm);
	return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	if (!is_valid(comm))
		return ncclInvalidArgument;
	handle_free(comm);
	return ncclSuccess;
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
	(void)flags;
	if (!is_valid(comm))
		return ncclInvalidArgument;
	cuda.lock();
	comm->comm->aborted = true;
	cuda.progress();
	cuda.unlock();
	return ncclSuccess;
}

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
	(void)flags;
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommResume(ncclComm_t comm)
{
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
	*error = ncclSuccess;
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
	if (!is_valid(comm))
		return ncclInvalidArgument;
	*count = (int)comm->comm->ranks;
	return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device)
{
	if (!is_valid(comm))
		return ncclInvalidArgument;
	*device = comm->comm->device;
	return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
	if (!is_valid(comm))
		return ncclInvalidArgument;
	*rank = (int)comm->comm->rank;
	return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void *buffer, size_t size, void **handle)
{
	(void)size;
	*handle = buffer;
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle)
{
	(void)handle;
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size,
				    ncclWindow_t *window, int flags)
{
	(void)size;
	(void)flags;
	*window = buffer;
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
	(void)window;
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommMemStats(ncclComm_t comm, int statistic, uint64_t *value)
{
	(void)statistic;
	*value = 0;
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

/* Communicators for kernels: frameworks are linked against them; there are none here. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements, void *ret)
{
	(void)comm;
	(void)requirements;
	(void)ret;
	return ncclInvalidUsage;
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *device_comm)
{
	(void)comm;
	(void)device_comm;
	return ncclInvalidUsage;
}

ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **ret)
{
	(void)window;
	(void)offset;
	(void)ret;
	return ncclInvalidUsage;
}

ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **ret)
{
	(void)window;
	(void)offset;
	(void)peer;
	(void)ret;
	return ncclInvalidUsage;
}

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **ret)
{
	*ret = window;
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

/* ---- library ---- */

ncclResult_t ncclGetVersion(int *version)
{
	*version = VERSION;
	return ncclSuccess;
}

/* As real ones look: a random number, then the address of the root's listener, then zeros. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	struct sockaddr_in root = {.sin_family = AF_INET, .sin_port = htons(40000)};
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return ncclSystemError;
	root.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*id = (ncclUniqueId){0};
	memcpy(id->internal, &number, sizeof(number));
	memcpy(id->internal + sizeof(number), &root, sizeof(root));
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const text[] = {
		"no error",
		"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
		"unhandled system error (run with NCCL_DEBUG=INFO for details)",
		"internal error - please report this issue to the NCCL developers",
		"invalid argument (run with NCCL_DEBUG=WARN for details)",
		"invalid usage (run with NCCL_DEBUG=WARN for details)",
		"remote process exited or there was a network error",
		"NCCL operation in progress",
	};

	return result < 0 || result > ncclInProgress ? "unknown result code" : text[result];
}

const char *ncclGetLastError(ncclComm_t comm)
{
	return is_valid(comm) && comm->last_error ? comm->last_error : "";
}

void ncclResetDebugInit(void)
{
}

ncclResult_t ncclMemAlloc(void **ret, size_t size)
{
	CUdeviceptr memory = 0;

	(void)pthread_once(&once, load);
	if (!has_cuda || cuda.alloc(&memory, size) != CUDA_SUCCESS)
		return ncclUnhandledCudaError;
	*ret = (void *)memory;
	return ncclSuccess;
}

ncclResult_t ncclMemFree(void *pointer)
{
	(void)pthread_once(&once, load);
	if (!has_cuda || cuda.free((CUdeviceptr)pointer) != CUDA_SUCCESS)
		return ncclUnhandledCudaError;
	return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
				      int residence, ncclComm_t comm)
{
	(void)scalar;
	(void)type;
	(void)residence;
	*op = ncclAvg + 1; /* a plain sum here */
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	(void)op;
	return is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

void ncclSimSlowNic(double factor)
{
	sim_transfer_slow_nic(factor);
}

static uint64_t data_most = SIM_DATA_BYTES;

void ncclSimMoveData(uint64_t bytes)
{
	data_most = bytes < SIM_DATA_BYTES ? bytes : SIM_DATA_BYTES;
}

/* ---- calls ---- */

static ncclResult_t launch(struct ncclComm *handle, cudaStream_t stream,
			   const struct sim_call *call, size_t calls)
{
	CUlaunchConfig config = {.grid_x = 1,
				 .grid_y = 1,
				 .grid_z = 1,
				 .block_x = 512,
				 .block_y = 1,
				 .block_z = 1,
				 .stream = stream};
	struct sim_batch *batch;
	void *params[1];

	cuda.lock();
	batch = sim_batch_new(handle->comm, call, calls);
	cuda.unlock();
	if (!batch)
		return ncclSystemError;
	params[0] = batch;
	count_operation(handle);
	if (cuda.launch(&config, (CUfunction)(uintptr_t)&transfer_function, params, NULL) !=
	    CUDA_SUCCESS) {
		cuda.lock();
		sim_transfer_model.release(batch);
		cuda.unlock();
		return ncclUnhandledCudaError;
	}
	return ncclSuccess;
}

/* One launch for each communicator and stream of the group, in the order of their first calls. */
static ncclResult_t end_calls(void)
{
	struct sim_call *batch = calloc(group.calls + 1, sizeof(*batch));
	ncclResult_t result = batch ? ncclSuccess : ncclSystemError;

	for (size_t i = 0; batch && i < group.calls; i++) {
		struct ncclComm *comm = group.pending[i].comm;
		cudaStream_t stream = group.pending[i].stream;
		size_t calls = 0;

		if (!comm)
			continue;
		for (size_t k = i; k < group.calls; k++) {
			struct pending *pending = &group.pending[k];

			if (pending->comm != comm || pending->stream != stream)
				continue;
			batch[calls++] = pending->call;
			pending->comm = NULL;
		}
		if (launch(comm, stream, batch, calls) != ncclSuccess)
			result = ncclUnhandledCudaError;
	}
	free(batch);
	group.calls = 0;
	return result;
}

ncclResult_t ncclGroupStart(void)
{
	group.depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	ncclResult_t result;

	if (group.depth == 0)
		return ncclInvalidUsage;
	if (--group.depth > 0)
		return ncclSuccess;
	result = group.result;
	group.result = ncclSuccess;
	if (group.inits > 0 && result == ncclSuccess)
		result = end_inits();
	if (group.calls > 0 && result == ncclSuccess)
		result = end_calls();
	group.inits = 0;
	group.calls = 0;
	free(group.init);
	group.init = NULL;
	return result;
}

ncclResult_t ncclGroupSimulateEnd(void *info)
{
	(void)info;
	group.calls = 0;
	return ncclGroupEnd();
}

/* Device memory, or pinned, that holds all of it. */
static bool holds(const void *buffer, size_t bytes)
{
	char *start = NULL;
	size_t size = 0;

	if (bytes == 0)
		return true;
	if (!buffer || cuda.attribute(&start, 11, (CUdeviceptr)buffer) != CUDA_SUCCESS ||
	    cuda.attribute(&size, 12, (CUdeviceptr)buffer) != CUDA_SUCCESS)
		return false;
	return bytes <= size - (size_t)((const char *)buffer - start);
}

static ncclResult_t enqueue(struct ncclComm *comm, cudaStream_t stream, struct sim_call *call)
{
	ncclResult_t result = ncclSuccess;
	size_t most;

	if (!is_valid(comm) || sim_type_bytes(call->type) == 0 || call->peer >= comm->comm->ranks) {
		result = ncclInvalidArgument;
	} else {
		size_t sends = sim_call_send_bytes(call, comm->comm);
		size_t receives = sim_call_recv_bytes(call, comm->comm);

		most = data_most;
		if (call->kind >= SIM_CALL_SEND && most > SIM_CHANNEL_DATA_BYTES)
			most = SIM_CHANNEL_DATA_BYTES;
		call->has_data = sends <= most && receives <= most * comm->comm->ranks &&
				 holds(call->send, sends) && holds(call->recv, receives);
	}
	if (group.depth == 0)
		return result == ncclSuccess ? launch(comm, stream, call, 1) : result;
	if (result == ncclSuccess && !group.pending) {
		group.pending = calloc(GROUP_MAX_CALLS, sizeof(*group.pending));
		if (!group.pending)
			result = ncclSystemError;
	}
	if (result == ncclSuccess && group.calls == GROUP_MAX_CALLS)
		result = ncclInternalError;
	if (result != ncclSuccess)
		return group.result = result;
	group.pending[group.calls++] =
		(struct pending){.comm = comm, .stream = stream, .call = *call};
	return ncclSuccess;
}

#define CALL(kind_, send_, recv_, op_, peer_)                                                      \
	struct sim_call call = {.kind = (kind_),                                                   \
				.send = (send_),                                                   \
				.recv = (recv_),                                                   \
				.count = count,                                                    \
				.type = type,                                                      \
				.op = (op_),                                                       \
				.peer = (unsigned int)(peer_)};                                    \
	return enqueue(comm, stream, &call)

/* Each call and its sibling with a configuration do the same, and neither calls the other. */
#define BOTH(name, kind, op_value, peer_value, ...)                                                \
	ncclResult_t name(const void *send, void *recv, size_t count, ncclDataType_t type,         \
			  __VA_ARGS__ ncclComm_t comm, cudaStream_t stream)                        \
	{                                                                                          \
		CALL(kind, send, recv, op_value, peer_value);                                      \
	}                                                                                          \
	ncclResult_t name##Config(const void *send, void *recv, size_t count, ncclDataType_t type, \
				  __VA_ARGS__ ncclComm_t comm, cudaStream_t stream,                \
				  const void *config)                                              \
	{                                                                                          \
		(void)config;                                                                      \
		CALL(kind, send, recv, op_value, peer_value);                                      \
	}
#define WITH_OP   ncclRedOp_t op,
#define WITH_ROOT int root,
#define WITH_BOTH ncclRedOp_t op, int root,

BOTH(ncclAllReduce, SIM_CALL_ALL_REDUCE, op, 0, WITH_OP)
BOTH(ncclReduceScatter, SIM_CALL_REDUCE_SCATTER, op, 0, WITH_OP)
BOTH(ncclAllGather, SIM_CALL_ALL_GATHER, 0, 0, )
BOTH(ncclAlltoAll, SIM_CALL_ALL_TO_ALL, 0, 0, )
BOTH(ncclBroadcast, SIM_CALL_BROADCAST, 0, root, WITH_ROOT)
BOTH(ncclReduce, SIM_CALL_REDUCE, op, root, WITH_BOTH)
BOTH(ncclGather, SIM_CALL_GATHER, 0, root, WITH_ROOT)
BOTH(ncclScatter, SIM_CALL_SCATTER, 0, root, WITH_ROOT)

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
		       cudaStream_t stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
		      ncclComm_t comm, cudaStream_t stream)
{
	CALL(SIM_CALL_SEND, send, NULL, 0, peer);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      cudaStream_t stream)
{
	CALL(SIM_CALL_RECV, NULL, recv, 0, peer);
}

ncclResult_t ncclPutSignal(const void *buffer, size_t count, ncclDataType_t type, int peer,
			   ncclWindow_t window, size_t offset, int signal, int context,
			   unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
	(void)window;
	(void)offset;
	(void)signal;
	(void)context;
	(void)flags;
	CALL(SIM_CALL_PUT, buffer, NULL, 0, peer);
}

ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm,
			cudaStream_t stream)
{
	size_t count = 0;
	ncclDataType_t type = ncclInt8;

	(void)signal;
	(void)context;
	(void)flags;
	CALL(SIM_CALL_PUT, NULL, NULL, 0, peer);
}

/* The stand-in's puts arrive at once: there is nothing to wait for. */
ncclResult_t ncclWaitSignal(int count_of, void *descriptors, ncclComm_t comm, cudaStream_t stream)
{
	size_t count = 0;
	ncclDataType_t type = ncclInt8;

	(void)count_of;
	(void)descriptors;
	CALL(SIM_CALL_PUT, NULL, NULL, 0, 0);
}
