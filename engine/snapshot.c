/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Snapshots are reference-counted, immutable memory. The board's lock covers one pointer and is
 * held for a copy and an increment.
 */
#include "engine/snapshot.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "proto/arena.h"

struct nt_board {
	pthread_mutex_t lock;
	struct nt_snapshot *snapshot;
};

const char *nt_job_state_name(enum nt_job_state state)
{
	static const char *const names[NT_JOB_STATE_END] = {
		[NT_JOB_RUNNING] = "running",
		[NT_JOB_HUNG] = "hung",
		[NT_JOB_UNOBSERVED] = "unobserved",
		[NT_JOB_ENDED] = "ended",
	};

	return (unsigned int)state < NT_JOB_STATE_END ? names[state] : "unknown";
}

static void free_arena(struct nt_arena *arena)
{
	nt_arena_release(arena);
	free(arena);
}

static void *alloc(struct nt_arena *arena, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	return nt_arena_alloc(arena, bytes ? bytes : 1);
}

static const char *copy_text(struct nt_arena *arena, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 1;
	char *copy = nt_arena_alloc(arena, size);

	if (copy && text)
		memcpy(copy, text, size);
	return copy;
}

int nt_board_new(struct nt_board **ret_board)
{
	struct nt_board *board = calloc(1, sizeof(*board));
	int r;

	if (!board)
		return -ENOMEM;
	r = pthread_mutex_init(&board->lock, NULL);
	if (r) {
		free(board);
		return -r;
	}
	*ret_board = board;
	return 0;
}

void nt_board_free(struct nt_board *board)
{
	if (!board)
		return;
	nt_snapshot_release(board->snapshot);
	(void)pthread_mutex_destroy(&board->lock);
	free(board);
}

void nt_board_post(struct nt_board *board, struct nt_snapshot *snapshot)
{
	struct nt_snapshot *old;

	(void)pthread_mutex_lock(&board->lock);
	old = board->snapshot;
	board->snapshot = snapshot;
	(void)pthread_mutex_unlock(&board->lock);
	nt_snapshot_release(old);
}

const struct nt_snapshot *nt_snapshot_acquire(struct nt_board *board)
{
	struct nt_snapshot *snapshot;

	(void)pthread_mutex_lock(&board->lock);
	snapshot = board->snapshot;
	if (snapshot)
		atomic_fetch_add_explicit(&snapshot->refs, 1, memory_order_relaxed);
	(void)pthread_mutex_unlock(&board->lock);
	return snapshot;
}

void nt_snapshot_release(const struct nt_snapshot *shared)
{
	/* Immutable for its readers, except the reference count. */
	struct nt_snapshot *snapshot = (struct nt_snapshot *)shared;

	if (!snapshot)
		return;
	if (atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t i = 0; i < snapshot->jobs; i++)
		nt_snapshot_job_unref((struct nt_snapshot_job *)snapshot->job[i]);
	free_arena(snapshot->arena);
	free(snapshot);
}

const struct nt_snapshot_job *nt_snapshot_find(const struct nt_snapshot *snapshot, const char *id)
{
	for (size_t i = 0; i < snapshot->jobs; i++)
		if (strcmp(snapshot->job[i]->id, id) == 0)
			return snapshot->job[i];
	return NULL;
}

/* "lmp" of "lmp-eadf": agents add a part of the key to names that nobody chose. */
size_t nt_snapshot_name_without_part(const char *name)
{
	const size_t len = strlen(name);

	return len > 5 && name[len - 5] == '-' && strspn(name + len - 4, "0123456789abcdef") == 4
		       ? len - 5
		       : len;
}

static bool is_name_without_part(const char *wanted, const char *name)
{
	const size_t len = strlen(wanted);

	return strncmp(name, wanted, len) == 0 && nt_snapshot_name_without_part(name) == len;
}

bool nt_snapshot_job_matches(const struct nt_snapshot_job *job, const char *wanted)
{
	return strcmp(wanted, job->name) == 0 || strcmp(wanted, job->key) == 0 ||
	       strcmp(wanted, job->id) == 0 || is_name_without_part(wanted, job->name);
}

struct nt_snapshot *nt_snapshot_new(void)
{
	struct nt_snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return NULL;
	snapshot->arena = calloc(1, sizeof(*snapshot->arena));
	if (!snapshot->arena) {
		free(snapshot);
		return NULL;
	}
	atomic_init(&snapshot->refs, 1);
	return snapshot;
}

void *nt_snapshot_alloc(struct nt_snapshot *snapshot, size_t count, size_t size)
{
	return alloc(snapshot->arena, count, size);
}

const char *nt_snapshot_text(struct nt_snapshot *snapshot, const char *text)
{
	return copy_text(snapshot->arena, text);
}

struct nt_snapshot_job *nt_snapshot_job_new(void)
{
	struct nt_snapshot_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->arena = calloc(1, sizeof(*job->arena));
	if (!job->arena) {
		free(job);
		return NULL;
	}
	atomic_init(&job->refs, 1);
	job->key = job->name = job->namespace = job->owner = "";
	return job;
}

void *nt_snapshot_job_alloc(struct nt_snapshot_job *job, size_t count, size_t size)
{
	return alloc(job->arena, count, size);
}

const char *nt_snapshot_job_text(struct nt_snapshot_job *job, const char *text)
{
	return copy_text(job->arena, text);
}

struct nt_snapshot_job *nt_snapshot_job_ref(struct nt_snapshot_job *job)
{
	atomic_fetch_add_explicit(&job->refs, 1, memory_order_relaxed);
	return job;
}

void nt_snapshot_job_unref(struct nt_snapshot_job *job)
{
	if (!job)
		return;
	if (atomic_fetch_sub_explicit(&job->refs, 1, memory_order_acq_rel) > 1)
		return;
	free_arena(job->arena);
	free(job);
}
