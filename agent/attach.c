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
#include <utlist.h>

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
	uint32_t slot; /* in the kernel's table of splits; 0: there were too many files */
	enum nt_attached_split split;
	uint64_t splits, whole_splits; /* so far; of what stays, too */
};

/* Links of all processes that are being made, or the span of one. */
struct pending {
	uint64_t token;
	struct nt_attached *file; /* NULL: it has gone, or a span is being made */
	uint32_t pid; /* of the span; else 0 */
	uint64_t start_ns;
	char *name; /* owned; or NULL */
	uint32_t subjects;
	/* As the file was when they were asked for. */
	enum nt_attached_split split;
	uint64_t splits, whole_splits;
	struct pending *prev, *next;
	size_t targets;
	struct nt_target target[];
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
	struct pending *pending; /* list, owned */
	uint32_t slots, last_slot; /* bits of those taken */
	uint64_t tokens;
	void (*attached)(void *data, const char *name, int result);
	void (*spanned)(void *data, uint32_t pid, uint64_t start_ns, int result,
			struct nt_span *span);
	void *data;
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
	a->attached = options->attached;
	a->spanned = options->spanned;
	a->data = options->data;
	*ret_attach = nt_take(a);
	return 0;
}

/* Each takes milliseconds to go, or 0.1 s: with a thread the caller does not wait for it. */
static void let_go(struct nt_attach *a, struct nt_bundle *bundle)
{
	if (a->linker)
		nt_linker_drop(a->linker, bundle);
	else
		nt_bundle_free(bundle);
}

static void free_links(struct nt_attach *a, struct nt_attached *file)
{
	struct nt_bundle *bundle = nt_bundle_empty();

	for (size_t i = 0; i < file->links; i++)
		if (!bundle || !nt_bundle_add(bundle, file->link[i].link, false))
			nt_link_free(file->link[i].link);
	let_go(a, bundle);
}

static void pending_free(struct pending *pending)
{
	free(pending->name);
	free(pending);
}

static void file_free(struct nt_attach *a, struct nt_attached *file)
{
	struct pending *pending;

	DL_FOREACH(a->pending, pending)
	if (pending->file == file)
		pending->file = NULL;
	free_links(a, file);
	a->links -= file->links;
	a->probes -= file->targets;
	free(file->link);
	free(file->target);
	(void)close(file->fd);
	nt_kernel_set_split(a->kernel, file->slot, NT_SPLIT_NONE);
	a->slots &= ~(file->slot ? 1U << file->slot : 0);
	free(file);
}

void nt_attach_free(struct nt_attach *attach)
{
	struct pending *pending, *next;

	if (!attach)
		return;
	for (size_t i = 0; i < attach->files; i++)
		file_free(attach, attach->file[i]);
	free(attach->file);
	free(attach->name);
	DL_FOREACH_SAFE(attach->pending, pending, next)
	pending_free(pending);
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
/* In turns: links of a file that went may be freed only now. */
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
			  .cookie = nt_probe_cookie(row) | NT_COOKIE_OF_SLOT(file->slot) |
				    (nt_probe_stays(probe) ? NT_COOKIE_OF_STAYING : 0)},
		.function = symbol->offset,
		.row = row,
		.subject = probe->subject,
		.kind = kind,
		.stays = nt_probe_stays(probe),
	};
	return true;
}

/* ---- links of all processes ----------------------------------------------------------------- */

static bool reserve_links(struct nt_attached *file, size_t more)
{
	size_t cap = file->link_cap ? file->link_cap : 8;
	struct file_link *grown;

	while (cap < file->links + more)
		cap *= 2;
	if (cap == file->link_cap)
		return true;
	grown = reallocarray(file->link, cap, sizeof(*grown));
	if (!grown)
		return false;
	file->link = grown;
	file->link_cap = cap;
	return true;
}

/* There is room. */
static void keep_link(struct nt_attach *a, struct nt_attached *file, struct nt_link *link,
		      bool stays)
{
	file->link[file->links++] = (struct file_link){.link = link, .stays = stays};
	a->links++;
}

static bool is_off(enum nt_attached_split split, bool stays)
{
	return split == NT_ATTACHED_ALL || (split == NT_ATTACHED_BUT_STAYING && !stays);
}

/*
 * Has the file been split since the links were asked for, or was it then? Processes have links of their
 * own in place of these, or what the file was joined with holds them.
 */
static bool is_replaced(const struct pending *pending, bool stays)
{
	const struct nt_attached *file = pending->file;

	return is_off(pending->split, stays) || (stays ? file->whole_splits != pending->whole_splits
						       : file->splits != pending->splits);
}

static void remove_target(struct nt_attach *a, struct nt_attached *file, uint64_t function)
{
	for (size_t i = 0; i < file->targets; i++) {
		if (file->target[i].function != function)
			continue;
		file->target[i] = file->target[--file->targets];
		a->probes--;
		return;
	}
}

/* The file is as if nothing had been asked for: it can be asked for again. */
static void take_back(struct nt_attach *a, const struct pending *pending)
{
	for (size_t i = 0; i < pending->targets; i++)
		remove_target(a, pending->file, pending->target[i].function);
	pending->file->subjects &= ~pending->subjects;
}

/* The file gets its links, which are consumed. Returns how many functions are attached. */
static int take_links(struct nt_attach *a, const struct pending *pending, const bool *refused,
		      struct nt_bundle *bundle)
{
	struct nt_bundle *replaced = nt_bundle_empty();
	struct nt_attached *file = pending->file;
	int functions = (int)pending->targets;
	struct nt_link *link;
	bool stays;

	if (!replaced || !reserve_links(file, nt_bundle_links(bundle))) {
		let_go(a, replaced);
		let_go(a, bundle);
		return -ENOMEM;
	}
	while ((link = nt_bundle_take(bundle, &stays))) {
		if (!is_replaced(pending, stays))
			keep_link(a, file, link, stays);
		else if (!nt_bundle_add(replaced, link, stays))
			nt_link_free(link);
	}
	nt_bundle_free(bundle);
	let_go(a, replaced);
	for (size_t i = 0; i < pending->targets; i++) {
		if (!refused[i])
			continue;
		remove_target(a, file, pending->target[i].function);
		a->failed++;
		functions--;
	}
	return functions;
}

/* The outcome of an order, whether a thread made the links or the caller. */
static int finish(struct nt_attach *a, const struct pending *pending, int r, const bool *refused,
		  struct nt_bundle *bundle)
{
	if (!pending->file) {
		let_go(a, bundle);
		return 0;
	}
	if (r >= 0)
		r = take_links(a, pending, refused, bundle);
	if (r < 0)
		take_back(a, pending);
	return r;
}

static int make_links(struct nt_attach *a, const struct pending *pending)
{
	nt_autofree bool *refused = calloc(pending->targets + 1, sizeof(*refused));
	struct nt_bundle *bundle = NULL;
	char path[PATH_BYTES];
	int r = -ENOMEM;

	/* The very file that was looked at, wherever its path leads by now. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", pending->file->fd);
	if (refused)
		r = nt_bundle_attach(a->kernel, path, pending->target, pending->targets, refused,
				     &bundle);
	return finish(a, pending, r, refused, bundle);
}

static int ask_for_links(struct nt_attach *a, struct pending *pending,
			 const struct nt_attach_order *order)
{
	const struct nt_linker_request request = {
		.token = ++a->tokens,
		.owner = order->owner,
		.fd = pending->file->fd,
		.halves = true,
		.target = pending->target,
		.targets = pending->targets,
	};
	int r;

	pending->token = request.token;
	pending->name = order->name ? strdup(order->name) : NULL;
	r = nt_linker_make(a->linker, &request);
	if (r < 0) {
		take_back(a, pending);
		pending_free(pending);
		return r;
	}
	DL_APPEND(a->pending, pending);
	return (int)pending->targets;
}

static int add_targets(struct nt_attach *a, const struct pending *pending)
{
	struct nt_attached *file = pending->file;
	struct nt_target *grown =
		reallocarray(file->target, file->targets + pending->targets, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	file->target = grown;
	memcpy(grown + file->targets, pending->target, pending->targets * sizeof(*grown));
	file->targets += pending->targets;
	a->probes += pending->targets;
	return 0;
}

static int attach_subjects(struct nt_attach *a, struct nt_attached *file,
			   const struct nt_attach_order *order, uint32_t subjects, bool waits)
{
	uint16_t rows = nt_probe_rows();
	nt_autofree struct pending *pending =
		calloc(1, sizeof(*pending) + rows * sizeof(pending->target[0]));
	int r;

	if (!pending)
		return -ENOMEM;
	pending->file = file;
	pending->subjects = subjects;
	pending->split = file->split;
	pending->splits = file->splits;
	pending->whole_splits = file->whole_splits;
	for (uint16_t row = 0; row < rows; row++)
		if ((subjects >> nt_probe_row(row)->subject & 1) &&
		    find_target(a, file, order->symbols, row, pending->target, pending->targets,
				&pending->target[pending->targets]))
			pending->targets++;
	file->subjects |= subjects;
	if (!pending->targets)
		return 0;
	qsort(pending->target, pending->targets, sizeof(pending->target[0]), nt_target_by_link);
	r = add_targets(a, pending);
	if (r < 0) {
		file->subjects &= ~subjects;
		return r;
	}
	return waits ? make_links(a, pending) : ask_for_links(a, nt_take(pending), order);
}

static int attach_opened(struct nt_attach *attach, const struct nt_attach_order *order, bool waits)
{
	struct name *name = find_name(attach, order->dev, order->ino);
	struct nt_attached *file = name ? name->file : NULL;
	uint32_t subjects;
	int r;

	if (!file) {
		r = add_file(attach, order->fd, order->dev, order->ino, &file);
		if (r < 0 || !file)
			return r;
	}
	subjects = order->subjects & ~file->subjects;
	return subjects ? attach_subjects(attach, file, order, subjects, waits) : 0;
}

int nt_attach_opened(struct nt_attach *attach, const struct nt_attach_order *order)
{
	return attach_opened(attach, order, !attach->linker);
}

int nt_attach_links_fd(const struct nt_attach *attach)
{
	return attach->linker ? nt_linker_fd(attach->linker) : -1;
}

static void settle(struct nt_attach *a, struct nt_linker_result *result)
{
	struct pending *pending;
	int r;

	DL_SEARCH_SCALAR(a->pending, pending, token, result->token);
	if (!pending) {
		let_go(a, nt_take(result->bundle));
		return;
	}
	DL_DELETE(a->pending, pending);
	if (pending->pid) {
		a->spanned(a->data, pending->pid, pending->start_ns, result->r, result->span);
		pending_free(pending);
		return;
	}
	r = finish(a, pending, result->r, result->refused, nt_take(result->bundle));
	if (a->attached && pending->file)
		a->attached(a->data, pending->name ? pending->name : "", r);
	pending_free(pending);
}

void nt_attach_settle(struct nt_attach *attach)
{
	struct nt_linker_result result;

	while (attach->linker && nt_linker_next(attach->linker, &result)) {
		settle(attach, &result);
		free(result.refused);
	}
}

int nt_attach_file(struct nt_attach *attach, const char *path, dev_t dev, ino_t ino,
		   enum nt_library library, uint32_t subjects)
{
	nt_autofree struct nt_symbols *symbols = calloc(1, sizeof(*symbols));
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct nt_attach_order order = {
		.symbols = symbols, .dev = dev, .ino = ino, .subjects = subjects};
	int r;

	if (!symbols)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	r = nt_symbols_read(fd, NULL, library, symbols);
	if (r < 0)
		return r;
	order.fd = fd;
	return attach_opened(attach, &order, true);
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

bool nt_attached_sees_once(const struct nt_attached *file)
{
	return file->slot != 0;
}

static enum nt_split kernel_split(enum nt_attached_split split)
{
	if (split == NT_ATTACHED_ALL)
		return NT_SPLIT_ALL;
	return split == NT_ATTACHED_BUT_STAYING ? NT_SPLIT_BUT_STAYING : NT_SPLIT_NONE;
}

struct nt_bundle *nt_attach_split(struct nt_attach *attach, struct nt_attached *file,
				  enum nt_attached_split split)
{
	struct nt_bundle *bundle = nt_bundle_empty();
	size_t kept = 0;

	if (!bundle)
		return NULL;
	file->split = split;
	file->splits++;
	file->whole_splits += split == NT_ATTACHED_ALL;
	for (size_t i = 0; i < file->links; i++) {
		if (!is_off(split, file->link[i].stays) ||
		    !nt_bundle_add(bundle, file->link[i].link, file->link[i].stays))
			file->link[kept++] = file->link[i];
	}
	attach->links -= file->links - kept;
	file->links = kept;
	nt_kernel_set_split(attach->kernel, file->slot, kernel_split(split));
	return bundle;
}

int nt_attach_join(struct nt_attach *attach, struct nt_attached *file, bool stays,
		   struct nt_bundle *bundle)
{
	struct nt_link *link;

	if (!reserve_links(file, nt_bundle_links(bundle)))
		return -ENOMEM;
	while ((link = nt_bundle_take(bundle, NULL)))
		keep_link(attach, file, link, stays);
	file->split = NT_ATTACHED_SHARED;
	nt_kernel_set_split(attach->kernel, file->slot, NT_SPLIT_NONE);
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

int nt_attach_order_span(struct nt_attach *attach, const struct nt_attach_span_order *order)
{
	const struct nt_linker_request request = {
		.token = ++attach->tokens,
		.owner = order->owner,
		.fd = order->fd,
		.pid = order->pid,
		.places = order->places,
	};
	struct pending *pending = calloc(1, sizeof(*pending));
	int r;

	if (!pending)
		return -ENOMEM;
	pending->token = request.token;
	pending->pid = order->pid;
	pending->start_ns = order->start_ns;
	r = nt_linker_make(attach->linker, &request);
	if (r < 0) {
		pending_free(pending);
		return r;
	}
	DL_APPEND(attach->pending, pending);
	return 0;
}

void nt_attach_drop_span(struct nt_attach *attach, struct nt_span *span)
{
	nt_linker_drop_span(attach->linker, span);
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
