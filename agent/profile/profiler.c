/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/profile/profiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"

enum {
	PIECES =
		64, /* taken in one turn: more than a profile has, unless the worker is compromised */
};

_Static_assert(PIECES > sizeof(struct nt_profile) / NT_PROFILE_PIECE + 1, "one turn is enough");

struct profiler_slot {
	struct nt_worker *worker; /* NULL: unused */
	struct nt_profiler_order order;
	uint64_t until_ns; /* monotonic; then it is late */
	struct nt_profile *profile; /* owned: what has arrived */
	size_t arrived;
};

struct nt_profiler {
	struct nt_workers *workers;
	struct nt_quarantine *quarantine;
	struct nt_profiler_hooks hooks;
	struct profiler_slot slot[NT_PROFILER_TASKS];
	struct nt_profiler_stats stats;
	uint8_t piece[NT_WORKER_BYTES];
};

int nt_profiler_new(struct nt_workers *workers, struct nt_quarantine *quarantine,
		    const struct nt_profiler_hooks *hooks, struct nt_profiler **ret_profiler)
{
	struct nt_profiler *profiler = calloc(1, sizeof(*profiler));

	if (!profiler)
		return -ENOMEM;
	profiler->workers = workers;
	profiler->quarantine = quarantine;
	profiler->hooks = *hooks;
	*ret_profiler = profiler;
	return 0;
}

static void release_slot(struct nt_profiler *profiler, struct profiler_slot *slot)
{
	nt_worker_kill(profiler->workers, slot->worker);
	free(slot->profile);
	*slot = (struct profiler_slot){0};
}

void nt_profiler_free(struct nt_profiler *profiler)
{
	if (!profiler)
		return;
	for (size_t i = 0; i < NT_PROFILER_TASKS; i++)
		release_slot(profiler, &profiler->slot[i]);
	free(profiler);
}

static int begin_slot(struct nt_profiler *profiler, struct profiler_slot *slot)
{
	int r;

	slot->profile = malloc(sizeof(*slot->profile));
	if (!slot->profile)
		return -ENOMEM;
	r = nt_worker_start(profiler->workers, nt_profile_serve, &slot->worker);
	if (r == 0)
		r = nt_worker_send(slot->worker, &slot->order.task, sizeof(slot->order.task), -1);
	return r;
}

/* NULL: the order may not begin; *ret_error is why. */
static struct profiler_slot *free_slot(struct nt_profiler *profiler,
				       const struct nt_profiler_order *order, int *ret_error)
{
	struct profiler_slot *found = NULL;
	uint32_t of_owner = 0;

	for (size_t i = 0; i < NT_PROFILER_TASKS; i++) {
		struct profiler_slot *slot = &profiler->slot[i];

		if (!slot->worker)
			found = slot;
		else
			of_owner += slot->order.owner.id == order->owner.id;
	}
	if (nt_quarantine_holds(profiler->quarantine, order->task.pid, order->task.start_boot_ns,
				order->owner.id, nt_clock_boot_ns())) {
		profiler->stats.refused_held++;
		*ret_error = -EACCES;
		return NULL;
	}
	if (of_owner >= NT_PROFILER_OWNER_TASKS) {
		profiler->stats.refused_owner++;
		*ret_error = -EDQUOT;
		return NULL;
	}
	profiler->stats.refused += !found;
	*ret_error = -EAGAIN;
	return found;
}

int nt_profiler_begin(struct nt_profiler *profiler, const struct nt_profiler_order *order)
{
	int r;
	struct profiler_slot *slot = free_slot(profiler, order, &r);

	if (!slot)
		return r;
	slot->order = *order;
	slot->until_ns =
		nt_clock_mono_ns() + (order->task.wish.seconds + NT_PROFILER_LATE_S) * NT_SECOND;
	r = begin_slot(profiler, slot);
	if (r < 0) {
		profiler->stats.failed++;
		release_slot(profiler, slot);
	}
	return r;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void count_profile(struct nt_profiler *profiler, const struct nt_profile *profile)
{
	struct nt_profiler_stats *stats = &profiler->stats;

	stats->taken++;
	stats->times += profile->taken;
	stats->missed += profile->missed;
	stats->torn += profile->torn;
	stats->empty += profile->empty;
	stats->lost += profile->left_out;
}

/* Once its time is over, a worker that sleeps waits for the process. */
static void strike_late(struct nt_profiler *profiler, const struct profiler_slot *slot)
{
	const struct nt_profiler_order *order = &slot->order;
	bool held;

	if (!nt_worker_waits(slot->worker))
		return;
	held = nt_quarantine_strike(profiler->quarantine, order->task.pid,
				    order->task.start_boot_ns, order->owner.id, nt_clock_boot_ns());
	profiler->hooks.stalled(profiler->hooks.data, order->task.pid, &order->owner, held);
}

/* The slot is free before the client is called. */
static void end_slot(struct nt_profiler *profiler, struct profiler_slot *slot, bool is_whole)
{
	const struct nt_profiler_order order = slot->order;
	const struct nt_profile_wish *wish = &order.task.wish;
	nt_auto(nt_window_profile) struct nt_window_profile *result = NULL;
	int r;

	if (is_whole)
		r = nt_window_profile_new(slot->profile, order.request, wish, &result);
	else
		r = nt_window_profile_state(order.request, wish, false,
					    nt_stack_reason_text(NT_STACK_STALLED), &result);
	if (is_whole && r == 0)
		count_profile(profiler, slot->profile);
	else
		profiler->stats.failed++;
	release_slot(profiler, slot);
	if (r == 0)
		profiler->hooks.done(profiler->hooks.data, &order, nt_take(result));
}

/* 1: all has arrived. 0: not yet. Negative: it is malformed, or the worker has died. */
static int take_pieces(struct nt_profiler *profiler, struct profiler_slot *slot)
{
	for (int i = 0; i < PIECES; i++) {
		nt_autoclose int fd = -1;
		const ssize_t n =
			nt_worker_take(slot->worker, profiler->piece, sizeof(profiler->piece), &fd);

		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return (int)n;
		if ((size_t)n > sizeof(*slot->profile) - slot->arrived)
			return -EBADMSG;
		memcpy((uint8_t *)slot->profile + slot->arrived, profiler->piece, (size_t)n);
		slot->arrived += (size_t)n;
		if (slot->arrived == sizeof(*slot->profile))
			return nt_profile_check(slot->profile, &slot->order.task.wish) < 0
				       ? -EBADMSG
				       : 1;
	}
	return -EBADMSG;
}

void nt_profiler_tick(struct nt_profiler *profiler, uint64_t now_ns)
{
	for (size_t i = 0; i < NT_PROFILER_TASKS; i++) {
		struct profiler_slot *slot = &profiler->slot[i];
		int r;

		if (!slot->worker)
			continue;
		r = take_pieces(profiler, slot);
		if (r == 0 && now_ns < slot->until_ns)
			continue;
		if (r == 0)
			strike_late(profiler, slot);
		end_slot(profiler, slot, r > 0);
	}
}

const struct nt_profiler_stats *nt_profiler_stats(const struct nt_profiler *profiler)
{
	return &profiler->stats;
}
