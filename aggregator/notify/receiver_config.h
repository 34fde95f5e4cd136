/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of receivers: who gets messages of which incidents, in which form. */
#ifndef NT_AGGREGATOR_NOTIFY_RECEIVER_CONFIG_H
#define NT_AGGREGATOR_NOTIFY_RECEIVER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/notify/format/format.h"
#include "aggregator/notify/route.h"
#include "aggregator/store/store.h"
#include "common/base/cleanup.h"
#include "common/options/opt_table.h"

enum {
	/* Two places are those of the webhook and of Kubernetes, which have options. */
	NT_RECEIVER_CONFIG_MAX = NT_STORE_MAX_RECEIVERS - 2,
	NT_RECEIVER_CONFIG_URLS = 8, /* replicas of Alertmanager */
	NT_RECEIVER_CONFIG_ROUTES = 32,
};

struct nt_receiver_config {
	char *name; /* [a-z0-9-]; unique */
	enum nt_receiver_kind kind;
	char *url[NT_RECEIVER_CONFIG_URLS]; /* secrets: never logged */
	size_t urls;
	char *secret; /* "": none */
	uint64_t repeat_ns; /* 0: not repeated */
	uint32_t rate; /* messages a minute */
	char *title, *text; /* templates; NULL: none */
	uint64_t heartbeat_ns; /* 0: none */
	char *heartbeat; /* a service's name of the heartbeat */
	struct nt_route *route;
	size_t routes;
};

struct nt_receiver_configs {
	struct nt_receiver_config receiver[NT_RECEIVER_CONFIG_MAX];
	size_t count;
	char *incident_url; /* prefix of links; NULL: no links */
};

/*
 * Reads the file and the files with secrets that it names. *ret_error names file, receiver, key,
 * value and what is allowed; never a secret. -EINVAL, -ENOENT and the like, -ENOMEM.
 */
NT_MUST_CHECK int nt_receiver_configs_read(const char *path,
					   struct nt_receiver_configs **ret_configs,
					   struct nt_opt_error *ret_error);
void nt_receiver_configs_free(struct nt_receiver_configs *configs);
NT_DEFINE_AUTO(nt_receiver_configs, nt_receiver_configs_free)

/* Of nt_store_options; `configs` may be NULL. Other receivers get severity warning and above. */
bool nt_receiver_configs_accept(void *configs, const char *receiver,
				const struct nt_wire_incident *incident);

/*
 * Reads a receiver's URL or secret: the first line of a file. The caller frees *ret_text. -EINVAL
 * for an empty file, -EFBIG over 8 KiB.
 */
NT_MUST_CHECK int nt_receiver_secret_read(const char *path, char **ret_text);

#endif
