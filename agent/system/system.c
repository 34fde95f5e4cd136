/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/system/system.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/system/system_impl.h"
#include "common/system/clock.h"
#include "host.skel.h"

enum {
	POLL_LOOK = 16, /* events between two reads of the clock: a power of two */
	TENTHS = 10,
};

#define POLL_NS NT_MILLISECOND

struct nt_system {
	struct nt_system_options options;
	struct nt_system_loader loader;
	struct nt_event_budget budget;
	uint32_t pid[NT_HOST_PROCESSES]; /* of a slot; 0: free */
	uint64_t start_boot_ns[NT_HOST_PROCESSES]; /* of that process */
	uint64_t enrolled_ns[NT_HOST_PROCESSES]; /* attached time at that moment */
	uint32_t processes;
	uint64_t attached_ns, attached_since_ns; /* boot time so far; since when, 0: not now */
	uint64_t processes_over_cap, threads_over_cap;
	/* Of processes that have left, and single events so far. */
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

void nt_system_poll(struct nt_system *system)
{
	system->polled = 0;
	system->poll_end_ns = nt_clock_mono_ns() + POLL_NS;
	(void)ring_buffer__consume(system->loader.ring);
}

void nt_system_set_level(struct nt_system *system, uint32_t pid, uint64_t start_boot_ns,
			 uint32_t level)
{
	const uint32_t slot = slot_of(system, pid);

	if (slot < NT_HOST_PROCESSES && system->start_boot_ns[slot] == start_boot_ns)
		__atomic_store_n(&system->loader.process[slot].level, level, __ATOMIC_RELAXED);
}

/* ---- attaching ------------------------------------------------------------------------------ */

static void set_attached(struct nt_system *system, uint64_t now_ns)
{
	struct nt_system_loader *loader = &system->loader;
	const bool was = loader->is_attached;

	nt_system_loader_set(loader,
			     system->processes ? system->budget.state : NT_EVENT_BUDGET_NOTHING);
	nt_event_budget_changed(&system->budget);
	if (was && !loader->is_attached) {
		system->attached_ns += now_ns - system->attached_since_ns;
		system->attached_since_ns = 0;
	} else if (!was && loader->is_attached) {
		system->attached_since_ns = now_ns;
	}
}

static uint64_t attached_until(const struct nt_system *system, uint64_t now_ns)
{
	return system->attached_ns +
	       (system->attached_since_ns ? now_ns - system->attached_since_ns : 0);
}

bool nt_system_tick(struct nt_system *system, uint64_t boot_ns, double busy_cores)
{
	const enum nt_event_budget_state was = system->budget.state;
	struct nt_event_budget_load load = {.now_ns = boot_ns, .busy_cores = busy_cores};

	if (!system->processes)
		return false;
	nt_system_loader_load(&system->loader, &load);
	if (nt_event_budget_take(&system->budget, &load) == was)
		return false;
	set_attached(system, boot_ns);
	return true;
}

/* ---- processes ------------------------------------------------------------------------------ */

void nt_system_enrol(struct nt_system *system, uint32_t pid, uint64_t start_boot_ns)
{
	const uint64_t now_ns = nt_clock_boot_ns();
	uint32_t slot = slot_of(system, pid);

	if (!pid)
		return;
	if (slot < NT_HOST_PROCESSES) {
		if (system->start_boot_ns[slot] == start_boot_ns)
			return;
		nt_system_leave(system, pid, system->start_boot_ns[slot]);
	}
	slot = slot_of(system, 0);
	if (slot == NT_HOST_PROCESSES) {
		system->processes_over_cap++;
		return;
	}
	system->loader.process[slot] = (struct nt_host_process){
		.tgid = pid, .events_max = system->options.events_max / TENTHS};
	system->pid[slot] = pid;
	system->start_boot_ns[slot] = start_boot_ns;
	if (system->processes++ == 0)
		set_attached(system, now_ns);
	system->enrolled_ns[slot] = attached_until(system, now_ns);
	system->threads_over_cap += nt_system_members_add(&system->loader, pid, slot);
}

void nt_system_leave(struct nt_system *system, uint32_t pid, uint64_t start_boot_ns)
{
	const uint32_t slot = slot_of(system, pid);
	struct nt_host_process *process;

	if (!pid || slot == NT_HOST_PROCESSES || system->start_boot_ns[slot] != start_boot_ns)
		return;
	process = &system->loader.process[slot];
	nt_system_members_remove(&system->loader, slot);
	system->takers_dropped += process->takers_dropped;
	system->devices_dropped += process->devices_dropped;
	system->events_dropped += process->events_dropped;
	*process = (struct nt_host_process){0};
	system->pid[slot] = 0;
	if (--system->processes == 0)
		set_attached(system, nt_clock_boot_ns());
}

/* ---- reading -------------------------------------------------------------------------------- */

/* What the thread waits for now belongs to its sums, although it has not ended. */
static void read_thread(const struct nt_system *system, uint32_t tid, uint32_t slot,
			uint64_t now_ns, struct nt_system_total *total)
{
	struct nt_host_thread thread;

	if (bpf_map_lookup_elem(bpf_map__fd(system->loader.programs->maps.threads), &tid, &thread) <
		    0 ||
	    thread.slot != slot || thread.reason >= NT_HOST_WAITS)
		return;
	total->thread = thread.times;
	total->thread.wait_ns[thread.reason] += thread.off_ns;
	if (thread.out_ns && now_ns > thread.out_ns && system->attached_since_ns)
		total->thread.wait_ns[thread.reason == NT_HOST_WAIT_RUN_QUEUE && thread.is_throttled
					      ? NT_HOST_WAIT_QUOTA
					      : thread.reason] += now_ns - thread.out_ns;
}

/* As the kernel calls it, such as sda; else its numbers. */
static void name_device(uint32_t device, char *name)
{
	char path[64], target[PATH_MAX];
	ssize_t len;

	(void)snprintf(name, NT_SYSTEM_DEVICE_NAME, "%u:%u", device >> 20, device & 0xfffff);
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", device >> 20, device & 0xfffff);
	len = readlink(path, target, sizeof(target) - 1);
	if (len <= 0)
		return;
	target[len] = '\0';
	(void)snprintf(name, NT_SYSTEM_DEVICE_NAME, "%.31s", basename(target));
}

static void read_devices(const struct nt_host_process *process, struct nt_system_total *total)
{
	const struct nt_host_device *most = NULL;

	for (int i = 0; i < NT_HOST_DEVICES; i++) {
		const struct nt_host_device *device = &process->device[i];

		total->requests += device->requests;
		total->request_ns += device->ns;
		if (device->device && (!most || device->ns > most->ns))
			most = device;
	}
	if (!most)
		return;
	total->device_requests = most->requests;
	total->device_ns = most->ns;
	name_device(most->device, total->device);
}

/* The kernel side goes on with the other bank, which is empty. */
static void read_takers(struct nt_host_process *process, struct nt_system_total *total)
{
	const uint32_t bank = __atomic_load_n(&process->bank, __ATOMIC_RELAXED) & 1;
	const struct nt_host_taker *taker = process->taker[bank];

	memset(process->taker[bank ^ 1], 0, sizeof(process->taker[0]));
	__atomic_store_n(&process->bank, bank ^ 1, __ATOMIC_RELEASE);
	for (int i = 0; i < NT_HOST_TAKERS; i++) {
		total->taken_ns += taker[i].ns;
		if (taker[i].tgid && taker[i].ns > total->taker.ns)
			total->taker = taker[i];
	}
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
	process = &system->loader.process[slot];
	total.observed_ns = attached_until(system, now_ns) - system->enrolled_ns[slot];
	total.is_shed = !system->loader.is_attached;
	read_thread(system, tid, slot, now_ns, &total);
	memcpy(total.wait_ns, process->wait_ns, sizeof(total.wait_ns));
	memcpy(total.helper_wait_ns, process->helper_wait_ns, sizeof(total.helper_wait_ns));
	total.reclaim_ns = process->reclaim_ns;
	total.compaction_ns = process->compaction_ns;
	total.retransmits = process->retransmits;
	total.resets = process->resets_sent + process->resets_received;
	total.oom_kills = process->oom_kills;
	read_devices(process, &total);
	read_takers(process, &total);
	*ret_total = total;
	return true;
}

void nt_system_stats(const struct nt_system *system, struct nt_system_stats *ret_stats)
{
	const struct nt_system_loader *loader = &system->loader;
	struct nt_system_stats stats = {
		.processes = system->processes,
		.is_attached = loader->is_attached,
		.is_shed = system->processes && !loader->is_attached,
		.sheds = system->budget.sheds,
		.cost_ns = (uint64_t)system->budget.cost,
		.switch_ns = system->budget.costs.switch_ns,
		.side_ns = system->budget.costs.side_ns,
		.absent = loader->absent,
		.processes_over_cap = system->processes_over_cap,
		.threads_over_cap =
			system->threads_over_cap + loader->programs->bss->threads_over_cap,
		.helpers_over_cap = loader->programs->bss->helpers_over_cap,
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
