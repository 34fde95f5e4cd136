/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer alert`: the receivers of messages; `alert test` sends one a sample. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/live/command.h"
#include "cli/live/live.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	POLL_MS = 200,
};

/* Two requests of 15 s, behind one that is on its way, and a pause for the rate. */
static const uint64_t patience_ns = 2 * NT_MINUTE;

/* There are few receivers: the list has no pages. */
static const char list_path[] = "/api/v1/receivers";

static const struct nt_opt options[] = {NT_LIVE_OPTIONS};

static const enum nt_exit exits[] = {NT_EXIT_FINDING, NT_EXIT_CONFIG, NT_EXIT_NETWORK,
				     NT_EXIT_SYSTEM};

static const struct nt_opt_program program = {
	.name = "neutracer alert",
	.section = 1,
	.summary = "show the receivers of messages, or send one a test",
	.description =
		"Without arguments: the receivers of this aggregator, and what became of their "
		"messages since it was started.\n\n"
		"With \"test\" and the name of a receiver, that one gets a message that is marked as "
		"a test, and its answer is printed. Where a receiver keeps incidents, the test is "
		"resolved at once. This requires a token of scope admin.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.args = "[test RECEIVER]",
	.arg_words = "test",
	.max_args = 2,
	.args_offset = offsetof(struct nt_live_config, args),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
	.finding = "the result is a finding: the receiver did not take the test",
};

/* ---- the list -------------------------------------------------------------------------------- */

static const struct nt_column columns[] = {
	{.title = "RECEIVER"},
	{.title = "KIND"},
	{.title = "SENT", .right = true},
	{.title = "DIGESTED", .right = true},
	{.title = "REPEATED", .right = true},
	{.title = "RETRIED", .right = true},
	{.title = "FAILED", .right = true},
	{.title = "DROPPED", .right = true},
};

static int add_row(struct nt_table *table, const json_t *item)
{
	static const char *const results[] = {"sent",    "digested", "repeated",
					      "retried", "failed",   "dropped"};
	const json_t *messages = json_object_get(item, "messages");
	int r = nt_table_add(table, 0, "%s", nt_json_get_text(item, "name", "?"));

	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(item, "kind", "?"));
	for (size_t i = 0; r == 0 && i < sizeof(results) / sizeof(results[0]); i++) {
		double count = nt_json_get_number(messages, results[i], 0);
		bool bad = count > 0 && i >= 4;

		r = nt_table_add(table, bad ? NT_STYLE_BAD : NT_STYLE_PLAIN, "%.0f", count);
	}
	return r;
}

static int print_receivers(const json_t *items)
{
	nt_auto(nt_table) struct nt_table *table = NULL;
	const json_t *item;
	size_t i;

	if (!json_array_size(items)) {
		(void)printf("There are no receivers: see --receivers-file of the aggregator.\n");
		return NT_EXIT_OK;
	}
	if (nt_table_new(columns, sizeof(columns) / sizeof(columns[0]), &table) < 0)
		return nt_live_no_memory();
	json_array_foreach(items, i, item)
	{
		if (add_row(table, item) < 0)
			return nt_live_no_memory();
	}
	nt_table_print(table, stdout);
	return NT_EXIT_OK;
}

static int list_receivers(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autojson json_t *list = NULL;
	struct nt_client_error error;

	if (nt_client_get(client, list_path, &list, &error) < 0)
		return nt_live_fail(&error);
	return config->json ? nt_live_print_json(list)
			    : print_receivers(json_object_get(list, "items"));
}

/* ---- a test ---------------------------------------------------------------------------------- */

/* The receiver's test, once it is done; NULL otherwise. Borrowed. */
static const json_t *find_test(const json_t *items, const char *name, double number)
{
	const json_t *item;
	size_t i;

	json_array_foreach(items, i, item)
	{
		const json_t *test = json_object_get(item, "test");

		if (!strcmp(nt_json_get_text(item, "name", ""), name) &&
		    nt_json_get_number(test, "number", 0) >= number &&
		    !strcmp(nt_json_get_text(test, "state", ""), "done"))
			return test;
	}
	return NULL;
}

static int print_test(const struct nt_live_config *config, const char *name, const json_t *test)
{
	const char *outcome = nt_json_get_text(test, "outcome", "failed");
	const char *answer = nt_json_get_text(test, "answer", NULL);
	double status = nt_json_get_number(test, "status", 0);
	double code = nt_json_get_number(test, "code", 0);
	bool taken = !strcmp(outcome, "taken");
	char text[512];

	if (config->json) {
		int r = nt_live_print_json(test);

		return r != NT_EXIT_OK || taken ? r : NT_EXIT_FINDING;
	}
	(void)snprintf(text, sizeof(text), "%s",
		       answer ? answer : nt_json_get_text(test, "reason", "no answer"));
	(void)printf("%s: %s", name, taken ? "taken" : "not taken");
	if (status > 0)
		(void)printf(", HTTP %.0f", status);
	if (code != 0)
		(void)printf(", code %.0f", code);
	(void)printf(": %s\n", answer || !taken ? nt_text_defuse(text) : "(no body)");
	return taken ? NT_EXIT_OK : NT_EXIT_FINDING;
}

static int await_test(struct nt_client *client, const struct nt_live_config *config,
		      const char *name, double number)
{
	const struct timespec rest = {.tv_nsec = POLL_MS * (long)NT_MILLISECOND};
	const uint64_t until_ns = nt_clock_mono_ns() + patience_ns;

	while (nt_clock_mono_ns() < until_ns) {
		nt_autojson json_t *list = NULL;
		struct nt_client_error error;
		const json_t *test;

		if (nt_client_get(client, list_path, &list, &error) < 0)
			return nt_live_fail(&error);
		test = find_test(json_object_get(list, "items"), name, number);
		if (test)
			return print_test(config, name, test);
		(void)nanosleep(&rest, NULL);
	}
	(void)fprintf(stderr, "neutracer alert: the test was not sent within two minutes\n");
	return NT_EXIT_NETWORK;
}

static int test_receiver(struct nt_client *client, const struct nt_live_config *config)
{
	const char *name = config->args.value[1];
	nt_autojson json_t *body = json_object(), *begun = NULL;
	nt_autobuf struct nt_buf path = {0};
	struct nt_client_error error;

	if (!body || nt_client_segment(&path, "/api/v1/receivers/", name) < 0 ||
	    nt_buf_append(&path, "/test", sizeof("/test")) < 0)
		return nt_live_no_memory();
	if (nt_client_post(client, (const char *)path.data, body, &begun, &error) < 0)
		return nt_live_fail(&error);
	return await_test(client, config, name, nt_json_get_number(begun, "number", 1));
}

static int run_alert(struct nt_client *client, const struct nt_live_config *config)
{
	const struct nt_opt_args *args = &config->args;

	if (!args->count)
		return list_receivers(client, config);
	if (args->count == 2 && !strcmp(args->value[0], "test"))
		return test_receiver(client, config);
	if (!strcmp(args->value[0], "test"))
		(void)fprintf(stderr, "neutracer alert: test needs the name of a receiver; "
				      "\"neutracer alert\" lists them\n");
	else
		(void)fprintf(stderr, "neutracer alert: there is no '%.64s': test RECEIVER\n",
			      args->value[0]);
	return NT_EXIT_USAGE;
}

int nt_command_alert(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, run_alert);
}
