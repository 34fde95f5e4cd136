/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows by column, without the message around them. */
#include "proto/wire_column.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proto/wire.h"

/* The row of a window's samples in the map. */
static const struct nt_wire_field *samples_field(void)
{
	const struct nt_wire_shape *shape = nt_wire_bodies[NT_BODY_WINDOW].shape;

	for (size_t i = 0; i < shape->fields; i++)
		if (shape->field[i].kind == NT_WIRE_COLUMNS)
			return &shape->field[i];
	fail_msg("no rows by column");
	return NULL;
}

static void rows_become_columns_and_rows_again(void **state)
{
	const struct nt_sample samples[] = {{.number = 7, .bytes = 9}, {.number = 8}};
	const struct nt_wire_field *field = samples_field();
	nt_autoarena struct nt_arena arena = {0};
	ProtobufCMessage *there = NULL;
	const struct nt_sample *again;
	void *rows = NULL;
	size_t n = 0;

	(void)state;
	assert_int_equal(nt_wire_columns_give(field, samples, 2, &arena, &there), 0);
	assert_non_null(there);
	assert_int_equal(nt_wire_columns_take(field, there, &arena, &rows, &n), 0);
	assert_int_equal(n, 2);
	again = rows;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(again[i].number, samples[i].number);
		assert_int_equal(again[i].bytes, samples[i].bytes);
	}
}

static void no_rows_are_no_columns(void **state)
{
	const struct nt_wire_field *field = samples_field();
	nt_autoarena struct nt_arena arena = {0};
	ProtobufCMessage *there = (ProtobufCMessage *)&arena, *empty;
	void *rows = &arena;
	size_t n = 42;

	(void)state;
	assert_int_equal(nt_wire_columns_give(field, NULL, 0, &arena, &there), 0);
	assert_null(there);
	empty = nt_arena_alloc(&arena, field->columns->there->sizeof_message);
	assert_non_null(empty);
	protobuf_c_message_init(field->columns->there, empty);
	assert_int_equal(nt_wire_columns_take(field, empty, &arena, &rows, &n), 0);
	assert_null(rows);
	assert_int_equal(n, 0);
}

static void rows_over_their_cap_are_not_told(void **state)
{
	const struct nt_wire_field *field = samples_field();
	struct nt_sample *samples = calloc((size_t)field->max + 1, sizeof(*samples));
	nt_autoarena struct nt_arena arena = {0};
	ProtobufCMessage *there = NULL;

	(void)state;
	assert_non_null(samples);
	assert_int_equal(nt_wire_columns_give(field, samples, field->max + 1, &arena, &there),
			 -EMSGSIZE);
	assert_null(there);
	assert_int_equal(nt_wire_columns_give(field, samples, field->max, &arena, &there), 0);
	assert_non_null(there);
	free(samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_become_columns_and_rows_again),
		cmocka_unit_test(no_rows_are_no_columns),
		cmocka_unit_test(rows_over_their_cap_are_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
