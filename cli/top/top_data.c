/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/top/top_data.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

void nt_top_data_release(struct nt_top_data *data)
{
	for (size_t i = 0; i < NT_TOP_LISTS; i++)
		json_decref(data->list[i]);
	free(data->accused);
	*data = (struct nt_top_data){0};
}

/* ---- items ----------------------------------------------------------------------------------- */

const char *nt_top_key(enum nt_top_list list, const json_t *item, char key[NT_TOP_KEY])
{
	if (list == NT_TOP_RANKS)
		(void)snprintf(
			key, NT_TOP_KEY, "%.0f %.0f %s", nt_json_get_number(item, "rank", -1),
			nt_json_get_number(item, "pid", -1), nt_json_get_text(item, "node", ""));
	else
		(void)snprintf(key, NT_TOP_KEY, "%s",
			       nt_json_get_text(item, list == NT_TOP_NODES ? "node" : "id", ""));
	return key;
}

const json_t *nt_top_find(const struct nt_top_data *data, enum nt_top_list list, const char *key)
{
	char own[NT_TOP_KEY];
	const json_t *item;
	size_t i;

	json_array_foreach(data->list[list], i, item)
	{
		if (strcmp(nt_top_key(list, item, own), key) == 0)
			return item;
	}
	return NULL;
}

bool nt_top_concerns(const json_t *job, const json_t *incident)
{
	const json_t *ids = json_object_get(job, "incidents");
	const char *own = nt_json_get_text(incident, "id", "");

	for (size_t i = 0; i < json_array_size(ids); i++)
		if (strcmp(json_string_value(json_array_get(ids, i)) ?: "", own) == 0)
			return true;
	return false;
}

const json_t *nt_top_choose_job(const struct nt_top_data *data, const char *wanted)
{
	const json_t *jobs = data->list[NT_TOP_JOBS];
	const json_t *found = *wanted ? nt_top_find(data, NT_TOP_JOBS, wanted) : NULL;

	for (size_t i = 0; !found && i < json_array_size(jobs); i++) {
		const json_t *job = json_array_get(jobs, i);

		if (json_array_size(json_object_get(job, "incidents")))
			found = job;
	}
	return found ? found : json_array_get(jobs, 0);
}

/* ---- accused ranks --------------------------------------------------------------------------- */

static int compare_accused(const void *left, const void *right)
{
	const struct nt_top_accused *a = left, *b = right;

	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int accuse(struct nt_top_data *data, const json_t *incident)
{
	const json_t *culprits = json_object_get(incident, "culprits");
	struct nt_top_accused *accused;

	if (!json_array_size(culprits))
		return 0;
	accused = reallocarray(data->accused, data->accused_count + json_array_size(culprits),
			       sizeof(*accused));
	if (!accused)
		return -ENOMEM;
	data->accused = accused;
	for (size_t k = 0; k < json_array_size(culprits); k++) {
		const json_t *culprit = json_array_get(culprits, k);

		if (strcmp(nt_json_get_text(culprit, "kind", ""), "rank") == 0)
			accused[data->accused_count++] = (struct nt_top_accused){
				nt_json_get_number(culprit, "rank", -1), incident};
	}
	return 0;
}

static int list_accused(struct nt_top_data *data)
{
	const json_t *job = nt_top_find(data, NT_TOP_JOBS, data->job), *incident;
	size_t i;

	free(data->accused);
	data->accused = NULL;
	data->accused_count = 0;
	json_array_foreach(data->list[NT_TOP_INCIDENTS], i, incident)
	{
		if (job && nt_top_concerns(job, incident) && accuse(data, incident) < 0)
			return -ENOMEM;
	}
	if (data->accused_count)
		qsort(data->accused, data->accused_count, sizeof(*data->accused), compare_accused);
	return 0;
}

const json_t *nt_top_accusation(const struct nt_top_data *data, const json_t *rank)
{
	const struct nt_top_accused key = {.rank = nt_json_get_number(rank, "rank", -2)};
	const struct nt_top_accused *found = NULL;

	if (data->accused_count)
		found = bsearch(&key, data->accused, data->accused_count, sizeof(key),
				compare_accused);
	return found ? found->incident : NULL;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* An item with what it is sorted by: the largest first; then as before. */
struct ranked {
	json_t *item;
	double first, second;
	size_t before;
};

static int compare_ranked(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->first != b->first)
		return a->first > b->first ? -1 : 1;
	if (a->second != b->second)
		return a->second > b->second ? -1 : 1;
	return a->before < b->before ? -1 : a->before > b->before;
}

static double severity_order(const json_t *incident)
{
	const char *severity = nt_json_get_text(incident, "severity", "");

	return !strcmp(severity, "critical") ? 2 : !strcmp(severity, "warning") ? 1 : 0;
}

static struct ranked order_of(const struct nt_top_data *data, enum nt_top_list list, json_t *item)
{
	const json_t *anomaly = json_object_get(item, "anomaly");
	struct ranked ranked = {.item = item};

	switch (list) {
	case NT_TOP_INCIDENTS:
		ranked.first = severity_order(item);
		ranked.second = nt_json_get_number(item, "slowdown", 0);
		break;
	case NT_TOP_JOBS:
		ranked.first = (double)json_array_size(json_object_get(item, "incidents"));
		break;
	case NT_TOP_RANKS:
		ranked.first = nt_top_accusation(data, item) ? 1 : 0;
		ranked.second = nt_json_get_number(item, "kpi", -INFINITY);
		break;
	case NT_TOP_NODES:
		ranked.first = !strcmp(nt_json_get_text(anomaly, "state", ""), "alarm");
		ranked.second = nt_json_get_number(anomaly, "score", -1);
		break;
	case NT_TOP_LISTS:
		break;
	}
	return ranked;
}

static int sort_list(struct nt_top_data *data, enum nt_top_list list)
{
	size_t count = json_array_size(data->list[list]);
	nt_autofree struct ranked *ranked = count ? calloc(count, sizeof(*ranked)) : NULL;
	nt_autojson json_t *sorted = json_array();

	if (!sorted || (count && !ranked))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		ranked[i] = order_of(data, list, json_array_get(data->list[list], i));
		ranked[i].before = i;
	}
	if (count)
		qsort(ranked, count, sizeof(*ranked), compare_ranked);
	for (size_t i = 0; i < count; i++)
		if (json_array_append(sorted, ranked[i].item))
			return -ENOMEM;
	json_decref(data->list[list]);
	data->list[list] = nt_take(sorted);
	return 0;
}

int nt_top_data_sort(struct nt_top_data *data)
{
	int r = list_accused(data);

	for (size_t i = 0; i < NT_TOP_LISTS && r == 0; i++)
		r = sort_list(data, (enum nt_top_list)i);
	return r;
}
