/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages decoded by both decoders: the direct one, and protobuf-c. */
#ifndef NT_TESTS_UNIT_PROTO_WIRE_WAYS_H
#define NT_TESTS_UNIT_PROTO_WIRE_WAYS_H

#include "proto/wire_direct.h"

#include "tests/unit/proto/wire_caps.h"

enum {
	/* Numbers of proto/neutracer.proto. */
	ENVELOPE_HEARTBEAT = 22,
	ENVELOPE_BOOT = 2,
	ENVELOPE_SEQ = 3,
	HEARTBEAT_RANKS = 1,
	WINDOW_END = 3,
	WINDOW_STEPS = 4,
	WINDOW_ENDED = 26,
	COMM_ID = 1,
	SAMPLE_COLUMNS_COMM = 1,
	NODE_NAME = 1,
	DETAIL_CALL = 2,
	DETAIL_RESULT = 9,
};

/* A field unknown to all versions: it forces the protobuf-c decoder, with the same result. */
static const uint8_t unknown_field[] = {0xb8, 0x02, 0x00};

static inline bool goes_directly(const struct nt_buf *bytes)
{
	nt_autoarena struct nt_arena arena = {0};
	struct nt_message message = {0};

	return nt_wire_direct(bytes->data, bytes->len, &arena, &message);
}

static inline void add(struct nt_buf *buf, const void *data, size_t size)
{
	assert_int_equal(nt_buf_append(buf, data, size), 0);
}

static inline void encode(const struct nt_buf *bytes, struct nt_buf *ret_again)
{
	nt_auto(nt_message) struct nt_message *message = NULL;

	assert_int_equal(nt_message_decode(bytes->data, bytes->len, &message), 0);
	if (message->body != NT_BODY_NONE)
		assert_int_equal(nt_message_encode(message, ret_again), 0);
}

/* Messages accepted by the direct decoder are also accepted by protobuf-c, with the same result. */
static inline bool check_both(const struct nt_buf *bytes)
{
	nt_autobuf struct nt_buf with = {0}, direct = {0}, longer = {0};

	if (!goes_directly(bytes))
		return false;
	add(&with, bytes->data, bytes->len);
	add(&with, unknown_field, sizeof(unknown_field));
	assert_false(goes_directly(&with));
	encode(bytes, &direct);
	encode(&with, &longer);
	assert_int_equal(direct.len, longer.len);
	if (direct.len)
		assert_memory_equal(direct.data, longer.data, direct.len);
	return true;
}

#endif
