/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Converts messages between bytes and plain structs, by the rows of wire_map.c. protobuf-c handles
 * the format. It allocates from an arena with a limit, because two bytes on the wire can require
 * over a hundred bytes of memory.
 */
#include "proto/wire.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "neutracer.pb-c.h"
#include "proto/arena.h"
#include "proto/text.h"
#include "proto/wire_column.h"
#include "proto/wire_direct.h"
#include "proto/wire_map.h"

enum {
	/*
	 * Memory for the generated structs of one message: a floor that allows every array to be at
	 * its cap, plus an amount per byte. Valid messages need about 10 bytes per byte.
	 */
	DECODE_FLOOR_BYTES = 4 << 20,
	DECODE_BYTES_PER_BYTE = 32,
	DECODE_CHUNK_BYTES = 8 << 10,
	/* Typical need of our structs. */
	FIRST_BYTES = 128,
	BYTES_PER_BYTE = 3,
};

/* Lies in its own arena: a typical message is one block of memory. */
struct decoded {
	struct nt_arena arena;
	struct nt_message message;
};

/* ---- values of one field --------------------------------------------------------------------- */

static int keep_text(const char *text, struct nt_arena *arena, const char **ret_text)
{
	size_t len = text ? strnlen(text, NT_WIRE_MAX_TEXT + 4) : 0;
	char *out;

	if (!len) {
		*ret_text = "";
		return 0;
	}
	out = nt_arena_alloc(arena, len + 1);
	if (!out)
		return -ENOMEM;
	(void)nt_text_clean(text, len, out, NT_WIRE_MAX_TEXT);
	*ret_text = out;
	return 0;
}

static size_t read_count(const void *base, uint16_t offset)
{
	size_t n;

	memcpy(&n, (const char *)base + offset, sizeof(n));
	return n;
}

static void write_count(void *base, uint16_t offset, size_t n)
{
	memcpy((char *)base + offset, &n, sizeof(n));
}

static const void *read_pointer(const void *at)
{
	const void *pointer;

	memcpy(&pointer, at, sizeof(pointer));
	return pointer;
}

static void write_pointer(void *at, const void *pointer)
{
	memcpy(at, &pointer, sizeof(pointer));
}

static size_t scalar_bytes(enum nt_wire_kind kind)
{
	return kind == NT_WIRE_U32 || kind == NT_WIRE_U32S ? sizeof(uint32_t) : sizeof(uint64_t);
}

static int copy_array(const void *from, size_t n, size_t bytes, struct nt_arena *arena, void *at)
{
	void *copy;

	if (!n) {
		write_pointer(at, NULL);
		return 0;
	}
	copy = nt_arena_alloc(arena, n * bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, from, n * bytes);
	write_pointer(at, copy);
	return 0;
}

static int copy_texts(const void *from, size_t n, struct nt_arena *arena, void *at)
{
	const char **copy;
	int r;

	if (!n) {
		write_pointer(at, NULL);
		return 0;
	}
	copy = nt_arena_alloc(arena, n * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		r = keep_text(((char *const *)from)[i], arena, &copy[i]);
		if (r < 0)
			return r;
	}
	write_pointer(at, copy);
	return 0;
}

/* ---- decoding: from there to here ------------------------------------------------------------ */

static int take_value(const struct nt_wire_field *field, const void *from, void *here, size_t n,
		      struct nt_arena *arena)
{
	void *to = (char *)here + field->here;
	const ProtobufCBinaryData *data = from;
	protobuf_c_boolean flag;
	uint32_t number;
	double real;
	bool yes;

	switch (field->kind) {
	case NT_WIRE_U32:
	case NT_WIRE_U64:
	case NT_WIRE_I64:
		memcpy(to, from, scalar_bytes(field->kind));
		return 0;
	case NT_WIRE_F64:
		memcpy(&real, from, sizeof(real));
		if (!isfinite(real))
			return -EBADMSG;
		memcpy(to, &real, sizeof(real));
		return 0;
	case NT_WIRE_BOOL:
		memcpy(&flag, from, sizeof(flag));
		yes = flag != 0;
		memcpy(to, &yes, sizeof(yes));
		return 0;
	case NT_WIRE_ENUM:
		memcpy(&number, from, sizeof(number));
		if (number >= field->max)
			number = 0;
		memcpy(to, &number, sizeof(number));
		return 0;
	case NT_WIRE_TEXT:
		return keep_text(read_pointer(from), arena, to);
	case NT_WIRE_DATA:
		if (data->len > field->max)
			return -EBADMSG;
		write_count(here, field->here_count, data->len);
		return copy_array(data->data, data->len, 1, arena, to);
	case NT_WIRE_U32S:
	case NT_WIRE_U64S:
		return copy_array(read_pointer(from), n, scalar_bytes(field->kind), arena, to);
	case NT_WIRE_TEXTS:
		return copy_texts(read_pointer(from), n, arena, to);
	case NT_WIRE_ONE:
	case NT_WIRE_MANY:
	case NT_WIRE_COLUMNS:
		break;
	}
	return -EBADMSG;
}

/* Values of an absent message: zeros, which it has already, and empty texts. */
static void take_nothing(const struct nt_wire_shape *shape, void *here)
{
	for (size_t i = 0; i < shape->fields; i++) {
		const struct nt_wire_field *field = &shape->field[i];

		if (field->kind == NT_WIRE_TEXT)
			write_pointer((char *)here + field->here, "");
		else if (field->kind == NT_WIRE_ONE)
			take_nothing(field->shape, (char *)here + field->here);
	}
}

/* A message carries its rows in one form only. */
static int take_columns(const struct nt_wire_field *field, const void *there, void *here,
			struct nt_arena *arena)
{
	void *rows;
	size_t n;
	int r;

	if (!there)
		return 0;
	r = nt_wire_columns_take(field, there, arena, &rows, &n);
	if (r < 0 || !n)
		return r;
	if (read_count(here, field->here_count))
		return -EBADMSG;
	write_count(here, field->here_count, n);
	write_pointer((char *)here + field->here, rows);
	return 0;
}

/* `here` is zeroed. Calls itself no deeper than the proto nests. */
static int take_message(const struct nt_wire_shape *shape, const void *there, void *here,
			struct nt_arena *arena)
{
	for (size_t i = 0; i < shape->fields; i++) {
		const struct nt_wire_field *field = &shape->field[i];
		const char *from = (const char *)there + field->there;
		char *to = (char *)here + field->here;
		size_t n = 0;
		int r = 0;

		if (field->there_count) {
			n = read_count(there, field->there_count);
			if (n > field->max)
				return -EBADMSG;
			if (field->paired && n != read_count(here, field->here_count))
				return -EBADMSG;
			write_count(here, field->here_count, n);
		}
		if (field->kind == NT_WIRE_ONE) {
			const void *sub = read_pointer(from);

			if (sub)
				r = take_message(field->shape, sub, to, arena);
			else
				take_nothing(field->shape, to);
		} else if (field->kind == NT_WIRE_MANY && n) {
			const size_t bytes = field->shape->here_bytes;
			const void *const *subs = read_pointer(from);
			char *array = nt_arena_alloc(arena, n * bytes);

			if (!array)
				return -ENOMEM;
			for (size_t j = 0; j < n && r == 0; j++)
				r = take_message(field->shape, subs[j], array + j * bytes, arena);
			write_pointer(to, array);
		} else if (field->kind == NT_WIRE_COLUMNS) {
			r = take_columns(field, read_pointer(from), here, arena);
		} else if (field->kind != NT_WIRE_MANY) {
			r = take_value(field, from, here, n, arena);
		}
		if (r < 0)
			return r;
	}
	return shape->is_sound && !shape->is_sound(here) ? -EBADMSG : 0;
}

static struct decoded *new_decoded(size_t limit, size_t first)
{
	struct nt_arena arena = {.limit = limit, .first = sizeof(struct decoded) + first};
	struct decoded *decoded = nt_arena_alloc(&arena, sizeof(*decoded));

	if (decoded)
		decoded->arena = arena;
	return decoded;
}

static void *alloc_of_arena(void *arena, size_t size)
{
	return nt_arena_alloc(arena, size);
}

static void free_of_arena(void *arena, void *pointer)
{
	(void)arena;
	(void)pointer;
}

static int take_body(const Neutracer__V1__Envelope *envelope, struct decoded *decoded)
{
	for (int i = NT_BODY_NONE + 1; i < NT_WIRE_BODIES; i++) {
		const struct nt_wire_body *body = &nt_wire_bodies[i];

		if ((int)envelope->body_case != body->body_case)
			continue;
		decoded->message.body = (enum nt_body)i;
		return take_message(body->shape, envelope->window,
				    (char *)&decoded->message + body->here, &decoded->arena);
	}
	return 0; /* it stays NT_BODY_NONE */
}

/* In any form: protobuf-c decides. */
static int decode_any(const void *data, size_t size, struct nt_message **ret_message)
{
	nt_autoarena struct nt_arena arena = {
		.limit = DECODE_FLOOR_BYTES + size * DECODE_BYTES_PER_BYTE,
		.first = DECODE_CHUNK_BYTES,
	};
	ProtobufCAllocator allocator = {alloc_of_arena, free_of_arena, &arena};
	Neutracer__V1__Envelope *envelope;
	struct nt_message *message;
	struct decoded *decoded;
	int r;

	envelope = neutracer__v1__envelope__unpack(&allocator, size, data);
	if (!envelope)
		return arena.refused == -ENOMEM ? -ENOMEM : -EBADMSG;

	decoded = new_decoded(0, FIRST_BYTES + size * BYTES_PER_BYTE);
	if (!decoded)
		return -ENOMEM;
	message = &decoded->message;
	r = take_message(&nt_wire_envelope, envelope, message, &decoded->arena);
	if (r == 0)
		r = take_body(envelope, decoded);
	if (r < 0) {
		nt_message_free(message);
		return r;
	}
	*ret_message = message;
	return 0;
}

int nt_message_decode(const void *data, size_t size, struct nt_message **ret_message)
{
	struct decoded *decoded;
	bool short_of_memory;

	if (size > NT_WIRE_MAX_BYTES)
		return -EBADMSG;
	decoded = new_decoded(DECODE_FLOOR_BYTES + size * DECODE_BYTES_PER_BYTE,
			      FIRST_BYTES + size * BYTES_PER_BYTE);
	if (!decoded)
		return -ENOMEM;
	if (nt_wire_direct(data, size, &decoded->arena, &decoded->message)) {
		*ret_message = &decoded->message;
		return 0;
	}
	short_of_memory = decoded->arena.refused == -ENOMEM;
	nt_message_free(&decoded->message);
	return short_of_memory ? -ENOMEM : decode_any(data, size, ret_message);
}

void nt_message_free(struct nt_message *message)
{
	const struct decoded *decoded;
	struct nt_arena arena;

	if (!message)
		return;
	/* The arena must not lie in the memory that it releases. */
	decoded = (void *)((char *)message - offsetof(struct decoded, message));
	arena = decoded->arena;
	nt_arena_release(&arena);
}

/* ---- encoding: from here to there ------------------------------------------------------------ */

static int give_value(const struct nt_wire_field *field, const void *here, void *to, size_t n,
		      struct nt_arena *arena)
{
	static const uint32_t none;
	const void *from = (const char *)here + field->here;
	ProtobufCBinaryData *data = to;
	protobuf_c_boolean flag;
	const char *text;
	const uint32_t *number;
	const double *real;
	bool yes;
	int r;

	switch (field->kind) {
	case NT_WIRE_U32:
	case NT_WIRE_U64:
	case NT_WIRE_I64:
		memcpy(to, from, scalar_bytes(field->kind));
		return 0;
	case NT_WIRE_F64:
		real = from;
		if (!isfinite(*real))
			return -EINVAL;
		memcpy(to, real, sizeof(*real));
		return 0;
	case NT_WIRE_BOOL:
		memcpy(&yes, from, sizeof(yes));
		flag = yes;
		memcpy(to, &flag, sizeof(flag));
		return 0;
	case NT_WIRE_ENUM:
		number = from;
		memcpy(to, *number < field->max ? number : &none, sizeof(*number));
		return 0;
	case NT_WIRE_TEXT:
		r = keep_text(read_pointer(from), arena, &text);
		if (r < 0)
			return r;
		write_pointer(to, text);
		return 0;
	case NT_WIRE_DATA:
		n = read_count(here, field->here_count);
		if (n > field->max)
			return -EMSGSIZE;
		data->len = n;
		return copy_array(read_pointer(from), n, 1, arena, &data->data);
	case NT_WIRE_U32S:
	case NT_WIRE_U64S:
		return copy_array(read_pointer(from), n, scalar_bytes(field->kind), arena, to);
	case NT_WIRE_TEXTS:
		return copy_texts(read_pointer(from), n, arena, to);
	case NT_WIRE_ONE:
	case NT_WIRE_MANY:
	case NT_WIRE_COLUMNS:
		break;
	}
	return -EINVAL;
}

static int give_message(const struct nt_wire_shape *shape, const void *here, struct nt_arena *arena,
			ProtobufCMessage **ret_there)
{
	ProtobufCMessage *there = nt_arena_alloc(arena, shape->there->sizeof_message);

	if (!there)
		return -ENOMEM;
	protobuf_c_message_init(shape->there, there);

	for (size_t i = 0; i < shape->fields; i++) {
		const struct nt_wire_field *field = &shape->field[i];
		const char *from = (const char *)here + field->here;
		void *to = (char *)there + field->there;
		ProtobufCMessage *sub = NULL;
		size_t n = 0;
		int r = 0;

		if (field->old)
			continue;
		if (field->here_count && field->kind != NT_WIRE_DATA) {
			n = read_count(here, field->here_count);
			if (n > field->max)
				return -EMSGSIZE;
			if (n && !read_pointer(from))
				return -EINVAL;
			if (field->there_count)
				write_count(there, field->there_count, n);
		}
		if (field->kind == NT_WIRE_ONE) {
			r = give_message(field->shape, from, arena, &sub);
			/* Empty messages are omitted. */
			if (r == 0 && protobuf_c_message_get_packed_size(sub))
				write_pointer(to, sub);
		} else if (field->kind == NT_WIRE_MANY && n) {
			const char *array = read_pointer(from);
			void **subs = nt_arena_alloc(arena, n * sizeof(*subs));

			if (!subs)
				return -ENOMEM;
			for (size_t j = 0; j < n && r == 0; j++) {
				r = give_message(field->shape, array + j * field->shape->here_bytes,
						 arena, &sub);
				subs[j] = sub;
			}
			write_pointer(to, subs);
		} else if (field->kind == NT_WIRE_COLUMNS) {
			r = nt_wire_columns_give(field, read_pointer(from), n, arena, &sub);
			write_pointer(to, sub);
		} else if (field->kind != NT_WIRE_MANY) {
			r = give_value(field, here, to, n, arena);
		}
		if (r < 0)
			return r;
	}
	if (shape->is_sound && !shape->is_sound(here))
		return -EINVAL;
	*ret_there = there;
	return 0;
}

int nt_message_encode(const struct nt_message *message, struct nt_buf *buf)
{
	nt_autoarena struct nt_arena arena = {0};
	const struct nt_wire_body *body;
	Neutracer__V1__Envelope *envelope;
	ProtobufCMessage *there, *inner;
	size_t size;
	int r;

	if ((unsigned int)message->body >= NT_WIRE_BODIES || message->body == NT_BODY_NONE)
		return -EINVAL;
	body = &nt_wire_bodies[message->body];
	r = give_message(&nt_wire_envelope, message, &arena, &there);
	if (r < 0)
		return r;
	r = give_message(body->shape, (const char *)message + body->here, &arena, &inner);
	if (r < 0)
		return r;
	envelope = (Neutracer__V1__Envelope *)there;
	envelope->body_case = (Neutracer__V1__Envelope__BodyCase)body->body_case;
	envelope->window = (Neutracer__V1__Window *)inner;

	size = protobuf_c_message_get_packed_size(there);
	if (size > NT_WIRE_MAX_BYTES)
		return -EMSGSIZE;
	r = nt_buf_reserve(buf, size);
	if (r < 0)
		return r;
	buf->len += protobuf_c_message_pack(there, buf->data + buf->len);
	return 0;
}

uint64_t nt_message_real_ns(const struct nt_message *message, uint64_t boot_ns)
{
	uint64_t real_ns;

	if (boot_ns >= message->boot_ns)
		return __builtin_add_overflow(message->real_ns, boot_ns - message->boot_ns,
					      &real_ns)
			       ? UINT64_MAX
			       : real_ns;
	return __builtin_sub_overflow(message->real_ns, message->boot_ns - boot_ns, &real_ns)
		       ? 0
		       : real_ns;
}
