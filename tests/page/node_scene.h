/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Invented scored series for tests of their page: names that attack it, and more than it can hold. */
#ifndef NT_TESTS_PAGE_NODE_SCENE_H
#define NT_TESTS_PAGE_NODE_SCENE_H

#include <math.h>

#include "cli/anomaly/node_page.h"
#include "tests/page/scene.h"

enum {
	NODE_SCENE_START_S = 1763694000,
};

struct node_scene {
	struct nt_node_page page;
	struct nt_fleet_series *fleet; /* owned */
};

static inline void node_scene_init(struct node_scene *scene, const char *source, size_t nodes,
				   size_t rows)
{
	struct nt_fleet_series *fleet = scene_keep(calloc(1, sizeof(*fleet)));

	fleet->series = scene_keep(calloc(nodes, sizeof(*fleet->series)));
	fleet->threshold_row = scene_keep(calloc(rows, sizeof(*fleet->threshold_row)));
	for (size_t i = 0; i < rows; i++)
		fleet->threshold_row[i] = 20.0;
	fleet->rows = rows;
	fleet->threshold = 20.0;
	fleet->row_interval_s = 60.0;
	*scene = (struct node_scene){.page = {.fleet = fleet, .source = source}, .fleet = fleet};
}

static inline void node_scene_free(struct node_scene *scene)
{
	nt_fleet_series_free(scene->fleet);
	*scene = (struct node_scene){0};
}

/* A node whose metrics have these names in turn; a third of its rows is learned, no score is over 1. */
static inline struct nt_node_series *node_scene_add(struct node_scene *scene, const char *name,
						    size_t metrics, const char *(*metric)(size_t i))
{
	struct nt_node_series *series = &scene->fleet->series[scene->fleet->count++];
	struct nt_metric_table *table = scene_keep(calloc(1, sizeof(*table)));
	const size_t rows = scene->fleet->rows;

	table->rows = table->cap = rows;
	table->metrics = metrics;
	table->name = scene_keep(calloc(metrics, sizeof(*table->name)));
	table->value = scene_keep(calloc(rows * metrics, sizeof(*table->value)));
	table->time_s = scene_keep(calloc(rows, sizeof(*table->time_s)));
	for (size_t j = 0; j < metrics; j++)
		table->name[j] = scene_keep(strdup(metric(j)));
	for (size_t row = 0; row < rows; row++)
		table->time_s[row] = NODE_SCENE_START_S + 60.0 * (double)row;
	*series = (struct nt_node_series){.table = table, .learned_rows = rows / 3};
	series->name = scene_keep(strdup(name));
	series->score = scene_keep(calloc(rows, sizeof(*series->score)));
	series->alarm_row = scene_keep(calloc(rows, sizeof(*series->alarm_row)));
	for (size_t row = series->learned_rows; row < rows; row++)
		series->score[row] = 0.2 + 0.1 * (double)(row % 7);
	return series;
}

/* An alarm over these rows, whose first metrics share its score. */
static inline struct nt_node_alarm *node_scene_alarm(struct nt_node_series *series, size_t first,
						     size_t last, double score)
{
	struct nt_node_alarm *alarm;

	series->alarm =
		scene_keep(reallocarray(series->alarm, series->alarms + 1, sizeof(*series->alarm)));
	series->alarm_cap = series->alarms + 1;
	alarm = &series->alarm[series->alarms++];
	*alarm = (struct nt_node_alarm){
		.first = first,
		.last = last,
		.peak = (first + last) / 2,
		.is_open = last + 1 == series->table->rows,
		.score = score,
		.threshold = 20.0,
	};
	for (; alarm->metrics < NT_ANOMALY_RANKED && alarm->metrics < series->table->metrics;
	     alarm->metrics++)
		alarm->metric[alarm->metrics] = (struct nt_anomaly_metric){
			.name = series->table->name[alarm->metrics],
			.share = 0.5 / (double)(1 + alarm->metrics),
			.value = 40.5,
			.peers = NAN,
			.low = 0.25,
			.high = 1.75,
		};
	for (size_t row = first; row <= last; row++) {
		series->score[row] = row == alarm->peak ? score : 0.8 * score;
		series->alarm_row[row] = 1;
	}
	return alarm;
}

/* Every name attacks the page. */
static inline void node_scene_attacked(struct node_scene *scene)
{
	static const char *note[SCENE_ATTACKS];

	node_scene_init(scene, scene_name(1), SCENE_ATTACKS, 300);
	for (size_t i = 0; i < SCENE_ATTACKS; i++) {
		struct nt_node_series *series =
			node_scene_add(scene, scene_name(i), SCENE_ATTACKS, scene_name);

		(void)node_scene_alarm(series, 150, 160, 100.0 + (double)i);
		series->table->value[i] = NAN;
		series->missing = 1;
		note[i] = scene_name(i);
	}
	scene->page.note = note;
	scene->page.notes = SCENE_ATTACKS;
}

static inline const char *node_scene_long_name(size_t i)
{
	static char name[256];

	(void)i;
	memset(name, '"', sizeof(name) - 1);
	return name;
}

/* More of everything than a page takes, every name as long as can be and of what grows the most. */
static inline void node_scene_worst(struct node_scene *scene)
{
	enum { NODES = NT_NODE_SERIES_FILES, ROWS = 800, METRICS = 16, ALARMS = 300, NOTES = 150 };
	static char text[4096];
	static const char *note[NOTES];

	memset(text, '"', sizeof(text) - 1);
	for (size_t i = 0; i < NOTES; i++)
		note[i] = text;
	node_scene_init(scene, text, NODES, ROWS);
	for (size_t i = 0; i < ROWS; i++)
		scene->fleet->threshold_row[i] = i % 2 ? 1e9 : 1e-9;
	scene->fleet->has_peers = true;
	scene->page.note = note;
	scene->page.notes = NOTES;
	for (size_t i = 0; i < NODES; i++) {
		struct nt_node_series *series = node_scene_add(scene, node_scene_long_name(0),
							       METRICS, node_scene_long_name);

		for (size_t k = 0; k < ALARMS; k++)
			(void)node_scene_alarm(series, ROWS - 2 * ALARMS + 2 * k,
					       ROWS - 2 * ALARMS + 2 * k, 1e300);
		series->alarms_dropped = SIZE_MAX / 2;
		series->table->left_out = SIZE_MAX;
		series->table->cut = true;
		for (size_t row = 0; row < ROWS; row += 2)
			for (size_t j = 0; j < METRICS; j++, series->missing++)
				series->table->value[row * METRICS + j] = NAN;
	}
}

#endif
