/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/flight.h"

#include <stdlib.h>

#include "tests/sim/lib/nccl/plan.h"

enum {
	STAGGER_NS = 1500, /* a channel starts so long after the one before, and ends before it */
};

struct sim_flight *sim_flight_new(struct sim_plan *plan)
{
	struct sim_flight *flight =
		calloc(1, sizeof(*flight) + plan->works * SIM_CHANNELS * sizeof(uint64_t));

	if (!flight)
		return NULL;
	flight->refs = 1;
	flight->comm = sim_profiled_ref(plan->comm);
	flight->plan = sim_plan_ref(plan);
	return flight;
}

struct sim_flight *sim_flight_ref(struct sim_flight *flight)
{
	(void)__atomic_add_fetch(&flight->refs, 1, __ATOMIC_RELAXED);
	return flight;
}

void sim_flight_unref(struct sim_flight *flight)
{
	if (!flight || __atomic_sub_fetch(&flight->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	sim_plan_unref(flight->plan);
	sim_profiled_unref(flight->comm);
	free(flight);
}

static uint64_t *counter_of(struct sim_flight *flight, size_t work, unsigned int channel)
{
	return &flight->counter[work * SIM_CHANNELS + channel];
}

void sim_flight_number(struct sim_flight *flight)
{
	const struct sim_plan *plan = flight->plan;

	for (size_t i = 0; i < plan->works; i++)
		for (unsigned int k = 0; k < plan->work[i].channels; k++) {
			unsigned int channel = plan->work[i].first + k;

			*counter_of(flight, i, channel) = ++flight->comm->device[channel];
		}
}

/* All works of a kernel start and stop together. */
static void write_times(struct sim_flight *flight, uint64_t at_ns, bool is_stop)
{
	const struct sim_plan *plan = flight->plan;

	for (size_t i = 0; i < plan->works; i++) {
		const struct sim_work *work = &plan->work[i];

		for (unsigned int k = 0; work->is_observed && k < work->channels; k++) {
			unsigned int last = work->channels - 1;
			uint64_t when_ns = is_stop ? at_ns - (last - k) * STAGGER_NS / 2
						   : at_ns + k * STAGGER_NS;

			sim_profiled_write(flight->comm, when_ns, work->first + k,
					   *counter_of(flight, i, work->first + k), is_stop);
		}
	}
	sim_poller_wake(&flight->comm->progress);
	sim_poller_wake(&flight->comm->profiler);
}

void sim_flight_start(struct sim_flight *flight, uint64_t start_ns)
{
	(void)pthread_mutex_lock(&flight->comm->mutex);
	if (flight->start_ns == 0) {
		flight->start_ns = start_ns;
		write_times(flight, start_ns, false);
	}
	(void)pthread_mutex_unlock(&flight->comm->mutex);
}

void sim_flight_end(struct sim_flight *flight, uint64_t arrive_ns, uint64_t end_ns, double network)
{
	(void)pthread_mutex_lock(&flight->comm->mutex);
	flight->arrive_ns = arrive_ns;
	flight->end_ns = end_ns;
	flight->network = network;
	write_times(flight, end_ns, true);
	sim_poller_wake(&flight->comm->progress);
	(void)pthread_mutex_unlock(&flight->comm->mutex);
}
