/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Opt-in: taints or cordons a node after so many incidents that accuse it, and undoes that when it
 * has been quiet. What the node had before is not touched. All state is on the node objects: the
 * annotations neutracer.io/incidents, neutracer.io/action ("taint@TIME") and neutracer.io/reserved (a
 * time), and the label neutracer.io/action, "reserved", "active" or "lifted", by which nodes are found.
 */
#ifndef NT_AGGREGATOR_NOTIFY_KUBE_ACTION_H
#define NT_AGGREGATOR_NOTIFY_KUBE_ACTION_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>

#include "aggregator/notify/kube_try.h"
#include "common/base/cleanup.h"

#define NT_KUBE_TAINT          "neutracer.io/degraded"
#define NT_KUBE_ACTION_NAME    "neutracer.io/action"
#define NT_KUBE_INCIDENTS_NAME "neutracer.io/incidents"
#define NT_KUBE_RESERVED_NAME  "neutracer.io/reserved"
#define NT_KUBE_ACTION_CHOICES "none taint cordon undo"

enum nt_kube_action_kind {
	NT_KUBE_ACTION_NONE,
	NT_KUBE_ACTION_TAINT, /* NoSchedule */
	NT_KUBE_ACTION_CORDON,
	NT_KUBE_ACTION_UNDO, /* acts on no node, and undoes what was done */
};

struct nt_kube_action_options {
	enum nt_kube_action_kind kind;
	uint32_t after; /* incidents of a node … */
	uint64_t window_ns; /* … within this time */
	uint64_t quiet_ns; /* without an incident, until it is undone */
	uint32_t limit; /* of the cluster: nodes at a time, and actions an hour */
};

/* Counters are read by other threads; monotonic since start. */
struct nt_kube_action {
	struct nt_kube_action_options options;
	atomic_ullong acted, lifted;
	atomic_ullong limited; /* not done because of the limit */
};

/*
 * Notes the incident of a message (a webhook body) on the node, and acts if it is time. The node
 * must exist. Idempotent; the result is in try->attempt. action NULL: nothing. -ENOMEM.
 */
NT_MUST_CHECK int nt_kube_action_note(struct nt_kube_action *action, struct nt_kube_try *try,
				      const char *node, const json_t *message);

/* Undoes what is over on all nodes. The result is in try->attempt. -ENOMEM. */
NT_MUST_CHECK int nt_kube_action_lift(struct nt_kube_action *action, struct nt_kube_try *try);

#endif
