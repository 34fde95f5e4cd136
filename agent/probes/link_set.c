/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/link_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct link_set_entry {
	struct nt_link *link; /* owned */
	bool stays;
};

struct nt_link_set {
	struct link_set_entry *link; /* owned */
	size_t links;
};

struct nt_link_set *nt_link_set_empty(void)
{
	return calloc(1, sizeof(struct nt_link_set));
}

bool nt_link_set_add(struct nt_link_set *link_set, struct nt_link *link, bool stays)
{
	struct link_set_entry *grown =
		reallocarray(link_set->link, link_set->links + 1, sizeof(*link_set->link));

	if (!grown)
		return false;
	link_set->link = grown;
	link_set->link[link_set->links++] = (struct link_set_entry){.link = link, .stays = stays};
	return true;
}

struct nt_link *nt_link_set_take(struct nt_link_set *link_set, bool *ret_stays)
{
	struct link_set_entry first;

	if (!link_set->links)
		return NULL;
	first = link_set->link[0];
	memmove(link_set->link, link_set->link + 1, --link_set->links * sizeof(*link_set->link));
	if (ret_stays)
		*ret_stays = first.stays;
	return first.link;
}

enum nt_probe_target_kind nt_probe_target_kind_of(const struct nt_probe *probe)
{
	if (probe->memory != NT_MEMORY_NONE)
		return NT_PROBE_TARGET_MEMORY;
	if (probe->gemm)
		return NT_PROBE_TARGET_GEMM;
	if (probe->verb)
		return NT_PROBE_TARGET_VERBS;
	if (probe->returns)
		return NT_PROBE_TARGET_PAIR;
	return probe->counter >= 0 && !probe->words ? NT_PROBE_TARGET_COUNT : NT_PROBE_TARGET_ENTRY;
}

/* Adds the links of one kind. */
bool nt_probe_target_returns(enum nt_probe_target_kind kind)
{
	return kind == NT_PROBE_TARGET_PAIR || kind == NT_PROBE_TARGET_MEMORY ||
	       kind == NT_PROBE_TARGET_GEMM || kind == NT_PROBE_TARGET_VERBS;
}

static enum nt_bpf_pair pair_of(enum nt_probe_target_kind kind)
{
	return kind == NT_PROBE_TARGET_MEMORY  ? NT_BPF_PAIR_MEMORY
	       : kind == NT_PROBE_TARGET_GEMM  ? NT_BPF_PAIR_GEMM
	       : kind == NT_PROBE_TARGET_VERBS ? NT_BPF_PAIR_VERBS
					       : NT_BPF_PAIR_CALL;
}

static int add_kind(const struct nt_bpf_loader *loader, const char *path, uint32_t pid,
		    enum nt_probe_target_kind kind, bool stays, const struct nt_probe_site *site,
		    size_t sites, struct nt_link_set *link_set)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	int r;

	if (!sites)
		return 0;
	if (nt_probe_target_returns(kind))
		r = nt_bpf_loader_link_pair(loader, pair_of(kind), path, pid, site, sites, &link,
					    &leave);
	else
		r = nt_bpf_loader_link_entry(loader, kind == NT_PROBE_TARGET_COUNT, path, pid, site,
					     sites, &link);
	if (r < 0)
		return r;
	if (leave && !nt_link_set_add(link_set, leave, stays))
		return -ENOMEM;
	(void)nt_take(leave);
	if (!nt_link_set_add(link_set, link, stays))
		return -ENOMEM;
	(void)nt_take(link);
	return 0;
}

int nt_link_set_new(const struct nt_bpf_loader *loader, const char *path, uint32_t pid,
		    const struct nt_probe_target *target, size_t targets,
		    struct nt_link_set **ret_link_set)
{
	nt_auto(nt_link_set) struct nt_link_set *link_set = calloc(1, sizeof(*link_set));
	nt_autofree struct nt_probe_site *site = calloc(targets + 1, sizeof(*site));

	if (!link_set || !site)
		return -ENOMEM;
	for (enum nt_probe_target_kind kind = 0; kind < NT_PROBE_TARGET_KINDS; kind++) {
		size_t sites = 0;
		int r;

		for (size_t i = 0; i < targets; i++) {
			if (target[i].kind != kind)
				continue;
			site[sites] = target[i].site;
			if (pid)
				site[sites].cookie |= NT_ROW_OWN;
			sites++;
		}
		r = add_kind(loader, path, pid, kind, false, site, sites, link_set);
		if (r < 0)
			return r;
	}
	*ret_link_set = nt_take(link_set);
	return 0;
}

/* Orders targets by the link that they share. */
int nt_probe_target_by_link(const void *left, const void *right)
{
	const struct nt_probe_target *a = left, *b = right;

	if (a->subject != b->subject)
		return a->subject < b->subject ? -1 : 1;
	if (a->stays != b->stays)
		return a->stays ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return 0;
}

/* Bisects what the kernel refuses until the refused sites are alone. site: room for all. */
static int add_alike(const struct nt_bpf_loader *loader, const char *path,
		     const struct nt_probe_target *target, size_t targets,
		     struct nt_probe_site *site, bool *ret_refused, struct nt_link_set *link_set)
{
	size_t half = targets / 2;
	int r;

	for (size_t i = 0; i < targets; i++)
		site[i] = target[i].site;
	r = add_kind(loader, path, 0, target->kind, target->stays, site, targets, link_set);
	if (r >= 0 || r == -ENOMEM || r == -EPERM || r == -EACCES || r == -EMFILE || r == -ENFILE)
		return r;
	if (targets == 1) {
		*ret_refused = true;
		return 0;
	}
	r = add_alike(loader, path, target, half, site, ret_refused, link_set);
	if (r < 0)
		return r;
	return add_alike(loader, path, target + half, targets - half, site, ret_refused + half,
			 link_set);
}

int nt_link_set_attach(const struct nt_bpf_loader *loader, const char *path,
		       const struct nt_probe_target *target, size_t targets, bool *ret_refused,
		       struct nt_link_set **ret_link_set)
{
	nt_auto(nt_link_set) struct nt_link_set *link_set = calloc(1, sizeof(*link_set));
	nt_autofree struct nt_probe_site *site = calloc(targets + 1, sizeof(*site));
	size_t n;

	if (!link_set || !site)
		return -ENOMEM;
	memset(ret_refused, 0, targets * sizeof(*ret_refused));
	for (size_t i = 0; i < targets; i += n) {
		int r;

		for (n = 1; i + n < targets; n++)
			if (nt_probe_target_by_link(&target[i], &target[i + n]) != 0)
				break;
		r = add_alike(loader, path, &target[i], n, site, &ret_refused[i], link_set);
		if (r < 0)
			return r;
	}
	*ret_link_set = nt_take(link_set);
	return 0;
}

void nt_link_set_free(struct nt_link_set *link_set)
{
	if (!link_set)
		return;
	/* Entries first: an entry without its return would look like a call that never ends. */
	while (link_set->links)
		nt_link_free(link_set->link[--link_set->links].link);
	free(link_set->link);
	free(link_set);
}

size_t nt_link_set_count(const struct nt_link_set *link_set)
{
	return link_set ? link_set->links : 0;
}
