/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/wire_direct.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "proto/field.h"
#include "proto/text.h"
#include "proto/wire_map.h"

enum {
	SIGNATURE = 8, /* the field of the envelope */
	MAX_DEPTH = 8,
};

/* ---- the plan: what each number means ------------------------------------------------------------- */

static pthread_once_t plans_once = PTHREAD_ONCE_INIT;

static uint8_t wire_of(const ProtobufCFieldDescriptor *there)
{
	if (there->label == PROTOBUF_C_LABEL_REPEATED)
		return NT_FIELD_PART;
	switch (there->type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return NT_FIELD_PART;
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return NT_FIELD_EIGHT_BYTES;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_BOOL:
	case PROTOBUF_C_TYPE_ENUM:
		return NT_FIELD_VARINT;
	default:
		return NT_WIRE_LONG_WAY;
	}
}

static const ProtobufCFieldDescriptor *find_there(const ProtobufCMessageDescriptor *there,
						  uint16_t offset)
{
	for (unsigned int i = 0; i < there->n_fields; i++)
		if (there->fields[i].offset == offset &&
		    !(there->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
			return &there->fields[i];
	return NULL;
}

static void make_columns(const struct nt_wire_field *field)
{
	const struct nt_wire_columns *columns = field->columns;

	for (size_t i = 0; i < field->shape->fields; i++) {
		const ProtobufCFieldDescriptor *there =
			find_there(columns->there, columns->column[i].values);

		assert(there && there->id <= NT_WIRE_MAX_NUMBER);
		columns->plan->step[there->id] = (struct nt_wire_step){
			.field = &field->shape->field[i],
			.wire = there->type == PROTOBUF_C_TYPE_SINT64 ? NT_FIELD_PART
								      : NT_WIRE_LONG_WAY,
		};
	}
}

static void make_plan(const struct nt_wire_shape *shape, int depth)
{
	assert(depth < MAX_DEPTH);
	for (size_t i = 0; i < shape->fields; i++) {
		const struct nt_wire_field *field = &shape->field[i];
		const ProtobufCFieldDescriptor *there = find_there(shape->there, field->there);

		assert(there && there->id <= NT_WIRE_MAX_NUMBER);
		shape->plan->step[there->id] = (struct nt_wire_step){
			.field = field,
			.wire = wire_of(there),
			.is_fixed = there->type == PROTOBUF_C_TYPE_FIXED64,
		};
		if (field->kind == NT_WIRE_COLUMNS)
			make_columns(field);
		else if (field->shape)
			make_plan(field->shape, depth + 1);
		shape->plan->has_pairs |= field->paired;
		shape->plan->has_texts |= field->kind == NT_WIRE_TEXT ||
					  (field->kind == NT_WIRE_ONE && field->shape &&
					   field->shape->plan->has_texts);
	}
}

static void make_plans(void)
{
	make_plan(&nt_wire_envelope, 0);
	for (int i = NT_BODY_NONE + 1; i < NT_WIRE_BODIES; i++)
		make_plan(nt_wire_bodies[i].shape, 0);
}

/* ---- numbers -------------------------------------------------------------------------------------- */

/* All our tags have one byte or two. */
static bool read_tag(struct nt_field_input *in, uint64_t *ret_tag)
{
	const uint8_t *before = in->at;

	return nt_field_read_varint(in, ret_tag) && in->at - before <= 2 &&
	       *ret_tag >> NT_FIELD_TYPE_BITS <= NT_WIRE_MAX_NUMBER;
}

static size_t count_varints(const struct nt_field_input *in)
{
	size_t count = 0;

	for (const uint8_t *at = in->at; at < in->end; at++)
		count += *at < 0x80;
	return count;
}

/* ---- values --------------------------------------------------------------------------------------- */

static void put_count(void *base, const struct nt_wire_field *field, size_t count)
{
	memcpy((char *)base + field->here_count, &count, sizeof(count));
}

static size_t get_count(const void *base, const struct nt_wire_field *field)
{
	size_t count;

	memcpy(&count, (const char *)base + field->here_count, sizeof(count));
	return count;
}

static void put_pointer(void *to, const void *pointer)
{
	memcpy(to, &pointer, sizeof(pointer));
}

static bool put_number(const struct nt_wire_field *field, uint64_t value, void *to)
{
	uint32_t number = (uint32_t)value;
	bool yes = value != 0;
	double real;

	switch (field->kind) {
	case NT_WIRE_U64:
	case NT_WIRE_I64:
		memcpy(to, &value, sizeof(value));
		return true;
	case NT_WIRE_U32:
		memcpy(to, &number, sizeof(number));
		return true;
	case NT_WIRE_ENUM:
		if (number >= field->max)
			number = 0;
		memcpy(to, &number, sizeof(number));
		return true;
	case NT_WIRE_BOOL:
		memcpy(to, &yes, sizeof(yes));
		return true;
	case NT_WIRE_F64:
		memcpy(&real, &value, sizeof(real));
		memcpy(to, &real, sizeof(real));
		return isfinite(real);
	default:
		return false;
	}
}

static bool put_text(const struct nt_field_input *part, struct nt_arena *arena, void *to)
{
	const size_t size = nt_field_left(part);
	const char *text = (const char *)part->at;
	size_t len = strnlen(text, size < NT_WIRE_MAX_TEXT + 4 ? size : NT_WIRE_MAX_TEXT + 4);
	char *out;

	if (!len) {
		put_pointer(to, "");
		return true;
	}
	out = nt_arena_alloc(arena, len + 1);
	if (!out)
		return false;
	(void)nt_text_clean(text, len, out, NT_WIRE_MAX_TEXT);
	put_pointer(to, out);
	return true;
}

static bool put_data(const struct nt_wire_field *field, const struct nt_field_input *part,
		     struct nt_arena *arena, void *here)
{
	const size_t size = nt_field_left(part);
	void *copy;

	if (size > field->max)
		return false;
	if (!size)
		return true;
	copy = nt_arena_alloc(arena, size);
	if (!copy)
		return false;
	memcpy(copy, part->at, size);
	put_count(here, field, size);
	put_pointer((char *)here + field->here, copy);
	return true;
}

static bool put_numbers(const struct nt_wire_field *field, struct nt_field_input *part,
			struct nt_arena *arena, void *here)
{
	const size_t count = count_varints(part);
	const size_t bytes = field->kind == NT_WIRE_U32S ? sizeof(uint32_t) : sizeof(uint64_t);
	char *array;

	if (count > field->max || (field->paired && count != get_count(here, field)))
		return false;
	if (!count)
		return part->at == part->end;
	array = nt_arena_alloc(arena, count * bytes);
	if (!array)
		return false;
	for (size_t i = 0; i < count; i++) {
		uint64_t value;
		uint32_t number;

		if (!nt_field_read_varint(part, &value))
			return false;
		number = (uint32_t)value;
		memcpy(array + i * bytes, bytes == sizeof(number) ? (void *)&number : &value,
		       bytes);
	}
	put_count(here, field, count);
	put_pointer((char *)here + field->here, array);
	return part->at == part->end;
}

/* ---- rows by column ------------------------------------------------------------------------------- */

static bool put_column(const struct nt_wire_field *cell, struct nt_field_input *part, size_t count,
		       size_t stride, char *rows)
{
	const bool is_short = cell->kind == NT_WIRE_U32 || cell->kind == NT_WIRE_ENUM;
	uint64_t value = 0, zigzag;

	for (size_t i = 0; i < count; i++) {
		if (!nt_field_read_varint(part, &zigzag))
			return false;
		value += (zigzag >> 1) ^ (0 - (zigzag & 1));
		if ((is_short && value > UINT32_MAX) ||
		    !put_number(cell, value, rows + i * stride + cell->here))
			return false;
	}
	return part->at == part->end;
}

static bool put_columns(const struct nt_wire_field *field, struct nt_field_input *in,
			struct nt_arena *arena, void *here)
{
	const struct nt_wire_plan *plan = field->columns->plan;
	const size_t stride = field->shape->here_bytes;
	size_t count = 0;
	char *rows = NULL;
	uint64_t tag, before = 0;

	if (get_count(here, field))
		return false;
	while (in->at < in->end) {
		const struct nt_wire_step *step;
		struct nt_field_input part;
		size_t length;

		if (!read_tag(in, &tag) || (tag & NT_FIELD_TYPE_MASK) != NT_FIELD_PART ||
		    tag <= before)
			return false;
		before = tag;
		step = &plan->step[tag >> NT_FIELD_TYPE_BITS];
		if (!step->field || step->wire != NT_FIELD_PART || !nt_field_read_part(in, &part))
			return false;
		length = count_varints(&part);
		if (!length || length > field->max || (rows && length != count))
			return false;
		count = length;
		if (!rows)
			rows = nt_arena_alloc(arena, count * stride);
		if (!rows || !put_column(step->field, &part, count, stride, rows))
			return false;
	}
	if (rows) {
		put_count(here, field, count);
		put_pointer((char *)here + field->here, rows);
	}
	return true;
}

/* ---- messages ------------------------------------------------------------------------------------- */

static bool put_message(const struct nt_wire_shape *shape, struct nt_field_input *in,
			struct nt_arena *arena, void *here);

/* Counts the consecutive parts with this tag, including the one after whose tag `in` stands. */
static size_t count_parts(struct nt_field_input in, uint64_t tag)
{
	struct nt_field_input part;
	uint64_t next;
	size_t count = 0;

	do {
		if (!nt_field_read_part(&in, &part))
			return 0;
		count++;
	} while (in.at < in.end && read_tag(&in, &next) && next == tag);
	return count;
}

static bool put_many(const struct nt_wire_field *field, struct nt_field_input *in, uint64_t tag,
		     struct nt_arena *arena, void *here)
{
	const bool is_text = field->kind == NT_WIRE_TEXTS;
	const size_t bytes = is_text ? sizeof(const char *) : field->shape->here_bytes;
	const size_t count = count_parts(*in, tag);
	char *array;

	if (!count || count > field->max || field->paired)
		return false;
	array = nt_arena_alloc(arena, count * bytes);
	if (!array)
		return false;
	for (size_t i = 0; i < count; i++) {
		char *to = array + i * bytes;
		struct nt_field_input part;

		if ((i && !read_tag(in, &tag)) || !nt_field_read_part(in, &part))
			return false;
		if (is_text ? !put_text(&part, arena, to)
			    : !put_message(field->shape, &part, arena, to))
			return false;
	}
	put_count(here, field, count);
	put_pointer((char *)here + field->here, array);
	return true;
}

static bool put_field(const struct nt_wire_step *step, uint64_t tag, struct nt_field_input *in,
		      struct nt_arena *arena, void *here)
{
	const struct nt_wire_field *field = step->field;
	char *to = (char *)here + field->here;
	struct nt_field_input part;
	uint64_t value;

	if (step->wire != (tag & NT_FIELD_TYPE_MASK))
		return false;
	if (step->wire == NT_FIELD_VARINT)
		return nt_field_read_varint(in, &value) && put_number(field, value, to);
	if (step->wire == NT_FIELD_EIGHT_BYTES)
		return nt_field_read_eight(in, &value) && put_number(field, value, to);
	if (field->kind == NT_WIRE_MANY || field->kind == NT_WIRE_TEXTS)
		return put_many(field, in, tag, arena, here);
	if (!nt_field_read_part(in, &part))
		return false;
	switch (field->kind) {
	case NT_WIRE_TEXT:
		return put_text(&part, arena, to);
	case NT_WIRE_DATA:
		return put_data(field, &part, arena, here);
	case NT_WIRE_ONE:
		return put_message(field->shape, &part, arena, to);
	case NT_WIRE_U32S:
	case NT_WIRE_U64S:
		return !step->is_fixed && put_numbers(field, &part, arena, here);
	case NT_WIRE_COLUMNS:
		return put_columns(field, &part, arena, here);
	default:
		return false;
	}
}

/* Initial values of a message: zeros, which it has already, and empty texts. */
static void put_nothing(const struct nt_wire_shape *shape, void *here)
{
	if (!shape->plan->has_texts)
		return;
	for (size_t i = 0; i < shape->fields; i++) {
		const struct nt_wire_field *field = &shape->field[i];

		if (field->kind == NT_WIRE_TEXT)
			put_pointer((char *)here + field->here, "");
		else if (field->kind == NT_WIRE_ONE)
			put_nothing(field->shape, (char *)here + field->here);
	}
}

/* True if both arrays of each pair are equally long, absent ones included. */
static bool is_paired(const struct nt_wire_shape *shape, const void *here)
{
	if (!shape->plan->has_pairs)
		return true;
	for (size_t i = 1; i < shape->fields; i++) {
		const struct nt_wire_field *field = &shape->field[i];
		const void *pointer;

		if (!field->paired)
			continue;
		memcpy(&pointer, (const char *)here + field->here, sizeof(pointer));
		if (!pointer && get_count(here, field))
			return false;
	}
	return true;
}

/* `here` is zeroed. Calls itself no deeper than the proto nests. */
static bool put_message(const struct nt_wire_shape *shape, struct nt_field_input *in,
			struct nt_arena *arena, void *here)
{
	uint64_t tag, value, before = 0;

	put_nothing(shape, here);
	while (in->at < in->end) {
		const struct nt_wire_step *step;

		if (!read_tag(in, &tag) || tag >> NT_FIELD_TYPE_BITS <= before)
			return false;
		before = tag >> NT_FIELD_TYPE_BITS;
		step = &shape->plan->step[before];
		if (!step->field)
			return false;
		/* Most are plain numbers. */
		if (step->wire == NT_FIELD_VARINT &&
		    (tag & NT_FIELD_TYPE_MASK) == NT_FIELD_VARINT) {
			if (!nt_field_read_varint(in, &value) ||
			    !put_number(step->field, value, (char *)here + step->field->here))
				return false;
		} else if (!put_field(step, tag, in, arena, here)) {
			return false;
		}
	}
	return is_paired(shape, here) && (!shape->is_sound || shape->is_sound(here));
}

/* Or only a signature follows, which readers of the message do not need. */
static bool is_end(struct nt_field_input in)
{
	struct nt_field_input part;
	uint64_t tag;

	if (in.at == in.end)
		return true;
	return read_tag(&in, &tag) && tag == (SIGNATURE << NT_FIELD_TYPE_BITS | NT_FIELD_PART) &&
	       nt_field_read_part(&in, &part) && in.at == in.end;
}

static bool put_body(struct nt_field_input *in, uint64_t tag, struct nt_arena *arena,
		     struct nt_message *message)
{
	struct nt_field_input part;

	for (int i = NT_BODY_NONE + 1; i < NT_WIRE_BODIES; i++) {
		const struct nt_wire_body *body = &nt_wire_bodies[i];

		if ((uint64_t)body->body_case != tag >> NT_FIELD_TYPE_BITS)
			continue;
		message->body = (enum nt_body)i;
		/* The last field before a signature, or an unknown form. */
		return (tag & NT_FIELD_TYPE_MASK) == NT_FIELD_PART &&
		       nt_field_read_part(in, &part) && is_end(*in) &&
		       put_message(body->shape, &part, arena, (char *)message + body->here);
	}
	return false;
}

bool nt_wire_direct(const void *data, size_t size, struct nt_arena *arena,
		    struct nt_message *message)
{
	struct nt_field_input in = {.at = data, .end = (const uint8_t *)data + size};
	uint64_t tag, before = 0;

	(void)pthread_once(&plans_once, make_plans);
	put_nothing(&nt_wire_envelope, message);
	while (in.at < in.end) {
		const struct nt_wire_step *step;

		if (!read_tag(&in, &tag) || tag >> NT_FIELD_TYPE_BITS <= before)
			return false;
		before = tag >> NT_FIELD_TYPE_BITS;
		step = &nt_wire_envelope.plan->step[before];
		if (!step->field)
			return put_body(&in, tag, arena, message);
		if (!put_field(step, tag, &in, arena, message))
			return false;
	}
	return true;
}
