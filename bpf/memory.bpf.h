/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The probes at calls that allocate and free device memory. They have a slot per thread of their
 * own: such a call is recorded wherever it is made, also inside of another probed call, as NCCL's
 * initialisation allocates. Only inside of another allocation it is part of that.
 *
 * The event is that of a call (struct nt_event_call) with NT_CALL_MEMORY. Its `launches` hold the
 * address to which the call returns. A call that waits for the device, such as cudaFree, is recorded
 * as any other call too; its cookie is NT_COOKIE_LONG_ONLY. Its hits are counted by this record alone.
 */
#ifndef NT_BPF_MEMORY_BPF_H
#define NT_BPF_MEMORY_BPF_H

#include "bpf/call.bpf.h"

/* As `inside`, of the thread's outermost allocation call. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nt_inside);
} allocating SEC(".maps");

/* The address to which the function returns that begins here. */
static __always_inline __u64 return_address(struct pt_regs *ctx)
{
	__u64 address = 0;

#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_user(&address, sizeof(address), (void *)PT_REGS_SP(ctx));
#elif defined(__TARGET_ARCH_arm64)
	address = LOAD_REGISTER(ctx, user_regs.regs[30]);
#endif
	return address;
}

/* False: the return is not needed. */
static __always_inline bool memory_entered(struct pt_regs *ctx, __u64 cookie)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool waits = NT_COOKIE_LONG_ONLY(cookie);
	struct nt_inside *slot;

	slot = bpf_task_storage_get(&allocating, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!slot) {
		__sync_fetch_and_add(&untracked, 1);
		event_lost(NT_EVENT_CALL, NT_COOKIE_ROW(cookie));
		return false;
	}
	if (slot->entry_ns) {
		if (nested(slot, PT_REGS_SP(ctx))) {
			hit_unseen(NT_COOKIE_ROW(cookie));
			return false;
		}
		call_replaced(slot->sp);
	}
	/* The other record of a call that waits counts it. */
	if (!waits)
		count(ctx, cookie);
	call_begun(ctx, cookie, slot, return_address(ctx), NT_CALL_RETURNED | NT_CALL_MEMORY);
	if (NT_COOKIE_PROPERTIES(cookie))
		bpf_probe_read_user(&slot->word[2], sizeof(slot->word[2]),
				    (void *)(slot->word[2] + NT_LOCATION));
	return true;
}

static __always_inline void memory_returned(struct pt_regs *ctx)
{
	struct nt_inside *slot =
		bpf_task_storage_get(&allocating, bpf_get_current_task_btf(), 0, 0);
	__u64 cookie;

	if (!slot || !slot->entry_ns || PT_REGS_SP(ctx) != slot->sp + RETURN_SP)
		return;
	cookie = slot->cookie;
	slot->ret_ns = bpf_ktime_get_boot_ns();
	slot->ret = PT_REGS_RC(ctx);
	if (NT_COOKIE_DEREF_RET(cookie))
		slot->deref = dereference(cookie, slot->word);
	/* A second output parameter: the pitch of cudaMallocPitch. */
	if (NT_COOKIE_SECOND(cookie))
		bpf_probe_read_user(&slot->word[1], sizeof(slot->word[1]), (void *)slot->word[1]);
	nt_output(NT_EVENT_CALL, slot->row, event_in(slot), call_bytes(cookie));
	slot->entry_ns = 0;
}

#endif
