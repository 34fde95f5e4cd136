/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the agent shows over HTTP, to whoever asks: that it lives, that it watches, and its metrics.
 * None of the answers depends on the bus, so that brokers that are away restart no agent.
 */
#ifndef NT_AGENT_FRONT_H
#define NT_AGENT_FRONT_H

#include <stdint.h>

#include "agent/limit.h"
#include "common/cleanup.h"
#include "common/httpd.h"
#include "common/metrics.h"

struct nt_front;

/* The metrics are borrowed. *ret_error says what is wrong with the address. */
NT_MUST_CHECK int nt_front_start(const char *listen, const struct nt_metrics *metrics,
				 struct nt_front **ret_front, struct nt_httpd_error *ret_error);
void nt_front_stop(struct nt_front *front);
NT_DEFINE_AUTO(nt_front, nt_front_stop)

/* The loop has gone round; it is watching from the first time on. For the loop's thread. */
void nt_front_turned(struct nt_front *front, uint64_t mono_ns);

/*
 * The caps that are reached, as checks of /readyz. They keep nobody from being ready: a restart would
 * not help. For the loop's thread; front NULL: nobody asks.
 */
void nt_front_limits(struct nt_front *front, const struct nt_limits *limits);

void nt_front_stats(const struct nt_front *front, struct nt_httpd_stats *ret_stats);

uint16_t nt_front_port(const struct nt_front *front);

#endif
