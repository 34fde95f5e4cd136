/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agents, one a node: what they observe of the ranks of their node, and what they lose. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "proto/json.h"

/* Of the ranks of a node that this aggregator knows. */
struct agent_sum {
	uint32_t ranks, level; /* live ones; the highest level of detail in force */
	uint32_t shed;
	double sampled; /* the least share */
	uint64_t lost, links_over_cap;
};

static int set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

static int by_name(const void *a, const void *b)
{
	const struct nt_snapshot_node *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static void add_rank(struct agent_sum *sum, const struct nt_snapshot_rank *rank)
{
	sum->lost += rank->lost;
	sum->links_over_cap += rank->link_ends_over_cap;
	if (rank->ended)
		return;
	sum->ranks++;
	sum->shed |= rank->shed;
	if (rank->level > sum->level)
		sum->level = rank->level;
	if (rank->sampled < sum->sampled)
		sum->sampled = rank->sampled;
}

/* A sum for each node of the snapshot. */
static void add_ranks(const struct nt_snapshot *snapshot, struct agent_sum *sum)
{
	for (size_t i = 0; i < snapshot->nodes; i++)
		sum[i].sampled = 1;
	for (size_t i = 0; i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		for (size_t k = 0; k < job->ranks; k++) {
			const struct nt_snapshot_node wanted = {.name = job->rank[k].node};
			const struct nt_snapshot_node *node =
				snapshot->nodes ? bsearch(&wanted, snapshot->node, snapshot->nodes,
							  sizeof(wanted), by_name)
						: NULL;

			if (node)
				add_rank(&sum[node - snapshot->node], &job->rank[k]);
		}
	}
}

static json_t *agent_json(const struct nt_snapshot_node *node, const struct agent_sum *sum)
{
	nt_autojson json_t *object = json_object();
	int failed = 0;

	failed |= set(object, "node", nt_json_text(node->name));
	failed |= set(object, "state", json_string(node->silent ? "unobserved" : "observed"));
	failed |= set(object, "seen", nt_json_time(node->last_seen_ns));
	failed |= set(object, "ranks", json_integer(sum->ranks));
	failed |= set(object, "level", json_integer(sum->level));
	failed |= set(object, "sampled", nt_json_number(sum->sampled));
	failed |= set(object, "shed", nt_api_shed(sum->shed));
	failed |= set(object, "lost_events", nt_api_count(sum->lost));
	failed |= set(object, "link_ends_over_cap", nt_api_count(sum->links_over_cap));
	failed |= set(object, "limits", nt_api_limits(node));
	return failed ? NULL : nt_take(object);
}

int nt_api_agents(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	nt_autofree struct agent_sum *sum =
		calloc(snapshot ? snapshot->nodes + 1 : 1, sizeof(*sum));
	nt_autojson json_t *items = json_array();
	char next[NT_WIRE_MAX_TEXT + 2] = "";
	const char *last = NULL;
	struct nt_api_query query;
	int r;

	if (!sum)
		return -ENOMEM;
	r = nt_api_query_read(request, "", reply, &query);
	if (r)
		return r < 0 ? r : 0;
	if (query.cursor && query.cursor[0] != 'n')
		return nt_api_bad_cursor(request, reply);
	if (snapshot)
		add_ranks(snapshot, sum);
	for (size_t i = 0; snapshot && i < snapshot->nodes; i++) {
		const struct nt_snapshot_node *node = &snapshot->node[i];

		if ((query.cursor && strcmp(node->name, query.cursor + 1) <= 0) ||
		    (query.node && strcmp(node->name, query.node) != 0))
			continue;
		if (json_array_size(items) == query.limit) {
			(void)snprintf(next, sizeof(next), "n%s", last);
			break;
		}
		if (json_array_append_new(items, agent_json(node, &sum[i])))
			return -ENOMEM;
		last = node->name;
	}
	return nt_api_reply_list(reply, nt_take(items), next);
}
