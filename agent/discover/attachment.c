/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/attachment.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum {
	DRIVER_TICKS = 3, /* a program has loaded its runtime by then */
	RUNTIME = 1U << NT_SUBJECT_COMM | 1U << NT_SUBJECT_LAUNCH | 1U << NT_SUBJECT_SYNC |
		  1U << NT_SUBJECT_ORDER | 1U << NT_SUBJECT_COPY | 1U << NT_SUBJECT_ALLOC |
		  1U << NT_SUBJECT_GEMM,
	DRIVER = 1U << NT_SUBJECT_DRIVER | 1U << NT_SUBJECT_SYNC,
	/* Programs and libraries that use the runtime allocate through the driver as well. */
	DRIVER_ALWAYS = 1U << NT_SUBJECT_ALLOC,
};

struct file_key {
	uint64_t dev, ino;
};

struct attached_file {
	struct file_key key;
	uint64_t serial; /* of this entry: a file may be evicted and added again */
	uint32_t uses;
	bool has_driver; /* its driver's functions are attached */
	uint64_t unused_ns; /* since when it has no users */
	struct nt_owner owner; /* the first owner */
	struct nt_share_entry place;
	bool is_common; /* used by several owners, and in no share */
	UT_hash_handle hh;
};

/* One process maps one file. */
struct use {
	struct file_key file;
	uint64_t serial; /* of the file's entry; 0: it has none */
	enum nt_library library;
	char *path; /* owned; of a driver that is not attached yet, else NULL */
	uint32_t ticks;
};

struct attached_process {
	uint32_t pid;
	uint64_t start_ns;
	struct use *use; /* owned */
	size_t uses;
	uint32_t waiting; /* drivers that are not attached yet */
	struct attached_process *prev, *next; /* list of processes with waiting > 0 */
	UT_hash_handle hh;
};

struct nt_attachment {
	struct nt_attachment_hooks hooks;
	struct attached_file *files; /* uthash, owned */
	struct attached_process *processes; /* uthash, owned */
	struct attached_process *waiting; /* list */
	struct nt_share share; /* of files; those in use count as called */
	uint32_t commons;
	uint64_t serials, over_cap;
	bool hold;
};

int nt_attachment_new(const struct nt_attachment_hooks *hooks,
		      struct nt_attachment **ret_attachment)
{
	struct nt_attachment *attachment = calloc(1, sizeof(*attachment));

	if (!attachment)
		return -ENOMEM;
	attachment->hooks = *hooks;
	nt_share_init(&attachment->share, NT_ATTACHMENT_FILES);
	*ret_attachment = attachment;
	return 0;
}

static void free_process(struct nt_attachment *attachment, struct attached_process *process)
{
	for (size_t i = 0; i < process->uses; i++)
		free(process->use[i].path);
	if (process->waiting)
		DL_DELETE(attachment->waiting, process);
	HASH_DEL(attachment->processes, process);
	free(process->use);
	free(process);
}

static void free_file(struct nt_attachment *attachment, struct attached_file *file)
{
	nt_share_leave(&attachment->share, &file->place);
	attachment->commons -= file->is_common;
	HASH_DEL(attachment->files, file);
	free(file);
}

void nt_attachment_free(struct nt_attachment *attachment)
{
	struct attached_process *process, *next_process;
	struct attached_file *file, *next;

	if (!attachment)
		return;
	HASH_ITER(hh, attachment->files, file, next)
	free_file(attachment, file);
	HASH_ITER(hh, attachment->processes, process, next_process)
	free_process(attachment, process);
	nt_share_release(&attachment->share);
	free(attachment);
}

/* ---- files ---------------------------------------------------------------------------------- */

static struct attached_file *find_file(const struct nt_attachment *attachment,
				       const struct file_key *key)
{
	struct attached_file *file = NULL;

	HASH_FIND(hh, attachment->files, key, sizeof(*key), file);
	return file;
}

static void drop_file(struct nt_attachment *attachment, struct attached_file *file)
{
	attachment->hooks.drop(attachment->hooks.data, (dev_t)file->key.dev, (ino_t)file->key.ino);
	free_file(attachment, file);
}

static struct attached_file *file_of(struct nt_share_entry *place)
{
	char *start = (char *)place - offsetof(struct attached_file, place);

	return (struct attached_file *)(void *)start;
}

/*
 * Takes a file of several owners out of the shares: eviction of one owner must not affect others.
 */
static void take_common(struct nt_attachment *attachment, struct attached_file *file,
			const struct nt_owner *owner)
{
	if (file->is_common || !owner || owner->id == file->owner.id ||
	    attachment->commons == NT_ATTACHMENT_COMMON)
		return;
	nt_share_leave(&attachment->share, &file->place);
	file->is_common = true;
	attachment->commons++;
}

/* A file's entry with a place. NULL: the owner's share is full, or out of memory. */
static struct attached_file *take_file(struct nt_attachment *attachment, const struct file_key *key,
				       const struct nt_owner *owner)
{
	struct attached_file *file = find_file(attachment, key);
	struct nt_share_entry *victim;

	if (file) {
		nt_share_call(&file->place);
		take_common(attachment, file, owner);
		return file;
	}
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	if (nt_share_enter(&attachment->share, owner, true, &file->place, &victim) < 0) {
		nt_share_leave(&attachment->share, &file->place);
		nt_share_miss(&attachment->share, owner, 1);
		attachment->over_cap++;
		free(file);
		return NULL;
	}
	if (owner)
		file->owner = *owner;
	file->key = *key;
	file->serial = ++attachment->serials;
	HASH_ADD(hh, attachment->files, key, sizeof(file->key), file);
	if (victim) {
		/* The eviction of an unused file is no loss. */
		if (file_of(victim)->uses) {
			nt_share_miss(&attachment->share, &file_of(victim)->owner, 1);
			attachment->over_cap++;
		}
		drop_file(attachment, file_of(victim));
	}
	return file;
}

/* ---- processes ------------------------------------------------------------------------------ */

static struct attached_process *take_process(struct nt_attachment *attachment, uint32_t pid,
					     uint64_t start_ns)
{
	struct attached_process *process = NULL;

	HASH_FIND(hh, attachment->processes, &pid, sizeof(pid), process);
	if (process && process->start_ns == start_ns)
		return process;
	if (process) /* its exit was not reported */
		nt_attachment_end(attachment, pid, process->start_ns, 0);
	if (HASH_COUNT(attachment->processes) >= NT_ATTACHMENT_PROCESSES) {
		attachment->over_cap++;
		return NULL;
	}
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->start_ns = start_ns;
	HASH_ADD(hh, attachment->processes, pid, sizeof(process->pid), process);
	return process;
}

/* The process's entry for the file. NULL: at the cap, or out of memory. */
static struct use *take_use(struct nt_attachment *attachment, struct attached_process *process,
			    const struct file_key *key)
{
	struct use *grown;

	for (size_t i = 0; i < process->uses; i++) {
		if (memcmp(&process->use[i].file, key, sizeof(*key)) == 0)
			return &process->use[i];
	}
	if (process->uses == NT_PROCESS_TABLE_FILES) {
		attachment->over_cap++;
		return NULL;
	}
	grown = reallocarray(process->use, process->uses + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	process->use = grown;
	grown[process->uses] = (struct use){.file = *key};
	return &grown[process->uses++];
}

static void await_driver(struct nt_attachment *attachment, struct attached_process *process,
			 struct use *use, const char *path)
{
	if (use->path)
		return;
	use->path = strdup(path);
	if (use->path && !process->waiting++)
		DL_APPEND(attachment->waiting, process);
}

int nt_attachment_use(struct nt_attachment *attachment, const struct nt_mapped_file *mapped)
{
	const struct file_key key = {.dev = mapped->dev, .ino = mapped->ino};
	struct attached_process *process =
		take_process(attachment, mapped->pid, mapped->start_boot_ns);
	struct use *use = process ? take_use(attachment, process, &key) : NULL;
	struct attached_file *file;

	if (!use)
		return -ENOSPC;
	file = take_file(attachment, &key, mapped->owner);
	if (!file)
		return -ENOSPC;
	if (use->serial != file->serial) {
		file->uses++;
		use->serial = file->serial;
	}
	use->library = mapped->library;
	if (mapped->library == NT_LIBRARY_CUDA) {
		if (!file->has_driver)
			await_driver(attachment, process, use, mapped->path);
		return attachment->hooks.attach(attachment->hooks.data, mapped, DRIVER_ALWAYS);
	}
	return attachment->hooks.attach(attachment->hooks.data, mapped, RUNTIME);
}

void nt_attachment_end(struct nt_attachment *attachment, uint32_t pid, uint64_t start_boot_ns,
		       uint64_t now_ns)
{
	struct attached_process *process = NULL;

	HASH_FIND(hh, attachment->processes, &pid, sizeof(pid), process);
	if (!process || process->start_ns != start_boot_ns)
		return;
	for (size_t i = 0; i < process->uses; i++) {
		struct attached_file *file = find_file(attachment, &process->use[i].file);

		if (!file || file->serial != process->use[i].serial || --file->uses > 0)
			continue;
		file->unused_ns = now_ns;
		nt_share_rest(&file->place);
	}
	free_process(attachment, process);
}

static bool has_runtime(const struct attached_process *process)
{
	for (size_t i = 0; i < process->uses; i++) {
		if (process->use[i].library == NT_LIBRARY_CUDART)
			return true;
	}
	return false;
}

static void attach_driver(struct nt_attachment *attachment, const struct attached_process *process,
			  const struct use *use)
{
	struct attached_file *entry = find_file(attachment, &use->file);
	struct nt_mapped_file file = {
		.pid = process->pid,
		.start_boot_ns = process->start_ns,
		.dev = use->file.dev,
		.ino = use->file.ino,
		.path = use->path,
		.name = use->path,
		.library = NT_LIBRARY_CUDA,
	};

	if (!entry || entry->serial != use->serial || entry->has_driver || has_runtime(process))
		return;
	entry->has_driver = attachment->hooks.attach(attachment->hooks.data, &file, DRIVER) >= 0;
}

static void tick_drivers(struct nt_attachment *attachment, struct attached_process *process)
{
	for (size_t i = 0; i < process->uses; i++) {
		struct use *use = &process->use[i];

		if (!use->path || ++use->ticks < DRIVER_TICKS)
			continue;
		attach_driver(attachment, process, use);
		free(nt_take(use->path));
		if (--process->waiting == 0)
			DL_DELETE(attachment->waiting, process);
	}
}

void nt_attachment_hold(struct nt_attachment *attachment, bool hold)
{
	attachment->hold = hold;
}

void nt_attachment_tick(struct nt_attachment *attachment, uint64_t now_ns)
{
	struct attached_process *process, *next_process;
	struct attached_file *file, *next;
	int drops = 0;

	DL_FOREACH_SAFE(attachment->waiting, process, next_process)
	tick_drivers(attachment, process);
	if (nt_share_has_room(&attachment->share))
		nt_share_forgive(&attachment->share);
	if (attachment->hold)
		return;
	HASH_ITER(hh, attachment->files, file, next)
	{
		if (drops == NT_ATTACHMENT_DROPS)
			break;
		if (file->uses || now_ns < file->unused_ns + NT_ATTACHMENT_KEEP_NS)
			continue;
		drop_file(attachment, file);
		drops++;
	}
}

const struct nt_share *nt_attachment_share(const struct nt_attachment *attachment)
{
	return &attachment->share;
}

uint64_t nt_attachment_over_cap(const struct nt_attachment *attachment)
{
	return attachment->over_cap;
}
