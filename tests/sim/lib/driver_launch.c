/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The driver's calls on kernels, the modules that hold them, and graphs of them. */
#include "tests/sim/lib/activity.h"
#include "tests/sim/lib/driver.h"

static const struct sim_function short_function = {
	.magic = SIM_FUNCTION_MAGIC, .kind = SIM_FUNCTION_SHORT, .name = "sim_short_kernel()"};

static CUresult launch(enum sim_driver_call cbid, CUfunction function, CUstream stream,
		       void **params)
{
	struct sim_op op = {.kind = SIM_OP_KERNEL, .kernel.ns = 2000};
	struct sim_stream *on;
	struct sim_api api;

	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (function->magic != SIM_FUNCTION_MAGIC)
		function = (CUfunction)(uintptr_t)&short_function;
	op.kernel.name = function->name ? function->name : "sim_timed_kernel(unsigned long)";
	if (function->kind == SIM_FUNCTION_TIMED && params) {
		op.kernel.ns = *(const uint64_t *)params[0];
	} else if (function->kind == SIM_FUNCTION_MODEL && params) {
		op.kind = SIM_OP_MODEL;
		op.model.model = function->model;
		op.model.state = params[0];
	}
	sim_api_begin(&api, cbid);
	on = sim_driver_enter(stream);
	return sim_api_end(&api, sim_driver_leave(sim_stream_put(on, &op)));
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared_bytes, CUstream stream,
			void **params, void **extra)
{
	(void)extra;
	(void)shared_bytes;
	if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(SIM_DRIVER_LAUNCH_KERNEL, function, stream, params);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
			  void **extra)
{
	(void)extra;
	return launch(SIM_DRIVER_LAUNCH_KERNEL_EX, function, config->stream, params);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
				   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
				   void **params)
{
	(void)shared_bytes;
	if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(SIM_DRIVER_LAUNCH_COOPERATIVE_KERNEL, function, stream, params);
}

/* A module holds any function that is asked for: it does nothing. */
CUresult cuModuleLoadData(CUmodule *ret, const void *image)
{
	(void)image;
	*ret = (CUmodule)(uintptr_t)&short_function;
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
	(void)module;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name)
{
	(void)name;
	*ret = (CUfunction)(void *)module;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
	(void)function;
	*value = attribute == 0 ? 1024 : 0;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
	(void)function;
	(void)attribute;
	(void)value;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
						     int block_size, size_t shared_bytes)
{
	(void)function;
	(void)shared_bytes;
	*blocks = block_size > 0 ? 2048 / block_size : 0;
	return CUDA_SUCCESS;
}

/* ---- graphs ---- */

CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph graph, unsigned long long flags)
{
	(void)flags;
	sim_model_lock();
	return sim_driver_leave(sim_graph_instantiate(graph, ret));
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	struct sim_stream *on;
	struct sim_api api;

	sim_api_begin(&api, SIM_DRIVER_GRAPH_LAUNCH);
	on = sim_driver_enter(stream);
	return sim_api_end(&api, sim_driver_leave(sim_graph_launch(exec, on)));
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	sim_model_lock();
	sim_graph_exec_free(exec);
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph)
{
	sim_model_lock();
	sim_graph_free(graph);
	return sim_driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphGetNodes(CUgraph graph, void **nodes, size_t *count)
{
	sim_model_lock();
	if (!nodes)
		*count = sim_graph_nodes(graph);
	return sim_driver_leave(CUDA_SUCCESS);
}
