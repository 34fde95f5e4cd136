/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The notifier: one thread per receiver delivers its messages of the store's outbox, in order, with
 * retries. No message is lost if a receiver is down or the aggregator crashes, and receivers do not
 * delay each other.
 */
#ifndef NT_AGGREGATOR_NOTIFY_NOTIFY_H
#define NT_AGGREGATOR_NOTIFY_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/notify/attempt.h"
#include "aggregator/notify/format/format.h"
#include "aggregator/notify/kube_action.h"
#include "aggregator/store/store.h"
#include "common/base/cleanup.h"
#include "common/kube/kube.h"

struct nt_notify_receiver {
	const char *name; /* as given to the store */
	const char *url; /* a secret: never logged */
	const char *secret; /* a key; NULL: none. Of a webhook, "whsec_…" is base64 */
	enum nt_receiver_kind kind;
	const char *const *replica; /* further URLs, of Alertmanager */
	size_t replicas;
	uint64_t repeat_ns; /* open incidents are sent again; 0: they are not */
	uint32_t rate; /* messages a minute; 0: no limit */
	const char *incident_url; /* prefix of links in messages; NULL: none */
	const char *title, *text; /* templates; NULL: none */
	bool remediate; /* NVSentinel: the cluster may be changed by what is sent */
	uint64_t heartbeat_ns; /* between heartbeats; 0: none */
	const char *heartbeat; /* the service's name of it */
	/* Or a Kubernetes API server, borrowed; outlives the notifier, which stops it on exit: */
	struct nt_kube *kube;
	bool conditions; /* also set node conditions */
	struct nt_kube_action_options action; /* also taint or cordon */
};

struct nt_notify_options {
	struct nt_store *store; /* borrowed; outlives the notifier */
	const struct nt_notify_receiver *receiver; /* copied */
	size_t receivers;
	/* Zeros: 5 s, 15 s, 1 s, 5 min, 30 min, 1 h, 24 h, 5 s. */
	uint64_t connect_timeout_ns, total_timeout_ns, first_retry_ns, longest_retry_ns;
	uint64_t longest_wait_ns; /* of what receivers request by Retry-After */
	uint64_t give_up_ns;
	uint64_t give_up_open_ns; /* of the firing message while its incident is open */
	uint64_t split_ns; /* messages refused together: none is begun by itself after it */
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
 * Heartbeats are sent until this monotonic time, and none before the first call. It is called while
 * the detection loop runs. From any thread.
 */
void nt_notify_keep_alive(struct nt_notify *notify, uint64_t until_ns);

/* ---- samples: from any thread ---------------------------------------------------------------- */

enum nt_notify_sample_state {
	NT_NOTIFY_SAMPLE_NONE, /* none was requested since start */
	NT_NOTIFY_SAMPLE_WAITING,
	NT_NOTIFY_SAMPLE_DONE,
};

struct nt_notify_sample {
	enum nt_notify_sample_state state;
	uint64_t number; /* of this receiver's samples, from 1 */
	struct nt_attempt attempt; /* once done: of the last request */
};

/*
 * Requests that a receiver's thread sends a marked sample. *ret_number tells it from others.
 * -ENOENT: there is no such receiver. -EBUSY: one waits. -ENOTSUP: it is Kubernetes.
 */
NT_MUST_CHECK int nt_notify_request_sample(struct nt_notify *notify, const char *name,
					   uint64_t *ret_number);

/* ---- statistics ------------------------------------------------------------------------------ */

/* Results of messages. Monotonic since start. */
enum nt_notify_result {
	NT_NOTIFY_SENT,
	NT_NOTIFY_RETRIED,
	NT_NOTIFY_FAILED, /* refused */
	NT_NOTIFY_DROPPED, /* given up after give_up_ns */
	NT_NOTIFY_DIGESTED, /* of those sent: in one with others */
	NT_NOTIFY_REPEATED, /* incidents that were sent again */
	NT_NOTIFY_REPEAT_FAILED,
	NT_NOTIFY_HEARTBEAT,
	NT_NOTIFY_HEARTBEAT_FAILED,
	NT_NOTIFY_RESULTS,
};

/* "sent" … */
const char *nt_notify_result_name(enum nt_notify_result result);

struct nt_notify_view {
	const char *name, *kind; /* valid as long as the notifier */
	uint64_t count[NT_NOTIFY_RESULTS];
	struct nt_notify_sample sample;
};

size_t nt_notify_receivers(const struct nt_notify *notify);
void nt_notify_view(struct nt_notify *notify, size_t i, struct nt_notify_view *ret_view);

/* Of all receivers. Monotonic since start. */
struct nt_notify_stats {
	uint64_t sent, retried, failed, expired;
	uint64_t kube_acted, kube_lifted, kube_limited; /* as in struct nt_kube_action */
	uint64_t kube_left_out; /* pods and nodes without an event, in sent messages */
};

void nt_notify_stats(const struct nt_notify *notify, struct nt_notify_stats *ret_stats);

#endif
