/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records of the ring. A call: what is accepted is a whole event, and no byte beyond it is read. Batches
 * of GPU records, one behind the other, as a hostile process may make them: what is accepted lies in its
 * event, and intervals and figures are not more than what came. Multiplications beside them.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/gemm_spans.h"
#include "agent/probes/event.h"
#include "agent/steps/gpu_records.h"
#include "tests/fuzz/lib/cost.h"

enum {
	PID = 7,
};

struct sums {
	uint64_t records, kernels, intervals, last_number[2];
	struct nt_gemm_spans *spans;
	struct nt_gemm_time time;
};

static void read_call(const uint8_t *data, size_t size)
{
	struct nt_event_call call;
	const uint8_t *id = NULL;
	size_t sent = size < sizeof(call) ? size : sizeof(call);

	if (nt_event_read(data, size, &call, &id) < 0)
		return;
	assert(call.h.size == size);
	assert(memcmp(&call, data, sent) == 0);
	for (size_t i = sent; i < sizeof(call); i++)
		assert(((const uint8_t *)&call)[i] == 0);
	assert((id != NULL) == (call.h.type == NT_EVENT_INIT));
	assert(!id || id + NT_ID_BYTES == data + size);
}

static void take(void *data, const struct nt_gpu_interval *interval)
{
	struct sums *sums = data;

	assert(interval->pid == PID && interval->kernels == 1);
	assert(interval->number > sums->last_number[interval->communicates]);
	assert(interval->start_ns <= interval->end_ns);
	sums->last_number[interval->communicates] = interval->number;
	sums->intervals++;
	(void)nt_gemm_spans_kernel(sums->spans, interval->thread, interval->entry_ns, 1,
				   &sums->time);
	assert(sums->time.inside_ns <= sums->time.own_ns && sums->time.own_ns <= sums->intervals);
}

static void read_query(const uint8_t *data, size_t size)
{
	struct nt_event_query query;

	if (nt_event_read_query(data, size, &query) == 0)
		assert(size == sizeof(query) && memcmp(&query, data, size) == 0);
}

static void read_gemm(const uint8_t *data, size_t size, struct nt_gemm_spans *spans)
{
	struct nt_event_gemm gemm;

	if (nt_event_read_gemm(data, size, &gemm) < 0)
		return;
	assert(size == sizeof(gemm) && memcmp(&gemm, data, size) == 0);
	nt_gemm_spans_add(spans, &gemm);
}

static void read_capture(const uint8_t *data, size_t size)
{
	struct nt_event_capture capture;

	if (nt_event_read_capture(data, size, &capture) == 0)
		assert(size == sizeof(capture) && memcmp(&capture, data, size) == 0);
}

static void read_detail(const uint8_t *data, size_t size)
{
	struct nt_event_detail detail;

	if (nt_event_read_detail(data, size, &detail) < 0)
		return;
	assert(size == sizeof(detail) && memcmp(&detail, data, size) == 0);
	assert(detail.class < NT_DETAIL_CLASSES);
	assert(!(detail.h.flags & NT_CALL_RETURNED) || detail.ret_ns >= detail.h.entry_ns);
}

static void read_verbs(const uint8_t *data, size_t size)
{
	struct nt_event_verbs verbs;

	if (nt_event_read_verbs(data, size, &verbs) < 0)
		return;
	assert(size == sizeof(verbs) && memcmp(&verbs, data, size) == 0);
	assert(verbs.verb < NT_VERB_END && strlen(verbs.device) < sizeof(verbs.device));
}

/* In memory that ends with it. */
static void read_batch(const uint8_t *data, size_t size, struct nt_gpu_records *records,
		       struct sums *sums)
{
	uint8_t *event = malloc(size ? size : 1);
	struct nt_event_gpu gpu;

	if (!event)
		return;
	memcpy(event, data, size);
	read_query(event, size);
	read_verbs(event, size);
	read_gemm(event, size, sums->spans);
	read_capture(event, size);
	read_detail(event, size);
	if (nt_event_read_gpu(event, size, &gpu) == 0) {
		assert(gpu.records >= 1 && gpu.records <= NT_GPU_BATCH);
		assert(gpu.h.size == size && NT_GPU_BYTES(gpu.records) <= size);
		assert(memcmp(&gpu, data, NT_GPU_BYTES(gpu.records)) == 0);
		for (uint32_t i = 0; i < gpu.records; i++)
			sums->kernels += gpu.record[i].kind == NT_GPU_RECORD_KERNEL ||
					 gpu.record[i].kind == NT_GPU_RECORD_COMMUNICATION;
		sums->records += gpu.records;
		(void)nt_gemm_spans_batch(sums->spans, gpu.h.entry_ns, gpu.spans_lost);
		nt_gpu_records_add(records, &gpu, take, sums);
	}
	free(event);
}

static void read_batches(const uint8_t *data, size_t size, struct nt_gpu_records *records)
{
	const struct nt_gpu_records_stats *stats = nt_gpu_records_stats(records);
	struct nt_event_header h;
	struct sums sums = {0};

	if (nt_gemm_spans_new(&sums.spans) < 0)
		return;
	while (size >= sizeof(h)) {
		memcpy(&h, data, sizeof(h));
		if (h.size < sizeof(h) || h.size > size)
			break;
		read_batch(data, h.size, records, &sums);
		data += h.size;
		size -= h.size;
	}
	read_batch(data, size, records, &sums);
	assert(stats->records == sums.records && stats->malformed <= sums.records);
	assert(sums.intervals + stats->unmatched <= sums.kernels);
	nt_gemm_spans_free(sums.spans);
}

static int run(const uint8_t *data, size_t size)
{
	struct nt_gpu_records *records = NULL;

	read_call(data, size);
	if (nt_gpu_records_new(PID, false, &records) < 0)
		return 0;
	read_batches(data, size, records);
	nt_gpu_records_free(records);
	return 0;
}

/* Each kernel searches the multiplications of its thread; a thread that multiplies has a table of them. */
FUZZ_TARGET(run, .peak = {2 << 20, 4}, .steps = {1000, 16})
