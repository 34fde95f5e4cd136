/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/bus_producer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/table.h"
#include "common/system/clock.h"

/* Sequence numbers are per key. */
struct sent {
	char *key;
	uint64_t seq;
	UT_hash_handle hh;
};

struct nt_bus_producer {
	struct nt_bus *bus;
	uint64_t boot;
	struct sent *sent; /* least recently used first */
	uint64_t second; /* real time second in which `passed` records were published */
	uint32_t passed;
	bool dirty, leaving, given_up;
	struct nt_bus_producer_counters counters;
};

int nt_bus_producer_open(const char *bus_url, const struct nt_bus_options *options, uint64_t boot,
			 struct nt_bus_producer **ret_bus_producer)
{
	nt_auto(nt_bus_producer) struct nt_bus_producer *bus_producer =
		calloc(1, sizeof(*bus_producer));
	int r;

	if (!bus_producer)
		return -ENOMEM;
	bus_producer->boot = boot;
	r = nt_bus_open(bus_url, options, &bus_producer->bus);
	if (r < 0)
		return r;
	*ret_bus_producer = nt_take(bus_producer);
	return 0;
}

static void remove_sent(struct nt_bus_producer *bus_producer, struct sent *sent)
{
	HASH_DEL(bus_producer->sent, sent);
	free(sent->key);
	free(sent);
}

void nt_bus_producer_close(struct nt_bus_producer *bus_producer)
{
	struct sent *sent, *next;

	if (!bus_producer)
		return;
	HASH_ITER(hh, bus_producer->sent, sent, next)
	remove_sent(bus_producer, sent);
	nt_bus_close(bus_producer->bus);
	free(bus_producer);
}

static int add_sent(struct nt_bus_producer *bus_producer, struct sent *sent)
{
	HASH_ADD_KEYPTR(hh, bus_producer->sent, sent->key, strlen(sent->key), sent);
	if (nt_table_has(sent))
		return 0;
	free(sent->key);
	free(sent);
	return -ENOMEM;
}

/* On allocation failure the key restarts at 1; readers may then see a message twice. */
static uint64_t next_seq(struct nt_bus_producer *bus_producer, const char *key)
{
	struct sent *sent;
	uint64_t seq;

	HASH_FIND_STR(bus_producer->sent, key, sent);
	if (sent) {
		HASH_DEL(bus_producer->sent, sent);
	} else {
		if (HASH_COUNT(bus_producer->sent) >= NT_BUS_PRODUCER_MAX_KEYS)
			remove_sent(bus_producer, bus_producer->sent);
		sent = calloc(1, sizeof(*sent));
		if (!sent)
			return 1;
		sent->key = strdup(key);
		if (!sent->key) {
			free(sent);
			return 1;
		}
	}
	seq = ++sent->seq;
	(void)add_sent(bus_producer, sent);
	return seq;
}

static int publish(struct nt_bus_producer *bus_producer, enum nt_topic topic,
		   struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {.max = NT_WIRE_MAX_BYTES};
	struct nt_bus_record record = {
		.topic = topic,
		.key = message->key,
		.key_len = strlen(message->key),
	};
	int r;

	message->agent = "neutracer-aggregator";
	message->boot = bus_producer->boot;
	message->seq = next_seq(bus_producer, message->key);
	nt_clock_pair(&message->boot_ns, &message->real_ns);
	message->watermark_boot_ns = message->boot_ns;
	record.real_ns = message->real_ns;
	r = nt_message_encode(message, &buf);
	if (r == 0) {
		record.value = buf.data;
		record.value_len = buf.len;
		r = nt_bus_publish(bus_producer->bus, &record);
	}
	/* A full queue is flushed once, which succeeds if brokers are reachable. */
	if (r == -EAGAIN && nt_bus_flush(bus_producer->bus) == 0)
		r = nt_bus_publish(bus_producer->bus, &record);
	if (r < 0)
		bus_producer->counters.errors++;
	bus_producer->dirty = true;
	return r;
}

int nt_bus_producer_incident(struct nt_bus_producer *bus_producer,
			     const struct nt_wire_incident *incident)
{
	struct nt_message message = {
		.key = incident->id,
		.body = NT_BODY_INCIDENT,
		.incident = *incident,
	};
	int r = publish(bus_producer, NT_TOPIC_INCIDENT, &message);

	if (r == 0)
		bus_producer->counters.incidents++;
	return r;
}

static int publish_state(void *data, const struct nt_message *state)
{
	struct nt_bus_producer *bus_producer = data;
	struct nt_message message = *state;
	int r;

	r = publish(bus_producer, NT_TOPIC_STATE, &message);
	if (r == 0)
		bus_producer->counters.states++;
	return r;
}

static int delete (struct nt_bus_producer *bus_producer, enum nt_topic topic, const char *key)
{
	const struct nt_bus_record record = {
		.topic = topic,
		.key = key,
		.key_len = strlen(key),
		.real_ns = nt_clock_real_ns(),
	};
	int r = nt_bus_publish(bus_producer->bus, &record);

	if (r < 0)
		bus_producer->counters.errors++;
	bus_producer->dirty = true;
	return r;
}

static int remove_state(void *data, const char *key)
{
	return delete (data, NT_TOPIC_STATE, key);
}

static void control_key(enum nt_request request, const char *target, char key[NT_BUS_MAX_KEY])
{
	static const char *const kinds[NT_REQUEST_END] = {
		[NT_REQUEST_UNKNOWN] = "",        [NT_REQUEST_LEVEL] = "level",
		[NT_REQUEST_AUTO_LEVEL] = "auto", [NT_REQUEST_STACK] = "stack",
		[NT_REQUEST_PROFILE] = "profile",
	};

	(void)snprintf(key, NT_BUS_MAX_KEY, "%s %s", kinds[request], target);
}

int nt_bus_producer_control(struct nt_bus_producer *bus_producer, const struct nt_control *control)
{
	char key[NT_BUS_MAX_KEY];
	struct nt_message message = {.key = key, .body = NT_BODY_CONTROL, .control = *control};
	int r;

	control_key(control->request, control->target, key);
	r = publish(bus_producer, NT_TOPIC_CONTROL, &message);
	if (r == 0)
		bus_producer->counters.controls++;
	return r;
}

int nt_bus_producer_forget_control(struct nt_bus_producer *bus_producer, enum nt_request request,
				   const char *target)
{
	char key[NT_BUS_MAX_KEY];

	control_key(request, target, key);
	return delete (bus_producer, NT_TOPIC_CONTROL, key);
}

static int flush_states(void *data)
{
	return nt_bus_producer_flush(data);
}

struct nt_state_log_port nt_bus_producer_port(struct nt_bus_producer *bus_producer)
{
	return (struct nt_state_log_port){
		.publish = publish_state,
		.remove = remove_state,
		.flush = flush_states,
		.data = bus_producer,
	};
}

uint64_t nt_bus_producer_boot(const struct nt_bus_producer *bus_producer)
{
	return bus_producer->boot;
}

void nt_bus_producer_health(const struct nt_bus_producer *bus_producer,
			    struct nt_bus_health *ret_health)
{
	nt_bus_health(bus_producer->bus, ret_health);
}

void nt_bus_producer_refused(struct nt_bus_producer *bus_producer,
			     const struct nt_bus_record *record, const char *reason,
			     uint64_t real_ns)
{
	struct nt_bus_record passed = *record;

	if (real_ns / NT_SECOND != bus_producer->second) {
		bus_producer->second = real_ns / NT_SECOND;
		bus_producer->passed = 0;
	}
	if (bus_producer->passed++ >= NT_BUS_PRODUCER_REFUSED_A_SECOND) {
		bus_producer->counters.refused_dropped++;
		return;
	}
	passed.topic = NT_TOPIC_DLQ;
	passed.key = reason;
	passed.key_len = strlen(reason);
	passed.real_ns = real_ns;
	if (nt_bus_publish(bus_producer->bus, &passed) < 0)
		bus_producer->counters.errors++;
	else
		bus_producer->counters.refused++;
	bus_producer->dirty = true;
}

/* Brokers may reject accepted messages permanently: size limit, permissions, deleted topic. */
static bool has_lost(struct nt_bus_producer *bus_producer)
{
	struct nt_bus_stats stats;
	bool yes = false;

	nt_bus_stats(bus_producer->bus, &stats);
	for (int i = 0; i < NT_BUS_CAUSE_END; i++)
		yes |= stats.undelivered[i] != bus_producer->counters.undelivered[i];
	memcpy(bus_producer->counters.undelivered, stats.undelivered, sizeof(stats.undelivered));
	return yes;
}

int nt_bus_producer_flush(struct nt_bus_producer *bus_producer)
{
	int r;

	if (!bus_producer->dirty)
		return 0;
	r = bus_producer->given_up ? -ETIMEDOUT : nt_bus_flush(bus_producer->bus);
	bus_producer->dirty = r < 0;
	bus_producer->given_up = bus_producer->leaving && r < 0;
	if (has_lost(bus_producer) && r == 0)
		r = -EIO;
	if (r < 0)
		bus_producer->counters.errors++;
	return r;
}

void nt_bus_producer_leave(struct nt_bus_producer *bus_producer)
{
	bus_producer->leaving = true;
}

const struct nt_bus_producer_counters *
nt_bus_producer_counters(const struct nt_bus_producer *bus_producer)
{
	return &bus_producer->counters;
}
