/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The mapping between the structs of wire.h and the generated types: one row per field, used for
 * both encoding and decoding. Private to proto/wire*.c.
 */
#ifndef NT_PROTO_WIRE_MAP_H
#define NT_PROTO_WIRE_MAP_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

enum nt_wire_kind {
	NT_WIRE_U32,
	NT_WIRE_U64,
	NT_WIRE_I64,
	NT_WIRE_F64, /* finite */
	NT_WIRE_BOOL,
	NT_WIRE_ENUM, /* below max, else 0 */
	NT_WIRE_TEXT,
	NT_WIRE_DATA, /* at most max bytes */
	NT_WIRE_ONE, /* a message: a pointer in the generated struct, embedded in ours */
	NT_WIRE_MANY, /* an array of messages: at most max, as all below */
	NT_WIRE_U32S,
	NT_WIRE_U64S,
	NT_WIRE_TEXTS,
	NT_WIRE_COLUMNS, /* as NT_WIRE_MANY, encoded by column: wire_column.h */
};

struct nt_wire_shape;

enum {
	NT_WIRE_MAX_NUMBER = 80, /* of a field */
	NT_WIRE_LONG_WAY = 8, /* no wire type */
};

/* The field of a number; without a row: unknown. */
struct nt_wire_step {
	const struct nt_wire_field *field;
	uint8_t wire;
	bool is_fixed; /* not a varint */
};

/* Fields by number. Built from rows and descriptors at the first decoding: wire_direct.h. */
struct nt_wire_plan {
	struct nt_wire_step step[NT_WIRE_MAX_NUMBER + 1];
	bool has_texts; /* its own, or of a nested message */
	bool has_pairs;
};

/* Offsets in the generated struct of a columns message. */
struct nt_wire_column {
	uint16_t values, count;
};

struct nt_wire_columns {
	const ProtobufCMessageDescriptor *there;
	const struct nt_wire_column *column; /* one for each field of the row, in its order */
	struct nt_wire_plan *plan;
};

struct nt_wire_field {
	enum nt_wire_kind kind;
	uint16_t there, here; /* offsets in the generated and in our struct */
	uint16_t there_count, here_count;
	bool paired; /* shares the count of the row before: they must be equal */
	bool old; /* decoded, but no longer encoded: replaced by the next row */
	uint32_t max;
	const struct nt_wire_shape *shape;
	const struct nt_wire_columns *columns; /* of NT_WIRE_COLUMNS */
};

struct nt_wire_shape {
	const ProtobufCMessageDescriptor *there;
	size_t here_bytes;
	const struct nt_wire_field *field;
	size_t fields;
	bool (*is_sound)(const void *here); /* NULL: no check beyond the rows */
	struct nt_wire_plan *plan;
};

/* The bodies by enum nt_body, with their offset in struct nt_message; NT_BODY_NONE has none. */
struct nt_wire_body {
	const struct nt_wire_shape *shape;
	int body_case;
	size_t here;
};

extern const struct nt_wire_shape nt_wire_envelope;
/* In wire_map_incident.c. */
extern const struct nt_wire_shape nt_wire_stack_shape, nt_wire_profile_shape,
	nt_wire_incident_shape;
/* In wire_map_link.c. */
extern const struct nt_wire_shape nt_wire_rdma_shape, nt_wire_tcp_shape;
extern const struct nt_wire_body nt_wire_bodies[];
enum {
	NT_WIRE_BODIES = NT_BODY_HEARTBEAT + 1,
};

#endif
