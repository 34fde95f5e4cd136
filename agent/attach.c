/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/bundle.h"
#include "agent/kernel.h"
#include "agent/link.h"
#include "agent/linker.h"
#include "agent/same_file.h"
#include "agent/span.h"
#include "agent/symbols.h"

enum {
	FILES_MAX = 1024,
	NAMES_MAX = 4096,
	PATH_BYTES = 64,
};

struct file_link {
	struct nt_link *link; /* owned */
	bool stays;
};

struct nt_attached {
	int fd;
	uint32_t subjects; /* whose rows are attached, or were found missing */
	size_t names; /* (dev, ino) pairs that lead here */
	struct nt_target
		*target; /* what can be attached, by these links or by those of processes */
	size_t targets;
	struct file_link *link;
	size_t links, link_cap;
	enum nt_attached_split split;
};

/* Overlays give one file several. */
struct name {
	dev_t dev;
	ino_t ino;
	struct nt_attached *file;
};

struct nt_attach {
	struct nt_kernel *kernel;
	struct nt_linker *linker; /* owned; NULL: links are made and freed by the caller */
	struct nt_attached **file;
	size_t files;
	struct name *name;
	size_t names;
	uint64_t links, probes, refused_slow, failed;
};

const char *nt_attach_mode_name(enum nt_attach_mode mode)
{
	switch (mode) {
	case NT_ATTACH_SESSION:
		return "session";
	case NT_ATTACH_MULTI:
		return "multi";
	case NT_ATTACH_PERF:
		return "perf";
	default:
		return "auto";
	}
}

int nt_attach_new(const struct nt_attach_options *options, struct nt_attach **ret_attach)
{
	nt_auto(nt_attach) struct nt_attach *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	r = nt_kernel_new(options, &a->kernel);
	if (r == 0 && options->has_thread)
		r = nt_linker_new(a->kernel, &a->linker);
	if (r < 0)
		return r;
	*ret_attach = nt_take(a);
	return 0;
}

/* Each takes milliseconds to go, or 0.1 s: with a thread the caller does not wait for it. */
static void free_links(struct nt_attach *a, struct nt_attached *file)
{
	struct nt_bundle *bundle = a->linker ? nt_bundle_empty() : NULL;

	for (size_t i = 0; i < file->links; i++)
		if (!bundle || !nt_bundle_add(bundle, file->link[i].link))
			nt_link_free(file->link[i].link);
	if (bundle)
		nt_linker_drop(a->linker, bundle);
}

static void file_free(struct nt_attach *a, struct nt_attached *file)
{
	free_links(a, file);
	a->links -= file->links;
	a->probes -= file->targets;
	free(file->link);
	free(file->target);
	(void)close(file->fd);
	free(file);
}

void nt_attach_free(struct nt_attach *attach)
{
	if (!attach)
		return;
	for (size_t i = 0; i < attach->files; i++)
		file_free(attach, attach->file[i]);
	free(attach->file);
	free(attach->name);
	nt_linker_free(attach->linker);
	nt_kernel_free(attach->kernel);
	free(attach);
}

enum nt_attach_mode nt_attach_mode(const struct nt_attach *attach)
{
	return nt_kernel_mode(attach->kernel);
}

static struct name *find_name(struct nt_attach *a, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < a->names; i++)
		if (a->name[i].dev == dev && a->name[i].ino == ino)
			return &a->name[i];
	return NULL;
}

static int add_name(struct nt_attach *a, dev_t dev, ino_t ino, struct nt_attached *file)
{
	struct name *grown;

	if (a->names == NAMES_MAX)
		return -ENOSPC;
	grown = reallocarray(a->name, a->names + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	a->name = grown;
	a->name[a->names++] = (struct name){.dev = dev, .ino = ino, .file = file};
	file->names++;
	return 0;
}

/* The file of a name that is new: a known one under another name, or one more. */
static int add_file(struct nt_attach *a, int opened, dev_t dev, ino_t ino,
		    struct nt_attached **ret_file)
{
	nt_autoclose int fd = fcntl(opened, F_DUPFD_CLOEXEC, 0);
	struct nt_attached **grown, *file;
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_dev != dev || st.st_ino != ino)
		return -ESTALE;
	for (size_t i = 0; i < a->files; i++)
		if (nt_same_file(fd, a->file[i]->fd)) {
			r = add_name(a, dev, ino, a->file[i]);
			if (r < 0)
				return r;
			*ret_file = a->file[i];
			return 0;
		}
	if (a->files == FILES_MAX)
		return -ENOSPC;
	grown = reallocarray(a->file, a->files + 1, sizeof(struct nt_attached *));
	if (!grown)
		return -ENOMEM;
	a->file = grown;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	r = add_name(a, dev, ino, file);
	if (r < 0) {
		free(file);
		return r;
	}
	file->fd = nt_take_fd(&fd);
	a->file[a->files++] = file;
	*ret_file = file;
	return 0;
}

static bool is_target(const struct nt_attached *file, uint64_t function)
{
	for (size_t i = 0; i < file->targets; i++)
		if (file->target[i].function == function)
			return true;
	return false;
}

/* False: the file does not have it, has it under another name, or it is better left alone. */
static bool find_target(struct nt_attach *a, const struct nt_attached *file,
			const struct nt_symbols *symbols, uint16_t row,
			const struct nt_target *target, size_t targets,
			struct nt_target *ret_target)
{
	const struct nt_elf_symbol *symbol = nt_symbols_find(symbols, row);
	const struct nt_probe *probe = nt_probe_row(row);
	enum nt_target_kind kind = nt_target_kind_of(probe);
	enum nt_insn insn;

	if (!symbol || is_target(file, symbol->offset))
		return false;
	for (size_t i = 0; i < targets; i++)
		if (target[i].function == symbol->offset)
			return false;
	insn = kind == NT_TARGET_PAIR ? symbol->return_insn : symbol->insn;
	if (insn == NT_INSN_REFUSED) {
		a->failed++;
		return false;
	}
	if (insn == NT_INSN_SLOW && probe->hot) {
		a->refused_slow++;
		return false;
	}
	*ret_target = (struct nt_target){
		.place = {.offset = kind == NT_TARGET_PAIR ? symbol->return_offset
							   : symbol->entry_offset,
			  .cookie = nt_probe_cookie(row)},
		.function = symbol->offset,
		.row = row,
		.subject = probe->subject,
		.kind = kind,
		.stays = nt_probe_stays(probe),
	};
	return true;
}

/* What shares a link. */
static int by_link(const void *left, const void *right)
{
	const struct nt_target *a = left, *b = right;

	if (a->subject != b->subject)
		return a->subject < b->subject ? -1 : 1;
	if (a->stays != b->stays)
		return a->stays ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return 0;
}

static int keep_link(struct nt_attach *a, struct nt_attached *file, struct nt_link *link,
		     bool stays)
{
	if (file->links == file->link_cap) {
		size_t cap = file->link_cap ? 2 * file->link_cap : 8;
		struct file_link *grown = reallocarray(file->link, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		file->link = grown;
		file->link_cap = cap;
	}
	file->link[file->links++] = (struct file_link){.link = link, .stays = stays};
	a->links++;
	return 0;
}

/* The links that one kind of target needs. All of them or none. */
static int link_places(struct nt_attach *a, struct nt_attached *file, const char *path,
		       const struct nt_target *like, const struct nt_place *place, size_t places)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	int r;

	if (like->kind == NT_TARGET_PAIR)
		r = nt_kernel_link_pair(a->kernel, path, 0, place, places, &link, &leave);
	else
		r = nt_kernel_link_entry(a->kernel, like->kind == NT_TARGET_COUNT, path, 0, place,
					 places, &link);
	if (r < 0)
		return r;
	if (leave) {
		r = keep_link(a, file, leave, like->stays);
		if (r < 0)
			return r;
		(void)nt_take(leave);
	}
	r = keep_link(a, file, link, like->stays);
	if (r < 0)
		return r;
	(void)nt_take(link);
	return 0;
}

/* Is the target observed by links of processes while the file is split so far? */
static bool is_split_off(const struct nt_attached *file, const struct nt_target *target)
{
	return file->split == NT_ATTACHED_ALL ||
	       (file->split == NT_ATTACHED_BUT_STAYING && !target->stays);
}

/* Halves what the kernel does not take until the guilty places are alone, and counts them. */
static int link_targets(struct nt_attach *a, struct nt_attached *file, const char *path,
			const struct nt_target *target, size_t targets)
{
	nt_autofree struct nt_place *place = calloc(targets, sizeof(*place));
	struct nt_target *grown;
	int r = 0;

	if (!place)
		return -ENOMEM;
	grown = reallocarray(file->target, file->targets + targets, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	file->target = grown;
	for (size_t i = 0; i < targets; i++)
		place[i] = target[i].place;
	if (!is_split_off(file, target))
		r = link_places(a, file, path, target, place, targets);
	if (r >= 0) {
		memcpy(file->target + file->targets, target, targets * sizeof(*target));
		file->targets += targets;
		a->probes += targets;
		return 0;
	}
	if (r == -ENOMEM || r == -EPERM || r == -EACCES || r == -EMFILE)
		return r;
	if (targets == 1) {
		a->failed++;
		return 0;
	}
	r = link_targets(a, file, path, target, targets / 2);
	if (r < 0)
		return r;
	return link_targets(a, file, path, target + targets / 2, targets - targets / 2);
}

static int attach_subjects(struct nt_attach *a, struct nt_attached *file,
			   const struct nt_symbols *symbols, uint32_t subjects)
{
	uint16_t rows = nt_probe_rows();
	nt_autofree struct nt_target *target = calloc(rows, sizeof(*target));
	size_t before = file->targets, targets = 0, n;
	char path[PATH_BYTES];
	int r;

	if (!target)
		return -ENOMEM;
	/* The very file that was looked at, wherever its path leads by now. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	for (uint16_t row = 0; row < rows; row++)
		if ((subjects >> nt_probe_row(row)->subject & 1) &&
		    find_target(a, file, symbols, row, target, targets, &target[targets]))
			targets++;
	qsort(target, targets, sizeof(*target), by_link);
	for (size_t i = 0; i < targets; i += n) {
		for (n = 1; i + n < targets; n++)
			if (by_link(&target[i], &target[i + n]) != 0)
				break;
		r = link_targets(a, file, path, &target[i], n);
		if (r < 0)
			return r;
	}
	file->subjects |= subjects;
	return (int)(file->targets - before);
}

int nt_attach_opened(struct nt_attach *attach, int fd, const struct nt_symbols *symbols, dev_t dev,
		     ino_t ino, uint32_t subjects)
{
	struct name *name = find_name(attach, dev, ino);
	struct nt_attached *file = name ? name->file : NULL;
	int r;

	if (!file) {
		r = add_file(attach, fd, dev, ino, &file);
		if (r < 0 || !file)
			return r;
	}
	subjects &= ~file->subjects;
	return subjects ? attach_subjects(attach, file, symbols, subjects) : 0;
}

int nt_attach_file(struct nt_attach *attach, const char *path, dev_t dev, ino_t ino,
		   enum nt_library library, uint32_t subjects)
{
	nt_autofree struct nt_symbols *symbols = calloc(1, sizeof(*symbols));
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (!symbols)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	r = nt_symbols_read(fd, NULL, library, symbols);
	return r < 0 ? r : nt_attach_opened(attach, fd, symbols, dev, ino, subjects);
}

void nt_attach_drop(struct nt_attach *attach, dev_t dev, ino_t ino)
{
	struct name *name = find_name(attach, dev, ino);
	struct nt_attached *file;

	if (!name)
		return;
	file = name->file;
	*name = attach->name[--attach->names];
	if (--file->names > 0)
		return;
	for (size_t i = 0; i < attach->files; i++)
		if (attach->file[i] == file) {
			attach->file[i] = attach->file[--attach->files];
			break;
		}
	file_free(attach, file);
}

/* ---- files whose processes have links of their own ------------------------------------------ */

struct nt_attached *nt_attach_find(struct nt_attach *attach, dev_t dev, ino_t ino)
{
	struct name *name = find_name(attach, dev, ino);

	return name ? name->file : NULL;
}

const struct nt_target *nt_attached_targets(const struct nt_attached *file, size_t *ret_targets)
{
	*ret_targets = file->targets;
	return file->target;
}

int nt_attached_fd(const struct nt_attached *file)
{
	return file->fd;
}

size_t nt_attached_names(const struct nt_attached *file)
{
	return file->names;
}

enum nt_attached_split nt_attached_split(const struct nt_attached *file)
{
	return file->split;
}

struct nt_bundle *nt_attach_split(struct nt_attach *attach, struct nt_attached *file,
				  enum nt_attached_split split)
{
	struct nt_bundle *bundle = nt_bundle_empty();
	size_t kept = 0;

	if (!bundle)
		return NULL;
	file->split = split;
	for (size_t i = 0; i < file->links; i++) {
		if ((file->link[i].stays && split != NT_ATTACHED_ALL) ||
		    !nt_bundle_add(bundle, file->link[i].link))
			file->link[kept++] = file->link[i];
	}
	attach->links -= file->links - kept;
	file->links = kept;
	return bundle;
}

int nt_attach_join(struct nt_attach *attach, struct nt_attached *file, bool stays,
		   struct nt_bundle *bundle)
{
	struct nt_link *link;

	while ((link = nt_bundle_take(bundle))) {
		int r = keep_link(attach, file, link, stays);

		if (r < 0) {
			nt_link_free(link);
			return r;
		}
	}
	file->split = NT_ATTACHED_SHARED;
	return 0;
}

const struct nt_kernel *nt_attach_kernel(const struct nt_attach *attach)
{
	return attach->kernel;
}

int nt_attach_span(struct nt_attach *attach, int fd, uint32_t pid, int library,
		   struct nt_span **ret_span)
{
	return nt_span_new(attach->kernel, fd, pid, library, ret_span);
}

int nt_attach_span_at(struct nt_attach *attach, int fd, uint32_t pid,
		      const struct nt_span_places *places, struct nt_span **ret_span)
{
	return nt_span_new_at(attach->kernel, fd, pid, places, ret_span);
}

int nt_attach_fd(const struct nt_attach *attach)
{
	return nt_kernel_fd(attach->kernel);
}

int nt_attach_poll(struct nt_attach *attach, nt_event_fn fn, void *data)
{
	return nt_kernel_poll(attach->kernel, fn, data);
}

bool nt_attach_counters(const struct nt_attach *attach, uint32_t pid,
			struct nt_process_counters *ret_counters)
{
	return nt_kernel_counters(attach->kernel, pid, ret_counters);
}

int nt_attach_inside(struct nt_attach *attach, nt_inside_fn fn, void *data)
{
	return nt_kernel_inside(attach->kernel, fn, data);
}

void nt_attach_forget(struct nt_attach *attach, uint32_t pid)
{
	nt_kernel_forget(attach->kernel, pid);
}

void nt_attach_stats(const struct nt_attach *attach, struct nt_attach_stats *ret_stats)
{
	*ret_stats = (struct nt_attach_stats){
		.files = attach->files,
		.links = attach->links,
		.probes = attach->probes,
		.refused_slow = attach->refused_slow,
		.failed = attach->failed,
	};
	nt_kernel_stats(attach->kernel, ret_stats);
}
