/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Traffic of the node's network cards, from /proc/net/dev of the host's network namespace. */
#ifndef NT_AGENT_NODE_NET_DEVICE_H
#define NT_AGENT_NODE_NET_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/node/counter_sum.h"
#include "agent/node/hardware.h"

/* Of both directions, where none is named. */
enum nt_net_value {
	NT_NET_RECEIVED_BYTES,
	NT_NET_SENT_BYTES,
	NT_NET_PACKETS,
	NT_NET_ERRORS,
	NT_NET_DROPS,
};

/* Zero-initialised; needs no release. */
struct nt_net_devices {
	struct nt_hardware hardware; /* refreshed by the user */
	struct nt_counter_sum sum; /* by enum nt_net_value */
};

/*
 * Takes a text of /proc/net/dev. On a node without network hardware, such as one that is itself a
 * container, all devices but the loopback are counted.
 */
void nt_net_devices_take(struct nt_net_devices *devices, const char *text, size_t len);

#endif
