/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/probes/symbols.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/search.h"

/* Functions that a program has if it is linked statically with a library. */
static const char *const prefixes[] = {"ncclComm", "cudaLaunchKernel", "MPI_Init",
				       "_ZN4gloo9allreduce"};

enum {
	PREFIXES = sizeof(prefixes) / sizeof(prefixes[0]),
	WANTED_MAX = PREFIXES + NT_SYMBOLS_MAX,
};

_Static_assert((int)WANTED_MAX <= (int)NT_ELF_WANTED_MAX, "all are looked for at once");

/* The prefixes, followed by a name for each row. */
struct wanted {
	size_t n;
	struct nt_elf_wanted name[WANTED_MAX];
	struct nt_elf_found found[WANTED_MAX];
	uint16_t row[WANTED_MAX];
};

static int list_wanted(enum nt_library library, struct wanted *wanted)
{
	uint16_t rows = nt_probe_rows();

	while (wanted->n < PREFIXES) {
		wanted->name[wanted->n] =
			(struct nt_elf_wanted){.name = prefixes[wanted->n], .match = NT_ELF_PREFIX};
		wanted->n++;
	}
	for (uint16_t row = 0; row < rows; row++) {
		const struct nt_probe *probe = nt_probe_row(row);

		if (nt_probe_is_of_rank(probe) ||
		    (library != NT_LIBRARY_UNKNOWN && probe->library != library))
			continue;
		if (wanted->n == WANTED_MAX)
			return -E2BIG;
		wanted->row[wanted->n] = row;
		wanted->name[wanted->n++] = (struct nt_elf_wanted){.name = probe->symbol};
	}
	return 0;
}

int nt_symbols_read(int fd, const struct nt_elf_budget *budget, enum nt_library library,
		    struct nt_symbols *ret_symbols)
{
	nt_autofree struct wanted *wanted = calloc(1, sizeof(*wanted));
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	int r;

	if (!wanted)
		return -ENOMEM;
	r = list_wanted(library, wanted);
	if (r < 0)
		return r;
	r = nt_elf_open_fd(fd, budget, &elf);
	if (r < 0)
		return r;
	r = nt_elf_find_all(elf, wanted->name, wanted->n, wanted->found);
	if (r < 0)
		return r;
	*ret_symbols = (struct nt_symbols){.passed_over = nt_elf_passed_over(elf)};
	for (size_t i = 0; i < PREFIXES; i++)
		ret_symbols->holds |= wanted->found[i].result == 0;
	for (size_t i = PREFIXES; i < wanted->n; i++)
		if (wanted->found[i].result == 0)
			ret_symbols->row[ret_symbols->count++] = (struct nt_symbols_row){
				.symbol = wanted->found[i].symbol, .row = wanted->row[i]};
	/* Only for a warning: a library too large to be searched again is attached all the same. */
	r = nt_uncovered_calls_find(elf, library, &ret_symbols->uncovered);
	return r == -EOVERFLOW ? 0 : r;
}

const struct nt_elf_symbol *nt_symbols_find(const struct nt_symbols *symbols, uint16_t row)
{
	const size_t low = nt_search_first(0, symbols->count, i, symbols->row[i].row >= row);

	return low < symbols->count && symbols->row[low].row == row ? &symbols->row[low].symbol
								    : NULL;
}
