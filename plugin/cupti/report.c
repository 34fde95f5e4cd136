/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cupti/report.h"

#include <pthread.h>
#include <string.h>

#include "plugin/batch.h"

/* Buffers come from CUPTI's thread and from ours. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nt_gpu_record batch[NT_GPU_BATCH];
static uint32_t batched;
static uint64_t number; /* of the last record, or lost one */

static void hand_over(void)
{
	if (batched)
		nt_batch_hand_over(batch, batched, number - batched + 1);
	batched = 0;
}

static void add(const struct nt_gpu_record *record)
{
	batch[batched++] = *record;
	number++;
	if (batched == NT_GPU_BATCH)
		hand_over();
}

/* ---- records -------------------------------------------------------------------------------- */

/* Kernels that wait for other ranks, by how their name, or one of its namespaces, begins. */
static const char *const communicating[] = {
	"nccl",
	"nvshmem",
	"deep_ep",
	"cross_device_reduce",
	"one_shot_all_reduce",
	"two_shot_all_reduce",
	"multimem_",
	"allreduce_fusion",
};

static int is_communicating(const char *part)
{
	for (size_t i = 0; i < sizeof(communicating) / sizeof(communicating[0]); i++) {
		const char *begin = communicating[i];

		if (*part == *begin && strncmp(part, begin, strlen(begin)) == 0)
			return 1;
	}
	return 0;
}

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Behind _Z: [N] [L]4name or N2in[L]4name... */
static int has_mangled(const char *name)
{
	const int is_nested = *name == 'N';

	name += is_nested;
	for (;;) {
		size_t length = 0;

		name += *name == 'L';
		if (!is_digit(*name))
			return 0;
		for (; is_digit(*name) && length < 10000; name++)
			length = 10 * length + (size_t)(*name - '0');
		if (is_communicating(name))
			return 1;
		if (!is_nested || strnlen(name, length) < length)
			return 0;
		name += length;
	}
}

/* [void] in::(anonymous namespace)::name<...>(...) */
static int has_readable(const char *name)
{
	static const char anonymous[] = "(anonymous namespace)";

	if (strncmp(name, "void ", 5) == 0)
		name += 5;
	for (;;) {
		if (is_communicating(name))
			return 1;
		if (strncmp(name, anonymous, sizeof(anonymous) - 1) == 0)
			name += sizeof(anonymous) - 1;
		else
			name += strcspn(name, "<(:");
		if (strncmp(name, "::", 2) != 0)
			return 0;
		name += 2;
	}
}

enum nt_gpu_record_kind nt_report_kind_of(const char *name)
{
	if (!name)
		return NT_GPU_RECORD_KERNEL;
	if (name[0] == '_' && name[1] == 'Z' ? has_mangled(name + 2) : has_readable(name))
		return NT_GPU_RECORD_COMMUNICATION;
	return NT_GPU_RECORD_KERNEL;
}

/* ncclDevKernel_AllReduce_Sum_f32_RING_LL, ncclKernel_..., ncclSymkDevKernel_...; mangled or not. */
enum nt_gpu_record_op nt_report_op_of(const char *name)
{
	static const char *const ops[] = {
		[NT_GPU_RECORD_OP_ALL_REDUCE] = "AllReduce",
		[NT_GPU_RECORD_OP_ALL_GATHER] = "AllGather",
		[NT_GPU_RECORD_OP_REDUCE_SCATTER] = "ReduceScatter",
		[NT_GPU_RECORD_OP_BROADCAST] = "Broadcast",
		[NT_GPU_RECORD_OP_REDUCE] = "Reduce",
		[NT_GPU_RECORD_OP_SEND_RECV] = "SendRecv",
	};
	const char *at = name ? strstr(name, "nccl") : NULL;

	at = at ? strstr(at, "Kernel_") : NULL;
	for (size_t op = 1; at && op < sizeof(ops) / sizeof(ops[0]); op++) {
		const char *text = at + strlen("Kernel_");
		const size_t length = strlen(ops[op]);

		if (strncmp(text, ops[op], length) == 0 && !is_letter(text[length]))
			return (enum nt_gpu_record_op)op;
	}
	return NT_GPU_RECORD_OP_UNKNOWN;
}

static void add_kernel(const struct nt_cupti_kernel *kernel)
{
	const enum nt_gpu_record_kind kind = nt_report_kind_of(kernel->name);

	add(&(struct nt_gpu_record){
		.start_ns = kernel->start,
		.end_ns = kernel->end,
		.correlation = kernel->correlation,
		.stream = kernel->stream,
		.kind = (uint16_t)kind,
		.op = kind == NT_GPU_RECORD_COMMUNICATION ? (uint8_t)nt_report_op_of(kernel->name)
							  : 0,
		.device = (uint8_t)kernel->device,
		.graph = kernel->graph,
	});
}

static void add_copy(const struct nt_cupti_copy *copy)
{
	add(&(struct nt_gpu_record){
		.start_ns = copy->start,
		.end_ns = copy->end,
		.correlation = copy->correlation,
		.stream = copy->stream,
		.kind = NT_GPU_RECORD_COPY,
		.device = (uint8_t)copy->device,
		.graph = copy->graph,
	});
}

static void add_call(const struct nt_cupti_call *call)
{
	if (!nt_cupti_calls_is_launch(call->kind, call->cbid))
		return;
	add(&(struct nt_gpu_record){
		.start_ns = call->start,
		.end_ns = call->end,
		.correlation = call->correlation,
		.stream = call->thread,
		.kind = NT_GPU_RECORD_LAUNCH,
	});
}

/* 0: it does not end within the bytes that are left. */
static int add_record(const void *record, size_t left)
{
	if (left < sizeof(uint32_t))
		return 0;
	switch (*(const uint32_t *)record) {
	case NT_CUPTI_KIND_CONCURRENT_KERNEL:
		if (left < sizeof(struct nt_cupti_kernel))
			return 0;
		add_kernel(record);
		return 1;
	case NT_CUPTI_KIND_MEMCPY:
		if (left < sizeof(struct nt_cupti_copy))
			return 0;
		add_copy(record);
		return 1;
	case NT_CUPTI_KIND_RUNTIME:
	case NT_CUPTI_KIND_DRIVER:
		if (left < sizeof(struct nt_cupti_call))
			return 0;
		add_call(record);
		return 1;
	default:
		return 1;
	}
}

void nt_report_buffer(const struct nt_cupti_calls *calls, uint8_t *buffer, size_t valid_size)
{
	void *record = NULL;
	int is_whole = 1, r;

	(void)pthread_mutex_lock(&lock);
	while (is_whole && (r = calls->next_record(buffer, valid_size, &record)) == 0 && record) {
		const size_t at = (uintptr_t)record - (uintptr_t)buffer;

		is_whole = at < valid_size && add_record(record, valid_size - at);
	}
	hand_over();
	/* So many as cannot be read: one at least. */
	if (!is_whole || r != NT_CUPTI_MAX_LIMIT_REACHED)
		number++;
	(void)pthread_mutex_unlock(&lock);
}

void nt_report_state(enum nt_gpu_record_kind kind, uint64_t time_ns, uint32_t code)
{
	(void)pthread_mutex_lock(&lock);
	add(&(struct nt_gpu_record){
		.start_ns = time_ns, .end_ns = time_ns, .stream = code, .kind = (uint16_t)kind});
	hand_over();
	(void)pthread_mutex_unlock(&lock);
}

void nt_report_lost(uint64_t records)
{
	(void)pthread_mutex_lock(&lock);
	hand_over();
	number += records;
	(void)pthread_mutex_unlock(&lock);
}
