/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The mark is replaced here: batches are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/batch.h"
#include "plugin/cupti/report.h"

enum {
	MOST = 4096,
	BUFFER_BYTES = 16 * 1024,
	COPY_BYTES = 96, /* of a release's record */
	RANDOM_BUFFERS = 1000000,
	RANDOM_BYTES = 1024,
	KIND_OTHER = 2,
};

/* ---- what stands in for the mark ---- */

static struct nt_gpu_record got[MOST];
static uint32_t records, batches, batch_sizes[MOST];
static uint64_t first_number, next_number; /* of what was handed over since forget() */
static uint64_t gaps;

volatile uint16_t neutracer_gpu_records_semaphore = 1; /* of the mark */

void nt_batch_hand_over(const struct nt_gpu_record *record, uint32_t count, uint64_t number)
{
	assert_in_range(count, 1, NT_GPU_BATCH);
	if (!first_number)
		first_number = number;
	else
		gaps += number - next_number;
	next_number = number + count;
	for (uint32_t i = 0; i < count; i++)
		got[records++ % MOST] = record[i];
	batch_sizes[batches++ % MOST] = count;
}

static void forget(void)
{
	records = batches = 0;
	first_number = next_number = gaps = 0;
}

/* ---- what stands in for CUPTI ---- */

static size_t kernel_bytes = 208;
static int is_lax; /* does not look whether a record is whole */
static int drops_names; /* of kernels: random buffers */

static size_t bytes_of(uint32_t kind)
{
	switch (kind) {
	case NT_CUPTI_KIND_CONCURRENT_KERNEL:
		return kernel_bytes;
	case NT_CUPTI_KIND_MEMCPY:
		return COPY_BYTES;
	case KIND_OTHER:
		return 24;
	case NT_CUPTI_KIND_RUNTIME:
	case NT_CUPTI_KIND_DRIVER:
		return sizeof(struct nt_cupti_call);
	default:
		return 0;
	}
}

static int next_record(uint8_t *buffer, size_t valid_size, void **record)
{
	const size_t before =
		*record ? bytes_of(*(uint32_t *)*record) + (size_t)((uint8_t *)*record - buffer)
			: 0;
	size_t bytes;

	if (before >= valid_size)
		return NT_CUPTI_MAX_LIMIT_REACHED;
	*record = buffer + before;
	if (is_lax && valid_size - before < sizeof(uint32_t))
		return NT_CUPTI_SUCCESS;
	if (valid_size - before < sizeof(uint32_t))
		return 21;
	bytes = bytes_of(*(uint32_t *)*record);
	if (!bytes || (!is_lax && bytes > valid_size - before))
		return 21;
	if (drops_names && *(uint32_t *)*record == NT_CUPTI_KIND_CONCURRENT_KERNEL &&
	    valid_size - before >= sizeof(struct nt_cupti_kernel))
		((struct nt_cupti_kernel *)*record)->name = NULL;
	return NT_CUPTI_SUCCESS;
}

static const struct nt_cupti_calls calls = {.next_record = next_record};

struct buffer {
	_Alignas(8) uint8_t bytes[BUFFER_BYTES];
	size_t used;
};

static void *add(struct buffer *buffer, uint32_t kind)
{
	void *record = &buffer->bytes[buffer->used];

	assert_true(buffer->used + bytes_of(kind) <= BUFFER_BYTES);
	buffer->used += bytes_of(kind);
	memset(record, 0x5a, bytes_of(kind));
	*(uint32_t *)record = kind;
	return record;
}

static void add_kernel(struct buffer *buffer, uint32_t i, const char *name)
{
	struct nt_cupti_kernel *kernel = add(buffer, NT_CUPTI_KIND_CONCURRENT_KERNEL);

	kernel->start = 1000 + i;
	kernel->end = 2000 + i;
	kernel->device = 3;
	kernel->stream = 7 + i;
	kernel->correlation = 100 + i;
	kernel->name = name;
	kernel->graph = 9;
}

static void add_copy(struct buffer *buffer, uint32_t i)
{
	struct nt_cupti_copy *copy = add(buffer, NT_CUPTI_KIND_MEMCPY);

	copy->start = 1000 + i;
	copy->end = 2000 + i;
	copy->device = 2;
	copy->stream = 5;
	copy->correlation = 100 + i;
	copy->graph = 0;
}

static void add_call(struct buffer *buffer, uint32_t i, uint32_t kind, uint32_t cbid)
{
	struct nt_cupti_call *call = add(buffer, kind);

	call->cbid = cbid;
	call->start = 1000 + i;
	call->end = 2000 + i;
	call->thread = 70 + i;
	call->correlation = 100 + i;
}

static void report(struct buffer *buffer)
{
	nt_report_buffer(&calls, buffer->bytes, buffer->used);
}

/* ---- names ---- */

static void kernels_that_wait_for_others_are_known_by_their_names(void **state)
{
	static const char *const names[] = {
		"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
		"_Z31ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
		"_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
		"_Z38ncclKernel_AllReduce_RING_LL_Sum_floatP11ncclDevCommmP8ncclWork",
		"_ZL22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
		"ncclDevKernel_AllGather_RING_LL",
		"_ZN7deep_ep9internode8dispatchILb0ELi1ELb0EEEvP4int4Pf",
		"void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(__nv_bfloat16*)",
		"_Z34nvshmemi_transfer_rma_blocking_nbiPvS_m",
		"nvshmemi_init_array_kernel",
		/* In namespaces of the frameworks. */
		"_ZN4vllm26cross_device_reduce_1stageI6__halfLi2EEEvPNS_8RankDataE",
		"void vllm::cross_device_reduce_2stage<__half, 8>(vllm::RankData*)",
		"_ZN12_GLOBAL__N_126one_shot_all_reduce_kernelIfLi16ELi8EEEvPPT_",
		"_ZN35_GLOBAL__N__0b0a1c2d_7_a_cu_a1b2c3d27multimem_all_reduce_kernelIfLi16EEvPT_",
		"void (anonymous namespace)::two_shot_all_reduce_kernel<float, 16, 8, false>(float*)",
		"_ZN10flashinfer24trtllm_allreduce_fusion26allreduce_fusion_kernel_twoI6__halfEEvv",
		"void c10d::(anonymous namespace)::multimem_one_shot_all_reduce_kernel<float>(float*)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (nt_report_kind_of(names[i]) != NT_GPU_RECORD_COMMUNICATION)
			fail_msg("%s", names[i]);
	}
}

static void other_kernels_are_own_work(void **state)
{
	static const char *const names[] = {
		"",
		"_",
		"_Z",
		"_ZN",
		"_ZL",
		"_ZNL",
		"_Z7",
		"_ZN7",
		"_ZN9999999999999999999999999999999999999999999999nccl",
		"_ZN18446744073709551615nccl",
		"_ZN3abc99ab",
		"void ",
		"void",
		"::",
		"a::",
		"(anonymous namespace)",
		"<nccl>",
		"ampere_sgemm_128x64_tn",
		"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
		"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
		"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEviT0_T1_",
		"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
		"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<float>(float)",
		/* What it takes is named so, but not the kernel. */
		"_Z4copyP11ncclDevComm",
		"void copy<ncclDevComm>(ncclDevComm*)",
		"_ZN3fooI11ncclDevCommE3barEv",
		"my_ncclDevKernel",
		"_Z6myncclv",
		"NCCL",
	};

	(void)state;
	assert_int_equal(nt_report_kind_of(NULL), NT_GPU_RECORD_KERNEL);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (nt_report_kind_of(names[i]) != NT_GPU_RECORD_KERNEL)
			fail_msg("%s", names[i]);
	}
}

/* Of any bytes, each in memory that ends with it. */
static void any_name_is_read_to_its_end_at_most(void **state)
{
	static const char alphabet[] = "_ZNL0123456789nclvod :<(adeph\xff";
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		const size_t length = (size_t)(i % 24);
		char *name = malloc(length + 1);

		assert_non_null(name);
		for (size_t at = 0; at < length; at++) {
			seed = seed * 6364136223846793005U + 1442695040888963407U;
			name[at] = alphabet[(seed >> 33) % (sizeof(alphabet) - 1)];
		}
		if (length > 3 && i % 3)
			memcpy(name, i % 3 == 1 ? "_ZN" : "_Z1", 3);
		name[length] = '\0';
		(void)nt_report_kind_of(name);
		free(name);
	}
}

static void the_operation_of_nccl_is_in_the_name(void **state)
{
	static const struct {
		const char *name;
		enum nt_gpu_record_op op;
	} known[] = {
		{"_Z31ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
		 NT_GPU_RECORD_OP_ALL_REDUCE},
		{"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		 NT_GPU_RECORD_OP_REDUCE_SCATTER},
		{"ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		 NT_GPU_RECORD_OP_REDUCE},
		{"_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
		 NT_GPU_RECORD_OP_SEND_RECV},
		{"ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
		 NT_GPU_RECORD_OP_ALL_GATHER},
		{"ncclKernel_Broadcast_RING_LL_Sum_int8_t", NT_GPU_RECORD_OP_BROADCAST},
		{"ncclSymkDevKernel_AllGather_ST(ncclSymkDevWorkArgs4K)",
		 NT_GPU_RECORD_OP_ALL_GATHER},
		{"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
		 NT_GPU_RECORD_OP_UNKNOWN},
		{"my_Kernel_AllReduce_Sum", NT_GPU_RECORD_OP_UNKNOWN},
		{"", NT_GPU_RECORD_OP_UNKNOWN},
		{NULL, NT_GPU_RECORD_OP_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (nt_report_op_of(known[i].name) != known[i].op)
			fail_msg("'%s' is another operation", known[i].name);
}

/* ---- records ---- */

static void each_kind_of_record_is_translated(void **state)
{
	static struct buffer buffer;

	(void)state;
	forget();
	buffer.used = 0;
	add_kernel(&buffer, 1, "ampere_sgemm_128x64_tn");
	add_kernel(&buffer, 2, "ncclDevKernel_SendRecv");
	add_copy(&buffer, 3);
	add_call(&buffer, 4, NT_CUPTI_KIND_RUNTIME, NT_CUPTI_RUNTIME_LAUNCH);
	(void)add(&buffer, KIND_OTHER);
	add_call(&buffer, 5, NT_CUPTI_KIND_DRIVER, NT_CUPTI_DRIVER_LAUNCH_EX);
	add_call(&buffer, 6, NT_CUPTI_KIND_DRIVER, NT_CUPTI_RUNTIME_LAUNCH); /* no launch there */
	add_call(&buffer, 7, NT_CUPTI_KIND_RUNTIME, NT_CUPTI_DRIVER_LAUNCH);
	report(&buffer);
	assert_int_equal(records, 5);
	assert_memory_equal(
		&got[0],
		(&(struct nt_gpu_record){1001, 2001, 101, 8, NT_GPU_RECORD_KERNEL, 3, 0, 9}),
		sizeof(got[0]));
	assert_int_equal(got[1].kind, NT_GPU_RECORD_COMMUNICATION);
	assert_int_equal(got[1].op, NT_GPU_RECORD_OP_SEND_RECV);
	assert_memory_equal(
		&got[2], (&(struct nt_gpu_record){1003, 2003, 103, 5, NT_GPU_RECORD_COPY, 2, 0, 0}),
		sizeof(got[0]));
	assert_memory_equal(
		&got[3],
		(&(struct nt_gpu_record){1004, 2004, 104, 74, NT_GPU_RECORD_LAUNCH, 0, 0, 0}),
		sizeof(got[0]));
	assert_int_equal(got[4].correlation, 105);
	assert_int_equal(batches, 1);
	nt_report_state(NT_GPU_RECORD_GIVEN_UP, 77, 39);
	assert_memory_equal(
		&got[5], (&(struct nt_gpu_record){77, 77, 0, 39, NT_GPU_RECORD_GIVEN_UP, 0, 0, 0}),
		sizeof(got[0]));
	assert_int_equal(gaps, 0);
}

static void a_batch_holds_64_records_and_ends_with_its_buffer(void **state)
{
	static const uint32_t counts[] = {1, 63, 64, 65, 128, 200};
	static struct buffer buffer;

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const uint32_t count = counts[i];

		forget();
		buffer.used = 0;
		for (uint32_t call = 0; call < count; call++)
			add_call(&buffer, call, NT_CUPTI_KIND_RUNTIME, NT_CUPTI_RUNTIME_LAUNCH);
		report(&buffer);
		assert_int_equal(records, count);
		assert_int_equal(batches, (count + NT_GPU_BATCH - 1) / NT_GPU_BATCH);
		for (uint32_t at = 0; at < count / NT_GPU_BATCH; at++)
			assert_int_equal(batch_sizes[at], NT_GPU_BATCH);
		for (uint32_t at = 0; at < count; at++)
			assert_int_equal(got[at].correlation, 100 + at);
		assert_int_equal(next_number - first_number, count);
		assert_int_equal(gaps, 0);
	}
	forget();
	buffer.used = 0;
	report(&buffer);
	(void)add(&buffer, KIND_OTHER);
	report(&buffer);
	assert_int_equal(batches, 0);
}

static void lost_records_leave_a_gap_in_the_numbers(void **state)
{
	static struct buffer buffer;

	(void)state;
	forget();
	buffer.used = 0;
	add_copy(&buffer, 0);
	add_copy(&buffer, 1);
	report(&buffer);
	nt_report_lost(1000);
	assert_int_equal(batches, 1);
	report(&buffer);
	assert_int_equal(gaps, 1000);
	nt_report_lost(1);
	nt_report_lost(UINT32_MAX);
	nt_report_state(NT_GPU_RECORD_OPEN, 1, 0);
	assert_int_equal(gaps, 1000 + 1 + (uint64_t)UINT32_MAX);
	assert_int_equal(records, 5);
}

/* ---- buffers that are cut off, and random ones ---- */

/* The bytes are copied to memory that ends with them. */
static void report_cut(const struct buffer *buffer, size_t length)
{
	uint8_t *cut = malloc(length ? length : 1);

	assert_non_null(cut);
	memcpy(cut, buffer->bytes, length);
	nt_report_buffer(&calls, cut, length);
	free(cut);
}

static void no_byte_is_read_behind_a_buffer_that_is_cut_off(void **state)
{
	static const size_t sizes[] = {200, 208, 216, 248};
	static struct buffer buffer;

	(void)state;
	for (int i = 0; i < 8; i++) {
		uint32_t all;

		kernel_bytes = sizes[i % 4];
		is_lax = i >= 4;
		buffer.used = 0;
		while (buffer.used + 1000 < 8192) {
			add_kernel(&buffer, 1, "_Z22ncclDevKernel_SendRecv");
			add_call(&buffer, 2, NT_CUPTI_KIND_DRIVER, NT_CUPTI_DRIVER_LAUNCH);
			add_copy(&buffer, 3);
			(void)add(&buffer, KIND_OTHER);
			add_call(&buffer, 4, NT_CUPTI_KIND_RUNTIME, NT_CUPTI_RUNTIME_LAUNCH);
		}
		forget();
		report(&buffer);
		all = records;
		assert_in_range(all, 64, MOST);
		for (size_t length = 0; length <= buffer.used; length++) {
			forget();
			report_cut(&buffer, length);
			assert_in_range(records, 0, all);
		}
		assert_int_equal(records, all);
	}
	kernel_bytes = 208;
	is_lax = 0;
}

static void what_is_cut_off_counts_as_lost(void **state)
{
	static struct buffer buffer;

	(void)state;
	for (int i = 0; i < 4; i++) {
		is_lax = i % 2;
		forget();
		buffer.used = 0;
		add_copy(&buffer, 0);
		report(&buffer);
		add_kernel(&buffer, 1, NULL);
		report_cut(&buffer, buffer.used - (i < 2 ? 100 : 208 - 3));
		report(&buffer);
		assert_int_equal(records, 1 + 1 + 2);
		assert_int_equal(gaps, 1);
	}
	is_lax = 0;
}

static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void random_buffers_do_no_harm(void **state)
{
	static const uint32_t kinds[] = {NT_CUPTI_KIND_CONCURRENT_KERNEL, NT_CUPTI_KIND_MEMCPY,
					 NT_CUPTI_KIND_RUNTIME, NT_CUPTI_KIND_DRIVER, KIND_OTHER};
	uint64_t *words = malloc(RANDOM_BYTES);
	uint8_t *bytes = (uint8_t *)words;
	uint64_t seed = 88172645463325252U;

	(void)state;
	assert_non_null(words);
	drops_names = 1;
	for (int i = 0; i < RANDOM_BUFFERS; i++) {
		const size_t length = draw(&seed) % RANDOM_BYTES;
		uint8_t *end = bytes + RANDOM_BYTES, *begin = end - length / 8 * 8;

		forget();
		words[draw(&seed) % (RANDOM_BYTES / 8)] = draw(&seed);
		/* Most begin with records; what follows them is what was there. */
		for (uint8_t *at = begin; end - at >= 8 && draw(&seed) % 8;) {
			const uint32_t kind = kinds[draw(&seed) % 5];

			memcpy(at, &kind, sizeof(kind));
			if (end - at <= (ptrdiff_t)bytes_of(kind))
				break;
			at += bytes_of(kind);
		}
		is_lax = i % 2;
		nt_report_buffer(&calls, begin, (size_t)(end - begin));
		assert_in_range(records, 0, RANDOM_BYTES / sizeof(struct nt_cupti_call));
	}
	drops_names = is_lax = 0;
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_that_wait_for_others_are_known_by_their_names),
		cmocka_unit_test(other_kernels_are_own_work),
		cmocka_unit_test(any_name_is_read_to_its_end_at_most),
		cmocka_unit_test(each_kind_of_record_is_translated),
		cmocka_unit_test(a_batch_holds_64_records_and_ends_with_its_buffer),
		cmocka_unit_test(lost_records_leave_a_gap_in_the_numbers),
		cmocka_unit_test(no_byte_is_read_behind_a_buffer_that_is_cut_off),
		cmocka_unit_test(what_is_cut_off_counts_as_lost),
		cmocka_unit_test(random_buffers_do_no_harm),
		cmocka_unit_test(the_operation_of_nccl_is_in_the_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
