/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/rank_probe.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/elf/elf.h"
#include "agent/probes/link.h"

enum {
	PATH_BYTES = 64,
};

struct nt_rank_probe {
	struct nt_link *begin, *end;
};

static int find_mark(struct nt_elf *elf, const struct nt_probe *probe, const char *name,
		     uint64_t cookie, struct nt_probe_site *ret_site, uint32_t *ret_sites)
{
	struct nt_elf_mark mark[NT_RANK_PROBE_SITES];
	int n = nt_elf_find_marks(elf, probe->provider, name, mark, NT_RANK_PROBE_SITES);

	if (n <= 0)
		return n < 0 ? n : -ENOENT;
	for (int i = 0; i < n; i++)
		ret_site[i] = (struct nt_probe_site){
			.offset = mark[i].offset, .cookie = cookie, .semaphore = mark[i].semaphore};
	*ret_sites = (uint32_t)n;
	return 0;
}

static int find_function(struct nt_elf *elf, const struct nt_probe *probe, uint64_t cookie,
			 struct nt_rank_probe_sites *sites)
{
	struct nt_elf_symbol symbol[NT_RANK_PROBE_SITES];
	int n = nt_elf_find_clones(elf, probe->symbol, symbol, NT_RANK_PROBE_SITES);

	if (n <= 0)
		return n < 0 ? n : -ENOENT;
	for (int i = 0; i < n; i++) {
		if (symbol[i].return_insn == NT_INSN_REFUSED)
			return -ENOTSUP;
		/* At the site of the return probe: then a frame is no deeper than its entry. */
		sites->begin[i] =
			(struct nt_probe_site){.offset = symbol[i].return_offset, .cookie = cookie};
		sites->end[i] = sites->begin[i];
	}
	sites->begins = sites->ends = (uint32_t)n;
	sites->at_return = 1;
	return 0;
}

static int find_row(struct nt_elf *elf, uint16_t row, struct nt_rank_probe_sites *ret_sites)
{
	const struct nt_probe *probe = nt_probe_row(row);
	uint64_t cookie = nt_probe_cookie(row);
	int r;

	*ret_sites = (struct nt_rank_probe_sites){.row = row};
	if (!probe->mark)
		return find_function(elf, probe, cookie, ret_sites);
	r = find_mark(elf, probe, probe->mark, cookie, ret_sites->begin, &ret_sites->begins);
	return r < 0 || probe->batched ? r
				       : find_mark(elf, probe, probe->mark_end, cookie,
						   ret_sites->end, &ret_sites->ends);
}

/* The first row that the file defines; else the most specific error. */
static int find_sites(struct nt_elf *elf, int library, struct nt_rank_probe_sites *ret_sites)
{
	int result = -ENOENT;

	for (uint16_t row = 0; row < nt_probe_rows(); row++) {
		const struct nt_probe *probe = nt_probe_row(row);
		int r;

		if (!nt_probe_is_of_rank(probe) || (int)probe->library != library)
			continue;
		r = probe->beside ? nt_elf_has_prefix(elf, probe->beside) : 1;
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		r = find_row(elf, row, ret_sites);
		if (r >= 0)
			return 0;
		if (result == -ENOENT)
			result = r;
	}
	return result;
}

int nt_rank_probe_find(int fd, int library, struct nt_rank_probe_sites *ret_sites)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_rank_probe_sites sites;
	int r;

	r = nt_elf_open_fd(fd, NULL, &elf);
	if (r < 0)
		return r;
	r = find_sites(elf, library, &sites);
	if (r < 0)
		return r;
	*ret_sites = sites;
	return 0;
}

static int attach_traffic(const struct nt_bpf_loader *loader, const char *path, uint32_t pid,
			  const struct nt_rank_probe_sites *sites, struct nt_rank_probe *probe)
{
	if (nt_probe_row((uint16_t)sites->row)->returns)
		return nt_bpf_loader_link_pair(loader, NT_BPF_PAIR_POLL, path, pid, sites->begin,
					       sites->begins, &probe->begin, &probe->end);
	return nt_bpf_loader_link_posts(loader, path, pid, sites->begin, sites->begins,
					&probe->begin);
}

int nt_rank_probe_new_at(const struct nt_bpf_loader *loader, int fd, uint32_t pid,
			 const struct nt_rank_probe_sites *sites, struct nt_rank_probe **ret_probe)
{
	nt_auto(nt_rank_probe) struct nt_rank_probe *probe = calloc(1, sizeof(*probe));
	struct nt_rank_probe_sites own = *sites;
	char path[PATH_BYTES];
	int r;

	if (!probe)
		return -ENOMEM;
	for (size_t i = 0; i < NT_RANK_PROBE_SITES; i++)
		own.begin[i].cookie = own.end[i].cookie = nt_probe_cookie((uint16_t)sites->row);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (nt_probe_row((uint16_t)sites->row)->queried)
		r = nt_bpf_loader_link_queries(loader, path, pid, own.begin, own.begins,
					       &probe->begin, &probe->end);
	else if (nt_probe_row((uint16_t)sites->row)->traffic)
		r = attach_traffic(loader, path, pid, &own, probe);
	else if (nt_probe_row((uint16_t)sites->row)->batched)
		r = nt_bpf_loader_link_batches(loader, path, pid, own.begin, own.begins,
					       &probe->begin);
	else
		r = nt_bpf_loader_link_rank_probe(loader, path, pid, own.begin, own.begins, own.end,
						  own.ends, own.at_return, &probe->begin,
						  &probe->end);
	if (r < 0)
		return r;
	*ret_probe = nt_take(probe);
	return 0;
}

void nt_rank_probe_free(struct nt_rank_probe *probe)
{
	if (!probe)
		return;
	nt_link_free(probe->begin);
	nt_link_free(probe->end);
	free(probe);
}
