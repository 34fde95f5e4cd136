/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the scores of a fleet cost: `bench-fleet [NODES [MINUTES]]` feeds vectors every 5 s of nodes
 * in jobs of 64, and prints the time a minute of the fleet takes and the memory of a node.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "engine/nodes/fleet.h"
#include "proto/node_metric.h"

enum {
	VECTORS = 12, /* a minute */
	JOB_NODES = 64,
	IDLE_MINUTES = 10, /* between jobs, so that nodes are learned in both views */
	MAX_METRICS = 256,
};

#define START_NS (1700000040ULL * NT_SECOND)

struct fleet_bench {
	struct nt_fleet *fleet;
	size_t nodes, metrics;
	const struct nt_node_metric *metric[MAX_METRICS];
	uint64_t seed;
	double count; /* of all counters */
};

static double thread_seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double random_of(struct fleet_bench *bench)
{
	bench->seed = bench->seed * 6364136223846793005U + 1442695040888963407U;
	return (double)(bench->seed >> 11) * 0x1p-53;
}

/* GPU and RDMA metrics are left out: 40 and some remain, as on a node without them. */
static void choose_metrics(struct fleet_bench *bench)
{
	static const char *const names[] = {
#define NT_NODE_METRIC(name, kind, unit, scored, about) #name,
#include "proto/node_metric.def"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && bench->metrics < MAX_METRICS;
	     i++) {
		const struct nt_node_metric *metric = nt_node_metric_find(names[i]);

		if (metric->is_scored && strncmp(names[i], "gpu_", 4) != 0 &&
		    strncmp(names[i], "rdma_", 5) != 0)
			bench->metric[bench->metrics++] = metric;
	}
}

static int send(struct fleet_bench *bench, size_t node, uint64_t vector)
{
	struct nt_metric_value metric[MAX_METRICS];
	char name[32], job[32];
	const char *jobs[] = {job};
	const struct nt_message message = {
		.agent = name,
		.boot = node + 1,
		.seq = vector + 1,
		.real_ns = START_NS + vector * (NT_MINUTE / VECTORS),
		.boot_ns = NT_HOUR + vector * (NT_MINUTE / VECTORS),
		.body = NT_BODY_NODE,
		.node = {.node = name,
			 .metric = metric,
			 .metrics = bench->metrics,
			 .job = jobs,
			 .jobs = vector / VECTORS / IDLE_MINUTES % 2 == 0,
			 .boot_id = "7d9e3bb8-7f0e-4a53-9a3c-1f6c1a3a1f10",
			 .kernel = "6.1.0-18-amd64"},
	};

	(void)snprintf(name, sizeof(name), "node-%zu", node);
	(void)snprintf(job, sizeof(job), "job-%zu", node / JOB_NODES);
	for (size_t j = 0; j < bench->metrics; j++) {
		const bool is_gauge = bench->metric[j]->kind == NT_NODE_METRIC_GAUGE ||
				      bench->metric[j]->kind == NT_NODE_METRIC_RATIO;

		metric[j] = (struct nt_metric_value){bench->metric[j]->name,
						     is_gauge ? random_of(bench)
							      : bench->count + random_of(bench)};
	}
	return nt_fleet_take(bench->fleet, &message, 0);
}

static int solve_due(struct fleet_bench *bench, uint64_t *refits)
{
	struct nt_fleet_refit refit;
	int r;

	while ((r = nt_fleet_refit_begin(bench->fleet, &refit)) > 0) {
		nt_fleet_refit_end(bench->fleet, &refit, nt_refit_solve(refit.refit));
		(*refits)++;
	}
	return r;
}

static int run(struct fleet_bench *bench, uint64_t minutes)
{
	double take = 0, turn = 0, solve = 0, at;
	uint64_t refits = 0, bytes = 0, saved = 0;
	int r = 0;

	for (uint64_t v = 0; v < minutes * VECTORS && r == 0; v++) {
		bench->count += 10.0;
		at = thread_seconds();
		for (size_t i = 0; i < bench->nodes && r == 0; i++)
			r = send(bench, i, v);
		take += thread_seconds() - at;
		at = thread_seconds();
		r = r < 0 ? r : nt_fleet_turn(bench->fleet, SIZE_MAX);
		turn += thread_seconds() - at;
		at = thread_seconds();
		r = r < 0 ? r : solve_due(bench, &refits);
		solve += thread_seconds() - at;
	}
	if (r < 0)
		return r;
	for (const struct nt_fleet_node *node = nt_fleet_nodes(bench->fleet); node;
	     node = node->hh.next)
		bytes += nt_fleet_node_bytes(node);
	for (uint32_t i = 0; i < NT_FLEET_PORTIONS && r >= 0; i++) {
		nt_autobuf struct nt_buf buf = {0};

		r = nt_fleet_save_portion(bench->fleet, 0, i, &buf);
		saved += buf.len;
	}
	(void)printf("%zu nodes, %zu metrics, %llu minutes, vectors every 5 s\n", bench->nodes,
		     bench->metrics, (unsigned long long)minutes);
	(void)printf("a minute of the fleet: vectors %.1f ms (with making them), rows %.1f ms\n",
		     1e3 * take / (double)minutes, 1e3 * turn / (double)minutes);
	(void)printf("of one core: %.4f, without refits\n",
		     (take + turn) / (60.0 * (double)minutes));
	(void)printf("a row: %.2f us\n",
		     1e6 * turn / (double)nt_fleet_counters(bench->fleet)->rows);
	if (refits)
		(void)printf("a refit: %.2f ms, %llu of them\n", 1e3 * solve / (double)refits,
			     (unsigned long long)refits);
	(void)printf("a node: %.1f kB in memory, %.1f kB saved\n",
		     (double)bytes / 1e3 / (double)bench->nodes,
		     (double)saved / 1e3 / (double)bench->nodes);
	return r < 0 ? r : 0;
}

int main(int argc, char **argv)
{
	struct fleet_bench bench = {.nodes = 10000, .seed = 1};
	struct nt_fleet_options options = nt_fleet_options_default();
	uint64_t nodes = bench.nodes, minutes = 5;
	int r;

	if ((argc > 1 && nt_parse_u64(argv[1], strlen(argv[1]), 1, 1000000, &nodes) < 0) ||
	    (argc > 2 && nt_parse_u64(argv[2], strlen(argv[2]), 1, 1000000, &minutes) < 0)) {
		(void)fprintf(stderr, "usage: bench-fleet [NODES [MINUTES]]\n");
		return 2;
	}
	bench.nodes = nodes;
	options.max_nodes = nodes;
	choose_metrics(&bench);
	r = nt_fleet_new(&options, NULL, &bench.fleet);
	r = r < 0 ? r : run(&bench, minutes);
	nt_fleet_free(bench.fleet);
	return r < 0;
}
