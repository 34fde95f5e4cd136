/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer slow-ranks`: the ranks that currently slow down their jobs. */
#include <stdio.h>

#include "cli/live/command.h"
#include "cli/live/live.h"
#include "detect/thresholds/rules.h"
#include "proto/json.h"

static const struct nt_opt options[] = {
	NT_LIVE_OPTIONS,
	NT_LIVE_WATCH_OPTIONS,
	NT_LIVE_FILTER("job", job, "JOB", NULL, "only this job: its name, key or id"),
	NT_LIVE_FILTER("class", class, "CLASS", NT_LIVE_CLASSES,
		       "only this class: compute, network, host, storage, missing, hang, …"),
	NT_LIVE_TIME("since", since,
		     "only those slow since this time or later: 2026-11-21T03:00:00Z"),
	NT_LIVE_TIME(
		"at", at,
		"those of a past time, according to the stored incidents: 2026-11-21T03:00:00Z"),
	{"exit-code", NT_OPT_BOOL, offsetof(struct nt_live_config, exit_code), "false", 0, 0,
	 "exit with status 1 if a slow rank is named, for scripts", NULL, NULL, NT_OPT_CLI_ONLY},
};

static const enum nt_exit exits[] = {NT_EXIT_FINDING, NT_EXIT_CONFIG, NT_EXIT_NETWORK};

static const struct nt_opt_program program = {
	.name = "neutracer slow-ranks",
	.section = 1,
	.summary = "show the slow ranks of the running jobs",
	.description =
		"Lists the ranks, nodes, NICs and paths that the aggregator names as culprits "
		"now, the worst first. An empty list means that there is no culprit.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

static const struct nt_column columns[] = {
	{"WHO", false, true},
	{"NODE", false, true, true},
	{"POD", false, true, true, true},
	{"JOB", false, true},
	{"CLASS", false, false},
	{"CAUSE", false, true},
	{"SLOWDOWN", true, false},
	{"SINCE", false, true, true},
	{"AGE", true, false},
	{"TIER", false, false, true},
	{"INCIDENT", false, false},
};

static int add_row(struct nt_table *table, const json_t *item)
{
	enum nt_style style =
		nt_json_get_number(item, "slowdown", 0) >= nt_rules_default().critical_slowdown
			? NT_STYLE_BAD
			: NT_STYLE_WARNING;
	const char *since = nt_json_get_text(item, "since", "-");
	char text[NT_LIVE_TEXT];
	int r;

	r = nt_table_add(table, style, "%s", nt_live_culprit(item, text));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(item, "node", "-"));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(item, "pod", "-"));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(item, "job", "-"));
	if (r == 0)
		r = nt_table_add(table, style, "%s", nt_json_get_text(item, "class", "-"));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(item, "cause", "-"));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_live_slowdown(item, text));
	if (r == 0)
		r = nt_table_add(table, NT_STYLE_DIM, "%s", since);
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_live_age(since, text));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(item, "tier", "-"));
	if (r == 0)
		r = nt_table_add(table, NT_STYLE_DIM, "%s",
				 nt_json_get_text(item, "incident", "-"));
	return r;
}

/* An empty list differs between healthy jobs and no observed jobs. */
static int print_nobody(struct nt_client *client, const char *at)
{
	nt_autojson json_t *jobs = NULL;
	struct nt_client_error error;

	if (at && *at) {
		(void)printf("No slow ranks at %s.\n", at);
		return NT_EXIT_OK;
	}
	if (nt_client_list(client, "/api/v1/jobs", 1, &jobs, &error) < 0)
		return nt_live_fail(&error);
	if (json_array_size(jobs))
		(void)printf("No slow ranks.\n");
	else
		(void)printf("No slow ranks, and no jobs: no agent has sent data yet.\n"
			     "Is neutracer-agent running where the job runs, on the same bus?\n");
	return NT_EXIT_OK;
}

static int print_table(const json_t *items, const char *at)
{
	nt_auto(nt_table) struct nt_table *table = NULL;
	size_t i, unobserved = 0;
	const json_t *item;

	if (nt_table_new(columns, sizeof(columns) / sizeof(columns[0]), &table) < 0)
		return nt_live_no_memory();
	json_array_foreach((json_t *)(uintptr_t)items, i, item)
	{
		if (add_row(table, item) < 0)
			return nt_live_no_memory();
		unobserved += json_is_false(json_object_get(item, "observed"));
	}
	nt_table_print(table, stdout);
	if (unobserved && !(at && *at))
		(void)printf("\nWithout data for 10 s, and slow before that: %zu of %zu. Is "
			     "neutracer-agent running there?\n",
			     unobserved, json_array_size(items));
	(void)printf("\n%sThe evidence: neutracer incidents INCIDENT%s\n",
		     nt_style_begin(NT_STYLE_DIM, stdout), nt_style_end(stdout));
	return NT_EXIT_OK;
}

static int run(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *items = NULL;
	struct nt_client_error error;
	int code;

	if (nt_buf_printf(&path, "/api/v1/slow-ranks") < 0 ||
	    nt_client_parameter(&path, "job", config->job) < 0 ||
	    nt_client_parameter(&path, "class", config->class) < 0 ||
	    nt_client_parameter(&path, "since", config->since) < 0 ||
	    nt_client_parameter(&path, "at", config->at) < 0)
		return nt_live_no_memory();
	if (nt_client_list(client, (const char *)path.data, 0, &items, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		code = nt_live_print_list(items);
	else
		code = json_array_size(items) ? print_table(items, config->at)
					      : print_nobody(client, config->at);
	if (code == NT_EXIT_OK && config->exit_code && json_array_size(items))
		return NT_EXIT_FINDING;
	return code;
}

int nt_command_slow_ranks(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, run);
}
