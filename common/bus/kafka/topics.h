/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The required topics of a cluster: creating them and reporting differences. Topics are created
 * only on a user's request, never by readers and writers.
 */
#ifndef NT_COMMON_BUS_KAFKA_TOPICS_H
#define NT_COMMON_BUS_KAFKA_TOPICS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bus/bus.h"
#include "common/bus/kafka/url.h"

enum {
	NT_KAFKA_PARTITIONS = 12,
	NT_KAFKA_REPLICATION = 3,
	NT_KAFKA_TOPIC_NOTES = 8,
};

/* 0: when creating, the defaults; when checking, any value. */
struct nt_kafka_topics_options {
	uint32_t partitions; /* default NT_KAFKA_PARTITIONS */
	uint32_t replication; /* default NT_KAFKA_REPLICATION, or as many as there are brokers */
	/* of topics that are not compacted; default a day; UINT64_MAX: forever */
	uint64_t retention_ns;
};

enum nt_kafka_topic_status {
	NT_KAFKA_TOPIC_FINE,
	NT_KAFKA_TOPIC_MADE, /* just now */
	NT_KAFKA_TOPIC_MISSING,
	NT_KAFKA_TOPIC_DIFFERS, /* the notes state the difference and the remedy */
	NT_KAFKA_TOPIC_FAILED, /* the first note states the reason */
};

struct nt_kafka_topic_state {
	enum nt_topic topic;
	char name[NT_KAFKA_TOPIC_BYTES];
	enum nt_kafka_topic_status status;
	uint32_t partitions, replication;
	uint64_t retention_ms; /* UINT64_MAX: forever, or compacted */
	uint32_t notes;
	char note[NT_KAFKA_TOPIC_NOTES][NT_BUS_TEXT];
};

/*
 * Creates missing topics, compares the others without a change, and fills the states of all. A
 * failure of the whole request is the result, and `error` describes it.
 */
NT_MUST_CHECK int nt_kafka_topics_create(const char *url, const struct nt_bus_options *options,
					 const struct nt_kafka_topics_options *wanted,
					 struct nt_kafka_topic_state ret_states[NT_TOPIC_END],
					 struct nt_bus_error *error);
/* Compares with `wanted` and with the programs' needs. Changes nothing. */
NT_MUST_CHECK int nt_kafka_topics_check(const char *url, const struct nt_bus_options *options,
					const struct nt_kafka_topics_options *wanted,
					struct nt_kafka_topic_state ret_states[NT_TOPIC_END],
					struct nt_bus_error *error);

#endif
