/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Messages from bytes to our structs in one go, without the generated structs in between: what a
 * busy consumer spends most of its time with. It knows messages in the form in which encoders write
 * them, fields in the order of their numbers and each once, and lets all else go the long way through
 * protobuf-c, which decides what is a message. What it does take means the same there. Private to
 * proto/wire*.c.
 */
#ifndef NT_PROTO_WIRE_DIRECT_H
#define NT_PROTO_WIRE_DIRECT_H

#include <stddef.h>

#include "proto/arena.h"
#include "proto/wire.h"

/*
 * True where the message is filled; it must be zeroed before. False where it has to go the long way:
 * message and arena then hold nothing of use.
 */
bool nt_wire_direct(const void *data, size_t size, struct nt_arena *arena,
		    struct nt_message *message);

#endif
