/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What it takes to speak with a cluster: where it is, how to be let in, how it is. Handles of the
 * library are made from it, and made anew when the secrets change.
 */
#ifndef NT_COMMON_BUS_KAFKA_CLIENT_H
#define NT_COMMON_BUS_KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>
#include <pthread.h>

#include "common/bus/bus.h"
#include "common/bus/kafka/credentials.h"
#include "common/bus/kafka/handle_reaper.h"
#include "common/bus/kafka/health.h"
#include "common/bus/kafka/url.h"

struct nt_kafka_client {
	struct nt_kafka_url url;
	struct nt_kafka_secrets secrets;
	struct nt_kafka_health health;
	char *name;
	struct nt_kafka_shared *shared; /* with the library's threads */
	/* of what is known of the secrets: a reader makes handles beside its watch */
	pthread_mutex_t lock;
	uint64_t look_mono_ns; /* when the secrets are looked at next */
};

/* A setting of the library. */
struct nt_kafka_setting {
	const char *name;
	const char *text; /* NULL: the number */
	uint64_t number;
	bool may_be_unknown; /* to the library of this machine */
};

/*
 * Reads the url and copies what the options point to; speaks with nobody yet. Where it fails,
 * options->error says why, and nt_kafka_client_release() is still due.
 */
NT_MUST_CHECK int nt_kafka_client_init(struct nt_kafka_client *client, const char *url,
				       const struct nt_bus_options *options);
void nt_kafka_client_release(struct nt_kafka_client *client);

/*
 * A handle with these settings on top, whose queue delivers these events (RD_KAFKA_EVENT_…); it ends
 * by nt_kafka_end(). -EINVAL with the text, -EBUSY with the text where too many handles were left behind,
 * -ENOMEM, or what a file says.
 */
NT_MUST_CHECK int nt_kafka_client_make(struct nt_kafka_client *client, rd_kafka_type_t type,
				       int events, const struct nt_kafka_setting *settings,
				       size_t count, struct nt_bus_error *error,
				       rd_kafka_t **ret_rk);

/* Whether the secrets differ from those of the last handle; looks at most every few seconds. */
bool nt_kafka_client_is_stale(struct nt_kafka_client *client);

/* Notes an error of a handle, about `what` ("topic 'x'"; NULL: the cluster) in its health. */
enum nt_bus_cause nt_kafka_client_note(struct nt_kafka_client *client, rd_kafka_resp_err_t error,
				       const char *reason, const char *what);

#endif
