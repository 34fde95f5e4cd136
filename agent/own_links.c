/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/own_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Out of memory is for us to handle, not for the table to exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)
#include <uthash.h>

#include "agent/bundle.h"
#include "agent/owner.h"
#include "agent/repeat.h"
#include "common/clock.h"

#define LINGER_NS                                                                                  \
	(500 * NT_MILLISECOND) /* for returns of calls that were entered by a shared link */
#define LINGER_MAX_NS (60 * NT_SECOND) /* while a neighbour is inside such a call */
#define JOIN_NS  (10 * NT_SECOND) /* without a governed process */
#define LOOK_NS  (10 * NT_MILLISECOND)
#define LOOKS_NS (10 * NT_SECOND) /* from one look to the next */
#define OPEN_NS  (5 * NT_SECOND) /* at the latest the shared links then go */
#define RETRY_NS (1 * NT_SECOND) /* after the kernel made no links */

enum phase {
	PHASE_SHARED,
	PHASE_OPENING, /* own links are being made */
	PHASE_LINGERING, /* they are there; the shared ones go soon */
	PHASE_SPLIT,
	PHASE_JOINING, /* shared links are being made */
	PHASE_LEAVING, /* they are there; the own ones go soon */
};

struct process;

struct file {
	uintptr_t key; /* the address of `attached` */
	bool is_lost;
	struct nt_attached *attached; /* borrowed */
	enum phase phase;
	enum nt_attached_split split; /* that is aimed at or reached */
	bool merged; /* what stays shares links with the rest: it can only be split as a whole */
	uint32_t libraries; /* bits of enum nt_library whose functions it holds */
	uint64_t cut_ns; /* of the phase before */
	uint64_t opened_ns; /* since when own links are being made */
	uint64_t opened; /* number of the last use before */
	uint64_t token; /* of the shared links that are being made; 0: none */
	uint64_t retry_ns; /* before this they are not asked for again */
	struct nt_bundle *shared; /* owned: to go when lingering ends */
	uint64_t calm_ns; /* since when none of its processes is governed; 0: one is */
	struct use *uses;
	UT_hash_handle hh;
};

/* A process maps a file. */
struct use {
	struct process *process;
	struct file *file;
	uint64_t number; /* those that come later have larger ones */
	struct nt_bundle *bundle; /* owned; NULL: nothing of its own is attached */
	uint64_t made; /* what the bundle holds; 0: nothing */
	uint64_t token; /* of what is being made; 0: nothing is */
	uint64_t making;
	bool has_own; /* links of its own have been there since the file was split */
	uint64_t retry_ns; /* before this they are not asked for again */
	uint64_t inside_ns; /* the last look that found a call of before the cut */
	bool ended; /* the process is gone, though its end is not known yet */
	struct use *next; /* of the file */
};

struct process {
	uint32_t pid;
	bool is_lost;
	uint64_t start_ns;
	uint64_t owner; /* nt_owner.id; 0: not known */
	struct nt_governor_plan plan;
	bool on; /* a slice runs, or all is observed */
	uint64_t paused_ns; /* since when it is not observed; 0: it is */
	uint64_t resumed_ns;
	uint64_t unobserved_ns; /* sum of the pauses that have ended */
	uint64_t looked_ns;
	uint32_t looks; /* under way */
	struct use *use[NT_OWN_LINKS_FILES];
	size_t uses;
	UT_hash_handle hh;
};

/* A request to the linker: which use or file its result belongs to. */
struct request {
	uint64_t token;
	bool is_lost;
	uint32_t pid;
	uintptr_t file;
	bool look, shared;
	UT_hash_handle hh;
};

struct nt_own_links {
	struct nt_repeats repeats;
	struct nt_attach *attach;
	struct nt_linker *linker;
	struct nt_own_links_hooks hooks;
	struct file *file; /* uthash, owned */
	struct process *process; /* uthash, owned */
	struct request *request; /* uthash, owned */
	uint64_t tokens, uses; /* so far: numbers */
	uint64_t looked_ns; /* when the last look at all threads began; 0: there was none */
	uint32_t turn; /* the process that nt_own_links_turn() gave last */
	struct nt_own_links_stats stats;
};

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

static void detach(struct nt_own_links *own, struct nt_bundle *bundle)
{
	if (bundle)
		nt_linker_drop(own->linker, bundle);
}

static void drop_bundle(struct nt_own_links *own, struct use *use)
{
	detach(own, nt_take(use->bundle));
	use->made = 0;
}

static void unlink_use(struct nt_own_links *own, struct use *use)
{
	struct use **at = &use->file->uses;

	while (*at != use)
		at = &(*at)->next;
	*at = use->next;
	drop_bundle(own, use);
	free(use);
}

static void free_process(struct nt_own_links *own, struct process *process)
{
	while (process->uses)
		unlink_use(own, process->use[--process->uses]);
	HASH_DEL(own->process, process);
	free(process);
}

static void free_file(struct nt_own_links *own, struct file *file)
{
	detach(own, nt_take(file->shared));
	HASH_DEL(own->file, file);
	free(file);
}

void nt_own_links_free(struct nt_own_links *own)
{
	struct process *process, *next;
	struct request *request, *next_request;
	struct file *file, *next_file;

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

static struct process *find_process(const struct nt_own_links *own, uint32_t pid)
{
	struct process *process = NULL;

	HASH_FIND(hh, own->process, &pid, sizeof(pid), process);
	return process;
}

static struct file *find_file(const struct nt_own_links *own, uintptr_t key)
{
	struct file *file = NULL;

	HASH_FIND(hh, own->file, &key, sizeof(key), file);
	return file;
}

/* ---- who maps what --------------------------------------------------------------------------- */

static struct process *add_process(struct nt_own_links *own, uint32_t pid, uint64_t start_ns)
{
	struct process *process = calloc(1, sizeof(*process));
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

static struct file *take_file(struct nt_own_links *own, struct nt_attached *attached)
{
	uintptr_t key = (uintptr_t)attached;
	struct file *file = find_file(own, key);
	const struct nt_target *target;
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
	struct process *process = find_process(own, pid);
	struct file *file;
	struct use *use;

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

bool nt_own_links_knows(const struct nt_own_links *own, uint32_t pid)
{
	return find_process(own, pid) != NULL;
}

void nt_own_links_end(struct nt_own_links *own, uint32_t pid, uint64_t start_boot_ns)
{
	struct process *process = find_process(own, pid);

	if (process && process->start_ns == start_boot_ns)
		free_process(own, process);
}

/* The process still maps the file: what it calls there is not seen any more. */
static void give_up(struct nt_own_links *own, struct use *use)
{
	struct process *process = use->process;
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
	struct file *file = attached ? find_file(own, (uintptr_t)attached) : NULL;

	/* Under another name it stays attached, and what processes have of their own stays with it. */
	if (!file || nt_attached_names(attached) > 1)
		return;
	while (file->uses)
		give_up(own, file->uses);
	free_file(own, file);
}

/* ---- what a process has of its own ----------------------------------------------------------- */

static bool is_split_off(const struct file *file, const struct nt_target *target)
{
	return file->split == NT_ATTACHED_ALL || !target->stays;
}

/* The state that a use should be in, as a number: 0 for nothing attached. */
static uint64_t wanted_of(const struct use *use)
{
	const struct process *process = use->process;
	const struct file *file = use->file;

	if (file->phase == PHASE_SHARED || file->phase == PHASE_LEAVING)
		return 0;
	return 1 + process->on + 2ULL * (uint64_t)file->split + 8 * process->plan.version;
}

/* The targets of the use now. Those that the process shall not show are left out. */
static size_t choose(const struct use *use, bool look, struct nt_target *ret_target)
{
	const struct process *process = use->process;
	const struct nt_governor_plan *plan = &process->plan;
	size_t targets, n = 0;
	const struct nt_target *target = nt_attached_targets(use->file->attached, &targets);

	for (size_t i = 0; i < targets; i++) {
		bool hot = nt_governor_is_hot(plan, target[i].row);

		if (!is_split_off(use->file, &target[i]) || hot != look)
			continue;
		if (!look && !target[i].stays &&
		    (!process->on || (plan->shed >> target[i].subject & 1)))
			continue;
		ret_target[n++] = target[i];
	}
	return n;
}

static struct request *ask(struct nt_own_links *own, const struct use *use, bool look)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->token = ++own->tokens;
	request->pid = use ? use->process->pid : 0;
	request->file = use ? use->file->key : 0;
	request->look = look;
	HASH_ADD(hh, own->request, token, sizeof(request->token), request);
	if (request->is_lost) {
		free(request);
		return NULL;
	}
	return request;
}

static void forget(struct nt_own_links *own, struct request *request)
{
	HASH_DEL(own->request, request);
	free(request);
}

/* ---- pauses ---------------------------------------------------------------------------------- */

static void pause_process(struct nt_own_links *own, struct process *process, uint64_t boot_ns)
{
	if (process->paused_ns)
		return;
	process->paused_ns = boot_ns;
	own->hooks.paused(own->hooks.data, process->pid, boot_ns);
}

static void resume_process(struct nt_own_links *own, struct process *process, uint64_t boot_ns)
{
	if (!process->paused_ns)
		return;
	process->unobserved_ns += boot_ns - process->paused_ns;
	process->paused_ns = 0;
	process->resumed_ns = boot_ns;
	own->hooks.resumed(own->hooks.data, process->pid, boot_ns);
}

/*
 * Asks for the links of a use, or for a look at what is hot. 1: they are being made; 0: there is nothing
 * to attach; negative: they are not made, and have to be asked for again.
 */
static int make(struct nt_own_links *own, struct use *use, bool look)
{
	size_t all;
	nt_autofree struct nt_target *target = NULL;
	struct nt_linker_request wanted;
	struct request *request;
	size_t n;
	int r;

	/* Before anything that takes longer: many may have to wait. */
	if (!nt_linker_has_room(own->linker, use->process->owner, look))
		return -EAGAIN;
	(void)nt_attached_targets(use->file->attached, &all);
	target = calloc(all + 1, sizeof(*target));
	if (!target)
		return -ENOMEM;
	n = choose(use, look, target);
	if (!n)
		return 0;
	request = ask(own, use, look);
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
		forget(own, request);
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

/* Is what a process calls there seen by links of its own alone? */
static bool is_cut(const struct file *file)
{
	return nt_attached_split(file->attached) != NT_ATTACHED_SHARED;
}

/* Brings a use nearer to the state that it should be in. */
static void pursue(struct nt_own_links *own, struct use *use)
{
	uint64_t wanted = wanted_of(use);
	bool had = use->bundle != NULL;
	int r;

	if (use->token || use->made == wanted || use->ended || use->file->phase == PHASE_LEAVING ||
	    (use->retry_ns && nt_clock_boot_ns() < use->retry_ns))
		return;
	use->retry_ns = 0;
	drop_bundle(own, use);
	if (!wanted)
		return;
	r = make(own, use, false);
	if (r == 0)
		use->made = wanted; /* nothing to attach: this state is reached at once */
	else if (r < 0)
		own->stats.put_off++; /* it is tried again at the next tick */
	/* Until the others are there its calls are not seen. */
	if (is_cut(use->file) && (had || r != 0))
		pause_process(own, use->process, nt_clock_boot_ns());
}

/* Where its calls are not seen by shared links, has it all links of its own? */
static bool is_settled(const struct use *use)
{
	return use->ended || use->file->phase == PHASE_LEAVING || use->made == wanted_of(use);
}

/* Once all its links are there, or the file is shared again. */
static void review(struct nt_own_links *own, struct process *process)
{
	if (!process->paused_ns || !process->on)
		return;
	for (size_t i = 0; i < process->uses; i++)
		if (!is_settled(process->use[i]))
			return;
	resume_process(own, process, nt_clock_boot_ns());
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_governed(const struct file *file, enum nt_attached_split *ret_split)
{
	bool governed = false;

	*ret_split = file->merged ? NT_ATTACHED_ALL : NT_ATTACHED_BUT_STAYING;
	for (const struct use *use = file->uses; use; use = use->next) {
		const struct nt_governor_plan *plan = &use->process->plan;
		size_t targets;
		const struct nt_target *target = nt_attached_targets(file->attached, &targets);

		governed |= plan->governed;
		for (size_t i = 0; plan->hot_count && i < targets; i++)
			if (target[i].stays && nt_governor_is_hot(plan, target[i].row))
				*ret_split = NT_ATTACHED_ALL;
	}
	return governed;
}

static void begin_split(struct nt_own_links *own, struct file *file, enum nt_attached_split split,
			uint64_t boot_ns)
{
	file->opened_ns = boot_ns;
	file->opened = own->uses;
	file->phase = PHASE_OPENING;
	file->split = split;
}

/* One whose calls are all to be observed. */
static bool has_neighbour(const struct file *file)
{
	for (const struct use *use = file->uses; use; use = use->next)
		if (!use->process->plan.governed)
			return true;
	return false;
}

/* Processes that come later do not put it off: others could start them without end. */
static bool all_settled(const struct file *file)
{
	for (const struct use *use = file->uses; use; use = use->next)
		if (use->number <= file->opened && !is_settled(use))
			return false;
	return true;
}

/* From the cut on own links count. */
static void cut(struct nt_own_links *own, struct file *file)
{
	uint64_t now_ns = nt_clock_boot_ns();
	struct nt_bundle *shared = nt_attach_split(own->attach, file->attached, file->split);

	if (!shared)
		return; /* tried again */
	file->cut_ns = now_ns;
	file->shared = shared;
	file->phase = PHASE_LINGERING;
	own->stats.splits++;
	for (struct use *use = file->uses; use; use = use->next) {
		use->has_own = true;
		if (!use->process->on || !is_settled(use))
			pause_process(own, use->process, now_ns);
	}
}

static void ask_for_shared(struct nt_own_links *own, struct file *file)
{
	size_t all, n = 0;
	const struct nt_target *target = nt_attached_targets(file->attached, &all);
	nt_autofree struct nt_target *chosen = calloc(all + 1, sizeof(*chosen));
	struct request *request = chosen ? ask(own, NULL, false) : NULL;
	struct nt_linker_request wanted;

	if (!request)
		return;
	for (size_t i = 0; i < all; i++)
		if (is_split_off(file, &target[i]))
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
		forget(own, request);
		return;
	}
	file->token = request->token;
	file->phase = PHASE_JOINING;
}

/* The shared links could not be made, or not be kept. */
static void part(struct nt_own_links *own, struct file *file)
{
	own->stats.failed++;
	file->phase = PHASE_SPLIT;
	file->retry_ns = nt_clock_boot_ns() + RETRY_NS;
}

static void joined(struct nt_own_links *own, struct file *file, struct nt_bundle *bundle)
{
	uint64_t now_ns = nt_clock_boot_ns();
	int r = nt_attach_join(own->attach, file->attached, false, bundle);

	detach(own, bundle);
	if (r < 0) {
		part(own, file);
		return;
	}
	file->merged |= file->split == NT_ATTACHED_ALL;
	file->cut_ns = now_ns;
	file->phase = PHASE_LEAVING;
	own->stats.joins++;
}

static bool is_inside(const struct nt_own_links *own, const struct use *use)
{
	return use->inside_ns && use->inside_ns == own->looked_ns;
}

/* Can links go that calls of before the cut were entered by? */
static bool has_lingered(const struct nt_own_links *own, const struct file *file, uint64_t boot_ns)
{
	if (boot_ns < file->cut_ns + LINGER_NS)
		return false;
	if (boot_ns >= file->cut_ns + LINGER_MAX_NS || !own->looked_ns)
		return true;
	if (own->looked_ns < file->cut_ns)
		return false;
	for (const struct use *use = file->uses; use; use = use->next)
		if (!use->process->plan.governed && is_inside(own, use))
			return false;
	return true;
}

/* The ends of these calls are not seen any more. */
static void miss_calls(struct nt_own_links *own, const struct file *file)
{
	for (const struct use *use = file->uses; use; use = use->next)
		if (is_inside(own, use))
			own->hooks.missed(own->hooks.data, use->process->pid);
}

static void tick_file(struct nt_own_links *own, struct file *file, uint64_t boot_ns)
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
		/* Where all are governed a gap does no harm, and relief comes sooner. */
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
			detach(own, nt_take(file->shared));
			file->phase = PHASE_SPLIT;
		}
		break;
	case PHASE_SPLIT:
		if (governed && split > file->split)
			begin_split(own, file, split, boot_ns);
		else if (!governed && boot_ns >= file->calm_ns + JOIN_NS && !file->token &&
			 nt_clock_boot_ns() >= file->retry_ns)
			ask_for_shared(own, file);
		break;
	case PHASE_JOINING:
		break;
	case PHASE_LEAVING:
		if (has_lingered(own, file, boot_ns)) {
			miss_calls(own, file);
			for (struct use *use = file->uses; use; use = use->next) {
				drop_bundle(own, use);
				use->ended = use->has_own = false;
				use->retry_ns = 0;
			}
			file->phase = PHASE_SHARED;
		}
		break;
	}
	for (struct use *use = file->uses; use; use = use->next)
		if (file->phase != PHASE_SHARED)
			pursue(own, use);
}

/* ---- processes ------------------------------------------------------------------------------- */

static bool has_split_file(const struct process *process)
{
	for (size_t i = 0; i < process->uses; i++)
		if (is_cut(process->use[i]->file))
			return true;
	return false;
}

static void tick_process(struct nt_own_links *own, struct process *process, uint64_t boot_ns,
			 uint64_t real_ns)
{
	const struct nt_governor_plan *plan = &process->plan;
	uint64_t slice_ns = plan->period_ns / NT_GOVERNOR_WHOLE * plan->permille;
	bool on = plan->permille >= NT_GOVERNOR_WHOLE || real_ns % plan->period_ns < slice_ns;

	if (process->on && !on && has_split_file(process))
		pause_process(own, process, boot_ns);
	process->on = on;
	review(own, process);
	if (!plan->hot_count || process->looks || boot_ns < process->looked_ns + LOOKS_NS ||
	    !has_split_file(process))
		return;
	process->looked_ns = boot_ns;
	for (size_t i = 0; i < process->uses; i++)
		own->stats.put_off += make(own, process->use[i], true) < 0;
}

void nt_own_links_plan(struct nt_own_links *own, uint32_t pid, const struct nt_governor_plan *plan)
{
	struct process *process = find_process(own, pid);

	if (!process)
		return;
	if (plan->hot_count && !process->plan.hot_count)
		process->looked_ns = nt_clock_boot_ns(); /* the first look comes later */
	process->plan = *plan;
}

void nt_own_links_tick(struct nt_own_links *own, uint64_t boot_ns, uint64_t real_ns)
{
	for (struct process *p = own->process; p; p = p->hh.next)
		if (p->plan.governed || p->paused_ns || !p->on || p->plan.hot_count)
			tick_process(own, p, boot_ns, real_ns);
	for (struct file *file = own->file; file; file = file->hh.next)
		tick_file(own, file, boot_ns);
}

/* ---- results --------------------------------------------------------------------------------- */

static struct use *find_use(const struct nt_own_links *own, const struct request *request)
{
	struct process *process = find_process(own, request->pid);

	for (size_t i = 0; process && i < process->uses; i++)
		if (process->use[i]->file->key == request->file)
			return process->use[i];
	return NULL;
}

static void take_look(struct nt_own_links *own, struct process *process,
		      const struct nt_linker_result *result)
{
	if (process->looks)
		process->looks--;
	if (result->r == 0 && result->until_ns > result->from_ns)
		own->hooks.looked(own->hooks.data, process->pid,
				  result->until_ns - result->from_ns);
}

static void take_bundle(struct nt_own_links *own, struct use *use, struct nt_linker_result *result)
{
	struct process *process = use->process;

	use->token = 0;
	if (result->r < 0) {
		own->stats.failed++;
		use->ended = result->r == -ESRCH;
		use->retry_ns = nt_clock_boot_ns() + RETRY_NS;
		if (is_cut(use->file) && !use->ended)
			pause_process(own, process, nt_clock_boot_ns());
	} else {
		use->bundle = nt_take(result->bundle);
		use->made = use->making;
		/* A file that was split before the process came: its first calls may be missing. */
		if (is_cut(use->file) && !use->has_own) {
			use->has_own = true;
			own->hooks.missed(own->hooks.data, process->pid);
		}
	}
	pursue(own, use);
	review(own, process);
}

static void take_result(struct nt_own_links *own, struct nt_linker_result *result)
{
	struct request *request = NULL;
	struct process *process;
	struct file *file;
	struct use *use;

	HASH_FIND(hh, own->request, &result->token, sizeof(result->token), request);
	if (!request) {
		detach(own, nt_take(result->bundle));
		return;
	}
	file = find_file(own, request->file);
	if (request->shared) {
		if (file && file->token == request->token) {
			file->token = 0;
			if (result->r == 0)
				joined(own, file, nt_take(result->bundle));
			else
				part(own, file);
		}
	} else if (request->look) {
		process = find_process(own, request->pid);
		if (process)
			take_look(own, process, result);
	} else {
		use = find_use(own, request);
		if (use && use->token == request->token)
			take_bundle(own, use, result);
	}
	detach(own, nt_take(result->bundle));
	forget(own, request);
}

void nt_own_links_settle(struct nt_own_links *own)
{
	struct nt_linker_result result;

	while (nt_linker_next(own->linker, &result))
		take_result(own, &result);
}

/* ---- events ---------------------------------------------------------------------------------- */

static const struct use *use_of(const struct process *process, enum nt_library library)
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
	struct process *process = find_process(own, pid);

	for (size_t i = 0; entry_ns && probe && process && i < process->uses; i++) {
		struct use *use = process->use[i];
		struct file *file = use->file;

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
	const struct process *process = find_process(own, call->h.pid);
	uint64_t entry_ns = call->h.entry_ns;
	const struct use *use;

	if (!process || !probe)
		return NT_OWN_LINKS_TAKE;
	if (nt_governor_is_hot(&process->plan, call->h.row))
		return NT_OWN_LINKS_COUNT;
	use = use_of(process, probe->library);
	/* Only what is split off has two kinds of links. */
	if (!use || (nt_probe_stays(probe) && use->file->split != NT_ATTACHED_ALL))
		return NT_OWN_LINKS_TAKE;
	if (!nt_probe_stays(probe) && ((process->paused_ns && entry_ns >= process->paused_ns) ||
				       entry_ns < process->resumed_ns))
		return NT_OWN_LINKS_COUNT;
	/* A call that was entered and left makes one event, whatever links were there. */
	if (call->h.flags & NT_CALL_RETURNED)
		return NT_OWN_LINKS_TAKE;
	if (use->file->phase == PHASE_SHARED && !use->file->cut_ns)
		return NT_OWN_LINKS_TAKE;
	return nt_repeats_take(&own->repeats, call) ? NT_OWN_LINKS_DROP : NT_OWN_LINKS_TAKE;
}

size_t nt_own_links_turn(struct nt_own_links *own, uint32_t *ret_pid, size_t max)
{
	struct process *process = find_process(own, own->turn);
	size_t n = 0;

	for (size_t i = HASH_COUNT(own->process); i > 0 && n < max; i--) {
		process = process && process->hh.next ? process->hh.next : own->process;
		ret_pid[n++] = process->pid;
		own->turn = process->pid;
	}
	for (const struct process *p = own->process; p && n < max; p = p->hh.next)
		if (p->plan.governed)
			ret_pid[n++] = p->pid;
	return n;
}

uint64_t nt_own_links_observed_ns(const struct nt_own_links *own, uint32_t pid, uint64_t boot_ns)
{
	const struct process *process = find_process(own, pid);
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

	for (const struct file *file = own->file; file; file = file->hh.next) {
		stats.files_split += file->phase != PHASE_SHARED;
		for (const struct use *use = file->uses; use; use = use->next)
			stats.bundles += use->bundle != NULL;
	}
	stats.processes = HASH_COUNT(own->process);
	*ret_stats = stats;
}
