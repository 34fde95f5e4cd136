/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/sim/cluster/air.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/bus/bus_impl.h"

enum {
	WAY_NS = 5000000, /* of every message */
};

struct packet {
	int64_t at_ns;
	uint64_t number; /* of two that arrive together, the first sent comes first */
	struct nt_bus_record record;
	uint8_t *bytes; /* owned: key and value */
};

struct cl_air {
	struct nt_bus bus; /* first */
	const struct cl_scenario *s;
	struct packet *packet; /* a heap by time, owned */
	size_t packets, room;
	uint64_t numbers, random;
	int64_t now_ns;
};

static bool is_before(const struct packet *a, const struct packet *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

static void swap(struct packet *a, struct packet *b)
{
	struct packet kept = *a;

	*a = *b;
	*b = kept;
}

static int push(struct cl_air *air, const struct nt_bus_record *record, int64_t at_ns)
{
	struct packet packet = {.at_ns = at_ns, .number = air->numbers++, .record = *record};
	size_t i = air->packets;

	if (air->packets == air->room) {
		size_t room = air->room ? 2 * air->room : 1024;
		struct packet *grown = reallocarray(air->packet, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		air->packet = grown;
		air->room = room;
	}
	packet.bytes = malloc(record->key_len + record->value_len + 1);
	if (!packet.bytes)
		return -ENOMEM;
	memcpy(packet.bytes, record->key, record->key_len);
	memcpy(packet.bytes + record->key_len, record->value, record->value_len);
	packet.record.key = packet.bytes;
	packet.record.value = packet.bytes + record->key_len;
	air->packet[air->packets++] = packet;
	for (; i && is_before(&air->packet[i], &air->packet[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&air->packet[i], &air->packet[(i - 1) / 2]);
	return 0;
}

static struct packet pop(struct cl_air *air)
{
	struct packet first = air->packet[0];
	size_t i = 0;

	air->packet[0] = air->packet[--air->packets];
	while (2 * i + 1 < air->packets) {
		size_t child = 2 * i + 1;

		if (child + 1 < air->packets &&
		    is_before(&air->packet[child + 1], &air->packet[child]))
			child++;
		if (!is_before(&air->packet[child], &air->packet[i]))
			break;
		swap(&air->packet[child], &air->packet[i]);
		i = child;
	}
	return first;
}

static double chance(struct cl_air *air)
{
	air->random = nt_hash_mix(air->random + 0x9e3779b97f4a7c15ULL);
	return (double)(air->random >> 11) * 0x1p-53;
}

static int publish(struct nt_bus *bus, const struct nt_bus_record *record)
{
	struct cl_air *air = (struct cl_air *)bus;
	const struct cl_weather *w = &air->s->weather;
	int64_t at_ns = air->now_ns + WAY_NS;
	int r = 0;

	if (chance(air) < w->lost)
		return 0;
	if (chance(air) < w->late)
		at_ns += (int64_t)(chance(air) * w->late_s * 1e9);
	if (chance(air) < w->doubled)
		r = push(air, record, at_ns + (int64_t)(chance(air) * 1e9));
	return r < 0 ? r : push(air, record, at_ns);
}

static int flush(struct nt_bus *bus)
{
	(void)bus;
	return 0;
}

static void close_nothing(struct nt_bus *bus)
{
	(void)bus; /* cl_air_free() does it */
}

int cl_air_new(const struct cl_scenario *scenario, struct cl_air **ret_air)
{
	struct cl_air *air = calloc(1, sizeof(*air));

	if (!air)
		return -ENOMEM;
	air->bus.close = close_nothing;
	air->bus.publish = publish;
	air->bus.flush = flush;
	air->s = scenario;
	air->random = nt_hash_mix(scenario->seed ^ 0xa1);
	*ret_air = air;
	return 0;
}

void cl_air_free(struct cl_air *air)
{
	if (!air)
		return;
	for (size_t i = 0; i < air->packets; i++)
		free(air->packet[i].bytes);
	free(air->packet);
	free(air);
}

struct nt_bus *cl_air_bus(struct cl_air *air)
{
	return &air->bus;
}

void cl_air_set_time(struct cl_air *air, int64_t now_ns)
{
	air->now_ns = now_ns;
}

int cl_air_deliver(struct cl_air *air, int64_t now_ns,
		   int (*fn)(void *data, const struct nt_bus_record *record), void *data)
{
	int r = 0;

	while (r == 0 && air->packets && air->packet[0].at_ns <= now_ns) {
		struct packet packet = pop(air);

		r = fn(data, &packet.record);
		free(packet.bytes);
	}
	return r;
}
