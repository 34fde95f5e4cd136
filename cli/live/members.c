/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/members.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/buf.h"
#include "proto/json.h"

enum {
	MAX_LINES = 2000,
	MAX_LEVEL = 6, /* of members in members */
};

/* The last line states that there are more. */
static int __attribute__((format(printf, 3, 4)))
add_line(struct nt_member_lines *lines, int level, const char *fmt, ...)
{
	nt_autofree char *text = NULL, *line = NULL;
	va_list ap;
	int r;

	if (lines->count == MAX_LINES)
		return 0;
	if (nt_array_room((void **)&lines->text, &lines->cap, lines->count, sizeof(char *)) < 0)
		return -ENOMEM;
	va_start(ap, fmt);
	r = lines->count == MAX_LINES - 1 ? asprintf(&text, "the rest is left out")
					  : vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0) {
		text = NULL;
		return -ENOMEM;
	}
	if (asprintf(&line, "%*s%s", *text ? 2 * level : 0, "", text) < 0) {
		line = NULL;
		return -ENOMEM;
	}
	lines->text[lines->count++] = nt_take(line);
	return 0;
}

/* Of a scalar. "-" is null. */
static int append_scalar(struct nt_buf *text, const json_t *value)
{
	if (json_is_string(value))
		return nt_buf_printf(text, "%s", json_string_value(value));
	if (json_is_integer(value))
		return nt_buf_printf(text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	if (json_is_real(value))
		return nt_buf_printf(text, "%.6g", json_real_value(value));
	return nt_buf_printf(text, "%s",
			     json_is_true(value)    ? "yes"
			     : json_is_false(value) ? "no"
						    : "-");
}

static bool is_scalar(const json_t *value)
{
	return !json_is_array(value) && !json_is_object(value);
}

static bool is_list_of_scalars(const json_t *value)
{
	for (size_t i = 0; i < json_array_size(value); i++)
		if (!is_scalar(json_array_get(value, i)))
			return false;
	return json_is_array(value);
}

/* "name  value"; of a list of scalars "name  a, b, c". */
static int add_simple(struct nt_member_lines *lines, int level, const char *name,
		      const json_t *value)
{
	nt_autobuf struct nt_buf text = {0};
	int r = is_scalar(value) ? append_scalar(&text, value) : nt_buf_printf(&text, "%s", "");

	for (size_t i = 0; i < json_array_size(value) && r == 0; i++) {
		r = nt_buf_printf(&text, "%s", i ? ", " : "");
		r = r ? r : append_scalar(&text, json_array_get(value, i));
	}
	if (r < 0)
		return r;
	return add_line(lines, level, "%-*s  %s", 20 - 2 * level, name,
			text.len ? (const char *)text.data : "-");
}

/*
 * The members of an object below its name, which is NULL for the item itself; of an array of objects,
 * a blank line between them. At most MAX_LEVEL deep. NOLINTNEXTLINE(misc-no-recursion)
 */
static int add_value(struct nt_member_lines *lines, int level, const char *name,
		     const json_t *value)
{
	const int inner = name ? level + 1 : level;
	const char *member_name;
	json_t *member;
	int r = 0;
	size_t i;

	if (json_is_null(value))
		return 0;
	if (name && (is_scalar(value) || is_list_of_scalars(value)))
		return add_simple(lines, level, name, value);
	if (level >= MAX_LEVEL)
		return add_line(lines, level, "the rest is left out");
	r = name ? add_line(lines, level, "%s", name) : 0;
	json_array_foreach(value, i, member)
	{
		if (i && r == 0)
			r = add_line(lines, inner, "%s", "");
		r = r ? r : add_value(lines, inner, NULL, member);
	}
	json_object_foreach((json_t *)(uintptr_t)value, member_name, member) r =
		r ? r : add_value(lines, inner, member_name, member);
	return r;
}

int nt_member_lines_add(struct nt_member_lines *lines, const json_t *object)
{
	return add_value(lines, 0, NULL, object);
}

int nt_member_lines_add_text(struct nt_member_lines *lines, const char *text)
{
	return add_line(lines, 0, "%s", text);
}

void nt_member_lines_release(struct nt_member_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->text[i]);
	free(lines->text);
	*lines = (struct nt_member_lines){0};
}
