/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The members of a rank: its process, those that it has forked, and the threads of all. */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/system/system_impl.h"
#include "common/base/buf.h"
#include "common/base/parse_number.h"
#include "common/system/file.h"
#include "host.skel.h"

enum {
	PATH_BYTES = 64,
	TASKS_MAX = 4096, /* of one process, so that the loop is not held up */
	CHILDREN_BYTES = 4096, /* of one thread's list */
	REMOVE_READ = 256, /* members that are listed at once */
};

/* 0: no number, or the folder's own entries. */
static uint32_t number_of(const char *name)
{
	uint64_t number;

	return nt_parse_u64(name, strlen(name), 1, UINT32_MAX, &number) < 0 ? 0 : (uint32_t)number;
}

static bool put_thread(const struct nt_system_loader *loader, uint32_t tid, uint32_t tgid,
		       const struct nt_host_member *member, bool anew)
{
	const struct nt_host_thread thread = {
		.slot = member->slot, .tgid = tgid, .is_helper = member->is_helper != 0};

	return bpf_map_update_elem(bpf_map__fd(loader->programs->maps.threads), &tid, &thread,
				   anew ? BPF_ANY : BPF_NOEXIST) == 0 ||
	       errno == EEXIST;
}

typedef uint64_t (*task_fn)(const struct nt_system_loader *loader, uint32_t tgid, uint32_t tid,
			    const struct nt_host_member *member);

static uint64_t each_task(const struct nt_system_loader *loader, uint32_t tgid,
			  const struct nt_host_member *member, task_fn fn)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	uint64_t left_out = 0;
	int tasks = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		const uint32_t tid = number_of(entry->d_name);

		if (tid && tasks++ < TASKS_MAX)
			left_out += fn(loader, tgid, tid, member);
		else
			left_out += tid != 0;
	}
	(void)closedir(dir);
	return left_out;
}

/* A rank that was another's helper so far begins anew. */
static uint64_t add_task(const struct nt_system_loader *loader, uint32_t tgid, uint32_t tid,
			 const struct nt_host_member *member)
{
	return put_thread(loader, tid, tgid, member, !member->is_helper) ? 0 : 1;
}

static uint64_t add_helper(const struct nt_system_loader *loader, uint32_t pid, uint32_t slot)
{
	const struct nt_host_member helper = {.slot = slot, .is_helper = 1};
	struct nt_host_process *process = &loader->process[slot];

	if (__atomic_load_n(&process->helpers, __ATOMIC_RELAXED) >= NT_HOST_HELPERS)
		return 1;
	if (bpf_map_update_elem(bpf_map__fd(loader->programs->maps.members), &pid, &helper,
				BPF_NOEXIST) < 0)
		return errno == EEXIST ? 0 : 1;
	__atomic_fetch_add(&process->helpers, 1, __ATOMIC_RELAXED);
	return each_task(loader, pid, &helper, add_task);
}

/* The processes that a thread of the rank has forked, as the kernel lists them. */
static uint64_t add_children(const struct nt_system_loader *loader, uint32_t tgid, uint32_t tid,
			     const struct nt_host_member *member)
{
	nt_autobuf struct nt_buf buf = {0};
	uint64_t left_out = 0;
	char path[PATH_BYTES];
	const char *text;
	size_t at = 0;

	(void)snprintf(path, sizeof(path), "/proc/%u/task/%u/children", tgid, tid);
	if (nt_file_read(path, CHILDREN_BYTES, &buf) < 0)
		return 0;
	text = (const char *)buf.data;
	while (at < buf.len) {
		const char *end = memchr(text + at, ' ', buf.len - at);
		const size_t len = end ? (size_t)(end - text) - at : buf.len - at;
		uint64_t pid;

		if (nt_parse_u64(text + at, len, 1, UINT32_MAX, &pid) == 0)
			left_out += add_helper(loader, (uint32_t)pid, member->slot);
		at += len + 1;
	}
	return left_out;
}

uint64_t nt_system_members_add(const struct nt_system_loader *loader, uint32_t pid, uint32_t slot)
{
	const struct nt_host_member member = {.slot = slot};
	uint64_t left_out;

	/* First the process: threads that it makes from then on are added in the kernel. */
	if (bpf_map_update_elem(bpf_map__fd(loader->programs->maps.members), &pid, &member,
				BPF_ANY) < 0)
		return 1;
	left_out = each_task(loader, pid, &member, add_task);
	return left_out + each_task(loader, pid, &member, add_children);
}

/* The next key of a map of 32-bit keys that belongs to the slot; its value begins with the slot. */
static size_t list_keys(int fd, uint32_t slot, void *value, uint32_t *ret_key, size_t max)
{
	uint32_t key, *last = NULL;
	size_t found = 0;

	while (found < max && bpf_map_get_next_key(fd, last, &key) == 0) {
		uint32_t its_slot;

		last = &key;
		if (bpf_map_lookup_elem(fd, &key, value) < 0)
			continue;
		memcpy(&its_slot, value, sizeof(its_slot));
		if (its_slot == slot)
			ret_key[found++] = key;
	}
	return found;
}

static void remove_all(int fd, uint32_t slot, void *value)
{
	uint32_t key[REMOVE_READ];
	size_t n;

	do {
		n = list_keys(fd, slot, value, key, REMOVE_READ);
		for (size_t i = 0; i < n; i++)
			(void)bpf_map_delete_elem(fd, &key[i]);
	} while (n == REMOVE_READ);
}

void nt_system_members_remove(const struct nt_system_loader *loader, uint32_t slot)
{
	struct nt_host_thread thread;
	struct nt_host_member member;

	/* First the processes: no thread is added from then on. */
	remove_all(bpf_map__fd(loader->programs->maps.members), slot, &member);
	remove_all(bpf_map__fd(loader->programs->maps.threads), slot, &thread);
}
