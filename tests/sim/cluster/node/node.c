/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/node/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/steps/comm_layout.h"
#include "common/base/hash.h"
#include "tests/sim/cluster/node/state.h"

enum {
	TICKS_A_SECOND = 10,
	FLUSH_TICKS = 3, /* from which to which a plugin keeps what it saw */
	LOST_RUN = 8, /* intervals that are lost together */
};

/* ---- what the agent sends -------------------------------------------------------------------- */

static void on_window(void *data, const char *key, const struct nt_window *window,
		      uint64_t watermark_ns)
{
	struct cl_node *node = data;

	nt_gpu_schedule_steps(&node->schedule, window->rank.pid, window->rank.rank, window->steps,
			      window->step_ns, (uint64_t)node->now_ns);
	nt_publisher_window(node->publisher, key, window, watermark_ns);
}

static void on_heartbeat(void *data, const char *key, uint32_t ranks, uint64_t watermark_ns)
{
	struct cl_node *node = data;

	nt_publisher_heartbeat(node->publisher, key, ranks, watermark_ns);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void give(struct cl_node *node, struct cl_process *process, const struct cl_call *call)
{
	uint32_t pid = FIRST_PID + (uint32_t)(process - node->process);
	struct nt_event_call event;

	if (call->kind == CL_CALL_HOST) {
		process->host.on_cpu_ns += call->host.on_cpu_ns;
		process->host.run_queue_ns += call->host.run_queue_ns;
		process->host.gc_ns += call->host.gc_ns;
		process->host.read_bytes += call->host.read_bytes;
		process->host.write_bytes += call->host.write_bytes;
		return;
	}
	node->calls++;
	process->launches = call->launches;
	if (!node->tracker)
		return;
	if (call->kind == CL_CALL_EXIT) {
		nt_tracker_exited(node->tracker, pid, pid, BOOT_NS + (uint64_t)call->entry_ns);
		return;
	}
	if (call->kind == CL_CALL_COLLECTIVE && call->generation != process->generation) {
		process->generation = call->generation;
		cl_event_comms(node, process, call->entry_ns);
	}
	event = cl_event(node, process, call);
	nt_tracker_event(node->tracker, &event, NULL);
}

static void give_until(struct cl_node *node, struct cl_process *process, int64_t now_ns)
{
	struct cl_calls *calls = cl_play_calls(node->play, process->rank);

	while (calls->first < calls->count && calls->call[calls->first].ret_ns <= now_ns) {
		node->now_ns = calls->call[calls->first].ret_ns;
		give(node, process, &calls->call[calls->first++]);
	}
	node->now_ns = now_ns;
	if (calls->first == calls->count)
		calls->first = calls->count = 0;
}

/* ---- what plugins tell ----------------------------------------------------------------------- */

static int by_end(const void *left, const void *right)
{
	const struct cl_busy *a = left, *b = right;

	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static void record_busy(struct cl_node *node, const struct cl_process *process,
			const struct cl_busy *busy)
{
	const struct cl_place place = {(enum cl_group_kind)busy->group, busy->generation};
	struct cl_group group = cl_node_group(node, &place, process->rank);
	struct nt_gpu_interval interval = {
		.pid = FIRST_PID + (uint32_t)(process - node->process),
		.kernels = busy->kernels,
		.number = process->intervals[busy->communicates],
		.entry_ns = BOOT_NS + (uint64_t)busy->entry_ns,
		.start_ns = BOOT_NS + (uint64_t)busy->start_ns,
		.end_ns = BOOT_NS + (uint64_t)busy->end_ns,
		.stream = busy->overlaps ? GRADIENTS : KERNELS,
		.communicates = busy->communicates,
	};
	uint8_t id[NT_ID_BYTES];

	if (busy->communicates) {
		cl_make_id(node, &place, &group, id);
		interval.comm = nt_comm_layout_nccl_hash(id, NT_ID_BYTES);
		interval.comm_rank = cl_group_place(&group, process->rank);
		interval.op = (enum nt_op)busy->op;
		interval.nth = busy->nth;
	}
	nt_tracker_gpu(node->tracker, &interval);
}

static void open_process(struct cl_node *node, const struct cl_process *process)
{
	struct nt_event_gpu batch = {
		.h = {.pid = FIRST_PID + (uint32_t)(process - node->process),
		      .entry_ns = BOOT_NS + (uint64_t)node->now_ns},
		.number = 1,
		.records = 1,
	};

	batch.record[0] = (struct nt_gpu_record){.start_ns = batch.h.entry_ns,
						 .end_ns = batch.h.entry_ns,
						 .kind = NT_GPU_RECORD_OPEN};
	(void)nt_tracker_gpu_batch(node->tracker, &batch);
}

/* As the agent does, at once in all processes. */
static void measure(struct cl_node *node, uint64_t real_ns)
{
	const bool opens =
		nt_gpu_schedule_is_open(&node->schedule, true, (uint64_t)node->now_ns, real_ns);

	for (uint32_t i = 0; i < node->processes && opens && !node->is_open; i++)
		open_process(node, &node->process[i]);
	if (opens && !node->is_open)
		node->opened_ns = node->now_ns;
	if (!opens && node->is_open)
		nt_tracker_gpu_closed_all(node->tracker);
	node->is_open = opens;
}

static bool is_measured(const struct cl_node *node, const struct cl_busy *busy)
{
	return !node->s->measures || (node->is_open && busy->entry_ns >= node->opened_ns);
}

/* Now and then a plugin reports late, or loses a run of reports. */
static void flush(struct cl_node *node, struct cl_process *process, int64_t now_ns)
{
	struct cl_busies *busies = cl_play_busies(node->play, process->rank);
	size_t ended = 0, kept = 0;

	if (!busies->count || (node->ticks + process->rank) % FLUSH_TICKS)
		return;
	qsort(busies->busy, busies->count, sizeof(*busies->busy), by_end);
	while (ended < busies->count && busies->busy[ended].end_ns <= now_ns)
		ended++;
	for (size_t i = 0; i < ended; i++) {
		bool communicates = busies->busy[i].communicates;
		uint64_t number, run;

		if (!is_measured(node, &busies->busy[i]))
			continue;
		number = ++process->intervals[communicates] / LOST_RUN;
		run = nt_hash_u64(nt_hash_mix(node->s->seed + process->rank),
				  number << 1 | communicates);

		if (node->tracker && !cl_scenario_is_bare(node->s, node->index) &&
		    (double)(nt_hash_mix(run) >> 11) * 0x1p-53 >= node->s->weather.intervals_lost)
			record_busy(node, process, &busies->busy[i]);
	}
	for (size_t i = ended; i < busies->count; i++)
		busies->busy[kept++] = busies->busy[i];
	busies->count = kept;
}

/* Who is inside a call that has not returned. */
static void look(struct cl_node *node, int64_t now_ns)
{
	nt_tracker_look(node->tracker);
	for (uint32_t i = 0; i < node->processes; i++) {
		struct cl_process *process = &node->process[i];
		const struct cl_call *call = cl_node_front(node, process);
		struct nt_event_call event;
		struct nt_inside inside = {0};

		if (!call || call->entry_ns > now_ns || call->kind == CL_CALL_HOST ||
		    call->kind == CL_CALL_EXIT)
			continue;
		event = cl_event(node, process, call);
		inside.entry_ns = event.h.entry_ns;
		inside.deref = event.deref;
		memcpy(inside.word, event.word, sizeof(inside.word));
		nt_tracker_inside(node->tracker, event.h.pid, event.h.tid, event.h.row, &inside,
				  BOOT_NS + (uint64_t)now_ns);
	}
}

/* ---- the beginning of a process -------------------------------------------------------------- */

static void map(struct cl_node *node, uint32_t pid, const char *name, bool late)
{
	const struct nt_mapped_file file = {
		.pid = pid,
		.start_boot_ns = pid,
		.dev = 1,
		.ino = 1 + (ino_t)nt_probe_library_of(name),
		.path = name,
		.name = name,
		.library = nt_probe_library_of(name),
		.late = late,
	};

	nt_tracker_mapped(node->tracker, &file);
}

static void begin(struct cl_node *node, struct cl_process *process, bool late)
{
	const uint32_t pid = FIRST_PID + (uint32_t)(process - node->process);

	if (cl_node_is_mpi(node)) {
		map(node, pid, "libmpi.so.40", late);
	} else {
		map(node, pid, "libcudart.so.13", late);
		map(node, pid, "libnccl.so.2", late);
	}
	if (!late)
		cl_event_comms(node, process, cl_play_start_ns(node->play, process->rank));
}

/* Those whose time has come. */
static void begin_some(struct cl_node *node, int64_t now_ns)
{
	for (uint32_t i = 0; i < node->processes; i++) {
		struct cl_process *process = &node->process[i];

		if (process->begun || cl_play_start_ns(node->play, process->rank) > now_ns)
			continue;
		process->begun = true;
		if (node->tracker)
			begin(node, process, false);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

static int start_agent(struct cl_node *node)
{
	uint64_t life = nt_hash_u64(node->s->seed, (uint64_t)node->index << 8 | ++node->lives);
	const struct nt_tracker_options options = {
		.node = node->name,
		.boot = nt_hash_mix(node->s->seed + node->index),
		.seed = life,
		.window_min_ns = (uint64_t)(node->s->window_s * 1e9),
		.source = cl_source(node),
		.sink = {.window = on_window, .heartbeat = on_heartbeat, .data = node},
	};
	int r = nt_tracker_new(&options, &node->tracker);

	if (r < 0)
		return r;
	/* It knows the time, by which it judges what plugins tell. */
	nt_tracker_tick(node->tracker, BOOT_NS + (uint64_t)node->now_ns);
	return nt_publisher_new(node->bus, node->name, life, &node->publisher);
}

int cl_node_new(const struct cl_scenario *scenario, struct cl_play *play, uint32_t index,
		struct nt_bus *bus, struct cl_node **ret_node)
{
	struct cl_node *node = calloc(1, sizeof(*node));
	uint64_t chance = nt_hash_u64(nt_hash_mix(scenario->seed), index);
	int r = 0;

	if (!node)
		return -ENOMEM;
	node->s = scenario;
	for (int i = 0; i < 2; i++)
		node->sized[i] = cl_scenario_sized(scenario, i);
	node->schedule = (struct nt_gpu_schedule){.window_ns = 3 * NT_SECOND,
						  .interval_ns = 30 * NT_SECOND,
						  .fresh.until_ns = 25 * NT_SECOND};
	node->play = play;
	node->bus = bus;
	node->index = index;
	node->processes = cl_scenario_ranks_on(scenario, index);
	node->offset_ns = (int64_t)(((double)(chance & 0xffff) / 0x8000 - 1) *
				    scenario->weather.clock_offset_s * 1e9);
	node->drift =
		((double)(chance >> 16 & 0xffff) / 0x8000 - 1) * scenario->weather.clock_drift;
	(void)snprintf(node->name, sizeof(node->name), "node-%05u", index);
	node->process = calloc(node->processes, sizeof(*node->process));
	if (!node->process)
		r = -ENOMEM;
	else if (!cl_scenario_agent_step(scenario, index))
		r = start_agent(node);
	if (r < 0) {
		cl_node_free(node);
		return r;
	}
	for (uint32_t i = 0; i < node->processes; i++) {
		node->process[i].rank = cl_scenario_rank_on(scenario, index, i);
		node->process[i].generation =
			node->process[i].rank >= cl_scenario_ranks(&node->sized[0]);
	}
	*ret_node = node;
	return 0;
}

void cl_node_free(struct cl_node *node)
{
	if (!node)
		return;
	cl_node_kill(node);
	free(node->process);
	free(node);
}

void cl_node_kill(struct cl_node *node)
{
	nt_tracker_free(node->tracker);
	nt_publisher_free(node->publisher);
	node->tracker = NULL;
	node->publisher = NULL;
}

int cl_node_revive(struct cl_node *node, int64_t now_ns)
{
	int r;

	node->now_ns = now_ns;
	r = start_agent(node);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < node->processes; i++) {
		if (node->process[i].begun)
			begin(node, &node->process[i], true);
	}
	return 0;
}

int cl_node_tick(struct cl_node *node, int64_t now_ns)
{
	uint64_t boot_ns = BOOT_NS + (uint64_t)now_ns;
	int64_t real_ns = (int64_t)CL_EPOCH_NS + node->offset_ns + now_ns +
			  (int64_t)((double)now_ns * node->drift);

	node->now_ns = now_ns;
	begin_some(node, now_ns);
	if (node->tracker && node->ticks++ % TICKS_A_SECOND == 0) {
		look(node, now_ns);
		node->counted = cl_play_counted(node->play, node->index);
	}
	if (node->publisher)
		nt_publisher_set_time(node->publisher, boot_ns, (uint64_t)real_ns);
	for (uint32_t i = 0; i < node->processes; i++)
		give_until(node, &node->process[i], now_ns);
	for (uint32_t i = 0; i < node->processes; i++)
		flush(node, &node->process[i], now_ns);
	for (uint32_t i = 0; i < node->processes; i++)
		cl_node_take_sent(node, &node->process[i], now_ns);
	if (!node->tracker)
		return 0;
	if (node->s->measures)
		measure(node, (uint64_t)real_ns);
	nt_tracker_tick(node->tracker, boot_ns);
	return nt_publisher_flush(node->publisher);
}

uint64_t cl_node_calls(const struct cl_node *node)
{
	return node->calls;
}
