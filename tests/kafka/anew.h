/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Topics that are deleted and made again under their names. */
#ifndef NT_TESTS_KAFKA_ANEW_H
#define NT_TESTS_KAFKA_ANEW_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <string.h>

#include "tests/kafka/control.h"

enum {
	DELETE_MS = 30000,
};

/* All topics of the URL, by a client of its own. */
static inline void delete_topics(const char *url)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_DeleteTopic_t *topics[NT_TOPIC_END];
	const char *prefix = strrchr(url, '/') + 1;
	rd_kafka_queue_t *queue;
	rd_kafka_event_t *event;
	rd_kafka_t *rk;

	assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", kafka_servers(), NULL, 0),
			 RD_KAFKA_CONF_OK);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
	assert_non_null(rk);
	for (int i = 0; i < NT_TOPIC_END; i++) {
		const char *base = strchr(nt_topic_name((enum nt_topic)i), '.');
		char name[KAFKA_URL_BYTES];

		(void)snprintf(name, sizeof(name), "%s%s", prefix, base);
		topics[i] = rd_kafka_DeleteTopic_new(name);
	}
	queue = rd_kafka_queue_new(rk);
	rd_kafka_DeleteTopics(rk, topics, NT_TOPIC_END, NULL, queue);
	event = rd_kafka_queue_poll(queue, DELETE_MS);
	assert_int_equal(rd_kafka_event_error(event), RD_KAFKA_RESP_ERR_NO_ERROR);
	rd_kafka_event_destroy(event);
	rd_kafka_DeleteTopic_destroy_array(topics, NT_TOPIC_END);
	rd_kafka_queue_destroy(queue);
	rd_kafka_destroy(rk);
}

static inline bool have_status(const struct nt_kafka_topic_state states[NT_TOPIC_END],
			       enum nt_kafka_topic_status one, enum nt_kafka_topic_status other)
{
	for (int i = 0; i < NT_TOPIC_END; i++)
		if (states[i].status != one && states[i].status != other)
			return false;
	return true;
}

/* A broker reports topics for a moment after their deletion: records sent then go with them. */
static inline bool are_gone(const char *url)
{
	const struct nt_bus_options options = {0};
	const struct nt_kafka_topics_options any = {0};
	struct nt_kafka_topic_state states[NT_TOPIC_END];
	struct nt_bus_error error;

	return nt_kafka_topics_check(url, &options, &any, states, &error) == 0 &&
	       have_status(states, NT_KAFKA_TOPIC_MISSING, NT_KAFKA_TOPIC_MISSING);
}

static inline bool are_made(const char *url, uint32_t partitions)
{
	const struct nt_bus_options options = {0};
	const struct nt_kafka_topics_options wanted = {.partitions = partitions,
						       .retention_ns = UINT64_MAX};
	struct nt_kafka_topic_state states[NT_TOPIC_END];
	struct nt_bus_error error;

	return nt_kafka_topics_create(url, &options, &wanted, states, &error) == 0 &&
	       have_status(states, NT_KAFKA_TOPIC_MADE, NT_KAFKA_TOPIC_FINE);
}

static inline void make_anew(const char *url, uint32_t partitions)
{
	delete_topics(url);
	assert_true(EVENTUALLY(are_gone(url)));
	assert_true(EVENTUALLY(are_made(url, partitions)));
}

#endif
