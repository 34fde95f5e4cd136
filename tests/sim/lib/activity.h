/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the driver reports to the observer of cuSimObserve(): calls, and operations whose end is
 * known. Without an observer all of it is one test of a pointer.
 */
#ifndef NT_SIM_ACTIVITY_H
#define NT_SIM_ACTIVITY_H

#include "tests/sim/lib/call_id.h"
#include "tests/sim/lib/model.h"

/* The driver's calls are compiled without optimisation. */
#define SIM_INLINE static inline __attribute__((always_inline))

SIM_INLINE const struct sim_observer *sim_activity_observer(void)
{
	return __atomic_load_n(&cuSimObserver, __ATOMIC_ACQUIRE);
}

/* One call of the driver, on the stack of its thread. Not under the device's lock. */
struct sim_api {
	const struct sim_observer *observer;
	struct sim_api_call call;
};

void sim_api_observe(struct sim_api *api, uint32_t cbid);
void sim_api_report(struct sim_api *api, CUresult r);

SIM_INLINE void sim_api_begin(struct sim_api *api, enum sim_driver_call cbid)
{
	api->observer = sim_activity_observer();
	if (api->observer)
		sim_api_observe(api, cbid);
}

SIM_INLINE CUresult sim_api_end(struct sim_api *api, CUresult r)
{
	if (api->observer)
		sim_api_report(api, r);
	return r;
}

/* Of the call that the thread is in; 0: none, or nobody observes it. */
uint32_t sim_activity_correlation(void);

/* The operation starts and ends then; the end may lie ahead. Under the device's lock. */
void sim_activity_observe(const struct sim_stream *stream, const struct sim_op *op,
			  uint64_t start_ns, uint64_t end_ns);

SIM_INLINE void sim_activity_report(const struct sim_stream *stream, const struct sim_op *op,
				    uint64_t start_ns, uint64_t end_ns)
{
	if (sim_activity_observer())
		sim_activity_observe(stream, op, start_ns, end_ns);
}

#endif
