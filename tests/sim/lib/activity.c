/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/activity.h"

const struct sim_observer *cuSimObserver;

static uint32_t correlations; /* the last one */
static __thread uint32_t runtime_call; /* of the runtime that comes next; 0: none */
static __thread uint32_t correlation;

void cuSimObserve(const struct sim_observer *observer)
{
	__atomic_store_n(&cuSimObserver, observer, __ATOMIC_RELEASE);
}

/* The outermost call of the runtime counts. */
void cuSimRuntimeCall(uint32_t cbid)
{
	if (sim_activity_observer() && !runtime_call)
		runtime_call = cbid;
}

void sim_api_observe(struct sim_api *api, uint32_t cbid)
{
	correlation = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
	api->call = (struct sim_api_call){.is_driver = runtime_call == 0,
					  .cbid = runtime_call ? runtime_call : cbid,
					  .correlation = correlation,
					  .begin_ns = sim_model_now()};
	runtime_call = 0;
}

void sim_api_report(struct sim_api *api, CUresult r)
{
	correlation = 0;
	api->call.result = r;
	api->call.end_ns = sim_model_now();
	api->observer->called(&api->call);
}

uint32_t sim_activity_correlation(void)
{
	return correlation;
}

static enum sim_place place_of(enum sim_memory kind)
{
	switch (kind) {
	case SIM_MEMORY_DEVICE:
		return SIM_PLACE_DEVICE;
	case SIM_MEMORY_HOST:
		return SIM_PLACE_PINNED;
	case SIM_MEMORY_MANAGED:
		return SIM_PLACE_MANAGED;
	default:
		return SIM_PLACE_PAGEABLE;
	}
}

void sim_activity_observe(const struct sim_stream *stream, const struct sim_op *op,
			  uint64_t start_ns, uint64_t end_ns)
{
	struct sim_activity activity = {.start_ns = start_ns,
					.end_ns = end_ns,
					.device = (uint32_t)stream->device,
					.stream = (uint32_t)stream->id,
					.correlation = op->correlation,
					.graph = op->graph,
					.node = (uint64_t)op->graph << 32 | op->node};
	const struct sim_observer *observer = sim_activity_observer();

	switch (op->kind) {
	case SIM_OP_KERNEL:
		activity.kind = SIM_ACTIVITY_KERNEL;
		activity.name = op->kernel.name;
		break;
	case SIM_OP_MODEL:
		activity.kind = SIM_ACTIVITY_KERNEL;
		activity.name = op->model.model->name(op->model.state);
		break;
	case SIM_OP_COPY:
		activity.kind = SIM_ACTIVITY_COPY;
		activity.bytes = op->copy.bytes;
		activity.from = place_of(op->copy.source);
		activity.to = place_of(op->copy.target);
		break;
	case SIM_OP_SET:
		activity.kind = SIM_ACTIVITY_SET;
		activity.bytes = op->set.count * op->set.width;
		activity.value = op->set.value;
		break;
	case SIM_OP_GRAPH:
		activity.kind = SIM_ACTIVITY_GRAPH;
		break;
	default:
		return;
	}
	if (observer)
		observer->operated(&activity);
}
