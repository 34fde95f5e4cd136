/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The receivers of messages: the webhook and Kubernetes, which have options, and those of the file.
 * Errors are logged.
 */
#ifndef NT_AGGREGATOR_RECEIVERS_H
#define NT_AGGREGATOR_RECEIVERS_H

#include "aggregator/config.h"
#include "aggregator/notify/notify.h"
#include "aggregator/notify/receiver_config.h"
#include "common/options/exit.h"

struct nt_receivers {
	const struct nt_aggregator_config *config; /* borrowed */
	struct nt_receiver_configs *configs; /* NULL: no file */
	struct nt_kube *kube;
	struct nt_notify *notify; /* NULL: there are no receivers */
};

NT_MUST_CHECK enum nt_exit nt_receivers_read(struct nt_receivers *receivers,
					     const struct nt_aggregator_config *config);
/* Their names, for the store; borrowed. Returns the number. */
size_t nt_receivers_list(const struct nt_receivers *receivers,
			 const char *ret_name[NT_STORE_MAX_RECEIVERS]);
/* For the store. Kubernetes gets all messages, as a node condition states what is so now. */
struct nt_store_flap_options nt_receivers_flap_control(const struct nt_aggregator_config *config);
/* Starts the notifier, if there are receivers. The store is borrowed until nt_receivers_stop(). */
NT_MUST_CHECK enum nt_exit nt_receivers_start(struct nt_receivers *receivers,
					      struct nt_store *store);
void nt_receivers_stop(struct nt_receivers *receivers);
/* After the store is closed, which needs the routes. */
void nt_receivers_release(struct nt_receivers *receivers);

#endif
