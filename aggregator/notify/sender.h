/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sender: turns messages into requests of one receiver, sends them and weighs the answers. */
#ifndef NT_AGGREGATOR_NOTIFY_SENDER_H
#define NT_AGGREGATOR_NOTIFY_SENDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/notify/attempt.h"
#include "aggregator/notify/format/format.h"
#include "aggregator/notify/webhook.h"
#include "common/base/cleanup.h"
#include "common/kube/kube.h"

enum {
	NT_SENDER_URLS = 8,
};

struct nt_sender_options {
	enum nt_receiver_kind kind;
	const char *const *url; /* secrets: never logged; copied */
	size_t urls;
	const char *secret; /* NULL: none; copied */
	const char *incident_url; /* prefix of links; NULL: none; copied */
	const char *title, *text; /* templates; NULL: none; copied */
	const char *beat; /* a service's name of the heartbeat; NULL: none; copied */
	uint64_t beat_ns; /* between heartbeats; 0: none */
	uint64_t alive_ns; /* Alertmanager: until an alert expires that is not repeated */
	/* Instead of all above: a Kubernetes API server, borrowed. */
	struct nt_kube *kube;
	bool conditions;
	uint64_t connect_timeout_ns, total_timeout_ns; /* of each request */
	const atomic_bool *abort; /* borrowed */
};

struct nt_sender {
	const struct nt_receiver_format *format;
	struct nt_sender_options options; /* without what is copied */
	char *url[NT_SENDER_URLS];
	char *secret, *incident_url, *title, *text, *beat;
	struct nt_webhook_key key;
};

/* -EINVAL: a URL that is not http or https, or a secret that is not base64. -ENOMEM. */
NT_MUST_CHECK int nt_sender_init(struct nt_sender *sender, const struct nt_sender_options *options);
/* Accepts an all-zero sender. */
void nt_sender_release(struct nt_sender *sender);

/* Whether it can send several messages in one request. */
bool nt_sender_takes_several(const struct nt_sender *sender);

struct nt_sender_message {
	const char *id, *body; /* the body is that of a webhook */
	size_t body_len;
	unsigned int severities; /* as in struct nt_outbox_message */
	bool is_reminder;
};

/*
 * Blocks. Several messages: a digest in a chat, a list for Alertmanager. With several URLs, one that
 * takes it suffices. Adds the pods and nodes without an event to *ret_left_out. -ENOMEM.
 */
NT_MUST_CHECK int nt_sender_send(const struct nt_sender *sender,
				 const struct nt_sender_message *message, size_t count,
				 struct nt_attempt *ret_attempt, size_t *ret_left_out);

/*
 * Blocks. Sends a heartbeat of the aggregator `who`. With several URLs all must take it, as replicas
 * do not share it. Only of kinds that have one (nt_receiver_format). -ENOMEM.
 */
NT_MUST_CHECK int nt_sender_beat(const struct nt_sender *sender, const char *who,
				 struct nt_attempt *ret_attempt);

#endif
