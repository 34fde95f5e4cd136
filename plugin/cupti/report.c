/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/cupti/report.h"

#include <pthread.h>
#include <string.h>

#include "plugin/mark.h"

NT_MARK_SEMAPHORE(gpu_records);

/* Buffers come from CUPTI's thread and from ours. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nt_gpu_record batch[NT_GPU_BATCH];
static uint32_t batched;
static uint64_t number; /* of the last record, or lost one */

int nt_report_is_wanted(void)
{
	return NT_MARK_IS_TRACED(gpu_records);
}

static void hand_over(void)
{
	if (batched)
		NT_MARK(gpu_records, (uintptr_t)batch, batched, number - batched + 1);
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

/*
 * Kernels that wait for other ranks, by how their names begin. Mangled names begin with the length
 * of the name, or of its namespaces.
 */
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

enum nt_gpu_record_kind nt_report_kind_of(const char *name)
{
	if (!name)
		return NT_GPU_RECORD_KERNEL;
	if (strncmp(name, "void ", 5) == 0)
		name += 5;
	if (name[0] == '_' && name[1] == 'Z') {
		name += 2;
		name += *name == 'N';
		name += strspn(name, "0123456789");
	}
	for (size_t i = 0; i < sizeof(communicating) / sizeof(communicating[0]); i++) {
		if (strncmp(name, communicating[i], strlen(communicating[i])) == 0)
			return NT_GPU_RECORD_COMMUNICATION;
	}
	return NT_GPU_RECORD_KERNEL;
}

static void add_kernel(const struct nt_cupti_kernel *kernel)
{
	add(&(struct nt_gpu_record){
		.start_ns = kernel->start,
		.end_ns = kernel->end,
		.correlation = kernel->correlation,
		.stream = kernel->stream,
		.kind = (uint16_t)nt_report_kind_of(kernel->name),
		.device = (uint16_t)kernel->device,
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
		.device = (uint16_t)copy->device,
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

void nt_report_buffer(const struct nt_cupti_calls *calls, uint8_t *buffer, size_t valid_size)
{
	void *record = NULL;

	(void)pthread_mutex_lock(&lock);
	while (calls->next_record(buffer, valid_size, &record) == NT_CUPTI_SUCCESS && record) {
		switch (*(const uint32_t *)record) {
		case NT_CUPTI_KIND_CONCURRENT_KERNEL:
			add_kernel(record);
			break;
		case NT_CUPTI_KIND_MEMCPY:
			add_copy(record);
			break;
		case NT_CUPTI_KIND_RUNTIME:
		case NT_CUPTI_KIND_DRIVER:
			add_call(record);
			break;
		default:
			break;
		}
	}
	hand_over();
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
