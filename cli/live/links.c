/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer links JOB`: RDMA and TCP between the ranks of a job. */
#include <stdio.h>
#include <string.h>

#include "cli/live/command.h"
#include "cli/live/live.h"
#include "common/base/ascii.h"
#include "proto/json.h"

static const struct nt_opt options[] = {
	NT_LIVE_OPTIONS,
	NT_LIVE_WATCH_OPTIONS,
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_NETWORK};

static const struct nt_opt_program program = {
	.name = "neutracer links",
	.section = 1,
	.summary = "show the links between the ranks of a job",
	.description =
		"Lists the links of a job, which sum the queue pairs of RDMA, or the TCP connections, from "
		"one rank to another or to an address. Figures are of the last one to two minutes. A "
		"dash is a figure that was not observed: RDMA is observed in short slices, and at level "
		"1 always. The latency of TCP is its round-trip time.",
	.args = "JOB",
	.min_args = 1,
	.max_args = 1,
	.args_offset = offsetof(struct nt_live_config, args),
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

static const struct nt_column columns[] = {
	{"FROM", false, false},         {"TO", false, false},
	{"NODE", false, true, true},    {"POD", false, true, true, true},
	{"TO NODE", false, true, true}, {"OVER", false, false},
	{"ENDS", true, false},          {"RATE", true, false},
	{"REQ/S", true, false, true},   {"LATENCY", true, false},
	{"LEAST", true, false, true},   {"MOST", true, false, true},
	{"ERRORS", true, false},        {"RESENT", true, false},
};

/* A peer that is no rank of the job has its address. */
static const char *end_text(const json_t *end, char text[NT_LIVE_TEXT])
{
	const json_t *rank = json_object_get(end, "rank");

	if (json_is_integer(rank))
		(void)snprintf(text, NT_LIVE_TEXT, "rank %" JSON_INTEGER_FORMAT,
			       json_integer_value(rank));
	else
		nt_ascii_copy_text(text, NT_LIVE_TEXT, nt_json_get_text(end, "address", "-"));
	return text;
}

static const char *rate_text(const json_t *link, const char *name, char text[NT_LIVE_TEXT])
{
	static const char units[] = " KMGTPE";
	double value = nt_json_get_number(link, name, -1);
	size_t i = 0;

	if (value < 0)
		return "-";
	for (; value >= 1000 && units[i + 1]; i++)
		value /= 1000;
	(void)snprintf(text, NT_LIVE_TEXT, i ? "%.1f%c" : "%.0f", value, units[i]);
	return text;
}

static const char *latency_text(const json_t *link, const char *name, char text[NT_LIVE_TEXT])
{
	const double seconds = nt_json_get_number(link, name, -1);

	if (seconds < 0)
		return "-";
	if (seconds < 1e-3)
		(void)snprintf(text, NT_LIVE_TEXT, "%.1fus", seconds * 1e6);
	else
		(void)snprintf(text, NT_LIVE_TEXT, "%.1fms", seconds * 1e3);
	return text;
}

/* A count and its part of all. */
static const char *part_text(const json_t *link, const char *count, const char *ratio,
			     char text[NT_LIVE_TEXT])
{
	const double part = nt_json_get_number(link, ratio, -1);

	if (part < 0)
		return "-";
	(void)snprintf(text, NT_LIVE_TEXT, "%.0f (%.2g %%)", nt_json_get_number(link, count, 0),
		       part * 100);
	return text;
}

/* The device of RDMA. */
static const char *over_text(const json_t *link)
{
	const char *transport = nt_json_get_text(link, "transport", "rdma");

	return strcmp(transport, "tcp") == 0 ? "tcp" : nt_json_get_text(link, "device", "rdma");
}

static int add_link(struct nt_table *table, const json_t *link)
{
	const json_t *from = json_object_get(link, "from"), *to = json_object_get(link, "to");
	const bool fails = nt_json_get_number(link, "errors", 0) > 0;
	const double hidden = nt_json_get_number(link, "not_visible", 0);
	char text[NT_LIVE_TEXT];
	int r = nt_table_add(table, 0, "%s", end_text(from, text));

	r = r ? r : nt_table_add(table, 0, "%s", end_text(to, text));
	r = r ? r : nt_table_add(table, 0, "%s", nt_json_get_text(from, "node", "-"));
	r = r ? r : nt_table_add(table, 0, "%s", nt_json_get_text(from, "pod", "-"));
	r = r ? r : nt_table_add(table, 0, "%s", nt_json_get_text(to, "node", "-"));
	r = r ? r : nt_table_add(table, 0, "%s", over_text(link));
	r = r ? r
	      : nt_table_add(table, 0, hidden > 0 ? "%.0f (%.0f hidden)" : "%.0f",
			     nt_json_get_number(link, "queue_pairs", 0) +
				     nt_json_get_number(link, "sockets", 0),
			     hidden);
	r = r ? r : nt_table_add(table, 0, "%s", rate_text(link, "bytes_per_second", text));
	r = r ? r : nt_table_add(table, 0, "%s", rate_text(link, "requests_per_second", text));
	r = r ? r : nt_table_add(table, 0, "%s", latency_text(link, "latency_seconds", text));
	r = r ? r : nt_table_add(table, 0, "%s", latency_text(link, "latency_least_seconds", text));
	r = r ? r : nt_table_add(table, 0, "%s", latency_text(link, "latency_most_seconds", text));
	r = r ? r
	      : nt_table_add(table, fails ? NT_STYLE_BAD : NT_STYLE_PLAIN, "%s",
			     part_text(link, "errors", "error_ratio", text));
	return r ? r
		 : nt_table_add(table, 0, "%s",
				part_text(link, "retransmits", "retransmit_ratio", text));
}

static int print_links(const json_t *items)
{
	nt_auto(nt_table) struct nt_table *table = NULL;

	if (!json_array_size(items)) {
		(void)printf(
			"No links: the job uses neither RDMA nor TCP, or none that is visible.\n");
		return NT_EXIT_OK;
	}
	if (nt_table_new(columns, sizeof(columns) / sizeof(columns[0]), &table) < 0)
		return nt_live_no_memory();
	for (size_t i = 0; i < json_array_size(items); i++)
		if (add_link(table, json_array_get(items, i)) < 0)
			return nt_live_no_memory();
	nt_table_print(table, stdout);
	return NT_EXIT_OK;
}

/* What cannot be seen at all, of any rank. */
static void print_hidden(struct nt_client *client, const char *path)
{
	nt_autojson json_t *page = NULL;
	const json_t *list;
	struct nt_client_error error;

	if (nt_client_get(client, path, &page, &error) < 0)
		return;
	list = json_object_get(page, "not_visible");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *what = json_string_value(json_array_get(list, i));

		if (what && strcmp(what, "extended") == 0)
			(void)printf("not visible: queue pairs used through the extended verbs\n");
		else if (what && strcmp(what, "direct") == 0)
			(void)printf("not visible: queues driven without libibverbs\n");
		else if (what && strcmp(what, "provider") == 0)
			(void)printf(
				"not visible: traffic of ranks whose provider is not known yet\n");
		else if (what && strcmp(what, "shed") == 0)
			(void)printf("not observed: traffic of ranks over their budget\n");
	}
}

static int run(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *items = NULL;
	struct nt_client_error error;
	int code;

	if (nt_client_segment(&path, "/api/v1/jobs/", config->args.value[0]) < 0 ||
	    nt_buf_printf(&path, "/links") < 0)
		return nt_live_no_memory();
	if (nt_client_list(client, (const char *)path.data, 0, &items, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		return nt_live_print_list(items);
	code = print_links(items);
	if (code == NT_EXIT_OK)
		print_hidden(client, (const char *)path.data);
	return code;
}

int nt_command_links(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, run);
}
