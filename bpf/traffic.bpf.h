/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The traffic of queue pairs: a provider's post_send and poll_cq, which libibverbs' inline functions
 * call through the context. They are called up to millions of times a second, so nothing is sent:
 * figures are summed in a table that the agent reads.
 *
 * Most polls find nothing. Such a poll costs its two traps and one look-up at the entry.
 */
#ifndef NT_BPF_TRAFFIC_BPF_H
#define NT_BPF_TRAFFIC_BPF_H

#include "bpf/verbs.bpf.h"

enum {
	QP_NUMBER = 52,
	COMPLETION_BYTES = 48,
	REQUEST_SIGNALED = 1 << 1, /* IBV_SEND_SIGNALED */
	COMPLETION_RECEIVE = 1 << 7, /* IBV_WC_RECV */
	POLLS_ACCOUNTED =
		1024, /* polls of a thread between two updates of its process; a power of two */
};

/* The begin of struct ibv_send_wr. */
struct send_request {
	__u64 wr_id, next, elements;
	__u32 element_count, opcode, flags, immediate;
};

struct gather_element {
	__u64 address;
	__u32 length, key;
};

/* struct ibv_wc without its end. */
struct work_completion {
	__u64 wr_id;
	__u32 status, opcode, vendor_error, bytes, immediate, qpn;
};

/* The poll that a thread is in. */
struct poll_call {
	__u64 completions; /* address; 0: none */
	__u64 queue;
	__u32 polls; /* so far */
	__u32 row; /* of the function */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct poll_call);
} poll_calls SEC(".maps");

static const struct nt_rdma_traffic no_traffic;

/* The first traffic of a queue pair, which the agent may not know. 0: the event is lost. */
static __noinline int report_qp(__u32 row, __u64 qp, const struct nt_rdma_key *key)
{
	struct nt_event_verbs event;

	__builtin_memset(&event, 0, sizeof(event));
	event.h.type = NT_EVENT_VERBS;
	event.h.size = sizeof(event);
	event.h.row = row;
	event.h.pid = key->pid;
	event.h.tid = (__u32)bpf_get_current_pid_tgid();
	event.h.entry_ns = bpf_ktime_get_boot_ns();
	event.qpn = key->qpn;
	if (qp)
		add_qp(qp, &event);
	else
		add_context(key->context, &event);
	return nt_output(NT_EVENT_VERBS, row, &event, sizeof(event));
}

/* NULL: no room, or the agent cannot be told. qp: its address, or 0. */
static __noinline struct nt_rdma_traffic *add_traffic(__u32 row, __u64 qp,
						      const struct nt_rdma_key *key)
{
	const struct nt_rdma_watch *watch = bpf_map_lookup_elem(&rdma_watches, &key->pid);
	const __u64 dropped = watch ? watch->dropped : 0;
	struct nt_verbs_totals *totals = totals_of_verbs();
	struct nt_rdma_traffic *t = NULL;

	if (!totals)
		return NULL;
	if (totals->seen < most_pairs(key->pid) + totals->ended + dropped &&
	    bpf_map_update_elem(&traffic, key, &no_traffic, BPF_NOEXIST) == 0) {
		__sync_fetch_and_add(&totals->seen, 1);
		if (!report_qp(row, qp, key) && bpf_map_delete_elem(&traffic, key) == 0)
			__sync_fetch_and_sub(&totals->seen, 1);
	}
	t = bpf_map_lookup_elem(&traffic, key);
	if (t)
		t->all_signaled = bpf_map_lookup_elem(&all_signaled_qps, key) != NULL;
	else
		__sync_fetch_and_add(&totals->over_cap, 1);
	return t;
}

/* ---- posts ----------------------------------------------------------------------------------- */

static __always_inline enum nt_rdma_class class_of(__u32 opcode)
{
	/* enum ibv_wr_opcode: write, write and send with immediate, send, read, two atomics, … */
	static const __u8 classes[] = {
		NT_RDMA_WRITE,  NT_RDMA_WRITE,  NT_RDMA_SEND,  NT_RDMA_SEND,  NT_RDMA_READ,
		NT_RDMA_ATOMIC, NT_RDMA_ATOMIC, NT_RDMA_OTHER, NT_RDMA_OTHER, NT_RDMA_SEND,
	};

	barrier_var(opcode);
	return opcode < sizeof(classes) ? classes[opcode] : NT_RDMA_OTHER;
}

#define ELEMENTS_CUT (1ULL << 63)

/* The bytes of a request, with ELEMENTS_CUT. Not static, so that the verifier checks it once. */
__noinline __u64 gathered_bytes(__u64 at, __u32 count)
{
	struct gather_element element;
	__u64 bytes = 0;

	for (__u32 i = 0; i < NT_RDMA_ELEMENTS && i < count; i++) {
		if (bpf_probe_read_user(&element, sizeof(element), (const void *)at) < 0)
			return bytes | ELEMENTS_CUT;
		bytes += element.length;
		at += sizeof(element);
	}
	return count > NT_RDMA_ELEMENTS ? bytes | ELEMENTS_CUT : bytes;
}

/* What was outstanding when completions were last observed does not match those observed now. */
static __always_inline bool is_timed(struct nt_rdma_traffic *t, const struct nt_rdma_watch *watch)
{
	if (!watch || !watch->is_polled)
		return false;
	if (t->generation != watch->generation) {
		t->generation = watch->generation;
		t->head = t->tail = t->skipped = 0;
	}
	return true;
}

/*
 * Keeps the time of a request that will have a completion. Threads that post to one queue pair at
 * once may exchange their times.
 */
static __always_inline void keep_posted(struct nt_rdma_traffic *t, __u64 wr_id, __u64 now)
{
	__u32 head = t->head;

	/* Beyond the room only their number is kept: completions come in the order of the posts. */
	if (t->skipped || head - t->tail >= NT_RDMA_OUTSTANDING) {
		__sync_fetch_and_add(&t->skipped, 1);
		return;
	}
	t->posted[head % NT_RDMA_OUTSTANDING].wr_id = wr_id;
	t->posted[head % NT_RDMA_OUTSTANDING].ns = now;
	t->head = head + 1;
}

/* The bytes of the request. */
static __always_inline __u64 add_request(struct nt_rdma_traffic *t, const struct send_request *r)
{
	enum nt_rdma_class class = class_of(r->opcode);
	__u64 bytes = gathered_bytes(r->elements, r->element_count);

	if (bytes & ELEMENTS_CUT)
		__sync_fetch_and_add(&t->cut, 1);
	bytes &= ~ELEMENTS_CUT;
	if (class >= NT_RDMA_CLASSES)
		return bytes;
	__sync_fetch_and_add(&t->posts[class], 1);
	__sync_fetch_and_add(&t->bytes[class], bytes);
	return bytes;
}

/* A list of requests. */
struct post_walk {
	__u64 at, bytes, now;
	__u32 opcode, requests; /* opcode: of the first */
	bool is_timed;
};

/* The request at walk->at. 0: it is not readable. Not static, so that the verifier checks it once. */
__noinline int posts_request(struct nt_rdma_traffic *t, struct post_walk *walk)
{
	struct send_request request;

	if (!t || !walk)
		return 0;
	if (bpf_probe_read_user(&request, sizeof(request), (const void *)walk->at) < 0) {
		__sync_fetch_and_add(&t->unread, 1);
		walk->at = 0;
		return 0;
	}
	if (!walk->requests++)
		walk->opcode = request.opcode;
	walk->bytes += add_request(t, &request);
	if (walk->is_timed && (t->all_signaled || request.flags & REQUEST_SIGNALED))
		keep_posted(t, request.wr_id, walk->now);
	walk->at = request.next;
	return 1;
}

static __always_inline void posts(struct pt_regs *ctx)
{
	const __u64 qp = PT_REGS_PARM1(ctx);
	const __u32 row = NT_COOKIE_ROW(bpf_get_attach_cookie(ctx));
	struct nt_rdma_key key = {.pid = bpf_get_current_pid_tgid() >> 32};
	struct post_walk walk = {.at = PT_REGS_PARM2(ctx), .now = bpf_ktime_get_boot_ns()};
	const struct nt_rdma_watch *watch;
	struct nt_rdma_traffic *t;

	hit_unseen(row);
	key.context = read_word(qp);
	key.qpn = read_half(qp + QP_NUMBER);
	t = bpf_map_lookup_elem(&traffic, &key);
	if (!t)
		t = add_traffic(row, qp, &key);
	if (!t)
		return;
	watch = bpf_map_lookup_elem(&rdma_watches, &key.pid);
	walk.is_timed = watch && is_timed(t, watch) && watch->is_polled == NT_RDMA_POLLED;
	for (int i = 0; i < NT_RDMA_REQUESTS && walk.at; i++)
		posts_request(t, &walk);
	if (walk.at)
		__sync_fetch_and_add(&t->cut, 1);
	if (is_detailed())
		detail_call(NT_DETAIL_POSTS << 16 | row, 0, 0, walk.bytes,
			    NT_DETAIL_POST(key.qpn, walk.opcode, walk.requests));
}

/* ---- completions ----------------------------------------------------------------------------- */

static __always_inline void account_polls(const struct poll_call *call, __u32 polls)
{
	struct nt_process_counters *process = process_counters(BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u32 row = call->row;

	/* What is compared must be what is the index. */
	barrier_var(row);
	if (process && row < NT_ROWS_MAX)
		__sync_fetch_and_add(&process->unseen[row], polls);
}

/* The thread ends: its process gets the rest, else threads that end soon would cost nothing. */
static __always_inline void polls_end(struct task_struct *task)
{
	struct poll_call *call = bpf_task_storage_get(&poll_calls, task, 0, 0);
	__u32 rest = call ? call->polls % POLLS_ACCOUNTED : 0;

	if (call && rest)
		account_polls(call, rest);
}

static __always_inline void poll_begins(struct pt_regs *ctx)
{
	struct poll_call *call = bpf_task_storage_get(&poll_calls, bpf_get_current_task_btf(), 0,
						      BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!call) {
		__sync_fetch_and_add(&untracked, 1);
		return;
	}
	call->queue = PT_REGS_PARM1(ctx);
	call->completions = PT_REGS_PARM3(ctx);
	if (!call->polls)
		call->row = NT_ROW_OF(NT_COOKIE_ROW(bpf_get_attach_cookie(ctx)));
	if (++call->polls % POLLS_ACCOUNTED == 0)
		account_polls(call, POLLS_ACCOUNTED);
}

static __always_inline void add_latency(struct nt_rdma_traffic *t, __u64 ns,
					const struct nt_rdma_watch *watch)
{
	__sync_fetch_and_add(&t->timed, 1);
	__sync_fetch_and_add(&t->latency_ns, ns);
	if (t->window != watch->window) {
		t->window = watch->window;
		t->least_ns = t->most_ns = ns;
	}
	if (ns < t->least_ns)
		t->least_ns = ns;
	if (ns > t->most_ns)
		t->most_ns = ns;
}

/* Requests complete in order, but only some are signaled: older ones than this have completed, too. */
static __always_inline void match_posted(struct nt_rdma_traffic *t, __u64 wr_id, bool failed,
					 const struct nt_rdma_watch *watch)
{
	__u64 now = bpf_ktime_get_boot_ns();
	__u32 tail = t->tail;

	for (__u32 i = 0; i < NT_RDMA_OUTSTANDING; i++, tail++) {
		const struct nt_rdma_posted *posted = &t->posted[tail % NT_RDMA_OUTSTANDING];

		if (tail == t->head)
			break;
		if (posted->wr_id != wr_id)
			continue;
		t->tail = tail + 1;
		if (now > posted->ns && !failed)
			add_latency(t, now - posted->ns, watch);
		return;
	}
	if (t->skipped && t->tail == t->head)
		__sync_fetch_and_sub(&t->skipped, 1);
	if (!failed)
		__sync_fetch_and_add(&t->untimed, 1);
}

/* A completion at that address. Not static, so that the verifier checks it once. */
__noinline int completes(__u32 row, __u64 context, __u64 at)
{
	struct nt_rdma_key key = {.pid = bpf_get_current_pid_tgid() >> 32, .context = context};
	const struct nt_rdma_watch *watch = bpf_map_lookup_elem(&rdma_watches, &key.pid);
	struct work_completion c;
	struct nt_rdma_traffic *t;
	__u32 status;

	if (bpf_probe_read_user(&c, sizeof(c), (const void *)at) < 0)
		return 0;
	key.qpn = c.qpn;
	t = bpf_map_lookup_elem(&traffic, &key);
	if (!t)
		t = add_traffic(row, 0, &key);
	if (!t)
		return 0;
	status = c.status < NT_RDMA_STATUSES ? c.status : NT_RDMA_STATUSES - 1;
	barrier_var(status);
	if (status && status < NT_RDMA_STATUSES) {
		__sync_fetch_and_add(&t->errors[status], 1);
	} else if (c.opcode & COMPLETION_RECEIVE) {
		__sync_fetch_and_add(&t->received, 1);
		__sync_fetch_and_add(&t->received_bytes, c.bytes);
		return 0;
	} else {
		__sync_fetch_and_add(&t->completions, 1);
	}
	/* The opcode of one that failed is undefined: it may be of a receive, with a number of its own. */
	if (watch && is_timed(t, watch))
		match_posted(t, c.wr_id, status != 0, watch);
	return 0;
}

static __always_inline void poll_ends(struct pt_regs *ctx)
{
	int found = (int)PT_REGS_RC(ctx);
	struct poll_call *call;
	__u64 at, context;
	__u32 row;

	if (found <= 0)
		return;
	call = bpf_task_storage_get(&poll_calls, bpf_get_current_task_btf(), 0, 0);
	if (!call || !call->completions)
		return;
	at = call->completions;
	call->completions = 0;
	context = read_word(call->queue);
	row = NT_COOKIE_ROW(bpf_get_attach_cookie(ctx));
	for (int i = 0; i < NT_RDMA_COMPLETIONS && i < found; i++, at += COMPLETION_BYTES)
		completes(row, context, at);
}

#endif
