/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The places of ranks in the tables of threads and processes: taken and given back as the kernel side
 * does, see bpf/host_share.h. Those of a rank that has left are removed.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "agent/system/system_impl.h"
#include "common/system/clock.h"
#include "host.skel.h"

enum {
	MEMBERS_READ = 512, /* entries that are read at once */
	THREADS_READ = 64,
};

uint32_t nt_system_shares_enter(struct nt_system_owners *owners, uint64_t owner)
{
	uint32_t free = 0;

	for (uint32_t i = NT_HOST_PROCESSES; i-- > 0;) {
		if (owners->slots[i] && owners->id[i] == owner) {
			owners->slots[i]++;
			return i;
		}
		if (!owners->slots[i])
			free = i;
	}
	owners->id[free] = owner;
	owners->slots[free] = 1;
	return free;
}

static struct nt_host_share *owner_of(const struct nt_system_loader *loader, uint32_t slot)
{
	return &loader->programs->bss->owners[loader->process[slot].owner % NT_HOST_PROCESSES];
}

bool nt_system_shares_take_thread(const struct nt_system_loader *loader, uint32_t slot)
{
	return nt_host_take(&loader->process[slot].threads, NT_HOST_OWN_THREADS,
			    &owner_of(loader, slot)->threads,
			    &loader->programs->bss->all_owners.threads, NT_HOST_OPEN_THREADS);
}

void nt_system_shares_give_thread(const struct nt_system_loader *loader, uint32_t slot)
{
	nt_host_give(&loader->process[slot].threads, NT_HOST_OWN_THREADS,
		     &owner_of(loader, slot)->threads, &loader->programs->bss->all_owners.threads);
}

bool nt_system_shares_take_helper(const struct nt_system_loader *loader, uint32_t slot)
{
	uint32_t *helpers = &loader->process[slot].helpers;

	return nt_host_taken(helpers) < NT_HOST_HELPERS &&
	       nt_host_take(helpers, NT_HOST_OWN_HELPERS, &owner_of(loader, slot)->helpers,
			    &loader->programs->bss->all_owners.helpers, NT_HOST_OPEN_HELPERS);
}

void nt_system_shares_give_helper(const struct nt_system_loader *loader, uint32_t slot)
{
	nt_host_give(&loader->process[slot].helpers, NT_HOST_OWN_HELPERS,
		     &owner_of(loader, slot)->helpers, &loader->programs->bss->all_owners.helpers);
}

void nt_system_shares_drop_thread(const struct nt_system_loader *loader, uint32_t tid,
				  uint32_t slot)
{
	if (bpf_map_delete_elem(bpf_map__fd(loader->programs->maps.threads), &tid) == 0 &&
	    slot < NT_HOST_PROCESSES)
		nt_system_shares_give_thread(loader, slot);
}

void nt_system_shares_drop_member(const struct nt_system_loader *loader, uint32_t pid)
{
	const int fd = bpf_map__fd(loader->programs->maps.members);
	struct nt_host_member member;

	if (bpf_map_lookup_elem(fd, &pid, &member) == 0 && bpf_map_delete_elem(fd, &pid) == 0 &&
	    member.is_helper && member.slot < NT_HOST_PROCESSES)
		nt_system_shares_give_helper(loader, member.slot);
}

/* ---- ranks that have left --------------------------------------------------------------------- */

uint32_t nt_system_shares_next(int fd, struct nt_system_cursor *cursor, uint32_t *key, void *value,
			       uint32_t max)
{
	uint32_t next = 0, n = max;
	const int r = bpf_map_lookup_batch(fd, cursor->is_set ? &cursor->at : NULL, &next, key,
					   value, &n, NULL);

	/* Of an error other than the end nothing is known: the pass ends. */
	*cursor = (struct nt_system_cursor){.at = next, .is_set = r == 0, .is_last = r < 0};
	return r == 0 || errno == ENOENT ? n : 0;
}

void nt_system_shares_close(const struct nt_system_loader *loader, uint32_t pid, uint32_t slot)
{
	const int fd = bpf_map__fd(loader->programs->maps.members);
	struct nt_host_member member, value[MEMBERS_READ];
	struct nt_system_cursor cursor = {0};
	uint32_t key[MEMBERS_READ];

	if (bpf_map_lookup_elem(fd, &pid, &member) == 0 && member.slot == slot)
		nt_system_shares_drop_member(loader, pid);
	if (!nt_host_taken(&loader->process[slot].helpers))
		return;
	while (!cursor.is_last) {
		const uint32_t n = nt_system_shares_next(fd, &cursor, key, value, MEMBERS_READ);

		for (uint32_t i = 0; i < n; i++)
			if (value[i].slot == slot)
				nt_system_shares_drop_member(loader, key[i]);
	}
}

bool nt_system_shares_sweep(const struct nt_system_loader *loader, struct nt_system_sweep *sweep,
			    uint64_t budget_ns)
{
	const int fd = bpf_map__fd(loader->programs->maps.threads);
	const uint64_t start_ns = nt_clock_mono_ns();
	struct nt_host_thread value[THREADS_READ];
	uint32_t key[THREADS_READ];

	do {
		const uint32_t n =
			nt_system_shares_next(fd, &sweep->cursor, key, value, THREADS_READ);

		for (uint32_t i = 0; i < n; i++)
			if (value[i].slot < NT_HOST_PROCESSES && sweep->is_swept[value[i].slot])
				nt_system_shares_drop_thread(loader, key[i], value[i].slot);
		if (!sweep->cursor.is_last && nt_clock_mono_ns() - start_ns >= budget_ns)
			return false;
	} while (!sweep->cursor.is_last);
	return true;
}

void nt_system_shares_clear(const struct nt_system_loader *loader, uint32_t slot)
{
	struct nt_host_process *process = &loader->process[slot];

	while (nt_host_taken(&process->threads))
		nt_system_shares_give_thread(loader, slot);
	while (nt_host_taken(&process->helpers))
		nt_system_shares_give_helper(loader, slot);
	*process = (struct nt_host_process){0};
}
