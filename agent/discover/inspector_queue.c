/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The inspection queue: one line per owner, served round-robin, without duplicates. */
#include "agent/discover/inspector_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"

/* ---- equal tasks ---------------------------------------------------------------------------- */

static struct nt_inspector_entry **about_of(struct nt_inspector *inspector, uint32_t pid)
{
	return &inspector->about[nt_hash_mix(pid) % NT_INSPECTOR_PIDS];
}

static bool looks_at_process(uint32_t kind)
{
	return kind == NT_INSPECT_PROCESS || kind == NT_INSPECT_PROGRAM ||
	       kind == NT_INSPECT_MAPPING;
}

static void list(struct nt_inspector *inspector, struct nt_inspector_entry *task)
{
	struct nt_inspector_entry **first = about_of(inspector, task->task.request.pid);

	task->is_about = looks_at_process(task->task.request.kind);
	if (task->is_about)
		DL_APPEND2(*first, task, about_prev, about_next);
}

static void unlist(struct nt_inspector *inspector, struct nt_inspector_entry *task)
{
	struct nt_inspector_entry **first = about_of(inspector, task->task.request.pid);

	if (task->is_about)
		DL_DELETE2(*first, task, about_prev, about_next);
	task->is_about = false;
}

static bool is_same_process(const struct nt_inspector_task *a, const struct nt_inspector_task *b)
{
	return a->request.pid == b->request.pid && a->client == b->client &&
	       a->start_ns == b->start_ns && a->is_exec == b->is_exec;
}

/* True if the queued task covers the other. */
static bool subsumes(const struct nt_inspector_entry *queued, const struct nt_inspector_task *task,
		     const char *path)
{
	const struct nt_inspection_request *q = &queued->task.request, *r = &task->request;

	if (!is_same_process(&queued->task, task))
		return false;
	if (q->kind == NT_INSPECT_PROCESS)
		return true;
	if (q->kind != r->kind)
		return false;
	return r->kind == NT_INSPECT_PROGRAM ||
	       (q->address == r->address && q->size == r->size && q->ino == r->ino && path &&
		queued->path && strcmp(path, queued->path) == 0);
}

struct nt_inspector_entry *nt_inspector_find_equal(struct nt_inspector *inspector,
						   const struct nt_inspector_task *task,
						   const char *path)
{
	struct nt_inspector_entry *queued;

	if (!looks_at_process(task->request.kind))
		return NULL;
	DL_FOREACH2(*about_of(inspector, task->request.pid), queued, about_next)
	if (subsumes(queued, task, path))
		break;
	return queued;
}

bool nt_inspector_has_many_mappings(struct nt_inspector *inspector, uint32_t pid)
{
	const struct nt_inspector_entry *queued;
	int mappings = 0;

	DL_FOREACH2(*about_of(inspector, pid), queued, about_next)
	mappings +=
		queued->task.request.pid == pid && queued->task.request.kind == NT_INSPECT_MAPPING;
	return mappings >= NT_INSPECTOR_MAPPINGS;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static struct nt_inspector_line *take_line(struct nt_inspector *inspector, uint64_t id)
{
	struct nt_inspector_line *line = NULL;

	HASH_FIND(hh, inspector->lines, &id, sizeof(id), line);
	if (line)
		return line;
	line = calloc(1, sizeof(*line));
	if (!line)
		return NULL;
	line->id = id;
	line->end = &line->first;
	HASH_ADD(hh, inspector->lines, id, sizeof(line->id), line);
	if (line->is_lost) {
		free(line);
		return NULL;
	}
	DL_APPEND(inspector->turn, line);
	return line;
}

static void free_line(struct nt_inspector *inspector, struct nt_inspector_line *line)
{
	DL_DELETE(inspector->turn, line);
	HASH_DEL(inspector->lines, line);
	free(line);
}

static void append(struct nt_inspector *inspector, struct nt_inspector_line *line,
		   struct nt_inspector_entry *task)
{
	task->line = line;
	*line->end = task;
	line->end = &task->next;
	inspector->queued++;
}

/* Takes out the entry that `at` points to. Other owners are served before the next of its owner. */
struct nt_inspector_entry *nt_inspector_take_out(struct nt_inspector *inspector,
						 struct nt_inspector_entry **at)
{
	struct nt_inspector_entry *task = *at;
	struct nt_inspector_line *line = task->line;

	*at = task->next;
	if (line->end == &task->next)
		line->end = at;
	task->next = NULL;
	task->line = NULL;
	unlist(inspector, task);
	inspector->queued--;
	nt_share_leave(&inspector->share, &task->place);
	if (line->first) {
		DL_DELETE(inspector->turn, line);
		DL_APPEND(inspector->turn, line);
	} else {
		free_line(inspector, line);
	}
	return task;
}

int nt_inspector_queue(struct nt_inspector *inspector, struct nt_inspector_entry *task)
{
	struct nt_inspector_line *line;
	int r = nt_share_enter_for_good(&inspector->share, &task->task.owner, &task->place);

	if (r == -ENOSPC)
		inspector->stats.over_cap++;
	if (r < 0)
		return r;
	line = take_line(inspector, task->task.owner.id);
	if (!line)
		return -ENOMEM;
	append(inspector, line, task);
	list(inspector, task);
	return 0;
}
