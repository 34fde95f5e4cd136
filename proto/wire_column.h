/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Delta-encoded columns of rows, a fifth of the size: see SignatureColumns in neutracer.proto.
 * Private to proto/wire*.c.
 */
#ifndef NT_PROTO_WIRE_COLUMN_H
#define NT_PROTO_WIRE_COLUMN_H

#include "proto/arena.h"
#include "proto/wire_map.h"

/*
 * Decodes a columns message to an array of the row's shape in the arena. -EBADMSG if columns differ
 * in length, exceed the row's cap, or hold a number out of their field's range.
 */
NT_MUST_CHECK int nt_wire_columns_take(const struct nt_wire_field *field, const void *there,
				       struct nt_arena *arena, void **ret_rows, size_t *ret_n);

/* *ret_there: NULL without rows. Lives as long as the arena. */
NT_MUST_CHECK int nt_wire_columns_give(const struct nt_wire_field *field, const void *rows,
				       size_t n, struct nt_arena *arena,
				       ProtobufCMessage **ret_there);

#endif
