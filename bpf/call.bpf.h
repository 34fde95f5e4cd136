/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The probes at the entry and return of a call. All functions share one body: the attach cookie
 * (bpf/event.h) defines what is recorded. The programs are in call.bpf.c and session.bpf.c.
 *
 * No loop over words has a variable bound. No more of the stack is read than the row requires: a
 * function with few arguments may be at the very top of its stack.
 */
#ifndef NT_BPF_CALL_BPF_H
#define NT_BPF_CALL_BPF_H

#include "bpf/capture.bpf.h"
#include "bpf/emit.bpf.h"

#include "bpf/detail.bpf.h"

/* Set by the agent before load. */
const volatile __u64 min_call_ns = 0;

/*
 * The current call of a thread, in its task's storage, from its first probed call on. It is freed
 * with the thread, and other threads cannot evict it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nt_inside);
} inside SEC(".maps");

/* The matrix multiplication that a thread is in (bpf/gemm.bpf.h). */
struct nt_gemm_call {
	__u64 sp; /* 0: none */
	__u64 entry_ns; /* boot time */
	__u64 flops;
	__u32 key;
	__u16 is_read;
	__u16 row;
	__u64 launches, driver_launches; /* in it, so far */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nt_gemm_call);
} gemm_calls SEC(".maps");

struct nt_id {
	__u8 byte[NT_ID_BYTES];
};

/* The unique id passed at the entry of a thread's call; deleted at the return. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct nt_id);
} ids SEC(".maps");

enum {
	PAGE_BYTES = 4096, /* at least */
};

#if defined(__TARGET_ARCH_x86)
enum {
	REGISTER_WORDS = 6,
	STACK_WORDS = NT_CALL_WORDS - REGISTER_WORDS,
	STACK_FIRST = 8, /* above the return address */
	RETURN_SP = 8, /* the return has popped it */
};
#elif defined(__TARGET_ARCH_arm64)
enum {
	REGISTER_WORDS = 8,
	STACK_WORDS = NT_CALL_WORDS - REGISTER_WORDS,
	STACK_FIRST = 0,
	RETURN_SP = 0,
};
#endif

/*
 * Inline assembly, since the compiler would otherwise compute an address first and load once, and
 * the verifier rejects loads from a modified context pointer.
 */
#define LOAD_REGISTER(ctx, member)                                                                 \
	({                                                                                         \
		__u64 value_;                                                                      \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                              \
			     : "=r"(value_)                                                        \
			     : "r"(ctx), "i"(__builtin_offsetof(struct pt_regs, member)));         \
		value_;                                                                            \
	})

static __always_inline __u64 register_word(struct pt_regs *ctx, __u32 word)
{
	switch (word) {
#if defined(__TARGET_ARCH_x86)
	case 0:
		return LOAD_REGISTER(ctx, di);
	case 1:
		return LOAD_REGISTER(ctx, si);
	case 2:
		return LOAD_REGISTER(ctx, dx);
	case 3:
		return LOAD_REGISTER(ctx, cx);
	case 4:
		return LOAD_REGISTER(ctx, r8);
	case 5:
		return LOAD_REGISTER(ctx, r9);
#elif defined(__TARGET_ARCH_arm64)
	case 0:
		return LOAD_REGISTER(ctx, user_regs.regs[0]);
	case 1:
		return LOAD_REGISTER(ctx, user_regs.regs[1]);
	case 2:
		return LOAD_REGISTER(ctx, user_regs.regs[2]);
	case 3:
		return LOAD_REGISTER(ctx, user_regs.regs[3]);
	case 4:
		return LOAD_REGISTER(ctx, user_regs.regs[4]);
	case 5:
		return LOAD_REGISTER(ctx, user_regs.regs[5]);
	case 6:
		return LOAD_REGISTER(ctx, user_regs.regs[6]);
	case 7:
		return LOAD_REGISTER(ctx, user_regs.regs[7]);
#endif
	default:
		return 0;
	}
}

/* True if the call is recorded by a link of the other kind. */
static __always_inline bool is_passed_over(__u64 cookie)
{
	__u32 slot = NT_COOKIE_SLOT(cookie);
	__u8 split;

	if (!slot)
		return false;
	split = *(volatile __u8 *)&splits[slot];
	return NT_COOKIE_OWN(cookie) != (split > NT_COOKIE_STAYS(cookie));
}

static __always_inline struct nt_process_counters *counter_add(__u32 counter, __u64 bytes)
{
	struct nt_process_counters *c = process_counters(BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!c) {
		__sync_fetch_and_add(&untracked, 1);
		return NULL;
	}
	/* The compiler must not move the check away from the access. */
	if (counter >= NT_COUNTER_END)
		return NULL;
	__sync_fetch_and_add(&c->calls[counter], 1);
	if (bytes)
		__sync_fetch_and_add(&c->bytes[counter], bytes);
	return c;
}

/* A kernel is launched: possibly by a matrix multiplication of this thread. */
static __always_inline void launched(__u32 counter)
{
	struct nt_gemm_call *call =
		bpf_task_storage_get(&gemm_calls, bpf_get_current_task_btf(), 0, 0);

	if (!call || !call->sp)
		return;
	if (counter == NT_COUNTER_LAUNCH)
		call->launches++;
	else
		call->driver_launches++;
}

/* Updates the cookie's counter. Byte counts are in registers. */
static __always_inline void count(struct pt_regs *ctx, __u64 cookie)
{
	__u32 counter = NT_COOKIE_COUNTER(cookie);
	__u32 word = NT_COOKIE_BYTES(cookie);

	if (counter)
		counter_add(counter - 1, word ? register_word(ctx, word - 1) : 0);
}

/* Launches of the process so far; 0 if it has no counters. */
static __always_inline __u64 launches_so_far(void)
{
	const struct nt_process_counters *c = process_counters(0);

	if (!c)
		return 0;
	return c->calls[NT_COUNTER_LAUNCH] ?: c->calls[NT_COUNTER_DRIVER_LAUNCH];
}

/* Writes every word of the array: the caller's memory may be the ring's, with old events. */
static __always_inline void capture_words(struct pt_regs *ctx, __u64 cookie, __u64 *word)
{
	__u32 words = NT_COOKIE_WORDS(cookie);
	__u32 record = NT_COOKIE_RECORD(cookie);
	__u32 n;

#pragma unroll
	for (__u32 i = 0; i < REGISTER_WORDS; i++)
		word[i] = words > i ? register_word(ctx, i) : 0;
#pragma unroll
	for (__u32 i = REGISTER_WORDS; i < NT_CALL_WORDS; i++)
		word[i] = 0;
	if (record) {
		n = words;
		if (n > NT_CALL_WORDS)
			n = NT_CALL_WORDS;
		if (n > 1)
			bpf_probe_read_user(&word[1], (n - 1) * 8,
					    (void *)(word[0] + (record - 1) * 16));
		return;
	}
	if (words <= REGISTER_WORDS)
		return;
	n = words - REGISTER_WORDS;
	if (n > STACK_WORDS)
		n = STACK_WORDS;
	bpf_probe_read_user(&word[REGISTER_WORDS], n * 8, (void *)(PT_REGS_SP(ctx) + STACK_FIRST));
}

/* The word selected by the cookie's field `one_based`. */
static __always_inline __u64 word_of(const __u64 *word, __u32 one_based)
{
	__u64 value = 0;

#pragma unroll
	for (__u32 i = 0; i < NT_CALL_WORDS; i++)
		if (one_based == i + 1)
			value = word[i];
	return value;
}

static __always_inline __u64 dereference(__u64 cookie, const __u64 *word)
{
	__u64 at = word_of(word, NT_COOKIE_DEREF(cookie)) + NT_COOKIE_DEREF_OFF(cookie);
	__u64 value = 0;

	/* An int at the end of a page: 8 bytes are unreadable, 4 are readable. */
	if (bpf_probe_read_user(&value, 8, (void *)at) < 0 &&
	    (at % PAGE_BYTES <= PAGE_BYTES - 8 || bpf_probe_read_user(&value, 4, (void *)at) < 0))
		return 0;
	return value;
}

static __always_inline void capture_id(struct pt_regs *ctx, __u64 cookie, const __u64 *word,
				       void *id)
{
	__u64 at;

	if (NT_COOKIE_ID_STACK(cookie))
		at = PT_REGS_SP(ctx) + STACK_FIRST;
	else
		at = word_of(word, NT_COOKIE_ID_WORD(cookie));
	/* Zeroes what it cannot read. */
	bpf_probe_read_user(id, NT_ID_BYTES, (void *)at);
}

static __always_inline const struct nt_event_call *event_in(const struct nt_inside *slot)
{
	return (const void *)slot + __builtin_offsetof(struct nt_inside, type);
}

/* The size of an event with the cookie's words. */
static __always_inline __u32 call_bytes(__u64 cookie)
{
	__u32 words = NT_COOKIE_WORDS(cookie);

	/* Kept distinct from capture_words' count: the verifier would lose its bounds. */
	barrier_var(words);
	if (words > NT_CALL_WORDS)
		words = NT_CALL_WORDS;
	return NT_CALL_BYTES(words);
}

static __always_inline void emit_init(const struct nt_inside *slot, const struct nt_id *id,
				      __u16 flags)
{
	__u64 wakeup;
	struct nt_event_init *e = nt_reserve(NT_EVENT_INIT, slot->row, sizeof(*e), &wakeup);

	if (!e)
		return;
	__builtin_memcpy(&e->call, event_in(slot), sizeof(e->call));
	e->call.h.type = NT_EVENT_INIT;
	e->call.h.size = sizeof(*e);
	e->call.h.flags = flags;
	if (id)
		__builtin_memcpy(e->id, id->byte, NT_ID_BYTES);
	else
		__builtin_memset(e->id, 0, NT_ID_BYTES);
	bpf_ringbuf_submit(e, wakeup);
}

/* True if this call was made inside the thread's current one: it is deeper in the stack. */
static __always_inline bool nested(const struct nt_inside *slot, __u64 sp)
{
	return slot && slot->entry_ns && sp < slot->sp;
}

enum {
	RETURNS_MAX = 64, /* MAX_URETPROBE_DEPTH: the kernel's limit per thread */
};

/* The address of the task's uprobe state; 0: none. */
static __always_inline __u64 utask_of(struct task_struct *task)
{
	__u64 utask = 0;

	bpf_core_read(&utask, sizeof(utask), &task->utask);
	return utask;
}

/*
 * True if the kernel has a pending return of a function entered with this stack pointer. It keeps
 * the entry until the thread returns, even if no probes are left. Kernels before 6.13 can free
 * entries while this reads them: nothing faults, but one result may be wrong. 1 also if unknown.
 * Not static, so that the verifier checks it once.
 */
__noinline int awaits_return(__u64 utask, __u64 sp)
{
	__u64 at = 0;

	if (!bpf_core_field_exists(struct uprobe_task, return_instances) ||
	    !bpf_core_field_exists(struct return_instance, stack) ||
	    !bpf_core_field_exists(struct return_instance, next))
		return 1;
	if (utask)
		bpf_core_read(&at, sizeof(at), &((struct uprobe_task *)utask)->return_instances);
	for (int i = 0; i < RETURNS_MAX && at; i++) {
		struct return_instance *instance = (struct return_instance *)at;
		unsigned long stack = 0;

		bpf_core_read(&stack, sizeof(stack), &instance->stack);
		if (stack == sp)
			return 1;
		if (bpf_core_read(&at, sizeof(at), &instance->next) < 0)
			return 0;
	}
	return 0;
}

/*
 * A call is entered at or above the depth of an unfinished one. That one has made this call by a
 * jump, or was left by longjmp; otherwise its return was not observed.
 */
static __noinline int call_replaced(__u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!awaits_return(utask_of(task), sp))
		call_unreturned(task->group_leader);
	return 0;
}

/* Counts a hit without an event, which costs as much as any other. */
static __noinline int hit_unseen(__u32 row)
{
	row_unseen(process_counters(BPF_LOCAL_STORAGE_GET_F_CREATE), row);
	return 0;
}

/* A call of which only the entry is observed. */
static __always_inline void call_seen(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 pid_tgid, wakeup;
	struct nt_event_call *e;

	if (is_passed_over(cookie))
		return;
	if (nested(bpf_task_storage_get(&inside, task, 0, 0), PT_REGS_SP(ctx))) {
		hit_unseen(NT_COOKIE_ROW(cookie));
		return;
	}
	count(ctx, cookie);
	e = nt_reserve(NT_EVENT_CALL, NT_COOKIE_ROW(cookie), sizeof(*e), &wakeup);
	if (!e)
		return;
	pid_tgid = bpf_get_current_pid_tgid();
	e->h.type = NT_EVENT_CALL;
	e->h.size = sizeof(*e);
	e->h.row = NT_COOKIE_ROW(cookie);
	e->h.flags = 0;
	e->h.pid = pid_tgid >> 32;
	e->h.tid = (__u32)pid_tgid;
	e->h.entry_ns = bpf_ktime_get_boot_ns();
	e->ret_ns = 0;
	e->ret = 0;
	e->launches = launches_so_far();
	capture_words(ctx, cookie, e->word);
	e->deref = NT_COOKIE_DEREF(cookie) ? dereference(cookie, e->word) : 0;
	bpf_ringbuf_submit(e, wakeup);
}

/* Records the entry of a call in the slot. launches: see struct nt_event_call. */
static __always_inline void call_begun(struct pt_regs *ctx, __u64 cookie, struct nt_inside *slot,
				       __u64 launches, __u16 flags)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	slot->entry_ns = 0; /* marks the slot as empty for concurrent reads */
	barrier();
	slot->cookie = cookie;
	slot->sp = PT_REGS_SP(ctx);
	slot->type = NT_EVENT_CALL;
	slot->size = call_bytes(cookie);
	slot->row = NT_COOKIE_ROW(cookie);
	slot->flags = flags;
	slot->pid = pid_tgid >> 32;
	slot->tid = (__u32)pid_tgid;
	slot->launches = launches;
	capture_words(ctx, cookie, slot->word);
	slot->deref = 0;
	if (NT_COOKIE_DEREF(cookie) && !NT_COOKIE_DEREF_RET(cookie))
		slot->deref = dereference(cookie, slot->word);
	barrier();
	slot->entry_ns = bpf_ktime_get_boot_ns();
}

/* False: the return is not needed. counts: a hit without an event is counted here. */
static __always_inline bool call_entered(struct pt_regs *ctx, bool counts)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct task_struct *task = bpf_get_current_task_btf();
	struct nt_inside *slot;
	struct nt_id *id;

	if (is_passed_over(cookie))
		return false;
	slot = bpf_task_storage_get(&inside, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!slot) {
		__sync_fetch_and_add(&untracked, 1);
		return false;
	}
	/*
	 * The thread's first call. The leader's slot shows until the last thread has ended that the
	 * process made calls.
	 */
	if (!slot->sp && task != task->group_leader)
		(void)bpf_task_storage_get(&inside, task->group_leader, 0,
					   BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (slot->entry_ns) {
		if (nested(slot, PT_REGS_SP(ctx))) {
			if (counts)
				hit_unseen(NT_COOKIE_ROW(cookie));
			return false;
		}
		call_replaced(slot->sp);
	}
	count(ctx, cookie);
	call_begun(ctx, cookie, slot, launches_so_far(), NT_CALL_RETURNED);
	if (!NT_COOKIE_ID_WORD(cookie) && !NT_COOKIE_ID_STACK(cookie))
		return true;
	id = bpf_task_storage_get(&ids, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (id)
		capture_id(ctx, cookie, slot->word, id);
	slot->ret_ns = 0;
	slot->ret = 0;
	emit_init(slot, id, 0);
	return true;
}

static __always_inline void call_returned(struct pt_regs *ctx, bool counts)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct task_struct *task = bpf_get_current_task_btf();
	struct nt_inside *slot = bpf_task_storage_get(&inside, task, 0, 0);
	__u64 cookie;

	/* Entered before the probes were attached, replaced since, or nested. */
	if (!slot || !slot->entry_ns || PT_REGS_SP(ctx) != slot->sp + RETURN_SP)
		return;
	cookie = slot->cookie;
	if (NT_COOKIE_LONG_ONLY(cookie) && now - slot->entry_ns < min_call_ns) {
		if (counts && is_detailed())
			detail_call(NT_DETAIL_SYNCS << 16 | slot->row, slot->entry_ns, now, 0,
				    (__u32)PT_REGS_RC(ctx));
		row_unseen(counter_add(NT_COUNTER_SYNC, now - slot->entry_ns),
			   counts ? slot->row : NT_ROWS_MAX);
		slot->entry_ns = 0;
		return;
	}
	slot->ret_ns = now;
	slot->ret = PT_REGS_RC(ctx);
	if (NT_COOKIE_CAPTURE(cookie))
		capture_changed(NT_COOKIE_CAPTURE(cookie), (__u32)slot->ret, slot->row,
				slot->entry_ns);
	if (NT_COOKIE_DEREF_RET(cookie))
		slot->deref = dereference(cookie, slot->word);
	if (NT_COOKIE_ID_WORD(cookie) || NT_COOKIE_ID_STACK(cookie)) {
		emit_init(slot, bpf_task_storage_get(&ids, task, 0, 0), NT_CALL_RETURNED);
		bpf_task_storage_delete(&ids, task);
	} else {
		nt_output(NT_EVENT_CALL, slot->row, event_in(slot), call_bytes(cookie));
	}
	slot->entry_ns = 0;
}

#endif
