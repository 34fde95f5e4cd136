/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/stack/python_layout.h"

#include <errno.h>
#include <string.h>

#define V(minor) (uint16_t)(0x0300 | (minor))

#define TEXT_BEFORE_312                                                                            \
	.bytes_size = 16, .bytes_data = 32, .text_length = 16, .text_state = 32, .text_ascii = 48, \
	.text_other = 72
#define TEXT_312                                                                                   \
	.bytes_size = 16, .bytes_data = 32, .text_length = 16, .text_state = 32, .text_ascii = 40, \
	.text_other = 56
#define OLD_FRAME                                                                                  \
	.back = 24, .code = 32, .first_line = 40, .filename = 104, .name = 112, .line_table = 120, \
	.thread_next = 8, .thread_id = 176, .frame = 24, .interpreters = 32, .threads = 8

/* Compiled from the internal headers of each version. */
static const struct nt_python_layout layouts[] = {
	{.version = V(8),
	 OLD_FRAME,
	 TEXT_BEFORE_312,
	 .lines = NT_PYTHON_LINES_LNOTAB,
	 .instruction = 104,
	 .lasti_bytes = 1,
	 .collecting = 544,
	 .collecting_in_runtime = true,
	 .gil_holder = 1160,
	 .gil_locked = 1168},
	{.version = V(9),
	 OLD_FRAME,
	 TEXT_BEFORE_312,
	 .lines = NT_PYTHON_LINES_LNOTAB,
	 .instruction = 104,
	 .lasti_bytes = 1,
	 .collecting = 816,
	 .gil_holder = 360,
	 .gil_locked = 368},
	{.version = V(10),
	 OLD_FRAME,
	 TEXT_BEFORE_312,
	 .lines = NT_PYTHON_LINES_RANGES,
	 .instruction = 96,
	 .lasti_bytes = 2,
	 .collecting = 816,
	 .gil_holder = 360,
	 .gil_locked = 368},
	{.version = V(11),
	 TEXT_BEFORE_312,
	 .lines = NT_PYTHON_LINES_LOCATIONS,
	 .interpreters = 40,
	 .threads = 16,
	 .thread_next = 8,
	 .thread_id = 152,
	 .native_id = 160,
	 .cframe = 56,
	 .frame = 8,
	 .back = 48,
	 .code = 32,
	 .instruction = 56,
	 .owner = 69,
	 .owner_shim = 3,
	 .first_line = 72,
	 .filename = 112,
	 .name = 120,
	 .qualname = 128,
	 .line_table = 136,
	 .bytecode = 184,
	 .collecting = 848,
	 .gil_holder = 368,
	 .gil_locked = 376},
	{.version = V(12),
	 TEXT_312,
	 .lines = NT_PYTHON_LINES_LOCATIONS,
	 .interpreters = 40,
	 .threads = 72,
	 .thread_next = 8,
	 .thread_id = 136,
	 .native_id = 144,
	 .cframe = 56,
	 .frame = 0,
	 .back = 8,
	 .code = 0,
	 .instruction = 56,
	 .owner = 70,
	 .owner_shim = 3,
	 .first_line = 68,
	 .filename = 112,
	 .name = 120,
	 .qualname = 128,
	 .line_table = 136,
	 .bytecode = 192,
	 .collecting = 312,
	 .gil = NT_PYTHON_GIL_POINTER,
	 .gil_at = 384,
	 .gil_holder = 8,
	 .gil_locked = 16},
};

int nt_python_layout_of(uint16_t version, struct nt_python_layout *ret_layout)
{
#if defined(__x86_64__)
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].version != version)
			continue;
		*ret_layout = layouts[i];
		return 0;
	}
#else
	(void)layouts;
	(void)version;
	(void)ret_layout;
#endif
	return -ENOTSUP;
}

/* ---- _Py_DebugOffsets ----------------------------------------------------------------------- */

/* Offsets in _Py_DebugOffsets, which gained members in 3.14. */
struct statement {
	uint16_t version;
	uint32_t interpreters;
	uint32_t interpreter_next, threads, gc, gil_pointer, gil, gil_locked, gil_holder;
	uint32_t thread_next, frame, thread_id, native_id;
	uint32_t back, code, instruction, owner;
	uint32_t filename, name, qualname, line_table, first_line, bytecode;
	uint32_t bytes_size, bytes_data;
	uint32_t text_state, text_length, text_ascii;
	uint32_t collecting;
};

enum {
	COOKIE_BYTES = 8,
	VERSION_AT = 8,
	FREE_THREADED_AT = 16,
	VERSION_SHIFT = 16, /* PY_VERSION_HEX */
	TEXT_OTHER_MORE =
		16, /* a string that is not ASCII has two more words before its characters */
};

static const struct statement statements[] = {
	{.version = V(13),
	 .interpreters = 40,
	 .interpreter_next = 64,
	 .threads = 72,
	 .gc = 80,
	 .gil_pointer = 112,
	 .gil = 120,
	 .gil_locked = 136,
	 .gil_holder = 144,
	 .thread_next = 168,
	 .frame = 184,
	 .thread_id = 192,
	 .native_id = 200,
	 .back = 232,
	 .code = 240,
	 .instruction = 248,
	 .owner = 264,
	 .filename = 280,
	 .name = 288,
	 .qualname = 296,
	 .line_table = 304,
	 .first_line = 312,
	 .bytecode = 344,
	 .bytes_size = 520,
	 .bytes_data = 528,
	 .text_state = 544,
	 .text_length = 552,
	 .text_ascii = 560,
	 .collecting = 576},
	{.version = V(14),
	 .interpreters = 40,
	 .interpreter_next = 64,
	 .threads = 72,
	 .gc = 88,
	 .gil_pointer = 120,
	 .gil = 128,
	 .gil_locked = 144,
	 .gil_holder = 152,
	 .thread_next = 192,
	 .frame = 208,
	 .thread_id = 216,
	 .native_id = 224,
	 .back = 256,
	 .code = 264,
	 .instruction = 272,
	 .owner = 288,
	 .filename = 320,
	 .name = 328,
	 .qualname = 336,
	 .line_table = 344,
	 .first_line = 352,
	 .bytecode = 384,
	 .bytes_size = 600,
	 .bytes_data = 608,
	 .text_state = 624,
	 .text_length = 632,
	 .text_ascii = 640,
	 .collecting = 656},
};

struct offsets {
	const uint8_t *data;
	size_t len;
	bool is_bad; /* an offset was out of bounds */
};

static uint64_t word_at(const struct offsets *offsets, uint32_t at)
{
	uint64_t word = 0;

	if (at <= offsets->len && offsets->len - at >= sizeof(word))
		memcpy(&word, offsets->data + at, sizeof(word));
	return word;
}

/* The offset of a value of `size` bytes in a struct of which `bytes` are read. */
static uint32_t take(struct offsets *offsets, uint32_t at, uint32_t bytes, uint32_t size)
{
	const uint64_t offset = word_at(offsets, at);

	if (at > offsets->len || offsets->len - at < sizeof(offset) || offset > bytes - size) {
		offsets->is_bad = true;
		return 0;
	}
	return (uint32_t)offset;
}

static void take_states(struct offsets *o, const struct statement *s, struct nt_python_layout *l)
{
	const uint64_t gil = word_at(o, s->gil), holder = word_at(o, s->gil_holder),
		       locked = word_at(o, s->gil_locked);

	l->interpreters = take(o, s->interpreters, NT_PYTHON_FAR_MAX, 8);
	l->interpreter_next = take(o, s->interpreter_next, NT_PYTHON_FAR_MAX, 8);
	l->threads = take(o, s->threads, NT_PYTHON_FAR_MAX, 8);
	l->collecting =
		take(o, s->gc, NT_PYTHON_FAR_MAX, 8) + take(o, s->collecting, NT_PYTHON_FAR_MAX, 4);
	l->gil = NT_PYTHON_GIL_POINTER;
	l->gil_at = take(o, s->gil_pointer, NT_PYTHON_FAR_MAX, 8);
	/* An interpreter has room for one; it points to that of the main one, or to its own. */
	o->is_bad |= holder < gil || locked < gil || holder - gil > NT_PYTHON_THREAD_BYTES ||
		     locked - gil > NT_PYTHON_THREAD_BYTES;
	l->gil_holder = (uint32_t)(holder - gil);
	l->gil_locked = (uint32_t)(locked - gil);
}

static void take_frame(struct offsets *o, const struct statement *s, struct nt_python_layout *l)
{
	l->thread_next = take(o, s->thread_next, NT_PYTHON_THREAD_BYTES, 8);
	l->thread_id = take(o, s->thread_id, NT_PYTHON_THREAD_BYTES, 8);
	l->native_id = take(o, s->native_id, NT_PYTHON_THREAD_BYTES, 8);
	l->frame = take(o, s->frame, NT_PYTHON_THREAD_BYTES, 8);
	l->back = take(o, s->back, NT_PYTHON_FRAME_BYTES, 8);
	l->code = take(o, s->code, NT_PYTHON_FRAME_BYTES, 8);
	l->instruction = take(o, s->instruction, NT_PYTHON_FRAME_BYTES, 8);
	l->owner = take(o, s->owner, NT_PYTHON_FRAME_BYTES, 1);
	l->owner_shim = 3;
	l->code_is_tagged = true;
}

static void take_code(struct offsets *o, const struct statement *s, struct nt_python_layout *l)
{
	l->first_line = take(o, s->first_line, NT_PYTHON_CODE_BYTES, 4);
	l->filename = take(o, s->filename, NT_PYTHON_CODE_BYTES, 8);
	l->name = take(o, s->name, NT_PYTHON_CODE_BYTES, 8);
	l->qualname = take(o, s->qualname, NT_PYTHON_CODE_BYTES, 8);
	l->line_table = take(o, s->line_table, NT_PYTHON_CODE_BYTES, 8);
	l->bytecode = take(o, s->bytecode, NT_PYTHON_CODE_BYTES, 0);
	l->bytes_size = take(o, s->bytes_size, NT_PYTHON_UNICODE_BYTES, 8);
	l->bytes_data = take(o, s->bytes_data, NT_PYTHON_UNICODE_BYTES, 0);
	l->text_length = take(o, s->text_length, NT_PYTHON_UNICODE_BYTES, 8);
	l->text_state = take(o, s->text_state, NT_PYTHON_UNICODE_BYTES, 4);
	l->text_ascii = take(o, s->text_ascii, NT_PYTHON_UNICODE_BYTES - TEXT_OTHER_MORE, 0);
	l->text_other = l->text_ascii + TEXT_OTHER_MORE;
	l->lines = word_at(o, FREE_THREADED_AT) ? NT_PYTHON_LINES_NONE : NT_PYTHON_LINES_LOCATIONS;
}

static const struct statement *find_statement(uint16_t version)
{
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		if (statements[i].version == version)
			return &statements[i];
	return NULL;
}

int nt_python_layout_parse(const uint8_t *data, size_t len, struct nt_python_layout *ret_layout)
{
	struct nt_python_layout layout = {0};
	struct offsets offsets = {.data = data, .len = len};
	const struct statement *statement;

	if (len < FREE_THREADED_AT || memcmp(data, "xdebugpy", COOKIE_BYTES) != 0)
		return -ENOENT;
	layout.version = (uint16_t)(word_at(&offsets, VERSION_AT) >> VERSION_SHIFT);
	statement = find_statement(layout.version);
	if (!statement)
		return -ENOTSUP;
	take_states(&offsets, statement, &layout);
	take_frame(&offsets, statement, &layout);
	take_code(&offsets, statement, &layout);
	if (offsets.is_bad)
		return -EBADMSG;
	*ret_layout = layout;
	return 0;
}
