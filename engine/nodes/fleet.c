/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/nodes/fleet_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"
#include "detect/thresholds/thresholds.h"

enum {
	MAX_NODES = 20000,
};

struct nt_fleet_options nt_fleet_options_default(void)
{
	return (struct nt_fleet_options){
		.method = NT_ANOMALY_METHOD_CHART,
		.false_alarms = -1.0,
		.max_nodes = MAX_NODES,
	};
}

int nt_fleet_new(const struct nt_fleet_options *options, const struct nt_fleet_handler *handler,
		 struct nt_fleet **ret_fleet)
{
	struct nt_fleet *fleet = calloc(1, sizeof(*fleet));

	if (!fleet)
		return -ENOMEM;
	fleet->options = *options;
	if (handler)
		fleet->handler = *handler;
	fleet->anomaly = nt_anomaly_options_default();
	fleet->anomaly.method = options->method;
	if (options->learn_rows)
		fleet->anomaly.learn_rows = options->learn_rows;
	nt_alarm_budget_init(&fleet->budget, options->false_alarms, NT_ANOMALY_DAY_ROWS);
	*ret_fleet = fleet;
	return 0;
}

void nt_fleet_free(struct nt_fleet *fleet)
{
	struct nt_fleet_node *node, *next;

	if (!fleet)
		return;
	nt_fleet_round_release(&fleet->round);
	HASH_ITER(hh, fleet->node, node, next)
	{
		HASH_DEL(fleet->node, node);
		nt_fleet_node_free(node);
	}
	nt_fleet_metrics_release(&fleet->metrics);
	free(fleet);
}

/* ---- the table of nodes ---------------------------------------------------------------------- */

uint64_t nt_fleet_silence_ns(const struct nt_fleet *fleet, const struct nt_fleet_node *node)
{
	const uint64_t now_ns = fleet->lead_ns + fleet->quiet_ns;

	return now_ns > node->real_ns ? now_ns - node->real_ns : 0;
}

/* A round that is under way must be finished before. */
static void remove_node(struct nt_fleet *fleet, struct nt_fleet_node *node)
{
	nt_fleet_alarm_end(fleet, node, node->real_ns);
	if (fleet->refit_at == node)
		fleet->refit_at = node->hh.next;
	HASH_DEL(fleet->node, node);
	nt_fleet_node_free(node);
}

/* Makes room for a node. False: all nodes are in use. A search costs as much as there are nodes. */
static bool evict_silent(struct nt_fleet *fleet)
{
	struct nt_fleet_node *most = NULL;

	for (struct nt_fleet_node *node = fleet->node; node; node = node->hh.next)
		if (!most || nt_fleet_silence_ns(fleet, node) > nt_fleet_silence_ns(fleet, most))
			most = node;
	if (!most || nt_fleet_silence_ns(fleet, most) < NT_ANOMALY_EVICT_NS) {
		fleet->full_ns = fleet->lead_ns + fleet->quiet_ns + NT_SECOND;
		return false;
	}
	remove_node(fleet, most);
	fleet->counters.evicted++;
	return true;
}

int nt_fleet_add(struct nt_fleet *fleet, const char *name, struct nt_fleet_node **ret_node)
{
	struct nt_fleet_node *node = NULL;
	int r;

	*ret_node = NULL;
	if (HASH_COUNT(fleet->node) >= fleet->options.max_nodes) {
		if (fleet->lead_ns + fleet->quiet_ns < fleet->full_ns) {
			fleet->counters.nodes_over_cap++;
			return 0;
		}
		r = nt_fleet_turn(fleet, SIZE_MAX);
		if (r < 0)
			return r;
		if (!evict_silent(fleet)) {
			fleet->counters.nodes_over_cap++;
			return 0;
		}
	}
	r = nt_fleet_node_new(name, &node);
	if (r < 0)
		return r;
	HASH_ADD_KEYPTR(hh, fleet->node, node->name, strlen(node->name), node);
	if (!nt_table_has(node)) {
		nt_fleet_node_free(node);
		return -ENOMEM;
	}
	*ret_node = node;
	return 0;
}

/* ---- minutes --------------------------------------------------------------------------------- */

static int by_minute_down(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x < *y) - (*x > *y);
}

/* The last minute that more than half of the active nodes have passed. */
static int find_passed(const struct nt_fleet *fleet, uint64_t *ret_last)
{
	nt_autofree uint64_t *passed = calloc(fleet->active, sizeof(*passed));
	size_t n = 0;

	if (!passed)
		return -ENOMEM;
	for (const struct nt_fleet_node *node = fleet->node; node; node = node->hh.next)
		if (node->round == fleet->rounds && n < fleet->active)
			passed[n++] = node->passed;
	qsort(passed, n, sizeof(*passed), by_minute_down);
	*ret_last = n && passed[n / 2] ? passed[n / 2] - 1 : 0;
	return 0;
}

/* Counts the node; closes the minute when enough nodes have passed it. */
static int note_passed(struct nt_fleet *fleet, struct nt_fleet_node *node)
{
	const uint64_t open = fleet->done + 1;
	uint64_t last;
	int r;

	if (node->round != fleet->rounds) {
		node->round = fleet->rounds;
		node->has_passed = false;
		fleet->active++;
	}
	if (!node->has_passed && node->passed > open) {
		node->has_passed = true;
		fleet->passers++;
	}
	if (2 * fleet->passers <= fleet->active &&
	    node->real_ns < (open + 1) * NT_ANOMALY_ROW_NS + NT_ANOMALY_ROW_STALL_NS)
		return 0;
	r = find_passed(fleet, &last);
	if (r < 0)
		return r;
	r = nt_fleet_turn(fleet, SIZE_MAX);
	return r < 0 ? r : nt_fleet_round_begin(fleet, last > open ? last : open);
}

int nt_fleet_take(struct nt_fleet *fleet, const struct nt_message *message, uint32_t shard)
{
	const uint64_t minute = message->real_ns / NT_ANOMALY_ROW_NS;
	struct nt_fleet_node *node;
	bool restarted;
	int r = 0;

	if (!*message->node.node)
		return 0;
	/* The next row would replace one that is not scored yet. */
	if (fleet->round.node && minute > fleet->done + 1)
		r = nt_fleet_turn(fleet, SIZE_MAX);
	HASH_FIND_STR(fleet->node, message->node.node, node);
	if (r == 0 && !node)
		r = nt_fleet_add(fleet, message->node.node, &node);
	if (r < 0 || !node)
		return r;
	if (!fleet->done)
		fleet->done = minute ? minute - 1 : 0;
	if (message->real_ns > fleet->lead_ns) {
		fleet->lead_ns = message->real_ns;
		fleet->quiet_ns = 0;
	}
	node->shard = shard;
	r = nt_fleet_node_take(node, &fleet->metrics, message, fleet->done + 1, &fleet->counters,
			       &restarted);
	if (r < 0)
		return r;
	if (restarted) {
		nt_fleet_alarm_end(fleet, node, message->real_ns);
		nt_fleet_note_restart(fleet, node);
	}
	return note_passed(fleet, node);
}

void nt_fleet_note_restart(struct nt_fleet *fleet, const struct nt_fleet_node *node)
{
	fleet->counters.restarts++;
	if (fleet->handler.restarted)
		fleet->handler.restarted(fleet->handler.data, node);
}

void nt_fleet_wait(struct nt_fleet *fleet, uint64_t waited_ns)
{
	struct nt_fleet_node *node, *next;

	fleet->quiet_ns += waited_ns;
	if (fleet->round.node)
		return;
	HASH_ITER(hh, fleet->node, node, next)
	{
		if (nt_fleet_silence_ns(fleet, node) >= NT_ANOMALY_SILENT_NS)
			nt_fleet_alarm_end(fleet, node, node->real_ns);
		if (nt_fleet_silence_ns(fleet, node) >= NT_ANOMALY_FORGET_NS)
			remove_node(fleet, node);
	}
}

void nt_fleet_release_shard(struct nt_fleet *fleet, uint32_t shard)
{
	for (struct nt_fleet_node *node = fleet->node; node; node = node->hh.next) {
		if (node->shard != shard)
			continue;
		nt_anomaly_node_free(nt_take(node->scorer));
		nt_score_history_release(&node->history);
		node->score = (struct nt_anomaly_score){.is_learning = true};
		node->parts = 0;
		node->incident_id = 0;
		node->refit = 0;
	}
}

/* ---- refits ---------------------------------------------------------------------------------- */

static struct nt_chart *due_chart(struct nt_fleet_node *node)
{
	return node->scorer && !node->refit ? nt_anomaly_node_refit_due(node->scorer) : NULL;
}

/* Goes through all nodes once, from where the last search ended. */
static struct nt_fleet_node *find_due(struct nt_fleet *fleet)
{
	struct nt_fleet_node *node = fleet->refit_at;

	for (size_t i = HASH_COUNT(fleet->node); i > 0; i--) {
		node = node ? node : fleet->node;
		fleet->refit_at = node->hh.next;
		if (due_chart(node))
			return node;
		node = node->hh.next;
	}
	return NULL;
}

int nt_fleet_refit_begin(struct nt_fleet *fleet, struct nt_fleet_refit *ret_refit)
{
	struct nt_fleet_node *node = find_due(fleet);
	struct nt_fleet_refit refit = {0};
	int r;

	if (!node)
		return 0;
	refit.node = strdup(node->name);
	if (!refit.node)
		return -ENOMEM;
	refit.chart = due_chart(node);
	r = nt_chart_begin_refit(refit.chart, &refit.refit);
	if (r < 0) {
		free(refit.node);
		return r;
	}
	refit.restarts = nt_anomaly_node_restarts(node->scorer);
	refit.number = node->refit = ++fleet->refits;
	*ret_refit = refit;
	return 1;
}

void nt_fleet_refit_release(struct nt_fleet_refit *refit)
{
	nt_refit_free(refit->refit);
	free(refit->node);
	*refit = (struct nt_fleet_refit){0};
}

void nt_fleet_refit_end(struct nt_fleet *fleet, struct nt_fleet_refit *refit, int result)
{
	struct nt_fleet_node *node;
	bool is_same = false;

	HASH_FIND_STR(fleet->node, refit->node, node);
	if (node && node->refit == refit->number) {
		node->refit = 0;
		is_same = nt_anomaly_node_restarts(node->scorer) == refit->restarts;
	}
	fleet->counters.refits += is_same && result == 0;
	fleet->counters.refits_failed += is_same && result < 0;
	if (is_same && result == 0)
		nt_chart_end_refit(refit->chart, refit->refit);
	else if (is_same)
		nt_chart_drop_refit(refit->chart);
	nt_fleet_refit_release(refit);
}

/* ---- what it holds --------------------------------------------------------------------------- */

const struct nt_fleet_node *nt_fleet_find(const struct nt_fleet *fleet, const char *name)
{
	const struct nt_fleet_node *node;

	HASH_FIND_STR(fleet->node, name, node);
	return node;
}

const struct nt_fleet_node *nt_fleet_nodes(const struct nt_fleet *fleet)
{
	return fleet->node;
}

const struct nt_fleet_metrics *nt_fleet_metrics(const struct nt_fleet *fleet)
{
	return &fleet->metrics;
}

const struct nt_fleet_counters *nt_fleet_counters(const struct nt_fleet *fleet)
{
	return &fleet->counters;
}

double nt_fleet_threshold(const struct nt_fleet *fleet)
{
	return fleet->budget.threshold;
}

double nt_fleet_false_alarms(const struct nt_fleet *fleet)
{
	return fleet->budget.false_alarms;
}

uint64_t nt_fleet_lead_ns(const struct nt_fleet *fleet)
{
	return fleet->lead_ns;
}
