/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/lib/nccl/profiled.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/lib/nccl/nccl_cuda.h"
#include "tests/sim/lib/nccl/version.h"

enum {
	CHANNELS = 2, /* unless SIM_NCCL_CHANNELS says otherwise */
	TIMER_STEP_NS = 1024, /* as published samples of A100 are; SIM_NCCL_GLOBALTIMER_STEP */
	SLOTS_AT_ONCE = SIM_TIMER_SLOTS / 2, /* a host that is late overtakes no slot */
	NS = 1000000000,
};

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t value = 0;

	if (!text || !text[0])
		return otherwise;
	for (; *text >= '0' && *text <= '9'; text++)
		value = 10 * value + (uint64_t)(*text - '0');
	return *text ? otherwise : value;
}

/* ---- %globaltimer: the time of day, in steps; SIM_NCCL_GLOBALTIMER_AHEAD ns ahead of it ---- */

static pthread_once_t clock_once = PTHREAD_ONCE_INIT;
static uint64_t clock_offset_ns, clock_step_ns;

static uint64_t read_clock(clockid_t id)
{
	struct timespec now;

	(void)clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
}

static void set_clock(void)
{
	uint64_t before = read_clock(CLOCK_MONOTONIC), now = read_clock(CLOCK_REALTIME),
		 after = read_clock(CLOCK_MONOTONIC);

	clock_offset_ns =
		now - (before + (after - before) / 2) + number_of("SIM_NCCL_GLOBALTIMER_AHEAD", 0);
	clock_step_ns = number_of("SIM_NCCL_GLOBALTIMER_STEP", TIMER_STEP_NS);
	if (clock_step_ns == 0)
		clock_step_ns = 1;
}

static uint64_t timer_at(uint64_t ns)
{
	(void)pthread_once(&clock_once, set_clock);
	ns += clock_offset_ns;
	return ns - ns % clock_step_ns;
}

/* ---- slots ---- */

void sim_profiled_write(struct sim_profiled *comm, uint64_t at_ns, unsigned int channel,
			uint64_t counter, bool is_stop)
{
	struct sim_timer_write *write = malloc(sizeof(*write)), **at = &comm->writes;

	if (!write)
		return;
	while (*at && (*at)->at_ns <= at_ns)
		at = &(*at)->next;
	*write = (struct sim_timer_write){.next = *at,
					  .at_ns = at_ns,
					  .counter = counter,
					  .channel = channel,
					  .is_stop = is_stop};
	*at = write;
}

bool sim_profiled_advance(struct sim_profiled *comm, uint64_t now_ns)
{
	unsigned int count = 0;

	for (; count < SLOTS_AT_ONCE && comm->writes && comm->writes->at_ns <= now_ns; count++) {
		struct sim_timer_write *write = comm->writes;
		size_t slot = write->counter % SIM_TIMER_SLOTS;
		struct sim_timer *timer = write->is_stop ? &comm->completed[write->channel][slot]
							 : &comm->started[write->channel][slot];

		*timer = (struct sim_timer){.counter = write->counter,
					    .timer = timer_at(write->at_ns)};
		comm->writes = write->next;
		free(write);
	}
	return count > 0;
}

/* ---- life ---- */

struct sim_poller *sim_profiled_poller(struct sim_profiled *comm)
{
	return sim_nccl_minor() >= 31 ? &comm->profiler : &comm->progress;
}

struct sim_profiled *sim_profiled_new(const struct sim_profiler_comm_info *info)
{
	struct sim_profiled *comm = calloc(1, sizeof(*comm));

	if (!comm)
		return NULL;
	comm->refs = 1;
	comm->info = *info;
	comm->name = info->name ? strdup(info->name) : NULL;
	comm->info.name = comm->name;
	comm->channels = (unsigned int)number_of("SIM_NCCL_CHANNELS", CHANNELS);
	if (comm->channels == 0 || comm->channels > SIM_CHANNELS)
		comm->channels = SIM_CHANNELS;
	comm->has_proxy = number_of("SIM_NCCL_PROXY", 0) != 0 && info->ranks > 1;
	comm->has_pxn = number_of("SIM_NCCL_PXN", 0) != 0;
	/* As if each rank were on a node of its own. */
	comm->info.nodes = comm->has_proxy ? info->ranks : 1;
	(void)pthread_mutex_init(&comm->mutex, NULL);
	/* The second has no name of its own in the real library. */
	sim_poller_init(&comm->progress, comm, "NCCL Progress");
	sim_poller_init(&comm->profiler, comm, "NCCL Profiler");
	if (!sim_profiler_init(&comm->info, &comm->context)) {
		sim_profiled_unref(comm);
		return NULL;
	}
	if (sim_nccl_minor() >= 31 && sim_profiler_is_loaded()) {
		(void)pthread_mutex_lock(&comm->mutex);
		sim_poller_start(&comm->profiler);
		(void)pthread_mutex_unlock(&comm->mutex);
	}
	return comm;
}

struct sim_profiled *sim_profiled_ref(struct sim_profiled *comm)
{
	(void)__atomic_add_fetch(&comm->refs, 1, __ATOMIC_RELAXED);
	return comm;
}

void sim_profiled_unref(struct sim_profiled *comm)
{
	if (__atomic_sub_fetch(&comm->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	while (comm->writes) {
		struct sim_timer_write *write = comm->writes;

		comm->writes = write->next;
		free(write);
	}
	sim_poller_destroy(&comm->progress);
	sim_poller_destroy(&comm->profiler);
	(void)pthread_mutex_destroy(&comm->mutex);
	free(comm->name);
	free(comm);
}

void sim_profiled_stop(struct sim_profiled *comm, bool drains)
{
	if (!comm)
		return;
	sim_poller_stop(&comm->progress, drains);
	sim_poller_stop(&comm->profiler, drains);
}

void sim_profiled_finalize(struct sim_profiled *comm)
{
	if (!comm)
		return;
	sim_profiler_finalize(comm->context);
	sim_profiled_unref(comm);
}
