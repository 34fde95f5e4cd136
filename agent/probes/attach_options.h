/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options, counters and callbacks of nt_attach (agent/probes/attach.h). */
#ifndef NT_AGENT_PROBES_ATTACH_OPTIONS_H
#define NT_AGENT_PROBES_ATTACH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

struct nt_rank_probe; /* agent/probes/rank_probe.h */

enum nt_attach_mode {
	NT_ATTACH_AUTO,
	NT_ATTACH_SESSION, /* 6.13 */
	NT_ATTACH_MULTI, /* 6.6 */
	NT_ATTACH_PERF, /* one perf link per probe: slow to detach */
};

struct nt_attach_options {
	enum nt_attach_mode mode; /* AUTO, or force one for a test */
	size_t ring_bytes; /* power of two */
	uint64_t min_call_ns; /* shorter synchronising calls are only counted and summed */
	uint32_t share_shift; /* a share of the ring is per 2^share_shift ns; 0: 134 ms */
	bool has_thread; /* a thread makes and frees links, not the caller */
	/*
	 * Called by nt_attach_settle(). result: the number of functions attached in the file, or a
	 * negative errno: none of those requested. NULL: results are not reported.
	 */
	void (*attached)(void *data, const char *name, int result);
	/*
	 * The same for nt_attach_order_rank_probe(). The callee owns the probe; NULL if result is
	 * negative.
	 */
	void (*rank_probe_made)(void *data, int library, uint32_t pid, uint64_t start_ns,
				int result, struct nt_rank_probe *probe);
	/* A batch of GPU records, in ring order with the events of calls. NULL: they are dropped. */
	void (*gpu_batch)(void *data, const struct nt_event_gpu *batch);
	/* The same of queries of CUDA events. */
	void (*event_query)(void *data, const struct nt_event_query *query);
	/* The same of matrix multiplications while kernels are reported. */
	void (*gemm)(void *data, const struct nt_event_gemm *gemm);
	/* The same of what was multiplied while a stream captured. */
	void (*capture)(void *data, const struct nt_event_capture *capture);
	/* A sampled call of a process at level L1, not in order with the others. */
	void (*detail)(void *data, const struct nt_event_detail *detail);
	/* The same of queue pairs and devices of RDMA. */
	void (*verbs)(void *data, const struct nt_event_verbs *verbs);
	/* In ring order: a process that has called a probed function runs another program. */
	void (*executed)(void *data, uint32_t pid, uint64_t boot_ns);
	void *data;
};

struct nt_attach_stats {
	uint64_t files, links, probes;
	uint64_t refused_slow; /* functions not probed: their first instruction is slow */
	uint64_t failed; /* functions that the kernel refused to probe */
	uint64_t dropped[NT_EVENT_TYPE_END]; /* events dropped for want of room in the ring */
	uint64_t over_share; /* of these, events of a process or owner over its share of the ring */
	uint64_t untracked; /* calls lost because the kernel had no memory */
	uint64_t unreturned; /* calls lost because their probes were detached first */
	uint64_t unmeasured; /* timed spans without a recorded begin, or nested in another */
	uint64_t missed; /* recursion misses of the BPF programs */
};

/* Receives an event from the ring buffer; its size is checked. */
typedef void (*nt_event_fn)(void *data, const struct nt_event_call *call,
			    const uint8_t *id /* NT_ID_BYTES, or NULL */);
/* Receives a thread that is inside a probed call now. */
typedef void (*nt_inside_fn)(void *data, uint32_t pid, uint32_t tid, uint16_t row,
			     const struct nt_inside *inside);
/* Receives a process's main thread that is in no probed call now: see user_ip in bpf/event.h. */
typedef void (*nt_outside_fn)(void *data, uint32_t pid, uint64_t user_ip);

#endif
