/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a probe costs before it does anything, the anchor of all probe costs; and sessions that do
 * one part each of what ours do (bpf/call.bpf.h), to see where the rest goes.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/event.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern bool bpf_session_is_return(void) __ksym __weak;

/* As the agent's by default. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, struct nt_inside);
} slots SEC(".maps");

static const struct nt_inside no_slot;

/* What is read goes here, lest it be left out. */
__u64 sink;

enum {
	BENCH_WORDS = 6, /* of MPI_Allreduce */
};

SEC("uprobe")
int empty(struct pt_regs *ctx)
{
	return 0;
}

SEC("uprobe")
int clocks(struct pt_regs *ctx)
{
	sink = bpf_ktime_get_boot_ns();
	return 0;
}

SEC("uprobe")
int lookups(struct pt_regs *ctx)
{
	__u64 key = bpf_get_current_pid_tgid();
	struct nt_inside *slot = bpf_map_lookup_elem(&slots, &key);

	if (slot)
		sink = slot->sp;
	else
		bpf_map_update_elem(&slots, &key, &no_slot, BPF_ANY);
	return 0;
}

SEC("uprobe")
int reading(struct pt_regs *ctx)
{
	__u64 value = 0;

	if (bpf_session_is_return())
		return 0;
	bpf_probe_read_user(&value, sizeof(value), (void *)PT_REGS_PARM4(ctx));
	sink = value;
	return 0;
}

/* No wake-up: whoever reads the ring looks often enough. */
SEC("uprobe")
int event(struct pt_regs *ctx)
{
	struct nt_event_call e = {0};

	if (!bpf_session_is_return())
		return 0;
	e.h.type = NT_EVENT_CALL;
	e.h.size = NT_CALL_BYTES(BENCH_WORDS);
	bpf_ringbuf_output(&ring, &e, NT_CALL_BYTES(BENCH_WORDS), BPF_RB_NO_WAKEUP);
	return 0;
}
