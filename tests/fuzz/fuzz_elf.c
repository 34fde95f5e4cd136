/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as an ELF file: opened, searched, its first instructions looked at. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"ncclAllReduce", "cudaLaunchKernel", "main", "f", ""};
	nt_autoclose int fd = memfd_create("fuzz", MFD_CLOEXEC);
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_symbol symbol;
	char path[64];

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
	for (const char *c = nt_elf_build_id(elf); *c; c++)
		if ((*c < '0' || *c > '9') && (*c < 'a' || *c > 'f'))
			__builtin_trap();
	return 0;
}
