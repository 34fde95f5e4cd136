/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer events`: what happens, as it happens: Server-Sent Events of the aggregator. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/live/command.h"
#include "cli/live/live.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	MAX_LINE = 1 << 20, /* bytes; an event has one line of data */
	MAX_ID = 64,
	RETRY_S = 2,
};

static const struct nt_opt options[] = {
	NT_LIVE_OPTIONS,
	NT_LIVE_FILTER("job", job, "JOB", NULL, "only this job: its name, key or id"),
	NT_LIVE_FILTER("after", after, "ID", NULL,
		       "begin behind the event of this id, which --json prints"),
	{"limit", NT_OPT_U32, offsetof(struct nt_live_config, limit), "0", 0, 0,
	 "exit after so many events; 0: never", "NUMBER", NULL, NT_OPT_CLI_ONLY},
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_NETWORK, NT_EXIT_SYSTEM};

static const struct nt_opt_program program = {
	.name = "neutracer events",
	.section = 1,
	.summary = "follow what happens: incidents, jobs and nodes",
	.description =
		"Prints a line for each event: an incident is opened, changes or is resolved; a job "
		"begins, changes its state or ends; a node alarms or no longer does. With --json, each "
		"line is an object with id, event and data, as in the REST interface.\n\n"
		"It goes on until it is interrupted. If the connection is lost, it connects again and "
		"continues behind the last event. The line \"reset\" means that events in between are no "
		"longer known.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

/* The stream so far. */
struct event_stream {
	const struct nt_live_config *config;
	struct nt_buf line; /* received so far */
	struct nt_buf data; /* of the event */
	char name[32], id[MAX_ID]; /* of the event; the id stays for the next connection */
	uint32_t count; /* printed */
	bool is_over, has_begun;
	int code;
};

/* ---- events ---------------------------------------------------------------------------------- */

static int print_json_event(const struct event_stream *stream, json_t *data)
{
	nt_autojson json_t *event =
		json_pack("{s:s, s:s, s:O}", "id", stream->id, "event", stream->name, "data", data);

	return event ? nt_live_print_json(event) : nt_live_no_memory();
}

/* "2026-11-21T03:00:12Z  incident  opened, critical, compute, llm-70b: rank 5 …" */
static void print_event_line(const struct event_stream *stream, const json_t *data)
{
	static const char *const words[] = {"change", "severity", "class", "job",
					    "name",   "node",     "state", "job_name"};
	static const char *const numbers[] = {"rank", "level"}; /* of levels */
	const char *summary = nt_json_get_text(data, "summary", NULL);
	char text[2 * NT_LIVE_TEXT] = "", time[NT_CLOCK_TEXT];
	size_t len = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && len < sizeof(text); i++) {
		const char *word = nt_json_get_text(data, words[i], NULL);

		if (word)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
						len ? ", " : "", word);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && len < sizeof(text); i++) {
		const json_t *number = json_object_get(data, numbers[i]);

		if (json_is_integer(number))
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						", %s %" JSON_INTEGER_FORMAT, numbers[i],
						json_integer_value(number));
	}
	(void)printf("%s  %-8s  %s", nt_clock_format(nt_clock_real_ns(), 0, time), stream->name,
		     nt_text_defuse(text));
	if (summary) {
		(void)snprintf(text, sizeof(text), "%s", summary);
		(void)printf(": %s", nt_text_defuse(text));
	}
	(void)putchar('\n');
}

/* Prints the event that ends here. Pings have nothing to print. */
static void end_event(struct event_stream *stream)
{
	nt_autojson json_t *data = NULL;
	int r = 0;

	stream->has_begun = true;
	if (stream->data.len && strcmp(stream->name, "ping") != 0) {
		r = nt_json_load(stream->data.data, stream->data.len, &data);
		nt_text_defuse(stream->name);
		if (r == 0 && stream->config->json)
			stream->code = print_json_event(stream, data);
		else if (r == 0)
			print_event_line(stream, data);
		if (fflush(stdout) || ferror(stdout))
			stream->code = NT_EXIT_SYSTEM;
		stream->count += r == 0;
	}
	stream->is_over = stream->code != NT_EXIT_OK ||
			  (stream->config->limit && stream->count >= stream->config->limit);
	nt_buf_clear(&stream->data);
	stream->name[0] = '\0';
}

/* A line "field: value"; others are ignored, as the format requires. */
static int take_line(struct event_stream *stream, const char *line)
{
	const char *value = strchr(line, ':');
	const size_t len = value ? (size_t)(value - line) : 0;

	if (!*line) {
		end_event(stream);
		return 0;
	}
	if (!value)
		return 0;
	value += value[1] == ' ' ? 2 : 1;
	if (len == 2 && !memcmp(line, "id", 2))
		(void)snprintf(stream->id, sizeof(stream->id), "%s", value);
	else if (len == 5 && !memcmp(line, "event", 5))
		(void)snprintf(stream->name, sizeof(stream->name), "%s", value);
	else if (len == 4 && !memcmp(line, "data", 4))
		return nt_buf_printf(&stream->data, "%s%s", stream->data.len ? "\n" : "", value);
	return 0;
}

static int take_bytes(void *data, const char *bytes, size_t len)
{
	struct event_stream *stream = data;

	while (len && !stream->is_over) {
		const char *end = memchr(bytes, '\n', len);
		const size_t part = end ? (size_t)(end - bytes) : len;

		if (nt_buf_append(&stream->line, bytes, part) < 0)
			return -ENOBUFS;
		bytes += part;
		len -= part;
		if (!end)
			break;
		bytes++;
		len--;
		if (stream->line.len && stream->line.data[stream->line.len - 1] == '\r')
			stream->line.len--;
		if (nt_buf_append(&stream->line, "", 1) < 0 ||
		    take_line(stream, (const char *)stream->line.data) < 0)
			return -ENOBUFS;
		nt_buf_clear(&stream->line);
	}
	return stream->is_over;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int follow_once(struct nt_client *client, struct event_stream *stream,
		       struct nt_client_error *error)
{
	const char *after = *stream->id ? stream->id : stream->config->after;
	nt_autobuf struct nt_buf path = {0};

	nt_buf_clear(&stream->line);
	nt_buf_clear(&stream->data);
	if (nt_buf_printf(&path, "/api/v1/events") < 0 ||
	    nt_client_parameter(&path, "job", stream->config->job) < 0 ||
	    nt_client_parameter(&path, "after", after) < 0) {
		stream->is_over = true;
		stream->code = nt_live_no_memory();
		return 0;
	}
	return nt_client_stream(client, (const char *)path.data, take_bytes, stream, error);
}

static int follow_events(struct nt_client *client, const struct nt_live_config *config)
{
	struct event_stream stream = {
		.config = config, .line = {.max = MAX_LINE}, .data = {.max = MAX_LINE}};
	const struct timespec pause = {.tv_sec = RETRY_S};
	bool is_lost = false;

	nt_live_set_compact(true);
	while (!stream.is_over) {
		struct nt_client_error error;
		const uint32_t before = stream.count;

		if (follow_once(client, &stream, &error) < 0) {
			if (!stream.has_begun) {
				stream.code = nt_live_fail(&error);
				break;
			}
			if (!is_lost)
				(void)nt_live_fail(&error);
			is_lost = true;
		}
		if (stream.count != before)
			is_lost = false;
		if (!stream.is_over)
			(void)nanosleep(&pause, NULL);
	}
	nt_buf_release(&stream.line);
	nt_buf_release(&stream.data);
	return stream.code;
}

int nt_command_events(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, follow_events);
}
