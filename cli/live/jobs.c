/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer jobs`: lists the observed jobs, or the ranks of one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/live/command.h"
#include "cli/live/job_act.h"
#include "cli/live/live.h"
#include "cli/live/rank_memory.h"
#include "common/base/ascii.h"
#include "proto/json.h"

static const struct nt_opt options[] = {
	NT_LIVE_OPTIONS,
	NT_LIVE_WATCH_OPTIONS,
	NT_LIVE_FILTER("job", job, "JOB", NULL, "only jobs of this name, key or id"),
	NT_LIVE_FILTER("state", state, "STATE", "running hung unobserved ended",
		       "only this state: running, hung, unobserved, ended"),
	NT_LIVE_TIME("since", since,
		     "only jobs that began at this time or later: 2026-11-21T03:00:00Z"),
	NT_LIVE_FILTER("node", node, "NODE", NULL, "of the ranks of one job: only on this node"),
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_NETWORK, NT_EXIT_INPUT};

static const struct nt_opt_program program = {
	.name = "neutracer jobs",
	.section = 1,
	.summary = "show the observed jobs, or the ranks of one",
	.description =
		"Without an argument, lists the jobs. With the id of one, lists its ranks: "
		"their nodes, the parts of their step times and the device memory that "
		"they hold (>=: at least; oom: an allocation failed for want of it; leak: "
		"it keeps growing; details follow below). Below the jobs, it lists "
		"the nodes whose agents omit something because a cap is reached.\n\n"
		"show prints all that is known of one job, with names as in the REST interface. "
		"rebaseline discards the baselines of a job, so that they are learned again, and "
		"resolves its incidents; this requires a token of scope admin.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.args = "[ID | show ID | rebaseline ID]",
	.max_args = 2,
	.args_offset = offsetof(struct nt_live_config, args),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

static const struct nt_column job_columns[] = {
	{"JOB", false, true},           {"ID", false, false},     {"STATE", false, false},
	{"ATTEMPT", true, false, true}, {"RANKS", true, false},   {"NODES", true, false, true},
	{"STEP", true, false},          {"SAMPLED", true, false}, {"INCIDENTS", true, false},
	{"SINCE", false, true, true},   {"SEEN", true, false},
};

static const struct nt_column rank_columns[] = {
	{"RANK", true, false},
	{"STATE", false, false},
	{"NODE", false, true},
	{"POD", false, true, true},
	{"PID", true, false, true},
	{"TIER", false, false, true},
	{"STEP", true, false},
	{"OWN", true, false},
	{"PEERS", true, false},
	{"HOST", true, false, true},
	{"BLOCKED", true, false},
	{"SAMPLED", true, false, true},
	{"GPU", false, true, true, true},
	{"MEMORY", true, false, true, true},
	{"FLOP/S MFU COVER", true, true, true, true},
	{"INSIDE", false, true, true},
};

/* "100%", or less; with a mark if some data is not observed at all. */
static int add_sampled(struct nt_table *table, const json_t *object)
{
	const json_t *share = json_object_get(object, "sampled");
	bool shed = json_array_size(json_object_get(object, "shed")) > 0;
	double percent = 100 * json_number_value(share);

	if (!json_is_number(share))
		return nt_table_add(table, NT_STYLE_DIM, "-");
	return nt_table_add(table, percent < 100 || shed ? NT_STYLE_BAD : NT_STYLE_PLAIN,
			    "%.*f%%%s", percent < 10, percent, shed ? "*" : "");
}

static int add_job(struct nt_table *table, const json_t *job)
{
	const char *state = nt_json_get_text(job, "state", "-");
	size_t incidents = json_array_size(json_object_get(job, "incidents"));
	char text[NT_LIVE_TEXT];
	int r;

	r = nt_table_add(table, 0, "%s", nt_json_get_text(job, "name", "-"));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(job, "id", "-"));
	if (r == 0)
		r = nt_table_add(table, nt_live_job_style(state), "%s", state);
	if (r == 0)
		r = nt_table_add(table, 0, "%.0f", nt_json_get_number(job, "attempt", 0));
	if (r == 0)
		r = nt_table_add(table, 0, "%.0f/%.0f", nt_json_get_number(job, "live", 0),
				 nt_json_get_number(job, "size", 0));
	if (r == 0)
		r = nt_table_add(table, 0, "%.0f", nt_json_get_number(job, "nodes", 0));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_live_duration(job, "step_seconds", text));
	if (r == 0)
		r = add_sampled(table, job);
	if (r == 0)
		r = nt_table_add(table, incidents ? NT_STYLE_BAD : NT_STYLE_PLAIN, "%zu",
				 incidents);
	if (r == 0)
		r = nt_table_add(table, NT_STYLE_DIM, "%s", nt_json_get_text(job, "since", "-"));
	if (r == 0)
		r = nt_table_add(table, NT_STYLE_DIM, "%s",
				 nt_live_age(nt_json_get_text(job, "seen", NULL), text));
	return r;
}

/* "71% 91C temperature": the clock, of the possible one, and what holds it down; "-": not known. */
static int add_gpu(struct nt_table *table, const json_t *rank)
{
	const json_t *gpu = json_object_get(rank, "gpu_state");
	const json_t *held = json_object_get(gpu, "held_down_by");
	const double clock = nt_json_get_number(gpu, "clock_mhz", 0),
		     most = nt_json_get_number(gpu, "most_clock_mhz", 0),
		     celsius = nt_json_get_number(gpu, "temperature_celsius", 0);
	nt_autobuf struct nt_buf text = {0};
	int r = 0;

	if (clock > 0 && most > 0)
		r = nt_buf_printf(&text, "%.0f%%", 100 * clock / most);
	if (r == 0 && celsius > 0)
		r = nt_buf_printf(&text, "%s%.0fC", text.len ? " " : "", celsius);
	for (size_t i = 0; r == 0 && i < json_array_size(held); i++)
		r = nt_buf_printf(&text, "%s%s", text.len ? " " : "",
				  json_string_value(json_array_get(held, i)) ?: "?");
	if (r < 0)
		return r;
	return nt_table_add(table, json_array_size(held) ? NT_STYLE_BAD : NT_STYLE_PLAIN, "%s",
			    text.len ? (const char *)text.data : "-");
}

/* "42%", or "-" if the member is null. Returns text. */
static const char *percent(const json_t *object, const char *name, char text[NT_LIVE_TEXT])
{
	const double share = nt_json_get_number(object, name, -1);

	(void)snprintf(text, NT_LIVE_TEXT, share < 0 ? "-" : "%.0f%%", 100 * share);
	return text;
}

/*
 * "412T 42% 83%": operations a second, of the peak, and the share of the work that this covers: of the
 * launches, or "71%GPU": of the kernels' time.
 */
static int add_gemms(struct nt_table *table, const json_t *rank)
{
	const json_t *gemms = json_object_get(rank, "gemms");
	const double flops = nt_json_get_number(gemms, "flops_per_second", -1);
	const bool has_time = nt_json_get_number(gemms, "gpu_time_share", -1) >= 0;
	char mfu[NT_LIVE_TEXT], coverage[NT_LIVE_TEXT];

	if (flops < 0)
		return nt_table_add(table, NT_STYLE_DIM, "-");
	return nt_table_add(table, NT_STYLE_PLAIN, "%.*f%s %s %s%s", flops < 1e12,
			    flops < 1e12 ? flops / 1e9 : flops / 1e12, flops < 1e12 ? "G" : "T",
			    percent(gemms, "mfu", mfu),
			    percent(gemms, has_time ? "gpu_time_share" : "coverage", coverage),
			    has_time ? "GPU" : "");
}

static int add_rank(struct nt_table *table, const json_t *rank)
{
	static const char *const durations[] = {
		"step_seconds", "own_seconds",     "own_peers_seconds",
		"host_seconds", "blocked_seconds",
	};
	bool known = json_is_true(json_object_get(rank, "rank_known"));
	char text[NT_LIVE_TEXT];
	int r;

	r = nt_table_add(table, known ? NT_STYLE_PLAIN : NT_STYLE_DIM, "%s%.0f", known ? "" : "?",
			 nt_json_get_number(rank, "rank", 0));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(rank, "state", "-"));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(rank, "node", "-"));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(rank, "pod", "-"));
	if (r == 0)
		r = nt_table_add(table, 0, "%.0f", nt_json_get_number(rank, "pid", 0));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(rank, "tier", "-"));
	for (size_t i = 0; r == 0 && i < sizeof(durations) / sizeof(durations[0]); i++)
		r = nt_table_add(table, 0, "%s", nt_live_duration(rank, durations[i], text));
	if (r == 0)
		r = add_sampled(table, rank);
	if (r == 0)
		r = add_gpu(table, rank);
	if (r == 0)
		r = nt_rank_memory_add(table, rank);
	if (r == 0)
		r = add_gemms(table, rank);
	if (r == 0)
		r = nt_table_add(
			table, NT_STYLE_DIM, "%s",
			nt_json_get_text(json_object_get(rank, "inside"), "operation", "-"));
	return r;
}

static int print_rows(const json_t *items, const struct nt_column *columns, size_t count,
		      int (*add)(struct nt_table *table, const json_t *item))
{
	nt_auto(nt_table) struct nt_table *table = NULL;

	if (nt_table_new(columns, count, &table) < 0)
		return nt_live_no_memory();
	for (size_t i = 0; i < json_array_size(items); i++) {
		if (add(table, json_array_get(items, i)) < 0)
			return nt_live_no_memory();
	}
	nt_table_print(table, stdout);
	return NT_EXIT_OK;
}

/* ---- omitted processes ----------------------------------------------------------------------- */

/* "node-3: 412 processes left out, 400 of them of user 65534 (cap 1024)" */
static void print_limit(const char *node, const json_t *limit)
{
	char name[NT_LIVE_TEXT], unit[NT_LIVE_TEXT], owner[NT_LIVE_TEXT];
	double left_out = nt_json_get_number(limit, "left_out", 0);
	double most = nt_json_get_number(limit, "owner_left_out", 0);

	/* Control characters would affect the terminal. */
	nt_ascii_copy_text(name, sizeof(name), node);
	nt_ascii_copy_text(unit, sizeof(unit), nt_json_get_text(limit, "unit", "things"));
	nt_ascii_copy_text(owner, sizeof(owner), nt_json_get_text(limit, "owner", "unknown"));
	(void)printf("%s: %.0f %s left out, ", name, left_out, unit);
	if (most < left_out)
		(void)printf("%.0f of them ", most);
	(void)printf("of %s (cap %.0f)\n", owner, nt_json_get_number(limit, "cap", 0));
}

/* The nodes with omitted processes; an older aggregator reports none. */
static int list_short_nodes(struct nt_client *client, json_t **ret_nodes,
			    struct nt_client_error *error)
{
	nt_autojson json_t *nodes = NULL;
	nt_autojson json_t *some = json_array();
	int r;

	r = nt_client_list(client, "/api/v1/nodes", 0, &nodes, error);
	if (r < 0)
		return r;
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		json_t *node = json_array_get(nodes, i);

		if (json_array_size(json_object_get(node, "limits")) &&
		    json_array_append(some, node)) {
			error->exit = NT_EXIT_SYSTEM;
			(void)snprintf(error->text, sizeof(error->text), "out of memory");
			return -ENOMEM;
		}
	}
	*ret_nodes = nt_take(some);
	return 0;
}

static void print_short_nodes(const json_t *nodes)
{
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const json_t *node = json_array_get(nodes, i);
		const json_t *limits = json_object_get(node, "limits");

		for (size_t l = 0; l < json_array_size(limits); l++)
			print_limit(nt_json_get_text(node, "node", "-"), json_array_get(limits, l));
	}
}

static int print_ranks(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *items = NULL;
	struct nt_client_error error;
	int code;

	if (nt_client_segment(&path, "/api/v1/jobs/", config->args.value[0]) < 0 ||
	    nt_buf_printf(&path, "/ranks") < 0 ||
	    nt_client_parameter(&path, "node", config->node) < 0)
		return nt_live_no_memory();
	if (nt_client_list(client, (const char *)path.data, 0, &items, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		return nt_live_print_list(items);
	code = print_rows(items, rank_columns, sizeof(rank_columns) / sizeof(rank_columns[0]),
			  add_rank);
	if (code == NT_EXIT_OK)
		nt_rank_memory_print(items);
	return code;
}

static int run(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *items = NULL;
	nt_autojson json_t *nodes = NULL;
	struct nt_client_error error;
	int code = NT_EXIT_OK;

	if (config->args.count == 2)
		return nt_job_act(client, config);
	if (config->args.count)
		return print_ranks(client, config);
	if (nt_buf_printf(&path, "/api/v1/jobs") < 0 ||
	    nt_client_parameter(&path, "job", config->job) < 0 ||
	    nt_client_parameter(&path, "state", config->state) < 0 ||
	    nt_client_parameter(&path, "since", config->since) < 0)
		return nt_live_no_memory();
	if (nt_client_list(client, (const char *)path.data, 0, &items, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		return nt_live_print_list(items);
	if (list_short_nodes(client, &nodes, &error) < 0)
		return nt_live_fail(&error);
	if (json_array_size(items))
		code = print_rows(items, job_columns, sizeof(job_columns) / sizeof(job_columns[0]),
				  add_job);
	else
		(void)printf("No jobs.\n");
	print_short_nodes(nodes);
	return code;
}

int nt_command_jobs(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, run);
}
