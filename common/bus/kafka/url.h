/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parser of kafka://HOST:PORT[,HOST:PORT…][/PREFIX]. */
#ifndef NT_COMMON_BUS_KAFKA_URL_H
#define NT_COMMON_BUS_KAFKA_URL_H

#include <stddef.h>

#include "common/base/cleanup.h"
#include "common/bus/bus.h"

enum {
	NT_KAFKA_MAX_SERVERS = 32,
	NT_KAFKA_SERVERS_BYTES = 4096, /* including the NUL, as all here */
	NT_KAFKA_PREFIX_BYTES = 128,
	NT_KAFKA_TOPIC_BYTES = NT_KAFKA_PREFIX_BYTES + 32,
};

struct nt_kafka_url {
	char servers[NT_KAFKA_SERVERS_BYTES]; /* "a:9092,b:9092", in the library's format */
	char prefix[NT_KAFKA_PREFIX_BYTES]; /* "neutracer" unless the url has one */
};

/*
 * Hosts are names, IPv4 addresses, or IPv6 addresses in brackets; each has a port. -EINVAL,
 * -ENAMETOOLONG, -E2BIG for more than NT_KAFKA_MAX_SERVERS.
 */
NT_MUST_CHECK int nt_kafka_url_parse(const char *text, size_t len, struct nt_kafka_url *ret_url);

/* "PREFIX.window.v1". Returns name. */
const char *nt_kafka_topic_name(const struct nt_kafka_url *url, enum nt_topic topic,
				char name[NT_KAFKA_TOPIC_BYTES]);

#endif
