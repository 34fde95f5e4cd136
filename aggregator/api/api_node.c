/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nodes in replies: what their agents leave out, and the scores of their metrics. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "engine/agents/shortage.h"
#include "engine/nodes/fleet.h"
#include "engine/snapshot.h"
#include "proto/json.h"

json_t *nt_api_count(uint64_t count)
{
	return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

static json_t *limit_json(const struct nt_shortage_limit *limit)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= json_object_set_new(object, "what", nt_json_text(limit->what));
	failed |= json_object_set_new(object, "unit", nt_json_text(limit->unit));
	failed |= json_object_set_new(object, "owner", nt_json_text(limit->owner));
	failed |= json_object_set_new(object, "left_out", nt_api_count(limit->left_out));
	failed |=
		json_object_set_new(object, "owner_left_out", nt_api_count(limit->owner_left_out));
	failed |= json_object_set_new(object, "cap", json_integer(limit->cap));
	return failed ? NULL : nt_take(object);
}

json_t *nt_api_limits(const struct nt_snapshot_node *node)
{
	nt_autojson json_t *list = json_array();

	for (size_t i = 0; i < node->limits; i++) {
		if (json_array_append_new(list, limit_json(&node->limit[i])))
			return NULL;
	}
	return nt_take(list);
}

/* An unknown number is null. */
static json_t *part_json(const struct nt_node_desk_part *part)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= json_object_set_new(object, "metric", nt_json_text(part->metric));
	failed |= json_object_set_new(object, "unit", nt_json_text(part->unit));
	failed |= json_object_set_new(object, "per_second", json_boolean(part->is_rate));
	failed |= json_object_set_new(object, "share", nt_json_number(part->share));
	failed |= json_object_set_new(object, "value", nt_json_number(part->value));
	failed |= json_object_set_new(object, "peers", nt_json_number(part->peers));
	failed |= json_object_set_new(object, "low", nt_json_number(part->low));
	failed |= json_object_set_new(object, "high", nt_json_number(part->high));
	return failed ? NULL : nt_take(object);
}

static json_t *parts_json(const struct nt_node_desk_score *score)
{
	nt_autojson json_t *list = json_array();

	for (size_t i = 0; i < score->parts; i++)
		if (json_array_append_new(list, part_json(&score->part[i])))
			return NULL;
	return nt_take(list);
}

static json_t *incident_json(uint64_t id)
{
	return id ? json_sprintf("%016" PRIx64, id) : json_null();
}

static json_t *time_or_null(uint64_t real_ns)
{
	return real_ns ? nt_json_time(real_ns) : json_null();
}

static json_t *score_json(const struct nt_node_desk_score *score)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= json_object_set_new(object, "state",
				      json_string(nt_fleet_state_name(score->state)));
	failed |= json_object_set_new(object, "score", nt_json_number(score->score));
	failed |= json_object_set_new(object, "threshold", nt_json_number(score->threshold));
	failed |= json_object_set_new(object, "at", time_or_null(score->scored_ns));
	failed |= json_object_set_new(
		object, "peers", json_integer(score->peers ? (json_int_t)score->peers - 1 : 0));
	failed |= json_object_set_new(object, "learning_since",
				      time_or_null(score->learning_since_ns));
	failed |= json_object_set_new(object, "learning_reason",
				      json_string(nt_fleet_reason_name(score->reason)));
	failed |= json_object_set_new(object, "incident", incident_json(score->incident_id));
	failed |= json_object_set_new(object, "metrics", parts_json(score));
	return failed ? NULL : nt_take(object);
}

/* Null: another aggregator scores the node, or none does. */
static json_t *anomaly_json(struct nt_node_desk *desk, const char *node)
{
	struct nt_node_desk_score score;

	if (!desk || !nt_node_desk_find(desk, node, &score) || !score.is_scored)
		return json_null();
	return score_json(&score);
}

static json_t *node_json(struct nt_node_desk *desk, const struct nt_snapshot_node *node)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= json_object_set_new(object, "node", nt_json_text(node->name));
	failed |= json_object_set_new(object, "ranks", json_integer(node->ranks));
	failed |= json_object_set_new(object, "state",
				      json_string(node->silent ? "unobserved" : "observed"));
	failed |= json_object_set_new(object, "seen", nt_json_time(node->last_seen_ns));
	failed |= json_object_set_new(object, "limits", nt_api_limits(node));
	failed |= json_object_set_new(object, "anomaly", anomaly_json(desk, node->name));
	return failed ? NULL : nt_take(object);
}

/* A cursor is "n" and the name of the last node. */
int nt_api_nodes(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autojson json_t *items = json_array();
	struct nt_api_query query;
	const char *last = NULL;
	char next[NT_WIRE_MAX_TEXT + 2] = "";
	int r;

	r = nt_api_query_read(request, "observed unobserved", reply, &query);
	if (r)
		return r < 0 ? r : 0;
	if (query.cursor && query.cursor[0] != 'n')
		return nt_api_bad_cursor(request, reply);
	for (size_t i = 0; snapshot && i < snapshot->nodes; i++) {
		const struct nt_snapshot_node *node = &snapshot->node[i];

		if ((query.cursor && strcmp(node->name, query.cursor + 1) <= 0) ||
		    (query.state && !strcmp(query.state, "observed") == node->silent))
			continue;
		if (json_array_size(items) == query.limit) {
			(void)snprintf(next, sizeof(next), "n%s", last);
			break;
		}
		if (json_array_append_new(items, node_json(api->options.node_desk, node)))
			return -ENOMEM;
		last = node->name;
	}
	return nt_api_reply_list(reply, nt_take(items), next);
}

/* ---- the scores of a node -------------------------------------------------------------------- */

/* The node of the path. False: *ret_r is the handler's result, and the reply may be a problem. */
static bool find_node(const struct nt_api *api, const struct nt_httpd_request *request,
		      struct nt_httpd_reply *reply, const char **ret_node,
		      struct nt_node_desk_score *ret_score, int *ret_r)
{
	*ret_node = nt_httpd_segment(request, 0);
	if (api->options.node_desk &&
	    nt_node_desk_find(api->options.node_desk, *ret_node, ret_score) && ret_score->is_scored)
		return true;
	*ret_r = nt_httpd_problem(reply, request, 404, "not_found",
				  "this aggregator scores no node '%s'", *ret_node);
	return false;
}

static json_t *score_point_json(const struct nt_node_desk_point *point)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= json_object_set_new(object, "at", nt_json_time(point->real_ns));
	failed |= json_object_set_new(object, "score", nt_json_number(point->value));
	failed |= json_object_set_new(object, "state",
				      json_string(nt_fleet_state_name(point->state)));
	failed |= json_object_set_new(object, "metric", nt_json_text(point->leading));
	return failed ? NULL : nt_take(object);
}

static json_t *value_point_json(const struct nt_node_desk_point *point)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= json_object_set_new(object, "at", nt_json_time(point->real_ns));
	failed |= json_object_set_new(object, "value", nt_json_number(point->value));
	return failed ? NULL : nt_take(object);
}

static json_t *points_json(const struct nt_node_desk_point *point, size_t points,
			   json_t *(*point_json)(const struct nt_node_desk_point *))
{
	nt_autojson json_t *list = json_array();

	for (size_t i = 0; i < points; i++)
		if (json_array_append_new(list, point_json(&point[i])))
			return NULL;
	return nt_take(list);
}

int nt_api_node_scores(void *data, const struct nt_httpd_request *request,
		       struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autojson json_t *object = json_object();
	nt_autofree struct nt_node_desk_point *point = NULL;
	struct nt_node_desk_score score;
	size_t points = 0;
	const char *node;
	int failed = 0, r = 0;

	if (!find_node(api, request, reply, &node, &score, &r))
		return r;
	r = nt_node_desk_scores(api->options.node_desk, node, &point, &points);
	if (r == -ENOMEM)
		return r;
	failed |= json_object_set_new(object, "node", nt_json_text(node));
	failed |= json_object_set_new(object, "anomaly", score_json(&score));
	failed |=
		json_object_set_new(object, "items", points_json(point, points, score_point_json));
	return failed ? -ENOMEM : nt_api_reply_object(reply, nt_take(object));
}

int nt_api_node_series(void *data, const struct nt_httpd_request *request,
		       struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	const char *metric = nt_httpd_query(request, "metric"), *node;
	nt_autojson json_t *object = json_object();
	nt_autofree struct nt_node_desk_point *point = NULL;
	struct nt_node_desk_score score;
	struct nt_node_desk_part part;
	size_t points = 0;
	int failed = 0, r = 0;

	if (!metric)
		return nt_httpd_problem(reply, request, 400, "bad_parameter",
					"'metric' is the name of a metric");
	if (!find_node(api, request, reply, &node, &score, &r))
		return r;
	r = nt_node_desk_series(api->options.node_desk, node, metric, &part, &point, &points);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return nt_httpd_problem(reply, request, 404, "not_found",
					"node '%s' has no scored metric '%s'", node, metric);
	failed |= json_object_set_new(object, "node", nt_json_text(node));
	failed |= json_object_set_new(object, "metric", nt_json_text(part.metric));
	failed |= json_object_set_new(object, "unit", nt_json_text(part.unit));
	failed |= json_object_set_new(object, "per_second", json_boolean(part.is_rate));
	failed |=
		json_object_set_new(object, "items", points_json(point, points, value_point_json));
	return failed ? -ENOMEM : nt_api_reply_object(reply, nt_take(object));
}
