/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The shared links of one file: made here or by the thread, and handed over where processes get
 * links of their own.
 */
#include "agent/probes/attach_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/probes/link.h"
#include "agent/probes/symbols.h"
#include "common/system/clock.h"

enum {
	PATH_BYTES = 64,
};

/* Freeing takes milliseconds, or 0.1 s per perf link: with a thread the caller does not block. */
static void let_go(struct nt_attach *a, struct nt_link_set *link_set)
{
	if (a->linker)
		nt_linker_drop(a->linker, 0, link_set);
	else
		nt_link_set_free(link_set);
}

void nt_attach_free_links(struct nt_attach *a, struct nt_attached *file)
{
	struct nt_link_set *link_set = nt_link_set_empty();

	for (size_t i = 0; i < file->links; i++)
		if (!link_set || !nt_link_set_add(link_set, file->link[i].link, false))
			nt_link_free(file->link[i].link);
	let_go(a, link_set);
}

void nt_attach_pending_free(struct nt_attach_pending *pending)
{
	free(pending->name);
	free(pending);
}

static bool is_target(const struct nt_attached *file, uint64_t function)
{
	for (size_t i = 0; i < file->targets; i++)
		if (file->target[i].function == function)
			return true;
	return false;
}

/* False: the file lacks it, has it under another name, or its instruction is slow or refused. */
static bool find_target(struct nt_attach *a, const struct nt_attached *file,
			const struct nt_symbols *symbols, uint16_t row,
			const struct nt_probe_target *target, size_t targets,
			struct nt_probe_target *ret_target)
{
	const struct nt_elf_symbol *symbol = nt_symbols_find(symbols, row);
	const struct nt_probe *probe = nt_probe_row(row);
	enum nt_probe_target_kind kind = nt_probe_target_kind_of(probe);
	bool returns = nt_probe_target_returns(kind);
	enum nt_insn insn;

	if (!symbol || is_target(file, symbol->offset))
		return false;
	for (size_t i = 0; i < targets; i++)
		if (target[i].function == symbol->offset)
			return false;
	insn = returns ? symbol->return_insn : symbol->insn;
	if (insn == NT_INSN_REFUSED) {
		a->failed++;
		return false;
	}
	if (insn == NT_INSN_SLOW && probe->hot) {
		a->refused_slow++;
		return false;
	}
	*ret_target = (struct nt_probe_target){
		.site = {.offset = returns ? symbol->return_offset : symbol->entry_offset,
			 .cookie = nt_probe_cookie(row) | NT_COOKIE_OF_SLOT(file->slot) |
				   (nt_probe_stays(probe) ? NT_COOKIE_OF_STAYING : 0)},
		.function = symbol->offset,
		.row = row,
		.subject = probe->subject,
		.kind = nt_probe_target_kind_of(probe),
		.stays = nt_probe_stays(probe),
	};
	return true;
}

/* ---- links of all processes ----------------------------------------------------------------- */

static bool reserve_links(struct nt_attached *file, size_t more)
{
	size_t cap = file->link_cap ? file->link_cap : 8;
	struct nt_attach_link *grown;

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

/* The caller has made room. */
static void keep_link(struct nt_attach *a, struct nt_attached *file, struct nt_link *link,
		      bool stays)
{
	file->link[file->links++] = (struct nt_attach_link){.link = link, .stays = stays};
	a->links++;
}

static bool is_off(enum nt_attached_split split, bool stays)
{
	return split == NT_ATTACHED_ALL || (split == NT_ATTACHED_BUT_STAYING && !stays);
}

/*
 * True if the file was split when the links were requested, or since. Processes then have links of
 * their own in place of these, or the file has been joined again with shared links.
 */
static bool is_replaced(const struct nt_attach_pending *pending, bool stays)
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

/* Undoes the request: the subjects can be requested again. */
static void take_back(struct nt_attach *a, const struct nt_attach_pending *pending)
{
	for (size_t i = 0; i < pending->targets; i++)
		remove_target(a, pending->file, pending->target[i].function);
	pending->file->subjects &= ~pending->subjects;
}

/* Moves the links into the file. Returns how many functions are attached. */
static int take_links(struct nt_attach *a, const struct nt_attach_pending *pending,
		      const bool *refused, struct nt_link_set *link_set)
{
	struct nt_link_set *replaced = nt_link_set_empty();
	struct nt_attached *file = pending->file;
	int functions = (int)pending->targets;
	struct nt_link *link;
	bool stays;

	if (!replaced || !reserve_links(file, nt_link_set_count(link_set))) {
		let_go(a, replaced);
		let_go(a, link_set);
		return -ENOMEM;
	}
	while ((link = nt_link_set_take(link_set, &stays))) {
		if (!is_replaced(pending, stays))
			keep_link(a, file, link, stays);
		else if (!nt_link_set_add(replaced, link, stays))
			nt_link_free(link);
	}
	nt_link_set_free(link_set);
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

/* Ends a request, whether the thread or the caller made the links. */
static int finish(struct nt_attach *a, const struct nt_attach_pending *pending, int r,
		  const bool *refused, struct nt_link_set *link_set)
{
	if (!pending->file) {
		let_go(a, link_set);
		return 0;
	}
	if (r >= 0)
		r = take_links(a, pending, refused, link_set);
	if (r < 0)
		take_back(a, pending);
	else if (pending->subjects & 1U << NT_SUBJECT_ALLOC)
		pending->file->alloc_ns = nt_clock_boot_ns();
	return r;
}

static int make_links(struct nt_attach *a, const struct nt_attach_pending *pending)
{
	nt_autofree bool *refused = calloc(pending->targets + 1, sizeof(*refused));
	struct nt_link_set *link_set = NULL;
	char path[PATH_BYTES];
	int r = -ENOMEM;

	/* The file that was inspected, wherever its path leads by now. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", pending->file->fd);
	if (refused)
		r = nt_link_set_attach(a->loader, path, pending->target, pending->targets, refused,
				       &link_set);
	return finish(a, pending, r, refused, link_set);
}

static int request_links(struct nt_attach *a, struct nt_attach_pending *pending,
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
		nt_attach_pending_free(pending);
		return r;
	}
	DL_APPEND(a->pending, pending);
	return (int)pending->targets;
}

static int add_targets(struct nt_attach *a, const struct nt_attach_pending *pending)
{
	struct nt_attached *file = pending->file;
	struct nt_probe_target *grown =
		reallocarray(file->target, file->targets + pending->targets, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	file->target = grown;
	memcpy(grown + file->targets, pending->target, pending->targets * sizeof(*grown));
	file->targets += pending->targets;
	a->probes += pending->targets;
	return 0;
}

int nt_attach_subjects(struct nt_attach *a, struct nt_attached *file,
		       const struct nt_attach_order *order, uint32_t subjects)
{
	uint16_t rows = nt_probe_rows();
	nt_autofree struct nt_attach_pending *pending =
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
	if (!pending->targets && (subjects & 1U << NT_SUBJECT_ALLOC))
		file->alloc_ns = nt_clock_boot_ns();
	if (!pending->targets)
		return 0;
	qsort(pending->target, pending->targets, sizeof(pending->target[0]),
	      nt_probe_target_by_link);
	r = add_targets(a, pending);
	if (r < 0) {
		file->subjects &= ~subjects;
		return r;
	}
	if (!a->linker)
		return make_links(a, pending);
	return request_links(a, nt_take(pending), order);
}

static void settle(struct nt_attach *a, struct nt_linker_result *result)
{
	struct nt_attach_pending *pending;
	int r;

	DL_SEARCH_SCALAR(a->pending, pending, token, result->token);
	if (!pending) {
		let_go(a, nt_take(result->link_set));
		return;
	}
	DL_DELETE(a->pending, pending);
	if (pending->pid) {
		a->rank_probe_made(a->data, pending->library, pending->pid, pending->start_ns,
				   result->r, result->probe);
		nt_attach_pending_free(pending);
		return;
	}
	r = finish(a, pending, result->r, result->refused, nt_take(result->link_set));
	if (a->attached && pending->file)
		a->attached(a->data, pending->name ? pending->name : "", r);
	nt_attach_pending_free(pending);
}

void nt_attach_settle(struct nt_attach *attach)
{
	struct nt_linker_result result;

	while (attach->linker && nt_linker_next(attach->linker, &result)) {
		settle(attach, &result);
		free(result.refused);
	}
}

/* ---- files whose processes have links of their own ------------------------------------------ */

static enum nt_split loader_split(enum nt_attached_split split)
{
	if (split == NT_ATTACHED_ALL)
		return NT_SPLIT_ALL;
	return split == NT_ATTACHED_BUT_STAYING ? NT_SPLIT_BUT_STAYING : NT_SPLIT_NONE;
}

struct nt_link_set *nt_attach_split(struct nt_attach *attach, struct nt_attached *file,
				    enum nt_attached_split split)
{
	struct nt_link_set *link_set = nt_link_set_empty();
	size_t kept = 0;

	if (!link_set)
		return NULL;
	file->split = split;
	file->splits++;
	file->whole_splits += split == NT_ATTACHED_ALL;
	for (size_t i = 0; i < file->links; i++) {
		if (!is_off(split, file->link[i].stays) ||
		    !nt_link_set_add(link_set, file->link[i].link, file->link[i].stays))
			file->link[kept++] = file->link[i];
	}
	attach->links -= file->links - kept;
	file->links = kept;
	nt_bpf_loader_set_split(attach->loader, file->slot, loader_split(split));
	return link_set;
}

int nt_attach_join(struct nt_attach *attach, struct nt_attached *file, bool stays,
		   struct nt_link_set *link_set)
{
	struct nt_link *link;

	if (!reserve_links(file, nt_link_set_count(link_set)))
		return -ENOMEM;
	while ((link = nt_link_set_take(link_set, NULL)))
		keep_link(attach, file, link, stays);
	file->split = NT_ATTACHED_SHARED;
	nt_bpf_loader_set_split(attach->loader, file->slot, NT_SPLIT_NONE);
	return 0;
}
