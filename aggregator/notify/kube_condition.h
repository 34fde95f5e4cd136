/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The condition of a node that says whether an incident that accuses it is open. Its message begins
 * with the incidents that are: "ID,ID: summary". So nothing has to be remembered but what the API
 * server keeps, whichever aggregator writes it.
 */
#ifndef NT_AGGREGATOR_NOTIFY_KUBE_CONDITION_H
#define NT_AGGREGATOR_NOTIFY_KUBE_CONDITION_H

#include <jansson.h>

#include "common/base/cleanup.h"

#define NT_KUBE_CONDITION "NeuTracerDegraded"

enum {
	NT_KUBE_CONDITION_INCIDENTS = 8, /* that a condition names; oldest first to be forgotten */
};

/*
 * What to merge into the status of `node`, as the API server gave it, once `message` (the body of a
 * webhook) holds. It carries the version of the node: who changed it in the meantime is not
 * overwritten. 0 and *ret_patch, which the caller owns; NULL where nothing changes. -ENOMEM.
 */
NT_MUST_CHECK int nt_kube_condition_patch(const json_t *node, const json_t *message,
					  json_t **ret_patch);

#endif
