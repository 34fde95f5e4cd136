/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Enrolment: obtains the key of this node from an aggregator, with a token of the agent's service
 * account. A thread retries until it has one, then repeats the request hourly, in case the secret
 * was rotated.
 */
#ifndef NT_AGENT_PUBLISH_ENROLMENT_H
#define NT_AGENT_PUBLISH_ENROLMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/bus/node_key.h"
#include "common/kube/kube.h"

struct nt_enrolment_options {
	const char *url; /* of an aggregator: http[s]://HOST:PORT */
	const char *token_file; /* reread for each request */
	const char *ca_file; /* NULL, "": public CAs */
	const char *node;
	uint64_t retry_min_ns, retry_max_ns, renew_ns; /* 0: 1 s, 30 s, 1 h */
};

struct nt_enrolment_stats {
	uint64_t requests, granted, failed; /* failed: no key, and no request to wait */
};

struct nt_enrolment;

NT_MUST_CHECK int nt_enrolment_start(const struct nt_enrolment_options *options,
				     struct nt_enrolment **ret_enrolment);
void nt_enrolment_stop(struct nt_enrolment *enrolment);
NT_DEFINE_AUTO(nt_enrolment, nt_enrolment_stop)

/* True: returns a new key. Does not block. */
bool nt_enrolment_take(struct nt_enrolment *enrolment, struct nt_node_key *ret_key);

/* Error of the last request; "": none, or no request has completed. */
void nt_enrolment_fault_notice(struct nt_enrolment *enrolment, char ret_text[NT_KUBE_REASON]);

void nt_enrolment_stats(struct nt_enrolment *enrolment, struct nt_enrolment_stats *ret_stats);

#endif
