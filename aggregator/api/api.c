/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/api/api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/system/clock.h"
#include "proto/json.h"

static const char json[] = "application/json";

/* The routes of docs/api/openapi.yaml; a check script compares both. */
static const struct nt_httpd_route routes[] = {
	{"GET", "/healthz", NT_HTTPD_OPEN, json, NULL, nt_api_healthz, true},
	{"GET", "/readyz", NT_HTTPD_OPEN, json, NULL, nt_api_readyz, true},
	{"GET", "/metrics", NT_HTTPD_READ, "text/plain; version=0.0.4; charset=utf-8", "ranks",
	 nt_api_metrics, true, .guarded = "ranks"},
	{"GET", "/", NT_HTTPD_OPEN, "text/html; charset=utf-8", NULL, nt_api_page},
	{"GET", "/page/{id}", NT_HTTPD_OPEN, "text/javascript; charset=utf-8", NULL,
	 nt_api_page_asset},
	{"GET", "/openapi.yaml", NT_HTTPD_OPEN, "application/yaml", NULL, nt_api_contract},
	{"GET", "/api/v1/jobs", NT_HTTPD_READ, json, "job state since limit cursor", nt_api_jobs},
	{"GET", "/api/v1/jobs/{id}", NT_HTTPD_READ, json, NULL, nt_api_job},
	{"GET", "/api/v1/jobs/{id}/ranks", NT_HTTPD_READ, json, "node limit cursor", nt_api_ranks},
	{"GET", "/api/v1/jobs/{id}/ranks/{rank}/series", NT_HTTPD_READ, json, "metric",
	 nt_api_rank_series},
	{"GET", "/api/v1/jobs/{id}/steps", NT_HTTPD_READ, json, "limit cursor", nt_api_steps},
	{"GET", "/api/v1/jobs/{id}/communicators", NT_HTTPD_READ, json, "limit cursor",
	 nt_api_communicators},
	{"GET", "/api/v1/jobs/{id}/links", NT_HTTPD_READ, json, "limit cursor", nt_api_links},
	{"GET", "/api/v1/jobs/{id}/timeline", NT_HTTPD_READ, json, "since first per_row limit",
	 nt_api_timeline},
	{"GET", "/api/v1/slow-ranks", NT_HTTPD_READ, json, "job class since at limit cursor",
	 nt_api_slow_ranks},
	{"GET", "/api/v1/incidents", NT_HTTPD_READ, json,
	 "job class state severity since limit cursor", nt_api_incidents},
	{"GET", "/api/v1/incidents/{id}", NT_HTTPD_READ, json, NULL, nt_api_incident},
	{"GET", "/api/v1/events", NT_HTTPD_READ, "text/event-stream", "job after", nt_api_events},
	{"POST", "/api/v1/incidents/{id}/acknowledge", NT_HTTPD_ADMIN, json, NULL,
	 nt_api_acknowledge},
	{"DELETE", "/api/v1/incidents/{id}/acknowledge", NT_HTTPD_ADMIN, json, NULL,
	 nt_api_unacknowledge},
	{"POST", "/api/v1/incidents/{id}/silence", NT_HTTPD_ADMIN, json, NULL, nt_api_silence},
	{"DELETE", "/api/v1/incidents/{id}/silence", NT_HTTPD_ADMIN, json, NULL, nt_api_unsilence},
	{"POST", "/api/v1/incidents/{id}/annotate", NT_HTTPD_ADMIN, json, NULL, nt_api_annotate},
	{"GET", "/api/v1/agents", NT_HTTPD_READ, json, "node limit cursor", nt_api_agents},
	{"GET", "/api/v1/nodes", NT_HTTPD_READ, json, "state limit cursor", nt_api_nodes},
	{"GET", "/api/v1/nodes/{id}/scores", NT_HTTPD_READ, json, NULL, nt_api_node_scores},
	{"GET", "/api/v1/nodes/{id}/series", NT_HTTPD_READ, json, "metric", nt_api_node_series},
	{"GET", "/api/v1/levels", NT_HTTPD_READ, json, "job node limit cursor", nt_api_levels},
	{"POST", "/api/v1/levels", NT_HTTPD_ADMIN, json, NULL, nt_api_set_level},
	{"GET", "/api/v1/profiles", NT_HTTPD_READ, json, "job", nt_api_profiles},
	{"POST", "/api/v1/profiles", NT_HTTPD_ADMIN, json, NULL, nt_api_take_profile},
	{"GET", "/api/v1/profiles/{id}", NT_HTTPD_READ, json, NULL, nt_api_profile},
	{"GET", "/api/v1/audit", NT_HTTPD_ADMIN, json, "limit cursor", nt_api_audit},
	{"POST", "/api/v1/session", NT_HTTPD_READ, json, NULL, nt_api_begin_session},
	{"GET", "/api/v1/session", NT_HTTPD_READ, json, NULL, nt_api_session},
	{"DELETE", "/api/v1/session", NT_HTTPD_READ, json, NULL, nt_api_end_session},
	{"GET", "/api/v1/receivers", NT_HTTPD_READ, json, NULL, nt_api_receivers},
	{"POST", "/api/v1/receivers/{id}/test", NT_HTTPD_ADMIN, json, NULL, nt_api_test_receiver},
	/* Its bearer token is a cluster token, which the handler submits for review. */
	{"POST", "/api/v1/node-keys", NT_HTTPD_OPEN, json, NULL, nt_api_node_keys},
	/* The last route: omitted if the aggregator does not offer it. */
	{"POST", "/api/v1/jobs/{id}/rebaseline", NT_HTTPD_ADMIN, json, NULL, nt_api_rebaseline},
};

enum {
	ROUTES = sizeof(routes) / sizeof(routes[0]),
};

/* The contract is embedded, so that the served one matches the build. */
__asm__(".pushsection .rodata\n"
	"nt_api_contract_text:\n"
	".incbin \"docs/api/openapi.yaml\"\n"
	"0:\n"
	".balign 8\n"
	"nt_api_contract_bytes:\n"
	".8byte 0b - nt_api_contract_text\n"
	".popsection\n");
extern const char nt_api_contract_text[];
extern const uint64_t nt_api_contract_bytes;

int nt_api_contract(void *data, const struct nt_httpd_request *request,
		    struct nt_httpd_reply *reply)
{
	(void)data;
	(void)request;
	return nt_buf_append(&reply->body, nt_api_contract_text, nt_api_contract_bytes);
}

/* ---- health ---------------------------------------------------------------------------------- */

static int add_check(json_t *checks, const char *name, int result, const char *text,
		     bool *all_right)
{
	nt_autojson json_t *check = json_object();
	int failed = 0;

	failed |= json_object_set_new(check, "name", nt_json_text(name));
	failed |= json_object_set_new(check, "ok", json_boolean(result == 0));
	failed |= json_object_set_new(check, "detail", nt_json_text(text));
	if (result)
		*all_right = false;
	return failed ? -1 : json_array_append(checks, check);
}

/* Runs the configured checks, or only the vital ones. */
static int add_checks(const struct nt_api *api, json_t *checks, bool vital_only, bool *all_right)
{
	for (size_t i = 0; i < api->options.checks; i++) {
		const struct nt_api_check *check = &api->check[i];
		char text[160] = "";
		int result;

		if (vital_only && !check->vital)
			continue;
		result = check->check(check->data, text);
		if (add_check(checks, check->name, result, text, all_right))
			return -ENOMEM;
	}
	return 0;
}

/* No agents is normal before the first job: reported, but does not affect readiness. */
static int add_agents(json_t *checks, const struct nt_snapshot *snapshot)
{
	size_t nodes = 0, silent = 0;
	bool all_right = true;
	char text[160] = "";

	for (size_t i = 0; snapshot && i < snapshot->nodes; i++) {
		const struct nt_snapshot_node *node = &snapshot->node[i];

		nodes += node->ranks > 0;
		silent += node->ranks > 0 && node->silent;
	}
	if (!nodes)
		(void)snprintf(text, sizeof(text), "no agent reports a rank");
	else if (silent)
		(void)snprintf(text, sizeof(text),
			       "%zu of %zu nodes with ranks without data for 10 s", silent, nodes);
	return add_check(checks, "agents", 0, text, &all_right);
}

static int reply_checks(struct nt_httpd_reply *reply, json_t *checks, bool all_right)
{
	nt_autojson json_t *object = json_object();

	if (json_object_set_new(object, "status", json_string(all_right ? "ok" : "failing")) ||
	    json_object_set(object, "checks", checks))
		return -ENOMEM;
	reply->status = all_right ? 200 : 503;
	return nt_api_reply_object(reply, nt_take(object));
}

int nt_api_healthz(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autojson json_t *checks = json_array();
	bool all_right = true;

	(void)request;
	if (!checks || add_checks(api, checks, true, &all_right) < 0)
		return -ENOMEM;
	return reply_checks(reply, checks, all_right);
}

int nt_api_readyz(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autojson json_t *checks = json_array();
	struct nt_store_stats store;
	bool all_right = true;

	(void)request;
	if (!checks || add_check(checks, "decisions", snapshot ? 0 : -EAGAIN,
				 snapshot ? "" : "the detection loop has not started", &all_right))
		return -ENOMEM;
	if (api->options.store) {
		nt_store_stats(api->options.store, &store);
		if (add_check(checks, "store", store.healthy ? 0 : -EIO, store.problem, &all_right))
			return -ENOMEM;
	}
	if (add_checks(api, checks, false, &all_right) < 0 || add_agents(checks, snapshot) < 0)
		return -ENOMEM;
	return reply_checks(reply, checks, all_right);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int copy_options(struct nt_api *api, const struct nt_api_options *options)
{
	api->options = *options;
	api->started_real_ns = nt_clock_real_ns();
	api->check = calloc(options->checks + 1, sizeof(*api->check));
	api->route = calloc(ROUTES, sizeof(*api->route));
	if (!api->check || !api->route)
		return -ENOMEM;
	if (options->checks)
		memcpy(api->check, options->check, options->checks * sizeof(*api->check));
	memcpy(api->route, routes, sizeof(routes));
	for (size_t i = 0; i < ROUTES; i++) {
		if (options->metrics_open && !strcmp(api->route[i].path, "/metrics"))
			api->route[i].access = NT_HTTPD_OPEN;
	}
	return 0;
}

int nt_api_start(const struct nt_api_options *options, struct nt_api **ret_api,
		 struct nt_api_error *ret_error)
{
	nt_auto(nt_api) struct nt_api *api = calloc(1, sizeof(*api));
	struct nt_httpd_error error;
	struct nt_httpd_options httpd;
	int r;

	(void)snprintf(ret_error->text, sizeof(ret_error->text), "out of memory");
	if (!api || copy_options(api, options) < 0)
		return -ENOMEM;
	httpd = (struct nt_httpd_options){
		.listen = options->listen,
		.route = api->route,
		.routes = options->rebaseline ? ROUTES : ROUTES - 1,
		.data = api,
		.on_write = nt_api_note_write,
		.token_file = options->token_file,
		.tls_cert_file = options->tls_cert_file,
		.tls_key_file = options->tls_key_file,
		.tls_client_ca_file = options->tls_client_ca_file,
		.tls_client_optional = options->tls_client_optional,
		.max_connections = options->max_connections,
		.max_connections_per_ip = options->max_connections_per_ip,
		.header_timeout_ns = options->header_timeout_ns,
		.request_timeout_ns = options->request_timeout_ns,
		.max_auth_failures = options->max_auth_failures,
		.events = options->event_desk ? nt_event_desk_ring(options->event_desk) : NULL,
		.stream_life_ns = options->stream_life_ns,
	};
	r = nt_audit_open(options->audit_file, &api->audit);
	if (r < 0) {
		(void)snprintf(ret_error->text, sizeof(ret_error->text), "audit log '%s': %s",
			       options->audit_file, strerrordesc_np(-r));
		return r;
	}
	r = nt_httpd_start(&httpd, &api->httpd, &error);
	if (r < 0) {
		(void)snprintf(ret_error->text, sizeof(ret_error->text), "%s", error.text);
		return r;
	}
	*ret_api = nt_take(api);
	return 0;
}

void nt_api_stop(struct nt_api *api)
{
	if (!api)
		return;
	nt_httpd_stop(api->httpd);
	nt_audit_close(api->audit);
	free(api->check);
	free(api->route);
	free(api);
}

bool nt_api_tokens_are_old(const struct nt_api *api, struct nt_token_error *ret_error)
{
	return nt_httpd_tokens_are_old(api->httpd, ret_error);
}

uint16_t nt_api_port(const struct nt_api *api)
{
	return nt_httpd_port(api->httpd);
}
