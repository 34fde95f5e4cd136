/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Incidents, and the slow ranks of open ones. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/base/parse_number.h"
#include "proto/json.h"

enum {
	PAGE_NUMBERS = 1 << 18, /* peers and ranks after which a page ends */
	/* Of one request from the store; its own incidents, which are in memory, do not count. */
	STORED_ROWS = 50000,
	STORED_NUMBERS = 1 << 22,
};

/* One row of /slow-ranks: a culprit of an open incident. */
struct slow_rank_row {
	const struct nt_snapshot_job *job;
	const struct nt_wire_incident *incident;
	size_t culprit;
};

struct slow_rank_rows {
	struct slow_rank_row *row;
	size_t count, cap;
	struct nt_store_page *page; /* which the rows from the store borrow */
	size_t pages, stored, numbers;
};

static bool is_same(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static bool is_slow(const struct nt_wire_incident *incident, const struct nt_api_query *query)
{
	return (query->has_at || is_same(incident->state, "firing")) &&
	       !is_same(incident->severity, "info") &&
	       (!query->class || is_same(query->class, incident->class)) &&
	       incident->since_real_ns >= query->since_ns;
}

static int add_row(struct slow_rank_rows *rows, const struct slow_rank_row *more)
{
	if (rows->count == rows->cap) {
		size_t cap = rows->cap ? 2 * rows->cap : 64;
		struct slow_rank_row *row = reallocarray(rows->row, cap, sizeof(*row));

		if (!row)
			return -ENOMEM;
		rows->row = row;
		rows->cap = cap;
	}
	rows->row[rows->count++] = *more;
	return 0;
}

static void release_rows(struct slow_rank_rows *rows)
{
	for (size_t i = 0; i < rows->pages; i++)
		nt_store_page_release(&rows->page[i]);
	free(rows->page);
	free(rows->row);
}

static int add_culprits(struct slow_rank_rows *rows, const struct nt_snapshot_job *job,
			const struct nt_wire_incident *incident)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		const struct slow_rank_row row = {job, incident, i};

		if (nt_json_culprit_accuses(&incident->culprit[i]) && add_row(rows, &row) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int collect(const struct nt_snapshot *snapshot, const struct nt_api_query *query,
		   struct slow_rank_rows *rows)
{
	for (size_t i = 0; i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (query->job && !nt_snapshot_job_matches(job, query->job))
			continue;
		for (size_t k = 0; k < job->incidents; k++) {
			const struct nt_wire_incident *incident = job->incident[k];

			if (is_slow(incident, query) && add_culprits(rows, job, incident) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

const struct nt_snapshot_job *nt_api_find_elsewhere(const struct nt_snapshot *snapshot,
						    const struct nt_wire_incident *incident)
{
	const struct nt_snapshot_job *found = NULL;

	for (size_t i = 0; i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (job->attempt != incident->attempt || !is_same(job->key, incident->job_key))
			continue;
		if (!job->is_summary)
			return NULL;
		found = job;
	}
	return found;
}

/* -E2BIG: the store has too many. */
static int add_stored(struct slow_rank_rows *rows, const struct nt_snapshot_job *job,
		      const struct nt_wire_incident *incident)
{
	const size_t before = rows->count;
	int r = add_culprits(rows, job, incident);

	rows->stored += rows->count - before;
	for (size_t i = 0; r == 0 && i < incident->culprits; i++)
		rows->numbers += incident->culprit[i].peer_count + incident->culprit[i].rank_count;
	return r == 0 && (rows->stored > STORED_ROWS || rows->numbers > STORED_NUMBERS) ? -E2BIG
											: r;
}

/* Those that are not needed are released at once. */
static int add_page(struct slow_rank_rows *rows, struct nt_store_page *page,
		    const struct nt_snapshot *snapshot, const struct nt_api_query *query)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < page->count; i++) {
		const struct nt_wire_incident *incident = &page->incident[i]->incident;
		const struct nt_snapshot_job *elsewhere =
			query->has_at ? NULL : nt_api_find_elsewhere(snapshot, incident);

		if (is_slow(incident, query) && (query->has_at || elsewhere)) {
			r = add_stored(rows, elsewhere, incident);
			continue;
		}
		nt_message_free(page->incident[i]);
		page->incident[i] = NULL;
	}
	return r;
}

static int collect_pages(const struct nt_api *api, const struct nt_snapshot *snapshot,
			 const struct nt_api_query *query, struct nt_store_filter *filter,
			 struct slow_rank_rows *rows)
{
	int r;

	do {
		struct nt_store_page *page =
			reallocarray(rows->page, rows->pages + 1, sizeof(*page));

		if (!page)
			return -ENOMEM;
		rows->page = page;
		page += rows->pages;
		*page = (struct nt_store_page){0};
		r = nt_store_list(api->options.store, filter, page);
		if (r < 0)
			return r;
		rows->pages++;
		r = add_page(rows, page, snapshot, query);
		filter->before = page->next;
	} while (r == 0 && filter->before);
	return r;
}

/* Incidents of other aggregators, and those at a past time, are only in the store. */
static int collect_stored(const struct nt_api *api, const struct nt_snapshot *snapshot,
			  const struct nt_api_query *query, struct slow_rank_rows *rows)
{
	const struct nt_snapshot_job *job =
		snapshot && query->job ? nt_snapshot_find(snapshot, query->job) : NULL;
	struct nt_store_filter filter = {
		.job = job ? job->key : query->job,
		.attempt = job ? job->attempt : 0,
		.class = query->class,
		.state = query->has_at ? NULL : "firing",
		.since_ns = query->since_ns,
		.at_ns = query->has_at && !query->at_ns ? 1 : query->at_ns,
		.limit = NT_STORE_MAX_PAGE,
	};
	bool shares = query->has_at;

	for (size_t i = 0; snapshot && i < snapshot->jobs && !shares; i++)
		shares = snapshot->job[i]->is_summary;
	if (!shares || !api->options.store)
		return 0;
	return collect_pages(api, snapshot, query, &filter, rows);
}

/* A cursor holds a position in the order, so paging continues if its row has disappeared. */
struct slow_rank_cursor {
	uint64_t slowdown_bits;
	char id[NT_STORE_MAX_NAME];
	size_t culprit;
};

static uint64_t slowdown_bits(double slowdown)
{
	uint64_t bits = 0;

	/* The bits of non-negative doubles sort like their values. */
	if (slowdown > 0)
		memcpy(&bits, &slowdown, sizeof(bits));
	return bits;
}

static int compare_places(uint64_t bits, const char *id, size_t culprit, uint64_t other_bits,
			  const char *other_id, size_t other_culprit)
{
	int order = strcmp(id, other_id);

	if (bits != other_bits)
		return bits > other_bits ? -1 : 1; /* the worst first */
	if (order)
		return order;
	return culprit < other_culprit ? -1 : culprit > other_culprit;
}

static int compare_rows(const void *a, const void *b)
{
	const struct slow_rank_row *one = a, *other = b;

	return compare_places(slowdown_bits(one->incident->slowdown), one->incident->id,
			      one->culprit, slowdown_bits(other->incident->slowdown),
			      other->incident->id, other->culprit);
}

/* "s<slowdown>-<culprit>-<incident>" */
static void format_place(const struct slow_rank_row *row, char *text, size_t size)
{
	(void)snprintf(text, size, "s%" PRIx64 "-%zx-%s", slowdown_bits(row->incident->slowdown),
		       row->culprit, row->incident->id);
}

static int parse_cursor(const char *text, struct slow_rank_cursor *ret_cursor)
{
	const char *dash = strchr(text, '-');
	const char *second = dash ? strchr(dash + 1, '-') : NULL;
	uint64_t culprit;
	int n;

	if (text[0] != 's' || !second)
		return -EINVAL;
	if (nt_parse_hex(text + 1, (size_t)(dash - text) - 1, UINT64_MAX,
			 &ret_cursor->slowdown_bits) < 0 ||
	    nt_parse_hex(dash + 1, (size_t)(second - dash) - 1, SIZE_MAX, &culprit) < 0)
		return -EINVAL;
	ret_cursor->culprit = culprit;
	n = snprintf(ret_cursor->id, sizeof(ret_cursor->id), "%s", second + 1);
	return n > 0 && (size_t)n < sizeof(ret_cursor->id) ? 0 : -EINVAL;
}

static size_t first_after(const struct slow_rank_rows *rows, const struct slow_rank_cursor *cursor)
{
	size_t i = 0;

	while (i < rows->count &&
	       compare_places(slowdown_bits(rows->row[i].incident->slowdown),
			      rows->row[i].incident->id, rows->row[i].culprit,
			      cursor->slowdown_bits, cursor->id, cursor->culprit) <= 0)
		i++;
	return i;
}

static int by_rank(const void *a, const void *b)
{
	const struct nt_snapshot_rank *left = a, *right = b;

	return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/* Whether the rank is observed; otherwise the finding may have ended since. */
static bool is_observed(const struct slow_rank_row *row)
{
	const struct nt_culprit *culprit = &row->incident->culprit[row->culprit];
	const struct nt_snapshot_rank wanted = {.rank = culprit->rank}, *rank = NULL;

	if (!row->job || row->job->state == NT_JOB_UNOBSERVED)
		return false;
	if (row->job->ranks && is_same(culprit->kind, "rank"))
		rank = bsearch(&wanted, row->job->rank, row->job->ranks, sizeof(wanted), by_rank);
	return !rank || !rank->silent;
}

static json_t *row_json(const struct slow_rank_row *row)
{
	nt_autojson json_t *object =
		nt_json_slow_rank(row->incident, &row->incident->culprit[row->culprit]);

	if (json_object_set_new(object, "observed", json_boolean(is_observed(row))))
		return NULL;
	return nt_take(object);
}

static int reply_rows(struct nt_httpd_reply *reply, const struct slow_rank_rows *rows, size_t first,
		      size_t limit)
{
	nt_autojson json_t *items = json_array();
	char next[NT_STORE_MAX_NAME + 64] = "";
	size_t i, numbers = 0;

	for (i = first; i < rows->count && i - first < limit && numbers < PAGE_NUMBERS; i++) {
		const struct slow_rank_row *row = &rows->row[i];
		const struct nt_culprit *culprit = &row->incident->culprit[row->culprit];

		numbers += culprit->peer_count + culprit->rank_count;
		if (json_array_append_new(items, row_json(row)))
			return -ENOMEM;
	}
	if (i < rows->count && i > first)
		format_place(&rows->row[i - 1], next, sizeof(next));
	return nt_api_reply_list(reply, nt_take(items), next);
}

int nt_api_slow_ranks(void *data, const struct nt_httpd_request *request,
		      struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	__attribute__((cleanup(release_rows))) struct slow_rank_rows rows = {0};
	struct nt_api_query query;
	struct slow_rank_cursor cursor;
	size_t first = 0;
	int r;

	r = nt_api_query_read(request, "firing", reply, &query);
	if (r)
		return r < 0 ? r : 0;
	if (query.cursor && parse_cursor(query.cursor, &cursor) < 0)
		return nt_api_bad_cursor(request, reply);
	if (!query.has_at && snapshot)
		r = collect(snapshot, &query, &rows);
	if (r == 0)
		r = collect_stored(api, snapshot, &query, &rows);
	if (r == -E2BIG)
		return nt_httpd_problem(reply, request, 409, "too_many_incidents",
					"the store has more slow ranks than fit into one request; "
					"ask for a job or a class");
	if (r < 0)
		return r;
	if (rows.count)
		qsort(rows.row, rows.count, sizeof(*rows.row), compare_rows);
	if (query.cursor)
		first = first_after(&rows, &cursor);
	return reply_rows(reply, &rows, first, query.limit);
}

/* ---- incidents ------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
	const struct nt_wire_incident *one = *(const struct nt_wire_incident *const *)a;
	const struct nt_wire_incident *other = *(const struct nt_wire_incident *const *)b;

	return strcmp(one->id, other->id);
}

static bool is_listed(const struct nt_wire_incident *incident, const struct nt_api_query *query)
{
	return (!query->class || is_same(query->class, incident->class)) &&
	       (!query->state || is_same(query->state, incident->state)) &&
	       (!query->severity || is_same(query->severity, incident->severity)) &&
	       incident->since_real_ns >= query->since_ns &&
	       (!query->cursor || strcmp(incident->id, query->cursor + 1) > 0);
}

/* Those after the cursor, by id. */
static int find_listed(const struct nt_snapshot *snapshot, const struct nt_api_query *query,
		       const struct nt_wire_incident ***ret_incident, size_t *ret_count)
{
	const struct nt_wire_incident **incident;
	size_t most = 1, count = 0;

	for (size_t i = 0; snapshot && i < snapshot->jobs; i++)
		most += snapshot->job[i]->incidents;
	incident = calloc(most, sizeof(*incident));
	if (!incident)
		return -ENOMEM;
	for (size_t i = 0; snapshot && i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (query->job && !nt_snapshot_job_matches(job, query->job))
			continue;
		for (size_t k = 0; k < job->incidents; k++)
			if (is_listed(job->incident[k], query))
				incident[count++] = job->incident[k];
	}
	qsort(incident, count, sizeof(*incident), compare_ids);
	*ret_incident = incident;
	*ret_count = count;
	return 0;
}

/* Without a store only open incidents are known. */
static int list_open(const struct nt_api *api, const struct nt_api_query *query,
		     struct nt_httpd_reply *reply)
{
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autofree const struct nt_wire_incident **incident = NULL;
	nt_autojson json_t *items = json_array();
	char next[NT_STORE_MAX_NAME + 2] = "";
	size_t count;
	int r = find_listed(snapshot, query, &incident, &count);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count && i < query->limit; i++)
		if (json_array_append_new(items, nt_json_incident(incident[i])))
			return -ENOMEM;
	if (count > query->limit)
		(void)snprintf(next, sizeof(next), "o%s", incident[query->limit - 1]->id);
	return nt_api_reply_list(reply, nt_take(items), next);
}

static int list_stored(const struct nt_api *api, const struct nt_api_query *query, uint64_t before,
		       struct nt_httpd_reply *reply)
{
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	const struct nt_snapshot_job *job =
		snapshot && query->job ? nt_snapshot_find(snapshot, query->job) : NULL;
	struct nt_store_filter filter = {
		.job = job ? job->key : query->job,
		.attempt = job ? job->attempt : 0,
		.class = query->class,
		.state = query->state,
		.severity = query->severity,
		.since_ns = query->since_ns,
		.before = before,
		.limit = query->limit,
	};
	nt_autopage struct nt_store_page page = {0};
	nt_autojson json_t *items = json_array();
	char next[32] = "";
	int r;

	r = nt_store_list(api->options.store, &filter, &page);
	if (r < 0)
		return r;
	for (size_t i = 0; i < page.count; i++) {
		json_t *incident = nt_json_incident(&page.incident[i]->incident);

		if (json_array_append_new(items, incident) ||
		    nt_api_add_handling(incident, &page.handling[i]) < 0)
			return -ENOMEM;
	}
	if (page.next)
		(void)snprintf(next, sizeof(next), "i%" PRIu64, page.next);
	return nt_api_reply_list(reply, nt_take(items), next);
}

int nt_api_incidents(void *data, const struct nt_httpd_request *request,
		     struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	struct nt_api_query query;
	uint64_t before = 0;
	int r;

	r = nt_api_query_read(request, "firing resolved", reply, &query);
	if (r)
		return r < 0 ? r : 0;
	if (query.cursor && !api->options.store && (query.cursor[0] != 'o' || !query.cursor[1]))
		return nt_api_bad_cursor(request, reply);
	if (query.cursor && api->options.store &&
	    (query.cursor[0] != 'i' ||
	     nt_parse_u64(query.cursor + 1, strlen(query.cursor + 1), 1, INT64_MAX, &before) < 0))
		return nt_api_bad_cursor(request, reply);
	if (!api->options.store)
		return list_open(api, &query, reply);
	return list_stored(api, &query, before, reply);
}

static const struct nt_wire_incident *find_open(const struct nt_snapshot *snapshot, const char *id)
{
	for (size_t i = 0; snapshot && i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		for (size_t k = 0; k < job->incidents; k++) {
			if (is_same(job->incident[k]->id, id))
				return job->incident[k];
		}
	}
	return NULL;
}

int nt_api_incident(void *data, const struct nt_httpd_request *request,
		    struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	const char *id = nt_httpd_segment(request, 0);
	const struct nt_wire_incident *open = find_open(snapshot, id);
	nt_auto(nt_message) struct nt_message *stored = NULL;
	int r;

	if (open)
		return nt_api_reply_incident(api, reply, open);
	r = api->options.store ? nt_store_get(api->options.store, id, &stored) : -ENOENT;
	if (r == -ENOENT)
		return nt_httpd_problem(reply, request, 404, "no_such_incident",
					"no incident has this id; it may have been deleted");
	if (r < 0)
		return r;
	return nt_api_reply_incident(api, reply, &stored->incident);
}
