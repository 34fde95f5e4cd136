/* SPDX-License-Identifier: (Apache-2.0 OR BSD-2-Clause) */
/*
 * What a library inside a traced process reports of its GPU: records, in batches. The library calls
 * a mark (plugin/mark.h) of provider "neutracer" named "gpu_records" with
 *
 *	word 0	address of the first record of the batch
 *	word 1	records in the batch, 1 to NT_GPU_BATCH
 *	word 2	number of its first record: records are counted from 1, lost ones included
 *
 * The kernel copies the batch for the agent. Both sides of the layout are released together, but a
 * process may have loaded an older library: fields are only added at the end.
 */
#ifndef NT_PLUGIN_GPU_RECORD_H
#define NT_PLUGIN_GPU_RECORD_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define NT_GPU_BATCH 64 /* records of a batch, at most */

/* A result: NCCL reports times of kernels only if the job's environment says so. */
#define NT_GPU_RESULT_ON_REQUEST (-5)

enum nt_gpu_record_kind {
	NT_GPU_RECORD_LAUNCH = 1, /* a call that enqueues: start_ns to end_ns on the host */
	NT_GPU_RECORD_KERNEL, /* it ran from start_ns to end_ns */
	NT_GPU_RECORD_COMMUNICATION, /* a kernel that waits for other ranks */
	NT_GPU_RECORD_COPY,
	/* What is enqueued from start_ns on is reported. */
	NT_GPU_RECORD_OPEN,
	/*
	 * Nothing more is reported: another client of the same interface took over, or result `stream`
	 * of the interface or of the library.
	 */
	NT_GPU_RECORD_GIVEN_UP,
	NT_GPU_RECORD_KIND_END, /* keep last */
};

/* Of a kernel of NCCL, by its name. */
enum nt_gpu_record_op {
	NT_GPU_RECORD_OP_UNKNOWN,
	NT_GPU_RECORD_OP_ALL_REDUCE,
	NT_GPU_RECORD_OP_ALL_GATHER,
	NT_GPU_RECORD_OP_REDUCE_SCATTER,
	NT_GPU_RECORD_OP_BROADCAST,
	NT_GPU_RECORD_OP_REDUCE,
	NT_GPU_RECORD_OP_SEND_RECV, /* sends, receives, and what consists of them */
};

/* Times are of CLOCK_BOOTTIME, in nanoseconds. */
struct nt_gpu_record {
	__u64 start_ns, end_ns;
	__u32 correlation; /* of the call that enqueued it; 0: unknown */
	__u32 stream; /* number of the stream; of a call: its thread */
	__u16 kind; /* enum nt_gpu_record_kind */
	__u8 device; /* as the process numbers it */
	__u8 op; /* enum nt_gpu_record_op */
	__u32 graph; /* id of the graph that it is part of; 0: none */
};

/*
 * With the mark "nccl_sends", in place of records: sends of one size to one rank of a communicator,
 * since the last time, each from when the network took it to its completion. Of sends of several
 * sizes, the largest.
 */
struct nt_gpu_transfer {
	__u64 comm; /* ncclComm.commHash */
	__u32 rank; /* of the sender in it */
	__u32 peer; /* of the receiver; NT_GPU_NO_PEER: `sends` operations were not measured */
	__u32 bytes; /* of one send */
	__u32 shortest_ns; /* send */
	__u32 sends;
	__u32 busy_ns; /* with one of them under way */
};

#define NT_GPU_NO_PEER 0xffffffffU

_Static_assert(sizeof(struct nt_gpu_record) == 32, "shared with the agent");
_Static_assert(sizeof(struct nt_gpu_transfer) == sizeof(struct nt_gpu_record),
	       "one in place of the other");

#endif
