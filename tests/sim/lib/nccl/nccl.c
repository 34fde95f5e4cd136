/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The calls of libnccl that are about the library itself. As the real library does, it opens
 * libcuda and launches what it does as kernels; the kernels' behaviour is transfer.c.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#include "tests/sim/lib/nccl/nccl_cuda.h"
#include "tests/sim/lib/nccl/nccl_handle.h"
#include "tests/sim/lib/nccl/version.h"
#include "tests/sim/lib/transfer.h"

/* Real builds carry it, and tools look for it. */
__attribute__((used)) static const char version_text[] = "NCCL version 2.28.9+cuda13.0";

ncclResult_t ncclGetVersion(int *version)
{
	*version = sim_nccl_version();
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
	return sim_handle_is_valid(comm) && comm->last_error ? comm->last_error : "";
}

void ncclResetDebugInit(void)
{
}

ncclResult_t ncclMemAlloc(void **ret, size_t size)
{
	CUdeviceptr memory = 0;

	if (!sim_cuda_load() || sim_cuda.alloc(&memory, size) != CUDA_SUCCESS)
		return ncclUnhandledCudaError;
	*ret = (void *)memory;
	return ncclSuccess;
}

ncclResult_t ncclMemFree(void *pointer)
{
	if (!sim_cuda_load() || sim_cuda.free((CUdeviceptr)pointer) != CUDA_SUCCESS)
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
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	(void)op;
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

void ncclSimSlowNic(double factor)
{
	sim_transfer_slow_nic(factor);
}
