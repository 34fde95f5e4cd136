/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A round: the rows of one minute, less the medians of each node's job, are scored. */
#include "engine/nodes/fleet_impl.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detect/anomaly/peers.h"
#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

static void free_group(struct nt_fleet_group *group)
{
	free(group->key);
	free(group->member);
	free(group->median);
	free(group->spread);
	free(group);
}

void nt_fleet_round_release(struct nt_fleet_round *round)
{
	struct nt_fleet_group *group, *next;

	HASH_ITER(hh, round->group, group, next)
	{
		HASH_DEL(round->group, group);
		free_group(group);
	}
	free(round->node);
	free(round->scratch);
	*round = (struct nt_fleet_round){0};
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int count_in_group(struct nt_fleet_round *round, const char *key)
{
	struct nt_fleet_group *group;

	HASH_FIND_STR(round->group, key, group);
	if (!group) {
		group = calloc(1, sizeof(*group));
		if (!group)
			return -ENOMEM;
		group->key = strdup(key);
		if (group->key)
			HASH_ADD_KEYPTR(hh, round->group, group->key, strlen(key), group);
		if (!group->key || !nt_table_has(group)) {
			free_group(group);
			return -ENOMEM;
		}
	}
	group->nodes++;
	return 0;
}

static int fill_groups(struct nt_fleet_round *round)
{
	size_t most = 1;

	for (size_t i = 0; i < round->nodes; i++)
		for (size_t j = 0; j < round->node[i]->jobs; j++) {
			int r = count_in_group(round, round->node[i]->job[j].key);

			if (r < 0)
				return r;
		}
	for (struct nt_fleet_group *group = round->group; group; group = group->hh.next) {
		if (!nt_anomaly_has_peers(group->nodes))
			continue;
		most = group->nodes > most ? group->nodes : most;
		group->member = calloc(group->nodes, sizeof(*group->member));
		if (!group->member)
			return -ENOMEM;
	}
	round->scratch = calloc(most, sizeof(*round->scratch));
	if (!round->scratch)
		return -ENOMEM;
	for (size_t i = 0; i < round->nodes; i++)
		for (size_t j = 0; j < round->node[i]->jobs; j++) {
			struct nt_fleet_group *group;

			HASH_FIND_STR(round->group, round->node[i]->job[j].key, group);
			if (group && group->member)
				group->member[group->members++] = round->node[i];
		}
	return 0;
}

/* Median and spread of a metric over the nodes of a job; NaN if too few have it. */
static void set_median(struct nt_fleet_group *group, size_t number, double *scratch)
{
	size_t n = 0;

	group->median[number] = group->spread[number] = NAN;
	for (size_t i = 0; i < group->members; i++) {
		const struct nt_fleet_node *node = group->member[i];
		uint8_t slot;

		assert(node);
		slot = node->slot[number];
		if (slot != NT_FLEET_NO_METRIC && nt_anomaly_is_value(node->row[slot]))
			scratch[n++] = node->row[slot];
	}
	if (!nt_anomaly_has_peers(n))
		return;
	group->median[number] = nt_stats_median_of(scratch, n);
	for (size_t i = 0; i < n; i++)
		scratch[i] = fabs(scratch[i] - group->median[number]);
	group->spread[number] = nt_stats_median_of(scratch, n);
}

/* All medians of a job, before the first of its rows is scored. */
static int set_medians(const struct nt_fleet *fleet, struct nt_fleet_group *group, double *scratch)
{
	if (!group->member)
		return 0;
	group->median = calloc(NT_FLEET_METRICS, sizeof(*group->median));
	group->spread = calloc(NT_FLEET_METRICS, sizeof(*group->spread));
	if (!group->median || !group->spread)
		return -ENOMEM;
	for (size_t i = 0; i < fleet->metrics.count; i++)
		set_median(group, i, scratch);
	return 0;
}

/* The job that most nodes have, of those of the node; NULL: none has enough. */
static const struct nt_fleet_group *choose_group(const struct nt_fleet_round *round,
						 const struct nt_fleet_node *node, uint8_t *ret_job)
{
	const struct nt_fleet_group *best = NULL;

	for (size_t j = 0; j < node->jobs; j++) {
		const struct nt_fleet_group *group;

		HASH_FIND_STR(round->group, node->job[j].key, group);
		if (!group || !group->median || (best && group->nodes <= best->nodes))
			continue;
		best = group;
		*ret_job = (uint8_t)j;
	}
	return best;
}

/* ---- a round --------------------------------------------------------------------------------- */

int nt_fleet_round_begin(struct nt_fleet *fleet, uint64_t last)
{
	struct nt_fleet_round round = {.minute = last};
	int r;

	fleet->done = last;
	fleet->rounds++;
	fleet->active = fleet->passers = 0;
	round.node = calloc(HASH_COUNT(fleet->node) + 1, sizeof(struct nt_fleet_node *));
	if (!round.node)
		return -ENOMEM;
	for (struct nt_fleet_node *node = fleet->node; node; node = node->hh.next) {
		nt_fleet_node_close(node, last, &fleet->counters);
		if (node->row_minute && node->row_minute <= last)
			round.node[round.nodes++] = node;
	}
	r = fill_groups(&round);
	for (struct nt_fleet_group *group = round.group; group && r == 0; group = group->hh.next)
		r = set_medians(fleet, group, round.scratch);
	if (r < 0) {
		nt_fleet_round_release(&round);
		return r;
	}
	fleet->round = round;
	return 0;
}

/* A row in the order of the node's slots. */
struct fleet_row {
	const char *name[NT_ANOMALY_METRICS_MAX];
	double peers[NT_ANOMALY_METRICS_MAX];
	bool trouble[NT_ANOMALY_METRICS_MAX];
};

/*
 * What the peers have in common, of a metric. When all of them rise, they differ more as well: while
 * their spread is larger than usual, the node's deviation counts in proportion less.
 */
static double find_peers(struct nt_fleet_node *node, const struct nt_fleet_group *group,
			 size_t slot, double rate)
{
	const double kept = 1.0 - nt_anomaly_rate(NT_ANOMALY_SPREAD_KEPT);
	const size_t number = node->number[slot];
	const double median = group->median[number], usual = (double)node->usual_spread[slot];
	double spread = (double)node->spread[slot];

	if (isnan(median) || !nt_anomaly_is_value(node->row[slot]))
		return median;
	/* Few nodes give a rough spread, so the largest of the last rows counts. */
	spread = nt_stats_max(group->spread[number], kept * spread);
	node->spread[slot] = (float)spread;
	node->usual_spread[slot] = (float)(usual + rate * (spread - usual));
	if (!node->spread_rows || spread <= usual)
		return median;
	return node->row[slot] - (node->row[slot] - median) * (usual / spread);
}

static void fill_row(const struct nt_fleet *fleet, struct nt_fleet_node *node,
		     const struct nt_fleet_group *group, struct fleet_row *row)
{
	const double rate = nt_stats_max(1.0 / (node->spread_rows + 1.0),
					 nt_anomaly_rate(NT_ANOMALY_SPREAD_ROWS));

	for (size_t j = 0; j < node->metrics; j++) {
		const struct nt_fleet_metric *metric = &fleet->metrics.at[node->number[j]];

		row->name[j] = metric->name;
		row->trouble[j] = metric->kind == NT_MINUTE_TROUBLE;
		row->peers[j] = group ? find_peers(node, group, j, rate) : NAN;
	}
	node->spread_rows += group && node->spread_rows < UINT32_MAX;
}

static void take_parts(const struct nt_fleet *fleet, struct nt_fleet_node *node,
		       const struct nt_fleet_group *group)
{
	struct nt_anomaly_metric part[NT_ANOMALY_RANKED];
	const size_t parts = nt_anomaly_node_explain(node->scorer, part);

	node->parts = 0;
	for (size_t i = 0; i < parts; i++) {
		const struct nt_fleet_metric *metric;

		HASH_FIND_STR(fleet->metrics.table, part[i].name, metric);
		if (!metric)
			continue;
		node->part[node->parts++] = (struct nt_fleet_part){
			.metric = (uint8_t)(metric - fleet->metrics.at),
			.share = part[i].share,
			.value = part[i].value,
			.low = part[i].low,
			.high = part[i].high,
			.peers = group ? group->median[metric - fleet->metrics.at] : NAN,
		};
	}
}

static int remember(struct nt_fleet_node *node)
{
	const struct nt_score_entry entry = {
		.score = (float)node->score.score,
		.leading = node->parts ? node->part[0].metric : NT_SCORE_HISTORY_NONE,
		.state = (uint8_t)nt_fleet_node_state(node),
	};

	return nt_score_history_add(&node->history, node->row_minute, &entry, node->row,
				    node->metrics);
}

static int score_node(struct nt_fleet *fleet, struct nt_fleet_node *node)
{
	const struct nt_fleet_group *group = choose_group(&fleet->round, node, &node->peer_job);
	struct fleet_row row;
	int r = 0;

	fill_row(fleet, node, group, &row);
	if (!node->scorer)
		r = nt_anomaly_node_new(&fleet->anomaly, &node->scorer);
	if (r == 0)
		r = nt_anomaly_node_take(node->scorer, &fleet->budget,
					 &(struct nt_anomaly_row){
						 .name = row.name,
						 .value = node->row,
						 .peers = group ? row.peers : NULL,
						 .trouble = row.trouble,
						 .metrics = node->metrics,
					 },
					 &node->score);
	if (r < 0)
		return r;
	node->peers = group ? group->nodes : 0;
	node->scored_ns = (node->row_minute + 1) * NT_ANOMALY_ROW_NS;
	fleet->counters.rows++;
	take_parts(fleet, node, group);
	r = remember(node);
	if (r == 0)
		nt_fleet_alarm_look(fleet, node);
	return r;
}

int nt_fleet_turn(struct nt_fleet *fleet, size_t most)
{
	struct nt_fleet_round *round = &fleet->round;

	for (size_t i = 0; i < most && round->at < round->nodes; i++) {
		struct nt_fleet_node *node = round->node[round->at++];
		const bool is_ours = !fleet->handler.owns ||
				     fleet->handler.owns(fleet->handler.data, node->shard);
		int r = is_ours && node->metrics && node->row_minute ? score_node(fleet, node) : 0;

		node->row_minute = 0;
		if (r < 0)
			return r;
	}
	if (round->at == round->nodes)
		nt_fleet_round_release(round);
	return 0;
}
