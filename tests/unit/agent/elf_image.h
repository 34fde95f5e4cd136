/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Builds small ELF files in memory, valid or invalid. */
#ifndef NT_TESTS_UNIT_AGENT_ELF_IMAGE_H
#define NT_TESTS_UNIT_AGENT_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/elf/elf.h"

enum {
	IMAGE_BYTES = 8192,
	IMAGE_CODE = 0x1000, /* file offset of the code */
	IMAGE_CODE_BYTES = 0x200,
	IMAGE_BASE = 0x400000, /* its address */
	IMAGE_SYMBOLS = 16,

	SECTION_NULL = 0,
	SECTION_DYNSYM,
	SECTION_DYNSTR,
	SECTION_VERSYM,
	SECTION_SYMTAB,
	SECTION_STRTAB,
	SECTION_NOTE,
	SECTIONS,

	AT_SECTIONS = 64 + 56,
	AT_DYNSYM = AT_SECTIONS + SECTIONS * 64,
	AT_DYNSTR = AT_DYNSYM + IMAGE_SYMBOLS * 24,
	AT_VERSYM = AT_DYNSTR + 512,
	AT_SYMTAB = AT_VERSYM + IMAGE_SYMBOLS * 2,
	AT_STRTAB = AT_SYMTAB + IMAGE_SYMBOLS * 24,
	AT_NOTE = AT_STRTAB + 512,
};

/* Bytes of the file, and the number of entries added so far. */
struct image {
	uint8_t bytes[IMAGE_BYTES];
	size_t size;
	size_t dynsyms, symtabs, dynstr, strtab;
	char path[64];
	int fd;
};

static inline Elf64_Ehdr *image_header(struct image *image)
{
	return (Elf64_Ehdr *)(void *)image->bytes;
}

static inline Elf64_Phdr *image_segment(struct image *image)
{
	return (Elf64_Phdr *)(void *)(image->bytes + 64);
}

static inline Elf64_Shdr *image_section(struct image *image, int section)
{
	return (Elf64_Shdr *)(void *)(image->bytes + AT_SECTIONS) + section;
}

static inline void image_set_section(struct image *image, int section, uint32_t type,
				     uint64_t offset, uint64_t size, uint32_t link,
				     uint64_t entry_size)
{
	*image_section(image, section) = (Elf64_Shdr){
		.sh_type = type,
		.sh_offset = offset,
		.sh_size = size,
		.sh_link = link,
		.sh_entsize = entry_size,
		.sh_addralign = 1,
	};
}

static inline void image_init(struct image *image)
{
	static const struct {
		Elf64_Nhdr header;
		char name[4];
		uint8_t id[4];
	} note = {{4, 4, NT_GNU_BUILD_ID}, "GNU", {0xde, 0xad, 0xbe, 0xef}};

	*image = (struct image){.size = IMAGE_BYTES,
				.dynsyms = 1,
				.symtabs = 1,
				.dynstr = 1,
				.strtab = 1,
				.fd = -1};
	*image_header(image) = (Elf64_Ehdr){
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = 64,
		.e_phoff = 64,
		.e_phentsize = 56,
		.e_phnum = 1,
		.e_shoff = AT_SECTIONS,
		.e_shentsize = 64,
		.e_shnum = SECTIONS,
	};
	*image_segment(image) = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = IMAGE_CODE,
		.p_vaddr = IMAGE_BASE,
		.p_filesz = IMAGE_CODE_BYTES,
		.p_memsz = IMAGE_CODE_BYTES,
		.p_align = 0x1000,
	};
	image_set_section(image, SECTION_DYNSYM, SHT_DYNSYM, AT_DYNSYM, 24, SECTION_DYNSTR, 24);
	image_set_section(image, SECTION_DYNSTR, SHT_STRTAB, AT_DYNSTR, 512, 0, 0);
	image_set_section(image, SECTION_VERSYM, SHT_GNU_versym, AT_VERSYM, 2, SECTION_DYNSYM, 2);
	image_set_section(image, SECTION_SYMTAB, SHT_SYMTAB, AT_SYMTAB, 24, SECTION_STRTAB, 24);
	image_set_section(image, SECTION_STRTAB, SHT_STRTAB, AT_STRTAB, 512, 0, 0);
	image_set_section(image, SECTION_NOTE, SHT_NOTE, AT_NOTE, sizeof(note), 0, 0);
	memcpy(image->bytes + AT_NOTE, &note, sizeof(note));
	memset(image->bytes + IMAGE_CODE, 0x55, IMAGE_CODE_BYTES); /* push %rbp */
}

/* A function at `at` bytes into the code. */
static inline Elf64_Sym image_function(uint32_t name, uint64_t at)
{
	return (Elf64_Sym){
		.st_name = name,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = 1,
		.st_value = IMAGE_BASE + at,
		.st_size = 16,
	};
}

/* Both return the symbol, for changes by the test. */
static inline Elf64_Sym *image_add_dynamic(struct image *image, const char *name, uint64_t at,
					   uint16_t version)
{
	Elf64_Sym *symbol = (Elf64_Sym *)(void *)(image->bytes + AT_DYNSYM) + image->dynsyms;

	*symbol = image_function((uint32_t)image->dynstr, at);
	memcpy(image->bytes + AT_DYNSTR + image->dynstr, name, strlen(name) + 1);
	image->dynstr += strlen(name) + 1;
	memcpy(image->bytes + AT_VERSYM + 2 * image->dynsyms, &version, sizeof(version));
	image->dynsyms++;
	image_section(image, SECTION_DYNSYM)->sh_size += 24;
	image_section(image, SECTION_VERSYM)->sh_size += 2;
	return symbol;
}

static inline Elf64_Sym *image_add_static(struct image *image, const char *name, uint64_t at)
{
	Elf64_Sym *symbol = (Elf64_Sym *)(void *)(image->bytes + AT_SYMTAB) + image->symtabs;

	*symbol = image_function((uint32_t)image->strtab, at);
	memcpy(image->bytes + AT_STRTAB + image->strtab, name, strlen(name) + 1);
	image->strtab += strlen(name) + 1;
	image->symtabs++;
	image_section(image, SECTION_SYMTAB)->sh_size += 24;
	return symbol;
}

static inline void image_code(struct image *image, uint64_t at, const void *code, size_t len)
{
	memcpy(image->bytes + IMAGE_CODE + at, code, len);
}

/* Writes it to a file in memory. Its path is valid until image_close(). */
static inline const char *image_save(struct image *image)
{
	image->fd = memfd_create("image", MFD_CLOEXEC);
	if (image->fd < 0 || write(image->fd, image->bytes, image->size) != (ssize_t)image->size)
		return "/no/such/image";
	(void)snprintf(image->path, sizeof(image->path), "/proc/self/fd/%d", image->fd);
	return image->path;
}

static inline void image_close(struct image *image)
{
	if (image->fd >= 0)
		(void)close(image->fd);
	image->fd = -1;
}

/* Looks up one function: its result, or the error of the file. */
static inline int find_one(struct nt_elf *elf, const char *name, struct nt_elf_symbol *ret_symbol)
{
	const struct nt_elf_wanted wanted = {.name = name};
	struct nt_elf_found found;
	int r = nt_elf_find_all(elf, &wanted, 1, &found);

	r = r < 0 ? r : found.result;
	if (r == 0)
		*ret_symbol = found.symbol;
	return r;
}

#endif
