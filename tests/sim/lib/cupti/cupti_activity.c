/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of the activity API. */
#include "tests/sim/lib/cupti/cupti_buffer.h"
#include "tests/sim/lib/cupti/cupti_record.h"
#include "tests/sim/lib/cupti/cupti_state.h"

static bool registered;

unsigned int cuptiActivityRegisterTimestampCallback(sim_cupti_timestamp timestamp)
{
	if (!timestamp)
		return SIM_CUPTI_INVALID_PARAMETER;
	if (!sim_cupti_load())
		return SIM_CUPTI_NOT_INITIALIZED;
	sim_cupti_set_clock(timestamp);
	return SIM_CUPTI_SUCCESS;
}

/* There is one pair of callbacks: the last one gets all buffers from then on. */
unsigned int cuptiActivityRegisterCallbacks(sim_cupti_request request, sim_cupti_complete complete)
{
	if (!request || !complete)
		return SIM_CUPTI_INVALID_PARAMETER;
	if (!sim_cupti_load())
		return SIM_CUPTI_NOT_INITIALIZED;
	registered = true;
	sim_cupti_set_callbacks(request, complete);
	return SIM_CUPTI_SUCCESS;
}

static unsigned int enable(unsigned int kind, bool on)
{
	if (kind == SIM_CUPTI_INVALID || kind >= SIM_CUPTI_KIND_END)
		return SIM_CUPTI_INVALID_KIND;
	if (!sim_cupti_load())
		return SIM_CUPTI_NOT_INITIALIZED;
	sim_cupti_enable((enum sim_cupti_kind)kind, on);
	return SIM_CUPTI_SUCCESS;
}

unsigned int cuptiActivityEnable(unsigned int kind)
{
	return enable(kind, true);
}

unsigned int cuptiActivityDisable(unsigned int kind)
{
	return enable(kind, false);
}

static unsigned int enable_call(bool is_driver, uint32_t cbid, uint8_t on)
{
	if (cbid == 0 || cbid >= SIM_CUPTI_CALLS)
		return SIM_CUPTI_INVALID_PARAMETER;
	if (!sim_cupti_load())
		return SIM_CUPTI_NOT_INITIALIZED;
	sim_cupti_enable_call(is_driver, cbid, on != 0);
	return SIM_CUPTI_SUCCESS;
}

unsigned int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t on)
{
	return enable_call(false, cbid, on);
}

unsigned int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t on)
{
	return enable_call(true, cbid, on);
}

/*
 * The documentation says that an unforced flush keeps buffers with incomplete records; but not
 * when an operation's record gets its place in a buffer. SIM_CUPTI_STRICT=1: when it is launched.
 */
unsigned int cuptiActivityFlushAll(uint32_t flag)
{
	bool keeps = false;

	if (!registered)
		return SIM_CUPTI_INVALID_OPERATION;
	sim_cupti_record_ended();
	if (sim_cupti_setting("SIM_CUPTI_STRICT", 0) && !(flag & SIM_CUPTI_FLUSH_FORCED))
		keeps = sim_cupti_keeps_any() || sim_cupti_cuda.unfinished() > 0;
	sim_cupti_flush(keeps);
	return SIM_CUPTI_SUCCESS;
}

unsigned int cuptiActivityFlushPeriod(uint32_t ms)
{
	if (!sim_cupti_load())
		return SIM_CUPTI_NOT_INITIALIZED;
	sim_cupti_set_period(ms);
	return SIM_CUPTI_SUCCESS;
}

static size_t bytes_of(uint32_t kind)
{
	switch (kind) {
	case SIM_CUPTI_KERNEL:
	case SIM_CUPTI_CONCURRENT_KERNEL:
		return sim_cupti_kernel_bytes();
	case SIM_CUPTI_MEMCPY:
		return sizeof(struct sim_cupti_memcpy);
	case SIM_CUPTI_MEMSET:
		return sizeof(struct sim_cupti_memset);
	case SIM_CUPTI_DRIVER:
	case SIM_CUPTI_RUNTIME:
		return sizeof(struct sim_cupti_api);
	case SIM_CUPTI_GRAPH_TRACE:
		return sizeof(struct sim_cupti_graph_trace);
	default:
		return 0;
	}
}

unsigned int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
					struct sim_cupti_record **record)
{
	const uint8_t *at = buffer;
	size_t bytes;

	if (!buffer || !record)
		return SIM_CUPTI_INVALID_PARAMETER;
	if (*record) {
		bytes = bytes_of((*record)->kind);
		if (bytes == 0)
			return SIM_CUPTI_INVALID_KIND;
		at = (const uint8_t *)*record + bytes;
	}
	if (at >= buffer + valid)
		return SIM_CUPTI_MAX_LIMIT_REACHED;
	bytes = bytes_of(((const struct sim_cupti_record *)(const void *)at)->kind);
	if (bytes == 0 || bytes > (size_t)(buffer + valid - at))
		return SIM_CUPTI_INVALID_KIND;
	*record = (struct sim_cupti_record *)(uintptr_t)at;
	return SIM_CUPTI_SUCCESS;
}

unsigned int cuptiActivityGetNumDroppedRecords(struct CUctx_st *context, uint32_t stream,
					       size_t *dropped)
{
	(void)context;
	(void)stream;
	if (!dropped)
		return SIM_CUPTI_INVALID_PARAMETER;
	*dropped = sim_cupti_take_dropped();
	return SIM_CUPTI_SUCCESS;
}
