/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The unacknowledged records of a writer, in the order of their publication. It has no lock of its
 * own: the writer's protects it.
 */
#ifndef NT_COMMON_BUS_KAFKA_OUTBOX_H
#define NT_COMMON_BUS_KAFKA_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bus/bus.h"

enum nt_kafka_message_state {
	NT_KAFKA_WAITING, /* not passed to the library */
	NT_KAFKA_SENT, /* passed to the library, which refers to its bytes */
	NT_KAFKA_UNDELIVERED, /* to be given back */
};

struct nt_kafka_message {
	struct nt_kafka_message *next, *previous;
	struct nt_bus_record record; /* key and value lie in bytes */
	enum nt_kafka_message_state state;
	enum nt_bus_cause cause; /* if undelivered */
	uint8_t bytes[];
};

struct nt_kafka_outbox {
	struct nt_kafka_message *oldest, *newest;
	size_t messages, waiting, undelivered;
	uint64_t bytes; /* including overhead */
	uint64_t max_bytes;
	size_t max_messages;
};

/* A copy of the record. NULL: no memory. */
struct nt_kafka_message *nt_kafka_message_new(const struct nt_bus_record *record);

/* Appends the message and takes ownership; false: no room, and the caller keeps it. */
bool nt_kafka_outbox_add(struct nt_kafka_outbox *outbox, struct nt_kafka_message *message);
/* Removes it; the caller owns it then. */
void nt_kafka_outbox_remove(struct nt_kafka_outbox *outbox, struct nt_kafka_message *message);
void nt_kafka_outbox_mark(struct nt_kafka_outbox *outbox, struct nt_kafka_message *message,
			  enum nt_kafka_message_state state);
/* Removes the oldest undelivered message; NULL: there is none. */
struct nt_kafka_message *nt_kafka_outbox_pick(struct nt_kafka_outbox *outbox);

#endif
