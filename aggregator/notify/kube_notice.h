/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tells a Kubernetes API server of an incident: Events, and where asked for the condition of nodes. */
#ifndef NT_AGGREGATOR_NOTIFY_KUBE_NOTICE_H
#define NT_AGGREGATOR_NOTIFY_KUBE_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/notify/attempt.h"
#include "common/base/cleanup.h"
#include "common/kube/kube.h"

struct nt_kube_notice {
	const char *id; /* of the message */
	const char *body; /* as of a webhook */
	size_t body_len;
	bool conditions; /* of nodes, too */
	uint64_t timeout_ns; /* of each request */
};

/*
 * Blocks. Taken: every pod and node has its event, or the API server wants none of it; it is no harm to
 * try again, for an event is made once. *ret_left_out grows by those that got none: refused, badly
 * named, too many.
 * -ENOMEM.
 */
NT_MUST_CHECK int nt_kube_notice_send(struct nt_kube *kube, const struct nt_kube_notice *notice,
				      struct nt_attempt *ret_attempt, size_t *ret_left_out);

#endif
