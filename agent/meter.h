/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the agent tells of itself: every loss has a name. */
#ifndef NT_AGENT_METER_H
#define NT_AGENT_METER_H

#include <stdint.h>

#include "agent/attach.h"
#include "agent/discover.h"
#include "agent/enrolment.h"
#include "agent/governor.h"
#include "agent/interpreter.h"
#include "agent/limit.h"
#include "agent/locator.h"
#include "agent/own_links.h"
#include "agent/publisher.h"
#include "agent/quarantine.h"
#include "agent/remote.h"
#include "agent/tracker.h"
#include "common/bus.h"
#include "common/bus_shelter.h"
#include "common/cleanup.h"
#include "common/httpd.h"
#include "common/metrics.h"

/* All that is counted anywhere in the agent, at one instant. */
struct nt_meter_reading {
	struct nt_attach_stats attach;
	struct nt_governor_stats governor;
	struct nt_own_links_stats own_links;
	struct nt_interpreters_stats interpreters;
	struct nt_discover_stats discover;
	struct nt_remote_stats remote;
	struct nt_quarantine_stats quarantine;
	uint64_t workers_started, workers_killed, workers_left;
	struct nt_tracker_stats tracker;
	struct nt_publisher_stats publisher;
	struct nt_locator_stats locator;
	struct nt_enrolment_stats enrolment; /* zeros without one */
	struct nt_bus_stats bus;
	struct nt_shelter_stats shelter; /* zeros without one */
	uint64_t left_out[NT_LIMIT_END]; /* now, by cap */
	struct nt_httpd_stats http; /* zeros without a front */
	uint64_t attachments_over_cap, ports_over_cap, attach_failures;
	uint64_t cpu_ns, resident_bytes;
};

/* The metrics with the agent's table; the caller frees them. */
NT_MUST_CHECK int nt_meter_new(struct nt_metrics **ret_metrics);
void nt_meter_set(struct nt_metrics *metrics, const struct nt_meter_reading *reading);

/* Replaces the file whole. */
NT_MUST_CHECK int nt_meter_write(const struct nt_metrics *metrics, const char *path);

/* Events that never reached the tracker. */
uint64_t nt_meter_lost(const struct nt_attach_stats *attach);

#endif
