/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The direct decoder: fills our structs from bytes without the generated structs in between, since
 * decoding dominates the cost of a busy consumer. It takes messages as encoders write them: fields
 * in the order of their numbers, each once. All others are left to protobuf-c, which decides what
 * is valid. Both decoders give the same results. Private to proto/wire*.c.
 */
#ifndef NT_PROTO_WIRE_DIRECT_H
#define NT_PROTO_WIRE_DIRECT_H

#include <stddef.h>

#include "proto/arena.h"
#include "proto/wire.h"

/*
 * True if the message is filled; it must be zeroed before. False: use protobuf-c; the contents of
 * message and arena are then undefined.
 */
bool nt_wire_direct(const void *data, size_t size, struct nt_arena *arena,
		    struct nt_message *message);

#endif
