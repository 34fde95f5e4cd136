/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Publishes messages on the bus: envelope, sequence numbers, clocks. A message that does not fit is
 * dropped and counted. Its sequence number is used up, so that readers detect the gap.
 */
#ifndef NT_AGENT_PUBLISH_PUBLISHER_H
#define NT_AGENT_PUBLISH_PUBLISHER_H

#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "common/bus/node_key.h"
#include "proto/wire.h"

enum {
	NT_PUBLISHER_KEYS = 4096, /* (topic, key) pairs with sequence numbers */
	NT_PUBLISHER_HELD_BYTES = 4 << 20, /* of messages held until there is a key to sign them */
};

struct nt_publisher;

struct nt_publisher_stats {
	uint64_t messages, bytes; /* accepted by the bus */
	uint64_t dropped_bus; /* rejected by the bus */
	uint64_t dropped_invalid; /* not encodable */
	uint64_t dropped_profiles; /* left out of windows that are too large with them */
	uint64_t dropped_keys; /* out of memory for their number */
	uint64_t forgotten_keys; /* evicted over NT_PUBLISHER_KEYS */
	uint64_t signed_messages; /* of the messages */
	uint64_t held_bytes; /* held for a key, now */
	uint64_t dropped_held; /* the oldest held ones, over NT_PUBLISHER_HELD_BYTES */
};

/* agent: the node's name, borrowed; boot: differs at each start of the agent. bus is borrowed. */
NT_MUST_CHECK int nt_publisher_new(struct nt_bus *bus, const char *agent, uint64_t boot,
				   struct nt_publisher **ret_publisher);
void nt_publisher_free(struct nt_publisher *publisher);
NT_DEFINE_AUTO(nt_publisher, nt_publisher_free)

/* Sets the signer of held and later messages; borrowed. NULL: unsigned. */
void nt_publisher_sign(struct nt_publisher *publisher, struct nt_signer *signer);
/* Holds messages until a signer is set. */
void nt_publisher_await_key(struct nt_publisher *publisher);

/* Sets the clocks of later messages. */
void nt_publisher_set_time(struct nt_publisher *publisher, uint64_t boot_ns, uint64_t real_ns);

void nt_publisher_window(struct nt_publisher *publisher, const char *key,
			 const struct nt_window *window, uint64_t watermark_ns);
void nt_publisher_heartbeat(struct nt_publisher *publisher, const char *key, uint32_t ranks,
			    uint64_t watermark_ns);
void nt_publisher_detail(struct nt_publisher *publisher, const char *key,
			 const struct nt_detail *detail);
void nt_publisher_node(struct nt_publisher *publisher, const struct nt_node_vector *node);

/* Makes published messages visible to readers. */
NT_MUST_CHECK int nt_publisher_flush(struct nt_publisher *publisher);

void nt_publisher_stats(const struct nt_publisher *publisher, struct nt_publisher_stats *ret_stats);

#endif
