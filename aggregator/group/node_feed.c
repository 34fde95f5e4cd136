/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/node_feed.h"

#include <errno.h>
#include <stdlib.h>

#include "common/system/clock.h"

enum {
	TURN_RECORDS = 1024,
};

struct nt_node_feed {
	struct nt_bus_reader *reader;
	struct nt_ingest *ingest;
	struct nt_shortages shortages;
	int (*vector)(void *data, const struct nt_message *message, uint32_t partition);
	void *data;
	size_t max_nodes;
};

NT_DEFINE_AUTO(nt_node_feed, nt_node_feed_close)

int nt_node_feed_open(const struct nt_node_feed_options *options, struct nt_node_feed **ret_feed)
{
	nt_auto(nt_node_feed) struct nt_node_feed *feed = calloc(1, sizeof(*feed));
	int r;

	if (!feed)
		return -ENOMEM;
	feed->max_nodes = options->max_nodes;
	feed->vector = options->vector;
	feed->data = options->data;
	/* Refused records are only counted; the dead-letter topic is for windows. */
	r = nt_ingest_new(NULL, NULL, &feed->ingest);
	if (r < 0)
		return r;
	nt_ingest_set_signatures(feed->ingest, options->signatures);
	r = nt_bus_reader_open_with(options->bus_url, 1U << NT_TOPIC_NODE, options->bus,
				    &feed->reader);
	if (r == 0)
		r = nt_bus_reader_seek_time(feed->reader, nt_clock_real_ns() - NT_SHORTAGE_KEEP_NS);
	if (r < 0)
		return r;
	*ret_feed = nt_take(feed);
	return 0;
}

void nt_node_feed_close(struct nt_node_feed *feed)
{
	if (!feed)
		return;
	nt_bus_reader_close(feed->reader);
	nt_ingest_free(feed->ingest);
	nt_shortages_release(&feed->shortages);
	free(feed);
}

/* message: NULL: there is none. */
static int take_vector(struct nt_node_feed *feed, const struct nt_message *message,
		       uint32_t partition)
{
	int r;

	if (!message || message->body != NT_BODY_NODE)
		return 0;
	r = nt_shortages_take(&feed->shortages, message, feed->max_nodes);
	if (r == 0 && feed->vector)
		r = feed->vector(feed->data, message, partition);
	return r;
}

int nt_node_feed_turn(struct nt_node_feed *feed)
{
	const uint64_t latest_ns = nt_clock_real_ns() + NT_INGEST_AHEAD_NS;

	for (int i = 0; i < TURN_RECORDS; i++) {
		nt_auto(nt_message) struct nt_message *message = NULL;
		struct nt_bus_record record;
		int r = nt_bus_reader_next(feed->reader, 0, &record);

		/* Errors of the bus are reported by the window readers. */
		if (r <= 0)
			return r == -ENOMEM ? r : 0;
		r = nt_ingest_take(feed->ingest, &record, latest_ns, false, &message);
		if (r < 0)
			return r;
		r = take_vector(feed, message, record.partition);
		if (r < 0)
			return r;
	}
	return 0;
}

void nt_node_feed_sweep(struct nt_node_feed *feed, uint64_t waited_ns, uint64_t before_ns)
{
	nt_shortages_wait(&feed->shortages, waited_ns);
	nt_ingest_sweep(feed->ingest, before_ns);
}

const struct nt_shortages *nt_node_feed_shortages(const struct nt_node_feed *feed)
{
	return &feed->shortages;
}

const struct nt_ingest_counters *nt_node_feed_counters(const struct nt_node_feed *feed)
{
	return nt_ingest_counters(feed->ingest);
}
