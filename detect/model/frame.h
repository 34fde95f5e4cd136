/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A frame: the detector's input, one window of all ranks of a job. The engine builds it from the
 * agents' windows, an offline reader from a recording or a trace. Plain borrowed data. Times are
 * real-time nanoseconds (or since the start of a trace); durations are nanoseconds, summed over the
 * steps that ended in the frame.
 */
#ifndef NT_DETECT_MODEL_FRAME_H
#define NT_DETECT_MODEL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NT_FRAME_MAX_RANKS = 131072,
	NT_FRAME_MAX_COMMS = 64, /* per rank; the builder drops and counts the rest */
	NT_FRAME_RECENT = 16,
	NT_FRAME_MAX_TRANSFERS = 256, /* per rank; the rest as above */
	NT_FRAME_NO_NODE = UINT32_MAX,
};

/* Own work is observable at T2 and T3. The values are those of the wire. */
enum nt_frame_tier {
	NT_FRAME_T0 = 1,
	NT_FRAME_T1,
	NT_FRAME_T2,
	NT_FRAME_T3,
};

/* The operation's kind as used by the rules; its number `op` is only compared for equality. */
enum nt_frame_kind {
	NT_FRAME_OTHER, /* a completion, a group end */
	NT_FRAME_SYNCHRONISING, /* all-reduce, all-gather, reduce-scatter, barrier */
	NT_FRAME_ALL_TO_ALL, /* synchronising; identifies an expert-parallel group */
	NT_FRAME_ROOTED, /* broadcast, reduce, gather, scatter: does not synchronise */
	NT_FRAME_POINT_TO_POINT,
};

struct nt_frame_op {
	uint8_t op; /* enum nt_op of the wire */
	uint8_t kind; /* enum nt_frame_kind */
	bool by_gpu; /* the times are the device's (T3) */
	uint64_t calls, bytes;
	uint64_t first, last; /* call numbers */
	/* Entry to return of blocking calls, or the device's times; 0 calls: not observed. */
	uint64_t timed_calls, sum_ns, min_ns;
};

struct nt_frame_signature {
	uint64_t number;
	uint64_t count;
	uint32_t type;
	uint32_t tensors; /* of a coalesced call; 0: unknown */
	uint8_t op;
	uint64_t entry_ns; /* 0: unknown */
};

struct nt_frame_comm {
	uint64_t id; /* equal on all members */
	uint32_t rank, size; /* of this rank in it */
	uint64_t epoch, last, rolling_hash;
	const struct nt_frame_op *op;
	size_t ops;
	const struct nt_frame_signature *recent; /* newest last */
	size_t recents;
};

/*
 * The shortest of a rank's largest blocking calls to or from one member of a communicator. A peer
 * may occur more than once.
 */
struct nt_frame_transfer {
	uint64_t comm, calls, bytes, min_ns; /* bytes: of one call */
	uint32_t peer; /* its rank in the communicator */
	bool sends; /* to the peer; otherwise from it */
	bool in_network; /* alone; otherwise waiting for the peer is part of it */
};

/* The call that a rank is in at the end of the frame. */
struct nt_frame_inside {
	bool in_call; /* in a communication or synchronising call */
	bool synchronising; /* cudaStreamSynchronize and its kin: no communicator */
	uint64_t comm, number, since_ns, count;
	uint32_t type;
	uint8_t op, kind;
	/* Offline only, and in no saved state. */
	bool queued; /* it is enqueued; whether the device began is not recorded */
	bool left; /* others have completed it */
	bool after; /* earlier sends or receives of the rank are not complete either */
	uint32_t tensors; /* see struct nt_frame_signature */
};

struct nt_frame_rank {
	uint32_t rank; /* of the job */
	uint32_t node; /* index into the job's nodes, NT_FRAME_NO_NODE: not known */
	uint32_t steps; /* ended in the frame; 0: all sums below are zero */
	uint8_t own_tier; /* NT_FRAME_T2 or T3: own_ns holds. T1: only host_ns does; T0: neither */
	bool own_by_device; /* step_ns and own_ns are of the GPU: calls are not those of these steps */
	bool rank_known; /* false: never accuse by this number */
	bool observed; /* a window of this rank arrived for this frame */
	bool silent; /* no data from its agent: the rank is unobserved, not missing */
	bool ended; /* its process is gone */
	bool finalized; /* after it finalized the library */
	bool uses_gpu;
	bool sampled; /* calls are observed part of the time; windows are longer */
	bool lost_sight; /* not observed now: it may be in a call */
	bool unrecorded; /* offline: no file of it; its groups and calls are those of the others */
	bool no_host; /* some calls are never observed: host_ns is invalid */
	uint64_t own_ns; /* own work */
	uint64_t own_blocked_ns; /* the part of it in synchronising calls: GPU busy */
	/* Offline only: the longest piece of own work of each step, summed up. 0: not observed. */
	uint64_t own_longest_ns;
	uint64_t host_ns; /* outside communication, synchronising and query calls */
	uint64_t blocked_ns; /* in synchronising calls */
	uint64_t comm_ns; /* in communication calls */
	/* Offline: in collectives, also those that `comm` does not hold. 0: as in `comm`. */
	uint64_t collective_ns;
	uint64_t step_ns; /* the steps' durations */
	uint64_t launches;
	uint64_t ended_ns; /* time of `ended` */
	uint8_t exit_signal,
		exit_status; /* of `ended`; both 0: it ended well, or it is not known */
	bool ended_by_parent; /* exit_signal came from the parent process: mostly a launcher */
	/* Of its launching thread, over the whole window, not only whole steps. */
	uint64_t window_ns; /* the period of these sums */
	uint64_t on_cpu_ns, run_queue_ns, io_ns, gc_ns;
	uint64_t read_bytes, write_bytes, major_faults, process_cpu_ns;
	/* By tracepoints, in system_ns of the window; see enum nt_step_metric. */
	uint64_t system_ns, quota_ns, file_ns, fault_ns, reclaim_ns, process_io_ns;
	uint64_t tcp_retransmits;
	/* NIC counters of its node in the window; equal on all ranks of a node. */
	uint64_t nic_retransmits, nic_errors, nic_congestion;
	/* The clock of its GPU was held down, by the GPU's driver (agent/gpu/gpu_totals.h). */
	uint64_t gpu_thermal_ns, gpu_power_ns, gpu_hardware_ns;
	uint64_t gpu_uncorrected, gpu_xids; /* errors in the window */
	uint32_t gpu_last_xid; /* 0: none */
	/* In which it is known what computed: multiprocessors with work, tensor cores. */
	uint64_t gpu_activity_ns, gpu_sm_ns, gpu_tensor_ns;
	char state; /* R S D T Z of the launching thread, 0: not known */
	struct nt_frame_inside inside;
	const struct nt_frame_comm *comm;
	size_t comms;
	const struct nt_frame_transfer *transfer;
	size_t transfers;
	uint64_t lost; /* events lost: its sums are too small */
	/* Offline and T3 only: position in the layout, if the file states it; -1: learned. */
	int32_t stage, replica;
};

/* One sampled call on one rank. Sorted by (comm, epoch, number, rank). */
struct nt_frame_sample {
	uint64_t comm, epoch, number, bytes;
	uint8_t op, kind;
	bool by_gpu; /* arrival and release are those of the kernel, by the device (T3) */
	uint32_t rank;
	uint64_t arrive_ns, release_ns; /* release 0: not observed */
};

struct nt_frame {
	uint64_t start_ns, end_ns;
	const struct nt_frame_rank *rank; /* ascending by rank, each once */
	size_t ranks;
	const struct nt_frame_sample *sample;
	size_t samples;
	uint32_t expected_ranks; /* size of the job */
	double completeness; /* rank-windows received ÷ expected */
	/*
	 * Correction to earlier frames: further missing rank time ÷ expected ranks; negative: time
	 * counted as missing that arrived late.
	 */
	double missed_ns;
};

/* The rank's entry, or NULL. */
const struct nt_frame_rank *nt_frame_find(const struct nt_frame *frame, uint32_t rank);
/*
 * The rank's entry of the communicator; `likely` is an index hint. NULL if absent or rank is NULL.
 */
const struct nt_frame_comm *nt_frame_find_comm(const struct nt_frame_rank *rank, uint64_t comm,
					       size_t likely);

#endif
