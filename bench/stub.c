/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A library that does nothing under the names that the agent probes, so that a loop over a call
 * measures the probe. Built unoptimised, so that each function sets up a frame and begins with a
 * push, as those of the real libraries do.
 */
int cudaLaunchKernel(const void *func, unsigned long long a, unsigned int b, unsigned long long c,
		     unsigned int d, void **args, unsigned long smem, void *stream);
int cudaStreamSynchronize(void *stream);
int cudaEventQuery(void *event);
int cudaMalloc(void **ret, unsigned long bytes);
int ncclAllReduce(const void *send, void *recv, unsigned long count, int type, int op, void *comm,
		  void *stream);
int MPI_Allreduce(const void *send, void *recv, int count, void *type, void *op, void *comm);

int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
		 const void *a);
int cublasLtMatmul(void *handle, const void *operation, const void *alpha, const void *a,
		   const void *a_layout, const void *b, const void *b_layout, const void *beta);

int Py_Initialize(void);
int collect_marked(void);

static volatile int sink;

/* A place for probes, as sys/sdt.h makes it, without a semaphore. */
#define MARK(name)                                                                                 \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                              \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b, 0, 0\n"                                                \
			 ".asciz \"python\"\n"                                                     \
			 ".asciz \"" name "\"\n"                                                   \
			 ".asciz \"\"\n"                                                           \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n")

int cudaLaunchKernel(const void *func, unsigned long long a, unsigned int b, unsigned long long c,
		     unsigned int d, void **args, unsigned long smem, void *stream)
{
	(void)func, (void)a, (void)b, (void)c, (void)d, (void)args, (void)smem, (void)stream;
	return sink;
}

int cudaStreamSynchronize(void *stream)
{
	(void)stream;
	return sink;
}

int cudaEventQuery(void *event)
{
	(void)event;
	return sink;
}

int cudaMalloc(void **ret, unsigned long bytes)
{
	(void)ret, (void)bytes;
	return sink;
}

int ncclAllReduce(const void *send, void *recv, unsigned long count, int type, int op, void *comm,
		  void *stream)
{
	(void)send, (void)recv, (void)count, (void)type, (void)op, (void)comm, (void)stream;
	return sink;
}

int MPI_Allreduce(const void *send, void *recv, int count, void *type, void *op, void *comm)
{
	(void)send, (void)recv, (void)count, (void)type, (void)op, (void)comm;
	return sink;
}

/* The arguments that lie further up are the caller's stack. */
int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
		 const void *a)
{
	(void)handle, (void)ta, (void)tb, (void)m, (void)n, (void)k, (void)alpha, (void)a;
	return sink;
}

int cublasLtMatmul(void *handle, const void *operation, const void *alpha, const void *a,
		   const void *a_layout, const void *b, const void *b_layout, const void *beta)
{
	(void)handle, (void)operation, (void)alpha, (void)a, (void)a_layout, (void)b;
	(void)b_layout, (void)beta;
	return sink;
}

int Py_Initialize(void)
{
	return sink;
}

int collect_marked(void)
{
	MARK("gc__start");
	MARK("gc__done");
	return sink;
}
