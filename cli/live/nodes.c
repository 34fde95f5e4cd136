/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer nodes`: the nodes, and which of them behave unlike their peers or their past. */
#include <stdio.h>
#include <string.h>

#include "cli/live/command.h"
#include "cli/live/live.h"
#include "proto/json.h"

static const struct nt_opt options[] = {
	NT_LIVE_OPTIONS,
	NT_LIVE_WATCH_OPTIONS,
	NT_LIVE_FILTER("state", state, "STATE", "observed unobserved",
		       "only this state: observed, unobserved"),
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_NETWORK};

static const struct nt_opt_program program = {
	.name = "neutracer nodes",
	.section = 1,
	.summary = "list the nodes and how unusual their metrics are",
	.description =
		"Lists the nodes with the score of their metrics over the last minute. A score of 1 is "
		"exceeded in a tenth of a node's minutes; an alarm begins above the threshold. The "
		"metrics are those with the largest parts of the score. With a node: its metrics with "
		"their values, those of its peers, and their usual range. With a metric, too: its values "
		"of the last 90 minutes.",
	.args = "[NODE [METRIC]]",
	.max_args = 2,
	.args_offset = offsetof(struct nt_live_config, args),
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

static const struct nt_column columns[] = {
	{"NODE", false, false},
	{"RANKS", true, false},
	{"AGENT", false, false},
	{"STATE", false, false},
	{"SCORE", true, false},
	{"THRESHOLD", true, false},
	{"PEERS", true, false, false, true},
	{"METRICS", false, false},
};

static const struct nt_column metric_columns[] = {
	{"METRIC", false, false}, {"SHARE", true, false},  {"VALUE", true, false},
	{"PEERS", true, false},   {"USUAL", false, false}, {"UNIT", false, false},
};

static int add_score(struct nt_table *table, const json_t *anomaly)
{
	const char *state = nt_json_get_text(anomaly, "state", "-");
	const bool alarms = strcmp(state, "alarm") == 0, learns = strcmp(state, "learning") == 0;
	const double peers = nt_json_get_number(anomaly, "peers", 0);
	char text[NT_LIVE_TEXT];
	int r = nt_table_add(table, alarms ? NT_STYLE_BAD : NT_STYLE_PLAIN, "%s", state);

	if (learns) {
		r = r ? r : nt_table_add(table, 0, "-");
		r = r ? r : nt_table_add(table, 0, "-");
		r = r ? r : nt_table_add(table, 0, "-");
		return r ? r
			 : nt_table_add(table, 0, "%s since %s",
					nt_json_get_text(anomaly, "learning_reason", "-"),
					nt_json_get_text(anomaly, "learning_since", "-"));
	}
	r = r ? r : nt_table_add(table, 0, "%.1f", nt_json_get_number(anomaly, "score", 0));
	r = r ? r : nt_table_add(table, 0, "%.1f", nt_json_get_number(anomaly, "threshold", 0));
	r = r ? r : nt_table_add(table, 0, peers > 0 ? "%.0f" : "-", peers);
	return r ? r : nt_table_add(table, 0, "%s", nt_live_leading_metrics(anomaly, text));
}

static int add_node(struct nt_table *table, const json_t *node)
{
	const json_t *anomaly = json_object_get(node, "anomaly");
	int r = nt_table_add(table, 0, "%s", nt_json_get_text(node, "node", "-"));

	r = r ? r : nt_table_add(table, 0, "%.0f", nt_json_get_number(node, "ranks", 0));
	r = r ? r : nt_table_add(table, 0, "%s", nt_json_get_text(node, "state", "-"));
	if (json_is_object(anomaly))
		return r ? r : add_score(table, anomaly);
	for (int i = 0; i < 5 && r == 0; i++)
		r = nt_table_add(table, 0, "-");
	return r;
}

/* An unknown number is a dash. */
static const char *number_text(const json_t *metric, const char *name, char text[NT_LIVE_TEXT])
{
	const json_t *value = json_object_get(metric, name);

	if (!json_is_number(value))
		return "-";
	(void)snprintf(text, NT_LIVE_TEXT, "%.4g", json_number_value(value));
	return text;
}

static int add_metric(struct nt_table *table, const json_t *metric)
{
	const char *unit = nt_json_get_text(metric, "unit", "");
	char text[NT_LIVE_TEXT], high[NT_LIVE_TEXT];
	int r = nt_table_add(table, 0, "%s", nt_json_get_text(metric, "metric", "-"));

	r = r ? r : nt_table_add(table, 0, "%.0f %%", 100 * nt_json_get_number(metric, "share", 0));
	r = r ? r : nt_table_add(table, 0, "%s", number_text(metric, "value", text));
	r = r ? r : nt_table_add(table, 0, "%s", number_text(metric, "peers", text));
	r = r ? r
	      : nt_table_add(table, 0, "%s to %s", number_text(metric, "low", text),
			     number_text(metric, "high", high));
	return r ? r
		 : nt_table_add(table, 0, "%s%s", *unit ? unit : "-",
				*unit && json_is_true(json_object_get(metric, "per_second")) ? "/s"
											     : "");
}

static int print_table(const json_t *items, const struct nt_column *column, size_t count,
		       int (*add)(struct nt_table *table, const json_t *item))
{
	nt_auto(nt_table) struct nt_table *table = NULL;

	if (nt_table_new(column, count, &table) < 0)
		return nt_live_no_memory();
	for (size_t i = 0; i < json_array_size(items); i++)
		if (add(table, json_array_get(items, i)) < 0)
			return nt_live_no_memory();
	nt_table_print(table, stdout);
	return NT_EXIT_OK;
}

static int print_node(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *reply = NULL;
	const json_t *anomaly;
	struct nt_client_error error;
	char text[NT_LIVE_TEXT];

	if (nt_client_segment(&path, "/api/v1/nodes/", config->args.value[0]) < 0 ||
	    nt_buf_printf(&path, "/scores") < 0)
		return nt_live_no_memory();
	if (nt_client_get(client, (const char *)path.data, &reply, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		return nt_live_print_json(reply);
	anomaly = json_object_get(reply, "anomaly");
	(void)printf("%s: score %.1f, threshold %.1f", nt_live_text(anomaly, "state", "-", text),
		     nt_json_get_number(anomaly, "score", 0),
		     nt_json_get_number(anomaly, "threshold", 0));
	if (nt_json_get_number(anomaly, "peers", 0) > 0)
		(void)printf(", against %.0f peers; the usual range is of the deviation from them",
			     nt_json_get_number(anomaly, "peers", 0));
	(void)printf("\nlearning since %s", nt_live_text(anomaly, "learning_since", "-", text));
	(void)printf(" (%s)\n", nt_live_text(anomaly, "learning_reason", "-", text));
	return print_table(json_object_get(anomaly, "metrics"), metric_columns,
			   sizeof(metric_columns) / sizeof(metric_columns[0]), add_metric);
}

/* ---- one metric ------------------------------------------------------------------------------ */

static int add_minute(struct nt_table *table, const json_t *minute)
{
	char text[NT_LIVE_TEXT];
	int r = nt_table_add(table, NT_STYLE_DIM, "%s", nt_json_get_text(minute, "at", "-"));

	return r ? r : nt_table_add(table, 0, "%s", number_text(minute, "value", text));
}

static int print_series(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *series = NULL;
	struct nt_client_error error;
	char title[NT_LIVE_TEXT];
	const char *unit;

	if (nt_client_segment(&path, "/api/v1/nodes/", config->args.value[0]) < 0 ||
	    nt_buf_printf(&path, "/series") < 0 ||
	    nt_client_parameter(&path, "metric", config->args.value[1]) < 0)
		return nt_live_no_memory();
	if (nt_client_get(client, (const char *)path.data, &series, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		return nt_live_print_json(series);
	unit = nt_json_get_text(series, "unit", "value");
	(void)snprintf(title, sizeof(title), "%s%s", unit,
		       json_is_true(json_object_get(series, "per_second")) ? "/s" : "");
	return print_table(json_object_get(series, "items"),
			   (const struct nt_column[]){{.title = "MINUTE UNTIL"},
						      {.title = title, .right = true}},
			   2, add_minute);
}

static int run(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *items = NULL;
	struct nt_client_error error;

	if (config->args.count == 2)
		return print_series(client, config);
	if (config->args.count)
		return print_node(client, config);
	if (nt_buf_printf(&path, "/api/v1/nodes") < 0 ||
	    nt_client_parameter(&path, "state", config->state) < 0)
		return nt_live_no_memory();
	if (nt_client_list(client, (const char *)path.data, 0, &items, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		return nt_live_print_list(items);
	if (!json_array_size(items)) {
		(void)printf("No nodes.\n");
		return NT_EXIT_OK;
	}
	return print_table(items, columns, sizeof(columns) / sizeof(columns[0]), add_node);
}

int nt_command_nodes(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, run);
}
