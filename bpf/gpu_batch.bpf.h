/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Batches of records that a library inside the process hands over (plugin/gpu_record.h). */
#ifndef NT_BPF_GPU_BATCH_BPF_H
#define NT_BPF_GPU_BATCH_BPF_H

#include "bpf/call.bpf.h"
#include "bpf/gemm_time.bpf.h"

static __always_inline bool send_batch(const void *from, __u64 number, __u32 records, __u32 room,
				       __u16 row, const struct gemm_watch *watch)
{
	const __u32 size = NT_GPU_BYTES(room);
	struct nt_event_gpu *event;
	__u64 flags, bytes;

	if (!nt_room(size, &flags))
		return false;
	event = bpf_ringbuf_reserve(&events, NT_GPU_BYTES(room), 0);
	if (!event)
		return false;
	event->h.type = NT_EVENT_GPU;
	event->h.size = (__u16)size;
	event->h.row = row;
	event->h.flags = 0;
	event->h.pid = bpf_get_current_pid_tgid() >> 32;
	event->h.tid = (__u32)bpf_get_current_pid_tgid();
	event->h.entry_ns = bpf_ktime_get_boot_ns();
	event->number = number;
	event->spans_lost = watch ? watch->lost : 0;
	event->records = records;
	/*
	 * Less than the room is left as it is: the agent reads `records` of them. Verifiers up to 6.1
	 * know the limit only of the very register that is compared.
	 */
	bytes = records * sizeof(struct nt_gpu_record);
	barrier_var(bytes);
	if (bytes > room * sizeof(struct nt_gpu_record) ||
	    bpf_probe_read_user(event->record, bytes, from) < 0) {
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
		return false;
	}
	bpf_ringbuf_submit(event, flags);
	return true;
}

static __always_inline void batch_seen(struct pt_regs *ctx)
{
	const __u64 cookie = bpf_get_attach_cookie(ctx);
	const struct gemm_watch *watch = NT_COOKIE_LAUNCHES(cookie) ? gemms_watched() : NULL;
	const __u16 row = NT_COOKIE_ROW(cookie);
	const void *from = (const void *)PT_REGS_PARM1(ctx);
	__u64 records = PT_REGS_PARM2(ctx);
	const __u64 number = PT_REGS_PARM3(ctx);
	bool is_sent = false;

	if (records >= 1 && records <= NT_GPU_BATCH_FEW)
		is_sent = send_batch(from, number, records, NT_GPU_BATCH_FEW, row, watch);
	else if (records > NT_GPU_BATCH_FEW && records <= NT_GPU_BATCH)
		is_sent = send_batch(from, number, records, NT_GPU_BATCH, row, watch);
	/* The agent sees the loss by the numbers of the next batch. */
	if (!is_sent)
		__sync_fetch_and_add(&dropped[NT_EVENT_GPU], 1);
}

#endif
