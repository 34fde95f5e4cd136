/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The node condition that shows whether an incident that accuses the node is open. Its message
 * begins with the open incidents: "ID,ID: summary". The API server thus holds all state, whichever
 * aggregator writes it.
 */
#ifndef NT_AGGREGATOR_NOTIFY_KUBE_CONDITION_H
#define NT_AGGREGATOR_NOTIFY_KUBE_CONDITION_H

#include <jansson.h>

#include "common/base/cleanup.h"

#define NT_KUBE_CONDITION "NeuTracerDegraded"

enum {
	NT_KUBE_CONDITION_INCIDENTS = 8, /* incidents in a condition; the oldest is dropped first */
};

/*
 * Builds a merge patch for the status of `node`, as returned by the API server, from `message` (a
 * webhook body). It carries the node's resourceVersion, so concurrent changes are not overwritten.
 * The caller owns *ret_patch; NULL: no change. -ENOMEM.
 */
NT_MUST_CHECK int nt_kube_condition_patch(const json_t *node, const json_t *message,
					  json_t **ret_patch);

#endif
