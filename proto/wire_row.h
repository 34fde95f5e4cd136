/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a row of the map is written; only for proto/wire_map.c. */
#ifndef NT_PROTO_WIRE_ROW_H
#define NT_PROTO_WIRE_ROW_H

#include "neutracer.pb-c.h"

/*
 * The rows check the types of both sides at compile time: a field changed on one side only does not
 * build.
 */
#define TYPE_OF(type, member) __typeof__(((type *)0)->member)
#define OFFSET(type, member, want)                                                                 \
	(offsetof(type, member) +                                                                  \
	 0 * sizeof(struct {                                                                       \
		 _Static_assert(__builtin_types_compatible_p(TYPE_OF(type, member), want),         \
				#type "." #member " is no " #want);                                \
		 int unused;                                                                       \
	 }))
#define THERE(type) Neutracer__V1__##type
#define COUNTS(type, member, nt, count)                                                            \
	.there_count = OFFSET(THERE(type), n_##member, size_t),                                    \
	.here_count = OFFSET(struct nt, count, size_t)

#define PLAIN(KIND, type, nt, member, there_type, here_type)                                       \
	{                                                                                          \
		.kind = NT_WIRE_##KIND, .there = OFFSET(THERE(type), member, there_type),          \
		.here = OFFSET(struct nt, member, here_type)                                       \
	}
#define U32(type, nt, member)  PLAIN(U32, type, nt, member, uint32_t, uint32_t)
#define U64(type, nt, member)  PLAIN(U64, type, nt, member, uint64_t, uint64_t)
#define I64(type, nt, member)  PLAIN(I64, type, nt, member, int64_t, int64_t)
#define F64(type, nt, member)  PLAIN(F64, type, nt, member, double, double)
#define BOOL(type, nt, member) PLAIN(BOOL, type, nt, member, protobuf_c_boolean, bool)
#define TEXT(type, nt, member) PLAIN(TEXT, type, nt, member, char *, const char *)
/* The generator appends an underscore to reserved words of other languages. */
#define TEXT_(type, nt, member)                                                                    \
	{                                                                                          \
		.kind = NT_WIRE_TEXT, .there = OFFSET(THERE(type), member##_, char *),             \
		.here = OFFSET(struct nt, member, const char *)                                    \
	}
#define ENUM(type, nt, member, there_type, here_type, end)                                         \
	{                                                                                          \
		.kind = NT_WIRE_ENUM, .there = OFFSET(THERE(type), member, THERE(there_type)),     \
		.here = OFFSET(struct nt, member, enum here_type), .max = (end)                    \
	}
#define DATA(type, nt, member, count, limit)                                                       \
	{                                                                                          \
		.kind = NT_WIRE_DATA, .there = OFFSET(THERE(type), member, ProtobufCBinaryData),   \
		.here = OFFSET(struct nt, member, const uint8_t *),                                \
		.here_count = OFFSET(struct nt, count, size_t), .max = (limit)                     \
	}
#define ONE(type, nt, member, sub_type, sub_nt)                                                    \
	{                                                                                          \
		.kind = NT_WIRE_ONE, .there = OFFSET(THERE(type), member, THERE(sub_type) *),      \
		.here = OFFSET(struct nt, member, struct sub_nt), .shape = &shape_##sub_nt         \
	}
#define MANY(type, nt, member, count, limit, sub_type, sub_nt)                                     \
	{                                                                                          \
		.kind = NT_WIRE_MANY, .there = OFFSET(THERE(type), member, THERE(sub_type) **),    \
		.here = OFFSET(struct nt, member, struct sub_nt *),                                \
		COUNTS(type, member, nt, count), .max = (limit), .shape = &shape_##sub_nt          \
	}
/* The older form, from before the columns. */
#define MANY_OLD(type, nt, member, count, limit, sub_type, sub_nt)                                 \
	{                                                                                          \
		.kind = NT_WIRE_MANY, .there = OFFSET(THERE(type), member, THERE(sub_type) **),    \
		.here = OFFSET(struct nt, member, struct sub_nt *),                                \
		COUNTS(type, member, nt, count), .max = (limit), .shape = &shape_##sub_nt,         \
		.old = true                                                                        \
	}
#define COLUMNS(type, nt, columns_member, member, count, limit, columns_type, sub_nt)              \
	{                                                                                          \
		.kind = NT_WIRE_COLUMNS,                                                           \
		.there = OFFSET(THERE(type), columns_member, THERE(columns_type) *),               \
		.here = OFFSET(struct nt, member, struct sub_nt *),                                \
		.here_count = OFFSET(struct nt, count, size_t), .max = (limit),                    \
		.shape = &shape_##sub_nt, .columns = &columns_##sub_nt                             \
	}
#define COLUMN(type, member)                                                                       \
	{                                                                                          \
		OFFSET(THERE(type), member, int64_t *), OFFSET(THERE(type), n_##member, size_t)    \
	}
#define COLUMNS_OF(nt, descriptor_)                                                                \
	_Static_assert(sizeof(column_##nt) / sizeof(column_##nt[0]) ==                             \
			       sizeof(fields_##nt) / sizeof(fields_##nt[0]),                       \
		       "a column for each field of " #nt);                                         \
	static struct nt_wire_plan columns_plan_##nt;                                              \
	static const struct nt_wire_columns columns_##nt = {                                       \
		.there = &neutracer__v1__##descriptor_##__descriptor,                              \
		.column = column_##nt,                                                             \
		.plan = &columns_plan_##nt,                                                        \
	}
#define ARRAY(KIND, type, nt, member, count, limit, there_type, here_type, is_paired)              \
	{                                                                                          \
		.kind = NT_WIRE_##KIND, .there = OFFSET(THERE(type), member, there_type),          \
		.here = OFFSET(struct nt, member, here_type), COUNTS(type, member, nt, count),     \
		.max = (limit), .paired = (is_paired)                                              \
	}
#define U32S(type, nt, member, count, limit)                                                       \
	ARRAY(U32S, type, nt, member, count, limit, uint32_t *, uint32_t *, false)
#define U32S_PAIRED(type, nt, member, count, limit)                                                \
	ARRAY(U32S, type, nt, member, count, limit, uint32_t *, uint32_t *, true)
#define U64S(type, nt, member, count, limit)                                                       \
	ARRAY(U64S, type, nt, member, count, limit, uint64_t *, uint64_t *, false)
#define U64S_PAIRED(type, nt, member, count, limit)                                                \
	ARRAY(U64S, type, nt, member, count, limit, uint64_t *, uint64_t *, true)
#define TEXTS(type, nt, member, count, limit)                                                      \
	ARRAY(TEXTS, type, nt, member, count, limit, char **, const char **, false)

#define SHAPE(nt, descriptor_, is_sound_)                                                          \
	static struct nt_wire_plan plan_##nt;                                                      \
	static const struct nt_wire_shape shape_##nt = {                                           \
		.there = &neutracer__v1__##descriptor_##__descriptor,                              \
		.here_bytes = sizeof(struct nt),                                                   \
		.field = fields_##nt,                                                              \
		.fields = sizeof(fields_##nt) / sizeof(fields_##nt[0]),                            \
		.is_sound = (is_sound_),                                                           \
		.plan = &plan_##nt,                                                                \
	}

/* The same, declared in wire_map.h: another file has rows that refer to it. */
#define SHAPE_SHARED(nt, descriptor_, name_)                                                       \
	static struct nt_wire_plan plan_##nt;                                                      \
	const struct nt_wire_shape name_ = {                                                       \
		.there = &neutracer__v1__##descriptor_##__descriptor,                              \
		.here_bytes = sizeof(struct nt),                                                   \
		.field = fields_##nt,                                                              \
		.fields = sizeof(fields_##nt) / sizeof(fields_##nt[0]),                            \
		.plan = &plan_##nt,                                                                \
	}
#define shape_nt_wire_stack    nt_wire_stack_shape
#define shape_nt_wire_profile  nt_wire_profile_shape
#define shape_nt_wire_incident nt_wire_incident_shape
#define shape_nt_rdma_window   nt_wire_rdma_shape
#define shape_nt_tcp_window    nt_wire_tcp_shape

#endif
