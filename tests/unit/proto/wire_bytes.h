/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Encoded messages: the golden ones, and those that a test encodes field by field. */
#ifndef NT_TESTS_UNIT_PROTO_WIRE_BYTES_H
#define NT_TESTS_UNIT_PROTO_WIRE_BYTES_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/system/file.h"
#include "proto/wire.h"
#include "tests/golden/wire/messages.h"

struct golden {
	const char *name;
	const struct nt_message *message;
	bool superseded; /* a later one has the fields that were added since */
};

/* After golden_fill(). */
static const struct golden goldens[] = {
	{"window_columns", &golden_window, true},
	{"window_columns-2", &golden_window_2, true},
	{"window_columns-3", &golden_window_3, true},
	{"window_columns-4", &golden_window_4, true},
	{"window_columns-5", &golden_window_5, true},
	{"window_columns-6", &golden_window_6, true},
	{"window_columns-7", &golden_window_7, true},
	{"window_columns-8", &golden_window_8, true},
	{"window_columns-9", &golden_window_9, true},
	{"window_columns-10", &golden_window_10, true},
	{"window_columns-11", &golden_window_11, true},
	{"window_columns-12", &golden_window_12, true},
	{"window_heap", &golden_window_heap, true},
	{"window_gemms", &golden_window_gemms, true},
	{"window_columns-13", &golden_window_13, true},
	{"window_columns-14", &golden_window_14, true},
	{"window_columns-15", &golden_window_15, true},
	{"windows-16", &golden_window_16, true},
	{"windows-stacks", &golden_window_stacks, true},
	{"windows-17", &golden_window_17, true},
	{"windows-rdma", &golden_window_rdma, true},
	{"windows-18", &golden_window_18, true},
	{"windows-system", &golden_window_system, true},
	{"windows-19", &golden_window_19, true},
	{"windows-tcp", &golden_window_tcp, true},
	{"windows-20", &golden_window_20},
	{"node", &golden_node, true},
	{"node-2", &golden_node_2, true},
	{"node-3", &golden_node_3, true},
	{"node-4", &golden_node_4},
	{"detail", &golden_detail, true},
	{"detail-2", &golden_detail_2, true},
	{"detail-3", &golden_detail_3},
	{"incident", &golden_incident, true},
	{"incident-2", &golden_incident_2, true},
	{"incident-3", &golden_incident_3, true},
	{"incident-4", &golden_incident_4, true},
	{"incident-5", &golden_incident_5, true},
	{"incident_stacks", &golden_incident_stacks, true},
	{"incident_handling", &golden_incident_handling},
	{"state", &golden_state, true},
	{"state-2", &golden_state_2},
	{"control", &golden_control, true},
	{"control-2", &golden_control_2, true},
	{"control-3", &golden_control_3},
	{"heartbeat", &golden_heartbeat},
};

enum {
	GOLDENS = sizeof(goldens) / sizeof(goldens[0]),
};

static inline void read_golden(const char *name, struct nt_buf *buf)
{
	char path[128];

	/* The folder is the beginning of the name: window/window_columns-2.bin. */
	(void)snprintf(path, sizeof(path), "tests/golden/wire/%.*s/%s.bin",
		       (int)strcspn(name, "_-"), name, name);
	assert_int_equal(nt_file_read(path, NT_WIRE_MAX_BYTES, buf), 0);
}

static inline struct nt_message *decode(const struct nt_buf *buf)
{
	struct nt_message *message = NULL;

	assert_int_equal(nt_message_decode(buf->data, buf->len, &message), 0);
	assert_non_null(message);
	return message;
}

static inline void assert_refused(const struct nt_buf *buf)
{
	struct nt_message *message = NULL;

	assert_int_equal(nt_message_decode(buf->data, buf->len, &message), -EBADMSG);
	assert_null(message);
}

static inline struct nt_message *decode_again(const struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {0};

	assert_int_equal(nt_message_encode(message, &buf), 0);
	return decode(&buf);
}

/* A manual protobuf encoder, for bytes that the real one would not write. */
static inline void put_varint(struct nt_buf *buf, uint64_t n)
{
	do {
		uint8_t byte = (uint8_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));

		assert_int_equal(nt_buf_append(buf, &byte, 1), 0);
		n >>= 7;
	} while (n);
}

static inline void put_number(struct nt_buf *buf, uint32_t field, uint64_t n)
{
	put_varint(buf, field << 3);
	put_varint(buf, n);
}

static inline void put_fixed64(struct nt_buf *buf, uint32_t field, const void *bytes)
{
	put_varint(buf, field << 3 | 1);
	assert_int_equal(nt_buf_append(buf, bytes, 8), 0);
}

static inline void put_bytes(struct nt_buf *buf, uint32_t field, const void *data, size_t len)
{
	put_varint(buf, field << 3 | 2);
	put_varint(buf, len);
	assert_int_equal(nt_buf_append(buf, data, len), 0);
}

static inline void wrap(struct nt_buf *buf, uint32_t field)
{
	struct nt_buf outer = {0};

	put_bytes(&outer, field, buf->data, buf->len);
	nt_buf_release(buf);
	*buf = outer;
}

enum {
	/* Numbers of proto/neutracer.proto. */
	ENVELOPE_AGENT = 1,
	ENVELOPE_WINDOW = 16,
	ENVELOPE_NODE = 17,
	ENVELOPE_DETAIL = 18,
	ENVELOPE_INCIDENT = 19,
	ENVELOPE_STATE = 20,
	WINDOW_RANK = 1,
	WINDOW_OWN_TIER = 7,
	WINDOW_COMM = 21,
	WINDOW_SAMPLE = 22,
	WINDOW_SAMPLE_COLUMNS = 35,
	WINDOW_TRANSFER_COLUMNS = 36,
	TRANSFER_COLUMNS_CALLS = 4,
	SAMPLE_COLUMNS_NUMBER = 2,
	SAMPLE_COLUMNS_OP = 3,
	COMM_RECENT_COLUMNS = 14,
	SIGNATURE_COLUMNS_NUMBER = 1,
	SIGNATURE_COLUMNS_TYPE = 4,
	WINDOW_PEER = 25,
	WINDOW_STEP_OWN = 30,
	WINDOW_STEP_DURATION = 31,
	COMM_LIBRARY = 4,
	COMM_OP = 7,
	COMM_RECENT = 12,
	OP_OP = 1,
	OP_DURATION = 6,
	PEER_DURATION = 6,
	SKETCH_BUCKET = 1,
	SKETCH_COUNT = 2,
	NODE_METRIC = 2,
	NODE_JOB = 3,
	NODE_LIMIT = 4,
	METRIC_VALUE = 2,
	DETAIL_WORD = 10,
	DETAIL_STACK = 11,
	DETAIL_RECORD = 15,
	DETAIL_COUNT = 16,
	DETAIL_CALL_WORD = 13,
	INCIDENT_CULPRIT = 9,
	INCIDENT_SLOWDOWN = 13,
	INCIDENT_EVIDENCE = 18,
	INCIDENT_DELIVERY = 20,
	CULPRIT_PEERS = 8,
	CULPRIT_RANKS = 10,
	STATE_DATA = 4,
	STATE_POSITION = 5,
};

#endif
