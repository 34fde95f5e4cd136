/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs, their ranks, and the nodes that they run on. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "proto/json.h"

static int set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

static json_t *seconds(double ns, bool known)
{
	return known ? nt_json_number(ns / (double)NT_SECOND) : json_null();
}

static json_t *time_or_null(uint64_t real_ns)
{
	return real_ns ? nt_json_time(real_ns) : json_null();
}

static json_t *hex(uint64_t value)
{
	char text[17];

	(void)snprintf(text, sizeof(text), "%016" PRIx64, value);
	return json_string(text);
}

static json_t *open_incidents(const struct nt_snapshot_job *job)
{
	nt_autojson json_t *ids = json_array();

	for (size_t i = 0; i < job->incidents; i++) {
		if (json_array_append_new(ids, nt_json_text(job->incident[i]->id)))
			return NULL;
	}
	return nt_take(ids);
}

/* Jobs of other aggregators, sorted by key and attempt, with their incidents from the store. */
struct stored_job {
	const struct nt_snapshot_job *job;
	json_t *ids;
};

struct stored_jobs {
	struct stored_job *item;
	size_t count;
};

static void release_stored(struct stored_jobs *stored)
{
	for (size_t i = 0; i < stored->count; i++)
		json_decref(stored->item[i].ids);
	free(stored->item);
}

static int compare_stored(const void *a, const void *b)
{
	const struct nt_snapshot_job *one = ((const struct stored_job *)a)->job;
	const struct nt_snapshot_job *other = ((const struct stored_job *)b)->job;
	int order = strcmp(one->key, other->key);

	if (order)
		return order;
	return one->attempt < other->attempt ? -1 : one->attempt > other->attempt;
}

/* Two jobs may have one key and attempt, one of them having ended: both get the incident. */
static int add_stored(void *data, const char *id, const char *job_key, uint32_t attempt)
{
	const struct nt_snapshot_job wanted = {.key = job_key, .attempt = attempt};
	const struct stored_job key = {.job = &wanted};
	struct stored_jobs *stored = data;
	struct stored_job *end = stored->item + stored->count;
	struct stored_job *found =
		bsearch(&key, stored->item, stored->count, sizeof(key), compare_stored);

	while (found && found > stored->item && !compare_stored(found - 1, &key))
		found--;
	for (; found && found < end && !compare_stored(found, &key); found++)
		if (json_array_append_new(found->ids, nt_json_text(id)))
			return -ENOMEM;
	return 0;
}

/* With one query for all jobs: a list may have a thousand. */
static int read_stored(const struct nt_api *api, const struct nt_snapshot_job *const *job,
		       size_t count, struct stored_jobs *ret_stored)
{
	ret_stored->item = calloc(count + 1, sizeof(*ret_stored->item));
	if (!ret_stored->item)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct stored_job *item = &ret_stored->item[ret_stored->count];

		if (!job[i]->is_summary)
			continue;
		*item = (struct stored_job){job[i], json_array()};
		if (!item->ids)
			return -ENOMEM;
		ret_stored->count++;
	}
	if (!ret_stored->count || !api->options.store)
		return 0;
	qsort(ret_stored->item, ret_stored->count, sizeof(*ret_stored->item), compare_stored);
	return nt_store_each_firing(api->options.store, add_stored, ret_stored);
}

static json_t *stored_incidents(const struct stored_jobs *stored, const struct nt_snapshot_job *job)
{
	const struct stored_job key = {.job = job};
	const struct stored_job *found =
		bsearch(&key, stored->item, stored->count, sizeof(key), compare_stored);

	return found ? json_incref(found->ids) : json_array();
}

/* The calls that an agent's governor has shed. */
json_t *nt_api_shed(uint32_t shed)
{
	static const char *const names[] = {"launches", "copies",    "allocations",   "syncs",
					    "order",    "functions", "communication", "gemms",
					    "system",   "switches"};
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((shed >> i & 1) && json_array_append_new(array, json_string(names[i])))
			return NULL;
	}
	return nt_take(array);
}

static json_t *job_json(const struct stored_jobs *stored, const struct nt_snapshot_job *job)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "id", nt_json_text(job->id));
	failed |= set(object, "name", nt_json_text(job->name));
	failed |= set(object, "key", nt_json_text(job->key));
	failed |= set(object, "namespace", nt_json_text(job->namespace));
	failed |= set(object, "attempt", json_integer(job->attempt));
	failed |= set(object, "state", json_string(nt_job_state_name(job->state)));
	failed |= set(object, "size", json_integer(job->size));
	failed |= set(object, "live", json_integer(job->live));
	failed |= set(object, "nodes", json_integer(job->nodes));
	failed |= set(object, "step_seconds", seconds(job->step_ns, job->step_ns > 0));
	failed |= set(object, "window_seconds", seconds((double)job->cell_ns, job->cell_ns));
	failed |= set(object, "windows", json_integer((json_int_t)job->frames));
	failed |= set(object, "completeness", nt_json_number(job->completeness));
	failed |= set(object, "sampled",
		      job->is_summary ? json_null() : nt_json_number(job->sampled));
	failed |= set(object, "shed", nt_api_shed(job->shed));
	failed |= set(object, "since", nt_json_time(job->since_ns));
	failed |= set(object, "seen", nt_json_time(job->last_seen_ns));
	failed |= set(object, "ended", time_or_null(job->ended_ns));
	failed |= set(object, "incidents",
		      job->is_summary ? stored_incidents(stored, job) : open_incidents(job));
	failed |= set(object, "owner", *job->owner ? nt_json_text(job->owner) : json_null());
	return failed ? NULL : nt_take(object);
}

/* Running ones first, then the newest, then by id. */
static int compare_jobs(bool ended, uint64_t since_ns, const char *id, bool other_ended,
			uint64_t other_since_ns, const char *other_id)
{
	if (ended != other_ended)
		return ended ? 1 : -1;
	if (since_ns != other_since_ns)
		return since_ns > other_since_ns ? -1 : 1;
	return strcmp(id, other_id);
}

static int compare_job_pointers(const void *a, const void *b)
{
	const struct nt_snapshot_job *one = *(const struct nt_snapshot_job *const *)a;
	const struct nt_snapshot_job *other = *(const struct nt_snapshot_job *const *)b;

	return compare_jobs(one->ended_ns, one->since_ns, one->id, other->ended_ns, other->since_ns,
			    other->id);
}

/* "j<1 if ended><since>-<id>" */
struct job_cursor {
	bool ended;
	uint64_t since_ns;
	const char *id;
};

static int parse_cursor(const char *text, struct job_cursor *ret_cursor)
{
	const char *dash = strchr(text, '-');

	if (text[0] != 'j' || (text[1] != '0' && text[1] != '1') || !dash ||
	    nt_parse_hex(text + 2, (size_t)(dash - text) - 2, UINT64_MAX, &ret_cursor->since_ns) <
		    0)
		return -EINVAL;
	ret_cursor->ended = text[1] == '1';
	ret_cursor->id = dash + 1;
	return *ret_cursor->id ? 0 : -EINVAL;
}

static bool is_wanted(const struct nt_snapshot_job *job, const struct nt_api_query *query,
		      const struct job_cursor *after)
{
	if (query->job && !nt_snapshot_job_matches(job, query->job))
		return false;
	if (query->state && strcmp(query->state, nt_job_state_name(job->state)) != 0)
		return false;
	if (job->since_ns < query->since_ns)
		return false;
	return !after || compare_jobs(job->ended_ns, job->since_ns, job->id, after->ended,
				      after->since_ns, after->id) > 0;
}

static int reply_jobs(const struct nt_api *api, struct nt_httpd_reply *reply,
		      const struct nt_snapshot_job **job, size_t count, size_t limit)
{
	__attribute__((cleanup(release_stored))) struct stored_jobs stored = {0};
	nt_autojson json_t *items = json_array();
	char next[64] = "";
	int r = read_stored(api, job, count < limit ? count : limit, &stored);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count && i < limit; i++) {
		if (json_array_append_new(items, job_json(&stored, job[i])))
			return -ENOMEM;
	}
	if (count > limit)
		(void)snprintf(next, sizeof(next), "j%c%" PRIx64 "-%s",
			       job[limit - 1]->ended_ns ? '1' : '0', job[limit - 1]->since_ns,
			       job[limit - 1]->id);
	return nt_api_reply_list(reply, nt_take(items), next);
}

int nt_api_jobs(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autofree const struct nt_snapshot_job **job = NULL;
	size_t jobs = snapshot ? snapshot->jobs : 0, count = 0;
	struct nt_api_query query;
	struct job_cursor cursor;
	int r;

	r = nt_api_query_read(request, "running hung unobserved ended", reply, &query);
	if (r)
		return r < 0 ? r : 0;
	if (query.cursor && parse_cursor(query.cursor, &cursor) < 0)
		return nt_api_bad_cursor(request, reply);
	job = calloc(jobs + 1, sizeof(const struct nt_snapshot_job *));
	if (!job)
		return -ENOMEM;
	for (size_t i = 0; i < jobs; i++) {
		if (is_wanted(snapshot->job[i], &query, query.cursor ? &cursor : NULL))
			job[count++] = snapshot->job[i];
	}
	qsort(job, count, sizeof(const struct nt_snapshot_job *), compare_job_pointers);
	return reply_jobs(api, reply, job, count, query.limit);
}

/* NULL with the problem in the reply, or -ENOMEM in *ret_error. */
const struct nt_snapshot_job *nt_api_find_job(const struct nt_snapshot *snapshot,
					      const struct nt_httpd_request *request,
					      struct nt_httpd_reply *reply, int *ret_error)
{
	const struct nt_snapshot_job *job =
		snapshot ? nt_snapshot_find(snapshot, nt_httpd_segment(request, 0)) : NULL;

	*ret_error = job ? 0
			 : nt_httpd_problem(reply, request, 404, "no_such_job",
					    "no job has this id; it may have been deleted");
	return job;
}

const struct nt_snapshot_job *nt_api_find_own_job(const struct nt_snapshot *snapshot,
						  const struct nt_httpd_request *request,
						  struct nt_httpd_reply *reply, int *ret_r)
{
	const struct nt_snapshot_job *job = nt_api_find_job(snapshot, request, reply, ret_r);

	if (!job || !job->is_summary)
		return job;
	*ret_r = nt_api_reply_elsewhere(job, request, reply);
	return NULL;
}

int nt_api_job(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	__attribute__((cleanup(release_stored))) struct stored_jobs stored = {0};
	int r;
	const struct nt_snapshot_job *job = nt_api_find_job(snapshot, request, reply, &r);

	if (!job)
		return r;
	r = read_stored(api, &job, 1, &stored);
	return r < 0 ? r : nt_api_reply_object(reply, job_json(&stored, job));
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static json_t *operations(const struct nt_snapshot_rank *rank)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; i < rank->ops; i++) {
		const struct nt_snapshot_op *op = &rank->op[i];
		nt_autojson json_t *object = json_object();
		int failed = 0;

		failed |= set(object, "communicator", hex(op->comm));
		failed |= set(object, "library", nt_json_text(nt_library_name(op->library)));
		failed |= set(object, "operation", nt_json_text(nt_op_name(op->op)));
		failed |= set(object, "rank", json_integer(op->comm_rank));
		failed |= set(object, "size", json_integer(op->comm_size));
		failed |= set(object, "calls", nt_api_count(op->calls));
		failed |= set(object, "bytes", nt_api_count(op->bytes));
		if (failed || json_array_append(array, object))
			return NULL;
	}
	return nt_take(array);
}

static json_t *inside(const struct nt_snapshot_rank *rank)
{
	nt_autojson json_t *object = NULL;
	int failed = 0;

	if (!rank->inside)
		return json_null();
	object = json_object();
	failed |= set(object, "operation",
		      rank->inside_op == NT_OP_UNKNOWN ? json_null()
						       : nt_json_text(nt_op_name(rank->inside_op)));
	failed |= set(object, "communicator",
		      rank->inside_comm ? hex(rank->inside_comm) : json_null());
	failed |= set(object, "since", nt_json_time(rank->inside_since_ns));
	return failed ? NULL : nt_take(object);
}

static const char *rank_state(const struct nt_snapshot_rank *rank)
{
	if (rank->ended)
		return rank->finalized ? "finished" : "ended";
	if (rank->silent)
		return "unobserved";
	return "running";
}

static int set_identity(json_t *object, const struct nt_snapshot_rank *rank)
{
	int failed = 0;

	failed |= set(object, "rank", json_integer(rank->rank));
	failed |= set(object, "rank_known", json_boolean(rank->rank_known));
	failed |= set(object, "local_rank", json_integer(rank->local_rank));
	failed |= set(object, "state", json_string(rank_state(rank)));
	failed |= set(object, "node", nt_json_text(rank->node));
	failed |= set(object, "namespace", nt_json_text(rank->namespace));
	failed |= set(object, "pod", nt_json_text(rank->pod));
	failed |= set(object, "container", nt_json_text(rank->container));
	failed |= set(object, "gpu", nt_json_text(rank->gpu));
	failed |= set(object, "replica", nt_json_text(rank->replica));
	failed |= set(object, "pod_uid", nt_json_text(rank->pod_uid));
	failed |= set(object, "process", nt_json_text(rank->process));
	failed |= set(object, "pid", json_integer(rank->pid));
	failed |= set(object, "uses_gpu", json_boolean(rank->uses_gpu));
	failed |= set(object, "gpu_state", nt_api_gpu_state(&rank->gpu_state));
	failed |= set(object, "device_memory", nt_api_heap(rank->heap));
	failed |= set(object, "gemms", nt_api_gemms(rank->gemms));
	return failed;
}

static int set_work(json_t *object, const struct nt_snapshot_rank *rank)
{
	bool stepped = rank->steps > 0;
	int failed = 0;

	failed |= set(object, "tier",
		      rank->tier == NT_TIER_UNKNOWN ? json_null()
						    : nt_json_text(nt_tier_name(rank->tier)));
	failed |= set(object, "own_source", nt_json_own_source(rank->own_source));
	failed |= set(object, "step_seconds", seconds(rank->step_ns, stepped));
	failed |=
		set(object, "own_seconds", seconds(rank->own_ns, stepped && rank->own_observable));
	failed |= set(object, "own_peers_seconds",
		      seconds(rank->own_peers_ns, rank->own_peers_ns > 0));
	failed |= set(object, "host_seconds", seconds(rank->host_ns, stepped));
	failed |= set(object, "host_peers_seconds",
		      seconds(rank->host_peers_ns, rank->host_peers_ns > 0));
	failed |= set(object, "blocked_seconds", seconds(rank->blocked_ns, stepped));
	failed |= set(object, "communication_seconds", seconds(rank->comm_ns, stepped));
	failed |= set(object, "enqueue_lag_seconds",
		      seconds(rank->gpu_lag_ns, stepped && rank->tier == NT_TIER_T3));
	failed |= set(object, "kpi", nt_json_number(rank->peer_deviation));
	failed |= set(object, "width", nt_json_number(rank->width));
	failed |= set(object, "cusum", nt_json_number(rank->cusum));
	failed |= set(object, "threshold", nt_json_number(rank->threshold));
	return failed;
}

static int set_totals(json_t *object, const struct nt_snapshot_rank *rank)
{
	int failed = 0;

	failed |= set(object, "steps", nt_api_count(rank->total_steps));
	failed |= set(object, "launches", nt_api_count(rank->launches));
	failed |= set(object, "copies", nt_api_count(rank->copies));
	failed |= set(object, "copy_bytes", nt_api_count(rank->copy_bytes));
	failed |= set(object, "allocations", nt_api_count(rank->allocs));
	failed |= set(object, "allocation_bytes", nt_api_count(rank->alloc_bytes));
	failed |= set(object, "lost_events", nt_api_count(rank->lost));
	failed |= set(object, "sampled", nt_json_number(rank->sampled));
	failed |= set(object, "shed", nt_api_shed(rank->shed));
	failed |= set(object, "level", json_integer(rank->level));
	failed |= set(object, "since", nt_json_time(rank->first_seen_ns));
	failed |= set(object, "seen", nt_json_time(rank->last_seen_ns));
	return failed;
}

enum {
	MAX_PEERS = 64, /* listed peers; listing all would be quadratic */
};

static json_t *peer_ranks(const struct nt_snapshot_rank *rank)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; i < rank->peer_count && i < MAX_PEERS; i++) {
		if (json_array_append_new(array, json_integer(rank->peers[i])))
			return NULL;
	}
	return nt_take(array);
}

static json_t *rank_json(const struct nt_snapshot_rank *rank)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set_identity(object, rank);
	failed |= set_work(object, rank);
	failed |= set(object, "peers", peer_ranks(rank));
	failed |= set(object, "peer_count", json_integer((json_int_t)rank->peer_count));
	failed |= set(object, "inside", inside(rank));
	failed |= set_totals(object, rank);
	failed |= set(object, "operations", operations(rank));
	return failed ? NULL : nt_take(object);
}

/* Replies that another aggregator owns the job. */
int nt_api_reply_elsewhere(const struct nt_snapshot_job *job,
			   const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	reply->retry_after_s = 5;
	if (*job->owner)
		return nt_httpd_problem(reply, request, 503, "not_owner",
					"another aggregator owns this job: %s", job->owner);
	return nt_httpd_problem(
		reply, request, 503, "not_owner",
		"another aggregator owns this job; its address is unknown, since its --advertise is not set");
}

int nt_api_ranks(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autojson json_t *items = json_array();
	const struct nt_snapshot_job *job;
	struct nt_api_query query;
	uint64_t after = UINT64_MAX;
	char next[32] = "";
	int r;

	r = nt_api_query_read(request, "", reply, &query);
	if (r)
		return r < 0 ? r : 0;
	if (query.cursor &&
	    (query.cursor[0] != 'r' ||
	     nt_parse_u64(query.cursor + 1, strlen(query.cursor + 1), 0, UINT32_MAX, &after) < 0))
		return nt_api_bad_cursor(request, reply);
	job = nt_api_find_job(snapshot, request, reply, &r);
	if (!job)
		return r;
	if (job->is_summary)
		return nt_api_reply_elsewhere(job, request, reply);
	for (size_t i = 0; i < job->ranks; i++) {
		const struct nt_snapshot_rank *rank = &job->rank[i];

		if ((after != UINT64_MAX && rank->rank <= after) ||
		    (query.node && strcmp(query.node, rank->node) != 0))
			continue;
		if (json_array_size(items) == query.limit) {
			json_t *last = json_array_get(items, query.limit - 1);

			(void)snprintf(next, sizeof(next), "r%" JSON_INTEGER_FORMAT,
				       json_integer_value(json_object_get(last, "rank")));
			break;
		}
		if (json_array_append_new(items, rank_json(rank)))
			return -ENOMEM;
	}
	return nt_api_reply_list(reply, nt_take(items), next);
}

int nt_api_rebaseline(void *data, const struct nt_httpd_request *request,
		      struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	const char *id = nt_httpd_segment(request, 0);
	const struct nt_snapshot_job *job = snapshot ? nt_snapshot_find(snapshot, id) : NULL;
	nt_autojson json_t *object = NULL;
	int r;

	if (job && job->is_summary)
		return nt_api_reply_elsewhere(job, request, reply);
	r = api->options.rebaseline(api->options.data, id);
	if (r == -ENOENT)
		return nt_httpd_problem(reply, request, 404, "no_such_job",
					"no job has this id; it may have been deleted");
	if (r == -EBUSY) {
		reply->retry_after_s = 1;
		return nt_httpd_problem(reply, request, 503, "busy",
					"too many such requests are queued; try again later");
	}
	if (r < 0)
		return r;
	reply->status = 202;
	object = json_object();
	if (set(object, "job", nt_json_text(id)))
		return -ENOMEM;
	return nt_api_reply_object(reply, nt_take(object));
}
