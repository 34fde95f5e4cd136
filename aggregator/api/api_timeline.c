/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The timeline of a job in replies: rank × time, as bytes in base64. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "aggregator/api/api_impl.h"
#include "common/base/parse_number.h"
#include "common/base/search.h"
#include "common/system/clock.h"
#include "engine/timeline/job_timeline.h"

enum {
	MAX_PER_ROW = 4096, /* ranks in a row */
	PIECE_BYTES = 48 << 10, /* encoded at a time: a multiple of three */
};

/* The part of a timeline that is requested. */
struct timeline_part {
	const struct nt_snapshot_job *job;
	const struct nt_timeline_ranks *ranks; /* of the newest cell; NULL: there is no cell */
	size_t first_cell, cells; /* `cells` of them from first_cell on */
	size_t per_row, all_rows;
	size_t first, rows; /* `rows` of them from `first` on */
};

/* 1: the reply was set to a problem. */
static int read_count(const struct nt_httpd_request *request, const char *name, uint64_t least,
		      uint64_t most, struct nt_httpd_reply *reply, uint64_t *value)
{
	const char *text = nt_httpd_query(request, name);
	int r;

	if (!text || nt_parse_u64(text, strlen(text), least, most, value) == 0)
		return 0;
	r = nt_httpd_problem(reply, request, 400, "bad_parameter",
			     "'%s' is a number from %" PRIu64 " to %" PRIu64, name, least, most);
	return r < 0 ? r : 1;
}

static void choose_part(const struct nt_snapshot_job *job, const struct nt_api_query *query,
			uint64_t first, uint64_t per_row, struct timeline_part *ret_part)
{
	struct timeline_part part = {.job = job, .per_row = per_row};

	if (job->timeline_cells) {
		part.ranks = job->timeline[job->timeline_cells - 1]->ranks;
		part.first_cell = nt_search_first(0, job->timeline_cells, i,
						  job->timeline[i]->end_ns > query->since_ns);
		part.cells = job->timeline_cells - part.first_cell;
		part.all_rows = (part.ranks->count + per_row - 1) / per_row;
	}
	part.first = first < part.all_rows ? first : part.all_rows;
	part.rows = part.all_rows - part.first;
	if (part.rows > query->limit)
		part.rows = query->limit;
	*ret_part = part;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The three values of one row in one cell. */
struct timeline_values {
	uint8_t of[NT_TIMELINE_SERIES];
};

static bool is_worse(const struct timeline_values *a, const struct timeline_values *b)
{
	if (a->of[NT_TIMELINE_EXCESS] != b->of[NT_TIMELINE_EXCESS])
		return a->of[NT_TIMELINE_EXCESS] > b->of[NT_TIMELINE_EXCESS];
	return a->of[NT_TIMELINE_OWN] > b->of[NT_TIMELINE_OWN];
}

/* A row of several ranks shows the one with the largest excess in this cell. */
static struct timeline_values row_values(const struct timeline_part *part,
					 const struct nt_timeline_cell *cell, size_t row,
					 size_t *at)
{
	const size_t from = row * part->per_row, count = part->ranks->count;
	const size_t to = count - from < part->per_row ? count : from + part->per_row;
	struct timeline_values worst = {{0}};

	for (size_t i = from; i < to; i++) {
		const uint32_t rank = part->ranks->rank[i];
		struct timeline_values values;

		/* Mostly the ranks of all cells are the same. */
		if (cell->ranks == part->ranks)
			*at = i;
		while (*at < cell->ranks->count && cell->ranks->rank[*at] < rank)
			(*at)++;
		if (*at == cell->ranks->count || cell->ranks->rank[*at] != rank)
			continue;
		for (int s = 0; s < NT_TIMELINE_SERIES; s++)
			values.of[s] = nt_timeline_values(cell, (enum nt_timeline_series)s)[*at];
		if (is_worse(&values, &worst))
			worst = values;
	}
	return worst;
}

/* values: of each series row by row, so that a row's cells are neighbours. */
static void fill_values(const struct timeline_part *part, uint8_t *values)
{
	const size_t series = part->rows * part->cells;

	for (size_t c = 0; c < part->cells; c++) {
		const struct nt_timeline_cell *cell = part->job->timeline[part->first_cell + c];
		size_t at = 0;

		for (size_t row = 0; row < part->rows; row++) {
			const struct timeline_values found =
				row_values(part, cell, part->first + row, &at);

			for (int s = 0; s < NT_TIMELINE_SERIES; s++)
				values[(size_t)s * series + row * part->cells + c] = found.of[s];
		}
	}
}

/* ---- the document ---------------------------------------------------------------------------- */

static int put_base64(struct nt_buf *body, const char *name, const uint8_t *data, size_t size)
{
	int r = nt_buf_printf(body, ",\"%s\":\"", name);

	while (size && r == 0) {
		const size_t piece = size < PIECE_BYTES ? size : PIECE_BYTES;

		/* EVP_EncodeBlock() ends with a NUL. */
		r = nt_buf_reserve(body, (piece + 2) / 3 * 4 + 1);
		if (r < 0)
			return r;
		body->len += (size_t)EVP_EncodeBlock(body->data + body->len, data, (int)piece);
		data += piece;
		size -= piece;
	}
	return r ?: nt_buf_append(body, "\"", 1);
}

static int put_cells(struct nt_buf *body, const struct timeline_part *part)
{
	char start[NT_CLOCK_TEXT], end[NT_CLOCK_TEXT];
	int r = nt_buf_printf(body, ",\"cells\":[");

	for (size_t c = 0; c < part->cells && r == 0; c++) {
		const struct nt_timeline_cell *cell = part->job->timeline[part->first_cell + c];

		r = nt_buf_printf(body, "%s{\"start\":\"%s\",\"end\":\"%s\",\"step_seconds\":",
				  c ? "," : "", nt_clock_format(cell->start_ns, 3, start),
				  nt_clock_format(cell->end_ns, 3, end));
		if (r == 0)
			r = cell->step_ns > 0 ? nt_buf_printf(body, "%.6g}", cell->step_ns / 1e9)
					      : nt_buf_printf(body, "null}");
	}
	return r ?: nt_buf_append(body, "]", 1);
}

static int put_ranks(struct nt_buf *body, const struct timeline_part *part)
{
	int r = nt_buf_printf(body, ",\"row_ranks\":[");

	for (size_t row = 0; row < part->rows && r == 0; row++)
		r = nt_buf_printf(body, "%s%" PRIu32, row ? "," : "",
				  part->ranks->rank[(part->first + row) * part->per_row]);
	return r ?: nt_buf_append(body, "]", 1);
}

static int put_values(struct nt_buf *body, const struct timeline_part *part)
{
	static const char *const names[NT_TIMELINE_SERIES] = {"own", "waiting", "excess"};
	const size_t size = part->rows * part->cells;
	nt_autofree uint8_t *values = calloc(NT_TIMELINE_SERIES, size + 1);
	int r = 0;

	if (!values)
		return -ENOMEM;
	fill_values(part, values);
	for (size_t s = 0; s < NT_TIMELINE_SERIES && r == 0; s++)
		r = put_base64(body, names[s], &values[s * size], size);
	return r;
}

static int put_timeline(struct nt_buf *body, const struct timeline_part *part)
{
	int r = nt_buf_printf(body,
			      "{\"job\":\"%s\",\"ranks\":%zu,\"per_row\":%zu,\"rows\":%zu,"
			      "\"first\":%zu",
			      part->job->id, part->ranks ? part->ranks->count : 0, part->per_row,
			      part->all_rows, part->first);

	r = r ?: put_ranks(body, part);
	r = r ?: put_cells(body, part);
	r = r ?: put_values(body, part);
	return r ?: nt_buf_append(body, "}", 1);
}

/* Cells do not change: the ends of the list say whether it did. */
static void set_etag(const struct nt_snapshot_job *job, struct nt_httpd_reply *reply)
{
	const size_t cells = job->timeline_cells;

	(void)snprintf(reply->etag, sizeof(reply->etag), "t%zx-%" PRIx64 "-%" PRIx64, cells,
		       cells ? job->timeline[0]->start_ns : 0,
		       cells ? job->timeline[cells - 1]->end_ns : 0);
}

int nt_api_timeline(void *data, const struct nt_httpd_request *request,
		    struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	const struct nt_snapshot_job *job;
	struct timeline_part part;
	struct nt_api_query query;
	uint64_t first = 0, per_row = 1;
	int r = nt_api_query_read(request, "", reply, &query);

	if (r == 0)
		r = read_count(request, "first", 0, UINT32_MAX, reply, &first);
	if (r == 0)
		r = read_count(request, "per_row", 1, MAX_PER_ROW, reply, &per_row);
	if (r)
		return r < 0 ? r : 0;
	job = nt_api_find_job(snapshot, request, reply, &r);
	if (!job)
		return r;
	if (job->is_summary)
		return nt_api_reply_elsewhere(job, request, reply);
	choose_part(job, &query, first, per_row, &part);
	set_etag(job, reply);
	return put_timeline(&reply->body, &part);
}
