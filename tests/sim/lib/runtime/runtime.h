/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The calls of libcuda that the runtime ends in, and what every call of the runtime begins with. */
#ifndef NT_SIM_LIB_RUNTIME_H
#define NT_SIM_LIB_RUNTIME_H

#include "tests/sim/lib/call_id.h"
#include "tests/sim/lib/cuda.h"
#include "tests/sim/lib/standin.h"

#define DRIVER(X)                                                                                  \
	X(cuInit)                                                                                  \
	X(cuGetProcAddress_v2)                                                                     \
	X(cuDriverGetVersion)                                                                      \
	X(cuDeviceGetCount)                                                                        \
	X(cuDeviceGetAttribute)                                                                    \
	X(cuDeviceGetName)                                                                         \
	X(cuDeviceGetUuid_v2)                                                                      \
	X(cuDeviceGetPCIBusId)                                                                     \
	X(cuDeviceTotalMem_v2)                                                                     \
	X(cuDevicePrimaryCtxRetain)                                                                \
	X(cuCtxGetCurrent)                                                                         \
	X(cuCtxSetCurrent)                                                                         \
	X(cuCtxGetDevice)                                                                          \
	X(cuCtxSynchronize)                                                                        \
	X(cuCtxGetStreamPriorityRange)                                                             \
	X(cuMemGetInfo_v2)                                                                         \
	X(cuMemAlloc_v2)                                                                           \
	X(cuMemFree_v2)                                                                            \
	X(cuMemAllocAsync)                                                                         \
	X(cuMemFreeAsync)                                                                          \
	X(cuMemAllocFromPoolAsync)                                                                 \
	X(cuMemAllocPitch_v2)                                                                      \
	X(cuMemAllocManaged)                                                                       \
	X(cuMemHostAlloc)                                                                          \
	X(cuMemFreeHost)                                                                           \
	X(cuMemHostRegister_v2)                                                                    \
	X(cuMemHostUnregister)                                                                     \
	X(cuMemHostGetDevicePointer_v2)                                                            \
	X(cuMemcpy)                                                                                \
	X(cuMemcpyAsync)                                                                           \
	X(cuMemcpyHtoD_v2)                                                                         \
	X(cuMemcpyDtoH_v2)                                                                         \
	X(cuMemcpyDtoD_v2)                                                                         \
	X(cuMemcpyHtoDAsync_v2)                                                                    \
	X(cuMemcpyDtoHAsync_v2)                                                                    \
	X(cuMemcpyDtoDAsync_v2)                                                                    \
	X(cuMemsetD8_v2)                                                                           \
	X(cuMemsetD8Async)                                                                         \
	X(cuPointerGetAttribute)                                                                   \
	X(cuStreamCreateWithPriority)                                                              \
	X(cuStreamDestroy_v2)                                                                      \
	X(cuStreamSynchronize)                                                                     \
	X(cuStreamQuery)                                                                           \
	X(cuStreamWaitEvent)                                                                       \
	X(cuStreamGetFlags)                                                                        \
	X(cuStreamGetPriority)                                                                     \
	X(cuStreamAddCallback)                                                                     \
	X(cuStreamBeginCapture_v2)                                                                 \
	X(cuStreamEndCapture)                                                                      \
	X(cuStreamIsCapturing)                                                                     \
	X(cuStreamGetCaptureInfo_v2)                                                               \
	X(cuThreadExchangeStreamCaptureMode)                                                       \
	X(cuEventCreate)                                                                           \
	X(cuEventDestroy_v2)                                                                       \
	X(cuEventRecord)                                                                           \
	X(cuEventRecordWithFlags)                                                                  \
	X(cuEventQuery)                                                                            \
	X(cuEventSynchronize)                                                                      \
	X(cuEventElapsedTime_v2)                                                                   \
	X(cuLaunchKernel)                                                                          \
	X(cuLaunchKernelEx)                                                                        \
	X(cuLaunchCooperativeKernel)                                                               \
	X(cuLaunchHostFunc)                                                                        \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                             \
	X(cuGraphInstantiateWithFlags)                                                             \
	X(cuGraphLaunch)                                                                           \
	X(cuGraphExecDestroy)                                                                      \
	X(cuGraphDestroy)                                                                          \
	X(cuGraphGetNodes)                                                                         \
	X(cuSimObserver)                                                                           \
	X(cuSimRuntimeCall)

#define MEMBER(name) __typeof__(name) *name;

/* Filled at the first call. */
struct sim_driver {
	DRIVER(MEMBER)
};
extern struct sim_driver sim_driver;

/* Every call begins here. The thread gets the context of its device at its first call. */
cudaError_t sim_enter(void);

/* The driver's answer as the runtime's, which keeps it as the thread's last error. */
cudaError_t sim_leave(CUresult r);

#define CALL(function, ...)                                                                        \
	({                                                                                         \
		cudaError_t entered_ = sim_enter();                                                \
		entered_ == cudaSuccess ? sim_leave(sim_driver.function(__VA_ARGS__)) : entered_;  \
	})

/* The same, with the number that an observer sees. */
#define CALL_AS(cbid, function, ...)                                                               \
	({                                                                                         \
		cudaError_t entered_ = sim_enter();                                                \
		if (entered_ == cudaSuccess) {                                                     \
			if (*sim_driver.cuSimObserver)                                             \
				sim_driver.cuSimRuntimeCall(cbid);                                 \
			entered_ = sim_leave(sim_driver.function(__VA_ARGS__));                    \
		}                                                                                  \
		entered_;                                                                          \
	})

#endif
