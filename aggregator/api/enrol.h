/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Enrolment: issues node keys to agents. An agent proves its node by a service-account token that
 * the Kubernetes API server has bound to its pod. A thread submits each token for review; requests
 * return at once and are repeated for the result.
 *
 * The node is taken from "authentication.kubernetes.io/node-name" in the review, which API servers
 * provide from 1.30 on (stable since 1.32). It is part of the signed token.
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
	NT_ENROL_WAITS, /* the token is under review: repeat in a second */
	NT_ENROL_DENIED,
	NT_ENROL_BUSY, /* too many tokens are under review */
	NT_ENROL_AWAY, /* the API server is unavailable for reviews */
};

/* Copied, except secrets, which are borrowed. */
struct nt_enrol_options {
	const struct nt_kube_options *kube;
	const struct nt_node_secrets *secrets;
	const char *account; /* service account of the agents: "NAMESPACE/NAME" */
	const char *audience; /* audience of their tokens */
	uint64_t pause_ns; /* between two reviews; 0: 20 ms */
};

/* Monotonic since start. */
struct nt_enrol_stats {
	uint64_t granted, denied, failed; /* tokens reviewed: valid, invalid, review failed */
	uint64_t over_cap;
};

struct nt_enrol;

/* Whether the text has the form "NAMESPACE/NAME". */
bool nt_enrol_account_is_sound(const char *account);

/* -ENOENT: no API server is configured. */
NT_MUST_CHECK int nt_enrol_start(const struct nt_enrol_options *options,
				 struct nt_enrol **ret_enrol);
void nt_enrol_stop(struct nt_enrol *enrol);
NT_DEFINE_AUTO(nt_enrol, nt_enrol_stop)

/*
 * From any thread; never blocks on the API server. NT_ENROL_GRANTED fills in ret_key, the key of
 * that node; NT_ENROL_DENIED and NT_ENROL_AWAY fill in ret_reason.
 */
enum nt_enrol_answer nt_enrol_request(struct nt_enrol *enrol, const char *token, size_t len,
				      const char *node, struct nt_node_key *ret_key,
				      char ret_reason[NT_ENROL_REASON]);

void nt_enrol_stats(struct nt_enrol *enrol, struct nt_enrol_stats *ret_stats);

#endif
