/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A client of a cluster: its address, credentials and health. Handles of the library are made from
 * it, and replaced when the credentials change.
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
	struct nt_kafka_credentials secrets;
	struct nt_kafka_health health;
	char *name;
	struct nt_kafka_shared *shared; /* shared with the library's threads */
	/* protects the credentials: a reader makes handles on another thread than its watch */
	pthread_mutex_t lock;
	uint64_t look_mono_ns; /* next check of the credentials */
};

/* A setting of the library. */
struct nt_kafka_setting {
	const char *name;
	const char *text; /* NULL: use the number */
	uint64_t number;
	bool may_be_unknown; /* the library of this machine may lack it */
};

/*
 * Parses the url and copies what the options point to; does not connect. On failure options->error
 * has the details, and nt_kafka_client_release() must still be called.
 */
NT_MUST_CHECK int nt_kafka_client_init(struct nt_kafka_client *client, const char *url,
				       const struct nt_bus_options *options);
void nt_kafka_client_release(struct nt_kafka_client *client);

/*
 * Makes a handle with these additional settings, whose queue delivers these events
 * (RD_KAFKA_EVENT_…); ended by nt_kafka_end(). -EINVAL with the text, -EBUSY with the text if too
 * many handles have not terminated, -ENOMEM, or the error of a file.
 */
NT_MUST_CHECK int nt_kafka_client_make(struct nt_kafka_client *client, rd_kafka_type_t type,
				       int events, const struct nt_kafka_setting *settings,
				       size_t count, struct nt_bus_error *error,
				       rd_kafka_t **ret_rk);

/*
 * Whether the credentials differ from those of the last handle; checks at most every few seconds.
 */
bool nt_kafka_client_is_stale(struct nt_kafka_client *client);

/* Records an error of a handle, about `what` ("topic 'x'"; NULL: the cluster), in its health. */
enum nt_bus_cause nt_kafka_client_note(struct nt_kafka_client *client, rd_kafka_resp_err_t error,
				       const char *reason, const char *what);

#endif
