/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory: allocation, copies, what a pointer is. */
#include "tests/sim/lib/runtime/runtime.h"

cudaError_t cudaMalloc(void **ret, size_t bytes)
{
	if (bytes == 0) {
		*ret = NULL;
		return sim_enter();
	}
	return CALL(cuMemAlloc_v2, (CUdeviceptr *)ret, bytes);
}

cudaError_t cudaFree(void *pointer)
{
	return CALL(cuMemFree_v2, (CUdeviceptr)pointer);
}

cudaError_t cudaMallocAsync(void **ret, size_t bytes, cudaStream_t stream)
{
	return CALL(cuMemAllocAsync, (CUdeviceptr *)ret, bytes, stream);
}

cudaError_t cudaMallocFromPoolAsync(void **ret, size_t bytes, CUmemoryPool pool,
				    cudaStream_t stream)
{
	return CALL(cuMemAllocFromPoolAsync, (CUdeviceptr *)ret, bytes, pool, stream);
}

cudaError_t cudaMallocPitch(void **ret, size_t *pitch, size_t width, size_t height)
{
	return CALL(cuMemAllocPitch_v2, (CUdeviceptr *)ret, pitch, width, height, 4);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
	return CALL(cuMemFreeAsync, (CUdeviceptr)pointer, stream);
}

cudaError_t cudaMallocManaged(void **ret, size_t bytes, unsigned int flags)
{
	return CALL(cuMemAllocManaged, (CUdeviceptr *)ret, bytes, flags);
}

cudaError_t cudaMallocHost(void **ret, size_t bytes)
{
	return CALL(cuMemHostAlloc, ret, bytes, 0);
}

cudaError_t cudaHostAlloc(void **ret, size_t bytes, unsigned int flags)
{
	return CALL(cuMemHostAlloc, ret, bytes, flags);
}

cudaError_t cudaFreeHost(void *pointer)
{
	return CALL(cuMemFreeHost, pointer);
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
	return CALL(cuMemHostRegister_v2, pointer, bytes, flags);
}

cudaError_t cudaHostUnregister(void *pointer)
{
	return CALL(cuMemHostUnregister, pointer);
}

cudaError_t cudaHostGetDevicePointer(void **ret, void *pointer, unsigned int flags)
{
	return CALL(cuMemHostGetDevicePointer_v2, (CUdeviceptr *)ret, pointer, flags);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	return CALL(cuMemGetInfo_v2, free_bytes, total_bytes);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return CALL_AS(SIM_RUNTIME_MEMCPY, cuMemcpyHtoD_v2, (CUdeviceptr)to, from, bytes);
	case cudaMemcpyDeviceToHost:
		return CALL_AS(SIM_RUNTIME_MEMCPY, cuMemcpyDtoH_v2, to, (CUdeviceptr)from, bytes);
	case cudaMemcpyDeviceToDevice:
		return CALL_AS(SIM_RUNTIME_MEMCPY, cuMemcpyDtoD_v2, (CUdeviceptr)to,
			       (CUdeviceptr)from, bytes);
	default:
		return CALL_AS(SIM_RUNTIME_MEMCPY, cuMemcpy, (CUdeviceptr)to, (CUdeviceptr)from,
			       bytes);
	}
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return CALL_AS(SIM_RUNTIME_MEMCPY_ASYNC, cuMemcpyHtoDAsync_v2, (CUdeviceptr)to,
			       from, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return CALL_AS(SIM_RUNTIME_MEMCPY_ASYNC, cuMemcpyDtoHAsync_v2, to,
			       (CUdeviceptr)from, bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return CALL_AS(SIM_RUNTIME_MEMCPY_ASYNC, cuMemcpyDtoDAsync_v2, (CUdeviceptr)to,
			       (CUdeviceptr)from, bytes, stream);
	default:
		return CALL_AS(SIM_RUNTIME_MEMCPY_ASYNC, cuMemcpyAsync, (CUdeviceptr)to,
			       (CUdeviceptr)from, bytes, stream);
	}
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
				size_t bytes, cudaStream_t stream)
{
	(void)to_device;
	(void)from_device;
	return CALL_AS(SIM_RUNTIME_MEMCPY_PEER_ASYNC, cuMemcpyDtoDAsync_v2, (CUdeviceptr)to,
		       (CUdeviceptr)from, bytes, stream);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
	return CALL_AS(SIM_RUNTIME_MEMSET, cuMemsetD8_v2, (CUdeviceptr)to, (unsigned char)value,
		       bytes);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
	return CALL_AS(SIM_RUNTIME_MEMSET_ASYNC, cuMemsetD8Async, (CUdeviceptr)to,
		       (unsigned char)value, bytes, stream);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
	CUdeviceptr address = (CUdeviceptr)pointer;
	int kind = 0, managed = 0, on = 0;
	cudaError_t r = sim_enter();

	if (r != cudaSuccess)
		return r;
	*attributes = (struct cudaPointerAttributes){.host_pointer = (void *)address};
	if (sim_driver.cuPointerGetAttribute(&kind, 2, address) != CUDA_SUCCESS)
		return cudaSuccess; /* type 0: unregistered */
	(void)sim_driver.cuPointerGetAttribute(&managed, 8, address);
	(void)sim_driver.cuPointerGetAttribute(&on, 9, address);
	attributes->type = managed ? 3 : kind;
	attributes->device = on;
	attributes->device_pointer = (void *)address;
	if (kind == CU_MEMORYTYPE_DEVICE && !managed)
		attributes->host_pointer = NULL;
	return cudaSuccess;
}
