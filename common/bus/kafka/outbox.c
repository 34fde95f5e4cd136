/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/outbox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	OVERHEAD_BYTES = 256, /* of one message, here and in the library, about */
};

static uint64_t size_of(const struct nt_kafka_message *message)
{
	return message->record.key_len + message->record.value_len + OVERHEAD_BYTES;
}

struct nt_kafka_message *nt_kafka_message_new(const struct nt_bus_record *record)
{
	struct nt_kafka_message *message =
		calloc(1, sizeof(*message) + record->key_len + record->value_len);

	if (!message)
		return NULL;
	message->record = *record;
	message->record.key = message->bytes;
	message->record.value = message->bytes + record->key_len;
	if (record->key_len)
		memcpy(message->bytes, record->key, record->key_len);
	if (record->value_len)
		memcpy(message->bytes + record->key_len, record->value, record->value_len);
	return message;
}

static void count(struct nt_kafka_outbox *outbox, enum nt_kafka_message_state state, size_t n)
{
	if (state == NT_KAFKA_WAITING)
		outbox->waiting += n;
	else if (state == NT_KAFKA_UNDELIVERED)
		outbox->undelivered += n;
}

bool nt_kafka_outbox_add(struct nt_kafka_outbox *outbox, struct nt_kafka_message *message)
{
	if (outbox->messages >= outbox->max_messages ||
	    outbox->bytes + size_of(message) > outbox->max_bytes)
		return false;
	message->previous = outbox->newest;
	message->next = NULL;
	if (outbox->newest)
		outbox->newest->next = message;
	else
		outbox->oldest = message;
	outbox->newest = message;
	outbox->messages++;
	count(outbox, message->state, 1);
	outbox->bytes += size_of(message);
	return true;
}

void nt_kafka_outbox_remove(struct nt_kafka_outbox *outbox, struct nt_kafka_message *message)
{
	assert(outbox->messages > 0);
	if (message->previous)
		message->previous->next = message->next;
	else
		outbox->oldest = message->next;
	if (message->next)
		message->next->previous = message->previous;
	else
		outbox->newest = message->previous;
	count(outbox, message->state, (size_t)-1);
	outbox->messages--;
	outbox->bytes -= size_of(message);
}

void nt_kafka_outbox_mark(struct nt_kafka_outbox *outbox, struct nt_kafka_message *message,
			  enum nt_kafka_message_state state)
{
	count(outbox, message->state, (size_t)-1);
	message->state = state;
	count(outbox, state, 1);
}

struct nt_kafka_message *nt_kafka_outbox_pick(struct nt_kafka_outbox *outbox)
{
	struct nt_kafka_message *message = outbox->oldest;

	if (!outbox->undelivered)
		return NULL;
	while (message->state != NT_KAFKA_UNDELIVERED)
		message = message->next;
	nt_kafka_outbox_remove(outbox, message);
	return message;
}
