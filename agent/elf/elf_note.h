/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Notes of an ELF file: USDT marks (.note.stapsdt), each of which names a nop, a provider and an
 * event; and the build-id. The bytes are untrusted.
 */
#ifndef NT_AGENT_ELF_ELF_NOTE_H
#define NT_AGENT_ELF_ELF_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Link-time addresses. */
struct nt_elf_note {
	uint64_t location;
	uint64_t semaphore; /* 16 bits: attached probes; 0: the event is always made */
	uint64_t base; /* link-time address of .stapsdt.base: a later move shifts the others too */
};

/*
 * Finds the notes of one name, in file order. Returns their number, and the first `max` of them. An
 * event has one note per copy of its function that the compiler made. A malformed note ends the
 * search.
 */
size_t nt_elf_note_find(const uint8_t *data, size_t len, const char *provider, const char *name,
			struct nt_elf_note *ret_note, size_t max);

enum {
	NT_ELF_BUILD_ID_BYTES = 32, /* a longer one is ignored */
};

/* The build-id in these notes, as hex. False: there is none, and ret_hex is unchanged. */
bool nt_elf_note_build_id(const uint8_t *data, size_t len,
			  char ret_hex[2 * NT_ELF_BUILD_ID_BYTES + 1]);

#endif
