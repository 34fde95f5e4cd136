/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/attach_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/host/same_file.h"
#include "agent/probes/rank_probe.h"
#include "agent/probes/symbols.h"

enum {
	FILES_MAX = 1024,
	NAMES_MAX = 4096,
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
	r = nt_bpf_loader_new(options, &a->loader);
	if (r == 0 && options->has_thread)
		r = nt_linker_new(a->loader, &a->linker);
	if (r < 0)
		return r;
	a->attached = options->attached;
	a->rank_probe_made = options->rank_probe_made;
	a->data = options->data;
	*ret_attach = nt_take(a);
	return 0;
}

static void file_free(struct nt_attach *a, struct nt_attached *file)
{
	struct nt_attach_pending *pending;

	DL_FOREACH(a->pending, pending)
	if (pending->file == file)
		pending->file = NULL;
	nt_attach_free_links(a, file);
	a->links -= file->links;
	a->probes -= file->targets;
	free(file->link);
	free(file->target);
	(void)close(file->fd);
	nt_bpf_loader_set_split(a->loader, file->slot, NT_SPLIT_NONE);
	a->slots &= ~(file->slot ? 1U << file->slot : 0);
	free(file);
}

void nt_attach_free(struct nt_attach *attach)
{
	struct nt_attach_pending *pending, *next;

	if (!attach)
		return;
	for (size_t i = 0; i < attach->files; i++)
		file_free(attach, attach->file[i]);
	free(attach->file);
	free(attach->name);
	DL_FOREACH_SAFE(attach->pending, pending, next)
	nt_attach_pending_free(pending);
	nt_linker_free(attach->linker);
	nt_bpf_loader_free(attach->loader);
	free(attach);
}

enum nt_attach_mode nt_attach_mode(const struct nt_attach *attach)
{
	return nt_bpf_loader_mode(attach->loader);
}

static struct nt_attach_name *find_name(struct nt_attach *a, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < a->names; i++)
		if (a->name[i].dev == dev && a->name[i].ino == ino)
			return &a->name[i];
	return NULL;
}

static int add_name(struct nt_attach *a, dev_t dev, ino_t ino, struct nt_attached *file)
{
	struct nt_attach_name *grown;

	if (a->names == NAMES_MAX)
		return -ENOSPC;
	grown = reallocarray(a->name, a->names + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	a->name = grown;
	a->name[a->names++] = (struct nt_attach_name){.dev = dev, .ino = ino, .file = file};
	file->names++;
	return 0;
}

/* Round-robin: links of a detached file may still be queued for freeing. */
static uint32_t take_slot(struct nt_attach *a)
{
	for (uint32_t i = 1; i < NT_SPLIT_SLOTS; i++) {
		a->last_slot = a->last_slot % (NT_SPLIT_SLOTS - 1) + 1;
		if (!(a->slots >> a->last_slot & 1)) {
			a->slots |= 1U << a->last_slot;
			return a->last_slot;
		}
	}
	return 0;
}

/* Adds a new name: of a known file, or of a new one. */
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
	file->slot = take_slot(a);
	file->fd = nt_take_fd(&fd);
	a->file[a->files++] = file;
	*ret_file = file;
	return 0;
}

/* ---- attaching ------------------------------------------------------------------------------ */

int nt_attach_opened(struct nt_attach *attach, const struct nt_attach_order *order)
{
	struct nt_attach_name *name = find_name(attach, order->dev, order->ino);
	struct nt_attached *file = name ? name->file : NULL;
	uint32_t subjects;
	int r;

	if (!file) {
		r = add_file(attach, order->fd, order->dev, order->ino, &file);
		if (r < 0 || !file)
			return r;
	}
	subjects = order->subjects & ~file->subjects;
	return subjects ? nt_attach_subjects(attach, file, order, subjects) : 0;
}

int nt_attach_links_fd(const struct nt_attach *attach)
{
	return attach->linker ? nt_linker_fd(attach->linker) : -1;
}

void nt_attach_drop(struct nt_attach *attach, dev_t dev, ino_t ino)
{
	struct nt_attach_name *name = find_name(attach, dev, ino);
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
	struct nt_attach_name *name = find_name(attach, dev, ino);

	return name ? name->file : NULL;
}

const struct nt_probe_target *nt_attached_targets(const struct nt_attached *file,
						  size_t *ret_targets)
{
	*ret_targets = file->targets;
	return file->target;
}

uint64_t nt_attached_alloc_ns(const struct nt_attached *file)
{
	return file->alloc_ns;
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

bool nt_attached_sees_once(const struct nt_attached *file)
{
	return file->slot != 0;
}

const struct nt_bpf_loader *nt_attach_loader(const struct nt_attach *attach)
{
	return attach->loader;
}

int nt_attach_order_rank_probe(struct nt_attach *attach,
			       const struct nt_attach_rank_probe_order *order)
{
	const struct nt_linker_request request = {
		.token = ++attach->tokens,
		.owner = order->owner,
		.fd = order->fd,
		.pid = order->pid,
		.sites = order->sites,
	};
	struct nt_attach_pending *pending = calloc(1, sizeof(*pending));
	int r;

	if (!pending)
		return -ENOMEM;
	pending->token = request.token;
	pending->library = order->library;
	pending->pid = order->pid;
	pending->start_ns = order->start_ns;
	r = nt_linker_make(attach->linker, &request);
	if (r < 0) {
		nt_attach_pending_free(pending);
		return r;
	}
	DL_APPEND(attach->pending, pending);
	return 0;
}

void nt_attach_drop_rank_probe(struct nt_attach *attach, struct nt_rank_probe *probe)
{
	nt_linker_drop_rank_probe(attach->linker, probe);
}

int nt_attach_fd(const struct nt_attach *attach)
{
	return nt_bpf_loader_fd(attach->loader);
}

int nt_attach_poll(struct nt_attach *attach, nt_event_fn fn, void *data)
{
	return nt_bpf_loader_poll(attach->loader, fn, data);
}

int nt_attach_set_detail(struct nt_attach *attach, uint32_t pid,
			 const struct nt_detail_limits *limits)
{
	return nt_bpf_loader_set_detail(attach->loader, pid, limits);
}

void nt_attach_set_detailed(struct nt_attach *attach, uint32_t processes)
{
	nt_bpf_loader_set_detailed(attach->loader, processes);
}

bool nt_attach_detail_rates(const struct nt_attach *attach, uint32_t pid,
			    struct nt_detail_rates *ret_rates)
{
	return nt_bpf_loader_detail_rates(attach->loader, pid, ret_rates);
}

int nt_attach_poll_details(struct nt_attach *attach)
{
	return nt_bpf_loader_poll_details(attach->loader);
}

uint64_t nt_attach_ended_ns(const struct nt_attach *attach, uint32_t pid)
{
	return nt_bpf_loader_ended_ns(attach->loader, pid);
}

bool nt_attach_counters(const struct nt_attach *attach, uint32_t pid,
			struct nt_process_counters *ret_counters)
{
	return nt_bpf_loader_counters(attach->loader, pid, ret_counters);
}

bool nt_attach_verbs(const struct nt_attach *attach, uint32_t pid,
		     struct nt_verbs_totals *ret_totals)
{
	return nt_bpf_loader_verbs(attach->loader, pid, ret_totals);
}

bool nt_attach_gemms(const struct nt_attach *attach, uint32_t pid,
		     struct nt_gemm_totals *ret_totals)
{
	return nt_bpf_loader_gemms(attach->loader, pid, ret_totals);
}

int nt_attach_inside(struct nt_attach *attach, nt_inside_fn fn, nt_outside_fn outside, void *data)
{
	return nt_bpf_loader_inside(attach->loader, fn, outside, data);
}

void nt_attach_forget(struct nt_attach *attach, uint32_t pid)
{
	nt_bpf_loader_forget(attach->loader, pid);
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
	nt_bpf_loader_stats(attach->loader, ret_stats);
}
