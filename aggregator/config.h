/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The configuration of neutracer-aggregator. */
#ifndef NT_AGGREGATOR_CONFIG_H
#define NT_AGGREGATOR_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bus/bus.h"
#include "common/kube/kube.h"
#include "common/options/opt.h"

enum nt_tls_client_auth {
	NT_TLS_CLIENT_REQUIRED,
	NT_TLS_CLIENT_OPTIONAL,
};

struct nt_aggregator_config {
	char *bus;
	struct nt_bus_security bus_security;
	char *member, *advertise; /* NULL: none */
	char *listen, *token_file, *tls_cert_file, *tls_key_file;
	char *tls_client_ca_file; /* NULL: none */
	uint32_t tls_client_auth; /* enum nt_tls_client_auth */
	bool metrics_open;
	char *store; /* "": none */
	uint64_t store_bytes;
	char *webhook_url_file, *webhook_secret_file, *receivers_file; /* NULL: none */
	struct nt_kube_options kube;
	bool kube_events, kube_node_condition;
	uint32_t kube_action; /* enum nt_kube_action_kind */
	uint32_t kube_action_after, kube_action_limit;
	uint64_t kube_action_window_ns, kube_action_quiet_ns;
	uint64_t silence_alert_ns; /* 0: none */
	uint32_t flap_changes; /* 0: no flap control */
	uint64_t flap_window_ns, flap_quiet_ns;
	char *node_secret_file; /* NULL: none */
	uint32_t signatures; /* enum nt_signing */
	char *enrol_account, *enrol_audience; /* NULL: no node keys are issued */
	char *user; /* NULL: as started */
	uint64_t resolve_after_ns, frame_min_ns, rewind_ns, save_every_ns;
	uint32_t auto_level;
	uint64_t auto_level_ns;
	uint32_t node_method; /* enum nt_anomaly_method */
	double node_false_alarms; /* per node and day */
	double size_floor, critical_slowdown, false_alarms_a_day;
	double gpu_hour_price, gpu_watts, co2_kg_per_kwh; /* 0: unknown */
	char *currency;
	uint32_t max_jobs, max_ranks, max_nodes;
};

extern const struct nt_opt_program nt_aggregator_program;

/* nt_opt_load(), and what one option requires of another. */
NT_MUST_CHECK int nt_aggregator_config_load(int argc, char **argv,
					    struct nt_aggregator_config *config,
					    struct nt_opt_error *ret_error);

#endif
