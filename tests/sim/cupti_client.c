/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cupti_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/job.h"

struct sim_client sim_client;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_t starter;

static uint64_t now(void)
{
	return sim_now_ns() + SIM_CLIENT_CLOCK_NS;
}

static void request(uint8_t **buffer, size_t *size, size_t *most_records)
{
	*most_records = 0;
	*size = SIM_CLIENT_BUFFER_BYTES;
	*buffer = __atomic_load_n(&sim_client.declines, __ATOMIC_SEQ_CST)
			  ? NULL
			  : aligned_alloc(8, SIM_CLIENT_BUFFER_BYTES);
}

static void keep_kernel(const struct sim_cupti_record *record)
{
	struct sim_client_kernel *kernel = &sim_client.kernel[sim_client.kernels];

	if (sim_client.kernels == SIM_CLIENT_RECORDS) {
		sim_client.failed = true;
		return;
	}
	memcpy(&kernel->record, record, SIM_CUPTI_KERNEL_BYTES_11);
	(void)snprintf(kernel->name, sizeof(kernel->name), "%s", kernel->record.name);
	sim_client.kernels++;
}

static void keep(const struct sim_cupti_record *record)
{
	switch (record->kind) {
	case SIM_CUPTI_KERNEL:
	case SIM_CUPTI_CONCURRENT_KERNEL:
		keep_kernel(record);
		break;
	case SIM_CUPTI_RUNTIME:
	case SIM_CUPTI_DRIVER:
		if (sim_client.apis == SIM_CLIENT_RECORDS)
			sim_client.failed = true;
		else
			memcpy(&sim_client.api[sim_client.apis++], record,
			       sizeof(sim_client.api[0]));
		break;
	case SIM_CUPTI_MEMCPY:
		memcpy(&sim_client.copy, record, sizeof(sim_client.copy));
		sim_client.copies++;
		break;
	case SIM_CUPTI_MEMSET:
		memcpy(&sim_client.set, record, sizeof(sim_client.set));
		sim_client.sets++;
		break;
	case SIM_CUPTI_GRAPH_TRACE:
		memcpy(&sim_client.graph, record, sizeof(sim_client.graph));
		sim_client.graphs++;
		break;
	default:
		sim_client.others++;
		break;
	}
}

static void complete(struct CUctx_st *context, uint32_t stream, uint8_t *buffer, size_t size,
		     size_t valid)
{
	struct sim_cupti_record *record = NULL, *before = NULL;
	unsigned int r;

	(void)pthread_mutex_lock(&mutex);
	sim_client.buffers++;
	sim_client.own_buffers += pthread_equal(pthread_self(), starter) != 0;
	if (context || stream || size != SIM_CLIENT_BUFFER_BYTES || valid > size)
		sim_client.failed = true;
	while ((r = cuptiActivityGetNextRecord(buffer, valid, &record)) == SIM_CUPTI_SUCCESS) {
		keep(record);
		if (before && before->kind == SIM_CUPTI_CONCURRENT_KERNEL)
			sim_client.kernel_bytes = (size_t)((char *)record - (char *)before);
		before = record;
	}
	if (r != SIM_CUPTI_MAX_LIMIT_REACHED)
		sim_client.failed = true;
	(void)pthread_mutex_unlock(&mutex);
	free(buffer);
}

void sim_client_start(void)
{
	starter = pthread_self();
	if (cuptiActivityRegisterTimestampCallback(now) != SIM_CUPTI_SUCCESS ||
	    cuptiActivityRegisterCallbacks(request, complete) != SIM_CUPTI_SUCCESS)
		sim_client.failed = true;
}

void sim_client_clear(void)
{
	size_t dropped;

	(void)cuptiActivityFlushAll(SIM_CUPTI_FLUSH_FORCED);
	(void)cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
	(void)pthread_mutex_lock(&mutex);
	memset(&sim_client, 0, sizeof(sim_client));
	(void)pthread_mutex_unlock(&mutex);
}

bool sim_client_flush(unsigned int flag)
{
	return cuptiActivityFlushAll(flag) == SIM_CUPTI_SUCCESS && !sim_client.failed;
}

const struct sim_cupti_api *sim_client_call(uint32_t correlation)
{
	const struct sim_cupti_api *found = NULL;

	for (size_t i = 0; i < sim_client.apis; i++) {
		if (sim_client.api[i].correlation != correlation)
			continue;
		if (found)
			return NULL;
		found = &sim_client.api[i];
	}
	return found;
}
