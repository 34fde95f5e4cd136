/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Notes of an ELF file: those in which a program says where it was built for probes (.note.stapsdt,
 * "USDT"), a nop each with the names of a provider and of the event; and the build-id. The bytes are
 * hostile.
 */
#ifndef NT_AGENT_ELF_ELF_NOTE_H
#define NT_AGENT_ELF_ELF_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses as the file was linked. */
struct nt_elf_note {
	uint64_t location;
	uint64_t semaphore; /* 16 bits that count who wants the event; 0: it is made always */
	uint64_t base; /* of the section .stapsdt.base: where that lies elsewhere now, so do they */
};

/*
 * Those of one name, in the order of the file. Returns how many there are, of which the first `max`
 * are given: an event has as many as the compiler made copies of the function. What is malformed
 * ends the walk.
 */
size_t nt_elf_note_find(const uint8_t *data, size_t len, const char *provider, const char *name,
			struct nt_elf_note *ret_note, size_t max);

enum {
	NT_ELF_BUILD_ID_BYTES = 32, /* one that is longer is none */
};

/* The build-id in these notes, as hex. False: they hold none, and ret_hex is as it was. */
bool nt_elf_note_build_id(const uint8_t *data, size_t len,
			  char ret_hex[2 * NT_ELF_BUILD_ID_BYTES + 1]);

#endif
