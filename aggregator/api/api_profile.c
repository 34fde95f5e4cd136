/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /api/v1/profiles: samples of the stacks of a rank, on request. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	DEFAULT_SECONDS = 10,
	DEFAULT_HZ = 49, /* no divisor of what programs do at round rates */
	ID_BYTES = 17,
};

static const char *const kind_names[NT_PROFILE_KINDS] = {"all", "on-cpu", "off-cpu"};

static int set_part(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

static json_t *count_of(uint64_t count)
{
	return json_integer((json_int_t)(count < INT64_MAX ? count : INT64_MAX));
}

/* ---- one profile ----------------------------------------------------------------------------- */

static json_t *frames_json(const struct nt_wire_profile *profile)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; profile && i < profile->frames; i++) {
		const struct nt_wire_stack_frame *frame = &profile->frame[i];
		nt_autojson json_t *object = json_object();
		int failed = 0;

		failed |= set_part(object, "function", nt_json_text(frame->function));
		failed |= set_part(object, "file", nt_json_text(frame->file));
		failed |= set_part(object, "native", json_boolean(frame->native));
		if (failed || json_array_append(array, object))
			return NULL;
	}
	return nt_take(array);
}

static json_t *numbers_json(const struct nt_wire_profile_stack *stack)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; i < stack->frames; i++)
		if (json_array_append_new(array, json_integer(stack->frame[i])))
			return NULL;
	return nt_take(array);
}

static json_t *samples_json(const struct nt_wire_profile *profile)
{
	nt_autojson json_t *array = json_array();

	for (size_t i = 0; profile && i < profile->stacks; i++) {
		const struct nt_wire_profile_stack *stack = &profile->stack[i];
		nt_autojson json_t *object = json_object();
		int failed = 0;

		failed |= set_part(object, "thread", nt_json_text(stack->thread));
		failed |= set_part(object, "state",
				   json_string(stack->on_cpu ? "on-cpu" : "off-cpu"));
		failed |= set_part(object, "count", count_of(stack->count));
		failed |= set_part(object, "left_out", json_integer(stack->left_out));
		failed |= set_part(object, "frames", numbers_json(stack));
		if (failed || json_array_append(array, object))
			return NULL;
	}
	return nt_take(array);
}

static json_t *hex_json(uint64_t id)
{
	char text[ID_BYTES];

	(void)snprintf(text, sizeof(text), "%016" PRIx64, id);
	return json_string(text);
}

/* Without its frames and stacks. */
static json_t *summary_json(const struct nt_profile_view *view)
{
	static const char *const states[] = {"waiting", "running", "complete", "expired"};
	static const struct nt_wire_profile none = {.reason = ""};
	const struct nt_level_entry *request = &view->request;
	const struct nt_wire_profile *profile = view->result ? &view->result->profile : &none;
	const uint64_t begin_ns = view->result ? view->result->begin_real_ns : 0;
	nt_autojson json_t *object = json_object();
	uint64_t samples = 0;
	int failed = 0;

	for (size_t i = 0; i < profile->stacks; i++)
		samples += profile->stack[i].count;
	failed |= set_part(object, "id", hex_json(request->id));
	failed |= set_part(object, "job_key", nt_json_text(request->target.name));
	failed |= set_part(object, "rank", json_integer(request->target.rank));
	failed |= set_part(object, "seconds", json_integer(request->profile.seconds));
	failed |= set_part(object, "hz", json_integer(request->profile.hz));
	failed |= set_part(object, "kind", json_string(kind_names[request->profile.kind]));
	failed |= set_part(object, "state", json_string(states[view->progress]));
	failed |= set_part(object, "requested", nt_json_time(request->set_real_ns));
	failed |= set_part(object, "begin", begin_ns ? nt_json_time(begin_ns) : json_null());
	failed |= set_part(object, "duration_s",
			   nt_json_number((double)profile->duration_ns / (double)NT_SECOND));
	failed |= set_part(object, "taken", count_of(profile->taken));
	failed |= set_part(object, "missed", count_of(profile->missed));
	failed |= set_part(object, "samples", count_of(samples));
	failed |= set_part(object, "torn", count_of(profile->torn));
	failed |= set_part(object, "empty", count_of(profile->empty));
	failed |= set_part(object, "lost", count_of(profile->left_out));
	failed |= set_part(object, "cpu_s",
			   nt_json_number((double)profile->cpu_ns / (double)NT_SECOND));
	failed |= set_part(object, "reason",
			   *profile->reason ? nt_json_text(profile->reason) : json_null());
	failed |= set_part(object, "interpreter",
			   profile->interpreter && *profile->interpreter
				   ? nt_json_text(profile->interpreter)
				   : json_null());
	return failed ? NULL : nt_take(object);
}

static json_t *profile_json(const struct nt_profile_view *view)
{
	const struct nt_wire_profile *profile = view->result ? &view->result->profile : NULL;
	nt_autojson json_t *object = summary_json(view);
	int failed = 0;

	failed |= set_part(object, "frames", frames_json(profile));
	failed |= set_part(object, "stacks", samples_json(profile));
	return failed ? NULL : nt_take(object);
}

static int none_offered(const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	return nt_httpd_problem(reply, request, 404, "not_offered",
				"this aggregator takes no profiles");
}

int nt_api_profile(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	const char *text = nt_httpd_segment(request, 0);
	nt_autoprofile struct nt_profile_view view = {0};
	uint64_t id;

	if (!api->options.profile_desk)
		return none_offered(request, reply);
	if (strlen(text) != ID_BYTES - 1 || nt_parse_hex(text, strlen(text), UINT64_MAX, &id) < 0 ||
	    nt_profile_desk_get(api->options.profile_desk, id, nt_clock_real_ns(), &view) < 0)
		return nt_httpd_problem(reply, request, 404, "no_such_profile",
					"no profile has this id; later ones may have replaced it");
	return nt_api_reply_object(reply, profile_json(&view));
}

/* Whether a job that is running or, else, has ended is asked for by its name, key or id. */
static bool is_of_job(const struct nt_snapshot *snapshot, const char *key, const char *asked,
		      bool is_running)
{
	if (strcmp(key, asked) == 0)
		return true;
	for (size_t i = 0; snapshot && i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (!job->ended_ns == is_running && strcmp(job->key, key) == 0 &&
		    nt_snapshot_job_matches(job, asked))
			return true;
	}
	return false;
}

/* A running job that is asked for, else one that has ended. False: the snapshot has none. */
static bool find_asked(const struct nt_snapshot *snapshot, const char *asked,
		       const struct nt_snapshot_job **ret_job)
{
	for (int ended = 0; ended < 2; ended++) {
		for (size_t i = 0; snapshot && i < snapshot->jobs; i++) {
			const struct nt_snapshot_job *job = snapshot->job[i];

			if (!job->ended_ns != !ended || !nt_snapshot_job_matches(job, asked))
				continue;
			*ret_job = job;
			return true;
		}
	}
	return false;
}

static json_t *list_json(struct nt_profile_desk *desk, const struct nt_snapshot *snapshot,
			 const char *asked, bool is_running)
{
	struct nt_profile_view view[NT_PROFILE_DESK_KEPT];
	const size_t count = nt_profile_desk_list(desk, nt_clock_real_ns(), view);
	nt_autojson json_t *items = json_array();
	int failed = 0;

	for (size_t i = 0; i < count; i++) {
		if (!asked || is_of_job(snapshot, view[i].request.target.name, asked, is_running))
			failed |= json_array_append_new(items, summary_json(&view[i]));
		nt_profile_view_release(&view[i]);
	}
	return failed ? NULL : nt_take(items);
}

int nt_api_profiles(void *data, const struct nt_httpd_request *request,
		    struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	const struct nt_snapshot_job *job = NULL;
	nt_autojson json_t *items = NULL;
	struct nt_api_query query;
	bool is_known;
	int r;

	if (!api->options.profile_desk)
		return none_offered(request, reply);
	r = nt_api_query_read(request, "", reply, &query);
	if (r)
		return r < 0 ? r : 0;
	is_known = query.job && find_asked(snapshot, query.job, &job);
	items = list_json(api->options.profile_desk, snapshot, query.job,
			  is_known && !job->ended_ns);
	if (!items)
		return -ENOMEM;
	if (query.job && !json_array_size(items)) {
		if (is_known && job->is_summary)
			return nt_api_reply_elsewhere(job, request, reply);
		if (!is_known)
			return nt_httpd_problem(reply, request, 404, "no_such_job",
						"no job is named '%.255s'", query.job);
	}
	return nt_api_reply_list(reply, nt_take(items), NULL);
}

/* ---- requesting one -------------------------------------------------------------------------- */

struct profile_body {
	const char *job;
	uint64_t rank;
	struct nt_profile_wish wish;
};

static bool has_foreign_members(const json_t *body)
{
	static const char *const names[] = {"job", "rank", "seconds", "hz", "kind"};
	size_t known = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		known += json_object_get(body, names[i]) != NULL;
	return json_object_size(body) > known;
}

/* Absent or null: all. */
static bool read_kind(const json_t *body, enum nt_profile_kind *ret_kind)
{
	const json_t *value = json_object_get(body, "kind");
	const char *text = json_string_value(value);

	*ret_kind = NT_PROFILE_ALL;
	if (!value || json_is_null(value))
		return true;
	for (int kind = 0; text && kind < NT_PROFILE_KINDS; kind++) {
		if (strcmp(text, kind_names[kind]) != 0)
			continue;
		*ret_kind = (enum nt_profile_kind)kind;
		return true;
	}
	return false;
}

/* The text of the first fault, or NULL. */
static const char *read_profile_body(const json_t *body, struct profile_body *out)
{
	uint64_t seconds = DEFAULT_SECONDS, hz = DEFAULT_HZ;
	bool has_it;

	if (!json_is_object(body))
		return "the body must be a JSON object such as {\"job\": \"train\", \"rank\": 3}";
	if (has_foreign_members(body))
		return "the members are 'job', 'rank', 'seconds', 'hz' and 'kind'";
	if (!nt_api_read_name(body, "job", &out->job) || !out->job)
		return "'job' is a text of 1 to 255 characters";
	if (!nt_api_read_number(body, "rank", UINT32_MAX, &out->rank, &has_it) || !has_it)
		return "'rank' is a whole number from 0";
	if (!nt_api_read_number(body, "seconds", NT_PROFILE_SECONDS, &seconds, &has_it) || !seconds)
		return "'seconds' is a whole number from 1 to 60";
	if (!nt_api_read_number(body, "hz", NT_PROFILE_HZ, &hz, &has_it) || !hz)
		return "'hz' is a whole number from 1 to 99";
	if (!read_kind(body, &out->wish.kind))
		return "'kind' is \"all\", \"on-cpu\" or \"off-cpu\"";
	out->wish.seconds = (uint32_t)seconds;
	out->wish.hz = (uint32_t)hz;
	return NULL;
}

int nt_api_take_profile(void *data, const struct nt_httpd_request *request,
			struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autojson json_t *body = NULL;
	struct nt_level_target target = {.kind = NT_LEVEL_RANK};
	const struct nt_snapshot_job *job;
	struct nt_profile_view view = {0};
	struct profile_body parsed;
	const char *fault;
	const void *text;
	size_t len;
	int r;

	if (!api->options.level_desk || !api->options.profile_desk)
		return none_offered(request, reply);
	text = nt_httpd_body(request, &len);
	r = nt_json_load(text, len, &body);
	if (r == -ENOMEM)
		return r;
	fault = read_profile_body(body, &parsed);
	if (fault)
		return nt_httpd_problem(reply, request, 400, "bad_request", "%s", fault);
	target.rank = (uint32_t)parsed.rank;
	r = nt_api_find_rank(snapshot, parsed.job, &target.rank, request, reply, &job);
	if (r)
		return r < 0 ? r : 0;
	/* The result arrives at the owner of the job alone. */
	if (job->is_summary)
		return nt_api_reply_elsewhere(job, request, reply);
	(void)snprintf(target.name, sizeof(target.name), "%s", job->key);
	r = nt_level_desk_profile(api->options.level_desk, &target, &parsed.wish, &view.request);
	if (r < 0)
		return nt_api_reply_refusal(request, reply, r);
	nt_profile_desk_add(api->options.profile_desk, &view.request);
	reply->status = 202;
	return nt_api_reply_object(reply, profile_json(&view));
}
