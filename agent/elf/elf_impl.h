/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an open ELF file is; for agent/elf/elf*.c alone. */
#ifndef NT_AGENT_ELF_ELF_IMPL_H
#define NT_AGENT_ELF_ELF_IMPL_H

#include <elf.h>

#include "agent/elf/elf.h"
#include "agent/elf/elf_note.h"
#include "agent/elf/elf_reader.h"
#include "agent/elf/elf_search.h"

enum {
	NT_ELF_SEGMENTS = 64, /* per kind */
};

struct nt_elf_segment {
	uint64_t vaddr, offset, size;
};

struct nt_elf {
	struct nt_elf_reader reader;
	int own_fd; /* -1: borrowed */
	uint16_t machine;
	struct nt_elf_segment code[NT_ELF_SEGMENTS],
		data[NT_ELF_SEGMENTS]; /* executable; writable */
	size_t codes, datas;
	uint64_t unwind_vaddr; /* of .eh_frame_hdr; 0: none */
	Elf64_Shdr *section;
	uint32_t sections;
	uint32_t names; /* the section that holds the names of sections; 0: none */
	struct nt_elf_table dynsym, symtab;
	bool passed_over;
	char build_id[2 * NT_ELF_BUILD_ID_BYTES + 1];
};

#endif
