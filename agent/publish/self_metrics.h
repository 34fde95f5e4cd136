/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent's own metrics. Every kind of loss has a counter. */
#ifndef NT_AGENT_PUBLISH_SELF_METRICS_H
#define NT_AGENT_PUBLISH_SELF_METRICS_H

#include <stdint.h>

#include "agent/discover/discover.h"
#include "agent/discover/probed_ranks.h"
#include "agent/discover/process_reader.h"
#include "agent/discover/quarantine.h"
#include "agent/governor/governor.h"
#include "agent/governor/own_links.h"
#include "agent/gpu/gpu_health.h"
#include "agent/identity/placement_lookup.h"
#include "agent/probes/attach.h"
#include "agent/publish/enrolment.h"
#include "agent/publish/limit.h"
#include "agent/publish/publisher.h"
#include "agent/ras/ras.h"
#include "agent/rdma/rdma.h"
#include "agent/system/system.h"
#include "agent/tracker/tracker.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "common/bus/bus_disk_queue.h"
#include "common/http/httpd.h"
#include "common/system/metrics.h"
#include "control/control_feed.h"
#include "control/level_table.h"

/* All counters of the agent at one instant. */
struct nt_self_metrics_reading {
	struct nt_attach_stats attach;
	struct nt_governor_stats governor;
	struct nt_own_links_stats own_links;
	struct nt_probed_ranks_stats interpreters;
	struct nt_discover_stats discover;
	struct nt_process_reader_stats process_reader;
	struct nt_quarantine_stats quarantine;
	uint64_t workers_started, workers_killed, workers_left;
	struct nt_probed_ranks_stats gpu_ranks, nccl_ranks, send_ranks;
	struct nt_probed_ranks_stats query_ranks;
	struct nt_gpu_health_stats gpu_health; /* zeros where none is read */
	struct nt_ras_stats ras; /* zeros where it is off */
	struct nt_rdma_stats rdma;
	struct nt_system_stats system; /* the same */
	struct nt_tracker_stats tracker;
	struct nt_publisher_stats publisher;
	struct nt_placement_lookup_stats placement_lookup;
	struct nt_enrolment_stats enrolment; /* zeros without one */
	struct nt_control_feed_stats control_feed; /* zeros if requests are not read */
	struct nt_level_table_stats levels;
	struct nt_bus_stats bus;
	struct nt_disk_queue_stats disk_queue; /* zeros without one */
	uint64_t left_out[NT_LIMIT_END]; /* now, by cap */
	struct nt_httpd_stats http; /* zeros without a server */
	uint64_t attachments_over_cap, gpu_ends_over_cap, ports_over_cap, port_rates_over_cap;
	uint64_t node_devices_over_cap;
	uint64_t attach_failures, uncovered_calls, detail_failures, detailed;
	uint64_t stacks_read, stacks_failed, stacks_refused, stacks_unsent;
	uint64_t cpu_ns, resident_bytes;
};

/* The agent's table of metrics; the caller frees it. */
NT_MUST_CHECK int nt_self_metrics_new(struct nt_metrics **ret_metrics);
void nt_self_metrics_set(struct nt_metrics *metrics, const struct nt_self_metrics_reading *reading);

/* Events that never reached the tracker. */
uint64_t nt_self_metrics_lost(const struct nt_attach_stats *attach);

#endif
