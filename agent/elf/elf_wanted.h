/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of functions, or of objects, to find in an ELF file. */
#ifndef NT_AGENT_ELF_ELF_WANTED_H
#define NT_AGENT_ELF_ELF_WANTED_H

enum {
	NT_ELF_NAME_BYTES = 512, /* symbols with names this long or longer are skipped */
	NT_ELF_WANTED_MAX = 1024, /* names per search */
};

enum nt_elf_match {
	NT_ELF_WHOLE,
	NT_ELF_PREFIX, /* any function with this prefix */
	NT_ELF_CLONES, /* of nt_elf_find_clones() alone */
	NT_ELF_OBJECT, /* of nt_elf_find_objects() alone */
};

struct nt_elf_wanted {
	const char *name;
	enum nt_elf_match match;
};

#endif
