/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "proto/wire_column.h"

#include <errno.h>
#include <string.h>

static bool is_short(const struct nt_wire_field *cell)
{
	return cell->kind == NT_WIRE_U32 || cell->kind == NT_WIRE_ENUM;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static size_t length_of(const void *there, const struct nt_wire_column *column)
{
	size_t n;

	memcpy(&n, (const char *)there + column->count, sizeof(n));
	return n;
}

static int take_cell(const struct nt_wire_field *cell, uint64_t value, void *row)
{
	void *to = (char *)row + cell->here;

	if (!is_short(cell)) {
		*(uint64_t *)to = value;
		return 0;
	}
	if (value > UINT32_MAX)
		return -EBADMSG;
	*(uint32_t *)to = cell->kind == NT_WIRE_ENUM && value >= cell->max ? 0 : (uint32_t)value;
	return 0;
}

int nt_wire_columns_take(const struct nt_wire_field *field, const void *there,
			 struct nt_arena *arena, void **ret_rows, size_t *ret_n)
{
	const struct nt_wire_shape *shape = field->shape;
	size_t n = 0;
	char *rows;
	int r;

	for (size_t i = 0; i < shape->fields; i++) {
		size_t length = length_of(there, &field->columns->column[i]);

		if (length > field->max || (length && n && length != n))
			return -EBADMSG;
		n = length ? length : n;
	}
	rows = n ? nt_arena_alloc(arena, n * shape->here_bytes) : NULL;
	if (n && !rows)
		return -ENOMEM;
	for (size_t i = 0; i < shape->fields; i++) {
		const struct nt_wire_column *column = &field->columns->column[i];
		const int64_t *differences;
		uint64_t value = 0;

		if (!length_of(there, column))
			continue;
		memcpy(&differences, (const char *)there + column->values, sizeof(differences));
		for (size_t j = 0; j < n; j++) {
			value += (uint64_t)differences[j];
			r = take_cell(&shape->field[i], value, rows + j * shape->here_bytes);
			if (r < 0)
				return r;
		}
	}
	*ret_rows = rows;
	*ret_n = n;
	return 0;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static uint64_t give_cell(const struct nt_wire_field *cell, const void *row)
{
	const void *from = (const char *)row + cell->here;
	uint32_t number;
	uint64_t value;

	if (!is_short(cell)) {
		memcpy(&value, from, sizeof(value));
		return value;
	}
	memcpy(&number, from, sizeof(number));
	return cell->kind == NT_WIRE_ENUM && number >= cell->max ? 0 : number;
}

int nt_wire_columns_give(const struct nt_wire_field *field, const void *rows, size_t n,
			 struct nt_arena *arena, ProtobufCMessage **ret_there)
{
	const struct nt_wire_shape *shape = field->shape;
	ProtobufCMessage *there;

	*ret_there = NULL;
	if (!n)
		return 0;
	if (n > field->max)
		return -EMSGSIZE;
	there = nt_arena_alloc(arena, field->columns->there->sizeof_message);
	if (!there)
		return -ENOMEM;
	protobuf_c_message_init(field->columns->there, there);
	for (size_t i = 0; i < shape->fields; i++) {
		const struct nt_wire_column *column = &field->columns->column[i];
		int64_t **values = (void *)((char *)there + column->values);
		int64_t *differences = nt_arena_alloc(arena, n * sizeof(*differences));
		uint64_t before = 0;
		/* Even without values, the first column has to carry the number of rows. */
		bool present = i == 0;

		if (!differences)
			return -ENOMEM;
		for (size_t j = 0; j < n; j++) {
			const void *row = (const char *)rows + j * shape->here_bytes;
			const uint64_t value = give_cell(&shape->field[i], row);

			differences[j] = (int64_t)(value - before);
			before = value;
			present |= value != 0;
		}
		if (!present)
			continue;
		memcpy((char *)there + column->count, &n, sizeof(n));
		*values = differences;
	}
	*ret_there = there;
	return 0;
}
