/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of the functions at addresses, and where their call-frame information is found. */
#include <errno.h>
#include <string.h>

#include "agent/elf/elf_impl.h"
#include "common/base/ascii.h"

enum {
	FUNCTIONS_AT_ONCE = 2730, /* 64 KiB of symbols */
};

struct named {
	bool is_found;
	uint32_t name; /* offset in the string table */
	uint64_t begin; /* of the function; the last that begins at or before the address wins */
};

uint64_t nt_elf_unwind_table(const struct nt_elf *elf)
{
	return elf->unwind_vaddr;
}

static void compare(const Elf64_Sym *symbol, const uint64_t *address, size_t n, struct named *named)
{
	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF)
		return;
	for (size_t i = 0; i < n; i++) {
		if (address[i] < symbol->st_value ||
		    address[i] - symbol->st_value >= symbol->st_size ||
		    (named[i].is_found && symbol->st_value <= named[i].begin))
			continue;
		named[i] = (struct named){
			.is_found = true, .name = symbol->st_name, .begin = symbol->st_value};
	}
}

static int find_in(struct nt_elf *elf, const struct nt_elf_table *table, const uint64_t *address,
		   size_t n, struct named *named)
{
	const size_t bytes = FUNCTIONS_AT_ONCE * sizeof(Elf64_Sym);
	Elf64_Sym *symbol;
	int r = nt_elf_reader_alloc(&elf->reader, bytes, (void **)&symbol);

	if (r < 0)
		return r;
	for (uint32_t first = 0; first < table->symbols && r >= 0; first += FUNCTIONS_AT_ONCE) {
		uint32_t count = table->symbols - first;

		if (count > FUNCTIONS_AT_ONCE)
			count = FUNCTIONS_AT_ONCE;
		r = nt_elf_reader_work(&elf->reader, count);
		if (r >= 0)
			r = nt_elf_reader_read(&elf->reader,
					       table->symbols_at + first * sizeof(*symbol), symbol,
					       count * sizeof(*symbol));
		for (uint32_t i = 0; i < count && r >= 0; i++)
			compare(&symbol[i], address, n, named);
	}
	nt_elf_reader_free(&elf->reader, symbol, bytes);
	return r;
}

static int read_name(struct nt_elf *elf, const struct nt_elf_table *table, uint32_t at,
		     char *ret_name)
{
	char text[NT_ELF_FUNCTION];
	size_t bytes = sizeof(text);
	int r;

	if (at >= table->strings_bytes)
		return 0;
	if (table->strings_bytes - at < bytes)
		bytes = table->strings_bytes - at;
	r = nt_elf_reader_read(&elf->reader, table->strings_at + at, text, bytes);
	if (r < 0)
		return r;
	nt_ascii_copy(ret_name, NT_ELF_FUNCTION, text, strnlen(text, bytes));
	return 0;
}

int nt_elf_name_functions(struct nt_elf *elf, const uint64_t *address, size_t n,
			  char (*ret_name)[NT_ELF_FUNCTION])
{
	const struct nt_elf_table *const tables[] = {&elf->symtab, &elf->dynsym};
	int r = 0;

	if (n > NT_ELF_FUNCTIONS)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		ret_name[i][0] = '\0';
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]) && r >= 0; t++) {
		struct named named[NT_ELF_FUNCTIONS] = {0};

		if (tables[t]->symbols)
			r = find_in(elf, tables[t], address, n, named);
		for (size_t i = 0; i < n && r >= 0; i++)
			if (named[i].is_found && !ret_name[i][0])
				r = read_name(elf, tables[t], named[i].name, ret_name[i]);
	}
	return r < 0 ? r : 0;
}
