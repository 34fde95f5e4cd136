/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What it costs to read a topic and do nothing with it: librdkafka's simple consumer with the settings of
 * the product's reader, a count and a sum. All partitions from their beginning to their end, once.
 *
 *	bus_raw SERVERS TOPIC
 *
 * Prints: records, bytes of keys and values, CPU seconds of all threads, wall seconds.
 */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum {
	BATCH = 128,
	WAIT_MS = 1000,
	PATIENCE = 60, /* waits in vain */
	METADATA_MS = 10000,
};

static const char *const settings[][2] = {
	{"enable.auto.commit", "false"},        {"enable.partition.eof", "true"},
	{"queued.min.messages", "20000"},       {"queued.max.messages.kbytes", "8192"},
	{"fetch.message.max.bytes", "1048576"}, {"fetch.max.bytes", "4194304"},
};

struct count {
	uint64_t records, bytes;
	int ended; /* partitions */
};

static rd_kafka_t *open_client(const char *servers)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char text[256] = "";
	rd_kafka_t *rk;
	bool is_set = rd_kafka_conf_set(conf, "bootstrap.servers", servers, text, sizeof(text)) ==
		      RD_KAFKA_CONF_OK;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]) && is_set; i++)
		is_set = rd_kafka_conf_set(conf, settings[i][0], settings[i][1], text,
					   sizeof(text)) == RD_KAFKA_CONF_OK;
	/* Before 2.2 a partition that finds the queue full waits for a second. */
	(void)rd_kafka_conf_set(conf, "fetch.queue.backoff.ms", "20", NULL, 0);
	rk = is_set ? rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text)) : NULL;
	if (!rk)
		(void)fprintf(stderr, "bus_raw: %s\n", text);
	return rk;
}

static int start(rd_kafka_t *rk, rd_kafka_topic_t *topic, rd_kafka_queue_t *queue)
{
	const struct rd_kafka_metadata *metadata;
	int partitions = 0;

	if (rd_kafka_metadata(rk, 0, topic, &metadata, METADATA_MS) != RD_KAFKA_RESP_ERR_NO_ERROR ||
	    metadata->topic_cnt != 1)
		return 0;
	for (; partitions < metadata->topics[0].partition_cnt; partitions++)
		if (rd_kafka_consume_start_queue(topic, partitions, RD_KAFKA_OFFSET_BEGINNING,
						 queue) < 0)
			return 0;
	rd_kafka_metadata_destroy(metadata);
	return partitions;
}

/* Whether there was anything. */
static bool take_batch(rd_kafka_queue_t *queue, struct count *count)
{
	rd_kafka_message_t *batch[BATCH];
	ssize_t n = rd_kafka_consume_batch_queue(queue, WAIT_MS, batch, BATCH);

	for (ssize_t i = 0; i < n; i++) {
		if (batch[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
			count->records++;
			count->bytes += batch[i]->len + batch[i]->key_len;
		} else if (batch[i]->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
			count->ended++;
		} else {
			(void)fprintf(stderr, "bus_raw: %s\n", rd_kafka_message_errstr(batch[i]));
		}
		rd_kafka_message_destroy(batch[i]);
	}
	return n > 0;
}

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
	struct count count = {0};
	struct timespec begin, end;
	struct rusage usage;
	rd_kafka_queue_t *queue;
	rd_kafka_topic_t *topic;
	int partitions, vain = 0;
	rd_kafka_t *rk;

	if (argc != 3)
		return 2;
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	rk = open_client(argv[1]);
	if (!rk)
		return 1;
	queue = rd_kafka_queue_new(rk);
	topic = rd_kafka_topic_new(rk, argv[2], NULL);
	partitions = start(rk, topic, queue);
	while (partitions && count.ended < partitions && vain < PATIENCE)
		vain = take_batch(queue, &count) ? 0 : vain + 1;
	(void)getrusage(RUSAGE_SELF, &usage);
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	if (!partitions || count.ended < partitions) {
		(void)fprintf(stderr, "bus_raw: cannot read '%s' to its end\n", argv[2]);
		return 1;
	}
	(void)printf("%" PRIu64 " %" PRIu64 " %.3f %.3f\n", count.records, count.bytes,
		     seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
		     (double)(end.tv_sec - begin.tv_sec) +
			     (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	return 0; /* what the library has goes with the process */
}
