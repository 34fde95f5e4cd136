/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of functions that are looked for in an ELF file. */
#ifndef NT_AGENT_ELF_ELF_WANTED_H
#define NT_AGENT_ELF_ELF_WANTED_H

enum {
	NT_ELF_NAME_BYTES = 512, /* a symbol whose name has as many is passed over */
	NT_ELF_WANTED_MAX = 1024, /* names that are looked for at once */
};

enum nt_elf_match {
	NT_ELF_WHOLE,
	NT_ELF_PREFIX, /* any function whose name begins so */
	NT_ELF_CLONES, /* of nt_elf_find_clones() alone */
};

struct nt_elf_wanted {
	const char *name;
	enum nt_elf_match match;
};

#endif
