/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows of cuBLAS and cuBLASLt: matrix multiplications, whose operations are summed in the kernel.
 * Signatures of cublas_v2.h and cublasLt.h of CUDA 11 to 13. From CUDA 12 on all but cublasLtMatmul
 * have a sibling with 64-bit sizes.
 *
 * Not probed: functions for vectors and triangular matrices, and cublasGemmGroupedBatchedEx, whose
 * sizes are arrays. They count as work that is not covered.
 */
#include "agent/probes/probe_impl.h"

/* cudaDataType of library_types.h. */
enum {
	F64 = 1,
	F32 = 0,
	F16 = 2,
	C32 = 4,
	C64 = 5,
};

#define GEMM(name, form, type, is_wide)                                                            \
	{                                                                                          \
		.symbol = name, .library = (enum nt_library)NT_LIBRARY_CUBLAS,                     \
		.subject = NT_SUBJECT_GEMM, .role = NT_ROLE_GEMM, .op = NT_OP_UNKNOWN,             \
		.returns = true, .hot = true, .gemm = form, .gemm_type = type,                     \
		.gemm_is_wide = is_wide, NT_NO_COUNT, NT_NO_COMM, NT_NO_STREAM, NT_NO_DATA,        \
		NT_NO_MAKE, NT_NO_DEVICE, NT_NO_DEREF                                              \
	}
#define GEMMS(name, form, type) GEMM(name, form, type, false), GEMM(name "_64", form, type, true)

static const struct nt_probe rows[] = {
	GEMMS("cublasSgemm_v2", NT_GEMM_PLAIN, F32),
	GEMMS("cublasDgemm_v2", NT_GEMM_PLAIN, F64),
	GEMMS("cublasCgemm_v2", NT_GEMM_PLAIN, C32),
	GEMMS("cublasZgemm_v2", NT_GEMM_PLAIN, C64),
	GEMMS("cublasHgemm", NT_GEMM_PLAIN, F16),
	GEMMS("cublasSgemmBatched", NT_GEMM_BATCHED, F32),
	GEMMS("cublasDgemmBatched", NT_GEMM_BATCHED, F64),
	GEMMS("cublasCgemmBatched", NT_GEMM_BATCHED, C32),
	GEMMS("cublasZgemmBatched", NT_GEMM_BATCHED, C64),
	GEMMS("cublasHgemmBatched", NT_GEMM_BATCHED, F16),
	GEMMS("cublasSgemmStridedBatched", NT_GEMM_STRIDED, F32),
	GEMMS("cublasDgemmStridedBatched", NT_GEMM_STRIDED, F64),
	GEMMS("cublasCgemmStridedBatched", NT_GEMM_STRIDED, C32),
	GEMMS("cublasZgemmStridedBatched", NT_GEMM_STRIDED, C64),
	GEMMS("cublasHgemmStridedBatched", NT_GEMM_STRIDED, F16),
	GEMMS("cublasSgemmEx", NT_GEMM_TYPED, 0),
	GEMMS("cublasGemmEx", NT_GEMM_EX, 0),
	GEMMS("cublasGemmBatchedEx", NT_GEMM_BATCHED_EX, 0),
	GEMMS("cublasGemmStridedBatchedEx", NT_GEMM_STRIDED_EX, 0),
	GEMM("cublasLtMatmul", NT_GEMM_LT, 0, true),
};

const struct nt_probe_piece nt_probe_cublas = NT_PIECE(rows);
