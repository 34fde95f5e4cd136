/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The events and maps shared by the kernel side and the agent; the only header that both include.
 * Fixed-width fields, no implicit padding, asserted sizes. The ring buffer never leaves the node,
 * so this may change with any release; the bus format is proto/neutracer.proto.
 *
 * A probed function is called a *call*. Its arguments are *words*: word i is the i-th integer or
 * pointer argument slot of the calling convention. On x86-64 words 0-5 are rdi rsi rdx rcx r8 r9,
 * and word 6+n is the 8 bytes at [rsp + 8 + 8n]. On arm64 words 0-7 are x0-x7, and word 8+n is [sp
 * + 8n]. The agent's probe table defines the meaning of each word.
 */
#ifndef NT_BPF_EVENT_H
#define NT_BPF_EVENT_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "bpf/detail_rate.h"
#include "plugin/gpu_record.h"

#define NT_CALL_WORDS 12 /* ncclPutSignal has the most: communicator and stream in words 9 and 10 */
#define NT_ID_BYTES   128 /* ncclUniqueId */
#define NT_LOCATION   8 /* of CUmemLocation in CUmemAllocationProp: its type, and a device */
#define NT_ROWS_MAX   544 /* rows of the agent's probe table; its bits of the cookie allow 1023 */

enum nt_event_type {
	NT_EVENT_CALL = 1, /* struct nt_event_call */
	NT_EVENT_INIT, /* struct nt_event_init: a call that carries a unique id */
	NT_EVENT_END, /* struct nt_event_end: a process with counters has ended or runs another program */
	NT_EVENT_GPU, /* struct nt_event_gpu: records of a library inside the process */
	NT_EVENT_QUERY, /* struct nt_event_query: a CUDA event is pending, or is complete */
	NT_EVENT_GEMM, /* struct nt_event_gemm: a multiplication, while kernels are reported */
	NT_EVENT_CAPTURE, /* struct nt_event_capture: a stream no longer captures */
	NT_EVENT_DETAIL, /* struct nt_event_detail: a counted call, at L1; in a ring of its own */
	NT_EVENT_VERBS, /* struct nt_event_verbs: a queue pair or a device of RDMA */
	NT_EVENT_TYPE_END, /* keep last */
};

/*
 * The attach cookie of a probe: what the kernel side must know to record the call.
 *
 *	bits  0-8	row in the agent's probe table, with bit 43; copied into the event with bit 15
 *	bit  9		the function stays with the links of all processes: NT_SPLIT_BUT_STAYING
 *	bits 10-14	slot of the file in the table of splits, 0: it has none
 *	bit  15		the probe belongs to a link of one process; 0: to one of all processes
 *	bits 16-19	words to capture, 0 to NT_CALL_WORDS
 *	bits 20-23	1 + word to dereference, 0: none. The 8 bytes at word + offset are `deref`
 *	bits 24-42	offset for it, 19 bits
 *	bits 24-34	of a matrix multiplication, which dereferences none: see NT_COOKIE_GEMM
 *	bit  24		of batches of records: calls that launch kernels are among them
 *	bits 24-27	of verbs: NT_COOKIE_VERB
 *	bit  43		bit 9 of the row
 *	bits 44-47	1 + word that points to the 128-byte unique id, 0: none. Of calls that create
 *			physical device memory: not 0, word 2 points to its properties, of which the
 *			8 bytes at NT_LOCATION replace it
 *	bit  48		the unique id lies on the stack from word 6 on (x86-64, by value). Of calls that
 *			allocate device memory, which have none: word 1 is an output parameter too
 *	bits 49-52	1 + enum nt_counter that the call adds 1 to; 0: none
 *	bits 53-56	1 + word with the bytes that the call adds beside it; 0: none. Of calls without a
 *			counter: enum nt_capture
 *	bit  57		report only calls that last at least `min_call_ns`; the others are NT_COUNTER_SYNC
 *	bit  58		dereference at the return (an output parameter), not at the entry
 *	bits 59-63	1 + offset / 16 of a record, 0: none. Words 1 on are then no arguments but the
 *			memory at word 0 + offset, 8 bytes each (Gloo passes its arguments in a struct)
 */
#define NT_COOKIE_ROW(c)       ((__u16)(((c)&0x81ff) | ((c) >> 34 & 0x200)))
#define NT_COOKIE_OF_ROW(row)  (((__u64)(row)&0x1ff) | ((__u64)(row)&0x200) << 34)
#define NT_COOKIE_STAYS(c)     ((__u32)((c) >> 9) & 1)
#define NT_COOKIE_SLOT(c)      ((__u32)((c) >> 10) & 0x1f)
#define NT_COOKIE_OWN(c)       ((__u32)((c) >> 15) & 1)
#define NT_COOKIE_WORDS(c)     ((__u32)((c) >> 16) & 0xf)
#define NT_COOKIE_DEREF(c)     ((__u32)((c) >> 20) & 0xf)
#define NT_COOKIE_DEREF_OFF(c) ((__u32)((c) >> 24) & 0x7ffff)
#define NT_COOKIE_ID_WORD(c)   ((__u32)((c) >> 44) & 0xf)
#define NT_COOKIE_ID_STACK(c)  ((__u32)((c) >> 48) & 1)
#define NT_COOKIE_COUNTER(c)   ((__u32)((c) >> 49) & 0xf)
#define NT_COOKIE_BYTES(c)     ((__u32)((c) >> 53) & 0xf)
#define NT_COOKIE_LONG_ONLY(c) ((__u32)((c) >> 57) & 1)
#define NT_COOKIE_DEREF_RET(c) ((__u32)((c) >> 58) & 1)
#define NT_COOKIE_RECORD(c)    ((__u32)((c) >> 59) & 0x1f)
/* Of calls that allocate device memory. */
#define NT_COOKIE_SECOND     NT_COOKIE_ID_STACK
#define NT_COOKIE_PROPERTIES NT_COOKIE_ID_WORD

/*
 * Of a matrix multiplication, in place of the offset: its form, the data type where no word holds
 * it, and whether its sizes are 64 bits wide.
 */
#define NT_COOKIE_GEMM(c)      ((__u32)((c) >> 24) & 0xf)
#define NT_COOKIE_GEMM_TYPE(c) ((__u32)((c) >> 28) & 0x3f)
#define NT_COOKIE_GEMM_WIDE(c) ((__u32)((c) >> 34) & 1)
#define NT_COOKIE_CAPTURE(c)   (NT_COOKIE_COUNTER(c) ? 0 : NT_COOKIE_BYTES(c))

/* What a call does to the capture of a stream. */
enum nt_capture {
	NT_CAPTURE_NONE,
	NT_CAPTURE_BEGIN,
	NT_CAPTURE_END,
};

/* Of batches of records. */
#define NT_COOKIE_LAUNCHES(c) ((__u32)((c) >> 24) & 1)

/*
 * What the words of a matrix multiplication mean. M, N and K are words 3 to 5 of all but the last,
 * whose sizes are in descriptors.
 */
enum nt_gemm_form {
	NT_GEMM_NONE, /* another call */
	NT_GEMM_PLAIN,
	NT_GEMM_BATCHED, /* batch: word 14 */
	NT_GEMM_STRIDED, /* batch: word 17 */
	NT_GEMM_TYPED, /* type of A: word 8 */
	NT_GEMM_EX, /* type 8, compute mode 17 */
	NT_GEMM_BATCHED_EX, /* type 8, batch 17, compute mode 18 */
	NT_GEMM_STRIDED_EX, /* type 8, batch 20, compute mode 21 */
	NT_GEMM_LT, /* operation 1, layouts of A, B and D: words 4, 6 and 11 */
	NT_GEMM_FORM_END, /* keep last; at most 15 */
};

/* Calls that are counted but never sent individually. */
enum nt_counter {
	NT_COUNTER_LAUNCH,
	NT_COUNTER_COPY,
	NT_COUNTER_ALLOC,
	NT_COUNTER_FREE,
	NT_COUNTER_SYNC, /* short synchronising calls; bytes hold their nanoseconds */
	/* The driver's, which the runtime's calls end in: do not add both. */
	NT_COUNTER_DRIVER_LAUNCH,
	NT_COUNTER_DRIVER_COPY,
	NT_COUNTER_DRIVER_ALLOC,
	NT_COUNTER_GC, /* an interpreter collects garbage; bytes hold the nanoseconds */
	NT_COUNTER_END, /* keep last; at most 15 */
};

/*
 * By file slot: which links record a call, those of all processes or those of its own. While both
 * are attached, hits of the other kind are skipped, so that each call is recorded once.
 */
enum nt_split {
	NT_SPLIT_NONE,
	NT_SPLIT_BUT_STAYING,
	NT_SPLIT_ALL,
};

#define NT_SPLIT_SLOTS       32
#define NT_COOKIE_OF_STAYING (1ULL << 9)
#define NT_COOKIE_OF_SLOT(s) ((__u64)(s) << 10)

#define NT_ROW_OF(row) ((__u16)((row)&0x3ff))
#define NT_ROW_OWN     0x8000 /* in `row`: bit 15 of the cookie */

/*
 * Per process, updated atomically by its threads. Stored with the leader of the thread group from
 * the first counted call on; freed with that task.
 */
struct nt_process_counters {
	__u64 calls[NT_COUNTER_END];
	__u64 bytes[NT_COUNTER_END];
	__u64 lost; /* calls without an event: ring full, or return not observed */
	__u64 period; /* kernel side: events of the process while the ring fills */
	__u32 period_events;
	__u32 unseen[NT_ROWS_MAX]; /* hits of event rows without an event: nested, short, or lost */
	__u16 ended; /* set by the agent: final counters, of which `unseen` is unknown; NT_ENDED_* */
	__u16 exit_code; /* set by the agent, with `ended`: see struct nt_event_end */
};

enum {
	NT_ENDED = 1,
	NT_ENDED_BY_PARENT = 2, /* see NT_END_KILLED_BY_PARENT */
};

/*
 * Matrix multiplications of one data type and compute mode. `key`: NT_GEMM_KEY, or 0 for an empty
 * place, which is filled once.
 */
struct nt_gemm_sum {
	__u32 key;
	__u32 unused;
	__u64 calls;
	__u64 flops;
};

#define NT_GEMM_SUMS               16
#define NT_GEMM_KEY(type, compute) (0x80000000U | (__u32)(type) << 8 | (__u32)(compute))
#define NT_GEMM_TYPE(key)          ((key) >> 8 & 0x3f)
#define NT_GEMM_COMPUTE(key)       ((key)&0xff)

/*
 * Per process, as nt_process_counters. Of calls that returned success and were made by no other of
 * these functions.
 */
struct nt_gemm_totals {
	struct nt_gemm_sum sum[NT_GEMM_SUMS];
	__u64 unread; /* arguments that do not fit the layouts, or sizes that no call has */
	__u64 over_cap; /* of further types and modes */
	/* Launches made inside of the calls in `sum`: of the runtime, and of the driver. */
	__u64 launches, driver_launches;
};

struct nt_event_header {
	__u16 type; /* enum nt_event_type */
	__u16 size; /* of the whole event, header included */
	__u16 row; /* of the agent's probe table */
	__u16 flags; /* NT_CALL_* */
	__u32 pid; /* tgid in the initial pid namespace */
	__u32 tid;
	__u64 entry_ns; /* boot time */
};

enum {
	NT_CALL_RETURNED = 1, /* the event was made at the return: ret_ns and ret hold */
	/* set by the agent for NT_ROW_OWN: from a link of the process's own */
	NT_CALL_OWN = 2,
	NT_CALL_MEMORY = 4, /* the record of an allocation or release of device memory */
	/* of NT_EVENT_END */
	NT_END_EXEC = 1,
	NT_END_KILLED_BY_PARENT = 2, /* its SIGKILL came from its parent, as launchers send it */
	/* of NT_EVENT_CAPTURE */
	NT_CAPTURE_MIXED = 1, /* another stream captured at that time, too */
	/* of NT_EVENT_QUERY */
	NT_QUERY_COMPLETE = 1, /* the event is complete; else it is pending */
};

/* Sent with all words or with as many as its row has: NT_CALL_BYTES(words) long. */
struct nt_event_call {
	struct nt_event_header h;
	__u64 ret_ns; /* boot time; 0 for an entry-only probe */
	__u64 ret;
	__u64 deref;
	/* Of the whole process so far, at entry. NT_CALL_MEMORY: the address to which it returns */
	__u64 launches;
	__u64 word[NT_CALL_WORDS];
};

/*
 * Such a call makes two events: one at its entry, without NT_CALL_RETURNED, as it may never return,
 * and a complete one at its return.
 */
struct nt_event_init {
	struct nt_event_call call; /* with all its words */
	__u8 id[NT_ID_BYTES];
};

/*
 * The final counters, as the storage of the process is gone when the agent reads this: the first
 * three members of struct nt_process_counters. h.row is the exit code as wait(2) has it: the signal,
 * 0x80 with a core, or the status << 8. With NT_END_EXEC the process runs another program.
 */
struct nt_event_end {
	struct nt_event_header h; /* entry_ns: boot time of the end */
	__u64 calls[NT_COUNTER_END];
	__u64 bytes[NT_COUNTER_END];
	__u64 lost;
};

/* Sent with room for NT_GPU_BATCH_FEW records or for NT_GPU_BATCH. */
struct nt_event_gpu {
	struct nt_event_header h; /* entry_ns: boot time at which the batch was handed over */
	__u64 number; /* of the first record: plugin/gpu_record.h */
	__u32 records; /* that are filled */
	__u32 spans_lost; /* of struct nt_event_gemm, of the process so far */
	struct nt_gpu_record record[NT_GPU_BATCH];
};

/* The result of a query of a CUDA event. Not each query makes one: bpf/event_query.bpf.h. */
struct nt_event_query {
	struct nt_event_header h; /* entry_ns: boot time at which the query returned */
	__u64 event; /* handle */
	__u64 queries; /* of the process so far */
};

/*
 * A matrix multiplication that is counted, from its entry to its return. Sent for NT_GEMM_WATCH_NS
 * after each batch that has calls that launch kernels, NT_GEMM_SPANS_MOST in a period at most.
 */
struct nt_event_gemm {
	struct nt_event_header h;
	__u64 ret_ns; /* boot time */
	/* The lower half of what pthread_self() is; 0: unknown. CUPTI names threads by it, or by h.tid */
	__u32 thread;
	__u32 unused;
};

/*
 * What the process multiplied while a stream captured, of calls of all its threads: they were not
 * executed. Sent before the event of the call that ended the capture: h.tid and h.entry_ns are its.
 */
struct nt_event_capture {
	struct nt_event_header h; /* flags: NT_CAPTURE_MIXED */
	__u64 unread; /* calls that are in no sum */
	struct nt_gemm_sum sum[NT_GEMM_SUMS];
};

/* Calls that are counted, and at level L1 also sampled. */
enum nt_detail_class {
	NT_DETAIL_LAUNCHES,
	NT_DETAIL_COPIES,
	NT_DETAIL_ALLOCS, /* of host memory, and their releases */
	NT_DETAIL_SYNCS, /* too short for an event */
	NT_DETAIL_POSTS, /* of work requests to a queue pair */
	NT_DETAIL_CLASSES = 8, /* a power of two; the others are not used */
};

#define NT_DETAIL_SHIFT 27 /* from boot time in ns to the number of a period: 134 ms */

/* Of a process at level L1: calls in a period that are aimed at, by class. 0: none, all are lost. */
struct nt_detail_limits {
	__u32 most[NT_DETAIL_CLASSES];
};

struct nt_detail_rates {
	struct nt_detail_rate of[NT_DETAIL_CLASSES];
	__u64 sent; /* events so far */
};

/* Such a call, drawn with the probability (threshold + 1) / 2^32. */
struct nt_event_detail {
	struct nt_event_header h; /* flags: NT_CALL_RETURNED */
	__u64 ret_ns; /* boot time; 0: only its entry was seen */
	__u64 bytes; /* 0: none, or not known */
	/* Its first word; with NT_CALL_RETURNED its result; of NT_DETAIL_POSTS a NT_DETAIL_POST(). */
	__u64 value;
	__u32 threshold;
	__u32 class; /* enum nt_detail_class */
};

/* Number of the queue pair, opcode of the first request (enum ibv_wr_opcode), requests that were read. */
#define NT_DETAIL_POST(qpn, opcode, requests)                                                      \
	((__u32)(qpn) | (__u64)((opcode)&0xffff) << 32 | (__u64)(requests) << 48)
#define NT_DETAIL_POST_QPN(value)      ((__u32)(value))
#define NT_DETAIL_POST_OPCODE(value)   ((__u32)((value) >> 32) & 0xffff)
#define NT_DETAIL_POST_REQUESTS(value) ((__u32)((value) >> 48))

#define NT_GEMM_WATCH_NS     2000000000ULL
#define NT_GEMM_PERIOD_SHIFT 27 /* from boot time in ns to the number of a period: 134 ms */
#define NT_GEMM_SPANS_MOST   2048

#define NT_GPU_BATCH_FEW       8
#define NT_GPU_BYTES(records_) (__builtin_offsetof(struct nt_event_gpu, record) + (records_)*32)

#define NT_CALL_BYTES(words) (__builtin_offsetof(struct nt_event_call, word) + (words)*8)

/*
 * The current or last call of a thread, in the storage of its task. The agent can read it at any
 * time, which shows calls that never return. A call left by longjmp is detected by the stack
 * pointer: a new call at the same depth or above replaces it. A call whose return probe is gone is
 * detected by the walk over all threads (bpf/life.bpf.h).
 *
 * From `type` on it is the event that is sent at the return: one copy is cheaper than one per word.
 */
struct nt_inside {
	__u64 cookie;
	__u64 sp;
	__u16 type, size, row, flags;
	__u32 pid, tid;
	__u64 entry_ns; /* boot time; 0: in no call */
	__u64 ret_ns; /* this and `ret`: of the last call that has returned */
	__u64 ret;
	__u64 deref;
	__u64 launches;
	__u64 word[NT_CALL_WORDS];
	/* Of the walk: entry_ns of a call without a pending return; when first seen. */
	__u64 absent_of;
	__u64 absent_ns;
	/*
	 * In the walk's copy of a process's main thread that is in no call: its instruction in user
	 * space when it last entered the kernel. The timer does that to a thread that computes.
	 */
	__u64 user_ip;
};

#include "bpf/rdma_event.h"

_Static_assert(sizeof(struct nt_process_counters) == 168 + 4 * NT_ROWS_MAX, "map layout");
_Static_assert(sizeof(struct nt_gemm_totals) == 24 * NT_GEMM_SUMS + 32, "map layout");
_Static_assert(sizeof(struct nt_event_header) == 24, "ring buffer layout");
_Static_assert(sizeof(struct nt_event_call) == 152, "ring buffer layout");
_Static_assert(sizeof(struct nt_event_init) == 280, "ring buffer layout");
_Static_assert(sizeof(struct nt_event_end) == 176, "ring buffer layout");
_Static_assert(sizeof(struct nt_event_gpu) == 40 + 32 * NT_GPU_BATCH, "ring buffer layout");
_Static_assert(sizeof(struct nt_event_query) == 40, "ring buffer layout");
_Static_assert(sizeof(struct nt_event_gemm) == 40, "ring buffer layout");
_Static_assert(sizeof(struct nt_event_capture) == 32 + 24 * NT_GEMM_SUMS, "ring buffer layout");
_Static_assert(sizeof(struct nt_event_detail) == 56, "ring buffer layout");
_Static_assert(sizeof(struct nt_detail_rate) == 40, "map layout");
_Static_assert(sizeof(struct nt_detail_rates) == 40 * NT_DETAIL_CLASSES + 8, "map layout");
_Static_assert(__builtin_offsetof(struct nt_process_counters, period) ==
		       sizeof(struct nt_event_end) - sizeof(struct nt_event_header),
	       "an event begins as they do");
_Static_assert(sizeof(struct nt_inside) == 40 + sizeof(struct nt_event_call), "map layout");
_Static_assert(__builtin_offsetof(struct nt_inside, entry_ns) ==
		       16 + __builtin_offsetof(struct nt_event_call, h.entry_ns),
	       "an event is part of it");
_Static_assert(__builtin_offsetof(struct nt_inside, word) ==
		       16 + __builtin_offsetof(struct nt_event_call, word),
	       "an event is part of it");

#endif
