/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The links of a job in replies: RDMA and TCP between its ranks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/base/hash.h"
#include "common/base/parse_number.h"
#include "engine/links/job_links.h"
#include "engine/snapshot.h"
#include "proto/json.h"

enum {
	CURSOR_BYTES = 64,
};

/* The place of a link in the list. It names no position, as links come and go between pages. */
struct link_place {
	uint32_t rank, transport;
	uint64_t peer; /* without one behind all */
	uint64_t hash; /* of what tells links of one pair of ranks apart */
};

struct placed_link {
	struct link_place place;
	const struct nt_snapshot_link *link;
};

static json_t *count(uint64_t value)
{
	/* Values from a node may be any. */
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? nt_json_text(text) : json_null();
}

/* A number that is not known is null, never 0. */
static json_t *known(bool is_known, double value)
{
	return is_known ? nt_json_number(value) : json_null();
}

static json_t *end_json(const struct nt_snapshot_rank *rank, const char *address)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= json_object_set_new(
		object, "rank", rank && rank->rank_known ? json_integer(rank->rank) : json_null());
	failed |=
		json_object_set_new(object, "node", rank ? nt_json_text(rank->node) : json_null());
	failed |= json_object_set_new(object, "pod", rank ? text_or_null(rank->pod) : json_null());
	failed |= json_object_set_new(object, "namespace",
				      rank ? text_or_null(rank->namespace) : json_null());
	failed |= json_object_set_new(object, "address", text_or_null(address));
	return failed ? NULL : nt_take(object);
}

static int set_latency(json_t *object, const struct nt_pair_sums *sums)
{
	const bool is_timed = sums->timed > 0;
	const double mean_ns = is_timed ? (double)sums->latency_ns / (double)sums->timed : 0;
	int failed = 0;

	failed |= json_object_set_new(object, "latency_seconds", known(is_timed, mean_ns / 1e9));
	failed |= json_object_set_new(object, "latency_least_seconds",
				      known(is_timed, (double)sums->least_ns / 1e9));
	failed |= json_object_set_new(object, "latency_most_seconds",
				      known(is_timed, (double)sums->most_ns / 1e9));
	return failed;
}

static json_t *known_count(bool is_known, uint64_t value)
{
	return is_known ? count(value) : json_null();
}

static json_t *ratio(uint64_t part, double whole)
{
	return known(whole > 0, whole > 0 ? (double)part / whole : 0);
}

/* TCP has no completions. */
static int set_completions(json_t *object, const struct nt_job_link *link)
{
	const struct nt_pair_sums *sums = &link->sums;
	const bool is_rdma = link->transport == NT_LINK_RDMA;
	int failed = 0;

	failed |=
		json_object_set_new(object, "completions", known_count(is_rdma, sums->completions));
	failed |= json_object_set_new(object, "errors", known_count(is_rdma, sums->errors));
	failed |= json_object_set_new(
		object, "error_ratio",
		ratio(sums->errors, (double)sums->completions + (double)sums->errors));
	failed |=
		json_object_set_new(object, "error_status",
				    sums->errors ? json_integer(link->error_status) : json_null());
	return failed;
}

/* What is sent again over RDMA only its port counts. */
static int set_segments(json_t *object, const struct nt_job_link *link)
{
	const struct nt_pair_sums *sums = &link->sums;
	const bool is_tcp = link->transport == NT_LINK_TCP;
	int failed = 0;

	failed |= json_object_set_new(object, "segments", known_count(is_tcp, sums->segments));
	failed |=
		json_object_set_new(object, "retransmits", known_count(is_tcp, sums->retransmits));
	failed |= json_object_set_new(object, "retransmit_ratio",
				      ratio(sums->retransmits, (double)sums->segments));
	return failed;
}

static json_t *link_json(const struct nt_snapshot_link *from)
{
	nt_autojson json_t *object = json_object();
	const struct nt_job_link *link = from->link;
	const struct nt_pair_sums *sums = &link->sums;
	const bool is_tcp = link->transport == NT_LINK_TCP;
	int failed = 0;

	failed |= json_object_set_new(object, "from", end_json(from->rank, link->local));
	failed |= json_object_set_new(object, "to", end_json(from->peer, link->remote));
	failed |= json_object_set_new(object, "transport", json_string(is_tcp ? "tcp" : "rdma"));
	failed |= json_object_set_new(object, "device", text_or_null(link->device));
	failed |=
		json_object_set_new(object, "queue_pairs", json_integer(is_tcp ? 0 : link->pairs));
	failed |= json_object_set_new(object, "sockets", json_integer(is_tcp ? link->pairs : 0));
	failed |= json_object_set_new(object, "not_visible", json_integer(link->pairs_not_visible));
	failed |= json_object_set_new(object, "bytes_per_second",
				      known(link->bytes_per_s >= 0, link->bytes_per_s));
	failed |= json_object_set_new(object, "requests_per_second",
				      known(link->requests_per_s >= 0, link->requests_per_s));
	failed |= set_latency(object, sums);
	failed |= set_completions(object, link);
	failed |= set_segments(object, link);
	return failed ? NULL : nt_take(object);
}

static struct link_place place_of(const struct nt_snapshot_link *from)
{
	const struct nt_job_link *link = from->link;
	uint64_t hash = nt_hash_text(NT_HASH_SEED, link->device);

	hash = nt_hash_text(nt_hash_u64(hash, from->rank ? from->rank->pid : 0), link->local);
	hash = nt_hash_text(nt_hash_u64(hash, from->peer ? from->peer->pid : 0), link->remote);
	return (struct link_place){
		.rank = from->rank ? from->rank->rank : UINT32_MAX,
		.transport = link->transport,
		.peer = from->peer ? from->peer->rank : 1ULL << 32,
		.hash = hash,
	};
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_places(const void *a, const void *b)
{
	const struct link_place *one = a, *other = b;
	int order = compare_numbers(one->rank, other->rank);

	if (!order)
		order = compare_numbers(one->transport, other->transport);
	if (!order)
		order = compare_numbers(one->peer, other->peer);
	return order ? order : compare_numbers(one->hash, other->hash);
}

/* Those after the cursor, in order. */
static int find_links(const struct nt_snapshot_job *job, const struct link_place *after,
		      struct placed_link **ret_link, size_t *ret_count)
{
	struct placed_link *link = calloc(job->links + 1, sizeof(*link));
	size_t count = 0;

	if (!link)
		return -ENOMEM;
	for (size_t i = 0; i < job->links; i++) {
		link[count] = (struct placed_link){place_of(&job->link[i]), &job->link[i]};
		count += !after || compare_places(&link[count].place, after) > 0;
	}
	qsort(link, count, sizeof(*link), compare_places); /* of its first member */
	*ret_link = link;
	*ret_count = count;
	return 0;
}

/* "l<rank>-<transport>-<peer>-<hash>" */
static bool parse_cursor(const char *text, struct link_place *ret_place)
{
	uint64_t number[4];

	if (*text++ != 'l')
		return false;
	for (size_t i = 0; i < 4; i++) {
		size_t len = strcspn(text, "-");

		if (nt_parse_hex(text, len, UINT64_MAX, &number[i]) < 0 || !text[len] != (i == 3))
			return false;
		text += len + 1;
	}
	*ret_place = (struct link_place){
		.peer = number[2],
		.hash = number[3],
	};
	if (number[0] > UINT32_MAX || number[1] > UINT32_MAX)
		return false;
	ret_place->rank = (uint32_t)number[0];
	ret_place->transport = (uint32_t)number[1];
	return true;
}

static json_t *visibility_json(const struct nt_snapshot_job *job)
{
	static const char *const names[] = {"extended", "direct", "provider", "shed"};
	nt_autojson json_t *list = json_array();
	uint32_t bits = 0;

	for (size_t i = 0; i < job->ranks; i++)
		bits |= job->rank[i].rdma_not_visible;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (bits >> i & 1 && json_array_append_new(list, json_string(names[i])))
			return NULL;
	return nt_take(list);
}

static int reply_page(struct nt_httpd_reply *reply, const struct nt_snapshot_job *job,
		      json_t *items, const char *next)
{
	nt_autojson json_t *object = json_object();
	nt_autojson json_t *list = items;
	uint64_t over_cap = job->links_over_cap;
	int failed = 0, r;

	for (size_t i = 0; i < job->ranks; i++)
		over_cap += job->rank[i].link_ends_over_cap;
	failed |= json_object_set(object, "items", list);
	failed |= json_object_set_new(object, "next", next[0] ? json_string(next) : json_null());
	failed |= json_object_set_new(object, "not_visible", visibility_json(job));
	failed |= json_object_set_new(object, "over_cap", count(over_cap));
	r = failed ? -ENOMEM : nt_api_reply_object(reply, nt_take(object));
	return r < 0 ? r : nt_api_tag(reply);
}

int nt_api_links(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autofree struct placed_link *link = NULL;
	nt_autojson json_t *items = json_array();
	const struct nt_snapshot_job *job;
	struct nt_api_query query;
	char next[CURSOR_BYTES] = "";
	struct link_place after;
	size_t count;
	int r = nt_api_query_read(request, "", reply, &query);

	if (r)
		return r < 0 ? r : 0;
	if (query.cursor && !parse_cursor(query.cursor, &after))
		return nt_api_bad_cursor(request, reply);
	job = nt_api_find_own_job(snapshot, request, reply, &r);
	if (!job)
		return r;
	r = find_links(job, query.cursor ? &after : NULL, &link, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count && i < query.limit; i++)
		if (json_array_append_new(items, link_json(link[i].link)))
			return -ENOMEM;
	if (count > query.limit) {
		const struct link_place *last = &link[query.limit - 1].place;

		(void)snprintf(next, sizeof(next), "l%" PRIx32 "-%" PRIx32 "-%" PRIx64 "-%" PRIx64,
			       last->rank, last->transport, last->peer, last->hash);
	}
	return reply_page(reply, job, nt_take(items), next);
}
