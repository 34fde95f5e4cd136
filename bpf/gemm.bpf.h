/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Matrix multiplications: floating-point operations per data type and compute mode, summed for the
 * process. As there are thousands of calls a second, they are sent as events only while kernels are
 * reported (bpf/gemm_time.bpf.h).
 *
 * A call counts when it returns success. One that another of these functions makes is part of that
 * one: cuBLAS calls cuBLASLt. The state is apart from `inside`, so that no other call counts as
 * nested in these.
 */
#ifndef NT_BPF_GEMM_BPF_H
#define NT_BPF_GEMM_BPF_H

#include "bpf/call.bpf.h"
#include "bpf/gemm_time.bpf.h"

enum {
	GEMM_STACK_WORDS = 16, /* words 6 to 21 on x86-64 */
	GEMM_FLOPS_BITS = 56, /* of one call: more takes a minute on the fastest GPUs */
	/* cudaDataType */
	TYPE_F64 = 1,
	TYPE_F16 = 2,
	TYPE_C32 = 4,
	TYPE_C64 = 5,
	TYPE_END = 64,
	/* cublasComputeType_t */
	COMPUTE_F16 = 64,
	COMPUTE_F32 = 68,
	COMPUTE_F64 = 70,
	COMPUTE_FIRST = 64,
	COMPUTE_END = 128,
	COMPLEX_FACTOR = 4, /* multiplications of real numbers in one of complex ones */
};

/* cudaDataType: C_32F, C_64F, C_16F, C_8I, C_8U, C_16BF and those of 4 to 64 bits from C_4I on. */
#define COMPLEX_TYPES                                                                              \
	(1ULL << 4 | 1ULL << 5 | 1ULL << 6 | 1ULL << 7 | 1ULL << 9 | 1ULL << 11 | 1ULL << 13 |     \
	 1ULL << 15 | 1ULL << 17 | 1ULL << 19 | 1ULL << 21 | 1ULL << 23 | 1ULL << 25 | 1ULL << 27)

/* The words of each form (bpf/event.h); 0: it has none. */
struct gemm_words {
	__u8 last, type, batch, compute;
};

static const struct gemm_words gemm_words[NT_GEMM_FORM_END] = {
	[NT_GEMM_PLAIN] = {.last = 5},
	[NT_GEMM_BATCHED] = {.last = 14, .batch = 14},
	[NT_GEMM_STRIDED] = {.last = 17, .batch = 17},
	[NT_GEMM_TYPED] = {.last = 8, .type = 8},
	[NT_GEMM_EX] = {.last = 17, .type = 8, .compute = 17},
	[NT_GEMM_BATCHED_EX] = {.last = 18, .type = 8, .batch = 17, .compute = 18},
	[NT_GEMM_STRIDED_EX] = {.last = 21, .type = 8, .batch = 20, .compute = 21},
	[NT_GEMM_LT] = {.last = 11},
};

struct gemm_shape {
	__u64 m, n, k, batch;
	__u32 type, compute;
};

/*
 * The part of cuBLASLt's structs that is read: the same from 11.11 to 13.10 (tests/bpf/test_cublas.c).
 * The upper half of the batch is a mode from 13 on.
 */
struct lt_layout {
	__u32 type, order;
	__u64 rows, columns, ld;
	__u32 batch, mode;
};

struct lt_operation {
	__u64 version;
	__u32 compute, scale_type;
	__u32 pointer_mode, transposes_a;
	__u32 transposes_b, transposes_c;
};

enum {
	LT_TRANSPOSES_END = 3, /* cublasOperation_t: none, transposed, conjugated */
	LT_ORDER_END = 64,
};

static __always_inline __u64 gemm_word(struct pt_regs *ctx, const __u64 *stack, __u32 word)
{
	if (word < REGISTER_WORDS)
		return register_word(ctx, word);
	word -= REGISTER_WORDS;
	barrier_var(word);
	return word < GEMM_STACK_WORDS ? stack[word] : 0;
}

/* Reads the words on the stack up to `last`, and no more. */
static __always_inline bool read_stack(struct pt_regs *ctx, __u64 *stack, __u32 last)
{
	__u32 words;

	if (last < REGISTER_WORDS)
		return true;
	words = last + 1 - REGISTER_WORDS;
	barrier_var(words);
	if (words > GEMM_STACK_WORDS)
		return false;
	return bpf_probe_read_user(stack, words * 8, (void *)(PT_REGS_SP(ctx) + STACK_FIRST)) >= 0;
}

/* False: a size is negative. The upper half of an int argument is undefined. */
static __always_inline bool take_size(__u64 word, bool is_wide, __u64 *ret_size)
{
	if (!is_wide)
		word = (__u64)(__s64)(__s32)word;
	*ret_size = word;
	return (__s64)word >= 0;
}

static __always_inline __u32 default_compute(__u32 type)
{
	if (type == TYPE_F64 || type == TYPE_C64)
		return COMPUTE_F64;
	return type == TYPE_F16 ? COMPUTE_F16 : COMPUTE_F32;
}

static __always_inline bool read_blas(struct pt_regs *ctx, __u64 cookie, const __u64 *stack,
				      const struct gemm_words *words, struct gemm_shape *shape)
{
	const bool is_wide = NT_COOKIE_GEMM_WIDE(cookie);

	shape->type = words->type ? (__u32)gemm_word(ctx, stack, words->type)
				  : NT_COOKIE_GEMM_TYPE(cookie);
	shape->compute = words->compute ? (__u32)gemm_word(ctx, stack, words->compute)
			 : words->type  ? COMPUTE_F32
					: default_compute(shape->type);
	shape->batch = 1;
	if (words->batch && !take_size(gemm_word(ctx, stack, words->batch), is_wide, &shape->batch))
		return false;
	return take_size(register_word(ctx, 3), is_wide, &shape->m) &&
	       take_size(register_word(ctx, 4), is_wide, &shape->n) &&
	       take_size(register_word(ctx, 5), is_wide, &shape->k);
}

static __always_inline bool read_layout(__u64 at, struct lt_layout *layout)
{
	return bpf_probe_read_user(layout, sizeof(*layout), (const void *)at) >= 0 &&
	       layout->type < TYPE_END && layout->order < LT_ORDER_END;
}

/* The three matrices must fit together, else these are no descriptors of a known layout. */
static __always_inline bool read_lt(struct pt_regs *ctx, const __u64 *stack,
				    struct gemm_shape *shape)
{
	struct lt_operation operation;
	struct lt_layout a, b, d;
	bool turns_a, turns_b;

	if (bpf_probe_read_user(&operation, sizeof(operation),
				(const void *)register_word(ctx, 1)) < 0 ||
	    operation.transposes_a >= LT_TRANSPOSES_END ||
	    operation.transposes_b >= LT_TRANSPOSES_END)
		return false;
	if (!read_layout(register_word(ctx, 4), &a) || !read_layout(gemm_word(ctx, stack, 6), &b) ||
	    !read_layout(gemm_word(ctx, stack, 11), &d))
		return false;
	turns_a = operation.transposes_a;
	turns_b = operation.transposes_b;
	shape->m = d.rows;
	shape->n = d.columns;
	shape->k = turns_a ? a.rows : a.columns;
	shape->batch = d.batch;
	shape->type = a.type;
	shape->compute = operation.compute;
	return (turns_a ? a.columns : a.rows) == shape->m &&
	       (turns_b ? b.columns : b.rows) == shape->k &&
	       (turns_b ? b.rows : b.columns) == shape->n;
}

/* False: the product has more bits than a call can have. */
static __always_inline bool multiply(__u64 *product, __u64 factor)
{
	if (factor && *product > (1ULL << GEMM_FLOPS_BITS) / factor)
		return false;
	*product *= factor;
	return true;
}

/* False: its arguments cannot be read, or make no sense. */
static __noinline bool read_gemm(struct pt_regs *ctx, __u64 cookie, __u32 *ret_key,
				 __u64 *ret_flops)
{
	struct gemm_shape shape = {};
	__u64 stack[GEMM_STACK_WORDS] = {};
	__u32 form = NT_COOKIE_GEMM(cookie);
	__u64 flops = 2;

	if (form >= NT_GEMM_FORM_END || !read_stack(ctx, stack, gemm_words[form].last))
		return false;
	if (form == NT_GEMM_LT ? !read_lt(ctx, stack, &shape)
			       : !read_blas(ctx, cookie, stack, &gemm_words[form], &shape))
		return false;
	if (shape.type >= TYPE_END || shape.compute < COMPUTE_FIRST || shape.compute >= COMPUTE_END)
		return false;
	if (!multiply(&flops, COMPLEX_TYPES >> shape.type & 1 ? COMPLEX_FACTOR : 1) ||
	    !multiply(&flops, shape.m) || !multiply(&flops, shape.n) ||
	    !multiply(&flops, shape.k) || !multiply(&flops, shape.batch))
		return false;
	*ret_key = NT_GEMM_KEY(shape.type, shape.compute);
	*ret_flops = flops;
	return true;
}

/* ---- entry and return ------------------------------------------------------------------------ */

static __always_inline bool gemm_entered(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct task_struct *task = bpf_get_current_task_btf();
	struct nt_gemm_call *call;

	if (is_passed_over(cookie))
		return false;
	hit_unseen(NT_COOKIE_ROW(cookie));
	call = bpf_task_storage_get(&gemm_calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call) {
		__sync_fetch_and_add(&untracked, 1);
		return false;
	}
	/* One whose probes were detached before it returned is replaced. */
	if (call->sp && PT_REGS_SP(ctx) < call->sp && awaits_return(utask_of(task), call->sp))
		return false;
	call->launches = call->driver_launches = 0;
	call->key = 0;
	call->flops = 0;
	call->is_read = read_gemm(ctx, cookie, &call->key, &call->flops);
	call->row = NT_COOKIE_ROW(cookie);
	call->sp = PT_REGS_SP(ctx);
	call->entry_ns = bpf_ktime_get_boot_ns();
	return true;
}

/* 1: the call is counted. Not static, so that the verifier checks it once. */
__noinline int gemm_add(__u32 key, __u64 flops, __u64 launches, __u64 driver_launches)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct nt_gemm_totals *totals =
		bpf_task_storage_get(&gemms, task->group_leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!totals) {
		__sync_fetch_and_add(&untracked, 1);
		return 0;
	}
	if (!key) {
		__sync_fetch_and_add(&totals->unread, 1);
		return 0;
	}
	for (int i = 0; i < NT_GEMM_SUMS; i++) {
		struct nt_gemm_sum *sum = &totals->sum[i];
		__u32 there = sum->key;

		if (!there)
			there = __sync_val_compare_and_swap(&sum->key, 0, key) ?: key;
		if (there != key)
			continue;
		__sync_fetch_and_add(&sum->calls, 1);
		__sync_fetch_and_add(&sum->flops, flops);
		__sync_fetch_and_add(&totals->launches, launches);
		__sync_fetch_and_add(&totals->driver_launches, driver_launches);
		return 1;
	}
	__sync_fetch_and_add(&totals->over_cap, 1);
	return 0;
}

static __always_inline void gemm_returned(struct pt_regs *ctx)
{
	struct nt_gemm_call *call =
		bpf_task_storage_get(&gemm_calls, bpf_get_current_task_btf(), 0, 0);

	if (!call || !call->sp || PT_REGS_SP(ctx) != call->sp + RETURN_SP)
		return;
	call->sp = 0;
	/* CUBLAS_STATUS_SUCCESS. Empty matrices enqueue nothing. */
	if ((__u32)PT_REGS_RC(ctx) == 0 && (!call->is_read || call->flops) &&
	    gemm_add(call->is_read ? call->key : 0, call->flops, call->launches,
		     call->driver_launches))
		gemm_span(call->entry_ns, call->row);
}

#endif
