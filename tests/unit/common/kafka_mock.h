/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * librdkafka's mock cluster in the test, with the window topic, on a port of its own. It supports
 * no seek by time, no compaction, no TLS and no passwords: those are tested by tests/kafka.
 */
#ifndef NT_TESTS_UNIT_COMMON_KAFKA_MOCK_H
#define NT_TESTS_UNIT_COMMON_KAFKA_MOCK_H

#include <arpa/inet.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "common/base/parse_number.h"
#include "common/bus/bus.h"
#include "common/system/clock.h"
#include "tests/unit/common/kafka_threads.h"

enum {
	MOCK_URL_BYTES = 512,
	MOCK_PRODUCE = 0, /* numbers of requests in Kafka's protocol */
	MOCK_FETCH = 1,
	MOCK_LIST_OFFSETS = 2,
	MOCK_METADATA = 3,
	MOCK_JOIN_GROUP = 11,
	MOCK_HEARTBEAT = 12,
	MOCK_INIT_PRODUCER_ID = 22,
};

struct mock {
	rd_kafka_t *rk;
	rd_kafka_mock_cluster_t *cluster;
	char url[MOCK_URL_BYTES];
	uint16_t port; /* of one broker */
	atomic_bool is_done;
};

static inline void mock_drop_log(const rd_kafka_t *rk, int level, const char *facility,
				 const char *text)
{
	(void)rk;
	(void)level;
	(void)facility;
	(void)text;
}

/* The mock processes requests when its network wakes it, or once a second: connecting wakes it. */
static inline void *mock_knock(void *data)
{
	struct mock *mock = data;
	const struct timespec pause = {.tv_nsec = 2000000};
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(mock->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	while (!atomic_load(&mock->is_done)) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		(void)!connect(fd, (const struct sockaddr *)&address, sizeof(address));
		(void)nanosleep(&pause, NULL);
		(void)close(fd);
	}
	return NULL;
}

#define MOCK_SOON(mock, call)                                                                      \
	do {                                                                                       \
		pthread_t mock_thread_;                                                            \
		atomic_store(&(mock)->is_done, false);                                             \
		(void)pthread_create(&mock_thread_, NULL, mock_knock, (mock));                     \
		(void)(call);                                                                      \
		atomic_store(&(mock)->is_done, true);                                              \
		(void)pthread_join(mock_thread_, NULL);                                            \
	} while (0)

static inline int mock_make(struct mock *mock, int brokers, int partitions)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	const char *colon;
	uint64_t port;

	rd_kafka_conf_set_log_cb(conf, mock_drop_log);
	mock->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
	if (!mock->rk)
		return -1;
	mock->cluster = rd_kafka_mock_cluster_new(mock->rk, brokers);
	if (!mock->cluster)
		return -1;
	(void)snprintf(mock->url, sizeof(mock->url), "kafka://%s",
		       rd_kafka_mock_cluster_bootstraps(mock->cluster));
	colon = strchr(rd_kafka_mock_cluster_bootstraps(mock->cluster), ':') + 1;
	if (nt_parse_u64(colon, strcspn(colon, ","), 1, UINT16_MAX, &port) < 0)
		return -1;
	mock->port = (uint16_t)port;
	MOCK_SOON(mock, rd_kafka_mock_topic_create(mock->cluster, nt_topic_name(NT_TOPIC_WINDOW),
						   partitions, 1));
	return 0;
}

static inline void mock_remove(struct mock *mock)
{
	if (mock->cluster)
		rd_kafka_mock_cluster_destroy(mock->cluster);
	if (mock->rk)
		rd_kafka_destroy(mock->rk);
}

/* For asynchronous work of another thread. False: it was not done in 20 s. */
#define MOCK_EVENTUALLY(condition)                                                                 \
	({                                                                                         \
		const struct timespec mock_pause_ = {.tv_nsec = 5000000};                          \
		int mock_left_ = 4000;                                                             \
		while (!(condition) && --mock_left_ > 0)                                           \
			(void)nanosleep(&mock_pause_, NULL);                                       \
		mock_left_ > 0;                                                                    \
	})

#endif
