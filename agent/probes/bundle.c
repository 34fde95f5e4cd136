/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct bundle_link {
	struct nt_link *link; /* owned */
	bool stays;
};

struct nt_bundle {
	struct bundle_link *link; /* owned */
	size_t links;
};

struct nt_bundle *nt_bundle_empty(void)
{
	return calloc(1, sizeof(struct nt_bundle));
}

bool nt_bundle_add(struct nt_bundle *bundle, struct nt_link *link, bool stays)
{
	struct bundle_link *grown =
		reallocarray(bundle->link, bundle->links + 1, sizeof(*bundle->link));

	if (!grown)
		return false;
	bundle->link = grown;
	bundle->link[bundle->links++] = (struct bundle_link){.link = link, .stays = stays};
	return true;
}

struct nt_link *nt_bundle_take(struct nt_bundle *bundle, bool *ret_stays)
{
	struct bundle_link first;

	if (!bundle->links)
		return NULL;
	first = bundle->link[0];
	memmove(bundle->link, bundle->link + 1, --bundle->links * sizeof(*bundle->link));
	if (ret_stays)
		*ret_stays = first.stays;
	return first.link;
}

enum nt_probe_target_kind nt_probe_target_kind_of(const struct nt_probe *probe)
{
	if (probe->returns)
		return NT_PROBE_TARGET_PAIR;
	return probe->counter >= 0 && !probe->words ? NT_PROBE_TARGET_COUNT : NT_PROBE_TARGET_ENTRY;
}

/* Adds the links of one kind. */
static int add_kind(const struct nt_bpf_loader *loader, const char *path, uint32_t pid,
		    enum nt_probe_target_kind kind, bool stays, const struct nt_place *place,
		    size_t places, struct nt_bundle *bundle)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	int r;

	if (!places)
		return 0;
	if (kind == NT_PROBE_TARGET_PAIR)
		r = nt_bpf_loader_link_pair(loader, path, pid, place, places, &link, &leave);
	else
		r = nt_bpf_loader_link_entry(loader, kind == NT_PROBE_TARGET_COUNT, path, pid,
					     place, places, &link);
	if (r < 0)
		return r;
	if (leave && !nt_bundle_add(bundle, leave, stays))
		return -ENOMEM;
	(void)nt_take(leave);
	if (!nt_bundle_add(bundle, link, stays))
		return -ENOMEM;
	(void)nt_take(link);
	return 0;
}

int nt_bundle_new(const struct nt_bpf_loader *loader, const char *path, uint32_t pid,
		  const struct nt_probe_target *target, size_t targets,
		  struct nt_bundle **ret_bundle)
{
	nt_auto(nt_bundle) struct nt_bundle *bundle = calloc(1, sizeof(*bundle));
	nt_autofree struct nt_place *place = calloc(targets + 1, sizeof(*place));

	if (!bundle || !place)
		return -ENOMEM;
	for (enum nt_probe_target_kind kind = 0; kind < NT_PROBE_TARGET_KINDS; kind++) {
		size_t places = 0;
		int r;

		for (size_t i = 0; i < targets; i++) {
			if (target[i].kind != kind)
				continue;
			place[places] = target[i].place;
			if (pid)
				place[places].cookie |= NT_ROW_OWN;
			places++;
		}
		r = add_kind(loader, path, pid, kind, false, place, places, bundle);
		if (r < 0)
			return r;
	}
	*ret_bundle = nt_take(bundle);
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

/* Bisects what the kernel refuses until the refused places are alone. place: room for all. */
static int add_alike(const struct nt_bpf_loader *loader, const char *path,
		     const struct nt_probe_target *target, size_t targets, struct nt_place *place,
		     bool *ret_refused, struct nt_bundle *bundle)
{
	size_t half = targets / 2;
	int r;

	for (size_t i = 0; i < targets; i++)
		place[i] = target[i].place;
	r = add_kind(loader, path, 0, target->kind, target->stays, place, targets, bundle);
	if (r >= 0 || r == -ENOMEM || r == -EPERM || r == -EACCES || r == -EMFILE || r == -ENFILE)
		return r;
	if (targets == 1) {
		*ret_refused = true;
		return 0;
	}
	r = add_alike(loader, path, target, half, place, ret_refused, bundle);
	if (r < 0)
		return r;
	return add_alike(loader, path, target + half, targets - half, place, ret_refused + half,
			 bundle);
}

int nt_bundle_attach(const struct nt_bpf_loader *loader, const char *path,
		     const struct nt_probe_target *target, size_t targets, bool *ret_refused,
		     struct nt_bundle **ret_bundle)
{
	nt_auto(nt_bundle) struct nt_bundle *bundle = calloc(1, sizeof(*bundle));
	nt_autofree struct nt_place *place = calloc(targets + 1, sizeof(*place));
	size_t n;

	if (!bundle || !place)
		return -ENOMEM;
	memset(ret_refused, 0, targets * sizeof(*ret_refused));
	for (size_t i = 0; i < targets; i += n) {
		int r;

		for (n = 1; i + n < targets; n++)
			if (nt_probe_target_by_link(&target[i], &target[i + n]) != 0)
				break;
		r = add_alike(loader, path, &target[i], n, place, &ret_refused[i], bundle);
		if (r < 0)
			return r;
	}
	*ret_bundle = nt_take(bundle);
	return 0;
}

void nt_bundle_free(struct nt_bundle *bundle)
{
	if (!bundle)
		return;
	/* Entries first: an entry without its return would look like a call that never ends. */
	while (bundle->links)
		nt_link_free(bundle->link[--bundle->links].link);
	free(bundle->link);
	free(bundle);
}

size_t nt_bundle_links(const struct nt_bundle *bundle)
{
	return bundle ? bundle->links : 0;
}
