/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reader of protobuf's wire format, in place: tags, numbers, and length-delimited parts. It
 * allocates nothing and has no schema, which is in proto/wire_direct.c and agent/identity/device.c.
 * All functions return false on malformed input; its position is then unspecified, but before the
 * end.
 */
#ifndef NT_PROTO_FIELD_H
#define NT_PROTO_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/bytes.h"

enum {
	/* Wire types. */
	NT_FIELD_VARINT = 0,
	NT_FIELD_EIGHT_BYTES = 1,
	NT_FIELD_PART = 2, /* text, bytes, a message, packed numbers */
	NT_FIELD_FOUR_BYTES = 5,

	NT_FIELD_TYPE_BITS = 3, /* of a tag; the field's number is above them */
	NT_FIELD_TYPE_MASK = 7,
	NT_FIELD_MAX_LENGTH_BYTES = 5, /* of a part's length, as in protobuf-c */
};

/* Bytes still to be read: borrowed. */
struct nt_field_input {
	const uint8_t *at, *end;
};

static inline size_t nt_field_left(const struct nt_field_input *in)
{
	return (size_t)(in->end - in->at);
}

static inline bool nt_field_read_varint(struct nt_field_input *in, uint64_t *ret_value)
{
	return nt_varint_get(&in->at, in->end, ret_value);
}

static inline bool nt_field_skip(struct nt_field_input *in, size_t bytes)
{
	if (nt_field_left(in) < bytes)
		return false;
	in->at += bytes;
	return true;
}

static inline bool nt_field_read_eight(struct nt_field_input *in, uint64_t *ret_value)
{
	const uint8_t *from = in->at;

	if (!nt_field_skip(in, 8))
		return false;
	*ret_value = nt_bytes_get_u64(from);
	return true;
}

/* A length-delimited part. */
static inline bool nt_field_read_part(struct nt_field_input *in, struct nt_field_input *ret_part)
{
	const uint8_t *before = in->at;
	uint64_t length;

	if (!nt_field_read_varint(in, &length) || in->at - before > NT_FIELD_MAX_LENGTH_BYTES ||
	    length > nt_field_left(in))
		return false;
	*ret_part = (struct nt_field_input){.at = in->at, .end = in->at + length};
	in->at += length;
	return true;
}

#endif
