/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernels, and graphs of them. */
#include "tests/sim/lib/runtime/runtime.h"

/* ---- kernels ---- */

/* A function of ours is its own handle; anything else, even a host stub, the driver finds out. */
static CUfunction handle_of(const void *function)
{
	return (CUfunction)(uintptr_t)function;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
			     size_t shared_bytes, cudaStream_t stream)
{
	if (!function)
		return sim_leave((CUresult)cudaErrorInvalidDeviceFunction);
	return CALL_AS(SIM_RUNTIME_LAUNCH_KERNEL, cuLaunchKernel, handle_of(function), grid.x,
		       grid.y, grid.z, block.x, block.y, block.z, (unsigned int)shared_bytes,
		       stream, args, NULL);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **args)
{
	CUlaunchConfig driver_config = {.grid_x = config->grid.x,
					.grid_y = config->grid.y,
					.grid_z = config->grid.z,
					.block_x = config->block.x,
					.block_y = config->block.y,
					.block_z = config->block.z,
					.shared_bytes = (unsigned int)config->shared_bytes,
					.stream = config->stream};

	if (!function)
		return sim_leave((CUresult)cudaErrorInvalidDeviceFunction);
	return CALL_AS(SIM_RUNTIME_LAUNCH_KERNEL_EX, cuLaunchKernelEx, &driver_config,
		       handle_of(function), args, NULL);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **args,
					size_t shared_bytes, cudaStream_t stream)
{
	if (!function)
		return sim_leave((CUresult)cudaErrorInvalidDeviceFunction);
	return CALL_AS(SIM_RUNTIME_LAUNCH_COOPERATIVE_KERNEL, cuLaunchCooperativeKernel,
		       handle_of(function), grid.x, grid.y, grid.z, block.x, block.y, block.z,
		       (unsigned int)shared_bytes, stream, args);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, CUhostFn fn, void *data)
{
	return CALL_AS(SIM_RUNTIME_LAUNCH_HOST_FUNC, cuLaunchHostFunc, stream, fn, data);
}

cudaError_t cudaFuncSetAttribute(const void *function, int attribute, int value)
{
	(void)function;
	(void)attribute;
	(void)value;
	return sim_enter();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
							  int block_size, size_t shared_bytes)
{
	return CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, handle_of(function),
		    block_size, shared_bytes);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, const void *function, int block_size, size_t shared_bytes, unsigned int flags)
{
	(void)flags;
	return CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, handle_of(function),
		    block_size, shared_bytes);
}

/* ---- graphs ---- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t graph, unsigned long long flags)
{
	return CALL(cuGraphInstantiateWithFlags, ret, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ret, cudaGraph_t graph,
					  unsigned long long flags)
{
	return CALL(cuGraphInstantiateWithFlags, ret, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	return CALL_AS(SIM_RUNTIME_GRAPH_LAUNCH, cuGraphLaunch, exec, stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	return CALL(cuGraphExecDestroy, exec);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	return CALL(cuGraphDestroy, graph);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void **nodes, size_t *count)
{
	return CALL(cuGraphGetNodes, graph, nodes, count);
}
