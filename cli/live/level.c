/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer level`: the levels of detail that are requested of agents. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/live/command.h"
#include "cli/live/live.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "proto/json.h"

static const struct nt_opt options[] = {
	NT_LIVE_OPTIONS,
	NT_LIVE_FILTER("job", job, "JOB", NULL, "only levels of this job: its name, key or id"),
	NT_LIVE_FILTER("node", node, "NODE", NULL, "only levels of this node"),
	{.name = "ttl",
	 .kind = NT_OPT_DURATION,
	 .offset = offsetof(struct nt_live_config, ttl_ns),
	 .def = "10m",
	 .min = NT_SECOND,
	 .max = NT_DAY,
	 .help = "how long the level lasts",
	 .flags = NT_OPT_CLI_ONLY},
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_INPUT, NT_EXIT_NETWORK,
				     NT_EXIT_SYSTEM};

static const struct nt_opt_command arguments[] = {
	{"TARGET",
	 "a job by its name, key or id, a rank as JOB/RANK, or a node as node:NAME; without it "
	 "the levels in force are listed"},
	{"LEVEL",
	 "0: counts and sums, and the end of a level that was set; 1: single calls, too; 2: of "
	 "a rank also profiles; 3: four times the rate of single calls"},
};

static const struct nt_opt_program program = {
	.name = "neutracer level",
	.section = 1,
	.summary = "show the levels of detail, or set one",
	.description =
		"Without arguments, lists the levels in force. With two, requests LEVEL for TARGET: a "
		"job by its name or id, a rank as JOB/RANK, or a node as node:NAME.\n\n"
		"Level 0 is the default: counts and sums. Level 1 adds records of single calls and of "
		"single events of the system, and all requests posted by RDMA. Level 2 of a rank adds "
		"profiles on and off the CPU. Level 3 has four times the rate of records. A level ends by itself, or by setting level 0. The budgets of the agents hold at "
		"all levels: what they leave out is in the columns OBSERVED and SHED.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.args = "[TARGET LEVEL]",
	.arg_help = arguments,
	.arg_help_count = sizeof(arguments) / sizeof(arguments[0]),
	.max_args = 2,
	.args_offset = offsetof(struct nt_live_config, args),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

/* ---- the list -------------------------------------------------------------------------------- */

static const struct nt_column columns[] = {
	{"TARGET", false, true},       {"LEVEL", true, false},          {"EXPIRES", true, false},
	{"RANKS", true, false, true},  {"OBSERVED", true, false, true}, {"SHED", false, true, true},
	{"REASON", false, true, true},
};

static void print_target(const json_t *item, char text[NT_LIVE_TEXT])
{
	const char *kind = nt_json_get_text(item, "kind", "?");
	const char *key = nt_json_get_text(item, "job_key", "?");

	if (strcmp(kind, "node") == 0)
		(void)snprintf(text, NT_LIVE_TEXT, "node:%s", nt_json_get_text(item, "node", "?"));
	else if (strcmp(kind, "rank") == 0)
		(void)snprintf(text, NT_LIVE_TEXT, "%s/%.0f",
			       nt_json_get_text(item, "job_name", key),
			       nt_json_get_number(item, "rank", -1));
	else
		(void)snprintf(text, NT_LIVE_TEXT, "%s", nt_json_get_text(item, "job_name", key));
}

/* The time until then: "9m", "42s". */
static void print_rest(const char *time, char text[NT_LIVE_TEXT])
{
	const uint64_t now_ns = nt_clock_real_ns();
	uint64_t then_ns, seconds;

	(void)snprintf(text, NT_LIVE_TEXT, "-");
	if (nt_clock_parse(time, strlen(time), &then_ns) < 0)
		return;
	seconds = then_ns > now_ns ? (then_ns - now_ns + NT_SECOND / 2) / NT_SECOND : 0;
	if (seconds < 120)
		(void)snprintf(text, NT_LIVE_TEXT, "%" PRIu64 "s", seconds);
	else
		(void)snprintf(text, NT_LIVE_TEXT, "%" PRIu64 "m", (seconds + 30) / 60);
}

static void print_shed(const json_t *item, char text[NT_LIVE_TEXT])
{
	const json_t *shed = json_object_get(item, "shed");
	size_t used = 0, i;
	const json_t *name;

	(void)snprintf(text, NT_LIVE_TEXT, "-");
	json_array_foreach(shed, i, name)
	{
		int n = snprintf(text + used, NT_LIVE_TEXT - used, "%s%s", i ? "," : "",
				 json_string_value(name) ? json_string_value(name) : "?");

		if (n < 0 || used + (size_t)n >= NT_LIVE_TEXT)
			return;
		used += (size_t)n;
	}
}

static int add_row(struct nt_table *table, const json_t *item)
{
	const double ranks = nt_json_get_number(item, "ranks", 0);
	const double in_force = nt_json_get_number(item, "in_force", 0);
	const double sampled = nt_json_get_number(item, "sampled", 1);
	char text[NT_LIVE_TEXT];
	int r;

	print_target(item, text);
	r = nt_table_add(table, 0, "%s", text);
	if (r == 0)
		r = nt_table_add(table, 0, "%.0f", nt_json_get_number(item, "level", 0));
	print_rest(nt_json_get_text(item, "expires", ""), text);
	if (r == 0)
		r = nt_table_add(table, 0, "%s", text);
	if (r == 0)
		r = nt_table_add(table, in_force < ranks ? NT_STYLE_WARNING : NT_STYLE_PLAIN,
				 "%.0f/%.0f", in_force, ranks);
	if (r == 0)
		r = nt_table_add(table, sampled < 1 ? NT_STYLE_WARNING : NT_STYLE_PLAIN, "%.0f%%",
				 100 * sampled);
	print_shed(item, text);
	if (r == 0)
		r = nt_table_add(table, 0, "%s", text);
	if (r == 0)
		r = nt_table_add(table, NT_STYLE_DIM, "%s", nt_json_get_text(item, "reason", "-"));
	return r;
}

static int print_table(json_t *items)
{
	nt_auto(nt_table) struct nt_table *table = NULL;
	const json_t *item;
	size_t i;

	if (!json_array_size(items)) {
		(void)printf("All ranks are at level 0.\n");
		return NT_EXIT_OK;
	}
	if (nt_table_new(columns, sizeof(columns) / sizeof(columns[0]), &table) < 0)
		return nt_live_no_memory();
	json_array_foreach(items, i, item) if (add_row(table, item) < 0) return nt_live_no_memory();
	nt_table_print(table, stdout);
	return NT_EXIT_OK;
}

static int list_levels(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *items = NULL;
	struct nt_client_error error;

	if (nt_buf_printf(&path, "/api/v1/levels") < 0 ||
	    nt_client_parameter(&path, "job", config->job) < 0 ||
	    nt_client_parameter(&path, "node", config->node) < 0)
		return nt_live_no_memory();
	if (nt_client_list(client, (const char *)path.data, 0, &items, &error) < 0)
		return nt_live_fail(&error);
	return config->json ? nt_live_print_list(items) : print_table(items);
}

/* ---- setting one ----------------------------------------------------------------------------- */

/* JOB/RANK if what is behind the last slash is a number; a job's name may contain slashes. */
static json_t *make_target(const char *target)
{
	static const char node[] = "node:";
	const char *slash = strrchr(target, '/');
	uint32_t rank;

	if (strncmp(target, node, sizeof(node) - 1) == 0)
		return json_pack("{s:s}", "node", target + sizeof(node) - 1);
	if (!slash || nt_parse_u32(slash + 1, strlen(slash + 1), 0, UINT32_MAX, &rank) < 0)
		return json_pack("{s:s}", "job", target);
	return json_pack("{s:s%, s:I}", "job", target, (size_t)(slash - target), "rank",
			 (json_int_t)rank);
}

static int set_level(struct nt_client *client, const struct nt_live_config *config)
{
	const char *target = config->args.value[0], *text = config->args.value[1];
	nt_autojson json_t *body = NULL, *set = NULL;
	struct nt_client_error error;
	char rest[NT_LIVE_TEXT];
	uint32_t level;

	if (nt_parse_u32(text, strlen(text), 0, 3, &level) < 0) {
		(void)fprintf(stderr, "neutracer level: '%s' is no level: 0, 1, 2 or 3\n", text);
		return NT_EXIT_USAGE;
	}
	body = make_target(target);
	if (!body) {
		(void)fprintf(stderr, "neutracer level: '%s' is no valid name\n", target);
		return NT_EXIT_USAGE;
	}
	if (json_object_set_new(body, "level", json_integer(level)) ||
	    json_object_set_new(body, "ttl_s",
				json_integer((json_int_t)(config->ttl_ns / NT_SECOND))))
		return nt_live_no_memory();
	if (nt_client_post(client, "/api/v1/levels", body, &set, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		return nt_live_print_json(set);
	print_rest(nt_json_get_text(set, "expires", ""), rest);
	if (level)
		(void)printf("%s: level %" PRIu32
			     " requested for %s. neutracer level shows where it is in force.\n",
			     target, level, rest);
	else
		(void)printf("%s: level 0 requested.\n", target);
	return NT_EXIT_OK;
}

static int run(struct nt_client *client, const struct nt_live_config *config)
{
	switch (config->args.count) {
	case 0:
		return list_levels(client, config);
	case 2:
		return set_level(client, config);
	default:
		(void)fprintf(stderr, "neutracer level: TARGET needs a LEVEL: 0, 1, 2 or 3\n");
		return NT_EXIT_USAGE;
	}
}

int nt_command_level(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, run);
}
