/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The communicators of a job: the operations of its ranks, by communicator. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "common/base/parse_number.h"
#include "proto/json.h"

enum {
	MAX_RANKS = 128, /* listed of a communicator */
};

/* One operation of one rank. */
struct member_op {
	const struct nt_snapshot_rank *rank;
	const struct nt_snapshot_op *op;
};

static int set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

static int by_communicator(const void *a, const void *b)
{
	const struct member_op *left = a, *right = b;

	if (left->op->comm != right->op->comm)
		return left->op->comm < right->op->comm ? -1 : 1;
	if (left->rank->rank != right->rank->rank)
		return left->rank->rank < right->rank->rank ? -1 : 1;
	return (int)left->op->op - (int)right->op->op;
}

/* The operations of communicators after the cursor, in order. */
static int collect(const struct nt_snapshot_job *job, const uint64_t *after,
		   struct member_op **ret_op, size_t *ret_count)
{
	struct member_op *op;
	size_t most = 0, count = 0;

	for (size_t i = 0; i < job->ranks; i++)
		most += job->rank[i].ops;
	op = calloc(most + 1, sizeof(*op));
	if (!op)
		return -ENOMEM;
	for (size_t i = 0; i < job->ranks; i++)
		for (size_t k = 0; k < job->rank[i].ops; k++)
			if (!after || job->rank[i].op[k].comm > *after)
				op[count++] =
					(struct member_op){&job->rank[i], &job->rank[i].op[k]};
	qsort(op, count, sizeof(*op), by_communicator);
	*ret_op = op;
	*ret_count = count;
	return 0;
}

/* Counters of agents may have any value. */
static uint64_t saturating_sum(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static json_t *operation_json(enum nt_op kind, const struct member_op *op, size_t count)
{
	nt_autojson json_t *object = json_object();
	uint64_t calls = 0, bytes = 0;
	size_t ranks = 0;
	int failed = 0;

	for (size_t i = 0; i < count; i++) {
		if (op[i].op->op != kind)
			continue;
		calls = saturating_sum(calls, op[i].op->calls);
		bytes = saturating_sum(bytes, op[i].op->bytes);
		ranks++;
	}
	if (!ranks)
		return json_null();
	failed |= set(object, "operation", nt_json_text(nt_op_name(kind)));
	failed |= set(object, "ranks", json_integer((json_int_t)ranks));
	failed |= set(object, "calls", nt_api_count(calls));
	failed |= set(object, "bytes", nt_api_count(bytes));
	return failed ? NULL : nt_take(object);
}

static json_t *operations_json(const struct member_op *op, size_t count)
{
	nt_autojson json_t *list = json_array();

	for (unsigned int kind = 0; kind < NT_OP_END; kind++) {
		nt_autojson json_t *one = operation_json((enum nt_op)kind, op, count);

		if (!one || (!json_is_null(one) && json_array_append(list, one)))
			return NULL;
	}
	return nt_take(list);
}

/* Ranks are listed once, and at most MAX_RANKS; *ret_count has all. */
static json_t *ranks_json(const struct member_op *op, size_t count, size_t *ret_count)
{
	nt_autojson json_t *list = json_array();

	*ret_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (i && op[i].rank == op[i - 1].rank)
			continue;
		if ((*ret_count)++ < MAX_RANKS &&
		    json_array_append_new(list, json_integer(op[i].rank->rank)))
			return NULL;
	}
	return nt_take(list);
}

static json_t *communicator_json(const struct member_op *op, size_t count)
{
	nt_autojson json_t *object = json_object();
	nt_autojson json_t *ranks = NULL;
	size_t members;
	char id[17];
	int failed = 0;

	ranks = ranks_json(op, count, &members);
	(void)snprintf(id, sizeof(id), "%016" PRIx64, op->op->comm);
	failed |= set(object, "id", json_string(id));
	failed |= set(object, "library", nt_json_text(nt_library_name(op->op->library)));
	failed |= set(object, "size", json_integer(op->op->comm_size));
	failed |= set(object, "members", json_integer((json_int_t)members));
	failed |= json_object_set(object, "ranks", ranks);
	failed |= set(object, "operations", operations_json(op, count));
	return failed ? NULL : nt_take(object);
}

static int reply_page(struct nt_httpd_reply *reply, const struct member_op *op, size_t count,
		      size_t limit)
{
	nt_autojson json_t *items = json_array();
	char next[32] = "";

	for (size_t i = 0, end; i < count; i = end) {
		for (end = i; end < count && op[end].op->comm == op[i].op->comm;)
			end++;
		if (json_array_size(items) == limit) {
			(void)snprintf(next, sizeof(next), "c%016" PRIx64, op[i - 1].op->comm);
			break;
		}
		if (json_array_append_new(items, communicator_json(&op[i], end - i)))
			return -ENOMEM;
	}
	return nt_api_reply_list(reply, nt_take(items), next);
}

int nt_api_communicators(void *data, const struct nt_httpd_request *request,
			 struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autofree struct member_op *op = NULL;
	const struct nt_snapshot_job *job;
	struct nt_api_query query;
	uint64_t after = 0;
	size_t count;
	int r = nt_api_query_read(request, "", reply, &query);

	if (r)
		return r < 0 ? r : 0;
	if (query.cursor &&
	    (query.cursor[0] != 'c' ||
	     nt_parse_hex(query.cursor + 1, strlen(query.cursor + 1), UINT64_MAX, &after) < 0))
		return nt_api_bad_cursor(request, reply);
	job = nt_api_find_own_job(snapshot, request, reply, &r);
	if (!job)
		return r;
	r = collect(job, query.cursor ? &after : NULL, &op, &count);
	return r < 0 ? r : reply_page(reply, op, count, query.limit);
}
