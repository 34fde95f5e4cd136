/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The notifier: one thread per receiver delivers its messages of the store's outbox, one at a time,
 * with retries. No message is lost if a receiver is down or the aggregator crashes, and receivers
 * do not delay each other.
 */
#ifndef NT_AGGREGATOR_NOTIFY_NOTIFY_H
#define NT_AGGREGATOR_NOTIFY_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/store/store.h"
#include "common/base/cleanup.h"
#include "common/kube/kube.h"

struct nt_notify_receiver {
	const char *name; /* as given to the store */
	/* A webhook: */
	const char *url; /* a secret: never logged */
	const char *secret; /* signs the messages; NULL: they are not signed. "whsec_…": base64 */
	/* Or a Kubernetes API server, borrowed; outlives the notifier, which stops it on exit: */
	struct nt_kube *kube;
	bool conditions; /* also set node conditions */
};

struct nt_notify_options {
	struct nt_store *store; /* borrowed; outlives the notifier */
	const struct nt_notify_receiver *receiver; /* copied */
	size_t receivers;
	/* Zeros: 5 s, 15 s, 1 s, 5 min, 1 h. */
	uint64_t connect_timeout_ns, total_timeout_ns, first_retry_ns, longest_retry_ns, give_up_ns;
};

struct nt_notify;

/* -EINVAL: a URL that is not http or https, or a "whsec_" secret that is not base64. */
NT_MUST_CHECK int nt_notify_start(const struct nt_notify_options *options,
				  struct nt_notify **ret_notify);
/* Waits for deliveries in progress, at most their timeouts; unsent messages stay in the outbox. */
void nt_notify_stop(struct nt_notify *notify);
NT_DEFINE_AUTO(nt_notify, nt_notify_stop)

/* Wakes the receivers' threads. From any thread. For nt_store_on_queued(). */
void nt_notify_wake(void *notify);

/*
 * Reads a receiver's URL or secret: the first line of a file. The caller frees *ret_text. -EINVAL
 * for an empty file, -EFBIG over 8 KiB.
 */
NT_MUST_CHECK int nt_notify_read_secret(const char *path, char **ret_text);

/* Monotonic since start. */
struct nt_notify_stats {
	uint64_t sent, retried, failed, expired;
	uint64_t kube_left_out; /* pods and nodes without an event, in sent messages */
};

void nt_notify_stats(const struct nt_notify *notify, struct nt_notify_stats *ret_stats);

#endif
