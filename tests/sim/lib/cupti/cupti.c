/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions around the activity API: version, clock, numbers, subscribers, the end. */
#include "tests/sim/lib/cupti/cupti.h"

#include "tests/sim/lib/cupti/cupti_buffer.h"
#include "tests/sim/lib/cupti/cupti_record.h"
#include "tests/sim/lib/cupti/cupti_state.h"

struct CUpti_Subscriber_st {
	sim_cupti_callback callback;
	void *user;
};

static struct CUpti_Subscriber_st the_subscriber;
static bool has_subscriber;

unsigned int cuptiGetVersion(uint32_t *version)
{
	if (!version)
		return SIM_CUPTI_INVALID_PARAMETER;
	*version = (uint32_t)sim_cupti_setting("SIM_CUPTI_VERSION", SIM_CUPTI_VERSION);
	return SIM_CUPTI_SUCCESS;
}

unsigned int cuptiGetResultString(unsigned int result, const char **text)
{
	static const struct {
		unsigned int result;
		const char *text;
	} known[] = {
		{SIM_CUPTI_SUCCESS, "CUPTI_SUCCESS"},
		{SIM_CUPTI_INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER"},
		{SIM_CUPTI_INVALID_OPERATION, "CUPTI_ERROR_INVALID_OPERATION"},
		{SIM_CUPTI_MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
		{SIM_CUPTI_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED"},
		{SIM_CUPTI_INVALID_STREAM, "CUPTI_ERROR_INVALID_STREAM"},
		{SIM_CUPTI_INVALID_KIND, "CUPTI_ERROR_INVALID_KIND"},
		{SIM_CUPTI_MULTIPLE_SUBSCRIBERS, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
		{SIM_CUPTI_UNKNOWN, "CUPTI_ERROR_UNKNOWN"},
	};

	if (!text)
		return SIM_CUPTI_INVALID_PARAMETER;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i].result != result)
			continue;
		*text = known[i].text;
		return SIM_CUPTI_SUCCESS;
	}
	return SIM_CUPTI_INVALID_PARAMETER;
}

unsigned int cuptiGetTimestamp(uint64_t *timestamp)
{
	if (!timestamp)
		return SIM_CUPTI_INVALID_PARAMETER;
	if (!sim_cupti_load())
		return SIM_CUPTI_NOT_INITIALIZED;
	*timestamp = sim_cupti_time(sim_cupti_cuda.now());
	return SIM_CUPTI_SUCCESS;
}

unsigned int cuptiGetStreamIdEx(struct CUctx_st *context, struct CUstream_st *stream,
				uint8_t per_thread, uint32_t *id)
{
	void *handle = !stream && per_thread ? (void *)0x2 : (void *)stream;
	unsigned long long number = 0;

	(void)context;
	if (!id)
		return SIM_CUPTI_INVALID_PARAMETER;
	if (!sim_cupti_load())
		return SIM_CUPTI_NOT_INITIALIZED;
	if (sim_cupti_cuda.stream_id(handle, &number) != 0)
		return SIM_CUPTI_INVALID_STREAM;
	*id = (uint32_t)number;
	return SIM_CUPTI_SUCCESS;
}

unsigned int cuptiGetGraphExecId(struct CUgraphExec_st *exec, uint32_t *id)
{
	if (!exec || !id)
		return SIM_CUPTI_INVALID_PARAMETER;
	if (!sim_cupti_load())
		return SIM_CUPTI_NOT_INITIALIZED;
	*id = sim_cupti_cuda.graph_exec_id(exec);
	return SIM_CUPTI_SUCCESS;
}

unsigned int cuptiSetThreadIdType(unsigned int type)
{
	if (type > SIM_CUPTI_THREAD_SYSTEM)
		return SIM_CUPTI_INVALID_PARAMETER;
	sim_cupti_set_thread_type(type);
	return SIM_CUPTI_SUCCESS;
}

unsigned int cuptiGetThreadIdType(unsigned int *type)
{
	if (!type)
		return SIM_CUPTI_INVALID_PARAMETER;
	*type = sim_cupti_thread_type();
	return SIM_CUPTI_SUCCESS;
}

/* No callback is ever called. */
unsigned int cuptiSubscribe(struct CUpti_Subscriber_st **subscriber, sim_cupti_callback callback,
			    void *user)
{
	if (!subscriber)
		return SIM_CUPTI_INVALID_PARAMETER;
	if (__atomic_exchange_n(&has_subscriber, true, __ATOMIC_SEQ_CST))
		return SIM_CUPTI_MULTIPLE_SUBSCRIBERS;
	the_subscriber = (struct CUpti_Subscriber_st){.callback = callback, .user = user};
	*subscriber = &the_subscriber;
	return SIM_CUPTI_SUCCESS;
}

unsigned int cuptiUnsubscribe(struct CUpti_Subscriber_st *subscriber)
{
	if (subscriber != &the_subscriber)
		return SIM_CUPTI_INVALID_PARAMETER;
	__atomic_store_n(&has_subscriber, false, __ATOMIC_SEQ_CST);
	return SIM_CUPTI_SUCCESS;
}

/* Of all clients: nothing is recorded or given back any more, without a sign. */
unsigned int cuptiFinalize(void)
{
	if (!sim_cupti_load())
		return SIM_CUPTI_NOT_INITIALIZED;
	sim_cupti_disable_all();
	sim_cupti_forget();
	sim_cupti_forget_buffers();
	__atomic_store_n(&has_subscriber, false, __ATOMIC_SEQ_CST);
	return SIM_CUPTI_SUCCESS;
}
