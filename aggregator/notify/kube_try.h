/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A request of a message to the Kubernetes API server, and what its answer means. */
#ifndef NT_AGGREGATOR_NOTIFY_KUBE_TRY_H
#define NT_AGGREGATOR_NOTIFY_KUBE_TRY_H

#include <jansson.h>

#include "aggregator/notify/attempt.h"
#include "common/kube/kube.h"

struct nt_kube_try {
	struct nt_kube *kube;
	uint64_t timeout_ns;
	size_t max_bytes; /* of the reply; 0: 1 MiB, as a node may list many images and volumes */
	struct nt_attempt attempt; /* of the last request */
};

/* Blocks. document: NULL for none. The caller always releases the zeroed reply. -ENOMEM. */
NT_MUST_CHECK int nt_kube_try_call(struct nt_kube_try *try, enum nt_kube_method method,
				   const char *path, const json_t *document,
				   struct nt_kube_reply *ret_reply);

/* Gets an object. *ret_object stays NULL where the attempt failed; the caller owns it. -ENOMEM. */
NT_MUST_CHECK int nt_kube_try_get(struct nt_kube_try *try, const char *path, json_t **ret_object);

#endif
