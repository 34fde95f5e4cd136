/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an incident carries for the next owner of its job: its messages, and what people did with it. */
#ifndef NT_PROTO_WIRE_DELIVERY_H
#define NT_PROTO_WIRE_DELIVERY_H

#include <stdint.h>

struct nt_delivery {
	const char *receiver, *event, *state, *severity;
	uint32_t attempts;
	uint64_t real_ns;
};

struct nt_handling {
	uint64_t revision; /* 0: nothing was done */
	uint64_t acknowledged_real_ns, silenced_real_ns, silenced_until_real_ns;
	const char *acknowledged_by, *silenced_by;
};

#endif
