/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Puts messages on the bus: envelope, sequence numbers, clocks. A message that finds no room is
 * dropped and counted, and its sequence number is used up, so that readers see the gap.
 */
#ifndef NT_AGENT_PUBLISH_PUBLISHER_H
#define NT_AGENT_PUBLISH_PUBLISHER_H

#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "common/bus/node_key.h"
#include "proto/wire.h"

enum {
	NT_PUBLISHER_KEYS = 4096, /* (topic, key) pairs that are counted */
	NT_PUBLISHER_HELD_BYTES = 4 << 20, /* of messages that wait for a key to be signed with */
};

struct nt_publisher;

struct nt_publisher_stats {
	uint64_t messages, bytes; /* handed to the bus */
	uint64_t dropped_bus; /* the bus did not take it */
	uint64_t dropped_invalid; /* not encodable */
	uint64_t dropped_keys; /* memory was short for their number */
	uint64_t forgotten_keys; /* that made room, over NT_PUBLISHER_KEYS */
	uint64_t signed_messages; /* of the messages */
	uint64_t held_bytes; /* that wait for a key, now */
	uint64_t dropped_held; /* the oldest of them, over NT_PUBLISHER_HELD_BYTES */
};

/* agent: the node's name, borrowed; boot: differs at each start of the agent. bus is borrowed. */
NT_MUST_CHECK int nt_publisher_new(struct nt_bus *bus, const char *agent, uint64_t boot,
				   struct nt_publisher **ret_publisher);
void nt_publisher_free(struct nt_publisher *publisher);
NT_DEFINE_AUTO(nt_publisher, nt_publisher_free)

/* Signs the messages that follow, and those that were held; borrowed. NULL: they go unsigned. */
void nt_publisher_sign(struct nt_publisher *publisher, struct nt_signer *signer);
/* Holds messages until there is a key to sign them with. */
void nt_publisher_await_key(struct nt_publisher *publisher);

/* The clocks of the messages that follow. */
void nt_publisher_set_time(struct nt_publisher *publisher, uint64_t boot_ns, uint64_t real_ns);

void nt_publisher_window(struct nt_publisher *publisher, const char *key,
			 const struct nt_window *window, uint64_t watermark_ns);
void nt_publisher_heartbeat(struct nt_publisher *publisher, const char *key, uint32_t ranks,
			    uint64_t watermark_ns);
void nt_publisher_node(struct nt_publisher *publisher, const struct nt_node_vector *node);

/* Makes what was published since visible to readers. */
NT_MUST_CHECK int nt_publisher_flush(struct nt_publisher *publisher);

void nt_publisher_stats(const struct nt_publisher *publisher, struct nt_publisher_stats *ret_stats);

#endif
