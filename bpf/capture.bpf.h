/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Matrix multiplications that are captured into a CUDA graph instead of executed: what the totals of
 * the process grew by from the return of the call that began the capture to that of the one that ended
 * it. Captures that overlap cannot be told apart.
 */
#ifndef NT_BPF_CAPTURE_BPF_H
#define NT_BPF_CAPTURE_BPF_H

#include "bpf/emit.bpf.h"

/* Totals of a process: with its leader, freed with that task. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nt_gemm_totals);
} gemms SEC(".maps");

struct capture_state {
	__u32 open; /* streams of the process that capture, as far as it was seen */
	__u32 is_mixed;
	struct nt_gemm_totals before;
};

/* With the leader of a process that captures; freed with that task. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct capture_state);
} capture_states SEC(".maps");

enum {
	/* cudaErrorStreamCaptureUnmatched and …WrongThread: the capture goes on. */
	CAPTURE_UNMATCHED = 903,
	CAPTURE_WRONG_THREAD = 908,
};

static __always_inline void capture_begun(struct task_struct *leader)
{
	struct capture_state *state =
		bpf_task_storage_get(&capture_states, leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	const struct nt_gemm_totals *totals = bpf_task_storage_get(&gemms, leader, 0, 0);

	if (!state) {
		__sync_fetch_and_add(&untracked, 1);
		return;
	}
	if (state->open++) {
		state->is_mixed = 1;
		return;
	}
	state->is_mixed = 0;
	if (totals)
		bpf_probe_read_kernel(&state->before, sizeof(state->before), totals);
	else
		__builtin_memset(&state->before, 0, sizeof(state->before));
}

static __always_inline void send_capture(const struct capture_state *state,
					 const struct nt_gemm_totals *totals, __u32 row,
					 __u64 entry_ns)
{
	struct nt_event_capture *e = NULL;
	__u64 flags;

	if (nt_room(sizeof(*e), &flags))
		e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&dropped[NT_EVENT_CAPTURE], 1);
		return;
	}
	e->h.type = NT_EVENT_CAPTURE;
	e->h.size = sizeof(*e);
	e->h.row = (__u16)row;
	e->h.flags = state->is_mixed ? NT_CAPTURE_MIXED : 0;
	e->h.pid = bpf_get_current_pid_tgid() >> 32;
	e->h.tid = (__u32)bpf_get_current_pid_tgid();
	e->h.entry_ns = entry_ns;
	e->unread = 0;
	__builtin_memset(e->sum, 0, sizeof(e->sum));
	if (totals) {
		e->unread = totals->unread + totals->over_cap - state->before.unread -
			    state->before.over_cap;
		for (int i = 0; i < NT_GEMM_SUMS; i++) {
			e->sum[i].key = totals->sum[i].key;
			e->sum[i].calls = totals->sum[i].calls - state->before.sum[i].calls;
			e->sum[i].flops = totals->sum[i].flops - state->before.sum[i].flops;
		}
	}
	bpf_ringbuf_submit(e, flags);
}

/* A call returned that begins or ends a capture. Not static, so that the verifier checks it once. */
__noinline int capture_changed(__u32 what, __u32 result, __u32 row, __u64 entry_ns)
{
	struct task_struct *leader = bpf_get_current_task_btf()->group_leader;
	struct capture_state *state;

	if (what == NT_CAPTURE_BEGIN) {
		if (result == 0)
			capture_begun(leader);
		return 0;
	}
	state = bpf_task_storage_get(&capture_states, leader, 0, 0);
	if (!state || !state->open || result == CAPTURE_UNMATCHED || result == CAPTURE_WRONG_THREAD)
		return 0;
	state->open--;
	/* Of those that overlap nothing is sent, so that nothing is known of their graphs. */
	if (!state->open)
		send_capture(state, bpf_task_storage_get(&gemms, leader, 0, 0), row, entry_ns);
	return 0;
}

#endif
