/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The caps of this node that are reached, and the owners affected: for the log, /readyz and the
 * node's vector. A cap is logged when it is reached, and again only after a minute without losses.
 * Loop thread only.
 */
#ifndef NT_AGENT_PUBLISH_LIMIT_H
#define NT_AGENT_PUBLISH_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identity/share.h"
#include "proto/wire.h"

enum nt_limit_what {
	NT_LIMIT_DISCOVERY, /* processes that map a library, in agent/discover/process_table.h */
	NT_LIMIT_PROCESSES, /* watched, in agent/tracker/tracker.h */
	NT_LIMIT_KEYS, /* of jobs */
	NT_LIMIT_COMMS, /* of all processes */
	NT_LIMIT_ORPHANS, /* events held until discovery */
	NT_LIMIT_ATTACHMENTS, /* library files */
	NT_LIMIT_END,
};

enum {
	NT_LIMIT_TEXT = 192,
};

/* Zeroed: no cap is reached. */
struct nt_limits {
	struct {
		struct nt_share_report report; /* as of the last check */
		uint64_t over_ns; /* monotonic, when something was left out last; 0: never */
		bool reported;
	} of[NT_LIMIT_END];
};

enum nt_limit_news {
	NT_LIMIT_NONE,
	NT_LIMIT_BEGINS,
	NT_LIMIT_ENDS,
};

/* Call once a second. */
enum nt_limit_news nt_limits_look(struct nt_limits *limits, enum nt_limit_what what,
				  const struct nt_share *share, uint64_t mono_ns);

/* "processes", as in the labels of the metrics. */
const char *nt_limit_name(enum nt_limit_what what);

/* "76 processes left out, of user 65534 (cap 1024)". Returns text. */
const char *nt_limit_text(const struct nt_limits *limits, enum nt_limit_what what,
			  char text[NT_LIMIT_TEXT]);

/* The reached caps, with borrowed texts. Returns their number. */
size_t nt_limits_list(const struct nt_limits *limits, struct nt_node_limit ret_limit[NT_LIMIT_END]);

#endif
