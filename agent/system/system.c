/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/system/system.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "agent/system/slice_estimate.h"
#include "agent/system/switch_share.h"
#include "agent/system/system_impl.h"
#include "common/system/clock.h"
#include "host.skel.h"

enum {
	POLL_LOOK = 16, /* events between two reads of the clock: a power of two */
	TENTHS = 10,
};

#define POLL_NS  NT_MILLISECOND
#define SWEEP_NS NT_MILLISECOND /* of a turn */

struct nt_system {
	struct nt_system_options options;
	struct nt_system_loader loader;
	struct nt_event_budget budget;
	struct nt_switch_share share;
	struct nt_dropped_events dropped[NT_HOST_PROCESSES];
	uint32_t pid[NT_HOST_PROCESSES]; /* of a slot; 0: free; or NT_SYSTEM_LEAVING */
	struct nt_system_sweep sweep;
	uint32_t leaving; /* slots */
	struct nt_system_again again;
	struct nt_system_owners owners;
	uint64_t start_boot_ns[NT_HOST_PROCESSES]; /* of that process */
	uint64_t enrolled_ns[NT_HOST_PROCESSES]; /* attached time at that moment */
	uint32_t tid[NT_HOST_PROCESSES]; /* of the last reading; 0: none yet */
	struct nt_slice_estimate estimate[NT_HOST_PROCESSES]; /* of that thread and its process */
	uint64_t gap_since_ns; /* boot time when the last slice ended */
	uint32_t processes;
	uint64_t attached_ns, attached_since_ns; /* boot time so far; since when, 0: not now */
	uint64_t processes_over_cap;
	/* Of processes that have left, and single events so far. */
	uint64_t threads_over_cap, helpers_over_cap;
	uint64_t takers_dropped, devices_dropped, events_dropped, events;
	uint64_t poll_end_ns; /* monotonic */
	uint32_t polled;
};

static uint32_t slot_of(const struct nt_system *system, uint32_t pid)
{
	for (uint32_t i = 0; i < NT_HOST_PROCESSES; i++)
		if (system->pid[i] == pid)
			return i;
	return NT_HOST_PROCESSES;
}

/* ---- single events -------------------------------------------------------------------------- */

static int take_event(void *data, void *record, size_t bytes)
{
	struct nt_system *system = data;
	const struct nt_host_event *event = record;
	uint32_t slot;

	system->events++;
	if (bytes >= sizeof(*event) && system->options.event) {
		slot = slot_of(system, event->tgid);
		if (slot < NT_HOST_PROCESSES)
			system->options.event(system->options.data, system->start_boot_ns[slot],
					      event);
	}
	if (++system->polled % POLL_LOOK == 0 && nt_clock_mono_ns() >= system->poll_end_ns)
		return -EAGAIN;
	return 0;
}

double nt_system_take_dropped(struct nt_system *system, uint32_t pid, enum nt_host_event_kind kind)
{
	const uint32_t slot = pid ? slot_of(system, pid) : NT_HOST_PROCESSES;

	if (slot == NT_HOST_PROCESSES || (unsigned int)kind >= NT_HOST_EVENT_END)
		return 0;
	return nt_dropped_events_take(&system->dropped[slot], system->loader.process[slot].dropped,
				      kind, system->share.now);
}

void nt_system_set_level(struct nt_system *system, uint32_t pid, uint64_t start_boot_ns,
			 uint32_t level)
{
	const uint32_t slot = slot_of(system, pid);
	struct nt_host_process *process;

	if (slot == NT_HOST_PROCESSES || system->start_boot_ns[slot] != start_boot_ns)
		return;
	process = &system->loader.process[slot];
	if (!process->level) { /* what was dropped until the former end is no part of it */
		memset(process->dropped, 0, sizeof(process->dropped));
		system->dropped[slot] = (struct nt_dropped_events){0};
	}
	__atomic_store_n(&process->level, level, __ATOMIC_RELAXED);
}

/* ---- sums of context switches ---------------------------------------------------------------- */

/*
 * What the thread waits for now belongs to its sums, although it has not ended. Of a wait that began in
 * an earlier slice only that slice's part is sure.
 */
static void read_thread(const struct nt_system *system, uint32_t slot, struct nt_host_times *times)
{
	const struct nt_system_loader *loader = &system->loader;
	const uint64_t since_ns = loader->programs->bss->slice_since_ns;
	uint64_t now_ns = nt_system_loader_switch_clock(loader);
	struct nt_host_thread thread;

	*times = (struct nt_host_times){0};
	if (bpf_map_lookup_elem(bpf_map__fd(loader->programs->maps.threads), &system->tid[slot],
				&thread) < 0 ||
	    thread.slot != slot || thread.reason >= NT_HOST_WAITS)
		return;
	*times = thread.times;
	times->wait_ns[thread.reason] += thread.off_ns;
	if (thread.out_ns && thread.out_ns < since_ns)
		now_ns = since_ns;
	if (thread.out_ns && now_ns > thread.out_ns)
		times->wait_ns[thread.reason == NT_HOST_WAIT_RUN_QUEUE && thread.is_throttled
				       ? NT_HOST_WAIT_QUOTA
				       : thread.reason] += now_ns - thread.out_ns;
}

/* Reclaim and compaction have tracepoints of their own. */
static void read_sums(const struct nt_system *system, uint32_t slot, struct nt_switch_sums *sums)
{
	const struct nt_host_process *process = &system->loader.process[slot];
	struct nt_host_times times;

	read_thread(system, slot, &times);
	times.reclaim_ns = 0;
	times.compaction_ns = 0;
	memcpy(sums->of, &times, sizeof(times));
	memcpy(&sums->of[sizeof(times) / sizeof(uint64_t)], process->wait_ns,
	       sizeof(process->wait_ns));
	memcpy(&sums->of[sizeof(times) / sizeof(uint64_t) + NT_HOST_WAITS], process->helper_wait_ns,
	       sizeof(process->helper_wait_ns));
}

static void write_sums(const struct nt_switch_sums *sums, struct nt_system_total *total)
{
	const uint64_t reclaim_ns = total->thread.reclaim_ns;
	const uint64_t compaction_ns = total->thread.compaction_ns;

	memcpy(&total->thread, sums->of, sizeof(total->thread));
	total->thread.reclaim_ns = reclaim_ns;
	total->thread.compaction_ns = compaction_ns;
	memcpy(total->wait_ns, &sums->of[sizeof(total->thread) / sizeof(uint64_t)],
	       sizeof(total->wait_ns));
	memcpy(total->helper_wait_ns,
	       &sums->of[sizeof(total->thread) / sizeof(uint64_t) + NT_HOST_WAITS],
	       sizeof(total->helper_wait_ns));
}

/* ---- slices ---------------------------------------------------------------------------------- */

static bool is_sliced(const struct nt_system *system)
{
	return system->budget.state == NT_EVENT_BUDGET_SLICE ||
	       system->budget.state == NT_EVENT_BUDGET_BETWEEN;
}

static uint64_t gap_until(const struct nt_system *system, uint64_t now_ns)
{
	return system->budget.state == NT_EVENT_BUDGET_BETWEEN && now_ns > system->gap_since_ns
		       ? now_ns - system->gap_since_ns
		       : 0;
}

/* Who took the CPU so far. The kernel side goes on with the other bank, which is empty. */
static void take_bank(struct nt_system *system, uint32_t slot)
{
	struct nt_host_process *process = &system->loader.process[slot];
	const uint32_t bank = __atomic_load_n(&process->bank, __ATOMIC_RELAXED) & 1;

	memset(process->taker[bank ^ 1], 0, sizeof(process->taker[0]));
	__atomic_store_n(&process->bank, bank ^ 1, __ATOMIC_RELEASE);
	nt_slice_estimate_take(&system->estimate[slot], process->taker[bank]);
}

/* Rates are those since then. */
static void begin_slice(struct nt_system *system, uint64_t gap_ns)
{
	const uint64_t clock_ns = nt_system_loader_switch_clock(&system->loader);
	struct nt_switch_sums sums;

	for (uint32_t i = 0; i < NT_HOST_PROCESSES; i++) {
		if (!system->tid[i])
			continue;
		read_sums(system, i, &sums);
		take_bank(system, i);
		nt_slice_estimate_begin(&system->estimate[i], &sums, gap_ns, clock_ns);
	}
}

static void end_slice_of(struct nt_system *system, uint64_t now_ns)
{
	const uint64_t clock_ns = nt_system_loader_switch_clock(&system->loader);
	struct nt_switch_sums sums;

	for (uint32_t i = 0; i < NT_HOST_PROCESSES; i++) {
		if (!system->tid[i])
			continue;
		read_sums(system, i, &sums);
		take_bank(system, i);
		nt_slice_estimate_end(&system->estimate[i], &sums, clock_ns);
	}
	system->gap_since_ns = now_ns;
}

/* Nothing is known of the time that follows. */
static void forget_rates(struct nt_system *system)
{
	for (uint32_t i = 0; i < NT_HOST_PROCESSES; i++)
		if (system->tid[i])
			system->estimate[i].slice_ns = 0;
}

/* ---- attaching ------------------------------------------------------------------------------ */

static void set_attached(struct nt_system *system, uint64_t now_ns)
{
	struct nt_system_loader *loader = &system->loader;
	const bool was = loader->is_attached;

	nt_system_loader_set(loader,
			     system->processes ? system->budget.state : NT_EVENT_BUDGET_NOTHING);
	if (was && !loader->is_attached) {
		system->attached_ns += now_ns - system->attached_since_ns;
		system->attached_since_ns = 0;
	} else if (!was && loader->is_attached) {
		system->attached_since_ns = now_ns;
	}
}

/* What was dropped until now has the share that held until now. */
static void change_share(struct nt_system *system)
{
	const double share = is_sliced(system) ? system->budget.share : 1.0;

	if (share == system->share.now)
		return;
	for (uint32_t i = 0; i < NT_HOST_PROCESSES; i++)
		if (system->pid[i] && system->loader.process[i].level)
			nt_dropped_events_settle(&system->dropped[i],
						 system->loader.process[i].dropped,
						 system->share.now);
	nt_switch_share_set(&system->share, share, nt_clock_boot_ns());
}

/* Slices begin and end at a reading of the load, which goes on; anything else begins anew. */
static void change_state(struct nt_system *system, enum nt_event_budget_state was, uint64_t now_ns)
{
	const enum nt_event_budget_state state = system->budget.state;

	if (was == NT_EVENT_BUDGET_BETWEEN)
		begin_slice(system, now_ns - system->gap_since_ns);
	set_attached(system, now_ns);
	change_share(system);
	if (state == NT_EVENT_BUDGET_BETWEEN)
		end_slice_of(system, now_ns);
	else if (state == NT_EVENT_BUDGET_NOTHING)
		forget_rates(system);
	else if (was == NT_EVENT_BUDGET_NOTHING)
		system->again = (struct nt_system_again){.is_running = true};
	if (!is_sliced(system))
		nt_event_budget_changed(&system->budget);
}

static uint64_t attached_until(const struct nt_system *system, uint64_t now_ns)
{
	return system->attached_ns +
	       (system->attached_since_ns ? now_ns - system->attached_since_ns : 0);
}

bool nt_system_tick(struct nt_system *system, uint64_t boot_ns, double busy_cores)
{
	const enum nt_event_budget_state was = system->budget.state;
	const bool was_sliced = is_sliced(system);
	struct nt_event_budget_load load = {.now_ns = boot_ns, .busy_cores = busy_cores};

	if (!system->processes)
		return false;
	nt_system_loader_load(&system->loader, &load);
	if (nt_event_budget_take(&system->budget, &load) == was) {
		/* The first slice is the last second. */
		if (was == NT_EVENT_BUDGET_ALL || was == NT_EVENT_BUDGET_NO_INTERRUPTS)
			begin_slice(system, 0);
		return false;
	}
	change_state(system, was, boot_ns);
	return !(was_sliced && is_sliced(system));
}

/* ---- slots ---------------------------------------------------------------------------------- */

static void free_slot(struct nt_system *system, uint32_t slot)
{
	const struct nt_host_process *process = &system->loader.process[slot];

	system->threads_over_cap += process->threads_over_cap;
	system->helpers_over_cap += process->helpers_over_cap;
	system->takers_dropped += process->takers_dropped;
	system->devices_dropped += process->devices_dropped;
	system->events_dropped += process->events_dropped;
	system->dropped[slot] = (struct nt_dropped_events){0};
	system->owners.slots[process->owner]--;
	nt_system_shares_clear(&system->loader, slot);
	system->pid[slot] = 0;
	system->leaving--;
}

static bool has_threads(const struct nt_system *system, uint32_t slot)
{
	return nt_host_taken(&system->loader.process[slot].threads) > 0;
}

static bool begin_sweep(struct nt_system *system)
{
	system->sweep = (struct nt_system_sweep){0};
	for (uint32_t i = 0; i < NT_HOST_PROCESSES; i++) {
		if (system->pid[i] != NT_SYSTEM_LEAVING)
			continue;
		if (has_threads(system, i))
			system->sweep.is_swept[i] = system->sweep.is_running = true;
		else
			free_slot(system, i);
	}
	return system->sweep.is_running;
}

/* Slots are free once a pass that began after their rank had left is at its end. */
static void sweep_slots(struct nt_system *system, uint64_t budget_ns)
{
	if (!system->leaving || !(system->sweep.is_running || begin_sweep(system)) ||
	    !nt_system_shares_sweep(&system->loader, &system->sweep, budget_ns))
		return;
	for (uint32_t i = 0; i < NT_HOST_PROCESSES; i++)
		if (system->sweep.is_swept[i])
			free_slot(system, i);
	system->sweep.is_running = false;
}

static uint32_t new_slot(struct nt_system *system)
{
	uint32_t slot = slot_of(system, 0);

	/* The pass that runs may be of others. */
	for (int i = 0; i < 2 && slot == NT_HOST_PROCESSES && system->leaving; i++) {
		sweep_slots(system, UINT64_MAX);
		slot = slot_of(system, 0);
	}
	return slot;
}

void nt_system_poll(struct nt_system *system)
{
	system->polled = 0;
	system->poll_end_ns = nt_clock_mono_ns() + POLL_NS;
	(void)ring_buffer__consume(system->loader.ring);
	sweep_slots(system, SWEEP_NS);
	nt_system_members_again(&system->loader, &system->again, system->pid);
}

/* ---- processes ------------------------------------------------------------------------------ */

void nt_system_enrol(struct nt_system *system, uint32_t pid, uint64_t start_boot_ns, uint64_t owner)
{
	const uint64_t now_ns = nt_clock_boot_ns();
	uint32_t slot = slot_of(system, pid);

	if (!pid || pid == NT_SYSTEM_LEAVING)
		return;
	if (slot < NT_HOST_PROCESSES) {
		if (system->start_boot_ns[slot] == start_boot_ns)
			return;
		nt_system_leave(system, pid, system->start_boot_ns[slot]);
	}
	slot = new_slot(system);
	if (slot == NT_HOST_PROCESSES) {
		system->processes_over_cap++;
		return;
	}
	system->loader.process[slot] =
		(struct nt_host_process){.tgid = pid,
					 .owner = nt_system_shares_enter(&system->owners, owner),
					 .events_max = system->options.events_max / TENTHS};
	system->pid[slot] = pid;
	system->start_boot_ns[slot] = start_boot_ns;
	system->tid[slot] = 0;
	system->estimate[slot] = (struct nt_slice_estimate){0};
	if (system->processes++ == 0) {
		set_attached(system, now_ns);
		nt_event_budget_changed(&system->budget);
	}
	system->enrolled_ns[slot] = attached_until(system, now_ns);
	nt_system_members_add(&system->loader, pid, slot);
}

void nt_system_leave(struct nt_system *system, uint32_t pid, uint64_t start_boot_ns)
{
	const uint32_t slot = slot_of(system, pid);

	if (!pid || pid == NT_SYSTEM_LEAVING || slot == NT_HOST_PROCESSES ||
	    system->start_boot_ns[slot] != start_boot_ns)
		return;
	nt_system_shares_close(&system->loader, pid, slot);
	system->loader.process[slot].level = 0;
	system->pid[slot] = NT_SYSTEM_LEAVING;
	system->leaving++;
	system->tid[slot] = 0;
	if (!has_threads(system, slot))
		free_slot(system, slot);
	if (--system->processes == 0)
		set_attached(system, nt_clock_boot_ns());
}

/* ---- reading -------------------------------------------------------------------------------- */

/* What was before is no part of the slice: neither of the thread nor of the process. */
static void choose_thread(struct nt_system *system, uint32_t slot, uint32_t tid)
{
	struct nt_switch_sums sums;

	if (system->tid[slot] == tid)
		return;
	system->tid[slot] = tid;
	nt_slice_estimate_reset(&system->estimate[slot]);
	read_sums(system, slot, &sums);
	take_bank(system, slot);
	nt_slice_estimate_begin(&system->estimate[slot], &sums, 0,
				nt_system_loader_switch_clock(&system->loader));
}

static bool read_switches(struct nt_system *system, uint32_t slot, uint64_t now_ns,
			  struct nt_system_total *total)
{
	struct nt_switch_sums sums;
	struct nt_host_thread thread;

	if (is_sliced(system) && !system->estimate[slot].slice_ns)
		return false;
	read_sums(system, slot, &sums);
	nt_slice_estimate_add(&system->estimate[slot], gap_until(system, now_ns), &sums);
	if (bpf_map_lookup_elem(bpf_map__fd(system->loader.programs->maps.threads),
				&system->tid[slot], &thread) == 0 &&
	    thread.slot == slot) {
		total->thread.reclaim_ns = thread.times.reclaim_ns;
		total->thread.compaction_ns = thread.times.compaction_ns;
	}
	write_sums(&sums, total);
	return true;
}

static void read_takers(struct nt_system *system, uint32_t slot, uint64_t gap_ns,
			struct nt_system_total *total)
{
	struct nt_taken taken;

	take_bank(system, slot);
	nt_slice_estimate_read(&system->estimate[slot], gap_ns, &taken);
	total->taken_ns = taken.ns;
	for (int i = 0; i < NT_HOST_TAKERS; i++)
		if (taken.taker[i].tgid && taken.taker[i].ns > total->taker.ns)
			total->taker = taken.taker[i];
	total->taker.comm[NT_HOST_COMM - 1] = '\0';
}

bool nt_system_read(struct nt_system *system, uint32_t pid, uint32_t tid,
		    struct nt_system_total *ret_total)
{
	const uint32_t slot = pid ? slot_of(system, pid) : NT_HOST_PROCESSES;
	const uint64_t now_ns = nt_clock_boot_ns();
	struct nt_system_total total = {0};
	struct nt_host_process *process;

	if (slot == NT_HOST_PROCESSES)
		return false;
	choose_thread(system, slot, tid);
	if (!read_switches(system, slot, now_ns, &total))
		return false;
	process = &system->loader.process[slot];
	total.observed_ns = attached_until(system, now_ns) - system->enrolled_ns[slot];
	total.is_shed = !system->loader.is_attached;
	total.is_estimated = is_sliced(system);
	total.reclaim_ns = process->reclaim_ns;
	total.compaction_ns = process->compaction_ns;
	total.retransmits = process->retransmits;
	total.resets = process->resets_sent + process->resets_received;
	total.oom_kills = process->oom_kills;
	nt_system_devices_read(process, &total);
	read_takers(system, slot, gap_until(system, now_ns), &total);
	*ret_total = total;
	return true;
}

double nt_system_switch_share(const struct nt_system *system, uint64_t boot_ns)
{
	return nt_switch_share_at(&system->share, boot_ns);
}

void nt_system_stats(const struct nt_system *system, struct nt_system_stats *ret_stats)
{
	const struct nt_system_loader *loader = &system->loader;
	struct nt_system_stats stats = {
		.processes = system->processes,
		.is_attached = loader->is_attached,
		.is_shed = system->processes && !loader->is_attached,
		.is_sliced = system->processes && is_sliced(system),
		.sheds = system->budget.sheds,
		.slices = system->budget.slices,
		.cost_ns = (uint64_t)system->budget.cost,
		.switch_ns = system->budget.costs.switch_ns,
		.side_ns = system->budget.costs.side_ns,
		.absent = loader->absent,
		.processes_over_cap = system->processes_over_cap,
		.threads_over_cap = system->threads_over_cap,
		.helpers_over_cap = system->helpers_over_cap,
		.events = system->events,
		.events_dropped = system->events_dropped,
		.takers_dropped = system->takers_dropped,
		.devices_dropped = system->devices_dropped,
		.sockets_unowned = loader->programs->bss->sockets_unowned,
		.missed = nt_system_loader_missed(loader),
		.attach_failures = loader->attach_failures,
		.oom_kills = loader->programs->bss->oom_kills,
	};

	for (uint32_t i = 0; i < NT_HOST_PROCESSES; i++) {
		if (!system->pid[i])
			continue; /* so that its page stays untouched */
		stats.threads += nt_host_taken(&loader->process[i].threads);
		stats.helpers += nt_host_taken(&loader->process[i].helpers);
		stats.threads_over_cap += loader->process[i].threads_over_cap;
		stats.helpers_over_cap += loader->process[i].helpers_over_cap;
		stats.events_dropped += loader->process[i].events_dropped;
		stats.takers_dropped += loader->process[i].takers_dropped;
		stats.devices_dropped += loader->process[i].devices_dropped;
	}
	*ret_stats = stats;
}

/* ---- opening -------------------------------------------------------------------------------- */

int nt_system_new(const struct nt_system_options *options, struct nt_system **ret_system)
{
	nt_auto(nt_system) struct nt_system *system = calloc(1, sizeof(*system));
	int r;

	if (!system)
		return -ENOMEM;
	system->options = *options;
	system->budget.budget = options->budget;
	system->share.now = 1.0;
	r = nt_system_loader_open(&system->loader, options->ring_bytes, take_event, system);
	if (r < 0)
		return r;
	nt_system_cost_measure(&system->loader, 0, &system->budget.costs);
	*ret_system = nt_take(system);
	return 0;
}

void nt_system_free(struct nt_system *system)
{
	if (!system)
		return;
	nt_system_loader_close(&system->loader);
	free(system);
}
