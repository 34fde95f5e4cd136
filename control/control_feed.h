/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads the control topic in a thread of its own, from its oldest record on, so that requests
 * survive a restart of their reader. The owner's loop takes them from a bounded queue; a thread
 * that finds it full waits. Bad records are counted and passed over.
 */
#ifndef NT_CONTROL_CONTROL_FEED_H
#define NT_CONTROL_CONTROL_FEED_H

#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "proto/wire.h"

enum {
	NT_CONTROL_FEED_QUEUE = 256,
};

/* Monotonic since start, but for those that end in _now. */
struct nt_control_feed_stats {
	uint64_t records, bad; /* bad: not decodable, or no control */
	uint64_t open_failures;
	uint64_t open_now; /* 1: the topic is being read */
};

struct nt_control_feed;

/*
 * url, options and its client are copied; the files that its security names are borrowed. The bus is
 * opened by the thread.
 */
NT_MUST_CHECK int nt_control_feed_start(const char *url, const struct nt_bus_options *options,
					struct nt_control_feed **ret_feed);
void nt_control_feed_stop(struct nt_control_feed *feed);
NT_DEFINE_AUTO(nt_control_feed, nt_control_feed_stop)

/* The next message, which the caller owns; its body is a control. NULL: none. Does not block. */
struct nt_message *nt_control_feed_take(struct nt_control_feed *feed);

void nt_control_feed_stats(struct nt_control_feed *feed, struct nt_control_feed_stats *ret_stats);

#endif
