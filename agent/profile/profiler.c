/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/profile/profiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"

struct profiler_slot {
	struct nt_worker *worker; /* NULL: unused */
	struct nt_profiler_order order;
	uint64_t until_ns; /* monotonic; then it is late */
	struct nt_profile *profile; /* owned: what has arrived */
	size_t arrived;
};

struct nt_profiler {
	struct nt_workers *workers;
	nt_profiler_done *done;
	void *data;
	struct profiler_slot slot[NT_PROFILER_TASKS];
	struct nt_profiler_stats stats;
	uint8_t piece[NT_WORKER_BYTES];
};

int nt_profiler_new(struct nt_workers *workers, nt_profiler_done *done, void *data,
		    struct nt_profiler **ret_profiler)
{
	struct nt_profiler *profiler = calloc(1, sizeof(*profiler));

	if (!profiler)
		return -ENOMEM;
	profiler->workers = workers;
	profiler->done = done;
	profiler->data = data;
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

int nt_profiler_begin(struct nt_profiler *profiler, const struct nt_profiler_order *order)
{
	for (size_t i = 0; i < NT_PROFILER_TASKS; i++) {
		struct profiler_slot *slot = &profiler->slot[i];
		int r;

		if (slot->worker)
			continue;
		slot->order = *order;
		slot->until_ns = nt_clock_mono_ns() +
				 (order->task.wish.seconds + NT_PROFILER_LATE_S) * NT_SECOND;
		r = begin_slot(profiler, slot);
		if (r < 0) {
			profiler->stats.failed++;
			release_slot(profiler, slot);
		}
		return r;
	}
	profiler->stats.refused++;
	return -EAGAIN;
}

/* ---- answers --------------------------------------------------------------------------------- */

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
		profiler->stats.taken++;
	else
		profiler->stats.failed++;
	release_slot(profiler, slot);
	if (r == 0)
		profiler->done(profiler->data, &order, nt_take(result));
}

/* 1: all has arrived. 0: not yet. Negative: the answer is malformed, or the worker has died. */
static int take_pieces(struct nt_profiler *profiler, struct profiler_slot *slot)
{
	for (;;) {
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
			return nt_profile_check(slot->profile) < 0 ? -EBADMSG : 1;
	}
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
		end_slot(profiler, slot, r > 0);
	}
}

const struct nt_profiler_stats *nt_profiler_stats(const struct nt_profiler *profiler)
{
	return &profiler->stats;
}
