/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Gives agents the key of their node. An agent proves its node by a service-account token that the API
 * server has bound to its pod; a thread has each token reviewed there, and askers come back for the
 * answer, so that nobody waits for the API server.
 *
 * The node is the one of "authentication.kubernetes.io/node-name" in the review, which API servers
 * state from 1.30 on (stable since 1.32). It is in the token as the API server has signed it.
 */
#ifndef NT_AGGREGATOR_API_ENROL_H
#define NT_AGGREGATOR_API_ENROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/bus/node_key.h"
#include "common/kube/kube.h"

enum {
	NT_ENROL_TOKENS = 256, /* under review, or reviewed lately */
	NT_ENROL_TOKEN_BYTES = 16 << 10,
	NT_ENROL_REASON = 256,
};

enum nt_enrol_answer {
	NT_ENROL_GRANTED,
	NT_ENROL_WAITS, /* the token is being reviewed: ask again in a second */
	NT_ENROL_DENIED,
	NT_ENROL_BUSY, /* too many tokens are under review */
	NT_ENROL_AWAY, /* the API server does not review tokens now */
};

/* Copied, but for secrets, which are borrowed. */
struct nt_enrol_options {
	const struct nt_kube_options *kube;
	const struct nt_node_secrets *secrets;
	const char *account; /* of the agents: "NAMESPACE/NAME" */
	const char *audience; /* that their tokens are for */
	uint64_t pause_ns; /* between two reviews; 0: 20 ms */
};

/* Monotonic since start. */
struct nt_enrol_stats {
	uint64_t granted, denied, failed; /* tokens reviewed: valid, not, and without an answer */
	uint64_t over_cap;
};

struct nt_enrol;

/* Whether it is "NAMESPACE/NAME". */
bool nt_enrol_account_is_sound(const char *account);

/* -ENOENT: there is no API server. */
NT_MUST_CHECK int nt_enrol_start(const struct nt_enrol_options *options,
				 struct nt_enrol **ret_enrol);
void nt_enrol_stop(struct nt_enrol *enrol);
NT_DEFINE_AUTO(nt_enrol, nt_enrol_stop)

/*
 * From any thread; never waits for the API server. NT_ENROL_GRANTED fills ret_key, which is of that
 * node; NT_ENROL_DENIED and NT_ENROL_AWAY say why.
 */
enum nt_enrol_answer nt_enrol_ask(struct nt_enrol *enrol, const char *token, size_t len,
				  const char *node, struct nt_node_key *ret_key,
				  char ret_reason[NT_ENROL_REASON]);

void nt_enrol_stats(struct nt_enrol *enrol, struct nt_enrol_stats *ret_stats);

#endif
