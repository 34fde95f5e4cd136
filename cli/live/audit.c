/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer audit`: the requests that changed something or were refused. */
#include <stdio.h>
#include <string.h>

#include "cli/live/command.h"
#include "cli/live/live.h"
#include "proto/json.h"

static const struct nt_opt options[] = {
	NT_LIVE_OPTIONS,
	NT_LIVE_WATCH_OPTIONS,
	{.name = "limit",
	 .kind = NT_OPT_U32,
	 .offset = offsetof(struct nt_live_config, limit),
	 .def = "100",
	 .min = 1,
	 .max = 2560,
	 .help = "the newest so many",
	 .flags = NT_OPT_CLI_ONLY},
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_NETWORK};

static const struct nt_opt_program program = {
	.name = "neutracer audit",
	.section = 1,
	.summary = "show who changed something, and which requests were refused",
	.description =
		"Lists the requests to this aggregator that changed something or were refused, the "
		"newest first. This requires a token of scope admin. Each aggregator keeps its own "
		"requests: the newest 2,048 changes, and 512 refused ones and sessions.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

static const struct nt_column columns[] = {
	{.title = "TIME"},
	{.title = "TOKEN", .shrinks = true},
	{.title = "CERTIFICATE", .shrinks = true, .optional = true, .rare = true},
	{.title = "ADDRESS", .shrinks = true, .optional = true},
	{.title = "METHOD"},
	{.title = "PATH", .shrinks = true},
	{.title = "STATUS", .right = true},
};

static int add_row(struct nt_table *table, const json_t *item)
{
	static const char *const names[] = {"time",    "token",  "certificate",
					    "address", "method", "path"};
	const double status = nt_json_get_number(item, "status", 0);
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(names) / sizeof(names[0]); i++)
		r = nt_table_add(table, NT_STYLE_PLAIN, "%s",
				 nt_json_get_text(item, names[i], "-"));
	return r < 0 ? r
		     : nt_table_add(table, status >= 400 ? NT_STYLE_WARNING : NT_STYLE_PLAIN,
				    "%.0f", status);
}

static int print_entries(const json_t *items)
{
	nt_auto(nt_table) struct nt_table *table = NULL;
	const json_t *item;
	size_t i;

	if (!json_array_size(items)) {
		(void)printf("Nothing was changed, and no such request was refused.\n");
		return NT_EXIT_OK;
	}
	if (nt_table_new(columns, sizeof(columns) / sizeof(columns[0]), &table) < 0)
		return nt_live_no_memory();
	json_array_foreach((json_t *)(uintptr_t)items, i, item)
	{
		if (add_row(table, item) < 0)
			return nt_live_no_memory();
	}
	nt_table_print(table, stdout);
	return NT_EXIT_OK;
}

static int run(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autojson json_t *items = NULL;
	struct nt_client_error error;

	if (nt_client_list(client, "/api/v1/audit", config->limit, &items, &error) < 0)
		return nt_live_fail(&error);
	return config->json ? nt_live_print_list(items) : print_entries(items);
}

int nt_command_audit(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, run);
}
