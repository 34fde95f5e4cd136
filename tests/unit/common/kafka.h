/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * New topics for one test on the Kafka at NT_TEST_KAFKA ("127.0.0.1:9092"), which
 * tests/kafka/run.sh starts.
 */
#ifndef NT_TESTS_UNIT_COMMON_KAFKA_H
#define NT_TESTS_UNIT_COMMON_KAFKA_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/bus/kafka/topics.h"
#include "common/system/clock.h"

enum {
	KAFKA_URL_BYTES = 256,
};

static inline const char *kafka_servers(void)
{
	return getenv("NT_TEST_KAFKA");
}

/* Creates topics with an unused prefix. 0, or -1 with a line on stderr. */
static inline int kafka_fresh_url(uint32_t partitions, char url[KAFKA_URL_BYTES])
{
	static unsigned int number;
	const struct nt_bus_options options = {0};
	const struct nt_kafka_topics_options wanted = {
		.partitions = partitions,
		.retention_ns = UINT64_MAX, /* the tests' records are dated 1970 */
	};
	struct nt_kafka_topic_state states[NT_TOPIC_END];
	struct nt_bus_error error;
	int r;

	(void)snprintf(url, KAFKA_URL_BYTES, "kafka://%s/t%llx-%d-%u", kafka_servers(),
		       (unsigned long long)nt_clock_real_ns(), (int)getpid(), number++);
	r = nt_kafka_topics_create(url, &options, &wanted, states, &error);
	if (r < 0) {
		(void)fprintf(stderr, "make topics at %s: %s\n", url, error.text);
		return -1;
	}
	for (int i = 0; i < NT_TOPIC_END; i++) {
		if (states[i].status != NT_KAFKA_TOPIC_MADE) {
			(void)fprintf(stderr, "make topic %s: %s\n", states[i].name,
				      states[i].note[0]);
			return -1;
		}
	}
	return 0;
}

#endif
