/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/elf/elf_note.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum {
	STAPSDT_TYPE = 3,
	ADDRESSES = 3, /* location, base, semaphore; texts follow */
};

static const char owner[] = "stapsdt";

/* Names and descriptions are padded to 4 bytes. False: beyond the end. */
static bool take(size_t len, size_t *at, uint32_t bytes, size_t *ret_begin)
{
	size_t padded = ((size_t)bytes + 3) & ~(size_t)3;

	if (*at > len || padded > len - *at)
		return false;
	*ret_begin = *at;
	*at += padded;
	return true;
}

/* Compares the text at *at, which must end within len, and moves past it. */
static bool is_text(const uint8_t *desc, size_t len, size_t *at, const char *wanted)
{
	const char *text = (const char *)desc + *at;
	const char *end = *at < len ? memchr(text, '\0', len - *at) : NULL;

	if (!end)
		return false;
	*at += (size_t)(end - text) + 1;
	return strcmp(text, wanted) == 0;
}

static bool read_note(const uint8_t *desc, size_t len, const char *provider, const char *name,
		      struct nt_elf_note *ret_note)
{
	uint64_t address[ADDRESSES];
	size_t at = sizeof(address);

	if (len < sizeof(address))
		return false;
	memcpy(address, desc, sizeof(address));
	if (!is_text(desc, len, &at, provider) || !is_text(desc, len, &at, name))
		return false;
	*ret_note = (struct nt_elf_note){
		.location = address[0],
		.base = address[1],
		.semaphore = address[2],
	};
	return true;
}

/* One note of a section. */
struct section_note {
	Elf64_Nhdr header;
	const uint8_t *owner, *desc; /* header.n_namesz and n_descsz bytes */
};

/* Reads the note at *at, and moves past it. False at the end, or if the rest is malformed. */
static bool next_note(const uint8_t *data, size_t len, size_t *at, struct section_note *ret_note)
{
	struct section_note note;
	size_t owner_at, desc_at;

	if (*at > len || len - *at < sizeof(note.header))
		return false;
	memcpy(&note.header, data + *at, sizeof(note.header));
	*at += sizeof(note.header);
	if (!take(len, at, note.header.n_namesz, &owner_at) ||
	    !take(len, at, note.header.n_descsz, &desc_at))
		return false;
	note.owner = data + owner_at;
	note.desc = data + desc_at;
	*ret_note = note;
	return true;
}

static bool is_of(const struct section_note *note, uint32_t type, const char *name, size_t size)
{
	return note->header.n_type == type && note->header.n_namesz == size &&
	       memcmp(note->owner, name, size) == 0;
}

size_t nt_elf_note_find(const uint8_t *data, size_t len, const char *provider, const char *name,
			struct nt_elf_note *ret_note, size_t max)
{
	size_t at = 0, found = 0;
	struct section_note read;
	struct nt_elf_note note;

	while (next_note(data, len, &at, &read)) {
		if (!is_of(&read, STAPSDT_TYPE, owner, sizeof(owner)) ||
		    !read_note(read.desc, read.header.n_descsz, provider, name, &note))
			continue;
		if (found < max)
			ret_note[found] = note;
		found++;
	}
	return found;
}

bool nt_elf_note_build_id(const uint8_t *data, size_t len,
			  char ret_hex[2 * NT_ELF_BUILD_ID_BYTES + 1])
{
	struct section_note note;
	size_t at = 0;

	while (next_note(data, len, &at, &note)) {
		if (!is_of(&note, NT_GNU_BUILD_ID, "GNU", sizeof("GNU")) ||
		    note.header.n_descsz == 0 || note.header.n_descsz > NT_ELF_BUILD_ID_BYTES)
			continue;
		for (size_t i = 0; i < note.header.n_descsz; i++)
			(void)snprintf(ret_hex + 2 * i, 3, "%02x", note.desc[i]);
		return true;
	}
	return false;
}
