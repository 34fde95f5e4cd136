/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/outlet.h"

#include <errno.h>
#include <string.h>

#include "aggregator/table.h"
#include "common/buf.h"
#include "common/clock.h"

/* Sequence numbers are per key. */
struct sent {
	char *key;
	uint64_t seq;
	UT_hash_handle hh;
};

struct nt_outlet {
	struct nt_bus *bus;
	uint64_t boot;
	struct sent *sent; /* least recently used first */
	uint64_t second; /* of real time, in which `passed` were passed on */
	uint32_t passed;
	bool dirty, leaving, given_up;
	struct nt_outlet_counters counters;
};

int nt_outlet_open(const char *bus_url, const struct nt_bus_options *options, uint64_t boot,
		   struct nt_outlet **ret_outlet)
{
	nt_auto(nt_outlet) struct nt_outlet *outlet = calloc(1, sizeof(*outlet));
	int r;

	if (!outlet)
		return -ENOMEM;
	outlet->boot = boot;
	r = nt_bus_open(bus_url, options, &outlet->bus);
	if (r < 0)
		return r;
	*ret_outlet = nt_take(outlet);
	return 0;
}

static void remove_sent(struct nt_outlet *outlet, struct sent *sent)
{
	HASH_DEL(outlet->sent, sent);
	free(sent->key);
	free(sent);
}

void nt_outlet_close(struct nt_outlet *outlet)
{
	struct sent *sent, *next;

	if (!outlet)
		return;
	HASH_ITER(hh, outlet->sent, sent, next)
	remove_sent(outlet, sent);
	nt_bus_close(outlet->bus);
	free(outlet);
}

static int add_sent(struct nt_outlet *outlet, struct sent *sent)
{
	HASH_ADD_KEYPTR(hh, outlet->sent, sent->key, strlen(sent->key), sent);
	if (nt_table_has(sent))
		return 0;
	free(sent->key);
	free(sent);
	return -ENOMEM;
}

/* Without memory for the key, its next number is 1 again: readers then see a message twice at most. */
static uint64_t next_seq(struct nt_outlet *outlet, const char *key)
{
	struct sent *sent;
	uint64_t seq;

	HASH_FIND_STR(outlet->sent, key, sent);
	if (sent) {
		HASH_DEL(outlet->sent, sent);
	} else {
		if (HASH_COUNT(outlet->sent) >= NT_OUTLET_MAX_KEYS)
			remove_sent(outlet, outlet->sent);
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
	(void)add_sent(outlet, sent);
	return seq;
}

static int publish(struct nt_outlet *outlet, enum nt_topic topic, struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {.max = NT_WIRE_MAX_BYTES};
	struct nt_bus_record record = {
		.topic = topic,
		.key = message->key,
		.key_len = strlen(message->key),
	};
	int r;

	message->agent = "neutracer-aggregator";
	message->boot = outlet->boot;
	message->seq = next_seq(outlet, message->key);
	nt_clock_pair(&message->boot_ns, &message->real_ns);
	message->watermark_boot_ns = message->boot_ns;
	record.real_ns = message->real_ns;
	r = nt_message_encode(message, &buf);
	if (r == 0) {
		record.value = buf.data;
		record.value_len = buf.len;
		r = nt_bus_publish(outlet->bus, &record);
	}
	/* A full queue empties by itself, if there is anybody to take what is in it. */
	if (r == -EAGAIN && nt_bus_flush(outlet->bus) == 0)
		r = nt_bus_publish(outlet->bus, &record);
	if (r < 0)
		outlet->counters.errors++;
	outlet->dirty = true;
	return r;
}

int nt_outlet_incident(struct nt_outlet *outlet, const struct nt_incident *incident)
{
	struct nt_message message = {
		.key = incident->id,
		.body = NT_BODY_INCIDENT,
		.incident = *incident,
	};
	int r = publish(outlet, NT_TOPIC_INCIDENT, &message);

	if (r == 0)
		outlet->counters.incidents++;
	return r;
}

static int publish_state(void *data, const struct nt_message *state)
{
	struct nt_outlet *outlet = data;
	struct nt_message message = *state;
	int r;

	r = publish(outlet, NT_TOPIC_STATE, &message);
	if (r == 0)
		outlet->counters.states++;
	return r;
}

static int remove_state(void *data, const char *key)
{
	struct nt_outlet *outlet = data;
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_STATE,
		.key = key,
		.key_len = strlen(key),
		.real_ns = nt_clock_real_ns(),
	};
	int r = nt_bus_publish(outlet->bus, &record);

	if (r < 0)
		outlet->counters.errors++;
	outlet->dirty = true;
	return r;
}

static int flush_states(void *data)
{
	return nt_outlet_flush(data);
}

struct nt_depot_port nt_outlet_port(struct nt_outlet *outlet)
{
	return (struct nt_depot_port){
		.publish = publish_state,
		.remove = remove_state,
		.flush = flush_states,
		.data = outlet,
	};
}

uint64_t nt_outlet_boot(const struct nt_outlet *outlet)
{
	return outlet->boot;
}

void nt_outlet_health(const struct nt_outlet *outlet, struct nt_bus_health *ret_health)
{
	nt_bus_health(outlet->bus, ret_health);
}

void nt_outlet_refused(struct nt_outlet *outlet, const struct nt_bus_record *record,
		       const char *reason, uint64_t real_ns)
{
	struct nt_bus_record passed = *record;

	if (real_ns / NT_SECOND != outlet->second) {
		outlet->second = real_ns / NT_SECOND;
		outlet->passed = 0;
	}
	if (outlet->passed++ >= NT_OUTLET_REFUSED_A_SECOND) {
		outlet->counters.refused_dropped++;
		return;
	}
	passed.topic = NT_TOPIC_DLQ;
	passed.key = reason;
	passed.key_len = strlen(reason);
	passed.real_ns = real_ns;
	if (nt_bus_publish(outlet->bus, &passed) < 0)
		outlet->counters.errors++;
	else
		outlet->counters.refused++;
	outlet->dirty = true;
}

/* Brokers may refuse for good what the bus has taken: a topic's cap, rights, a topic that is gone. */
static bool has_lost(struct nt_outlet *outlet)
{
	struct nt_bus_stats stats;
	bool yes = false;

	nt_bus_stats(outlet->bus, &stats);
	for (int i = 0; i < NT_BUS_CAUSE_END; i++)
		yes |= stats.undelivered[i] != outlet->counters.undelivered[i];
	memcpy(outlet->counters.undelivered, stats.undelivered, sizeof(stats.undelivered));
	return yes;
}

int nt_outlet_flush(struct nt_outlet *outlet)
{
	int r;

	if (!outlet->dirty)
		return 0;
	r = outlet->given_up ? -ETIMEDOUT : nt_bus_flush(outlet->bus);
	outlet->dirty = r < 0;
	outlet->given_up = outlet->leaving && r < 0;
	if (has_lost(outlet) && r == 0)
		r = -EIO;
	if (r < 0)
		outlet->counters.errors++;
	return r;
}

void nt_outlet_leave(struct nt_outlet *outlet)
{
	outlet->leaving = true;
}

const struct nt_outlet_counters *nt_outlet_counters(const struct nt_outlet *outlet)
{
	return &outlet->counters;
}
