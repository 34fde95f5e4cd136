/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The REST interface, specified by docs/api/openapi.yaml. It serves the board's newest snapshot and
 * the store, in threads of its own.
 */
#ifndef NT_AGGREGATOR_API_API_H
#define NT_AGGREGATOR_API_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/api/enrol.h"
#include "aggregator/group/event_desk.h"
#include "aggregator/group/level_desk.h"
#include "aggregator/group/node_desk.h"
#include "aggregator/group/profile_desk.h"
#include "aggregator/group/series_desk.h"
#include "aggregator/notify/notify.h"
#include "aggregator/store/store.h"
#include "common/base/cleanup.h"
#include "common/http/token.h"
#include "engine/snapshot.h"

/* A health check: returns 0, or a negative errno and the reason in text. Called from any thread. */
struct nt_api_check {
	const char *name; /* "bus" */
	bool vital; /* failure: not alive (/healthz); otherwise not ready (/readyz) */
	int (*check)(void *data, char text[160]);
	void *data;
};

struct nt_api_options {
	const char *listen; /* "127.0.0.1:9480", "[::]:9480"; port 0: any */
	/* created with a new token if missing; NULL: no token needed */
	const char *token_file;
	const char *tls_cert_file, *tls_key_file; /* PEM; both or neither */
	const char *tls_client_ca_file; /* PEM; NULL: no certificates of clients */
	bool tls_client_optional; /* clients without one are accepted */
	bool metrics_open; /* /metrics without token */
	uint32_t max_connections, max_connections_per_ip; /* 0: 1024, 256 */
	uint64_t header_timeout_ns; /* from accept to the end of the header; 0: 5 s */
	uint64_t request_timeout_ns; /* from there to the end of the answer; 0: 15 s */
	uint32_t max_auth_failures; /* per address and minute, then 429; 0: 60 */
	struct nt_board *board; /* borrowed */
	struct nt_store *store; /* borrowed; NULL: only open incidents are known */
	struct nt_notify *notify; /* borrowed; NULL: there are no receivers */
	const char *address; /* borrowed: address of this interface for others; NULL: unknown */
	const char *audit_file; /* borrowed; NULL: the audit log is in memory only */
	const struct nt_api_check *check; /* borrowed */
	size_t checks;
	struct nt_enrol *enrol; /* borrowed; NULL: no node keys are issued */
	/* Silent jobs over the cap of own alerts, from any thread. NULL: silence raises none. */
	size_t (*silent_over_cap)(void *data);
	void *silent_data; /* borrowed */
	struct nt_node_desk *node_desk; /* borrowed; NULL: no node is scored */
	struct nt_level_desk *level_desk; /* borrowed; NULL: no levels are set */
	struct nt_profile_desk *profile_desk; /* borrowed; NULL: no profiles are taken */
	struct nt_event_desk *event_desk; /* borrowed; NULL: no live events */
	struct nt_series_desk *series_desk; /* borrowed; NULL: the past is not kept */
	uint64_t stream_life_ns; /* of a stream of events; 0: 1 h */
	/* nt_service_rebaseline(); NULL: no such route. */
	int (*rebaseline)(void *data, const char *job_id);
	void *data;
};

struct nt_api_error {
	char text[512]; /* one line: what could not be bound, read or created */
};

struct nt_api;

/* Serves until nt_api_stop(). -EADDRINUSE, -EACCES, -EINVAL …, with *ret_error filled. */
NT_MUST_CHECK int nt_api_start(const struct nt_api_options *options, struct nt_api **ret_api,
			       struct nt_api_error *ret_error);
void nt_api_stop(struct nt_api *api);
NT_DEFINE_AUTO(nt_api, nt_api_stop)

/*
 * Whether the token file is now invalid or missing; the tokens last read remain valid. *ret_error
 * then has the reason.
 */
bool nt_api_tokens_are_old(const struct nt_api *api, struct nt_token_error *ret_error);

/* The TCP port of the listener. */
uint16_t nt_api_port(const struct nt_api *api);

#endif
