/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/python_text.h"

#include <errno.h>
#include <string.h>

#include "common/base/ascii.h"

enum {
	SIZE_MAX_HERE = 256, /* of `to` */
	KIND_MASK = 7,
	COMPACT = 8, /* the bits after the kind */
	ASCII = 16,
	WIDEST = 4, /* bytes of a character */
};

struct text_head {
	uint64_t length; /* characters */
	uint32_t width; /* bytes of one */
	uint32_t data_at; /* offset of the first */
};

/*
 * Kind, compactness and whether it is ASCII follow a number of at most 3. This takes 2, 8 or 16 bits,
 * by build and release, so that at most one of them gives a valid kind. 0: none does.
 */
static uint32_t kind_of(uint32_t state)
{
	static const uint8_t shift[] = {2, 8, 16};

	for (size_t i = 0; i < sizeof(shift); i++) {
		const uint32_t bits = state >> shift[i], kind = bits & KIND_MASK;

		if ((kind == 1 || kind == 2 || kind == 4) && bits & COMPACT)
			return bits;
	}
	return 0;
}

static int parse_head(const struct nt_python_layout *layout, const uint8_t *head,
		      struct text_head *ret_head)
{
	uint64_t length;
	uint32_t state;

	memcpy(&length, head + layout->text_length, sizeof(length));
	memcpy(&state, head + layout->text_state, sizeof(state));
	state = kind_of(state);
	/* Characters that are not in the object itself are of strings that old C extensions made. */
	if (length > NT_PYTHON_TEXT_LENGTH || !state)
		return -EBADMSG;
	*ret_head = (struct text_head){
		.length = length,
		.width = state & KIND_MASK,
		.data_at = state & ASCII ? layout->text_ascii : layout->text_other,
	};
	return 0;
}

static char narrow(const uint8_t *at, uint32_t width)
{
	uint32_t value = 0;

	memcpy(&value, at, width); /* little-endian, as the process is */
	return value < 0x7f ? (char)value : '?';
}

int nt_python_text(struct nt_stack_memory *memory, const struct nt_python_layout *layout,
		   uint64_t address, bool keep_end, char *to, size_t size)
{
	uint8_t head_bytes[NT_PYTHON_UNICODE_BYTES] = {0};
	uint8_t data[WIDEST * SIZE_MAX_HERE];
	char narrowed[SIZE_MAX_HERE];
	struct text_head head;
	uint64_t length, skipped;
	int r;

	r = nt_stack_memory_read(memory, address, head_bytes, layout->text_ascii);
	if (r < 0)
		return r;
	r = parse_head(layout, head_bytes, &head);
	if (r < 0)
		return r;
	if (size > SIZE_MAX_HERE)
		size = SIZE_MAX_HERE;
	length = head.length < size ? head.length : size - 1;
	skipped = keep_end ? (head.length - length) * head.width : 0;
	if (length) {
		r = nt_stack_memory_read(memory, address + head.data_at + skipped, data,
					 length * head.width);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < length; i++)
		narrowed[i] = narrow(data + i * head.width, head.width);
	nt_ascii_copy(to, size, narrowed, length);
	return 0;
}
