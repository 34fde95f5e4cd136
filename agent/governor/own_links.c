/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/governor/own_links_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/identity/owner.h"
#include "common/system/clock.h"

#define LOOKS_NS (10 * NT_SECOND) /* between looks */
#define RETRY_NS (1 * NT_SECOND) /* after the kernel refused links */

int nt_own_links_new(struct nt_attach *attach, struct nt_linker *linker,
		     const struct nt_own_links_hooks *hooks, struct nt_own_links **ret_own)
{
	struct nt_own_links *own = calloc(1, sizeof(*own));

	if (!own)
		return -ENOMEM;
	own->attach = attach;
	own->linker = linker;
	own->hooks = *hooks;
	*ret_own = own;
	return 0;
}

static void unlink_use(struct nt_own_links *own, struct nt_own_use *use)
{
	struct nt_own_use **at = &use->file->uses;

	while (*at != use)
		at = &(*at)->next;
	*at = use->next;
	nt_own_drop_link_set(own, use);
	free(use);
}

static void free_process(struct nt_own_links *own, struct nt_own_process *process)
{
	while (process->uses)
		unlink_use(own, process->use[--process->uses]);
	HASH_DEL(own->process, process);
	free(process);
}

static void free_file(struct nt_own_links *own, struct nt_own_file *file)
{
	nt_own_detach(own, 0, nt_take(file->shared));
	HASH_DEL(own->file, file);
	free(file);
}

void nt_own_links_free(struct nt_own_links *own)
{
	struct nt_own_process *process, *next;
	struct nt_own_request *request, *next_request;
	struct nt_own_file *file, *next_file;

	if (!own)
		return;
	HASH_ITER(hh, own->process, process, next)
	free_process(own, process);
	HASH_ITER(hh, own->file, file, next_file)
	free_file(own, file);
	HASH_ITER(hh, own->request, request, next_request)
	{
		HASH_DEL(own->request, request);
		free(request);
	}
	free(own);
}

/* ---- uses ------------------------------------------------------------------------------------ */

static struct nt_own_process *add_process(struct nt_own_links *own, uint32_t pid, uint64_t start_ns)
{
	struct nt_own_process *process = calloc(1, sizeof(*process));
	struct nt_owner owner;

	if (!process)
		return NULL;
	process->pid = pid;
	process->start_ns = start_ns;
	if (nt_owner_read(pid, &owner) == 0)
		process->owner = owner.id;
	process->plan.permille = NT_GOVERNOR_WHOLE;
	process->on = true;
	HASH_ADD(hh, own->process, pid, sizeof(process->pid), process);
	if (process->is_lost) {
		free(process);
		return NULL;
	}
	return process;
}

static struct nt_own_file *take_file(struct nt_own_links *own, struct nt_attached *attached)
{
	uintptr_t key = (uintptr_t)attached;
	struct nt_own_file *file = nt_own_find_file(own, key);
	const struct nt_probe_target *target;
	size_t targets;

	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->key = key;
	file->attached = attached;
	target = nt_attached_targets(attached, &targets);
	for (size_t i = 0; i < targets; i++)
		file->libraries |= 1U << nt_probe_row(target[i].row)->library;
	HASH_ADD(hh, own->file, key, sizeof(file->key), file);
	if (file->is_lost) {
		free(file);
		return NULL;
	}
	return file;
}

void nt_own_links_use(struct nt_own_links *own, uint32_t pid, uint64_t start_boot_ns, dev_t dev,
		      ino_t ino)
{
	struct nt_attached *attached = nt_attach_find(own->attach, dev, ino);
	struct nt_own_process *process = nt_own_find_process(own, pid);
	struct nt_own_file *file;
	struct nt_own_use *use;

	if (!attached)
		return;
	if (process && process->start_ns != start_boot_ns) {
		free_process(own, process);
		process = NULL;
	}
	if (!process)
		process = add_process(own, pid, start_boot_ns);
	if (!process || process->uses == NT_OWN_LINKS_FILES)
		return;
	file = take_file(own, attached);
	if (!file)
		return;
	for (size_t i = 0; i < process->uses; i++)
		if (process->use[i]->file == file)
			return;
	use = calloc(1, sizeof(*use));
	if (!use)
		return;
	use->process = process;
	use->file = file;
	use->number = ++own->uses;
	use->next = file->uses;
	file->uses = use;
	process->use[process->uses++] = use;
}

bool nt_own_links_has(const struct nt_own_links *own, uint32_t pid)
{
	return nt_own_find_process(own, pid) != NULL;
}

void nt_own_links_end(struct nt_own_links *own, uint32_t pid, uint64_t start_boot_ns)
{
	struct nt_own_process *process = nt_own_find_process(own, pid);

	if (process && process->start_ns == start_boot_ns)
		free_process(own, process);
}

/* Ends the use although the process still maps the file: its calls there are lost. */
static void give_up(struct nt_own_links *own, struct nt_own_use *use)
{
	struct nt_own_process *process = use->process;
	size_t i = 0;

	while (process->use[i] != use)
		i++;
	process->use[i] = process->use[--process->uses];
	unlink_use(own, use);
	own->hooks.missed(own->hooks.data, process->pid);
}

void nt_own_links_drop(struct nt_own_links *own, dev_t dev, ino_t ino)
{
	struct nt_attached *attached = nt_attach_find(own->attach, dev, ino);
	struct nt_own_file *file = attached ? nt_own_find_file(own, (uintptr_t)attached) : NULL;

	/* A file with another name stays attached, and so do own links. */
	if (!file || nt_attached_names(attached) > 1)
		return;
	while (file->uses)
		give_up(own, file->uses);
	free_file(own, file);
}

/* ---- processes ------------------------------------------------------------------------------- */

static bool has_split_file(const struct nt_own_process *process)
{
	for (size_t i = 0; i < process->uses; i++)
		if (nt_own_is_cut(process->use[i]->file))
			return true;
	return false;
}

static void tick_process(struct nt_own_links *own, struct nt_own_process *process, uint64_t boot_ns,
			 uint64_t real_ns)
{
	const struct nt_governor_plan *plan = &process->plan;
	uint64_t slice_ns = plan->period_ns / NT_GOVERNOR_WHOLE * plan->permille;
	bool on = plan->permille >= NT_GOVERNOR_WHOLE || real_ns % plan->period_ns < slice_ns;

	if (process->on && !on && has_split_file(process))
		nt_own_pause(own, process, boot_ns);
	process->on = on;
	nt_own_review(own, process);
	if (!plan->hot_count || process->looks || boot_ns < process->looked_ns + LOOKS_NS ||
	    !has_split_file(process))
		return;
	process->looked_ns = boot_ns;
	for (size_t i = 0; i < process->uses; i++)
		own->stats.put_off += nt_own_make(own, process->use[i], true) < 0;
}

void nt_own_links_plan(struct nt_own_links *own, uint32_t pid, const struct nt_governor_plan *plan)
{
	struct nt_own_process *process = nt_own_find_process(own, pid);

	if (!process)
		return;
	if (plan->hot_count && !process->plan.hot_count)
		process->looked_ns = nt_clock_boot_ns(); /* delays the first look */
	process->plan = *plan;
}

void nt_own_links_tick(struct nt_own_links *own, uint64_t boot_ns, uint64_t real_ns)
{
	for (struct nt_own_process *p = own->process; p; p = p->hh.next)
		if (p->plan.governed || p->paused_ns || !p->on || p->plan.hot_count)
			tick_process(own, p, boot_ns, real_ns);
	for (struct nt_own_file *file = own->file; file; file = file->hh.next)
		nt_own_tick_file(own, file, boot_ns);
}

/* ---- results --------------------------------------------------------------------------------- */

static struct nt_own_use *find_use(const struct nt_own_links *own,
				   const struct nt_own_request *request)
{
	struct nt_own_process *process = nt_own_find_process(own, request->pid);

	for (size_t i = 0; process && i < process->uses; i++)
		if (process->use[i]->file->key == request->file)
			return process->use[i];
	return NULL;
}

static void take_look(struct nt_own_links *own, struct nt_own_process *process,
		      const struct nt_linker_result *result)
{
	if (process->looks)
		process->looks--;
	if (result->r == 0 && result->until_ns > result->from_ns)
		own->hooks.looked(own->hooks.data, process->pid,
				  result->until_ns - result->from_ns);
}

static void take_link_set(struct nt_own_links *own, struct nt_own_use *use,
			  struct nt_linker_result *result)
{
	struct nt_own_process *process = use->process;

	use->token = 0;
	if (result->r < 0) {
		own->stats.failed++;
		use->ended = result->r == -ESRCH;
		use->retry_ns = nt_clock_boot_ns() + RETRY_NS;
		if (nt_own_is_cut(use->file) && !use->ended)
			nt_own_pause(own, process, nt_clock_boot_ns());
	} else {
		use->link_set = nt_take(result->link_set);
		use->made = use->making;
		/* The file was split before the process started: its first calls may be lost. */
		if (nt_own_is_cut(use->file) && !use->has_own) {
			use->has_own = true;
			own->hooks.missed(own->hooks.data, process->pid);
		}
	}
	nt_own_pursue(own, use);
	nt_own_review(own, process);
}

static void take_result(struct nt_own_links *own, struct nt_linker_result *result)
{
	struct nt_own_request *request = NULL;
	struct nt_own_process *process;
	struct nt_own_file *file;
	struct nt_own_use *use;

	HASH_FIND(hh, own->request, &result->token, sizeof(result->token), request);
	if (!request) {
		nt_own_detach(own, 0, nt_take(result->link_set));
		return;
	}
	file = nt_own_find_file(own, request->file);
	if (request->shared) {
		if (file && file->token == request->token) {
			file->token = 0;
			if (result->r == 0)
				nt_own_joined(own, file, nt_take(result->link_set));
			else
				nt_own_part(own, file);
		}
	} else if (request->look) {
		process = nt_own_find_process(own, request->pid);
		if (process)
			take_look(own, process, result);
	} else {
		use = find_use(own, request);
		if (use && use->token == request->token)
			take_link_set(own, use, result);
	}
	nt_own_detach(own, request->owner, nt_take(result->link_set));
	nt_own_forget(own, request);
}

void nt_own_links_settle(struct nt_own_links *own)
{
	struct nt_linker_result result;

	while (nt_linker_next(own->linker, &result))
		take_result(own, &result);
}

/* ---- events ---------------------------------------------------------------------------------- */

static const struct nt_own_use *use_of(const struct nt_own_process *process,
				       enum nt_library library)
{
	for (size_t i = 0; i < process->uses; i++)
		if (process->use[i]->file->libraries >> library & 1)
			return process->use[i];
	return NULL;
}

void nt_own_links_inside(struct nt_own_links *own, uint32_t pid, uint16_t row, uint64_t entry_ns,
			 uint64_t look_ns)
{
	const struct nt_probe *probe = nt_probe_row(row);
	struct nt_own_process *process = nt_own_find_process(own, pid);

	for (size_t i = 0; entry_ns && probe && process && i < process->uses; i++) {
		struct nt_own_use *use = process->use[i];
		struct nt_own_file *file = use->file;

		if ((file->phase == PHASE_LINGERING || file->phase == PHASE_LEAVING) &&
		    (file->libraries >> probe->library & 1) && entry_ns < file->cut_ns &&
		    (file->split == NT_ATTACHED_ALL || !nt_probe_stays(probe)))
			use->inside_ns = look_ns;
	}
}

void nt_own_links_looked(struct nt_own_links *own, uint64_t look_ns)
{
	own->looked_ns = look_ns;
}

enum nt_own_links_verdict nt_own_links_judge(struct nt_own_links *own,
					     const struct nt_event_call *call)
{
	const struct nt_probe *probe = nt_probe_row(call->h.row);
	const struct nt_own_process *process = nt_own_find_process(own, call->h.pid);
	uint64_t entry_ns = call->h.entry_ns;
	const struct nt_own_use *use;

	if (!process || !probe)
		return NT_OWN_LINKS_TAKE;
	if (nt_governor_is_hot(&process->plan, call->h.row))
		return NT_OWN_LINKS_COUNT;
	use = use_of(process, probe->library);
	/* Only functions that are split off have two kinds of links. */
	if (!use || (nt_probe_stays(probe) && use->file->split != NT_ATTACHED_ALL))
		return NT_OWN_LINKS_TAKE;
	if (!nt_probe_stays(probe) && ((process->paused_ns && entry_ns >= process->paused_ns) ||
				       entry_ns < process->resumed_ns))
		return NT_OWN_LINKS_COUNT;
	/* A call recorded at entry and return makes one event, whatever links there were. */
	if (call->h.flags & NT_CALL_RETURNED)
		return NT_OWN_LINKS_TAKE;
	if (nt_attached_sees_once(use->file->attached) ||
	    (use->file->phase == PHASE_SHARED && !use->file->cut_ns))
		return NT_OWN_LINKS_TAKE;
	return nt_duplicate_calls_check(&own->duplicates, call) ? NT_OWN_LINKS_DROP
								: NT_OWN_LINKS_TAKE;
}

size_t nt_own_links_turn(struct nt_own_links *own, uint32_t *ret_pid, size_t max)
{
	struct nt_own_process *process = nt_own_find_process(own, own->turn);
	size_t n = 0;

	for (size_t i = HASH_COUNT(own->process); i > 0 && n < max; i--) {
		process = process && process->hh.next ? process->hh.next : own->process;
		ret_pid[n++] = process->pid;
		own->turn = process->pid;
	}
	for (const struct nt_own_process *p = own->process; p && n < max; p = p->hh.next)
		if (p->plan.governed)
			ret_pid[n++] = p->pid;
	return n;
}

uint64_t nt_own_links_observed_ns(const struct nt_own_links *own, uint32_t pid, uint64_t boot_ns)
{
	const struct nt_own_process *process = nt_own_find_process(own, pid);
	uint64_t unobserved_ns = 0;

	if (process)
		unobserved_ns = process->unobserved_ns;
	if (process && process->paused_ns && boot_ns > process->paused_ns)
		unobserved_ns += boot_ns - process->paused_ns;
	return boot_ns - unobserved_ns;
}

void nt_own_links_stats(const struct nt_own_links *own, struct nt_own_links_stats *ret_stats)
{
	struct nt_own_links_stats stats = own->stats;

	for (const struct nt_own_file *file = own->file; file; file = file->hh.next) {
		stats.files_split += file->phase != PHASE_SHARED;
		for (const struct nt_own_use *use = file->uses; use; use = use->next)
			stats.link_sets += use->link_set != NULL;
	}
	stats.processes = HASH_COUNT(own->process);
	*ret_stats = stats;
}
