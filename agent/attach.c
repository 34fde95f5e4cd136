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

#include "agent/elf.h"
#include "agent/kernel.h"
#include "agent/link.h"
#include "agent/same_file.h"
#include "agent/span.h"

enum {
	FILES_MAX = 1024,
	NAMES_MAX = 4096,
	PATH_BYTES = 64,
};

/* How a row is attached. */
enum kind {
	KIND_COUNT, /* only counted */
	KIND_ENTRY,
	KIND_PAIR, /* entry and return */
	KIND_END,
};

/* A function to be probed. */
struct target {
	struct nt_place place;
	enum nt_subject subject;
	enum kind kind;
	uint64_t function; /* its start: aliases share it */
};

struct file {
	int fd;
	uint32_t subjects; /* whose rows are attached, or were found missing */
	size_t names; /* (dev, ino) pairs that lead here */
	uint64_t *function; /* the starts of what is attached */
	size_t functions;
	struct nt_link **link;
	size_t links;
};

/* Overlays give one file several. */
struct name {
	dev_t dev;
	ino_t ino;
	struct file *file;
};

struct nt_attach {
	struct nt_kernel *kernel;
	struct file **file;
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
	if (r < 0)
		return r;
	*ret_attach = nt_take(a);
	return 0;
}

static void file_free(struct nt_attach *a, struct file *file)
{
	for (size_t i = 0; i < file->links; i++)
		nt_link_free(file->link[i]);
	a->links -= file->links;
	a->probes -= file->functions;
	free(file->link);
	free(file->function);
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

static int add_name(struct nt_attach *a, dev_t dev, ino_t ino, struct file *file)
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
static int add_file(struct nt_attach *a, const char *path, dev_t dev, ino_t ino,
		    struct file **ret_file)
{
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct file **grown, *file;
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
	grown = reallocarray(a->file, a->files + 1, sizeof(struct file *));
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

static bool is_attached(const struct file *file, uint64_t function)
{
	for (size_t i = 0; i < file->functions; i++)
		if (file->function[i] == function)
			return true;
	return false;
}

static enum kind kind_of(const struct nt_probe *probe)
{
	if (probe->returns)
		return KIND_PAIR;
	return probe->counter >= 0 && !probe->words ? KIND_COUNT : KIND_ENTRY;
}

/* False: the file does not have it, has it under another name, or it is better left alone. */
static bool find_target(struct nt_attach *a, const struct file *file, const struct nt_elf *elf,
			uint16_t row, const struct target *target, size_t targets,
			struct target *ret_target)
{
	const struct nt_probe *probe = nt_probe_row(row);
	enum kind kind = kind_of(probe);
	struct nt_elf_symbol symbol;
	enum nt_insn insn;

	if (nt_elf_find(elf, probe->symbol, &symbol) < 0 || is_attached(file, symbol.offset))
		return false;
	for (size_t i = 0; i < targets; i++)
		if (target[i].function == symbol.offset)
			return false;
	insn = kind == KIND_PAIR ? symbol.return_insn : symbol.insn;
	if (insn == NT_INSN_REFUSED) {
		a->failed++;
		return false;
	}
	if (insn == NT_INSN_SLOW && probe->hot) {
		a->refused_slow++;
		return false;
	}
	*ret_target = (struct target){
		.place = {.offset = kind == KIND_PAIR ? symbol.return_offset : symbol.entry_offset,
			  .cookie = nt_probe_cookie(row)},
		.subject = probe->subject,
		.kind = kind,
		.function = symbol.offset,
	};
	return true;
}

static int by_subject_and_kind(const void *left, const void *right)
{
	const struct target *a = left, *b = right;

	if (a->subject != b->subject)
		return a->subject < b->subject ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return 0;
}

static int keep_link(struct nt_attach *a, struct file *file, struct nt_link *link)
{
	struct nt_link **grown =
		reallocarray(file->link, file->links + 1, sizeof(struct nt_link *));

	if (!grown)
		return -ENOMEM;
	file->link = grown;
	file->link[file->links++] = link;
	a->links++;
	return 0;
}

/* The links that one kind of target needs. All of them or none. */
static int link_places(struct nt_attach *a, struct file *file, const char *path, enum kind kind,
		       const struct nt_place *place, size_t places)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	int r;

	if (kind == KIND_PAIR)
		r = nt_kernel_link_pair(a->kernel, path, place, places, &link, &leave);
	else
		r = nt_kernel_link_entry(a->kernel, kind == KIND_COUNT, path, place, places, &link);
	if (r < 0)
		return r;
	if (leave) {
		r = keep_link(a, file, leave);
		if (r < 0)
			return r;
		(void)nt_take(leave);
	}
	r = keep_link(a, file, link);
	if (r < 0)
		return r;
	(void)nt_take(link);
	return 0;
}

/* Halves what the kernel does not take until the guilty places are alone, and counts them. */
static int link_targets(struct nt_attach *a, struct file *file, const char *path,
			const struct target *target, size_t targets)
{
	nt_autofree struct nt_place *place = calloc(targets, sizeof(*place));
	uint64_t *grown;
	int r;

	if (!place)
		return -ENOMEM;
	grown = reallocarray(file->function, file->functions + targets, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	file->function = grown;
	for (size_t i = 0; i < targets; i++)
		place[i] = target[i].place;
	r = link_places(a, file, path, target->kind, place, targets);
	if (r >= 0) {
		for (size_t i = 0; i < targets; i++)
			file->function[file->functions++] = target[i].function;
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

static int attach_subjects(struct nt_attach *a, struct file *file, enum nt_library library,
			   uint32_t subjects)
{
	uint16_t rows = nt_probe_rows();
	nt_autofree struct target *target = calloc(rows, sizeof(*target));
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	size_t before = file->functions, targets = 0, n;
	char path[PATH_BYTES];
	int r;

	if (!target)
		return -ENOMEM;
	/* The very file that was looked at, wherever its path leads by now. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	r = nt_elf_open(path, &elf);
	if (r < 0)
		return r;
	for (uint16_t row = 0; row < rows; row++) {
		const struct nt_probe *probe = nt_probe_row(row);

		if (probe->timed || (library != NT_LIBRARY_UNKNOWN && probe->library != library))
			continue;
		if ((subjects >> probe->subject & 1) &&
		    find_target(a, file, elf, row, target, targets, &target[targets]))
			targets++;
	}
	qsort(target, targets, sizeof(*target), by_subject_and_kind);
	for (size_t i = 0; i < targets; i += n) {
		for (n = 1; i + n < targets; n++)
			if (by_subject_and_kind(&target[i], &target[i + n]) != 0)
				break;
		r = link_targets(a, file, path, &target[i], n);
		if (r < 0)
			return r;
	}
	file->subjects |= subjects;
	return (int)(file->functions - before);
}

int nt_attach_file(struct nt_attach *attach, const char *path, dev_t dev, ino_t ino,
		   enum nt_library library, uint32_t subjects)
{
	struct name *name = find_name(attach, dev, ino);
	struct file *file = name ? name->file : NULL;
	int r;

	if (!file) {
		r = add_file(attach, path, dev, ino, &file);
		if (r < 0 || !file)
			return r;
	}
	subjects &= ~file->subjects;
	return subjects ? attach_subjects(attach, file, library, subjects) : 0;
}

void nt_attach_drop(struct nt_attach *attach, dev_t dev, ino_t ino)
{
	struct name *name = find_name(attach, dev, ino);
	struct file *file;

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

int nt_attach_span(struct nt_attach *attach, int fd, uint32_t pid, int library,
		   struct nt_span **ret_span)
{
	return nt_span_new(attach->kernel, fd, pid, library, ret_span);
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
