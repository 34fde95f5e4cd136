/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/node_desk.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "detect/thresholds/thresholds.h"

enum {
	TURN_ROWS = 512, /* scored in one turn of the deciding thread: under a millisecond */
};

struct nt_node_desk {
	struct nt_node_desk_handler handler;
	pthread_t refitter;
	pthread_mutex_t lock; /* covers all below */
	pthread_cond_t wanted; /* rows were scored, or it stops */
	struct nt_fleet *fleet;
	uint64_t rows; /* scored when refits were last looked for */
	bool stopping;
};

/* ---- refits ---------------------------------------------------------------------------------- */

/* The lock is held, except while a refit is solved. */
static void solve_due(struct nt_node_desk *desk)
{
	struct nt_fleet_refit refit;

	while (!desk->stopping) {
		int r = nt_fleet_refit_begin(desk->fleet, &refit);

		/* Without memory it is tried again after the next row. */
		if (r <= 0)
			return;
		(void)pthread_mutex_unlock(&desk->lock);
		r = nt_refit_solve(refit.refit);
		(void)pthread_mutex_lock(&desk->lock);
		nt_fleet_refit_end(desk->fleet, &refit, r);
	}
}

static void *refit(void *data)
{
	struct nt_node_desk *desk = data;

	(void)pthread_mutex_lock(&desk->lock);
	while (!desk->stopping) {
		const uint64_t rows = nt_fleet_counters(desk->fleet)->rows;

		if (rows == desk->rows) {
			(void)pthread_cond_wait(&desk->wanted, &desk->lock);
			continue;
		}
		desk->rows = rows;
		solve_due(desk);
	}
	(void)pthread_mutex_unlock(&desk->lock);
	return NULL;
}

/* ---- new and free ---------------------------------------------------------------------------- */

static bool owns_shard(void *data, uint32_t shard)
{
	const struct nt_node_desk *desk = data;

	return !desk->handler.owns || desk->handler.owns(desk->handler.data, shard);
}

static void pass_alarm(void *data, struct nt_fleet_node *node, enum nt_fleet_change change,
		       uint64_t real_ns)
{
	const struct nt_node_desk *desk = data;

	desk->handler.alarm(desk->handler.data, desk->fleet, node, change, real_ns);
}

static void pass_restart(void *data, const struct nt_fleet_node *node)
{
	const struct nt_node_desk *desk = data;

	if (desk->handler.restarted)
		desk->handler.restarted(desk->handler.data, node);
}

int nt_node_desk_new(const struct nt_fleet_options *options,
		     const struct nt_node_desk_handler *handler, struct nt_node_desk **ret_desk)
{
	struct nt_node_desk *desk = calloc(1, sizeof(*desk));
	const struct nt_fleet_handler of_fleet = {owns_shard, pass_alarm, pass_restart, desk};
	int r;

	if (!desk)
		return -ENOMEM;
	desk->handler = *handler;
	r = nt_fleet_new(options, &of_fleet, &desk->fleet);
	if (r < 0) {
		free(desk);
		return r;
	}
	(void)pthread_mutex_init(&desk->lock, NULL);
	(void)pthread_cond_init(&desk->wanted, NULL);
	r = -pthread_create(&desk->refitter, NULL, refit, desk);
	if (r < 0) {
		nt_fleet_free(desk->fleet);
		(void)pthread_cond_destroy(&desk->wanted);
		(void)pthread_mutex_destroy(&desk->lock);
		free(desk);
		return r;
	}
	*ret_desk = desk;
	return 0;
}

void nt_node_desk_free(struct nt_node_desk *desk)
{
	if (!desk)
		return;
	(void)pthread_mutex_lock(&desk->lock);
	desk->stopping = true;
	(void)pthread_cond_signal(&desk->wanted);
	(void)pthread_mutex_unlock(&desk->lock);
	(void)pthread_join(desk->refitter, NULL);
	/* Open alarms stay open: another aggregator, or the next start, goes on. */
	nt_fleet_free(desk->fleet);
	(void)pthread_cond_destroy(&desk->wanted);
	(void)pthread_mutex_destroy(&desk->lock);
	free(desk);
}

/* ---- the deciding thread --------------------------------------------------------------------- */

int nt_node_desk_take(struct nt_node_desk *desk, const struct nt_message *message, uint32_t shard)
{
	int r;

	(void)pthread_mutex_lock(&desk->lock);
	r = nt_fleet_take(desk->fleet, message, shard);
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

int nt_node_desk_turn(struct nt_node_desk *desk)
{
	int r;

	(void)pthread_mutex_lock(&desk->lock);
	r = nt_fleet_turn(desk->fleet, TURN_ROWS);
	if (nt_fleet_counters(desk->fleet)->rows != desk->rows)
		(void)pthread_cond_signal(&desk->wanted);
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

void nt_node_desk_wait(struct nt_node_desk *desk, uint64_t waited_ns)
{
	(void)pthread_mutex_lock(&desk->lock);
	nt_fleet_wait(desk->fleet, waited_ns);
	(void)pthread_mutex_unlock(&desk->lock);
}

int nt_node_desk_note(struct nt_node_desk *desk, const struct nt_wire_incident *incident)
{
	int r;

	(void)pthread_mutex_lock(&desk->lock);
	r = nt_fleet_note_alarm(desk->fleet, incident);
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

void nt_node_desk_join(struct nt_node_desk *desk, const char *node)
{
	(void)pthread_mutex_lock(&desk->lock);
	nt_fleet_join(desk->fleet, node);
	(void)pthread_mutex_unlock(&desk->lock);
}

void nt_node_desk_release_shard(struct nt_node_desk *desk, uint32_t shard)
{
	(void)pthread_mutex_lock(&desk->lock);
	nt_fleet_release_shard(desk->fleet, shard);
	(void)pthread_mutex_unlock(&desk->lock);
}

const struct nt_fleet *nt_node_desk_fleet(const struct nt_node_desk *desk)
{
	return desk->fleet;
}

int nt_node_desk_save(struct nt_node_desk *desk, uint32_t shard, struct nt_buf *buf)
{
	int r;

	(void)pthread_mutex_lock(&desk->lock);
	r = nt_fleet_save(desk->fleet, shard, buf);
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

int nt_node_desk_load(struct nt_node_desk *desk, uint32_t shard, const void *data, size_t size)
{
	int r;

	(void)pthread_mutex_lock(&desk->lock);
	r = nt_fleet_load(desk->fleet, shard, data, size);
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

int nt_node_desk_save_portion(struct nt_node_desk *desk, uint32_t shard, uint32_t portion,
			      struct nt_buf *buf)
{
	int r;

	(void)pthread_mutex_lock(&desk->lock);
	r = nt_fleet_save_portion(desk->fleet, shard, portion, buf);
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

int nt_node_desk_load_portion(struct nt_node_desk *desk, uint32_t shard, const void *data,
			      size_t size)
{
	int r;

	(void)pthread_mutex_lock(&desk->lock);
	r = nt_fleet_load_portion(desk->fleet, shard, data, size);
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

/* ---- any thread ------------------------------------------------------------------------------ */

static struct nt_node_desk_part part_of(const struct nt_fleet *fleet, uint8_t number)
{
	const struct nt_fleet_metric *metric = &nt_fleet_metrics(fleet)->at[number];

	return (struct nt_node_desk_part){
		.metric = metric->name,
		.unit = metric->unit,
		.is_rate = metric->kind != NT_MINUTE_GAUGE,
	};
}

static void read_score(const struct nt_fleet *fleet, const struct nt_fleet_node *node,
		       struct nt_node_desk_score *ret_score)
{
	*ret_score = (struct nt_node_desk_score){
		.is_scored = node->scorer != NULL,
		.state = nt_fleet_node_state(node),
		.reason = node->reason,
		.learning_since_ns = node->learning_since_ns,
		.scored_ns = node->scored_ns,
		.score = node->score.score,
		.threshold = nt_fleet_threshold(fleet),
		.peers = node->peers,
		.incident_id = node->incident_id,
		.parts = node->parts,
	};
	for (size_t i = 0; i < node->parts; i++) {
		const struct nt_fleet_part *from = &node->part[i];
		struct nt_node_desk_part *part = &ret_score->part[i];

		*part = part_of(fleet, from->metric);
		part->share = from->share;
		part->value = from->value;
		part->low = from->low;
		part->high = from->high;
		part->peers = from->peers;
	}
}

bool nt_node_desk_find(struct nt_node_desk *desk, const char *node,
		       struct nt_node_desk_score *ret_score)
{
	const struct nt_fleet_node *found;

	(void)pthread_mutex_lock(&desk->lock);
	found = nt_fleet_find(desk->fleet, node);
	if (found)
		read_score(desk->fleet, found, ret_score);
	(void)pthread_mutex_unlock(&desk->lock);
	return found;
}

static int copy_points(const struct nt_fleet *fleet, const struct nt_score_point *from, size_t n,
		       struct nt_node_desk_point **ret_point)
{
	struct nt_node_desk_point *point = calloc(n + 1, sizeof(*point));

	if (!point)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		point[i] = (struct nt_node_desk_point){
			.real_ns = (from[i].minute + 1) * NT_ANOMALY_ROW_NS,
			.value = from[i].value,
			.leading = from[i].leading == NT_SCORE_HISTORY_NONE
					   ? ""
					   : nt_fleet_metrics(fleet)->at[from[i].leading].name,
			.state = (enum nt_fleet_state)from[i].state,
		};
	*ret_point = point;
	return 0;
}

int nt_node_desk_scores(struct nt_node_desk *desk, const char *node,
			struct nt_node_desk_point **ret_point, size_t *ret_points)
{
	struct nt_score_point point[NT_SCORE_HISTORY_SCORES];
	const struct nt_fleet_node *found;
	size_t n;
	int r = -ENOENT;

	(void)pthread_mutex_lock(&desk->lock);
	found = nt_fleet_find(desk->fleet, node);
	if (found) {
		n = nt_score_history_scores(&found->history, point);
		r = copy_points(desk->fleet, point, n, ret_point);
		if (r == 0)
			*ret_points = n;
	}
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

static uint8_t slot_of(const struct nt_fleet *fleet, const struct nt_fleet_node *node,
		       const char *metric)
{
	const struct nt_fleet_metrics *metrics = nt_fleet_metrics(fleet);

	for (size_t j = 0; j < node->metrics; j++)
		if (strcmp(metrics->at[node->number[j]].name, metric) == 0)
			return (uint8_t)j;
	return NT_FLEET_NO_METRIC;
}

int nt_node_desk_series(struct nt_node_desk *desk, const char *node, const char *metric,
			struct nt_node_desk_part *ret_part, struct nt_node_desk_point **ret_point,
			size_t *ret_points)
{
	struct nt_score_point point[NT_SCORE_HISTORY_ROWS];
	const struct nt_fleet_node *found;
	uint8_t slot = NT_FLEET_NO_METRIC;
	size_t n;
	int r = -ENOENT;

	(void)pthread_mutex_lock(&desk->lock);
	found = nt_fleet_find(desk->fleet, node);
	if (found) {
		slot = slot_of(desk->fleet, found, metric);
		r = -ESRCH;
	}
	if (slot != NT_FLEET_NO_METRIC) {
		n = nt_score_history_series(&found->history, slot, point);
		*ret_part = part_of(desk->fleet, found->number[slot]);
		r = copy_points(desk->fleet, point, n, ret_point);
		if (r == 0)
			*ret_points = n;
	}
	(void)pthread_mutex_unlock(&desk->lock);
	return r;
}

void nt_node_desk_stats(struct nt_node_desk *desk, struct nt_node_desk_stats *ret_stats)
{
	struct nt_node_desk_stats stats = {0};

	(void)pthread_mutex_lock(&desk->lock);
	stats.counters = *nt_fleet_counters(desk->fleet);
	stats.names_over_cap = nt_fleet_metrics(desk->fleet)->over_cap;
	stats.threshold = nt_fleet_threshold(desk->fleet);
	for (const struct nt_fleet_node *node = nt_fleet_nodes(desk->fleet); node;
	     node = node->hh.next) {
		stats.bytes += nt_fleet_node_bytes(node);
		if (!node->scorer)
			continue;
		stats.scored++;
		stats.state[nt_fleet_node_state(node)]++;
	}
	(void)pthread_mutex_unlock(&desk->lock);
	*ret_stats = stats;
}
