/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/publisher.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "common/buf.h"
#include "common/clock.h"

struct sequence {
	char name[NT_BUS_MAX_KEY + 8]; /* topic's number and key */
	uint64_t seq;
	struct sequence *prev, *next; /* the one that was used last is at the end */
	UT_hash_handle hh;
};

struct nt_publisher {
	struct nt_bus *bus;
	const char *agent;
	struct nt_signer *signer; /* borrowed; NULL: none */
	uint64_t boot, boot_ns, real_ns;
	struct sequence *sequences; /* uthash, owned */
	struct sequence *oldest; /* list of the same */
	uint64_t forgotten_seq; /* the highest number of those that made room */
	struct nt_buf buf;
	bool dirty;
	struct nt_publisher_stats stats;
};

int nt_publisher_new(struct nt_bus *bus, const char *agent, uint64_t boot,
		     struct nt_publisher **ret_publisher)
{
	struct nt_publisher *publisher = calloc(1, sizeof(*publisher));

	if (!publisher)
		return -ENOMEM;
	publisher->bus = bus;
	publisher->agent = agent;
	publisher->boot = boot;
	*ret_publisher = publisher;
	return 0;
}

void nt_publisher_free(struct nt_publisher *publisher)
{
	struct sequence *sequence, *next;

	if (!publisher)
		return;
	HASH_ITER(hh, publisher->sequences, sequence, next)
	{
		HASH_DEL(publisher->sequences, sequence);
		free(sequence);
	}
	nt_buf_release(&publisher->buf);
	free(publisher);
}

void nt_publisher_sign(struct nt_publisher *publisher, struct nt_signer *signer)
{
	publisher->signer = signer;
}

void nt_publisher_set_time(struct nt_publisher *publisher, uint64_t boot_ns, uint64_t real_ns)
{
	publisher->boot_ns = boot_ns;
	publisher->real_ns = real_ns;
}

/*
 * Keys come and go for as long as the agent runs. The one that was used least recently makes room:
 * far fewer are in use at a time. Should it come again, its numbers go on above all that it had, which
 * is a gap to who counts them, and no repetition.
 */
static struct sequence *add_sequence(struct nt_publisher *publisher, const char *name, size_t size)
{
	struct sequence *sequence = NULL;

	if (HASH_COUNT(publisher->sequences) >= NT_PUBLISHER_KEYS) {
		sequence = publisher->oldest;
		publisher->stats.forgotten_keys++;
		if (sequence->seq > publisher->forgotten_seq)
			publisher->forgotten_seq = sequence->seq;
		DL_DELETE(publisher->oldest, sequence);
		HASH_DEL(publisher->sequences, sequence);
		free(sequence);
	}
	sequence = calloc(1, sizeof(*sequence));
	if (!sequence)
		return NULL;
	memcpy(sequence->name, name, size);
	sequence->seq = publisher->forgotten_seq;
	HASH_ADD_STR(publisher->sequences, name, sequence);
	DL_APPEND(publisher->oldest, sequence);
	return sequence;
}

/* 0: memory is short. */
static uint64_t next_seq(struct nt_publisher *publisher, enum nt_topic topic, const char *key)
{
	struct sequence *sequence = NULL;
	char name[sizeof(sequence->name)] = {0};
	size_t len = strnlen(key, NT_BUS_MAX_KEY);

	name[0] = (char)('0' + topic);
	memcpy(name + 1, key, len);
	HASH_FIND_STR(publisher->sequences, name, sequence);
	if (!sequence)
		sequence = add_sequence(publisher, name, sizeof(name));
	if (!sequence)
		return 0;
	if (sequence->next) {
		DL_DELETE(publisher->oldest, sequence);
		DL_APPEND(publisher->oldest, sequence);
	}
	return ++sequence->seq;
}

static void publish(struct nt_publisher *publisher, enum nt_topic topic, const char *key,
		    uint64_t event_boot_ns, struct nt_message *message)
{
	struct nt_bus_record record = {
		.topic = topic,
		.key = key,
		.key_len = strlen(key),
	};

	message->agent = publisher->agent;
	message->key = key;
	message->boot = publisher->boot;
	message->boot_ns = publisher->boot_ns;
	message->real_ns = publisher->real_ns;
	message->seq = next_seq(publisher, topic, key);
	if (!message->seq) {
		publisher->stats.dropped_keys++;
		return;
	}
	nt_buf_clear(&publisher->buf);
	if (nt_message_encode(message, &publisher->buf) < 0 ||
	    (publisher->signer &&
	     nt_signer_sign(publisher->signer, &record, &publisher->buf) < 0)) {
		publisher->stats.dropped_invalid++;
		return;
	}
	record.value = publisher->buf.data;
	record.value_len = publisher->buf.len;
	/* The message has it to the nanosecond; the bus may pay for what is not whole milliseconds. */
	record.real_ns = nt_message_real_ns(message, event_boot_ns);
	record.real_ns -= record.real_ns % NT_MILLISECOND;
	if (nt_bus_publish(publisher->bus, &record) < 0) {
		publisher->stats.dropped_bus++;
		return;
	}
	publisher->stats.messages++;
	publisher->stats.signed_messages += publisher->signer != NULL;
	publisher->stats.bytes += publisher->buf.len;
	publisher->dirty = true;
}

void nt_publisher_window(struct nt_publisher *publisher, const char *key,
			 const struct nt_window *window, uint64_t watermark_ns)
{
	struct nt_message message = {
		.watermark_boot_ns = watermark_ns,
		.body = NT_BODY_WINDOW,
		.window = *window,
	};

	publish(publisher, NT_TOPIC_WINDOW, key, window->end_boot_ns, &message);
}

void nt_publisher_heartbeat(struct nt_publisher *publisher, const char *key, uint32_t ranks,
			    uint64_t watermark_ns)
{
	struct nt_message message = {
		.watermark_boot_ns = watermark_ns,
		.body = NT_BODY_HEARTBEAT,
		.heartbeat_ranks = ranks,
	};

	publish(publisher, NT_TOPIC_WINDOW, key, publisher->boot_ns, &message);
}

void nt_publisher_node(struct nt_publisher *publisher, const struct nt_node_vector *node)
{
	struct nt_message message = {
		.watermark_boot_ns = publisher->boot_ns,
		.body = NT_BODY_NODE,
		.node = *node,
	};

	publish(publisher, NT_TOPIC_NODE, node->node, publisher->boot_ns, &message);
}

int nt_publisher_flush(struct nt_publisher *publisher)
{
	if (!publisher->dirty)
		return 0;
	publisher->dirty = false;
	return nt_bus_flush(publisher->bus);
}

void nt_publisher_stats(const struct nt_publisher *publisher, struct nt_publisher_stats *ret_stats)
{
	*ret_stats = publisher->stats;
}
