/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows as columns of differences, which take a fifth of the bytes: see SignatureColumns in
 * neutracer.proto. Private to proto/wire*.c.
 */
#ifndef NT_PROTO_WIRE_COLUMN_H
#define NT_PROTO_WIRE_COLUMN_H

#include "proto/arena.h"
#include "proto/wire_map.h"

/*
 * The rows of a columns message, as an array of the row's shape in the arena. -EBADMSG where columns
 * differ in length, are over the row's cap, or hold a number that its field cannot.
 */
NT_MUST_CHECK int nt_wire_columns_take(const struct nt_wire_field *field, const void *there,
				       struct nt_arena *arena, void **ret_rows, size_t *ret_n);

/* *ret_there: NULL where there are no rows. Lives as long as the arena. */
NT_MUST_CHECK int nt_wire_columns_give(const struct nt_wire_field *field, const void *rows,
				       size_t n, struct nt_arena *arena,
				       ProtobufCMessage **ret_there);

#endif
