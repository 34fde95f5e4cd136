/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A fleet of simulated nodes: vectors every 20 s, with gauges and two counters. */
#ifndef NT_TESTS_UNIT_ENGINE_NODES_FLEET_FEED_H
#define NT_TESTS_UNIT_ENGINE_NODES_FLEET_FEED_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/system/clock.h"
#include "engine/nodes/fleet.h"

#ifndef FEED_GAUGES /* a test may want more */
#define FEED_GAUGES 12
#endif

enum {
	FEED_NODES = 10,
	FEED_METRICS = FEED_GAUGES + 2,
	FEED_LEARN = 1440, /* rows; the first refit comes after 500 */
	FEED_VECTORS = 3, /* a minute */
	FEED_EVENTS = 64,
};

#define FEED_START_NS   (1700000040ULL * NT_SECOND) /* a full minute */
#define FEED_BOOTED_NS  (FEED_START_NS - NT_HOUR)
#define FEED_VECTOR_NS  (NT_MINUTE / FEED_VECTORS)
#define FEED_RETRANSMIT "tcp_retransmits"
#define FEED_SENT       "net_sent_bytes"

struct feed_node {
	char name[16];
	uint64_t seed, seq, run, booted_ns;
	int64_t skew_ns; /* of its clock */
	double sent, retransmits; /* counters */
	const char *boot_id, *kernel, *job[2];
	size_t jobs;
	/* What is wrong: the factor of some gauges, retransmits a second, or nothing is sent. */
	size_t gauge, gauges; /* the first one, and how many */
	double factor, retransmit_rate;
	bool is_silent;
	/* Changes a vector before it is sent; NULL: none. *metrics may be made less. */
	void (*spoil)(struct feed_node *node, struct nt_metric_value *metric, size_t *metrics);
	uint64_t spoiled; /* vectors since then */
};

struct feed_event {
	char node[16];
	enum nt_fleet_change change;
	uint64_t real_ns, id;
	char leading[NT_ANOMALY_NAME_BYTES];
};

struct feed {
	struct nt_fleet *fleet;
	struct feed_node node[FEED_NODES];
	size_t nodes;
	uint64_t now_ns;
	struct feed_event event[FEED_EVENTS];
	size_t events;
	/* Nodes learned anew, and the last one. */
	size_t restarts;
	char restarted[16];
	enum nt_fleet_reason restart_reason;
	bool solves; /* refits are solved at once */
};

static inline double feed_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005U + 1442695040888963407U;
	return (double)(*seed >> 11) * 0x1p-53;
}

static inline double feed_normal(uint64_t *seed)
{
	return sqrt(-2.0 * log(1.0 - feed_random(seed))) * cos(2.0 * M_PI * feed_random(seed));
}

static inline void feed_note(void *data, struct nt_fleet_node *node, enum nt_fleet_change change,
			     uint64_t real_ns)
{
	struct feed *feed = data;
	struct feed_event *event;

	assert_true(feed->events < FEED_EVENTS);
	event = &feed->event[feed->events++];
	*event = (struct feed_event){.change = change, .real_ns = real_ns, .id = node->incident_id};
	(void)snprintf(event->node, sizeof(event->node), "%.15s", node->name);
	if (node->parts)
		(void)snprintf(event->leading, sizeof(event->leading), "%s",
			       nt_fleet_metrics(feed->fleet)->at[node->part[0].metric].name);
}

static inline void feed_note_restart(void *data, const struct nt_fleet_node *node)
{
	struct feed *feed = data;

	feed->restarts++;
	feed->restart_reason = node->reason;
	(void)snprintf(feed->restarted, sizeof(feed->restarted), "%.15s", node->name);
}

static inline struct nt_fleet *feed_fleet(struct feed *feed)
{
	const struct nt_fleet_handler handler = {
		.alarm = feed_note, .restarted = feed_note_restart, .data = feed};
	struct nt_fleet_options options = nt_fleet_options_default();
	struct nt_fleet *fleet;

	options.learn_rows = FEED_LEARN;
	assert_int_equal(nt_fleet_new(&options, &handler, &fleet), 0);
	return fleet;
}

static inline void feed_open(struct feed *feed, size_t nodes)
{
	memset(feed, 0, sizeof(*feed));
	feed->fleet = feed_fleet(feed);
	feed->now_ns = FEED_START_NS;
	feed->nodes = nodes;
	feed->solves = true;
	for (size_t i = 0; i < FEED_NODES; i++) {
		struct feed_node *node = &feed->node[i];

		(void)snprintf(node->name, sizeof(node->name), "node-%zu", i);
		node->seed = i * 7919 + 13;
		node->run = 1000 + i;
		node->booted_ns = FEED_BOOTED_NS;
		node->boot_id = "boot-1";
		node->kernel = "6.1.0-1";
		node->job[0] = "job";
		node->jobs = 1;
		node->factor = 1.0;
		node->gauges = 1;
	}
}

/* What the job does in a minute is the same on all of its nodes. */
static inline double feed_phase(uint64_t now_ns)
{
	const uint64_t minute = now_ns / NT_MINUTE;

	return 0.6 + 0.2 * (double)(minute / 45 % 2) +
	       0.1 * sin(2.0 * M_PI * (double)minute / 1440.0);
}

/* The node's vector of now. */
static inline void feed_fill(struct feed *feed, struct feed_node *node, char text[][16],
			     struct nt_metric_value *metric)
{
	const double phase = feed_phase(feed->now_ns), disk = feed_random(&node->seed);
	const double seconds = (double)FEED_VECTOR_NS / 1e9;

	for (size_t j = 0; j < FEED_GAUGES; j++) {
		const double noise = 0.02 * feed_normal(&node->seed);
		const double factor = j - node->gauge < node->gauges ? node->factor : 1.0;

		(void)snprintf(text[j], 16, "gauge_%zu", j);
		metric[j] = (struct nt_metric_value){
			text[j], factor * (j == FEED_GAUGES - 1 ? 64.0
					   : j % 3 == 0         ? 100.0 * (phase + noise)
					   : j % 3 == 1         ? 7.0 * (phase + disk + noise)
								: 3.0 * (disk + noise))};
	}
	node->sent += seconds * 1e6 * (phase + 0.02 * feed_normal(&node->seed));
	node->retransmits += floor(seconds * (node->retransmit_rate + feed_random(&node->seed)));
	metric[FEED_GAUGES] = (struct nt_metric_value){FEED_SENT, node->sent};
	metric[FEED_GAUGES + 1] = (struct nt_metric_value){FEED_RETRANSMIT, node->retransmits};
}

static inline void feed_refit(struct feed *feed)
{
	struct nt_fleet_refit refit;

	while (nt_fleet_refit_begin(feed->fleet, &refit) > 0)
		nt_fleet_refit_end(feed->fleet, &refit, nt_refit_solve(refit.refit));
}

static inline void feed_send(struct feed *feed, struct feed_node *node,
			     struct nt_metric_value *metric, size_t metrics)
{
	struct nt_message message = {
		.agent = node->name,
		.boot = node->run,
		.seq = ++node->seq,
		.real_ns = (uint64_t)((int64_t)feed->now_ns + node->skew_ns),
		.boot_ns = feed->now_ns - node->booted_ns,
		.body = NT_BODY_NODE,
		.node = {.node = node->name,
			 .metric = metric,
			 .metrics = metrics,
			 .job = node->job,
			 .jobs = node->jobs,
			 .boot_id = node->boot_id,
			 .kernel = node->kernel},
	};

	assert_int_equal(nt_fleet_take(feed->fleet, &message, 0), 0);
	assert_int_equal(nt_fleet_turn(feed->fleet, SIZE_MAX), 0);
	if (feed->solves)
		feed_refit(feed);
}

static inline void feed_run(struct feed *feed, size_t minutes)
{
	struct nt_metric_value metric[FEED_METRICS];
	char text[FEED_METRICS][16];

	for (size_t i = 0; i < minutes * FEED_VECTORS; i++) {
		feed->now_ns += FEED_VECTOR_NS;
		for (size_t n = 0; n < feed->nodes; n++) {
			struct feed_node *node = &feed->node[n];
			size_t metrics = FEED_METRICS;

			if (node->is_silent)
				continue;
			feed_fill(feed, node, text, metric);
			if (node->spoil) {
				node->spoil(node, metric, &metrics);
				node->spoiled++;
			}
			feed_send(feed, node, metric, metrics);
		}
	}
}

/* A bad link: retransmits, less traffic, and what waits for it. */
static inline void feed_break(struct feed_node *node, bool is_broken)
{
	node->retransmit_rate = is_broken ? 40.0 : 0.0;
	node->gauges = is_broken ? 5 : 1;
	node->factor = is_broken ? 3.0 : 1.0;
}

/* Another run of the node's agent, whose counters begin at 0. */
static inline void feed_restart_agent(struct feed_node *node)
{
	node->run++;
	node->seq = 0;
	node->sent = node->retransmits = 0.0;
}

static inline void feed_reboot(struct feed *feed, struct feed_node *node)
{
	feed_restart_agent(node);
	node->booted_ns = feed->now_ns;
}

static inline const struct nt_fleet_node *feed_find(const struct feed *feed, size_t i)
{
	const struct nt_fleet_node *node = nt_fleet_find(feed->fleet, feed->node[i].name);

	assert_non_null(node);
	return node;
}

/* The largest value of a metric in the node's last rows; NaN: it has none. */
static inline double feed_most(const struct feed *feed, size_t i, const char *metric)
{
	struct nt_score_point point[NT_SCORE_HISTORY_ROWS];
	const struct nt_fleet_node *node = feed_find(feed, i);
	double most = NAN;

	for (size_t j = 0; j < node->metrics; j++) {
		size_t n;

		if (strcmp(nt_fleet_metrics(feed->fleet)->at[node->number[j]].name, metric) != 0)
			continue;
		n = nt_score_history_series(&node->history, j, point);
		for (size_t k = 0; k < n; k++)
			most = fmax(most, point[k].value);
	}
	return most;
}

#endif
