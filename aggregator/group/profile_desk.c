/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/profile_desk.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

struct nt_profile_desk {
	pthread_mutex_t lock; /* covers all below; results are shared, and never changed */
	struct nt_profile_view entry[NT_PROFILE_DESK_KEPT]; /* id 0: unused */
	struct nt_profile_desk_stats stats;
};

int nt_profile_desk_new(struct nt_profile_desk **ret_desk)
{
	struct nt_profile_desk *desk = calloc(1, sizeof(*desk));

	if (!desk)
		return -ENOMEM;
	(void)pthread_mutex_init(&desk->lock, NULL);
	*ret_desk = desk;
	return 0;
}

static void release_result(struct nt_profile_result *result)
{
	if (!result || atomic_fetch_sub(&result->users, 1) > 1)
		return;
	nt_arena_release(&result->arena);
	free(result);
}

void nt_profile_view_release(struct nt_profile_view *view)
{
	release_result(view->result);
	view->result = NULL;
}

void nt_profile_desk_free(struct nt_profile_desk *desk)
{
	if (!desk)
		return;
	for (size_t i = 0; i < NT_PROFILE_DESK_KEPT; i++)
		nt_profile_view_release(&desk->entry[i]);
	(void)pthread_mutex_destroy(&desk->lock);
	free(desk);
}

/* Under the lock: the one with this id, else the oldest. */
static struct nt_profile_view *place_of(struct nt_profile_desk *desk, uint64_t id)
{
	struct nt_profile_view *oldest = &desk->entry[0];

	for (size_t i = 0; i < NT_PROFILE_DESK_KEPT; i++) {
		struct nt_profile_view *entry = &desk->entry[i];

		if (id && entry->request.id == id)
			return entry;
		if (entry->request.set_real_ns < oldest->request.set_real_ns)
			oldest = entry;
	}
	return oldest;
}

void nt_profile_desk_replace(struct nt_profile_desk *desk, uint64_t id,
			     const struct nt_level_entry *request)
{
	struct nt_profile_view *place;

	(void)pthread_mutex_lock(&desk->lock);
	place = place_of(desk, id);
	nt_profile_view_release(place);
	*place = (struct nt_profile_view){.request = *request};
	(void)pthread_mutex_unlock(&desk->lock);
}

void nt_profile_desk_add(struct nt_profile_desk *desk, const struct nt_level_entry *request)
{
	nt_profile_desk_replace(desk, 0, request);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static const char *copy_name(struct nt_arena *arena, const char *text)
{
	const size_t len = strlen(text);
	char *copy = nt_arena_alloc(arena,
				    (len < NT_PROFILE_DESK_TEXT ? len : NT_PROFILE_DESK_TEXT) + 1);

	if (copy)
		(void)nt_text_clean(text, len, copy, NT_PROFILE_DESK_TEXT);
	return copy;
}

static int copy_frame_names(struct nt_arena *arena, const struct nt_wire_profile *from,
			    struct nt_wire_profile *to)
{
	to->frame = nt_arena_alloc(arena, (from->frames + 1) * sizeof(*to->frame));
	if (!to->frame)
		return -ENOMEM;
	for (size_t i = 0; i < from->frames; i++) {
		to->frame[i] = from->frame[i];
		to->frame[i].function = copy_name(arena, from->frame[i].function);
		to->frame[i].file = copy_name(arena, from->frame[i].file);
		if (!to->frame[i].function || !to->frame[i].file)
			return -ENOMEM;
	}
	return 0;
}

static int copy_samples(struct nt_arena *arena, const struct nt_wire_profile *from,
			struct nt_wire_profile *to)
{
	to->stack = nt_arena_alloc(arena, (from->stacks + 1) * sizeof(*to->stack));
	if (!to->stack)
		return -ENOMEM;
	for (size_t i = 0; i < from->stacks; i++) {
		const struct nt_wire_profile_stack *stack = &from->stack[i];
		const size_t bytes = stack->frames * sizeof(*stack->frame);

		to->stack[i] = *stack;
		to->stack[i].thread = copy_name(arena, stack->thread);
		to->stack[i].frame = nt_arena_alloc(arena, bytes + 1);
		if (!to->stack[i].thread || !to->stack[i].frame)
			return -ENOMEM;
		if (bytes)
			memcpy(to->stack[i].frame, stack->frame, bytes);
	}
	return 0;
}

/* -ENOMEM; -ENOBUFS: it is too large. */
static int copy_result(const struct nt_message *message, const struct nt_wire_profile *from,
		       struct nt_profile_result **ret_result)
{
	struct nt_profile_result *result = calloc(1, sizeof(*result));
	struct nt_wire_profile *to;
	int r;

	if (!result)
		return -ENOMEM;
	result->users = 1;
	result->arena.limit = NT_PROFILE_DESK_BYTES;
	to = &result->profile;
	*to = *from;
	to->reason = copy_name(&result->arena, from->reason);
	to->interpreter = copy_name(&result->arena, from->interpreter);
	r = to->reason && to->interpreter ? copy_frame_names(&result->arena, from, to) : -ENOMEM;
	if (r == 0)
		r = copy_samples(&result->arena, from, to);
	if (from->begin_boot_ns)
		result->begin_real_ns = nt_message_real_ns(message, from->begin_boot_ns);
	if (r == 0) {
		*ret_result = result;
		return 0;
	}
	if (result->arena.refused)
		r = result->arena.refused;
	release_result(result);
	return r;
}

/* ---- what arrives ---------------------------------------------------------------------------- */

static bool profile_is_sound(const struct nt_wire_profile *profile)
{
	for (size_t i = 0; i < profile->stacks; i++)
		for (size_t j = 0; j < profile->stack[i].frames; j++)
			if (profile->stack[i].frame[j] >= profile->frames)
				return false;
	return true;
}

/* NULL: the profile was not requested of that rank, or it has arrived already. */
static struct nt_profile_view *find_request(struct nt_profile_desk *desk,
					    const struct nt_message *message, uint64_t id)
{
	for (size_t i = 0; i < NT_PROFILE_DESK_KEPT; i++) {
		struct nt_profile_view *entry = &desk->entry[i];

		if (id && entry->request.id == id && entry->progress != NT_PROFILE_COMPLETE &&
		    strcmp(entry->request.target.name, message->key) == 0)
			return entry;
	}
	return NULL;
}

static int take_profile(struct nt_profile_desk *desk, const struct nt_message *message,
			const struct nt_wire_profile *profile)
{
	struct nt_profile_view *entry = find_request(desk, message, profile->request);
	int r;

	if (!entry) {
		desk->stats.unknown++;
		return 0;
	}
	if (profile->is_running) {
		entry->progress = NT_PROFILE_RUNNING;
		return 0;
	}
	r = profile_is_sound(profile) ? copy_result(message, profile, &entry->result) : -EBADMSG;
	if (r == 0) {
		entry->progress = NT_PROFILE_COMPLETE;
		desk->stats.taken++;
	}
	desk->stats.malformed += r == -EBADMSG || r == -ENOBUFS;
	return r == -ENOMEM ? r : 0;
}

int nt_profile_desk_take(struct nt_profile_desk *desk, const struct nt_message *message)
{
	int r = 0;

	if (message->body != NT_BODY_WINDOW || !message->window.profiles)
		return 0;
	(void)pthread_mutex_lock(&desk->lock);
	for (size_t i = 0; i < message->window.profiles && r == 0; i++)
		r = take_profile(desk, message, &message->window.profile[i]);
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

/* Under the lock. */
static void view_entry(struct nt_profile_view *entry, uint64_t now_real_ns,
		       struct nt_profile_view *ret_view)
{
	if (entry->progress != NT_PROFILE_COMPLETE &&
	    entry->request.set_real_ns + entry->request.profile.seconds * NT_SECOND +
			    NT_PROFILE_DESK_WAIT <
		    now_real_ns)
		entry->progress = NT_PROFILE_EXPIRED;
	*ret_view = *entry;
	if (entry->result)
		atomic_fetch_add(&entry->result->users, 1);
}

int nt_profile_desk_get(struct nt_profile_desk *desk, uint64_t id, uint64_t now_real_ns,
			struct nt_profile_view *ret_view)
{
	int r = -ENOENT;

	(void)pthread_mutex_lock(&desk->lock);
	for (size_t i = 0; i < NT_PROFILE_DESK_KEPT && r < 0; i++) {
		struct nt_profile_view *entry = &desk->entry[i];

		if (!id || entry->request.id != id)
			continue;
		view_entry(entry, now_real_ns, ret_view);
		r = 0;
	}
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

static int compare(const void *left, const void *right)
{
	const struct nt_profile_view *a = left, *b = right;

	if (a->request.set_real_ns != b->request.set_real_ns)
		return a->request.set_real_ns > b->request.set_real_ns ? -1 : 1;
	return 0;
}

size_t nt_profile_desk_list(struct nt_profile_desk *desk, uint64_t now_real_ns,
			    struct nt_profile_view ret_view[NT_PROFILE_DESK_KEPT])
{
	size_t count = 0;

	(void)pthread_mutex_lock(&desk->lock);
	for (size_t i = 0; i < NT_PROFILE_DESK_KEPT; i++)
		if (desk->entry[i].request.id)
			view_entry(&desk->entry[i], now_real_ns, &ret_view[count++]);
	(void)pthread_mutex_unlock(&desk->lock);
	qsort(ret_view, count, sizeof(*ret_view), compare);
	return count;
}

void nt_profile_desk_stats(struct nt_profile_desk *desk, struct nt_profile_desk_stats *ret_stats)
{
	(void)pthread_mutex_lock(&desk->lock);
	*ret_stats = desk->stats;
	(void)pthread_mutex_unlock(&desk->lock);
}
