/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Splits and joins of a file: its shared links are replaced by own links, and restored. */
#include <errno.h>
#include <stdlib.h>

#include "agent/governor/own_links_impl.h"
#include "common/system/clock.h"

#define LINGER_NS                                                                                  \
	(500 * NT_MILLISECOND) /* for returns of calls that were entered by a shared link */
#define LINGER_MAX_NS (60 * NT_SECOND) /* while a neighbour is inside such a call */
#define JOIN_NS       (10 * NT_SECOND) /* without a governed process */
#define OPEN_NS       (5 * NT_SECOND) /* latest time for the cut */
#define RETRY_NS      (1 * NT_SECOND) /* after the kernel refused links */

static bool is_governed(const struct nt_own_file *file, enum nt_attached_split *ret_split)
{
	bool governed = false;

	*ret_split = file->merged ? NT_ATTACHED_ALL : NT_ATTACHED_BUT_STAYING;
	for (const struct nt_own_use *use = file->uses; use; use = use->next) {
		const struct nt_governor_plan *plan = &use->process->plan;
		size_t targets;
		const struct nt_probe_target *target =
			nt_attached_targets(file->attached, &targets);

		governed |= plan->governed;
		for (size_t i = 0; plan->hot_count && i < targets; i++)
			if (target[i].stays && nt_governor_is_hot(plan, target[i].row))
				*ret_split = NT_ATTACHED_ALL;
	}
	return governed;
}

static void begin_split(struct nt_own_links *own, struct nt_own_file *file,
			enum nt_attached_split split, uint64_t boot_ns)
{
	file->opened_ns = boot_ns;
	file->opened = own->uses;
	file->phase = PHASE_OPENING;
	file->split = split;
}

/* True if a process of the file is not governed. */
static bool has_neighbour(const struct nt_own_file *file)
{
	for (const struct nt_own_use *use = file->uses; use; use = use->next)
		if (!use->process->plan.governed)
			return true;
	return false;
}

/* Processes that started later are not waited for: they could be started without end. */
static bool all_settled(const struct nt_own_file *file)
{
	for (const struct nt_own_use *use = file->uses; use; use = use->next)
		if (use->number <= file->opened && !nt_own_is_settled(use))
			return false;
	return true;
}

/* The cut: own links count from now on. */
static void cut(struct nt_own_links *own, struct nt_own_file *file)
{
	uint64_t now_ns = nt_clock_boot_ns();
	struct nt_link_set *shared = nt_attach_split(own->attach, file->attached, file->split);

	if (!shared)
		return; /* retried by the next tick */
	file->cut_ns = now_ns;
	file->shared = shared;
	file->phase = PHASE_LINGERING;
	own->stats.splits++;
	for (struct nt_own_use *use = file->uses; use; use = use->next) {
		use->has_own = true;
		if (!use->process->on || !nt_own_is_settled(use))
			nt_own_pause(own, use->process, now_ns);
	}
}

static void request_shared(struct nt_own_links *own, struct nt_own_file *file)
{
	size_t all, n = 0;
	const struct nt_probe_target *target = nt_attached_targets(file->attached, &all);
	nt_autofree struct nt_probe_target *chosen = calloc(all + 1, sizeof(*chosen));
	struct nt_own_request *request = chosen ? nt_own_request_new(own, NULL, false) : NULL;
	struct nt_linker_request wanted;

	if (!request)
		return;
	for (size_t i = 0; i < all; i++)
		if (nt_own_is_split_off(file, &target[i]))
			chosen[n++] = target[i];
	request->file = file->key;
	request->shared = true;
	wanted = (struct nt_linker_request){
		.token = request->token,
		.fd = nt_attached_fd(file->attached),
		.target = chosen,
		.targets = n,
	};
	if (nt_linker_make(own->linker, &wanted) < 0) {
		nt_own_forget(own, request);
		return;
	}
	file->token = request->token;
	file->phase = PHASE_JOINING;
}

/* The shared links could not be made, or not be moved into the file. */
void nt_own_part(struct nt_own_links *own, struct nt_own_file *file)
{
	own->stats.failed++;
	file->phase = PHASE_SPLIT;
	file->retry_ns = nt_clock_boot_ns() + RETRY_NS;
}

void nt_own_joined(struct nt_own_links *own, struct nt_own_file *file, struct nt_link_set *link_set)
{
	uint64_t now_ns = nt_clock_boot_ns();
	int r = nt_attach_join(own->attach, file->attached, false, link_set);

	nt_own_detach(own, 0, link_set);
	if (r < 0) {
		nt_own_part(own, file);
		return;
	}
	file->merged |= file->split == NT_ATTACHED_ALL;
	file->cut_ns = now_ns;
	file->phase = PHASE_LEAVING;
	own->stats.joins++;
}

static bool is_inside(const struct nt_own_links *own, const struct nt_own_use *use)
{
	return use->inside_ns && use->inside_ns == own->looked_ns;
}

/* True if links used by calls from before the cut can be freed. */
static bool has_lingered(const struct nt_own_links *own, const struct nt_own_file *file,
			 uint64_t boot_ns)
{
	if (boot_ns < file->cut_ns + LINGER_NS)
		return false;
	if (boot_ns >= file->cut_ns + LINGER_MAX_NS || !own->looked_ns)
		return true;
	if (own->looked_ns < file->cut_ns)
		return false;
	for (const struct nt_own_use *use = file->uses; use; use = use->next)
		if (!use->process->plan.governed && is_inside(own, use))
			return false;
	return true;
}

/* Reports calls whose returns will be lost. */
static void miss_calls(struct nt_own_links *own, const struct nt_own_file *file)
{
	for (const struct nt_own_use *use = file->uses; use; use = use->next)
		if (is_inside(own, use))
			own->hooks.missed(own->hooks.data, use->process->pid);
}

void nt_own_tick_file(struct nt_own_links *own, struct nt_own_file *file, uint64_t boot_ns)
{
	enum nt_attached_split split;
	bool governed = is_governed(file, &split);

	if (governed)
		file->calm_ns = 0;
	else if (!file->calm_ns)
		file->calm_ns = boot_ns;
	switch (file->phase) {
	case PHASE_SHARED:
		if (governed)
			begin_split(own, file, split, boot_ns);
		break;
	case PHASE_OPENING:
		/* If all are governed a gap does no harm, and the cut relieves them sooner. */
		if (has_neighbour(file) && !all_settled(file) &&
		    boot_ns < file->opened_ns + OPEN_NS)
			break;
		cut(own, file);
		if (file->phase != PHASE_LINGERING)
			break;
		/* fall through */
	case PHASE_LINGERING:
		if (has_lingered(own, file, boot_ns) || !has_neighbour(file)) {
			miss_calls(own, file);
			nt_own_detach(own, 0, nt_take(file->shared));
			file->phase = PHASE_SPLIT;
		}
		break;
	case PHASE_SPLIT:
		if (governed && split > file->split)
			begin_split(own, file, split, boot_ns);
		else if (!governed && boot_ns >= file->calm_ns + JOIN_NS && !file->token &&
			 nt_clock_boot_ns() >= file->retry_ns)
			request_shared(own, file);
		break;
	case PHASE_JOINING:
		break;
	case PHASE_LEAVING:
		if (has_lingered(own, file, boot_ns)) {
			miss_calls(own, file);
			for (struct nt_own_use *use = file->uses; use; use = use->next) {
				nt_own_drop_link_set(own, use);
				use->ended = use->has_own = false;
				use->retry_ns = 0;
			}
			file->phase = PHASE_SHARED;
		}
		break;
	}
	for (struct nt_own_use *use = file->uses; use; use = use->next)
		if (file->phase != PHASE_SHARED)
			nt_own_pursue(own, use);
}
