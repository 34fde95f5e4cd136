/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the agent shows over HTTP, to whoever asks: that it lives, that it watches, and its metrics.
 * None of the answers depends on the bus, so that brokers that are away restart no agent.
 */
#ifndef NT_AGENT_PUBLISH_HEALTH_SERVER_H
#define NT_AGENT_PUBLISH_HEALTH_SERVER_H

#include <stdint.h>

#include "agent/publish/limit.h"
#include "common/base/cleanup.h"
#include "common/http/httpd.h"
#include "common/system/metrics.h"

struct nt_health_server;

/* The metrics are borrowed. *ret_error says what is wrong with the address. */
NT_MUST_CHECK int nt_health_server_start(const char *listen, const struct nt_metrics *metrics,
					 struct nt_health_server **ret_front,
					 struct nt_httpd_error *ret_error);
void nt_health_server_stop(struct nt_health_server *front);
NT_DEFINE_AUTO(nt_health_server, nt_health_server_stop)

/* The loop has gone round; it is watching from the first time on. For the loop's thread. */
void nt_health_server_turned(struct nt_health_server *front, uint64_t mono_ns);

/*
 * The caps that are reached, as checks of /readyz. They keep nobody from being ready: a restart would
 * not help. For the loop's thread; front NULL: nobody asks.
 */
void nt_health_server_limits(struct nt_health_server *front, const struct nt_limits *limits);

void nt_health_server_stats(const struct nt_health_server *front, struct nt_httpd_stats *ret_stats);

uint16_t nt_health_server_port(const struct nt_health_server *front);

#endif
