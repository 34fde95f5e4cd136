/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sends an incident to a Kubernetes API server: Events and, optionally, node conditions. */
#ifndef NT_AGGREGATOR_NOTIFY_KUBE_NOTICE_H
#define NT_AGGREGATOR_NOTIFY_KUBE_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/notify/attempt.h"
#include "aggregator/notify/kube_action.h"
#include "common/base/cleanup.h"
#include "common/kube/kube.h"

struct nt_kube_notice {
	const char *id; /* of the message */
	const char *body; /* a webhook body */
	size_t body_len;
	bool conditions; /* also set node conditions */
	struct nt_kube_action *action; /* also taint or cordon; NULL: do not */
	uint64_t timeout_ns; /* of each request */
};

/*
 * Blocks. NT_ATTEMPT_TAKEN: every pod and node has its event, or the API server refused it for
 * good. Retries are idempotent. Adds the number of objects without an event (refused, invalid name,
 * over the cap) to *ret_left_out. -ENOMEM.
 */
NT_MUST_CHECK int nt_kube_notice_send(struct nt_kube *kube, const struct nt_kube_notice *notice,
				      struct nt_attempt *ret_attempt, size_t *ret_left_out);

#endif
