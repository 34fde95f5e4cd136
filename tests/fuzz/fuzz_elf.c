/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as an ELF file: opened, searched, its first instructions looked at. And as the notes of
 * one.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/elf.h"
#include "agent/elf_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ROOM = 4,
};

static void search_marks(const struct nt_elf *elf)
{
	struct nt_elf_symbol symbol[ROOM];
	struct nt_elf_mark mark[ROOM];

	if (nt_elf_find_marks(elf, "python", "gc__start", mark, ROOM) > ROOM ||
	    nt_elf_find_clones(elf, "f", symbol, ROOM) > ROOM)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"ncclAllReduce", "cudaLaunchKernel", "main", "f", ""};
	nt_autoclose int fd = memfd_create("fuzz", MFD_CLOEXEC);
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_note note[ROOM];
	struct nt_elf_symbol symbol;
	char path[64];

	(void)nt_elf_note_find(data, size, "python", "gc__start", note, ROOM);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (nt_elf_open(path, &elf) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (nt_elf_find(elf, names[i], &symbol) == 0 &&
		    symbol.entry_offset - symbol.offset > 32)
			__builtin_trap();
	(void)nt_elf_has_prefix(elf, "nccl");
	search_marks(elf);
	for (const char *c = nt_elf_build_id(elf); *c; c++)
		if ((*c < '0' || *c > '9') && (*c < 'a' || *c > 'f'))
			__builtin_trap();
	return 0;
}
