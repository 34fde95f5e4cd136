/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A parsed JSON value. Those of an array or object follow it in the same array of values, each with
 * what it contains. All functions accept NULL, which is a value that is not given.
 */
#ifndef NT_COMMON_BASE_JSON_VALUE_H
#define NT_COMMON_BASE_JSON_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nt_json_kind {
	NT_JSON_NULL,
	NT_JSON_FALSE,
	NT_JSON_TRUE,
	NT_JSON_INTEGER,
	NT_JSON_REAL,
	NT_JSON_STRING,
	NT_JSON_ARRAY,
	NT_JSON_OBJECT,
};

struct nt_json_value {
	enum nt_json_kind kind;
	uint32_t span; /* values that it consists of, itself included */
	const char *key; /* of a member of an object; else NULL */
	union {
		int64_t integer;
		double real;
		const char *text; /* ends with NUL and contains none */
		size_t count; /* members or elements that were taken */
	};
};

/* The member of that name, the last if there are several; NULL: there is none, or no object. */
const struct nt_json_value *nt_json_value_get(const struct nt_json_value *object, const char *key);

static inline bool nt_json_value_is(const struct nt_json_value *value, enum nt_json_kind kind)
{
	return value && value->kind == kind;
}

/* NULL: it is no string. */
static inline const char *nt_json_value_text(const struct nt_json_value *value)
{
	return nt_json_value_is(value, NT_JSON_STRING) ? value->text : NULL;
}

/* 0: it is no integer. */
static inline int64_t nt_json_value_integer(const struct nt_json_value *value)
{
	return nt_json_value_is(value, NT_JSON_INTEGER) ? value->integer : 0;
}

static inline bool nt_json_value_is_number(const struct nt_json_value *value)
{
	return nt_json_value_is(value, NT_JSON_INTEGER) || nt_json_value_is(value, NT_JSON_REAL);
}

/* 0: it is no number. */
static inline double nt_json_value_number(const struct nt_json_value *value)
{
	return nt_json_value_is(value, NT_JSON_REAL) ? value->real
						     : (double)nt_json_value_integer(value);
}

/* Elements of an array; 0: it is none. */
static inline size_t nt_json_value_size(const struct nt_json_value *value)
{
	return nt_json_value_is(value, NT_JSON_ARRAY) ? value->count : 0;
}

/* The elements of an array, or the members of an object, in their order. */
#define nt_json_value_each(parent, child)                                                          \
	for (const struct nt_json_value *child = (parent) + 1; child < (parent) + (parent)->span;  \
	     child += child->span)

#endif
