/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/attachment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum {
	DRIVER_TICKS = 3, /* a program links or loads its runtime before it works */
	RUNTIME = 1U << NT_SUBJECT_COMM | 1U << NT_SUBJECT_LAUNCH | 1U << NT_SUBJECT_SYNC |
		  1U << NT_SUBJECT_ORDER | 1U << NT_SUBJECT_COPY | 1U << NT_SUBJECT_ALLOC,
	DRIVER = 1U << NT_SUBJECT_DRIVER | 1U << NT_SUBJECT_SYNC,
};

struct file_key {
	uint64_t dev, ino;
};

struct file {
	struct file_key key;
	uint32_t uses;
	uint64_t unused_ns; /* since when it has no users */
	UT_hash_handle hh;
};

/* One process maps one file. Few enough to be walked. */
struct use {
	uint32_t pid;
	uint64_t start_ns;
	struct file_key file;
	enum nt_library library;
	char *path; /* owned; of a driver that is not attached yet, else NULL */
	uint32_t ticks;
	struct use *next;
};

struct nt_attachment {
	struct nt_attachment_hooks hooks;
	struct file *files; /* uthash, owned */
	struct use *uses; /* owned */
	uint32_t use_count;
	uint64_t over_cap;
};

int nt_attachment_new(const struct nt_attachment_hooks *hooks,
		      struct nt_attachment **ret_attachment)
{
	struct nt_attachment *attachment = calloc(1, sizeof(*attachment));

	if (!attachment)
		return -ENOMEM;
	attachment->hooks = *hooks;
	*ret_attachment = attachment;
	return 0;
}

static void free_use(struct use *use)
{
	free(use->path);
	free(use);
}

void nt_attachment_free(struct nt_attachment *attachment)
{
	struct file *file, *next;

	if (!attachment)
		return;
	HASH_ITER(hh, attachment->files, file, next)
	{
		HASH_DEL(attachment->files, file);
		free(file);
	}
	while (attachment->uses) {
		struct use *use = attachment->uses;

		attachment->uses = use->next;
		free_use(use);
	}
	free(attachment);
}

static struct file *take_file(struct nt_attachment *attachment, struct file_key key)
{
	struct file *file = NULL;

	HASH_FIND(hh, attachment->files, &key, sizeof(key), file);
	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->key = key;
	HASH_ADD(hh, attachment->files, key, sizeof(file->key), file);
	return file;
}

int nt_attachment_use(struct nt_attachment *attachment, const struct nt_mapped_file *file)
{
	struct file_key key = {.dev = file->dev, .ino = file->ino};
	struct use *use;
	struct file *entry;

	if (attachment->use_count == NT_ATTACHMENT_USES) {
		attachment->over_cap++;
		return -ENOSPC;
	}
	use = calloc(1, sizeof(*use));
	if (!use)
		return -ENOMEM;
	entry = take_file(attachment, key);
	if (!entry) {
		free(use);
		return -ENOMEM;
	}
	entry->uses++;
	use->pid = file->pid;
	use->start_ns = file->start_boot_ns;
	use->file = key;
	use->library = file->library;
	use->next = attachment->uses;
	attachment->uses = use;
	attachment->use_count++;
	if (file->library == NT_LIBRARY_CUDA) {
		use->path = strdup(file->path);
		return 0;
	}
	return attachment->hooks.attach(attachment->hooks.data, file, RUNTIME);
}

void nt_attachment_end(struct nt_attachment *attachment, uint32_t pid, uint64_t start_boot_ns,
		       uint64_t now_ns)
{
	struct use **at = &attachment->uses;

	while (*at) {
		struct use *use = *at;
		struct file *file = NULL;

		if (use->pid != pid || use->start_ns != start_boot_ns) {
			at = &use->next;
			continue;
		}
		HASH_FIND(hh, attachment->files, &use->file, sizeof(use->file), file);
		if (file && --file->uses == 0)
			file->unused_ns = now_ns;
		*at = use->next;
		attachment->use_count--;
		free_use(use);
	}
}

static bool has_runtime(const struct nt_attachment *attachment, const struct use *driver)
{
	for (const struct use *use = attachment->uses; use; use = use->next) {
		if (use->pid == driver->pid && use->start_ns == driver->start_ns &&
		    use->library == NT_LIBRARY_CUDART)
			return true;
	}
	return false;
}

static void attach_driver(struct nt_attachment *attachment, struct use *use)
{
	struct nt_mapped_file file = {
		.pid = use->pid,
		.start_boot_ns = use->start_ns,
		.dev = use->file.dev,
		.ino = use->file.ino,
		.path = use->path,
		.name = use->path,
		.library = NT_LIBRARY_CUDA,
	};

	if (!has_runtime(attachment, use))
		(void)attachment->hooks.attach(attachment->hooks.data, &file, DRIVER);
	free(use->path);
	use->path = NULL;
}

void nt_attachment_tick(struct nt_attachment *attachment, uint64_t now_ns)
{
	struct file *file, *next;

	for (struct use *use = attachment->uses; use; use = use->next) {
		if (use->path && ++use->ticks >= DRIVER_TICKS)
			attach_driver(attachment, use);
	}
	HASH_ITER(hh, attachment->files, file, next)
	{
		if (file->uses || now_ns < file->unused_ns + NT_ATTACHMENT_KEEP_NS)
			continue;
		attachment->hooks.drop(attachment->hooks.data, (dev_t)file->key.dev,
				       (ino_t)file->key.ino);
		HASH_DEL(attachment->files, file);
		free(file);
	}
}

uint64_t nt_attachment_over_cap(const struct nt_attachment *attachment)
{
	return attachment->over_cap;
}
