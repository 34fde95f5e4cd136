/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What code made by nvcc calls by itself: it registers its kernels when it is loaded, asks for their
 * handles and launches them. A kernel's handle here is the address of its host stub.
 */
#include <stdint.h>
#include <string.h>

#include "tests/sim/lib/runtime/runtime.h"

struct configuration {
	dim3 grid, block;
	size_t shared_bytes;
	cudaStream_t stream;
};

/* Of the launch whose arguments are being put together. */
static __thread struct configuration pushed;

void **__cudaRegisterFatBinary(void *image)
{
	static void *handle;

	(void)image;
	return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

void __cudaRegisterFunction(void **handle, const char *stub, char *function, const char *name,
			    int thread_limit, void *thread, void *block, dim3 *block_size,
			    dim3 *grid_size, int *warp_size)
{
	(void)handle;
	(void)stub;
	(void)function;
	(void)name;
	(void)thread_limit;
	(void)thread;
	(void)block;
	(void)block_size;
	(void)grid_size;
	(void)warp_size;
}

/* A variable of the device lives where its shadow on the host does. */
void __cudaRegisterVar(void **handle, char *shadow, char *address, const char *name, int external,
		       size_t bytes, int constant, int global)
{
	(void)handle;
	(void)shadow;
	(void)address;
	(void)name;
	(void)external;
	(void)bytes;
	(void)constant;
	(void)global;
}

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
					 cudaStream_t stream)
{
	pushed = (struct configuration){
		.grid = grid, .block = block, .shared_bytes = shared_bytes, .stream = stream};
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
				       cudaStream_t *stream)
{
	*grid = pushed.grid;
	*block = pushed.block;
	*shared_bytes = pushed.shared_bytes;
	*stream = pushed.stream;
	return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *ret, const void *stub)
{
	*ret = (cudaKernel_t)(uintptr_t)stub;
	return cudaSuccess;
}

/* The real one, too, goes on in the exported call. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared_bytes, cudaStream_t stream)
{
	cudaError_t r = sim_enter();

	if (r != cudaSuccess)
		return r;
	sim_driver.cuSimRuntimeCall(SIM_RUNTIME_COMPILED_LAUNCH_KERNEL);
	return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *ret, const void *function)
{
	(void)function;
	*ret = (struct cudaFuncAttributes){.max_threads_per_block = 1024,
					   .registers = 32,
					   .ptx_version = 90,
					   .binary_version = 90,
					   .max_dynamic_shared_bytes = 232448};
	return cudaSuccess;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, int attribute, int value,
					    int device)
{
	(void)device;
	return cudaFuncSetAttribute(kernel, attribute, value);
}

cudaError_t cudaGetSymbolAddress(void **ret, const void *symbol)
{
	*ret = (void *)(uintptr_t)symbol;
	return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
			       int kind)
{
	(void)kind;
	memcpy((char *)(uintptr_t)symbol + offset, from, bytes);
	return cudaSuccess;
}
