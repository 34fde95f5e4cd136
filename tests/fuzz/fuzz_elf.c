/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as an ELF file, and as the notes of one: opened, searched, its first instructions looked
 * at. What that costs is bounded by the size of the file, whatever its bytes, and by the budget; a
 * budget that is too small gives an error and never another answer.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/elf/elf.h"
#include "agent/elf/elf_note.h"
#include "agent/probes/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ROOM = 4,
	/*
	 * Of one operation, for each byte of the file. Bytes: 16 notes, or all tables at the same
	 * place. Work: a symbol has 24 bytes; its name is compared with up to 30 wanted ones that
	 * begin alike, or scanned to its cap.
	 */
	BYTES_TIMES = 20,
	WORK_TIMES = 8,
	MEMORY_TIMES = 3, /* sections, notes, and a bit for each byte of names */
	BYTES_FIXED = 32768, /* the code of each function that is found */
	WORK_FIXED = 4096,
	MEMORY_FIXED = 256 << 10, /* buffers */
	STEPS = 64, /* budgets that are tried */
};

static const struct nt_elf_wanted wanted[] = {
	{"ncclAllReduce", NT_ELF_WHOLE},
	{"cudaLaunchKernel", NT_ELF_WHOLE},
	{"main", NT_ELF_WHOLE},
	{"f", NT_ELF_WHOLE},
	{"", NT_ELF_WHOLE},
	{"ncclSend", NT_ELF_WHOLE},
	{"MPI_Allreduce", NT_ELF_WHOLE},
	{"cudaMemcpyAsync", NT_ELF_WHOLE},
	{"cudaMemcpy", NT_ELF_WHOLE},
	{"cudaMemcpyPeer", NT_ELF_WHOLE},
	{"ncclComm", NT_ELF_PREFIX},
	{"nc", NT_ELF_PREFIX},
	{"cudaMemcpyAsyn", NT_ELF_PREFIX},
	{"aaaaaaaaaaaaaaaa", NT_ELF_PREFIX},
};

enum {
	WANTED = sizeof(wanted) / sizeof(wanted[0]),
};

#define CHECK(claim)                                                                               \
	do {                                                                                       \
		if (!(claim))                                                                      \
			__builtin_trap();                                                          \
	} while (0)

/* What an operation cost since *before, which is brought up to date. */
static void check_cost(const struct nt_elf *elf, size_t size, struct nt_elf_cost *before)
{
	const struct nt_elf_cost *cost = nt_elf_cost(elf);

	CHECK(cost->bytes - before->bytes <= BYTES_TIMES * size + BYTES_FIXED);
	CHECK(cost->work - before->work <= WORK_TIMES * size + WORK_FIXED);
	CHECK(cost->memory <= MEMORY_TIMES * size + MEMORY_FIXED);
	*before = *cost;
}

static void search_marks(struct nt_elf *elf, size_t size, struct nt_elf_cost *cost)
{
	struct nt_elf_symbol symbol[ROOM];
	struct nt_elf_mark mark[ROOM];

	CHECK(nt_elf_find_marks(elf, "python", "gc__start", mark, ROOM) <= ROOM);
	check_cost(elf, size, cost);
	CHECK(nt_elf_find_clones(elf, "f", symbol, ROOM) <= ROOM);
	check_cost(elf, size, cost);
}

static bool same(const struct nt_elf_found *a, const struct nt_elf_found *b)
{
	return a->result == b->result &&
	       (a->result < 0 || (a->symbol.offset == b->symbol.offset &&
				  a->symbol.entry_offset == b->symbol.entry_offset));
}

/* A part of what the file costs, and more and more of it. */
static void try_budgets(int fd, const struct nt_elf_cost *all, unsigned int step,
			const struct nt_elf_found *expected)
{
	const struct nt_elf_budget budget = {
		.bytes = all->bytes * step / STEPS,
		.work = all->work * (STEPS - step / 2) / STEPS,
		.memory = all->memory * (STEPS - step / 3) / STEPS,
	};
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_found found[WANTED];
	int r = nt_elf_open_fd(fd, &budget, &elf);

	if (r >= 0)
		r = nt_elf_find_all(elf, wanted, WANTED, found);
	CHECK(r >= 0 || r == -EOVERFLOW);
	if (elf) {
		CHECK(nt_elf_cost(elf)->bytes <= budget.bytes);
		CHECK(nt_elf_cost(elf)->work <= budget.work);
		CHECK(nt_elf_cost(elf)->memory <= budget.memory);
	}
	for (size_t i = 0; i < WANTED && r >= 0 && !nt_elf_passed_over(elf); i++)
		CHECK(same(&found[i], &expected[i]));
}

static void read_rows(int fd)
{
	static struct nt_symbols symbols;

	if (nt_symbols_read(fd, NULL, NT_LIBRARY_UNKNOWN, &symbols) < 0)
		return;
	CHECK(symbols.count <= NT_SYMBOLS_MAX);
	for (size_t i = 1; i < symbols.count; i++)
		CHECK(symbols.row[i - 1].row < symbols.row[i].row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	nt_autoclose int fd = memfd_create("fuzz", MFD_CLOEXEC);
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_found found[WANTED];
	struct nt_elf_note note[ROOM];
	struct nt_elf_cost cost = {0}, all;
	int r;

	(void)nt_elf_note_find(data, size, "python", "gc__start", note, ROOM);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	if (nt_elf_open_fd(fd, NULL, &elf) < 0)
		return 0;
	check_cost(elf, size, &cost);
	r = nt_elf_find_all(elf, wanted, WANTED, found);
	CHECK(r >= 0 || r == -EOVERFLOW);
	check_cost(elf, size, &cost);
	all = cost;
	for (size_t i = 0; i < WANTED && r >= 0; i++)
		CHECK(found[i].result < 0 ||
		      found[i].symbol.entry_offset - found[i].symbol.offset <= 32);
	search_marks(elf, size, &cost);
	for (const char *c = nt_elf_build_id(elf); *c; c++)
		CHECK((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'f'));
	if (r >= 0)
		try_budgets(fd, &all, data[size - 1] % (STEPS + 1), found);
	read_rows(fd);
	return 0;
}
