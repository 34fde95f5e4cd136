/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/publish/publisher.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "common/base/buf.h"
#include "common/system/clock.h"

struct sequence {
	char name[NT_BUS_MAX_KEY + 8]; /* topic number and key */
	uint64_t seq;
	struct sequence *prev, *next; /* the most recently used is at the end */
	UT_hash_handle hh;
};

/* A complete message without its signature. */
struct unsigned_message {
	struct unsigned_message *next;
	enum nt_topic topic;
	uint64_t real_ns;
	size_t key_len, size;
	uint8_t data[]; /* the key, then the message */
};

struct nt_publisher {
	struct nt_bus *bus;
	const char *agent;
	struct nt_signer *signer; /* borrowed; NULL: none */
	bool awaits_key;
	struct unsigned_message *held, *held_last; /* owned, oldest first */
	uint64_t boot, boot_ns, real_ns;
	struct sequence *sequences; /* uthash, owned */
	struct sequence *oldest; /* list of the same, by last use */
	uint64_t forgotten_seq; /* highest number of evicted keys */
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

static struct unsigned_message *take_held(struct nt_publisher *publisher)
{
	struct unsigned_message *held = publisher->held;

	publisher->held = held->next;
	publisher->stats.held_bytes -= sizeof(*held) + held->key_len + held->size;
	return held;
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
	while (publisher->held)
		free(take_held(publisher));
	nt_buf_release(&publisher->buf);
	free(publisher);
}

void nt_publisher_set_time(struct nt_publisher *publisher, uint64_t boot_ns, uint64_t real_ns)
{
	publisher->boot_ns = boot_ns;
	publisher->real_ns = real_ns;
}

/*
 * Keys come and go while the agent runs. The least recently used one is evicted: far fewer are in
 * use at a time. If it returns, its numbers continue above all earlier ones, which readers see as a
 * gap and not as a repetition.
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

/* 0: out of memory. */
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

/* Signs the message in buf if necessary, and hands it over. */
static void send(struct nt_publisher *publisher, struct nt_bus_record *record)
{
	if (publisher->signer && nt_signer_sign(publisher->signer, record, &publisher->buf) < 0) {
		publisher->stats.dropped_invalid++;
		return;
	}
	record->value = publisher->buf.data;
	record->value_len = publisher->buf.len;
	if (nt_bus_publish(publisher->bus, record) < 0) {
		publisher->stats.dropped_bus++;
		return;
	}
	publisher->stats.messages++;
	publisher->stats.signed_messages += publisher->signer != NULL;
	publisher->stats.bytes += publisher->buf.len;
	publisher->dirty = true;
}

/* Holds the message in buf until there is a key. */
static void hold(struct nt_publisher *publisher, const struct nt_bus_record *record)
{
	const struct nt_buf *buf = &publisher->buf;
	size_t bytes = sizeof(struct unsigned_message) + record->key_len + buf->len;
	struct unsigned_message *held = malloc(bytes);

	if (!held) {
		publisher->stats.dropped_held++;
		return;
	}
	while (publisher->held && publisher->stats.held_bytes + bytes > NT_PUBLISHER_HELD_BYTES) {
		publisher->stats.dropped_held++;
		free(take_held(publisher));
	}
	*held = (struct unsigned_message){
		.topic = record->topic,
		.real_ns = record->real_ns,
		.key_len = record->key_len,
		.size = buf->len,
	};
	memcpy(held->data, record->key, record->key_len);
	memcpy(held->data + record->key_len, buf->data, buf->len);
	if (publisher->held)
		publisher->held_last->next = held;
	else
		publisher->held = held;
	publisher->held_last = held;
	publisher->stats.held_bytes += bytes;
}

static void send_held(struct nt_publisher *publisher)
{
	while (publisher->held) {
		nt_autofree struct unsigned_message *held = take_held(publisher);
		struct nt_bus_record record = {
			.topic = held->topic,
			.key = held->data,
			.key_len = held->key_len,
			.real_ns = held->real_ns,
		};

		nt_buf_clear(&publisher->buf);
		if (nt_buf_append(&publisher->buf, held->data + held->key_len, held->size) < 0)
			publisher->stats.dropped_held++;
		else
			send(publisher, &record);
	}
}

void nt_publisher_sign(struct nt_publisher *publisher, struct nt_signer *signer)
{
	publisher->signer = signer;
	publisher->awaits_key = false;
	send_held(publisher);
}

void nt_publisher_await_key(struct nt_publisher *publisher)
{
	publisher->awaits_key = true;
}

/* A profile is left out if the window is too large with it. */
static int encode(struct nt_publisher *publisher, struct nt_message *message)
{
	int r;

	nt_buf_clear(&publisher->buf);
	r = nt_message_encode(message, &publisher->buf);
	if (r == 0 || message->body != NT_BODY_WINDOW || !message->window.profiles)
		return r;
	publisher->stats.dropped_profiles += message->window.profiles;
	message->window.profiles = 0;
	nt_buf_clear(&publisher->buf);
	return nt_message_encode(message, &publisher->buf);
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
	if (encode(publisher, message) < 0) {
		publisher->stats.dropped_invalid++;
		return;
	}
	/* The message has nanoseconds; on the bus, whole milliseconds can be cheaper. */
	record.real_ns = nt_message_real_ns(message, event_boot_ns);
	record.real_ns -= record.real_ns % NT_MILLISECOND;
	if (publisher->awaits_key)
		hold(publisher, &record);
	else
		send(publisher, &record);
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

void nt_publisher_detail(struct nt_publisher *publisher, const char *key,
			 const struct nt_detail *detail)
{
	struct nt_message message = {
		.watermark_boot_ns = detail->end_boot_ns,
		.body = NT_BODY_DETAIL,
		.detail = *detail,
	};

	publish(publisher, NT_TOPIC_DETAIL, key, detail->end_boot_ns, &message);
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
