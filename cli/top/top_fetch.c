/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/top/top_fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

enum step {
	STEP_INCIDENTS,
	STEP_JOBS,
	STEP_NODES,
	STEP_RANKS,
	STEP_CULPRIT_NODES,
	STEP_END,
};

struct nt_top_fetch {
	struct nt_client *client; /* borrowed */
	struct nt_top_data data;
	enum step step;
	char wanted[NT_TOP_KEY];
	char *cursor; /* of the next page; NULL: the first one */
	char *culprit_node[NT_TOP_MAX_CULPRIT_NODES];
	size_t culprit_nodes, culprit_at;
	double last_rank; /* the highest one of the pages */
};

static int no_memory(struct nt_client_error *error)
{
	error->exit = NT_EXIT_SYSTEM;
	(void)snprintf(error->text, sizeof(error->text), "out of memory");
	return -ENOMEM;
}

static void clear(struct nt_top_fetch *fetch)
{
	nt_top_data_release(&fetch->data);
	free(fetch->cursor);
	fetch->cursor = NULL;
	for (size_t i = 0; i < fetch->culprit_nodes; i++)
		free(fetch->culprit_node[i]);
	fetch->culprit_nodes = fetch->culprit_at = 0;
	fetch->last_rank = -1;
}

int nt_top_fetch_new(struct nt_client *client, struct nt_top_fetch **ret_fetch)
{
	struct nt_top_fetch *fetch = calloc(1, sizeof(*fetch));

	if (!fetch)
		return -ENOMEM;
	fetch->client = client;
	*ret_fetch = fetch;
	return 0;
}

void nt_top_fetch_free(struct nt_top_fetch *fetch)
{
	if (!fetch)
		return;
	clear(fetch);
	free(fetch);
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum nt_top_list list_of(enum step step)
{
	switch (step) {
	case STEP_INCIDENTS:
		return NT_TOP_INCIDENTS;
	case STEP_JOBS:
		return NT_TOP_JOBS;
	case STEP_NODES:
		return NT_TOP_NODES;
	default:
		return NT_TOP_RANKS;
	}
}

static int append_path(const struct nt_top_fetch *fetch, struct nt_buf *path)
{
	char page[16];
	int r;

	(void)snprintf(page, sizeof(page), "%d", NT_TOP_PAGE);
	switch (fetch->step) {
	case STEP_INCIDENTS:
		r = nt_buf_printf(path, "/api/v1/incidents?state=firing");
		break;
	case STEP_JOBS:
		r = nt_buf_printf(path, "/api/v1/jobs");
		break;
	case STEP_NODES:
		r = nt_buf_printf(path, "/api/v1/nodes");
		break;
	default:
		r = nt_client_segment(path, "/api/v1/jobs/", fetch->data.job);
		r = r ? r : nt_buf_printf(path, "/ranks");
		break;
	}
	if (r == 0 && fetch->step == STEP_CULPRIT_NODES)
		r = nt_client_parameter(path, "node", fetch->culprit_node[fetch->culprit_at]);
	r = r ? r : nt_client_parameter(path, "limit", page);
	return r ? r : nt_client_parameter(path, "cursor", fetch->cursor);
}

static int request_next(struct nt_top_fetch *fetch, struct nt_client_error *error)
{
	nt_autobuf struct nt_buf path = {0};

	if (append_path(fetch, &path) < 0)
		return no_memory(error);
	return nt_client_begin(fetch->client, (const char *)path.data, error);
}

int nt_top_fetch_begin(struct nt_top_fetch *fetch, const char *job, uint64_t real_ns,
		       struct nt_client_error *ret_error)
{
	clear(fetch);
	(void)snprintf(fetch->wanted, sizeof(fetch->wanted), "%s", job);
	fetch->step = STEP_INCIDENTS;
	fetch->data.real_ns = real_ns;
	for (size_t i = 0; i < NT_TOP_LISTS; i++) {
		fetch->data.list[i] = json_array();
		if (!fetch->data.list[i])
			return no_memory(ret_error);
	}
	return request_next(fetch, ret_error);
}

/* ---- responses ------------------------------------------------------------------------------- */

/* The most items of a list that are fetched. */
static size_t most_of(enum step step)
{
	if (step == STEP_NODES)
		return NT_TOP_MAX_NODES;
	return step == STEP_RANKS ? NT_TOP_MAX_RANKS : NT_TOP_PAGE;
}

/* The ranks of a culprit's node that the pages have not. */
static int add_ranks_beyond(struct nt_top_fetch *fetch, const json_t *items)
{
	for (size_t i = 0; i < json_array_size(items); i++) {
		json_t *rank = json_array_get(items, i);

		if (nt_json_get_number(rank, "rank", -1) > fetch->last_rank &&
		    json_array_append(fetch->data.list[NT_TOP_RANKS], rank))
			return -ENOMEM;
	}
	return 0;
}

static int add_page(struct nt_top_fetch *fetch, const json_t *page)
{
	json_t *items = json_object_get(page, "items");
	json_t *list = fetch->data.list[list_of(fetch->step)];
	const char *next = nt_json_get_text(page, "next", NULL);

	free(fetch->cursor);
	fetch->cursor = NULL;
	if (fetch->step == STEP_CULPRIT_NODES)
		return add_ranks_beyond(fetch, items);
	if (json_array_extend(list, items))
		return -ENOMEM;
	if (fetch->step == STEP_RANKS && json_array_size(items))
		fetch->last_rank = nt_json_get_number(
			json_array_get(items, json_array_size(items) - 1), "rank", -1);
	if (!next || !json_array_size(items))
		return 0;
	if (json_array_size(list) >= most_of(fetch->step)) {
		fetch->data.more[list_of(fetch->step)] = true;
		return 0;
	}
	fetch->cursor = strdup(next);
	return fetch->cursor ? 0 : -ENOMEM;
}

static int add_culprit_node(struct nt_top_fetch *fetch, const char *node)
{
	for (size_t i = 0; i < fetch->culprit_nodes; i++)
		if (strcmp(fetch->culprit_node[i], node) == 0)
			return 0;
	if (fetch->culprit_nodes == NT_TOP_MAX_CULPRIT_NODES)
		return 0; /* the title of the ranks says that there are more */
	fetch->culprit_node[fetch->culprit_nodes] = strdup(node);
	return fetch->culprit_node[fetch->culprit_nodes++] ? 0 : -ENOMEM;
}

static int list_culprit_nodes(struct nt_top_fetch *fetch)
{
	const json_t *job = nt_top_find(&fetch->data, NT_TOP_JOBS, fetch->data.job), *incident;
	size_t i;

	json_array_foreach(fetch->data.list[NT_TOP_INCIDENTS], i, incident)
	{
		const json_t *culprits = json_object_get(incident, "culprits");

		if (!job || !nt_top_concerns(job, incident))
			continue;
		for (size_t k = 0; k < json_array_size(culprits); k++) {
			const char *node =
				nt_json_get_text(json_array_get(culprits, k), "node", NULL);

			if (node && add_culprit_node(fetch, node) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* Goes to the next request. STEP_END: there is none. -ENOMEM. */
static int advance(struct nt_top_fetch *fetch)
{
	const json_t *job;

	if (fetch->cursor)
		return 0;
	if (fetch->step == STEP_CULPRIT_NODES) {
		if (++fetch->culprit_at >= fetch->culprit_nodes)
			fetch->step = STEP_END;
		return 0;
	}
	fetch->step++;
	if (fetch->step == STEP_RANKS) {
		job = nt_top_choose_job(&fetch->data, fetch->wanted);
		if (job)
			(void)nt_top_key(NT_TOP_JOBS, job, fetch->data.job);
		fetch->step = *fetch->data.job ? STEP_RANKS : STEP_END;
	} else if (fetch->step == STEP_CULPRIT_NODES) {
		if (fetch->data.more[NT_TOP_RANKS] && list_culprit_nodes(fetch) < 0)
			return -ENOMEM;
		fetch->step = fetch->culprit_nodes ? STEP_CULPRIT_NODES : STEP_END;
	}
	return 0;
}

/* Ranks that this server does not have, because the job has ended or has another owner. */
static bool is_failure_of_ranks(const struct nt_top_fetch *fetch,
				const struct nt_client_error *error)
{
	return fetch->step >= STEP_RANKS && (error->status == 404 || error->status == 503);
}

int nt_top_fetch_turn(struct nt_top_fetch *fetch, struct nt_top_data *ret_data,
		      struct nt_client_error *ret_error)
{
	nt_autojson json_t *page = NULL;
	int r = nt_client_take(fetch->client, &page, ret_error);

	if (r == -EINPROGRESS)
		return r;
	if (r < 0 && is_failure_of_ranks(fetch, ret_error)) {
		(void)snprintf(fetch->data.ranks_note, sizeof(fetch->data.ranks_note), "%.*s",
			       NT_TOP_NOTE - 1, ret_error->text);
		fetch->step = STEP_END;
	} else if (r < 0) {
		return r;
	} else if (add_page(fetch, page) < 0 || advance(fetch) < 0) {
		return no_memory(ret_error);
	}
	if (fetch->step != STEP_END) {
		r = request_next(fetch, ret_error);
		return r < 0 ? r : -EINPROGRESS;
	}
	if (nt_top_data_sort(&fetch->data) < 0)
		return no_memory(ret_error);
	*ret_data = fetch->data;
	fetch->data = (struct nt_top_data){0};
	return 0;
}
