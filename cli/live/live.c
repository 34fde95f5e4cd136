/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/live.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/live/command.h"
#include "cli/live/watch.h"
#include "common/base/ascii.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	LEADING_METRICS = 3, /* in a row */
};

static bool is_time(const char *text)
{
	uint64_t ns;

	/* Beyond the first and last time of the clock is a time as well. */
	return !*text || nt_clock_parse(text, strlen(text), &ns) != -EINVAL;
}

const struct nt_opt_form nt_live_time_form = {is_time, "a time such as 2026-11-21T03:00:00Z"};

int nt_live_fail(const struct nt_client_error *error)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "neutracer: %s\n", error->text);
	return (int)error->exit;
}

int nt_live_no_memory(void)
{
	(void)fprintf(stderr, "neutracer: out of memory\n");
	return NT_EXIT_SYSTEM;
}

/* The options, and what runs with them. */
struct live_command {
	struct nt_live_config config; /* the first member: nt_opt_load() fills it */
	nt_live_run *run;
	struct nt_client *client;
};

static int run_once(void *data)
{
	const struct live_command *command = data;

	return command->run(command->client, &command->config);
}

static int run_with_client(void *data)
{
	struct live_command *command = data;
	const struct nt_client_options options = {
		.server = command->config.server,
		.token_file = command->config.token_file,
		.ca_file = command->config.ca_file,
		.cert_file = command->config.cert_file,
		.key_file = command->config.key_file,
	};
	nt_auto(nt_client) struct nt_client *client = NULL;
	struct nt_client_error error;

	if (nt_client_open(&options, &client, &error) < 0)
		return nt_live_fail(&error);
	command->client = client;
	if (!command->config.watch)
		return run_once(command);
	nt_live_set_compact(true);
	return nt_watch(run_once, command, command->config.every_ns, command->config.json);
}

int nt_live_main(const struct nt_opt_program *program, int argc, char **argv, nt_live_run *run)
{
	struct live_command command = {.run = run};

	return nt_command_main(program, argc, argv, &command, run_with_client);
}

static bool prints_compact;

void nt_live_set_compact(bool is_compact)
{
	prints_compact = is_compact;
}

int nt_live_print_json(const json_t *json)
{
	nt_autobuf struct nt_buf text = {0};

	if (nt_json_dump(json, !prints_compact, &text) < 0)
		return nt_live_no_memory();
	(void)fwrite(text.data, 1, text.len, stdout);
	return NT_EXIT_OK;
}

int nt_live_print_list(json_t *items)
{
	nt_autojson json_t *list = json_object();

	if (json_object_set(list, "items", items) || json_object_set_new(list, "next", json_null()))
		return nt_live_no_memory();
	return nt_live_print_json(list);
}

/* ---- formatting ------------------------------------------------------------------------------ */

const char *nt_live_culprit(const json_t *culprit, char text[NT_LIVE_TEXT])
{
	const char *kind = nt_json_get_text(culprit, "kind", "?");
	const char *node = nt_json_get_text(culprit, "node", "?");
	const char *name = nt_json_get_text(culprit, "name", "");

	if (!strcmp(kind, "rank"))
		(void)snprintf(text, NT_LIVE_TEXT, "rank %.0f",
			       nt_json_get_number(culprit, "rank", -1));
	else if (!strcmp(kind, "path"))
		(void)snprintf(text, NT_LIVE_TEXT, "path %s → %s", node,
			       nt_json_get_text(culprit, "peer", "?"));
	else if (!strcmp(kind, "node"))
		(void)snprintf(text, NT_LIVE_TEXT, "node %s", node);
	else
		(void)snprintf(text, NT_LIVE_TEXT, "%s %s", kind, name);
	return text;
}

const char *nt_live_text(const json_t *object, const char *name, const char *none,
			 char text[NT_LIVE_TEXT])
{
	(void)snprintf(text, NT_LIVE_TEXT, "%s", nt_json_get_text(object, name, none));
	nt_text_defuse(text);
	return text;
}

const char *nt_live_age_at(const char *time, uint64_t now_ns, char text[NT_LIVE_TEXT])
{
	uint64_t then_ns, s;

	(void)snprintf(text, NT_LIVE_TEXT, "-");
	if (!time || nt_clock_parse(time, strlen(time), &then_ns) < 0)
		return text;
	s = now_ns > then_ns ? (now_ns - then_ns) / NT_SECOND : 0;
	if (s < 120)
		(void)snprintf(text, NT_LIVE_TEXT, "%" PRIu64 "s", s);
	else if (s < 7200)
		(void)snprintf(text, NT_LIVE_TEXT, "%" PRIu64 "m", s / 60);
	else if (s < 172800)
		(void)snprintf(text, NT_LIVE_TEXT, "%" PRIu64 "h", s / 3600);
	else
		(void)snprintf(text, NT_LIVE_TEXT, "%" PRIu64 "d", s / 86400);
	return text;
}

const char *nt_live_age(const char *time, char text[NT_LIVE_TEXT])
{
	return nt_live_age_at(time, nt_clock_real_ns(), text);
}

const char *nt_live_slowdown(const json_t *object, char text[NT_LIVE_TEXT])
{
	double slowdown = nt_json_get_number(object, "slowdown", 0);

	if (slowdown > 0)
		(void)snprintf(text, NT_LIVE_TEXT, "×%.2f", slowdown);
	else
		(void)snprintf(text, NT_LIVE_TEXT, "-");
	return text;
}

const char *nt_live_duration(const json_t *object, const char *name, char text[NT_LIVE_TEXT])
{
	double s = nt_json_get_number(object, name, -1);

	if (s < 0)
		(void)snprintf(text, NT_LIVE_TEXT, "-");
	else if (s < 1)
		(void)snprintf(text, NT_LIVE_TEXT, "%.1f ms", s * 1e3);
	else
		(void)snprintf(text, NT_LIVE_TEXT, "%.2f s", s);
	return text;
}

const char *nt_live_who(const json_t *incident, char text[NT_LIVE_TEXT])
{
	const json_t *culprits = json_object_get(incident, "culprits");
	size_t count = json_array_size(culprits), len;

	if (!count) {
		(void)snprintf(text, NT_LIVE_TEXT, "-");
		return text;
	}
	(void)nt_live_culprit(json_array_get(culprits, 0), text);
	len = strlen(text);
	if (count > 1)
		(void)snprintf(text + len, NT_LIVE_TEXT - len, " +%zu", count - 1);
	return text;
}

const char *nt_live_handling(const json_t *incident, uint64_t now_ns)
{
	const json_t *handling = json_object_get(incident, "handling");
	const char *until = nt_json_get_text(json_object_get(handling, "silenced"), "until", NULL);
	uint64_t until_ns;

	if (until && nt_clock_parse(until, strlen(until), &until_ns) == 0 && until_ns > now_ns)
		return "silenced";
	return json_is_object(json_object_get(handling, "acknowledged")) ? "acknowledged" : "-";
}

const char *nt_live_leading_metrics(const json_t *anomaly, char text[NT_LIVE_TEXT])
{
	const json_t *metrics = json_object_get(anomaly, "metrics");
	size_t len = 0;

	(void)snprintf(text, NT_LIVE_TEXT, "-");
	for (size_t i = 0; i < json_array_size(metrics) && i < LEADING_METRICS; i++) {
		char name[NT_LIVE_TEXT];

		nt_ascii_copy_text(name, sizeof(name),
				   nt_json_get_text(json_array_get(metrics, i), "metric", "-"));
		len += (size_t)snprintf(text + len, NT_LIVE_TEXT - len, "%s%s", len ? ", " : "",
					name);
		if (len >= NT_LIVE_TEXT)
			break;
	}
	return text;
}

enum nt_style nt_live_job_style(const char *state)
{
	if (!strcmp(state, "running"))
		return NT_STYLE_GOOD;
	return strcmp(state, "hung") ? NT_STYLE_DIM : NT_STYLE_BAD;
}

enum nt_style nt_live_severity_style(const char *severity)
{
	if (!strcmp(severity, "critical"))
		return NT_STYLE_BAD;
	return strcmp(severity, "warning") ? NT_STYLE_PLAIN : NT_STYLE_WARNING;
}
