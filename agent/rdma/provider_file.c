/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/rdma/provider_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/elf/elf.h"
#include "agent/elf/insn.h"
#include "agent/host/proc.h"
#include "agent/host/root_path.h"

struct provider_search {
	uint32_t pid;
	uint64_t address; /* 0: any provider */
	int fd; /* or the last error */
	struct stat st;
};

static bool is_provider(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *tail = strstr(slash ? slash : path, "-rdmav");

	return tail && strstr(tail, ".so");
}

static void see_provider(void *data, const struct nt_mapping *mapping)
{
	struct provider_search *search = data;

	if (search->fd >= 0)
		return;
	if (search->address ? search->address < mapping->start || search->address >= mapping->end
			    : !is_provider(mapping->path))
		return;
	search->fd = nt_root_path_open_mapping(search->pid, mapping, &search->st);
}

int nt_provider_file_open(uint32_t pid, uint64_t address, struct stat *ret_stat)
{
	struct provider_search search = {.pid = pid, .address = address, .fd = -ENOENT};
	int r = nt_proc_mappings(pid, see_provider, &search);

	if (r < 0) {
		if (search.fd >= 0)
			(void)close(search.fd);
		return r;
	}
	if (search.fd >= 0)
		*ret_stat = search.st;
	return search.fd;
}

/* ---- places in it ---------------------------------------------------------------------------- */

struct place_search {
	uint64_t ino; /* as the mapping of the first address shows it; 0: not known yet */
	uint64_t address[2], offset[2];
	bool found[2];
};

static void see_code_of(void *data, const struct nt_mapping *mapping)
{
	struct place_search *search = data;

	for (int i = 0; i < 2; i++) {
		if (search->address[i] < mapping->start || search->address[i] >= mapping->end)
			continue;
		if (search->ino && search->ino != mapping->ino)
			continue;
		search->ino = mapping->ino;
		search->offset[i] = search->address[i] - mapping->start + mapping->offset;
		search->found[i] = true;
	}
}

/* A return probe goes where a first instruction may not be skipped: so does its entry. */
static int plan(int fd, uint64_t offset, bool returns, uint64_t *ret_offset)
{
	uint8_t code[NT_INSN_BYTES];
	struct nt_insn_plan plan;
	ssize_t n = pread(fd, code, sizeof(code), (off_t)offset);

	if (n <= 0)
		return n < 0 ? -errno : -ENXIO;
#if defined(__aarch64__)
	nt_insn_plan_arm64(code, (size_t)n, &plan);
#else
	nt_insn_plan_x86_64(code, (size_t)n, &plan);
#endif
	if ((returns ? plan.return_insn : plan.entry_insn) != NT_INSN_CHEAP)
		return -ENOTSUP;
	*ret_offset = offset + (returns ? plan.ret : plan.entry);
	return 0;
}

static int find_places(uint32_t pid, int fd, uint64_t post, uint64_t poll,
		       struct nt_provider_place *provider)
{
	struct place_search search = {.address = {post, poll}};
	int r = nt_proc_mappings(pid, see_code_of, &search);

	if (r < 0)
		return r;
	if (!search.found[0] || !search.found[1])
		return -ENXIO;
	r = plan(fd, search.offset[0], false, &provider->post_offset);
	return r < 0 ? r : plan(fd, search.offset[1], true, &provider->poll_offset);
}

int nt_provider_file_read(uint32_t pid, int fd, uint64_t post, uint64_t poll,
			  struct nt_provider_place *ret_provider)
{
	struct nt_provider_place provider = {0};
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	int r = nt_elf_open_fd(fd, NULL, &elf);

	if (r < 0)
		return r;
	(void)snprintf(provider.build_id, sizeof(provider.build_id), "%s", nt_elf_build_id(elf));
	r = post && poll ? find_places(pid, fd, post, poll, &provider) : 0;
	if (r < 0)
		return r;
	*ret_provider = provider;
	return 0;
}
