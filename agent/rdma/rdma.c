/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Out of memory is reported to the caller; uthash must not exit. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((entry)->is_lost = true)

#include "agent/rdma/rdma_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/probes/probe.h"
#include "agent/rdma/provider_file.h"

/* ---- opening -------------------------------------------------------------------------------- */

void nt_rdma_options_set(struct nt_rdma_options *options, bool detaches_slowly)
{
	/* A thread that polls spends most of a slice of polls in probes: 0.2 % and 1 % of the time. */
	*options = (struct nt_rdma_options){
		.posts = {.period_ns = 10 * NT_SECOND, .slice_ns = NT_SECOND / 10},
		.polls = {.period_ns = NT_MINUTE, .slice_ns = NT_SECOND / 10},
		.raised_polls = {.period_ns = 10 * NT_SECOND, .slice_ns = NT_SECOND / 10},
	};
	if (!detaches_slowly)
		return;
	options->posts = (struct nt_rdma_slices){.period_ns = NT_MINUTE, .slice_ns = NT_SECOND};
	options->raised_polls.slice_ns = NT_SECOND / 2;
}

int nt_rdma_new(const struct nt_rdma_options *options, const struct nt_rdma_hooks *hooks,
		struct nt_rdma **ret_rdma)
{
	struct nt_rdma *rdma = calloc(1, sizeof(*rdma));

	if (!rdma)
		return -ENOMEM;
	rdma->options = *options;
	rdma->hooks = *hooks;
	*ret_rdma = rdma;
	return 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

struct nt_rdma_process *nt_rdma_find_process(const struct nt_rdma *rdma, uint32_t pid)
{
	struct nt_rdma_process *process = NULL;

	HASH_FIND(hh, rdma->process, &pid, sizeof(pid), process);
	return process;
}

/* The kernel side counts entries of queue pairs that signal all: the watch states those deleted here. */
static void forget_key(struct nt_rdma *rdma, struct nt_rdma_process *process,
		       const struct nt_rdma_key *key, bool is_destroyed)
{
	if (!rdma->hooks.forget(rdma->hooks.data, key, is_destroyed))
		return;
	process->watch.forgotten++;
	nt_rdma_watch_process(rdma, process);
}

static void remove_pair(struct nt_rdma *rdma, struct nt_rdma_process *process,
			struct nt_queue_pair *pair)
{
	nt_queue_pairs_remove(&process->pairs, pair);
	rdma->pairs--;
	process->owner->pairs--;
}

void nt_rdma_forget_pair(struct nt_rdma *rdma, struct nt_rdma_process *process,
			 struct nt_queue_pair *pair)
{
	forget_key(rdma, process, &pair->key, pair->is_ended);
	remove_pair(rdma, process, pair);
}

void nt_rdma_free_process(struct nt_rdma *rdma, struct nt_rdma_process *process)
{
	for (int i = 0; i < NT_RDMA_LINKS; i++) {
		if (!process->link[i].probe)
			continue;
		rdma->hooks.detach(rdma->hooks.data, process->link[i].probe);
		rdma->stats.attached--;
	}
	if (process->is_watched)
		rdma->hooks.watch(rdma->hooks.data, process->pid, NULL);
	while (process->pairs.table) {
		(void)rdma->hooks.forget(rdma->hooks.data, &process->pairs.table->key, false);
		remove_pair(rdma, process, process->pairs.table);
	}
	rdma->stats.queue_pairs_over_cap += process->pairs.over_cap;
	nt_closep(&process->fd);
	nt_rdma_share_leave(rdma, process);
	if (rdma->swept == process)
		rdma->swept = process->hh.next;
	HASH_DEL(rdma->process, process);
	free(process);
}

void nt_rdma_free(struct nt_rdma *rdma)
{
	if (!rdma)
		return;
	while (rdma->process)
		nt_rdma_free_process(rdma, rdma->process);
	free(rdma->row);
	free(rdma);
}

static struct nt_rdma_process *take_process(struct nt_rdma *rdma, uint32_t pid)
{
	struct nt_rdma_process *process = nt_rdma_find_process(rdma, pid);

	if (process)
		return process;
	if (HASH_COUNT(rdma->process) >= NT_RDMA_PROCESSES) {
		rdma->stats.processes_over_cap++;
		if (!nt_rdma_make_room(rdma))
			return NULL;
	}
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->fd = -1;
	if (nt_rdma_share_join(rdma, process)) {
		HASH_ADD(hh, rdma->process, pid, sizeof(process->pid), process);
		if (!process->is_lost)
			return process;
		nt_rdma_share_leave(rdma, process);
	}
	free(process);
	return NULL;
}

/* The entry of the process that started then; another one with its pid has ended. */
static struct nt_rdma_process *take_started(struct nt_rdma *rdma, uint32_t pid, uint64_t start_ns)
{
	struct nt_rdma_process *process = nt_rdma_find_process(rdma, pid);

	if (process && (process->start_ns ? process->start_ns != start_ns
					  : process->seen_ns && process->seen_ns < start_ns))
		nt_rdma_free_process(rdma, process);
	process = take_process(rdma, pid);
	if (process)
		process->start_ns = start_ns;
	return process;
}

/* It may have been dropped while it ran: what the kernel side had counted was deleted then. */
static void take_counts(struct nt_rdma *rdma, struct nt_rdma_process *process)
{
	const uint64_t known = HASH_COUNT(process->pairs.table);
	struct nt_verbs_totals t;

	if (!rdma->hooks.totals(rdma->hooks.data, process->pid, &t))
		return;
	if (t.signaled > known + process->watch.forgotten)
		process->watch.forgotten = (uint32_t)(t.signaled - known);
	if (t.seen > t.ended + known + process->watch.dropped)
		process->watch.dropped = (uint32_t)(t.seen - t.ended - known);
	if (process->watch.forgotten || process->watch.dropped)
		nt_rdma_watch_process(rdma, process);
}

void nt_rdma_add(struct nt_rdma *rdma, uint32_t pid, uint64_t start_ns, uint64_t now_ns)
{
	struct nt_rdma_process *process = take_started(rdma, pid, start_ns);

	if (!process || process->is_rank)
		return;
	process->is_rank = true;
	process->guess_ns = now_ns + NT_RDMA_GUESS_NS;
	take_counts(rdma, process);
}

void nt_rdma_end(struct nt_rdma *rdma, uint32_t pid, uint64_t start_ns)
{
	struct nt_rdma_process *process = nt_rdma_find_process(rdma, pid);

	if (process && (!process->start_ns || process->start_ns == start_ns))
		nt_rdma_free_process(rdma, process);
}

void nt_rdma_exec(struct nt_rdma *rdma, uint32_t pid, uint64_t boot_ns)
{
	struct nt_rdma_process *process = nt_rdma_find_process(rdma, pid), before;

	if (!process)
		return;
	before = *process;
	nt_rdma_free_process(rdma, process);
	if (before.is_rank)
		nt_rdma_add(rdma, pid, before.start_ns, boot_ns);
	else if (before.level)
		(void)take_started(rdma, pid, before.start_ns);
	process = nt_rdma_find_process(rdma, pid);
	if (!process)
		return;
	process->level = before.level;
	process->is_shed = before.is_shed;
	process->is_sliced = before.is_sliced;
}

void nt_rdma_set_level(struct nt_rdma *rdma, uint32_t pid, uint64_t start_ns, uint32_t level)
{
	struct nt_rdma_process *process = nt_rdma_find_process(rdma, pid);

	if (!level && !process)
		return;
	process = take_started(rdma, pid, start_ns);
	if (process)
		process->level = level;
}

void nt_rdma_govern(struct nt_rdma *rdma, uint32_t pid, bool is_shed, bool is_sliced)
{
	struct nt_rdma_process *process = nt_rdma_find_process(rdma, pid);

	if (!process)
		return;
	process->is_shed = is_shed;
	process->is_sliced = is_sliced;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

/* A context of another provider than the first is not observed. */
static void note_functions(struct nt_rdma_process *process, const struct nt_event_verbs *event)
{
	if (!event->post_send || !event->poll_cq || process->provider != NT_RDMA_PROVIDER_UNKNOWN)
		return;
	process->post = event->post_send;
	process->poll = event->poll_cq;
}

/* Its last traffic is sent with the next window, if there will be one. */
static void end_pair(struct nt_rdma *rdma, struct nt_rdma_process *process,
		     struct nt_queue_pair *pair)
{
	pair->is_ended = true;
	if (!process->is_rank && !process->level)
		nt_rdma_forget_pair(rdma, process, pair);
}

static void note_pair(struct nt_rdma *rdma, struct nt_rdma_process *process,
		      const struct nt_event_verbs *event)
{
	const struct nt_rdma_key key = {
		.pid = process->pid, .qpn = event->qpn, .context = event->context};
	struct nt_queue_pair *pair = nt_queue_pairs_find(&process->pairs, &key);
	size_t held;

	if (event->verb == NT_VERB_DESTROY_QP) {
		if (pair)
			end_pair(rdma, process, pair);
		else
			forget_key(rdma, process, &key, true);
		return;
	}
	if (process->owner->verbs++ >= NT_RDMA_VERBS) {
		/* Its entries stay in the kernel until the pair or the process ends: it is in use. */
		rdma->stats.verbs_over_cap++;
		return;
	}
	/* A number is used anew. Its figures go on: some of it may be in them. */
	if (event->verb == NT_VERB_CREATE_QP && pair)
		nt_queue_pair_reset(pair);
	if (!nt_queue_pairs_find(&process->pairs, &key) && !nt_rdma_share_admit(rdma, process)) {
		process->pairs.over_cap++;
		forget_key(rdma, process, &key, false);
		return;
	}
	held = HASH_COUNT(process->pairs.table);
	pair = nt_queue_pairs_take(&process->pairs, &key);
	rdma->pairs += HASH_COUNT(process->pairs.table) - held;
	process->owner->pairs += HASH_COUNT(process->pairs.table) - held;
	if (!pair) {
		forget_key(rdma, process, &key, false);
		return;
	}
	if (event->post_send && process->post && event->post_send != process->post)
		pair->is_foreign = true;
	if (nt_queue_pair_update(pair, event))
		nt_rdma_note_address(rdma, process->owner, pair);
	if (pair->is_extended || pair->is_foreign)
		rdma->stats.not_visible += !pair->is_counted;
	pair->is_counted |= pair->is_extended || pair->is_foreign;
}

void nt_rdma_event(struct nt_rdma *rdma, const struct nt_event_verbs *event)
{
	const struct nt_rdma_key key = {
		.pid = event->h.pid, .qpn = event->qpn, .context = event->context};
	struct nt_rdma_process *process = take_process(rdma, event->h.pid);

	rdma->now_ns = event->h.entry_ns > rdma->now_ns ? event->h.entry_ns : rdma->now_ns;
	if (!process) {
		if (event->qpn || event->qp)
			(void)rdma->hooks.forget(rdma->hooks.data, &key,
						 event->verb == NT_VERB_DESTROY_QP);
		return;
	}
	if (!process->seen_ns)
		process->seen_ns = event->h.entry_ns;
	note_functions(process, event);
	process->has_extended |= event->verb == NT_VERB_EXTENDED;
	process->has_direct |= event->verb == NT_VERB_DIRECT;
	if (event->qpn || event->qp)
		note_pair(rdma, process, event);
}

/* ---- the provider's file --------------------------------------------------------------------- */

static struct nt_rdma_provider_place *find_place(struct nt_rdma *rdma, const char *build_id)
{
	for (size_t i = 0; *build_id && i < NT_RDMA_PROVIDERS; i++)
		if (strcmp(rdma->place[i].build_id, build_id) == 0)
			return &rdma->place[i];
	return NULL;
}

static void keep_place(struct nt_rdma *rdma, const struct nt_provider_place *provider)
{
	struct nt_rdma_provider_place *place = find_place(rdma, provider->build_id);

	_Static_assert(sizeof(place->build_id) == sizeof(provider->build_id), "copied");
	if (!provider->build_id[0])
		return;
	if (!place)
		place = &rdma->place[rdma->places++ % NT_RDMA_PROVIDERS];
	memcpy(place->build_id, provider->build_id, sizeof(place->build_id));
	place->post_offset = provider->post_offset;
	place->poll_offset = provider->poll_offset;
}

static void refuse(struct nt_rdma *rdma, struct nt_rdma_process *process)
{
	process->provider = NT_RDMA_PROVIDER_REFUSED;
	rdma->stats.refused++;
}

void nt_rdma_found(struct nt_rdma *rdma, uint32_t pid, uint64_t start_ns, int result, int *fd,
		   const struct nt_provider_place *provider)
{
	struct nt_rdma_process *process = nt_rdma_find_process(rdma, pid);
	const struct nt_rdma_provider_place *place;
	bool is_guess;

	if (!process || process->start_ns != start_ns ||
	    process->provider != NT_RDMA_PROVIDER_ASKED)
		return;
	is_guess = process->is_guess;
	process->provider = NT_RDMA_PROVIDER_UNKNOWN;
	if (is_guess && (result == 0 || result == -ENOENT))
		process->holds_device = result == 0 && provider->holds_device;
	/* What was found in a process's memory it may have written there: it is for that process alone. */
	if (result == 0 && provider->post_offset && !is_guess)
		keep_place(rdma, provider);
	place = result == 0 ? find_place(rdma, provider->build_id) : NULL;
	if (result == 0 && *fd >= 0 && (provider->post_offset || place)) {
		process->post_offset =
			provider->post_offset ? provider->post_offset : place->post_offset;
		process->poll_offset =
			provider->post_offset ? provider->poll_offset : place->poll_offset;
		process->provider = NT_RDMA_PROVIDER_READY;
		process->fd = *fd;
		*fd = -1;
	} else if (!is_guess) {
		refuse(rdma, process);
	}
}

/*
 * Without an event a provider is guessed: by the memory of the process, or one that another process has
 * used. That takes a worker some time, so it is done less and less often.
 */
static void find_provider(struct nt_rdma *rdma, struct nt_rdma_process *process, uint64_t now_ns)
{
	const bool is_known = process->post && process->poll;

	if (process->provider != NT_RDMA_PROVIDER_UNKNOWN || !process->start_ns)
		return;
	if (!is_known && (!process->guess_ns || now_ns < process->guess_ns))
		return;
	process->is_guess = !is_known;
	process->guess_ns = now_ns + (NT_RDMA_GUESS_AGAIN_NS << process->guesses);
	if (!is_known && process->guesses < NT_RDMA_GUESSES)
		process->guesses++;
	if (rdma->hooks.find(rdma->hooks.data, process->pid, process->start_ns, process->post,
			     process->poll) == 0)
		process->provider = NT_RDMA_PROVIDER_ASKED;
}

/* ---- links ----------------------------------------------------------------------------------- */

static int library_of(enum nt_rdma_link_kind kind)
{
	return kind == NT_RDMA_LINK_POST ? NT_LIBRARY_RDMA_POST : NT_LIBRARY_RDMA_POLL;
}

static void attach(struct nt_rdma *rdma, struct nt_rdma_process *process,
		   enum nt_rdma_link_kind kind)
{
	struct nt_rdma_link *link = &process->link[kind];
	const uint64_t offset =
		kind == NT_RDMA_LINK_POST ? process->post_offset : process->poll_offset;

	if (rdma->hooks.attach(rdma->hooks.data, library_of(kind), process->pid, process->start_ns,
			       process->fd, offset) == 0)
		link->state = NT_RDMA_LINK_MAKING;
}

static void detach(struct nt_rdma *rdma, struct nt_rdma_process *process,
		   enum nt_rdma_link_kind kind, uint64_t now_ns)
{
	struct nt_rdma_link *link = &process->link[kind];

	link->observed_ns += now_ns - link->since_ns;
	rdma->hooks.detach(rdma->hooks.data, link->probe);
	rdma->stats.attached--;
	link->probe = NULL;
	link->state = NT_RDMA_LINK_OFF;
	if (kind != NT_RDMA_LINK_POLL)
		return;
	process->watch.is_polled = NT_RDMA_POLLED_NOT;
	nt_rdma_watch_process(rdma, process);
}

void nt_rdma_made(struct nt_rdma *rdma, int library, uint32_t pid, uint64_t start_ns, int result,
		  struct nt_rank_probe *probe, uint64_t now_ns)
{
	const enum nt_rdma_link_kind kind =
		library == NT_LIBRARY_RDMA_POST ? NT_RDMA_LINK_POST : NT_RDMA_LINK_POLL;
	struct nt_rdma_process *process = nt_rdma_find_process(rdma, pid);
	struct nt_rdma_link *link = process ? &process->link[kind] : NULL;

	if (!process || process->start_ns != start_ns || link->state != NT_RDMA_LINK_MAKING) {
		if (probe)
			rdma->hooks.detach(rdma->hooks.data, probe);
		return;
	}
	if (result < 0 || !probe) {
		link->state = NT_RDMA_LINK_OFF;
		if (result != -EAGAIN && ++link->failures >= NT_RDMA_FAILURES)
			refuse(rdma, process);
		return;
	}
	link->state = NT_RDMA_LINK_ON;
	link->probe = probe;
	link->since_ns = now_ns;
	link->failures = 0;
	rdma->stats.attached++;
	if (kind == NT_RDMA_LINK_POLL) {
		process->watch.generation++;
		process->watch.is_polled = NT_RDMA_POLLED;
	}
	nt_rdma_watch_process(rdma, process);
}

static bool is_open(const struct nt_rdma_slices *slices, uint64_t real_ns)
{
	return real_ns % slices->period_ns < slices->slice_ns;
}

static bool is_wanted(const struct nt_rdma *rdma, const struct nt_rdma_process *process,
		      enum nt_rdma_link_kind kind, uint64_t real_ns)
{
	const bool is_raised = process->level && !process->is_sliced;

	if (process->provider != NT_RDMA_PROVIDER_READY || process->is_shed ||
	    (!process->is_rank && !process->level))
		return false;
	if (is_raised && kind == NT_RDMA_LINK_POST)
		return true;
	if (kind == NT_RDMA_LINK_POST)
		return is_open(&rdma->options.posts, real_ns);
	return is_open(is_raised ? &rdma->options.raised_polls : &rdma->options.polls, real_ns);
}

/* Requests whose posts are kept in this slice, without a completion yet. */
static uint64_t outstanding(const struct nt_rdma *rdma, const struct nt_rdma_process *process)
{
	struct nt_rdma_traffic t;
	uint64_t requests = 0;

	for (const struct nt_queue_pair *pair = process->pairs.table; pair; pair = pair->hh.next)
		if (!pair->is_ended && rdma->hooks.traffic(rdma->hooks.data, &pair->key, &t) &&
		    t.generation == process->watch.generation)
			requests += t.head - t.tail;
	return requests;
}

/*
 * The slice of polls has ended. Without this no latency would be longer than a slice, and long ones would
 * be missed more often than short ones. True: they are observed for a while.
 */
static bool waits_for_rest(struct nt_rdma *rdma, struct nt_rdma_process *process, uint64_t now_ns)
{
	uint64_t requests;

	if (process->provider != NT_RDMA_PROVIDER_READY || process->is_shed ||
	    (!process->is_rank && !process->level))
		return false;
	requests = outstanding(rdma, process);
	if (!requests)
		return false;
	if (process->watch.is_polled == NT_RDMA_POLLED && !process->is_sliced) {
		process->watch.is_polled = NT_RDMA_POLLED_REST;
		process->rest_end_ns = now_ns + NT_RDMA_REST_NS;
		nt_rdma_watch_process(rdma, process);
		return true;
	}
	if (!process->is_sliced && now_ns < process->rest_end_ns)
		return true;
	rdma->stats.unfinished += requests;
	return false;
}

/* The next slice has come meanwhile. */
static void begin_slice_again(struct nt_rdma *rdma, struct nt_rdma_process *process)
{
	rdma->stats.unfinished += outstanding(rdma, process);
	process->watch.generation++;
	process->watch.is_polled = NT_RDMA_POLLED;
	nt_rdma_watch_process(rdma, process);
}

static void turn_link(struct nt_rdma *rdma, struct nt_rdma_process *process,
		      enum nt_rdma_link_kind kind, uint64_t now_ns, uint64_t real_ns)
{
	const bool wanted = is_wanted(rdma, process, kind, real_ns);
	const struct nt_rdma_link *link = &process->link[kind];

	if (wanted && link->state == NT_RDMA_LINK_OFF)
		attach(rdma, process, kind);
	if (link->state != NT_RDMA_LINK_ON)
		return;
	if (wanted && kind == NT_RDMA_LINK_POLL && process->watch.is_polled == NT_RDMA_POLLED_REST)
		begin_slice_again(rdma, process);
	if (!wanted && (kind == NT_RDMA_LINK_POST || !waits_for_rest(rdma, process, now_ns)))
		detach(rdma, process, kind, now_ns);
}

void nt_rdma_tick(struct nt_rdma *rdma, uint64_t now_ns, uint64_t real_ns)
{
	rdma->now_ns = now_ns;
	for (struct nt_rdma_owner *o = rdma->owner; o; o = o->hh.next)
		o->verbs = o->reads = 0;
	nt_rdma_sweep(rdma);
	for (struct nt_rdma_process *p = rdma->process; p; p = p->hh.next) {
		find_provider(rdma, p, now_ns);
		/* Posts first: a completion without its post has no latency. */
		for (enum nt_rdma_link_kind kind = 0; kind < NT_RDMA_LINKS; kind++)
			turn_link(rdma, p, kind, now_ns, real_ns);
	}
}

void nt_rdma_stats(const struct nt_rdma *rdma, struct nt_rdma_stats *ret_stats)
{
	struct nt_rdma_stats stats = rdma->stats;

	stats.processes = HASH_COUNT(rdma->process);
	stats.queue_pairs = rdma->pairs;
	for (const struct nt_rdma_process *p = rdma->process; p; p = p->hh.next)
		stats.queue_pairs_over_cap += p->pairs.over_cap;
	*ret_stats = stats;
}
