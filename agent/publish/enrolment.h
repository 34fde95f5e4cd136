/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The key of this node, as an aggregator gives it for a token of the agent's service account. A thread
 * asks until it has one, and once an hour after that, in case the secret has been exchanged.
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
	const char *token_file; /* read anew for each request */
	const char *ca_file; /* NULL, "": public authorities */
	const char *node;
	uint64_t retry_min_ns, retry_max_ns, renew_ns; /* 0: 1 s, 30 s, 1 h */
};

struct nt_enrolment_stats {
	uint64_t asked, granted, failed; /* failed: neither a key nor a word to wait */
};

struct nt_enrolment;

NT_MUST_CHECK int nt_enrolment_start(const struct nt_enrolment_options *options,
				     struct nt_enrolment **ret_enrolment);
void nt_enrolment_stop(struct nt_enrolment *enrolment);
NT_DEFINE_AUTO(nt_enrolment, nt_enrolment_stop)

/* True: there is a key that was not taken yet. Never waits. */
bool nt_enrolment_take(struct nt_enrolment *enrolment, struct nt_node_key *ret_key);

/* Why the last request brought no key; "": it did, or none has ended. */
void nt_enrolment_fault_notice(struct nt_enrolment *enrolment, char ret_text[NT_KUBE_REASON]);

void nt_enrolment_stats(struct nt_enrolment *enrolment, struct nt_enrolment_stats *ret_stats);

#endif
