/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Nodes beside real ones: `node_replay FROM TO NAME[,NAME...] NODES MINUTES` reads the vectors that the
 * agent of the node NAME left on the bus FROM. It publishes to the bus TO what NODES nodes, of which those
 * with names are the first, would have sent in so many minutes before now: in each interval what the
 * agent measured in one of its own, drawn at random, with some noise. Then it prints "ready", and goes on
 * in real time for the others, every 5 s, until SIGTERM.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/parse_number.h"
#include "common/bus/bus.h"
#include "common/system/clock.h"
#include "proto/node_metric.h"
#include "proto/wire.h"

enum {
	MOST_VECTORS = 1024,
	MOST_METRICS = NT_WIRE_MAX_METRICS,
	MOST_NODES = 64,
	PAST_VECTORS = 2, /* a minute */
};

#define LIVE_NS (5 * NT_SECOND)

struct node_replay {
	struct nt_message *vector[MOST_VECTORS];
	size_t vectors;
	struct nt_bus *bus;
	uint64_t seed;
	const char *name[MOST_NODES]; /* of the real ones */
	size_t real;
	uint64_t seq[MOST_NODES];
	double counter[MOST_NODES][MOST_METRICS];
};

static volatile sig_atomic_t is_over;

static void end(int signal_number)
{
	(void)signal_number;
	is_over = 1;
}

static double draw(struct node_replay *replay)
{
	replay->seed = replay->seed * 6364136223846793005U + 1442695040888963407U;
	return (double)(replay->seed >> 11) * 0x1p-53;
}

static double draw_noise(struct node_replay *replay)
{
	return exp(0.25 * sqrt(-2.0 * log(1.0 - draw(replay))) * cos(2.0 * M_PI * draw(replay)));
}

static int read_vectors(const char *url, const char *node, struct node_replay *replay)
{
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	struct nt_bus_record record;
	int r = nt_bus_reader_open(url, 1U << NT_TOPIC_NODE, &reader);

	while (r >= 0 && replay->vectors < MOST_VECTORS) {
		struct nt_message *message = NULL;

		r = nt_bus_reader_next(reader, 0, &record);
		if (r <= 0)
			break;
		r = nt_message_decode(record.value, record.value_len, &message);
		if (r == 0 && message->body == NT_BODY_NODE &&
		    strcmp(message->node.node, node) == 0)
			replay->vector[replay->vectors++] = message;
		else
			nt_message_free(message);
	}
	return r;
}

static bool is_counter(const char *name)
{
	const struct nt_node_metric *metric = nt_node_metric_find(name);

	return metric &&
	       (metric->kind == NT_NODE_METRIC_COUNTER || metric->kind == NT_NODE_METRIC_TROUBLE);
}

/* What the counter grew by in the interval that ends with the vector, per second. */
static double rate_of(const struct nt_message *before, const struct nt_message *after, size_t i)
{
	const double seconds = (double)(after->boot_ns - before->boot_ns) / 1e9;
	const char *name = after->node.metric[i].name;

	for (size_t j = 0; j < before->node.metrics; j++)
		if (strcmp(before->node.metric[j].name, name) == 0)
			return (after->node.metric[i].value - before->node.metric[j].value) /
			       seconds;
	return 0.0;
}

static int publish(struct node_replay *replay, size_t n, uint64_t real_ns, uint64_t boot_ns,
		   double seconds)
{
	const size_t k = 1 + (size_t)(draw(replay) * (double)(replay->vectors - 1));
	const struct nt_message *before = replay->vector[k - 1], *after = replay->vector[k];
	struct nt_metric_value metric[MOST_METRICS];
	nt_autobuf struct nt_buf buf = {0};
	char name[NT_WIRE_MAX_TEXT];
	struct nt_message message = {
		.agent = name,
		.key = name,
		.boot = 7000 + n,
		.seq = ++replay->seq[n],
		.real_ns = real_ns,
		.boot_ns = boot_ns,
		.watermark_boot_ns = boot_ns,
		.body = NT_BODY_NODE,
		.node = after->node,
	};
	struct nt_bus_record record = {.topic = NT_TOPIC_NODE, .key = name, .real_ns = real_ns};
	int r;

	if (n < replay->real)
		(void)snprintf(name, sizeof(name), "%s", replay->name[n]);
	else
		(void)snprintf(name, sizeof(name), "replay-%zu", n - replay->real + 1);
	message.node.node = name;
	message.node.metric = metric;
	/* The first vectors came before the job was found. */
	message.node.job = replay->vector[replay->vectors - 1]->node.job;
	message.node.jobs = replay->vector[replay->vectors - 1]->node.jobs;
	for (size_t i = 0; i < after->node.metrics; i++) {
		const double noise = draw_noise(replay);

		metric[i].name = after->node.metric[i].name;
		if (is_counter(metric[i].name))
			metric[i].value = replay->counter[n][i] +=
				seconds * noise * fmax(0.0, rate_of(before, after, i));
		else
			metric[i].value = noise * after->node.metric[i].value;
	}
	r = nt_message_encode(&message, &buf);
	if (r < 0)
		return r;
	record.key_len = strlen(name);
	record.value = buf.data;
	record.value_len = buf.len;
	return nt_bus_publish(replay->bus, &record);
}

static int run(struct node_replay *replay, size_t nodes, uint64_t minutes)
{
	const uint64_t step_ns = NT_MINUTE / PAST_VECTORS, now_ns = nt_clock_real_ns();
	uint64_t at_ns = now_ns - minutes * NT_MINUTE;
	int r = 0;

	for (; at_ns < now_ns && r == 0; at_ns += step_ns)
		for (size_t n = 0; n < nodes && r == 0; n++)
			r = publish(replay, n, at_ns,
				    at_ns - now_ns + minutes * NT_MINUTE + NT_HOUR,
				    (double)step_ns / 1e9);
	r = r < 0 ? r : nt_bus_flush(replay->bus);
	if (r < 0)
		return r;
	(void)printf("ready\n");
	(void)fflush(stdout);
	while (!is_over && r == 0) {
		const struct timespec pause = {.tv_sec = (time_t)(LIVE_NS / NT_SECOND)};
		const uint64_t live_ns = nt_clock_real_ns();

		for (size_t n = replay->real; n < nodes && r == 0; n++)
			r = publish(replay, n, live_ns,
				    live_ns - now_ns + minutes * NT_MINUTE + NT_HOUR,
				    (double)LIVE_NS / 1e9);
		r = r < 0 ? r : nt_bus_flush(replay->bus);
		(void)nanosleep(&pause, NULL);
	}
	return r;
}

int main(int argc, char **argv)
{
	static struct node_replay replay = {.seed = 1};
	uint64_t nodes = 0, minutes = 0;
	int r;

	if (argc != 6 || nt_parse_u64(argv[4], strlen(argv[4]), 1, MOST_NODES, &nodes) < 0 ||
	    nt_parse_u64(argv[5], strlen(argv[5]), 1, 100000, &minutes) < 0) {
		(void)fprintf(stderr, "usage: node_replay FROM TO NAME[,NAME...] NODES MINUTES\n");
		return 2;
	}
	for (char *rest = argv[3]; rest && replay.real < nodes;)
		replay.name[replay.real++] = strsep(&rest, ",");
	(void)sigaction(SIGTERM, &(struct sigaction){.sa_handler = end}, NULL);
	r = read_vectors(argv[1], replay.name[0], &replay);
	if (r == 0 && replay.vectors < 2)
		r = -ENODATA;
	r = r < 0 ? r : nt_bus_open(argv[2], NULL, &replay.bus);
	r = r < 0 ? r : run(&replay, nodes, minutes);
	if (r < 0)
		(void)fprintf(stderr, "node_replay: error %d\n", r);
	nt_bus_close(replay.bus);
	for (size_t i = 0; i < replay.vectors; i++)
		nt_message_free(replay.vector[i]);
	return r < 0;
}
