/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /api/v1/levels: the levels of detail that are requested of agents. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	DEFAULT_TTL_S = 600,
	MAX_TTL_S = NT_LEVEL_MAX_TTL / NT_SECOND,
	MAX_NAME = 4 * NT_API_MAX_FILTER, /* bytes of as many characters */
};

static int set_member(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* What the agents report of the live ranks that a level is for. */
struct level_effect {
	uint32_t ranks, in_force; /* in_force: at that level or a higher one */
	uint32_t shed;
	double sampled; /* the least share of a rank's time in which it is observed */
};

static void add_effect(struct level_effect *effect, const struct nt_level_entry *entry,
		       const struct nt_snapshot_rank *rank)
{
	if (rank->ended)
		return;
	effect->ranks++;
	effect->in_force += rank->level >= entry->level;
	effect->shed |= rank->shed;
	if (rank->sampled < effect->sampled)
		effect->sampled = rank->sampled;
}

/* The index of the first rank of this number or a larger one. */
static size_t first_rank(const struct nt_snapshot_job *job, uint32_t number)
{
	size_t low = 0, high = job->ranks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (job->rank[middle].rank < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void add_job(struct level_effect *effect, const struct nt_level_entry *entry,
		    const struct nt_snapshot_job *job)
{
	const struct nt_level_target *target = &entry->target;

	if (target->kind != NT_LEVEL_NODE && strcmp(target->name, job->key) != 0)
		return;
	if (target->kind == NT_LEVEL_RANK) {
		for (size_t i = first_rank(job, target->rank);
		     i < job->ranks && job->rank[i].rank == target->rank; i++)
			if (job->rank[i].rank_known)
				add_effect(effect, entry, &job->rank[i]);
		return;
	}
	for (size_t i = 0; i < job->ranks; i++)
		if (target->kind == NT_LEVEL_JOB || strcmp(target->name, job->rank[i].node) == 0)
			add_effect(effect, entry, &job->rank[i]);
}

static struct level_effect find_effect(const struct nt_snapshot *snapshot,
				       const struct nt_level_entry *entry)
{
	struct level_effect effect = {.sampled = 1};

	for (size_t i = 0; snapshot && i < snapshot->jobs; i++)
		add_job(&effect, entry, snapshot->job[i]);
	return effect;
}

/* The newest running job of the key, else the newest of all. NULL: none is known here. */
static const struct nt_snapshot_job *find_job(const struct nt_snapshot *snapshot, const char *key)
{
	const struct nt_snapshot_job *found = NULL;

	for (size_t i = 0; snapshot && i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (strcmp(job->key, key) != 0)
			continue;
		if (!found || (found->ended_ns && !job->ended_ns) ||
		    (!found->ended_ns == !job->ended_ns && job->since_ns > found->since_ns))
			found = job;
	}
	return found;
}

static json_t *level_json(const struct nt_snapshot *snapshot, const struct nt_level_entry *entry)
{
	static const char *const kinds[] = {"node", "job", "rank"};
	const struct nt_level_target *target = &entry->target;
	const bool is_node = target->kind == NT_LEVEL_NODE;
	const struct nt_snapshot_job *job = is_node ? NULL : find_job(snapshot, target->name);
	const struct level_effect effect = find_effect(snapshot, entry);
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set_member(object, "kind", json_string(kinds[target->kind]));
	failed |= set_member(object, "node", is_node ? nt_json_text(target->name) : json_null());
	failed |= set_member(object, "job", job ? nt_json_text(job->id) : json_null());
	failed |= set_member(object, "job_name", job ? nt_json_text(job->name) : json_null());
	failed |= set_member(object, "job_key", is_node ? json_null() : nt_json_text(target->name));
	failed |= set_member(object, "rank",
			     target->kind == NT_LEVEL_RANK ? json_integer(target->rank)
							   : json_null());
	failed |= set_member(object, "level", json_integer(entry->level));
	failed |= set_member(object, "automatic",
			     json_boolean(entry->request == NT_REQUEST_AUTO_LEVEL));
	failed |= set_member(object, "reason", nt_json_text(entry->reason));
	failed |= set_member(object, "set", nt_json_time(entry->set_real_ns));
	failed |= set_member(object, "expires", nt_json_time(entry->expires_real_ns));
	failed |= set_member(object, "ranks", json_integer(effect.ranks));
	failed |= set_member(object, "in_force", json_integer(effect.in_force));
	failed |= set_member(object, "sampled", nt_json_number(effect.sampled));
	failed |= set_member(object, "shed", nt_api_shed(effect.shed));
	return failed ? NULL : nt_take(object);
}

static bool is_wanted(const struct nt_api_query *query, const struct nt_snapshot *snapshot,
		      const struct nt_level_entry *entry)
{
	const struct nt_level_target *target = &entry->target;

	if (entry->request == NT_REQUEST_STACK || entry->request == NT_REQUEST_PROFILE)
		return false;
	if (query->node &&
	    (target->kind != NT_LEVEL_NODE || strcmp(target->name, query->node) != 0))
		return false;
	if (query->job) {
		const struct nt_snapshot_job *job =
			target->kind == NT_LEVEL_NODE ? NULL : find_job(snapshot, target->name);

		/* A key also selects the levels of a job that the snapshot does not have. */
		return target->kind != NT_LEVEL_NODE &&
		       (strcmp(target->name, query->job) == 0 ||
			(job && nt_snapshot_job_matches(job, query->job)));
	}
	return true;
}

/* The place of an entry in the list, which it keeps while others come and go. */
struct level_place {
	uint64_t part[4]; /* kind, hash of the name, rank, request */
};

static struct level_place place_of(const struct nt_level_entry *entry)
{
	return (struct level_place){{entry->target.kind,
				     nt_hash_text(NT_HASH_SEED, entry->target.name),
				     entry->target.rank, entry->request}};
}

static int compare_places(const struct level_place *one, const struct level_place *other)
{
	for (size_t i = 0; i < 4; i++)
		if (one->part[i] != other->part[i])
			return one->part[i] < other->part[i] ? -1 : 1;
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct level_place one = place_of(a), other = place_of(b);

	return compare_places(&one, &other);
}

static bool read_cursor(const char *cursor, struct level_place *ret_place)
{
	if (*cursor++ != 'l')
		return false;
	for (size_t i = 0; i < 4; i++) {
		size_t len = strcspn(cursor, "-");

		if (nt_parse_hex(cursor, len, UINT64_MAX, &ret_place->part[i]) < 0 ||
		    !cursor[len] != (i == 3))
			return false;
		cursor += len + 1;
	}
	return true;
}

static int not_offered(const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	return nt_httpd_problem(reply, request, 404, "not_offered",
				"this aggregator sets no levels");
}

int nt_api_levels(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autofree struct nt_level_entry *entry = NULL;
	nt_autojson json_t *items = json_array();
	struct nt_api_query query;
	struct level_place after = {0}, place = {0};
	size_t count;
	char next[64] = "";
	int r;

	if (!api->options.level_desk)
		return not_offered(request, reply);
	r = nt_api_query_read(request, "", reply, &query);
	if (r)
		return r < 0 ? r : 0;
	if (query.cursor && !read_cursor(query.cursor, &after))
		return nt_api_bad_cursor(request, reply);
	r = nt_level_desk_list(api->options.level_desk, &entry, &count);
	if (r < 0)
		return r;
	qsort(entry, count, sizeof(*entry), compare_entries);
	for (size_t i = 0; i < count; i++) {
		const struct level_place here = place_of(&entry[i]);

		if ((query.cursor && compare_places(&here, &after) <= 0) ||
		    !is_wanted(&query, snapshot, &entry[i]))
			continue;
		if (json_array_size(items) == query.limit) {
			(void)snprintf(next, sizeof(next),
				       "l%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64,
				       place.part[0], place.part[1], place.part[2], place.part[3]);
			break;
		}
		if (json_array_append_new(items, level_json(snapshot, &entry[i])))
			return -ENOMEM;
		place = here;
	}
	return nt_api_reply_list(reply, nt_take(items), next);
}

/* ---- setting one ----------------------------------------------------------------------------- */

/* A request as its body states it. */
struct level_body {
	const char *node, *job; /* NULL: not given */
	bool has_rank;
	uint32_t rank, level;
	uint64_t ttl_s;
};

bool nt_api_read_number(const json_t *body, const char *name, uint64_t most, uint64_t *ret_value,
			bool *ret_has)
{
	const json_t *value = json_object_get(body, name);
	double number;

	*ret_has = value && !json_is_null(value);
	if (!*ret_has)
		return true;
	number = json_is_number(value) ? json_number_value(value) : -1;
	if (number < 0 || number > (double)most || number != (double)(uint64_t)number)
		return false;
	*ret_value = (uint64_t)number;
	return true;
}

bool nt_api_read_name(const json_t *body, const char *name, const char **ret_text)
{
	const json_t *value = json_object_get(body, name);

	*ret_text = json_string_value(value);
	if (!value || json_is_null(value))
		return true;
	return *ret_text && **ret_text && strlen(*ret_text) <= MAX_NAME;
}

static bool has_others(const json_t *body)
{
	static const char *const names[] = {"node", "job", "rank", "level", "ttl_s"};
	size_t known = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		known += json_object_get(body, names[i]) != NULL;
	return json_object_size(body) > known;
}

/* The text of the first fault, or NULL. */
static const char *read_body(const json_t *body, struct level_body *out)
{
	uint64_t level = 0, rank = 0, ttl_s = DEFAULT_TTL_S;
	bool has_level, has_ttl;

	if (!json_is_object(body))
		return "the body must be a JSON object such as {\"job\": \"train\", \"rank\": 3, "
		       "\"level\": 1, \"ttl_s\": 600}";
	if (has_others(body))
		return "the members are 'node', 'job', 'rank', 'level' and 'ttl_s'";
	if (!nt_api_read_name(body, "node", &out->node))
		return "'node' is a text of 1 to 255 characters";
	if (!nt_api_read_name(body, "job", &out->job))
		return "'job' is a text of 1 to 255 characters";
	if (!out->node == !out->job)
		return "either 'node' or 'job' must be given";
	if (!nt_api_read_number(body, "rank", UINT32_MAX, &rank, &out->has_rank))
		return "'rank' is a whole number from 0";
	if (out->has_rank && out->node)
		return "'rank' belongs to a 'job', not to a 'node'";
	if (!nt_api_read_number(body, "level", NT_LEVEL_MAX, &level, &has_level) || !has_level)
		return "'level' is 0, 1, 2 or 3";
	if (!nt_api_read_number(body, "ttl_s", MAX_TTL_S, &ttl_s, &has_ttl) || !ttl_s)
		return "'ttl_s' is a whole number of seconds from 1 to 86400";
	out->rank = (uint32_t)rank;
	out->level = (uint32_t)level;
	out->ttl_s = ttl_s;
	return NULL;
}

static bool has_node(const struct nt_snapshot *snapshot, const char *name)
{
	for (size_t i = 0; snapshot && i < snapshot->nodes; i++)
		if (strcmp(snapshot->node[i].name, name) == 0)
			return true;
	return false;
}

/* The number of keys of running jobs with that name, key or id; *ret_job is the first. */
static size_t find_named(const struct nt_snapshot *snapshot, const char *name,
			 const struct nt_snapshot_job **ret_job)
{
	size_t count = 0;

	for (size_t i = 0; snapshot && i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (job->ended_ns || !nt_snapshot_job_matches(job, name))
			continue;
		if (count && strcmp((*ret_job)->key, job->key) == 0)
			continue;
		if (!count++)
			*ret_job = job;
	}
	return count;
}

static bool has_rank(const struct nt_snapshot_job *job, uint32_t number)
{
	for (size_t i = 0; i < job->ranks; i++)
		if (job->rank[i].rank_known && job->rank[i].rank == number)
			return true;
	return job->is_summary;
}

int nt_api_find_rank(const struct nt_snapshot *snapshot, const char *name, const uint32_t *rank,
		     const struct nt_httpd_request *request, struct nt_httpd_reply *reply,
		     const struct nt_snapshot_job **ret_job)
{
	const struct nt_snapshot_job *job = NULL;
	const size_t jobs = find_named(snapshot, name, &job);
	int r;

	if (jobs == 1 && (!rank || has_rank(job, *rank))) {
		*ret_job = job;
		return 0;
	}
	if (jobs > 1)
		r = nt_httpd_problem(reply, request, 409, "ambiguous",
				     "%zu running jobs are named '%.255s': give the id of one",
				     jobs, name);
	else if (jobs)
		r = nt_httpd_problem(reply, request, 404, "no_such_rank",
				     "the job '%.255s' has no rank %" PRIu32, name, *rank);
	else
		r = nt_httpd_problem(reply, request, 404, "no_such_job",
				     "no running job is named '%.255s'", name);
	return r < 0 ? r : 1;
}

/* Returns 0, 1 if the reply was set to a problem, or -ENOMEM. */
static int find_target(const struct nt_snapshot *snapshot, const struct level_body *body,
		       const struct nt_httpd_request *request, struct nt_httpd_reply *reply,
		       struct nt_level_target *target)
{
	const struct nt_snapshot_job *job;
	int r;

	*target = (struct nt_level_target){.kind = NT_LEVEL_NODE};
	if (body->node) {
		(void)snprintf(target->name, sizeof(target->name), "%s", body->node);
		if (has_node(snapshot, body->node))
			return 0;
		r = nt_httpd_problem(reply, request, 404, "no_such_node",
				     "no agent reports the node '%.255s'", body->node);
		return r < 0 ? r : 1;
	}
	r = nt_api_find_rank(snapshot, body->job, body->has_rank ? &body->rank : NULL, request,
			     reply, &job);
	if (r)
		return r;
	target->kind = body->has_rank ? NT_LEVEL_RANK : NT_LEVEL_JOB;
	target->rank = body->rank;
	(void)snprintf(target->name, sizeof(target->name), "%s", job->key);
	return 0;
}

int nt_api_reply_refusal(const struct nt_httpd_request *request, struct nt_httpd_reply *reply,
			 int error)
{
	if (error == -EINVAL)
		return nt_httpd_problem(reply, request, 400, "bad_request",
					"the name is too long for a request");
	reply->retry_after_s = error == -EBUSY ? 1 : 5;
	return nt_httpd_problem(reply, request, 503, "busy", "%s",
				error == -EBUSY
					? "too many such requests are queued; try again later"
					: "the bus cannot be written; try again later");
}

int nt_api_set_level(void *data, const struct nt_httpd_request *request,
		     struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autojson json_t *body = NULL;
	struct nt_level_target target;
	struct nt_level_entry entry;
	struct level_body parsed;
	const char *fault;
	const void *text;
	size_t len;
	int r;

	if (!api->options.level_desk)
		return not_offered(request, reply);
	text = nt_httpd_body(request, &len);
	r = nt_json_load(text, len, &body);
	if (r == -ENOMEM)
		return r;
	fault = read_body(body, &parsed);
	if (fault)
		return nt_httpd_problem(reply, request, 400, "bad_request", "%s", fault);
	r = find_target(snapshot, &parsed, request, reply, &target);
	if (r)
		return r < 0 ? r : 0;
	r = nt_level_desk_set(api->options.level_desk, &target, parsed.level,
			      parsed.ttl_s * NT_SECOND, &entry);
	if (r < 0)
		return nt_api_reply_refusal(request, reply, r);
	reply->status = 202;
	return nt_api_reply_object(reply, level_json(snapshot, &entry));
}
