/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Holds windows of processes with unknown tenants: the API server has not named their pod yet. They
 * are kept encoded, which copies all that they borrow, and are sent once the tenant is decided.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/steps/window.h"
#include "agent/tracker/tracker_impl.h"

/* ---- tenants -------------------------------------------------------------------------------- */

static bool is_contained(const struct nt_process *process)
{
	const struct nt_cgroup *cgroup = &process->facts.cgroup;

	return (cgroup->pod[0] || cgroup->container[0]) && !nt_tenant_is_delegated(cgroup);
}

bool nt_tracker_settle(struct nt_tracker *tracker, struct nt_process *process, bool must)
{
	const struct nt_tracker_source *source = &tracker->options.source;
	enum nt_tenant_stated stated = NT_TENANT_NEVER;
	struct nt_tenant *tenant = &process->tenant;

	if (source->locate)
		stated = source->locate(source->data, &process->facts.cgroup, &process->placement);
	if (tenant->scope[0] && !tenant->is_private)
		return true;
	if (!is_contained(process))
		stated = NT_TENANT_NEVER;
	if (stated == NT_TENANT_STATED && process->placement.namespace[0]) {
		tracker->stats.tenants_late += tenant->scope[0] != '\0';
		nt_tenant_of_namespace(process->placement.namespace, tenant);
		return true;
	}
	if (tenant->scope[0])
		return true;
	if (stated == NT_TENANT_NEVER && process->facts.has_uid) {
		nt_tenant_of_user(process->facts.uid, tenant);
		return true;
	}
	if (stated != NT_TENANT_NEVER && !must)
		return false;
	tracker->stats.tenants_unknown++;
	if (stated == NT_TENANT_NEVER)
		nt_tenant_of_process(tracker->options.boot, process->pid, process->start_ns,
				     tenant);
	else
		nt_tenant_of_cgroup(&process->facts.cgroup, tenant);
	return true;
}

/* ---- held windows --------------------------------------------------------------------------- */

/* Held bytes of all processes of the pod or container. */
static size_t share_of(const struct nt_tracker *tracker, const struct nt_cgroup *cgroup)
{
	bool is_pod = cgroup->pod[0];
	size_t bytes = 0;

	for (const struct nt_process *p = tracker->processes; p; p = p->hh.next) {
		if (p->held && strcmp(is_pod ? p->facts.cgroup.pod : p->facts.cgroup.container,
				      is_pod ? cgroup->pod : cgroup->container) == 0)
			bytes += p->held_bytes;
	}
	return bytes;
}

static void account(struct nt_tracker *tracker, struct nt_process *process,
		    const struct nt_held *held, bool comes)
{
	size_t bytes = sizeof(*held) + held->size;

	process->held_bytes = comes ? process->held_bytes + bytes : process->held_bytes - bytes;
	tracker->stats.held_bytes =
		comes ? tracker->stats.held_bytes + bytes : tracker->stats.held_bytes - bytes;
	tracker->stats.held += comes ? 1 : -1ULL;
	tracker->stats.held_so_far += comes;
}

static bool has_room(const struct nt_tracker *tracker, const struct nt_process *process,
		     size_t size)
{
	size_t bytes = sizeof(struct nt_held) + size;

	return tracker->stats.held_bytes + bytes <= NT_TRACKER_HELD_BYTES &&
	       share_of(tracker, &process->facts.cgroup) + bytes <= NT_TRACKER_HELD_SHARE;
}

bool nt_tracker_hold(struct nt_tracker *tracker, struct nt_rank *rank,
		     const struct nt_window *window)
{
	struct nt_process *process = rank->process;
	const struct nt_message message = {
		.body = NT_BODY_WINDOW,
		.window = *window,
	};
	nt_autobuf struct nt_buf buf = {0};
	struct nt_held *held;

	if (nt_message_encode(&message, &buf) < 0 || !has_room(tracker, process, buf.len))
		return false;
	held = malloc(sizeof(*held) + buf.len);
	if (!held)
		return false;
	*held = (struct nt_held){
		.rank = rank,
		.start_ns = window->start_boot_ns,
		.size = buf.len,
	};
	memcpy(held->data, buf.data, buf.len);
	if (process->held) {
		process->held_last->next = held;
	} else {
		process->held = held;
		process->held_since_ns = window->end_boot_ns;
		tracker->waiting++;
	}
	process->held_last = held;
	if (!rank->held_ns)
		rank->held_ns = held->start_ns;
	account(tracker, process, held, true);
	return true;
}

/* First start of the rank's windows, which are in order; 0: none. */
static uint64_t first_start(const struct nt_held *held, const struct nt_rank *rank)
{
	for (; held; held = held->next) {
		if (held->rank == rank)
			return held->start_ns;
	}
	return 0;
}

/* Takes the oldest, which the caller frees. */
static struct nt_held *take(struct nt_tracker *tracker, struct nt_process *process)
{
	struct nt_held *held = process->held;

	process->held = held->next;
	held->rank->held_ns = first_start(process->held, held->rank);
	if (!process->held) {
		process->held_last = NULL;
		tracker->waiting--;
	}
	account(tracker, process, held, false);
	return held;
}

void nt_tracker_discard(struct nt_tracker *tracker, struct nt_process *process)
{
	while (process->held)
		free(take(tracker, process));
}

/* ---- release -------------------------------------------------------------------------------- */

static void fix_keys(struct nt_tracker *tracker, struct nt_process *process)
{
	for (const struct nt_held *held = process->held; held; held = held->next) {
		if (!held->rank->key[0])
			(void)nt_tracker_fix_key(tracker, held->rank);
	}
}

static void hand_out(struct nt_tracker *tracker, const struct nt_held *held)
{
	const struct nt_tracker_sink *sink = &tracker->options.sink;
	struct nt_rank *rank = held->rank;
	struct nt_tracker_key *key = nt_tracker_join_key(tracker, rank);
	nt_auto(nt_message) struct nt_message *message = NULL;

	if (!key)
		return; /* counted there */
	if (nt_message_decode(held->data, held->size, &message) < 0) {
		tracker->stats.no_memory++;
		return;
	}
	nt_window_name(rank, &message->window.rank);
	key->watermark_ns = nt_tracker_watermark(key, tracker->now_ns);
	key->sent_ns = tracker->now_ns;
	sink->window(sink->data, rank->key, &message->window, key->watermark_ns);
}

static void hand_out_all(struct nt_tracker *tracker, struct nt_process *process)
{
	while (process->held) {
		nt_autofree struct nt_held *held = take(tracker, process);

		hand_out(tracker, held);
	}
}

void nt_tracker_release_one(struct nt_tracker *tracker, struct nt_process *process)
{
	if (!process->ranks)
		return;
	(void)nt_tracker_settle(tracker, process, true);
	fix_keys(tracker, process);
	hand_out_all(tracker, process);
}

/* All get their keys before the first is sent: watermarks then include what is still held. */
void nt_tracker_release(struct nt_tracker *tracker, uint64_t now_ns)
{
	if (!tracker->waiting)
		return;
	for (struct nt_process *p = tracker->processes; p; p = p->hh.next) {
		if (p->held &&
		    nt_tracker_settle(tracker, p, now_ns >= p->held_since_ns + NT_TRACKER_HELD_NS))
			fix_keys(tracker, p);
	}
	for (struct nt_process *p = tracker->processes; p; p = p->hh.next) {
		if (p->held && p->tenant.scope[0])
			hand_out_all(tracker, p);
	}
}
