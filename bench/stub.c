/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A library that does nothing under the names that the agent probes, so that a loop over a call
 * measures the probe. Built unoptimised, so that each function sets up a frame and begins with a
 * push, as those of the real libraries do.
 */
int cudaLaunchKernel(const void *func, unsigned long long a, unsigned int b, unsigned long long c,
		     unsigned int d, void **args, unsigned long smem, void *stream);
int cudaStreamSynchronize(void *stream);
int ncclAllReduce(const void *send, void *recv, unsigned long count, int type, int op, void *comm,
		  void *stream);
int MPI_Allreduce(const void *send, void *recv, int count, void *type, void *op, void *comm);

static volatile int sink;

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
