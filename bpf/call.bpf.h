/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a probe does at the entry and at the return of a call. One body for every function: the
 * attach cookie (bpf/event.h) says what to record of it. The programs around it are in
 * call.bpf.c and session.bpf.c.
 *
 * No loop over words has a variable bound, and no more of the stack is read than the row asks for:
 * a function with few arguments may sit at the very top of its stack.
 */
#ifndef NT_BPF_CALL_BPF_H
#define NT_BPF_CALL_BPF_H

#include "bpf/emit.bpf.h"

/* Set by the agent before load. */
const volatile __u64 min_call_ns = 0;

/* Calls that a full table kept from being recorded. */
__u64 untracked;

/* Key: tgid. Made by the first counted call; the agent deletes it when the process has ended. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct nt_process_counters);
} counters SEC(".maps");

/*
 * Entries that `counters` ever had, to know without a look-up that a process still has none. One
 * for all objects: the agent shares this section's map, too.
 */
__u64 counters_made SEC(".data.shared");

/*
 * Key: pid << 32 | tid. Made by a thread's first call and used again by all later ones, so that a
 * call costs a look-up and no update. LRU, because threads end unseen; the agent also deletes the
 * threads of an ended process.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct nt_inside);
} inside SEC(".maps");

struct nt_id {
	__u8 byte[NT_ID_BYTES];
};

/* The unique id that a thread's call was entered with. Key as of `inside`; deleted at the return. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct nt_id);
} ids SEC(".maps");

enum {
	PAGE_BYTES = 4096, /* at least */
};

/* First values of new entries: too big for the stack, and constant. */
static const struct nt_process_counters no_counters;
static const struct nt_inside no_inside;
static const struct nt_id no_id;

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

static __always_inline struct nt_process_counters *counters_of(__u64 pid_tgid)
{
	__u32 tgid = pid_tgid >> 32;
	struct nt_process_counters *c = bpf_map_lookup_elem(&counters, &tgid);

	if (c)
		return c;
	/* Another thread may be first: then this fails and the look-up finds its entry. */
	if (bpf_map_update_elem(&counters, &tgid, &no_counters, BPF_NOEXIST) == 0) {
		__u64 before = __sync_fetch_and_add(&counters_made, 1);

		barrier_var(before); /* a result that is wanted makes the addition ordered */
	}
	c = bpf_map_lookup_elem(&counters, &tgid);
	if (!c)
		__sync_fetch_and_add(&untracked, 1);
	return c;
}

/*
 * By assembly, since the compiler would rather choose an address first and load once, and the
 * verifier takes no load from a context pointer that was moved.
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

static __always_inline void counter_add(__u64 pid_tgid, __u32 counter, __u64 bytes)
{
	struct nt_process_counters *c = counters_of(pid_tgid);

	/* The compiler must not move the check away from the access. */
	if (!c || counter >= NT_COUNTER_END)
		return;
	__sync_fetch_and_add(&c->calls[counter], 1);
	if (bytes)
		__sync_fetch_and_add(&c->bytes[counter], bytes);
}

/* Adds what the cookie asks for. Byte counts lie in registers. */
static __always_inline void count(struct pt_regs *ctx, __u64 pid_tgid, __u64 cookie)
{
	__u32 counter = NT_COOKIE_COUNTER(cookie);
	__u32 word = NT_COOKIE_BYTES(cookie);

	if (counter)
		counter_add(pid_tgid, counter - 1, word ? register_word(ctx, word - 1) : 0);
}

static __always_inline __u64 launches_in(const struct nt_process_counters *c)
{
	return c->calls[NT_COUNTER_LAUNCH] ?: c->calls[NT_COUNTER_DRIVER_LAUNCH];
}

static __always_inline __u64 launches_of(__u64 pid_tgid)
{
	__u32 tgid = pid_tgid >> 32;
	struct nt_process_counters *c = bpf_map_lookup_elem(&counters, &tgid);

	return c ? launches_in(c) : 0;
}

/*
 * The same, for a thread that remembers at which counters_made its process had no counters: 1 is
 * added to it, so that 0 remembers nothing. An ended process of the same number is as good: what
 * counters it had, the agent has deleted.
 */
static __always_inline __u64 launches_remembered(__u64 pid_tgid, __u64 *uncounted)
{
	__u32 tgid = pid_tgid >> 32;
	struct nt_process_counters *c;
	__u64 made;

	if (*uncounted == *(volatile __u64 *)&counters_made + 1)
		return 0;
	c = bpf_map_lookup_elem(&counters, &tgid);
	if (c)
		return launches_in(c);
	/* An atomic addition is ordered: what this look-up misses is made after `made` was read. */
	made = __sync_fetch_and_add(&counters_made, 0);
	c = bpf_map_lookup_elem(&counters, &tgid);
	if (c)
		return launches_in(c);
	*uncounted = made + 1;
	return 0;
}

/* Every word of the array is written: the caller's memory may be the ring's, with old events. */
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

/* The word that the cookie's field `one_based` names. */
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

	/* An int at the end of a page: its 8 bytes cannot be read, its 4 can. */
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

/* Of an event with the words that the cookie asks for. */
static __always_inline __u32 call_bytes(__u64 cookie)
{
	__u32 words = NT_COOKIE_WORDS(cookie);

	/* Not to be one value with capture_words' count: the verifier would lose its bounds. */
	barrier_var(words);
	if (words > NT_CALL_WORDS)
		words = NT_CALL_WORDS;
	return NT_CALL_BYTES(words);
}

static __always_inline void emit_init(const struct nt_inside *slot, const struct nt_id *id,
				      __u16 flags)
{
	/* The event itself does not count yet. */
	__u64 wakeup = nt_wakeup(sizeof(struct nt_event_init));
	struct nt_event_init *e = nt_reserve(NT_EVENT_INIT, sizeof(*e));

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

/* Is the thread inside a call that this one was made by? Deeper in the stack, then. */
static __always_inline bool nested(const struct nt_inside *slot, __u64 sp)
{
	return slot && slot->entry_ns && sp < slot->sp;
}

/* A call of which the entry is all there is to see. */
static __always_inline void call_seen(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u64 wakeup;
	struct nt_event_call *e;

	if (nested(bpf_map_lookup_elem(&inside, &pid_tgid), PT_REGS_SP(ctx)))
		return;
	count(ctx, pid_tgid, cookie);
	wakeup = nt_wakeup(sizeof(*e));
	e = nt_reserve(NT_EVENT_CALL, sizeof(*e));
	if (!e)
		return;
	e->h.type = NT_EVENT_CALL;
	e->h.size = sizeof(*e);
	e->h.row = NT_COOKIE_ROW(cookie);
	e->h.flags = 0;
	e->h.pid = pid_tgid >> 32;
	e->h.tid = (__u32)pid_tgid;
	e->h.entry_ns = bpf_ktime_get_boot_ns();
	e->ret_ns = 0;
	e->ret = 0;
	e->launches = launches_of(pid_tgid);
	capture_words(ctx, cookie, e->word);
	e->deref = NT_COOKIE_DEREF(cookie) ? dereference(cookie, e->word) : 0;
	bpf_ringbuf_submit(e, wakeup);
}

/* False: the return is of no interest. */
static __always_inline bool call_entered(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct nt_inside *slot = bpf_map_lookup_elem(&inside, &pid_tgid);
	struct nt_id *id;

	if (nested(slot, PT_REGS_SP(ctx)))
		return false;
	if (!slot) {
		bpf_map_update_elem(&inside, &pid_tgid, &no_inside, BPF_ANY);
		slot = bpf_map_lookup_elem(&inside, &pid_tgid);
		if (!slot) {
			__sync_fetch_and_add(&untracked, 1);
			return false;
		}
	}
	count(ctx, pid_tgid, cookie);
	slot->entry_ns = 0; /* what the agent reads meanwhile is no call */
	barrier();
	slot->cookie = cookie;
	slot->sp = PT_REGS_SP(ctx);
	slot->type = NT_EVENT_CALL;
	slot->size = call_bytes(cookie);
	slot->row = NT_COOKIE_ROW(cookie);
	slot->flags = NT_CALL_RETURNED;
	slot->pid = pid_tgid >> 32;
	slot->tid = (__u32)pid_tgid;
	slot->launches = launches_remembered(pid_tgid, &slot->uncounted);
	capture_words(ctx, cookie, slot->word);
	slot->deref = 0;
	if (NT_COOKIE_DEREF(cookie) && !NT_COOKIE_DEREF_RET(cookie))
		slot->deref = dereference(cookie, slot->word);
	barrier();
	slot->entry_ns = bpf_ktime_get_boot_ns();
	if (!NT_COOKIE_ID_WORD(cookie) && !NT_COOKIE_ID_STACK(cookie))
		return true;
	bpf_map_update_elem(&ids, &pid_tgid, &no_id, BPF_ANY);
	id = bpf_map_lookup_elem(&ids, &pid_tgid);
	if (id)
		capture_id(ctx, cookie, slot->word, id);
	slot->ret_ns = 0;
	slot->ret = 0;
	emit_init(slot, id, 0);
	return true;
}

static __always_inline void call_returned(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_boot_ns();
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct nt_inside *slot = bpf_map_lookup_elem(&inside, &pid_tgid);
	__u64 cookie;

	if (!slot) {
		/* Pushed out of the table since it was entered. */
		__sync_fetch_and_add(&untracked, 1);
		return;
	}
	if (!slot->entry_ns || PT_REGS_SP(ctx) != slot->sp + RETURN_SP)
		return;
	cookie = slot->cookie;
	if (NT_COOKIE_LONG_ONLY(cookie) && now - slot->entry_ns < min_call_ns) {
		counter_add(pid_tgid, NT_COUNTER_SYNC, now - slot->entry_ns);
		slot->entry_ns = 0;
		return;
	}
	slot->ret_ns = now;
	slot->ret = PT_REGS_RC(ctx);
	if (NT_COOKIE_DEREF_RET(cookie))
		slot->deref = dereference(cookie, slot->word);
	if (NT_COOKIE_ID_WORD(cookie) || NT_COOKIE_ID_STACK(cookie)) {
		emit_init(slot, bpf_map_lookup_elem(&ids, &pid_tgid), NT_CALL_RETURNED);
		bpf_map_delete_elem(&ids, &pid_tgid);
	} else {
		nt_output(NT_EVENT_CALL, event_in(slot), call_bytes(cookie));
	}
	slot->entry_ns = 0;
}

#endif
