/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The agent's HTTP server: liveness, readiness and metrics, without authentication. No response
 * depends on the bus, so that unreachable brokers restart no agent.
 */
#ifndef NT_AGENT_PUBLISH_HEALTH_SERVER_H
#define NT_AGENT_PUBLISH_HEALTH_SERVER_H

#include <stdint.h>

#include "agent/publish/limit.h"
#include "common/base/cleanup.h"
#include "common/http/httpd.h"
#include "common/system/metrics.h"

struct nt_health_server;

/* The metrics are borrowed. *ret_error describes an invalid address. */
NT_MUST_CHECK int nt_health_server_start(const char *listen, const struct nt_metrics *metrics,
					 struct nt_health_server **ret_server,
					 struct nt_httpd_error *ret_error);
void nt_health_server_stop(struct nt_health_server *server);
NT_DEFINE_AUTO(nt_health_server, nt_health_server_stop)

/* A turn of the loop has completed; the agent is ready after the first. Loop thread only. */
void nt_health_server_turned(struct nt_health_server *server, uint64_t mono_ns);

/*
 * Publishes the reached caps as checks of /readyz. They do not affect readiness: a restart would
 * not help. Loop thread only; server NULL: no effect.
 */
void nt_health_server_limits(struct nt_health_server *server, const struct nt_limits *limits);

void nt_health_server_stats(const struct nt_health_server *server,
			    struct nt_httpd_stats *ret_stats);

uint16_t nt_health_server_port(const struct nt_health_server *server);

#endif
