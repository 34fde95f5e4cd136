/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/outlet.h"

#include <errno.h>
#include <string.h>

#include "aggregator/table.h"
#include "common/buf.h"
#include "common/clock.h"

/* Sequence numbers are per key, and the key is the incident. */
struct open_incident {
	char *id;
	uint64_t seq;
	UT_hash_handle hh;
};

struct nt_outlet {
	struct nt_bus *bus;
	uint64_t boot;
	struct open_incident *open;
	uint64_t second; /* of real time, in which `passed` were passed on */
	uint32_t passed;
	bool dirty;
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

static void remove_open(struct nt_outlet *outlet, struct open_incident *open)
{
	HASH_DEL(outlet->open, open);
	free(open->id);
	free(open);
}

void nt_outlet_close(struct nt_outlet *outlet)
{
	struct open_incident *open, *next;

	if (!outlet)
		return;
	HASH_ITER(hh, outlet->open, open, next)
	remove_open(outlet, open);
	nt_bus_close(outlet->bus);
	free(outlet);
}

static struct open_incident *find_open(struct nt_outlet *outlet, const char *id)
{
	struct open_incident *open;

	HASH_FIND_STR(outlet->open, id, open);
	if (open)
		return open;
	if (HASH_COUNT(outlet->open) >= NT_OUTLET_MAX_OPEN)
		return NULL;
	open = calloc(1, sizeof(*open));
	if (!open)
		return NULL;
	open->id = strdup(id);
	if (!open->id) {
		free(open);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, outlet->open, open->id, strlen(open->id), open);
	if (nt_table_has(open))
		return open;
	free(open->id);
	free(open);
	return NULL;
}

static int publish_incident(struct nt_outlet *outlet, const struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {.max = NT_WIRE_MAX_BYTES};
	struct nt_bus_record record = {
		.topic = NT_TOPIC_INCIDENT,
		.key = message->key,
		.key_len = strlen(message->key),
		.real_ns = message->real_ns,
	};
	int r;

	r = nt_message_encode(message, &buf);
	if (r < 0)
		return r;
	record.value = buf.data;
	record.value_len = buf.len;
	return nt_bus_publish(outlet->bus, &record);
}

void nt_outlet_incident(struct nt_outlet *outlet, const struct nt_incident *incident,
			uint64_t boot_ns, uint64_t real_ns)
{
	struct open_incident *open = find_open(outlet, incident->id);
	const struct nt_message message = {
		.agent = "neutracer-aggregator",
		.boot = outlet->boot,
		.seq = open ? ++open->seq : incident->version,
		.boot_ns = boot_ns,
		.real_ns = real_ns,
		.watermark_boot_ns = boot_ns,
		.key = incident->id,
		.body = NT_BODY_INCIDENT,
		.incident = *incident,
	};

	if (publish_incident(outlet, &message) < 0)
		outlet->counters.errors++;
	else
		outlet->counters.incidents++;
	outlet->dirty = true;
	if (open && strcmp(incident->state, "resolved") == 0)
		remove_open(outlet, open);
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

void nt_outlet_flush(struct nt_outlet *outlet)
{
	if (!outlet->dirty)
		return;
	outlet->dirty = false;
	if (nt_bus_flush(outlet->bus) < 0)
		outlet->counters.errors++;
}

const struct nt_outlet_counters *nt_outlet_counters(const struct nt_outlet *outlet)
{
	return &outlet->counters;
}
