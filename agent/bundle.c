/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/bundle.h"

#include <errno.h>
#include <stdlib.h>

struct nt_bundle {
	struct nt_link **link; /* owned */
	size_t links;
};

struct nt_bundle *nt_bundle_empty(void)
{
	return calloc(1, sizeof(struct nt_bundle));
}

bool nt_bundle_add(struct nt_bundle *bundle, struct nt_link *link)
{
	struct nt_link **grown =
		reallocarray(bundle->link, bundle->links + 1, sizeof(struct nt_link *));

	if (!grown)
		return false;
	bundle->link = grown;
	bundle->link[bundle->links++] = link;
	return true;
}

struct nt_link *nt_bundle_take(struct nt_bundle *bundle)
{
	return bundle->links ? bundle->link[--bundle->links] : NULL;
}

enum nt_target_kind nt_target_kind_of(const struct nt_probe *probe)
{
	if (probe->returns)
		return NT_TARGET_PAIR;
	return probe->counter >= 0 && !probe->words ? NT_TARGET_COUNT : NT_TARGET_ENTRY;
}

/* The links of one kind. */
static int add_kind(const struct nt_kernel *kernel, const char *path, uint32_t pid,
		    enum nt_target_kind kind, const struct nt_place *place, size_t places,
		    struct nt_bundle *bundle)
{
	nt_auto(nt_link) struct nt_link *link = NULL;
	nt_auto(nt_link) struct nt_link *leave = NULL;
	int r;

	if (!places)
		return 0;
	if (kind == NT_TARGET_PAIR)
		r = nt_kernel_link_pair(kernel, path, pid, place, places, &link, &leave);
	else
		r = nt_kernel_link_entry(kernel, kind == NT_TARGET_COUNT, path, pid, place, places,
					 &link);
	if (r < 0)
		return r;
	if (leave && !nt_bundle_add(bundle, leave))
		return -ENOMEM;
	(void)nt_take(leave);
	if (!nt_bundle_add(bundle, link))
		return -ENOMEM;
	(void)nt_take(link);
	return 0;
}

int nt_bundle_new(const struct nt_kernel *kernel, const char *path, uint32_t pid,
		  const struct nt_target *target, size_t targets, struct nt_bundle **ret_bundle)
{
	nt_auto(nt_bundle) struct nt_bundle *bundle = calloc(1, sizeof(*bundle));
	nt_autofree struct nt_place *place = calloc(targets + 1, sizeof(*place));

	if (!bundle || !place)
		return -ENOMEM;
	for (enum nt_target_kind kind = 0; kind < NT_TARGET_KINDS; kind++) {
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
		r = add_kind(kernel, path, pid, kind, place, places, bundle);
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
		nt_link_free(bundle->link[--bundle->links]);
	free(bundle->link);
	free(bundle);
}

size_t nt_bundle_links(const struct nt_bundle *bundle)
{
	return bundle ? bundle->links : 0;
}
