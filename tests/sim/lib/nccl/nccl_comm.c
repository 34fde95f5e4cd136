/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libnccl: what a communicator can be asked, and its end. */
#include "tests/sim/lib/nccl/nccl_cuda.h"
#include "tests/sim/lib/nccl/nccl_handle.h"

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	if (!sim_handle_is_valid(comm))
		return ncclInvalidArgument;
	sim_handle_free(comm, true);
	return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	if (!sim_handle_is_valid(comm))
		return ncclInvalidArgument;
	sim_handle_free(comm, false);
	return ncclSuccess;
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
	(void)flags;
	if (!sim_handle_is_valid(comm))
		return ncclInvalidArgument;
	sim_cuda.lock();
	comm->comm->aborted = true;
	sim_cuda.progress();
	sim_cuda.unlock();
	return ncclSuccess;
}

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
	(void)flags;
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommResume(ncclComm_t comm)
{
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
	*error = ncclSuccess;
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
	if (!sim_handle_is_valid(comm))
		return ncclInvalidArgument;
	*count = (int)comm->comm->ranks;
	return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device)
{
	if (!sim_handle_is_valid(comm))
		return ncclInvalidArgument;
	*device = comm->comm->device;
	return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
	if (!sim_handle_is_valid(comm))
		return ncclInvalidArgument;
	*rank = (int)comm->comm->rank;
	return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void *buffer, size_t size, void **handle)
{
	(void)size;
	*handle = buffer;
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle)
{
	(void)handle;
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size,
				    ncclWindow_t *window, int flags)
{
	(void)size;
	(void)flags;
	*window = buffer;
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
	(void)window;
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommMemStats(ncclComm_t comm, int statistic, uint64_t *value)
{
	(void)statistic;
	*value = 0;
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
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
	return sim_handle_is_valid(comm) ? ncclSuccess : ncclInvalidArgument;
}
