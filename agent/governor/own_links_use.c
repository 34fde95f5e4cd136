/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The use of a file by a process: its own links. */
#include <errno.h>
#include <stdlib.h>

#include "agent/governor/own_links_impl.h"
#include "common/system/clock.h"

#define LOOK_NS (10 * NT_MILLISECOND)

void nt_own_detach(struct nt_own_links *own, uint64_t owner, struct nt_link_set *link_set)
{
	if (link_set)
		nt_linker_drop(own->linker, owner, link_set);
}

void nt_own_drop_link_set(struct nt_own_links *own, struct nt_own_use *use)
{
	nt_own_detach(own, use->process->owner, nt_take(use->link_set));
	use->made = 0;
}

struct nt_own_process *nt_own_find_process(const struct nt_own_links *own, uint32_t pid)
{
	struct nt_own_process *process = NULL;

	HASH_FIND(hh, own->process, &pid, sizeof(pid), process);
	return process;
}

struct nt_own_file *nt_own_find_file(const struct nt_own_links *own, uintptr_t key)
{
	struct nt_own_file *file = NULL;

	HASH_FIND(hh, own->file, &key, sizeof(key), file);
	return file;
}

bool nt_own_is_split_off(const struct nt_own_file *file, const struct nt_probe_target *target)
{
	return file->split == NT_ATTACHED_ALL || !target->stays;
}

/* The wanted state of a use, as a number: 0 for nothing attached. */
static uint64_t wanted_of(const struct nt_own_use *use)
{
	const struct nt_own_process *process = use->process;
	const struct nt_own_file *file = use->file;

	if (file->phase == PHASE_SHARED || file->phase == PHASE_LEAVING)
		return 0;
	return 1 + process->on + 2ULL * (uint64_t)file->split + 8 * process->plan.version;
}

/* The targets to attach for the use, or to look at, by the plan. */
static size_t choose(const struct nt_own_use *use, bool look, struct nt_probe_target *ret_target)
{
	const struct nt_own_process *process = use->process;
	const struct nt_governor_plan *plan = &process->plan;
	size_t targets, n = 0;
	const struct nt_probe_target *target = nt_attached_targets(use->file->attached, &targets);

	for (size_t i = 0; i < targets; i++) {
		bool hot = nt_governor_is_hot(plan, target[i].row);

		if (!nt_own_is_split_off(use->file, &target[i]) || hot != look)
			continue;
		if (!look && !target[i].stays &&
		    (!process->on || (plan->shed >> target[i].subject & 1)))
			continue;
		ret_target[n++] = target[i];
	}
	return n;
}

struct nt_own_request *nt_own_request_new(struct nt_own_links *own, const struct nt_own_use *use,
					  bool look)
{
	struct nt_own_request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->token = ++own->tokens;
	request->pid = use ? use->process->pid : 0;
	request->owner = use ? use->process->owner : 0;
	request->file = use ? use->file->key : 0;
	request->look = look;
	HASH_ADD(hh, own->request, token, sizeof(request->token), request);
	if (request->is_lost) {
		free(request);
		return NULL;
	}
	return request;
}

void nt_own_forget(struct nt_own_links *own, struct nt_own_request *request)
{
	HASH_DEL(own->request, request);
	free(request);
}

/* ---- pauses ---------------------------------------------------------------------------------- */

void nt_own_pause(struct nt_own_links *own, struct nt_own_process *process, uint64_t boot_ns)
{
	if (process->paused_ns)
		return;
	process->paused_ns = boot_ns;
	own->hooks.paused(own->hooks.data, process->pid, boot_ns);
}

static void resume_process(struct nt_own_links *own, struct nt_own_process *process,
			   uint64_t boot_ns)
{
	if (!process->paused_ns)
		return;
	process->unobserved_ns += boot_ns - process->paused_ns;
	process->paused_ns = 0;
	process->resumed_ns = boot_ns;
	own->hooks.resumed(own->hooks.data, process->pid, boot_ns);
}

/*
 * Requests the links of a use, or a look at hot functions. 1: they are being made; 0: there is
 * nothing to attach; negative: the request failed, and has to be repeated.
 */
int nt_own_make(struct nt_own_links *own, struct nt_own_use *use, bool look)
{
	size_t all;
	nt_autofree struct nt_probe_target *target = NULL;
	struct nt_linker_request wanted;
	struct nt_own_request *request;
	size_t n;
	int r;

	/* Checked first, since it is cheap and often fails under load. */
	if (!nt_linker_has_room(own->linker, use->process->owner, look))
		return -EAGAIN;
	(void)nt_attached_targets(use->file->attached, &all);
	target = calloc(all + 1, sizeof(*target));
	if (!target)
		return -ENOMEM;
	n = choose(use, look, target);
	if (!n)
		return 0;
	request = nt_own_request_new(own, use, look);
	if (!request)
		return -ENOMEM;
	wanted = (struct nt_linker_request){
		.token = request->token,
		.owner = use->process->owner,
		.fd = nt_attached_fd(use->file->attached),
		.pid = use->process->pid,
		.target = target,
		.targets = n,
		.look_ns = look ? LOOK_NS : 0,
	};
	r = nt_linker_make(own->linker, &wanted);
	if (r < 0) {
		nt_own_forget(own, request);
		return r;
	}
	if (look) {
		use->process->looks++;
		own->stats.looks++;
	} else {
		use->token = request->token;
		use->making = wanted_of(use);
	}
	return 1;
}

/* True if calls in the file are observed by own links alone. */
bool nt_own_is_cut(const struct nt_own_file *file)
{
	return nt_attached_split(file->attached) != NT_ATTACHED_SHARED;
}

/* Moves a use towards its wanted state. */
void nt_own_pursue(struct nt_own_links *own, struct nt_own_use *use)
{
	uint64_t wanted = wanted_of(use);
	bool had = use->link_set != NULL;
	int r;

	if (use->token || use->made == wanted || use->ended || use->file->phase == PHASE_LEAVING ||
	    (use->retry_ns && nt_clock_boot_ns() < use->retry_ns))
		return;
	use->retry_ns = 0;
	nt_own_drop_link_set(own, use);
	if (!wanted)
		return;
	r = nt_own_make(own, use, false);
	if (r == 0)
		use->made = wanted; /* nothing to attach: the state is reached at once */
	else if (r < 0)
		own->stats.put_off++; /* retried at the next tick */
	/* Its calls are not observed until the new links are made. */
	if (nt_own_is_cut(use->file) && (had || r != 0))
		nt_own_pause(own, use->process, nt_clock_boot_ns());
}

/* True if the use has all the own links that it needs. */
bool nt_own_is_settled(const struct nt_own_use *use)
{
	return use->ended || use->file->phase == PHASE_LEAVING || use->made == wanted_of(use);
}

/* Ends the pause of a process once all its links are made, or the file is shared again. */
void nt_own_review(struct nt_own_links *own, struct nt_own_process *process)
{
	if (!process->paused_ns || !process->on)
		return;
	for (size_t i = 0; i < process->uses; i++)
		if (!nt_own_is_settled(process->use[i]))
			return;
	resume_process(own, process, nt_clock_boot_ns());
}
