/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Verbs: the exported functions of libibverbs that create and change queue pairs. They are called
 * seldom, so each that concerns a queue pair is an event. Registrations of memory are summed.
 *
 * Every verb has an object from which the context can be read, and that has the addresses of the
 * provider's functions. The layouts are those of verbs.h, whose ABI is stable
 * (tests/bpf/test_rdma.c).
 */
#ifndef NT_BPF_VERBS_BPF_H
#define NT_BPF_VERBS_BPF_H

#include "bpf/call.bpf.h"

enum {
	CONTEXT_DEVICE = 0,
	CONTEXT_POLL_CQ = 96,
	CONTEXT_POST_SEND = 208,
	DEVICE_NAME = 24,
	VERBS_CONTEXT_CONTEXT = 320, /* of struct verbs_context, which ends in a context */
	QP_CONTEXT = 0,
	INIT_SIGNALS_ALL = 56,
	MR_LENGTH = 24,
	/* struct ibv_qp_attr */
	ATTR_STATE = 0,
	ATTR_REMOTE_QPN = 28,
	ATTR_AH = 56,
	ATTR_PORT = 129,
	/* struct ibv_ah_attr */
	AH_SGID_INDEX = 20,
	AH_DLID = 24,
	AH_IS_GLOBAL = 29,
	AH_PORT = 30,
	/* enum ibv_qp_attr_mask */
	MASK_STATE = 1 << 0,
	MASK_PORT = 1 << 5,
	MASK_AV = 1 << 7,
	MASK_REMOTE_QPN = 1 << 20,
};

/* The begin of struct ibv_qp. */
struct verbs_qp {
	__u64 context, qp_context, pd, send_cq, recv_cq, srq;
	__u32 handle, qpn, state, type;
};

/* The verb that a thread is in. */
struct verbs_call {
	__u64 sp; /* 0: none */
	__u64 entry_ns; /* boot time */
	__u64 word[3];
	__u64 bytes; /* of the memory region that NT_VERB_DEREGISTER frees */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct verbs_call);
} verbs_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nt_verbs_totals);
} verbs_totals SEC(".maps");

/*
 * Queue pairs all of whose requests have a completion, by their creation. One that finds no room has
 * no latency unless its requests carry the flag themselves. An entry goes when its queue pair is
 * destroyed. The agent deletes entries, too, states how many, and knows them by events: without its event
 * there is none.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NT_RDMA_QPS);
	__type(key, struct nt_rdma_key);
	__type(value, __u8);
} all_signaled_qps SEC(".maps");

/* The agent deletes entries: when a queue pair or a process ends. Without an event there is none. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NT_RDMA_QPS);
	__type(key, struct nt_rdma_key);
	__type(value, struct nt_rdma_traffic);
} traffic SEC(".maps");

/* By process; the agent adds and deletes entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct nt_rdma_watch);
} rdma_watches SEC(".maps");

/* Entries that the process may have: the agent divides the tables among owners. */
static __always_inline __u32 most_pairs(__u32 pid)
{
	const struct nt_rdma_watch *watch = bpf_map_lookup_elem(&rdma_watches, &pid);

	return watch && watch->pairs_max ? watch->pairs_max : NT_RDMA_PROCESS_QPS;
}

static __always_inline struct nt_verbs_totals *totals_of_verbs(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct nt_verbs_totals *totals = bpf_task_storage_get(&verbs_totals, task->group_leader, 0,
							      BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!totals)
		__sync_fetch_and_add(&untracked, 1);
	return totals;
}

static __always_inline __u64 read_word(__u64 at)
{
	__u64 value = 0;

	return bpf_probe_read_user(&value, sizeof(value), (const void *)at) < 0 ? 0 : value;
}

static __always_inline __u32 read_half(__u64 at)
{
	__u32 value = 0;

	return bpf_probe_read_user(&value, sizeof(value), (const void *)at) < 0 ? 0 : value;
}

static __always_inline __u8 read_byte(__u64 at)
{
	__u8 value = 0;

	return bpf_probe_read_user(&value, sizeof(value), (const void *)at) < 0 ? 0 : value;
}

/* ---- entry ----------------------------------------------------------------------------------- */

static __always_inline bool verbs_entered(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct task_struct *task = bpf_get_current_task_btf();
	struct verbs_call *call;

	if (is_passed_over(cookie))
		return false;
	hit_unseen(NT_COOKIE_ROW(cookie));
	call = bpf_task_storage_get(&verbs_calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call) {
		__sync_fetch_and_add(&untracked, 1);
		return false;
	}
	/* Of nested verbs the outer one is recorded: each registers by another. */
	if (call->sp && PT_REGS_SP(ctx) < call->sp && awaits_return(utask_of(task), call->sp))
		return false;
	call->word[0] = register_word(ctx, 0);
	call->word[1] = register_word(ctx, 1);
	call->word[2] = register_word(ctx, 2);
	call->bytes = NT_COOKIE_VERB(cookie) == NT_VERB_DEREGISTER
			      ? read_word(call->word[0] + MR_LENGTH)
			      : 0;
	call->entry_ns = bpf_ktime_get_boot_ns();
	call->sp = PT_REGS_SP(ctx);
	return true;
}

/* ---- return ---------------------------------------------------------------------------------- */

/* Adds the functions of the context. Those of an event are not static: the verifier checks them once. */
__noinline int add_context(__u64 context, struct nt_event_verbs *event)
{
	__u64 device = context ? read_word(context + CONTEXT_DEVICE) : 0;

	if (!event)
		return 0;
	event->context = context;
	if (!context)
		return 0;
	event->post_send = read_word(context + CONTEXT_POST_SEND);
	event->poll_cq = read_word(context + CONTEXT_POLL_CQ);
	if (device && bpf_probe_read_user_str(event->device, sizeof(event->device),
					      (const void *)(device + DEVICE_NAME)) < 0)
		event->device[0] = '\0';
	return 0;
}

/* 0: it cannot be read. */
__noinline int add_qp(__u64 at, struct nt_event_verbs *event)
{
	struct verbs_qp qp;

	if (!event || !at || bpf_probe_read_user(&qp, sizeof(qp), (const void *)at) < 0)
		return 0;
	event->qp = at;
	event->qpn = qp.qpn;
	event->qp_type = qp.type;
	event->qp_state = qp.state;
	add_context(qp.context, event);
	return 1;
}

__noinline int add_attributes(__u64 at, __u32 mask, struct nt_event_verbs *event)
{
	const __u64 ah = at + ATTR_AH;

	if (!event)
		return 0;
	event->mask = mask;
	if (mask & MASK_STATE)
		event->qp_state = read_half(at + ATTR_STATE);
	if (mask & MASK_PORT)
		event->port = read_byte(at + ATTR_PORT);
	if (mask & MASK_REMOTE_QPN)
		event->remote_qpn = read_half(at + ATTR_REMOTE_QPN);
	if (!(mask & MASK_AV))
		return 0;
	event->remote_lid = read_half(ah + AH_DLID) & 0xffff;
	event->is_global = read_byte(ah + AH_IS_GLOBAL) != 0;
	event->port = read_byte(ah + AH_PORT);
	event->sgid_index = read_byte(ah + AH_SGID_INDEX);
	if (event->is_global)
		bpf_probe_read_user(event->gid, sizeof(event->gid), (const void *)ah);
	return 0;
}

static __always_inline bool has_signal_room(__u32 pid, const struct nt_verbs_totals *totals)
{
	const struct nt_rdma_watch *watch = bpf_map_lookup_elem(&rdma_watches, &pid);
	const __u64 forgotten = watch ? watch->forgotten : 0;

	return totals->signaled < most_pairs(pid) + forgotten;
}

static __noinline int keep_signals(const struct nt_rdma_key *key, struct nt_verbs_totals *totals)
{
	const __u8 yes = 1;

	if (!totals || bpf_map_lookup_elem(&all_signaled_qps, key))
		return 0;
	if (has_signal_room(key->pid, totals) &&
	    bpf_map_update_elem(&all_signaled_qps, key, &yes, BPF_NOEXIST) == 0)
		__sync_fetch_and_add(&totals->signaled, 1);
	else
		__sync_fetch_and_add(&totals->signaled_over_cap, 1);
	return 0;
}

static __noinline int forget_signals(const struct nt_rdma_key *key, struct nt_verbs_totals *totals)
{
	/* An entry may be of the program before. */
	if (totals && bpf_map_delete_elem(&all_signaled_qps, key) == 0 && totals->signaled)
		__sync_fetch_and_sub(&totals->signaled, 1);
	return 0;
}

static __always_inline void note_signals(const struct verbs_call *call,
					 struct nt_verbs_totals *totals,
					 struct nt_event_verbs *event)
{
	const struct nt_rdma_key key = {
		.pid = event->h.pid, .qpn = event->qpn, .context = event->context};
	struct nt_rdma_traffic *t;

	event->all_signaled = read_half(call->word[1] + INIT_SIGNALS_ALL) != 0;
	t = bpf_map_lookup_elem(&traffic, &key);
	if (t) { /* of an earlier queue pair with this number */
		t->all_signaled = event->all_signaled;
		if (t->is_ended)
			__sync_fetch_and_sub(&totals->ended, 1);
		t->is_ended = 0;
	}
	if (event->all_signaled)
		keep_signals(&key, totals);
	else
		forget_signals(&key, totals);
}

/* False: the verb failed, or there is nothing to send. */
static __always_inline bool fill_verb(__u32 verb, const struct verbs_call *call, __u64 result,
				      struct nt_verbs_totals *totals, struct nt_event_verbs *event)
{
	const bool succeeded = (__u32)result == 0; /* of verbs that return an int */

	switch (verb) {
	case NT_VERB_OPEN:
		add_context(result, event);
		return result != 0;
	case NT_VERB_SET_OPS:
		add_context(call->word[0] + VERBS_CONTEXT_CONTEXT, event);
		break;
	case NT_VERB_CREATE_CQ:
		add_context(call->word[0], event);
		break;
	case NT_VERB_CREATE_QP:
		if (!add_qp(result, event))
			return false;
		__sync_fetch_and_add(&totals->created, 1);
		note_signals(call, totals, event);
		return true;
	case NT_VERB_MODIFY_QP:
		if (!succeeded || !add_qp(call->word[0], event))
			return false;
		add_attributes(call->word[1], (__u32)call->word[2], event);
		return true;
	case NT_VERB_EXTENDED:
		__sync_fetch_and_add(&totals->extended, 1);
		return add_qp(call->word[0], event) != 0;
	case NT_VERB_DIRECT:
		__sync_fetch_and_add(&totals->direct, 1);
		add_context(call->word[0], event);
		return totals->direct == 1;
	case NT_VERB_REGISTER:
		if (!result)
			return false;
		__sync_fetch_and_add(&totals->registrations, 1);
		__sync_fetch_and_add(&totals->registered_bytes, call->word[2]);
		add_context(read_word(call->word[0]), event);
		break;
	case NT_VERB_DEREGISTER:
		if (succeeded) {
			__sync_fetch_and_add(&totals->deregistrations, 1);
			__sync_fetch_and_add(&totals->deregistered_bytes, call->bytes);
		}
		return false;
	default:
		return false;
	}
	/* Of a program that opened its device before it was observed. */
	return event->post_send && event->post_send != totals->ops;
}

/* The queue pair is gone after the call: it is sent at the entry, whatever the result will be. */
static __always_inline bool fill_destroyed(const struct verbs_call *call,
					   struct nt_verbs_totals *totals,
					   struct nt_event_verbs *event)
{
	struct nt_rdma_key key = {.pid = event->h.pid};
	struct nt_rdma_traffic *t;

	if (!add_qp(call->word[0], event))
		return false;
	__sync_fetch_and_add(&totals->destroyed, 1);
	key.qpn = event->qpn;
	key.context = event->context;
	t = bpf_map_lookup_elem(&traffic, &key);
	/* The entry stays until the agent has read it, but another queue pair may have its place. */
	if (t && !t->is_ended) {
		t->is_ended = 1;
		__sync_fetch_and_add(&totals->ended, 1);
	}
	forget_signals(&key, totals);
	return true;
}

static __always_inline void begin_event(__u64 cookie, const struct verbs_call *call,
					struct nt_event_verbs *event)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	event->h.type = NT_EVENT_VERBS;
	event->h.size = sizeof(*event);
	event->h.row = NT_COOKIE_ROW(cookie);
	event->h.pid = pid_tgid >> 32;
	event->h.tid = (__u32)pid_tgid;
	event->h.entry_ns = call->entry_ns;
	event->verb = NT_COOKIE_VERB(cookie);
}

/* Not static, so that the verifier checks it once. result: of the call. */
__noinline int verbs_report(__u64 cookie, __u64 result)
{
	struct verbs_call *call =
		bpf_task_storage_get(&verbs_calls, bpf_get_current_task_btf(), 0, 0);
	struct nt_verbs_totals *totals = totals_of_verbs();
	struct nt_event_verbs event;
	bool is_sent;

	if (!call || !totals)
		return 0;
	__builtin_memset(&event, 0, sizeof(event));
	begin_event(cookie, call, &event);
	if (event.verb == NT_VERB_DESTROY_QP)
		is_sent = fill_destroyed(call, totals, &event);
	else
		is_sent = fill_verb(event.verb, call, result, totals, &event);
	if (!is_sent)
		return 0;
	if (nt_output(NT_EVENT_VERBS, event.h.row, &event, sizeof(event))) {
		if (event.post_send)
			totals->ops = event.post_send;
	} else if (event.verb == NT_VERB_CREATE_QP) {
		const struct nt_rdma_key key = {
			.pid = event.h.pid, .qpn = event.qpn, .context = event.context};

		forget_signals(&key, totals);
	}
	return 0;
}

static __always_inline void verbs_returned(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct verbs_call *call =
		bpf_task_storage_get(&verbs_calls, bpf_get_current_task_btf(), 0, 0);

	if (!call || !call->sp || PT_REGS_SP(ctx) != call->sp + RETURN_SP)
		return;
	call->sp = 0;
	verbs_report(cookie, PT_REGS_RC(ctx));
}

/* The entry of a verb. False: its return is not needed. */
static __always_inline bool verbs_begun(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);

	struct verbs_call *call;

	if (!verbs_entered(ctx))
		return false;
	if (NT_COOKIE_VERB(cookie) != NT_VERB_DESTROY_QP)
		return true;
	verbs_report(cookie, 0);
	call = bpf_task_storage_get(&verbs_calls, bpf_get_current_task_btf(), 0, 0);
	if (call)
		call->sp = 0;
	return false;
}

#endif
