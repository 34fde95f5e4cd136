/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The configuration of neutracer-agent. */
#ifndef NT_AGENT_CONFIG_H
#define NT_AGENT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bus/bus.h"
#include "common/kube/kube.h"
#include "common/options/opt.h"

enum {
	NT_AGENT_MAX_NODE = 255, /* bytes of the node's name */
};

struct nt_agent_config {
	char *bus;
	struct nt_bus_security bus_security;
	char *node; /* NULL: the host's name */
	char *message_key_file; /* NULL: messages are not signed, or the key is enrolled */
	char *enrol_url; /* NULL: no key is requested */
	char *enrol_token_file, *enrol_ca_file;
	char *cgroup; /* NULL: all processes */
	uint64_t window_min_ns, min_call_ns;
	uint64_t gpu_window_ns, gpu_interval_ns;
	uint32_t query_max; /* of CUDA events, of a process and second; 0: none is observed */
	double gpu_peak; /* TFLOP/s; 0: by the model */
	uint32_t level; /* of all ranks, from their start */
	uint32_t detail_rate, detail_owner_rate, detail_node_rate; /* records a second */
	uint64_t ring_bytes;
	uint32_t attach_mode; /* enum nt_attach_mode */
	bool attach_fuse;
	double budget, agent_budget; /* percent */
	uint64_t memory_max; /* bytes; 0: derived from the number of processors */
	uint64_t bus_bytes;
	uint64_t bus_age_ns;
	char *disk_queue; /* "": none */
	uint64_t disk_queue_bytes, disk_queue_age_ns;
	struct nt_kube_options kube;
	char *pod_resources;
	char *nvml, *amdsmi; /* "auto", "none" or a library */
	bool nccl_ras;
	bool requests;
	bool system_events;
	char *metrics_file;
	char *listen; /* NULL: no HTTP server */
};

extern const struct nt_opt_program nt_agent_program;

#endif
