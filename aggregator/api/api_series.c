/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The recent past of a job: metrics of its ranks, and its steps. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/base/parse_number.h"
#include "proto/json.h"

static int set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

/* ---- a rank ---------------------------------------------------------------------------------- */

/* Returns 1 and a problem if the parameter is no metric. */
static int read_metric(const struct nt_httpd_request *request, struct nt_httpd_reply *reply,
		       enum nt_series_metric *ret_metric)
{
	const char *name = nt_httpd_query(request, "metric");
	char all[256] = "";
	size_t len = 0;
	int r;

	*ret_metric = name ? nt_series_metric_of(name) : NT_SERIES_METRIC_END;
	if (*ret_metric != NT_SERIES_METRIC_END)
		return 0;
	for (unsigned int i = 0; i < NT_SERIES_METRIC_END; i++)
		len += (size_t)snprintf(all + len, sizeof(all) - len, " %s",
					nt_series_metric_name((enum nt_series_metric)i));
	r = nt_httpd_problem(reply, request, 400, "bad_parameter", "'metric' is one of:%s", all);
	return r < 0 ? r : 1;
}

static json_t *point_json(const struct nt_series_point *point)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "at", nt_json_time(point->real_ns));
	failed |= set(object, "value", nt_json_number((double)point->value));
	return failed ? NULL : nt_take(object);
}

static int reply_points(struct nt_httpd_reply *reply, const struct nt_snapshot_job *job,
			uint32_t rank, enum nt_series_metric metric,
			const struct nt_series_point *point, int count)
{
	nt_autojson json_t *object = json_object();
	nt_autojson json_t *items = json_array();
	int failed = 0, r;

	for (int i = 0; i < count; i++)
		failed |= json_array_append_new(items, point_json(&point[i]));
	failed |= set(object, "job", nt_json_text(job->id));
	failed |= set(object, "rank", json_integer(rank));
	failed |= set(object, "metric", json_string(nt_series_metric_name(metric)));
	failed |=
		set(object, "unit", metric == NT_SERIES_KPI ? json_null() : json_string("seconds"));
	failed |= json_object_set(object, "items", items);
	r = failed ? -ENOMEM : nt_api_reply_object(reply, nt_take(object));
	return r < 0 ? r : nt_api_tag(reply);
}

int nt_api_rank_series(void *data, const struct nt_httpd_request *request,
		       struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	const char *number = nt_httpd_segment(request, 1);
	struct nt_series_point point[NT_SERIES_POINTS];
	const struct nt_snapshot_job *job;
	enum nt_series_metric metric;
	uint32_t rank;
	int count, r;

	r = read_metric(request, reply, &metric);
	if (r)
		return r < 0 ? r : 0;
	job = nt_api_find_own_job(snapshot, request, reply, &r);
	if (!job)
		return r;
	count = -ENOENT;
	if (api->options.series_desk &&
	    nt_parse_u32(number, strlen(number), 0, UINT32_MAX, &rank) == 0)
		count = nt_series_desk_rank(api->options.series_desk, job->id, rank, metric, point);
	if (count == -ENOENT)
		return nt_httpd_problem(reply, request, 404, "no_such_rank",
					"the job has no such rank, or it has no past yet");
	return count < 0 ? count : reply_points(reply, job, rank, metric, point, count);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static json_t *step_json(const struct nt_series_step *step)
{
	const bool has_slowest = step->slowest_own_s >= 0;
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "at", nt_json_time(step->real_ns));
	failed |= set(object, "window", json_integer((json_int_t)step->frame));
	failed |= set(object, "step_seconds", nt_json_number((double)step->step_s));
	failed |= set(object, "completeness", nt_json_number((double)step->completeness));
	failed |= set(object, "live", json_integer(step->live));
	failed |= set(object, "slowest_rank",
		      has_slowest ? json_integer(step->slowest_rank) : json_null());
	failed |= set(object, "slowest_own_seconds", nt_json_number((double)step->slowest_own_s));
	return failed ? NULL : nt_take(object);
}

/* The newest first. `before` is the number of a frame. */
static int reply_steps(struct nt_httpd_reply *reply, const struct nt_series_step *step, int count,
		       uint64_t before, size_t limit)
{
	nt_autojson json_t *items = json_array();
	char next[32] = "";

	for (int i = count - 1; i >= 0; i--) {
		if (step[i].frame >= before)
			continue;
		if (json_array_size(items) == limit) {
			(void)snprintf(next, sizeof(next), "w%" PRIu64, step[i + 1].frame);
			break;
		}
		if (json_array_append_new(items, step_json(&step[i])))
			return -ENOMEM;
	}
	return nt_api_reply_list(reply, nt_take(items), next);
}

int nt_api_steps(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autofree struct nt_series_step *step = calloc(NT_SERIES_STEPS, sizeof(*step));
	const struct nt_snapshot_job *job;
	struct nt_api_query query;
	uint64_t before = UINT64_MAX;
	int count = 0, r;

	if (!step)
		return -ENOMEM;
	r = nt_api_query_read(request, "", reply, &query);
	if (r)
		return r < 0 ? r : 0;
	if (query.cursor &&
	    (query.cursor[0] != 'w' ||
	     nt_parse_u64(query.cursor + 1, strlen(query.cursor + 1), 0, UINT64_MAX, &before) < 0))
		return nt_api_bad_cursor(request, reply);
	job = nt_api_find_own_job(snapshot, request, reply, &r);
	if (!job)
		return r;
	if (api->options.series_desk)
		count = nt_series_desk_steps(api->options.series_desk, job->id, step);
	if (count < 0 && count != -ENOENT)
		return count;
	return reply_steps(reply, step, count, before, query.limit);
}
