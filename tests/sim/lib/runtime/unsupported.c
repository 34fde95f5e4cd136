/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Calls that frameworks are linked against and that the stand-in answers with "not supported":
 * pools, sharing between processes, libraries of kernels, making graphs by hand. Who called one has
 * left what the stand-in plays, and hears it.
 */
#include "tests/sim/lib/cuda.h"

#define UNSUPPORTED(name)                                                                          \
	cudaError_t name(void);                                                                    \
	cudaError_t name(void)                                                                     \
	{                                                                                          \
		return cudaErrorNotSupported;                                                      \
	}

UNSUPPORTED(cudaDeviceGetDefaultMemPool)
UNSUPPORTED(cudaDeviceGetGraphMemAttribute)
UNSUPPORTED(cudaDeviceSetGraphMemAttribute)
UNSUPPORTED(cudaMemPoolGetAttribute)
UNSUPPORTED(cudaMemPoolSetAccess)
UNSUPPORTED(cudaMemPoolSetAttribute)
UNSUPPORTED(cudaMemPoolTrimTo)

UNSUPPORTED(cudaIpcCloseMemHandle)
UNSUPPORTED(cudaIpcGetEventHandle)
UNSUPPORTED(cudaIpcGetMemHandle)
UNSUPPORTED(cudaIpcOpenEventHandle)
UNSUPPORTED(cudaIpcOpenMemHandle)

UNSUPPORTED(cudaLibraryGetGlobal)
UNSUPPORTED(cudaLibraryGetKernel)
UNSUPPORTED(cudaLibraryGetKernelCount)
UNSUPPORTED(cudaLibraryGetManaged)
UNSUPPORTED(cudaLibraryGetUnifiedFunction)
UNSUPPORTED(cudaLibraryLoadData)
UNSUPPORTED(cudaLibraryLoadFromFile)
UNSUPPORTED(cudaLibraryUnload)

UNSUPPORTED(cudaGraphAddNode)
UNSUPPORTED(cudaGraphConditionalHandleCreate)
UNSUPPORTED(cudaGraphNodeGetDependencies)
UNSUPPORTED(cudaGraphRetainUserObject)
UNSUPPORTED(cudaStreamBeginCaptureToGraph)
UNSUPPORTED(cudaStreamUpdateCaptureDependencies)
UNSUPPORTED(cudaUserObjectCreate)
UNSUPPORTED(cudaUserObjectRelease)
UNSUPPORTED(cudaMemcpy2DAsync)
