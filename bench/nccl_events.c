/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the profiler plugin of NCCL costs its process for each event: a collective with two channels, as
 * NCCL 2.30 announces it, without an agent and with it, beside an empty probe on a nop of five bytes.
 * Without an agent NCCL calls with the begin of a call of the program alone. Medians of rounds in which all
 * variants follow one another.
 *
 *	nccl_events EMPTY_BPF_OBJECT [ROUNDS]
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "agent/probes/probe.h"
#include "bench/mark_probes.h"
#include "plugin/nccl/profiler_abi.h"

extern const struct nt_nccl_profiler ncclProfiler_v6;

enum {
	COLLECTIVES = 16 * 1024, /* of a round */
	CHANNELS = 2,
	EVENTS = 8 + 3 * CHANNELS, /* calls of the plugin for a collective */
	STEPS = 64, /* of an operation of a proxy */
	STEP_EVENTS = 5, /* calls of the plugin for a step */
	OPS = 2048, /* of a round */
};

static void *context;
static int mask;

static void *start(uint64_t type, void *parent, struct nt_nccl_event event)
{
	void *handle;

	event.type = type;
	event.parent = parent;
	(void)ncclProfiler_v6.start(context, &handle, &event);
	return handle;
}

static uint64_t boot_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ns per event. The device's clock is read here once for a collective: 20 ns of the whole. */
static double idle_events(void)
{
	struct nt_nccl_event event = {.type = NT_NCCL_GROUP_API};
	const double begin = mark_probes_cpu_ns();
	void *handle;

	for (int i = 0; i < COLLECTIVES; i++)
		(void)ncclProfiler_v6.start(context, &handle, &event);
	return (mark_probes_cpu_ns() - begin) / COLLECTIVES;
}

static void end_channel(void *channel, uint64_t stop)
{
	union nt_nccl_state_args args = {.stop = stop};

	(void)ncclProfiler_v6.state(channel, NT_NCCL_KERNEL_CHANNEL_STOP, &args);
	(void)ncclProfiler_v6.stop(channel);
}

static void collective(void)
{
	const struct nt_nccl_event event = {
		.collective = {.function = "AllReduce", .channels = CHANNELS}};
	void *group_call, *call, *group, *enqueued, *channel[CHANNELS];
	uint64_t now;

	group_call = start(NT_NCCL_GROUP_API, NULL, (struct nt_nccl_event){0});
	call = start(NT_NCCL_COLLECTIVE_API, group_call, (struct nt_nccl_event){0});
	group = start(NT_NCCL_GROUP, group_call, (struct nt_nccl_event){0});
	enqueued = start(NT_NCCL_COLLECTIVE, call, event);
	(void)ncclProfiler_v6.stop(enqueued);
	(void)ncclProfiler_v6.stop(group);
	(void)ncclProfiler_v6.stop(call);
	(void)ncclProfiler_v6.stop(group_call);
	now = boot_ns();
	for (uint8_t i = 0; i < CHANNELS; i++)
		channel[i] = start(
			NT_NCCL_KERNEL_CHANNEL, enqueued,
			(struct nt_nccl_event){.kernel_channel = {.channel = i, .start = now}});
	for (int i = 0; i < CHANNELS; i++)
		end_channel(channel[i], now);
}

static double events(void)
{
	const double begin = mark_probes_cpu_ns();

	for (int i = 0; i < COLLECTIVES; i++)
		collective();
	return (mark_probes_cpu_ns() - begin) / ((double)EVENTS * COLLECTIVES);
}

/* A send of a proxy. Of the peer, channel 0 is measured. */
static void send_steps(uint8_t channel)
{
	union nt_nccl_state_args args = {.bytes = 1 << 19};
	void *step, *op = start(NT_NCCL_PROXY_OP, NULL,
				(struct nt_nccl_event){.proxy_op = {.pid = (int)getpid(),
								    .channel = channel,
								    .peer = 1,
								    .steps = STEPS,
								    .is_send = 1}});

	for (int i = 0; i < STEPS; i++) {
		step = start(NT_NCCL_PROXY_STEP, op,
			     (struct nt_nccl_event){.proxy_step = {.step = i}});
		(void)ncclProfiler_v6.state(step, 8, &args);
		(void)ncclProfiler_v6.state(step, 20, &args);
		(void)ncclProfiler_v6.state(step, NT_NCCL_STEP_SEND_WAIT, &args);
		(void)ncclProfiler_v6.stop(step);
	}
	(void)ncclProfiler_v6.stop(op);
}

/* ns per event of a step. */
static double step_events(uint8_t channel)
{
	const double begin = mark_probes_cpu_ns();

	for (int i = 0; i < OPS; i++)
		send_steps(channel);
	return (mark_probes_cpu_ns() - begin) / ((double)OPS * STEPS * STEP_EVENTS);
}

int main(int argc, char **argv)
{
	static double idle[MARK_PROBES_ROUNDS], with[MARK_PROBES_ROUNDS], bare[MARK_PROBES_ROUNDS],
		sends[MARK_PROBES_ROUNDS], other[MARK_PROBES_ROUNDS];
	struct mark_probes *probes;
	double ratio, alone, empty;
	uint64_t rounds = 15;
	int r = mark_probes_open(argc, argv, &probes, &rounds);

	if (r < 0)
		return r == -EINVAL ? 2 : 1;
	(void)ncclProfiler_v6.init_5(&context, 1, &mask, NULL, 1, 2, 0, NULL);
	for (uint64_t i = 0; i < rounds; i++) {
		idle[i] = idle_events();
		if (mark_probes_attach(probes, NT_LIBRARY_NCCL_PROFILER) < 0)
			return 1;
		with[i] = events();
		bare[i] = mark_probes_fire();
		mark_probes_detach(probes);
		if (mark_probes_attach(probes, NT_LIBRARY_NCCL_SENDS) < 0)
			return 1;
		sends[i] = step_events(0);
		other[i] = step_events(1);
		mark_probes_detach(probes);
	}
	mark_probes_close(probes);
	alone = mark_probes_median(idle, rounds);
	empty = mark_probes_median(bare, rounds);
	ratio = mark_probes_median(with, rounds) / empty;
	printf("ns an event\n");
	printf("  mark, an empty probe                          %8.1f\n", empty);
	printf("  plugin without an agent                       %8.1f  aim 5: %s\n", alone,
	       alone <= 5 ? "met" : "missed");
	printf("  plugin with the agent                         %8.1f  of an empty probe %.3f, aim 1.25: %s\n",
	       ratio * empty, ratio, ratio <= 1.25 ? "met" : "missed");
	printf("  a whole collective with the agent             %8.1f  (%d events)\n",
	       ratio * empty * EVENTS, EVENTS);
	printf("  a step of a proxy, of a measured channel      %8.1f  (%d events)\n",
	       STEP_EVENTS * mark_probes_median(sends, rounds), STEP_EVENTS);
	printf("  the same of another channel                   %8.1f\n",
	       STEP_EVENTS * mark_probes_median(other, rounds));
	return 0;
}
