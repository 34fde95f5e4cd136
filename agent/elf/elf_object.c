/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Data objects of an ELF file by name, and where a process has loaded it. */
#include <errno.h>

#include "agent/elf/elf_impl.h"

enum {
	PAGE_MASK = 4095,
};

struct best_object {
	bool is_found;
	enum nt_elf_rank rank;
	uint64_t value;
};

static int keep_object(void *data, const struct nt_elf_hit *hit)
{
	struct best_object *best = (struct best_object *)data + hit->wanted;

	if (!best->is_found || hit->rank < best->rank)
		*best = (struct best_object){
			.is_found = true, .rank = hit->rank, .value = hit->value};
	return 0;
}

int nt_elf_find_objects(struct nt_elf *elf, const char *const *name, size_t n,
			uint64_t *ret_address)
{
	struct nt_elf_wanted wanted[NT_ELF_OBJECTS] = {0};
	struct best_object best[NT_ELF_OBJECTS] = {0};
	int r;

	if (n == 0 || n > NT_ELF_OBJECTS)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		wanted[i] = (struct nt_elf_wanted){.name = name[i], .match = NT_ELF_OBJECT};
	r = nt_elf_search(&elf->reader, &elf->dynsym, wanted, n, keep_object, best);
	r = r ?: nt_elf_search(&elf->reader, &elf->symtab, wanted, n, keep_object, best);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		ret_address[i] = best[i].is_found ? best[i].value : 0;
	return 0;
}

int nt_elf_load_bias(const struct nt_elf *elf, uint64_t start, uint64_t offset, uint64_t *ret_bias)
{
	for (size_t i = 0; i < elf->codes; i++) {
		const struct nt_elf_segment *s = &elf->code[i];

		/* A mapping begins at a page, and the segment may begin after that. */
		if (offset < (s->offset & ~(uint64_t)PAGE_MASK) || offset >= s->offset + s->size)
			continue;
		*ret_bias = start - (s->vaddr + (offset - s->offset));
		return 0;
	}
	return -ENOENT;
}
