/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the BPF loader; for agent/probes/bpf_loader*.c alone. */
#ifndef NT_AGENT_PROBES_BPF_LOADER_IMPL_H
#define NT_AGENT_PROBES_BPF_LOADER_IMPL_H

/* Out of memory is reported to the caller; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "agent/probes/bpf_loader.h"

struct call_bpf;
struct session_bpf;
struct ring_buffer;

enum {
	/* a row without a function, for trials (agent/probes/bpf_loader_open.c) */
	NT_BPF_LOADER_TRIAL_ROW = 0x3ff,
};

/* The last counters of an ended process, kept until the agent handles its end. */
struct nt_bpf_loader_ended {
	uint32_t pid;
	bool is_lost; /* out of memory when it was added to the table */
	struct nt_event_end last;
	UT_hash_handle hh;
};

struct nt_bpf_loader {
	enum nt_attach_mode mode;
	struct call_bpf *call;
	struct session_bpf *session; /* in session mode */
	struct ring_buffer *ring, *details;
	nt_event_fn fn; /* of the current poll */
	void *data;
	void (*gpu_batch)(void *data, const struct nt_event_gpu *batch); /* or NULL */
	void (*event_query)(void *data, const struct nt_event_query *query); /* or NULL */
	void (*gemm)(void *data, const struct nt_event_gemm *gemm); /* or NULL */
	void (*capture)(void *data, const struct nt_event_capture *capture); /* or NULL */
	void (*detail)(void *data, const struct nt_event_detail *detail); /* or NULL */
	void (*verbs)(void *data, const struct nt_event_verbs *verbs); /* or NULL */
	void (*executed)(void *data, uint32_t pid, uint64_t boot_ns); /* or NULL */
	void *gpu_data; /* of both */
	struct nt_event_gpu gpu; /* the current one */
	unsigned int polled;
	uint64_t poll_end_ns; /* monotonic */
	unsigned int details_polled;
	struct bpf_link *exits, *execs, *signals, *walk;
	struct nt_bpf_loader_ended *ended; /* uthash, owned, oldest first */
	bool has_own_links;
	uint32_t cost_calls; /* in one batch */
	struct nt_bpf_loader_costs costs;
};

/* Loads the programs for the loader's mode, without attaching any to a library. */
NT_MUST_CHECK int nt_bpf_loader_load(struct nt_bpf_loader *loader,
				     const struct nt_attach_options *options);

/* agent/probes/bpf_loader_detail.c: the ring of sampled calls, in bytes, for a main ring of that size. */
uint32_t nt_bpf_loader_detail_ring(size_t ring_bytes);
NT_MUST_CHECK int nt_bpf_loader_open_details(struct nt_bpf_loader *loader);

#endif
