/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer incidents`: lists incidents, or shows all details of one. */
#include <stdio.h>
#include <string.h>

#include "cli/live/command.h"
#include "cli/live/incident_act.h"
#include "cli/live/live.h"
#include "cli/live/rank_stacks.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "proto/json.h"

static const struct nt_opt options[] = {
	NT_LIVE_OPTIONS,
	NT_LIVE_WATCH_OPTIONS,
	NT_LIVE_FILTER("job", job, "JOB", NULL, "only this job: its name, key or id"),
	NT_LIVE_FILTER("class", class, "CLASS", NT_LIVE_CLASSES,
		       "only this class: compute, network, host, …"),
	NT_LIVE_FILTER("state", state, "STATE", "firing resolved",
		       "only this state: firing, resolved"),
	NT_LIVE_FILTER("severity", severity, "SEVERITY", "info warning critical",
		       "only this severity: info, warning, critical"),
	NT_LIVE_TIME("since", since,
		     "only incidents that began at this time or later: 2026-11-21T03:00:00Z"),
	{"limit", NT_OPT_U32, offsetof(struct nt_live_config, limit), "100", 1, NT_CLIENT_MAX_ITEMS,
	 "maximum number of incidents, the newest first", "NUMBER", NULL, NT_OPT_CLI_ONLY},
	{.name = "for",
	 .kind = NT_OPT_DURATION,
	 .offset = offsetof(struct nt_live_config, for_ns),
	 .def = "2h",
	 .min = NT_SECOND,
	 .max = 30 * NT_DAY,
	 .help = "how long silence lasts",
	 .flags = NT_OPT_CLI_ONLY},
	NT_LIVE_FILTER("by", by, "NAME", NULL, "who acts; default: the name of the user"),
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_NETWORK, NT_EXIT_INPUT};

static const struct nt_opt_program program = {
	.name = "neutracer incidents",
	.section = 1,
	.summary = "show incidents, or the details of one",
	.description =
		"Without an argument, lists the incidents, the newest first. With the id of "
		"one, shows the culprit, the onset, the cost, the evidence and the stacks.\n\n"
		"acknowledge records that an incident is worked on. silence holds back its "
		"messages for a time, and a message of its end is sent only if one of its "
		"beginning was. annotate adds a note. unacknowledge and unsilence take it back. "
		"All require a token of scope admin.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.args = "[ID | " NT_INCIDENT_ACTS "]",
	.arg_words = "acknowledge unacknowledge silence unsilence annotate",
	.max_args = 3,
	.args_offset = offsetof(struct nt_live_config, args),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

static const struct nt_column columns[] = {
	{"INCIDENT", false, false},
	{"STATE", false, false},
	{"SEVERITY", false, false, true},
	{"CLASS", false, false},
	{"JOB", false, true, true},
	{"WHO", false, true},
	{"SLOWDOWN", true, false},
	{"SINCE", false, false, true},
	{"AGE", true, false},
	{.title = "HANDLING", .optional = true, .rare = true},
	{"SUMMARY", false, true},
};

static const struct nt_column evidence_columns[] = {
	{"EVIDENCE", false, true}, {"VALUE", true, false}, {"PEERS", true, false},
	{"WIDTH", true, false},    {"UNIT", false, false}, {"METHOD", false, true, true},
	{"WINDOWS", true, false},
};

static int add_row(struct nt_table *table, const json_t *incident)
{
	const char *state = nt_json_get_text(incident, "state", "-");
	const char *severity = nt_json_get_text(incident, "severity", "-");
	const char *since = nt_json_get_text(incident, "since", "-");
	bool firing = !strcmp(state, "firing");
	enum nt_style style = firing ? nt_live_severity_style(severity) : NT_STYLE_DIM;
	char text[NT_LIVE_TEXT];
	int r;

	r = nt_table_add(table, 0, "%s", nt_json_get_text(incident, "id", "-"));
	if (r == 0)
		r = nt_table_add(table, firing ? style : NT_STYLE_GOOD, "%s", state);
	if (r == 0)
		r = nt_table_add(table, style, "%s", severity);
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(incident, "class", "-"));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_json_get_text(incident, "job", "-"));
	if (r == 0)
		r = nt_table_add(table, style, "%s", nt_live_who(incident, text));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_live_slowdown(incident, text));
	if (r == 0)
		r = nt_table_add(table, NT_STYLE_DIM, "%s", since);
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_live_age(since, text));
	if (r == 0)
		r = nt_table_add(table, 0, "%s", nt_live_handling(incident, nt_clock_real_ns()));
	if (r == 0)
		r = nt_table_add(table, NT_STYLE_DIM, "%s",
				 nt_json_get_text(incident, "summary", "-"));
	return r;
}

static int print_incidents(const json_t *items)
{
	nt_auto(nt_table) struct nt_table *table = NULL;

	if (nt_table_new(columns, sizeof(columns) / sizeof(columns[0]), &table) < 0)
		return nt_live_no_memory();
	for (size_t i = 0; i < json_array_size(items); i++) {
		if (add_row(table, json_array_get(items, i)) < 0)
			return nt_live_no_memory();
	}
	nt_table_print(table, stdout);
	return NT_EXIT_OK;
}

/* ---- one ------------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 3, 4)))
line(const char *name, enum nt_style style, const char *fmt, ...)
{
	char text[NT_WIRE_MAX_TEXT + NT_LIVE_TEXT];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)printf("%s%-11s%s %s%s%s\n", nt_style_begin(NT_STYLE_DIM, stdout), name,
		     nt_style_end(stdout), nt_style_begin(style, stdout), nt_text_defuse(text),
		     nt_style_end(stdout));
}

static void print_numbers(const json_t *numbers, const char *name)
{
	nt_autobuf struct nt_buf text = {0};
	size_t count = json_array_size(numbers);

	for (size_t i = 0; i < count && i < 16; i++) {
		if (nt_buf_printf(&text, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "",
				  json_integer_value(json_array_get(numbers, i))) < 0)
			return;
	}
	if (count)
		line(name, 0, "%s%s", (const char *)text.data, count > 16 ? ", …" : "");
}

static void print_culprit(const json_t *culprit)
{
	static const char *const names[] = {"node", "pod", "container", "gpu"};
	char text[NT_LIVE_TEXT];

	line("culprit", NT_STYLE_HEAD, "%s", nt_live_culprit(culprit, text));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = nt_json_get_text(culprit, names[i], NULL);

		if (value)
			line("", 0, "%s %s", names[i], value);
	}
	print_numbers(json_object_get(culprit, "ranks"), "  ranks");
	print_numbers(json_object_get(culprit, "peers"), "  peers");
}

static void print_cost(const json_t *incident)
{
	const json_t *cost = json_object_get(incident, "cost");
	double money = nt_json_get_number(cost, "money", -1);

	if (json_is_null(json_object_get(cost, "gpu_hours")))
		line("cost", 0, "not known");
	else
		line("cost", 0, "%.3g GPU-hours", nt_json_get_number(cost, "gpu_hours", 0));
	if (money >= 0)
		line("", 0, "%.2f %s", money, nt_json_get_text(cost, "currency", ""));
}

static int print_evidence(const json_t *evidence)
{
	nt_auto(nt_table) struct nt_table *table = NULL;

	if (!json_array_size(evidence))
		return NT_EXIT_OK;
	if (nt_table_new(evidence_columns, sizeof(evidence_columns) / sizeof(evidence_columns[0]),
			 &table) < 0)
		return nt_live_no_memory();
	for (size_t i = 0; i < json_array_size(evidence); i++) {
		const json_t *one = json_array_get(evidence, i);

		if (nt_table_add(table, 0, "%s", nt_json_get_text(one, "what", "-")) < 0 ||
		    nt_table_add(table, NT_STYLE_BAD, "%.4g", nt_json_get_number(one, "value", 0)) <
			    0 ||
		    nt_table_add(table, 0, "%.4g", nt_json_get_number(one, "peers", 0)) < 0 ||
		    nt_table_add(table, 0, "%.4g", nt_json_get_number(one, "width", 0)) < 0 ||
		    nt_table_add(table, 0, "%s", nt_json_get_text(one, "unit", "-")) < 0 ||
		    nt_table_add(table, 0, "%s", nt_json_get_text(one, "method", "-")) < 0 ||
		    nt_table_add(table, 0, "%.0f", nt_json_get_number(one, "windows", 0)) < 0)
			return nt_live_no_memory();
	}
	(void)putchar('\n');
	nt_table_print(table, stdout);
	return NT_EXIT_OK;
}

static void print_act(const char *what, const json_t *act)
{
	const char *by = nt_json_get_text(act, "by", NULL);
	const char *until = nt_json_get_text(act, "until", NULL);

	if (json_is_object(act))
		line("handling", 0, "%s%s%s at %s%s%s", what, by ? " by " : "", by ? by : "",
		     nt_json_get_text(act, "at", "-"), until ? ", until " : "", until ? until : "");
}

/* What people did with it. */
static void print_handling(const json_t *incident)
{
	const json_t *handling = json_object_get(incident, "handling");
	const json_t *notes = json_object_get(incident, "notes");

	print_act("acknowledged", json_object_get(handling, "acknowledged"));
	print_act("silenced", json_object_get(handling, "silenced"));
	for (size_t i = 0; i < json_array_size(notes); i++) {
		const json_t *note = json_array_get(notes, i);
		const char *by = nt_json_get_text(note, "by", NULL);

		line(i ? "" : "notes", 0, "%s%s%s: %s", nt_json_get_text(note, "at", "-"),
		     by ? " " : "", by ? by : "", nt_json_get_text(note, "text", "-"));
	}
}

static int print_incident(const json_t *incident)
{
	const char *severity = nt_json_get_text(incident, "severity", "-");
	const char *cause = nt_json_get_text(incident, "cause", NULL);
	const char *since = nt_json_get_text(incident, "since", "-");
	const char *until = nt_json_get_text(incident, "until", NULL);
	const json_t *culprits = json_object_get(incident, "culprits");
	char text[NT_LIVE_TEXT];
	int r;

	line("incident", NT_STYLE_HEAD, "%s", nt_json_get_text(incident, "id", "-"));
	line("summary", 0, "%s", nt_json_get_text(incident, "summary", "-"));
	line("state", nt_live_severity_style(severity), "%s, %s",
	     nt_json_get_text(incident, "state", "-"), severity);
	line("class", 0, "%s%s%s", nt_json_get_text(incident, "class", "-"), cause ? ": " : "",
	     cause ? cause : "");
	line("job", 0, "%s, attempt %.0f", nt_json_get_text(incident, "job", "-"),
	     nt_json_get_number(incident, "attempt", 0));
	for (size_t i = 0; i < json_array_size(culprits); i++)
		print_culprit(json_array_get(culprits, i));
	line("slowdown", 0, "%s", nt_live_slowdown(incident, text));
	line("since", 0, "%s (%s ago)", since, nt_live_age(since, text));
	if (until)
		line("until", 0, "%s", until);
	line("seen", 0, "%s", nt_json_get_text(incident, "seen", "-"));
	line("confidence", 0, "%.3f at tier %s, %u %% of the windows received",
	     nt_json_get_number(incident, "confidence", 0), nt_json_get_text(incident, "tier", "-"),
	     nt_parse_percent(nt_json_get_number(incident, "completeness", 0)));
	if (nt_json_get_text(incident, "own_source", NULL))
		line("measured by", 0, "%s", nt_json_get_text(incident, "own_source", NULL));
	print_cost(incident);
	print_handling(incident);
	r = print_evidence(json_object_get(incident, "evidence"));
	if (r == NT_EXIT_OK)
		nt_live_print_stacks(json_object_get(incident, "stacks"));
	return r;
}

static int run_one(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *incident = NULL;
	struct nt_client_error error;

	if (nt_client_segment(&path, "/api/v1/incidents/", config->args.value[0]) < 0)
		return nt_live_no_memory();
	if (nt_client_get(client, (const char *)path.data, &incident, &error) < 0)
		return nt_live_fail(&error);
	return config->json ? nt_live_print_json(incident) : print_incident(incident);
}

static int run(struct nt_client *client, const struct nt_live_config *config)
{
	nt_autobuf struct nt_buf path = {0};
	nt_autojson json_t *items = NULL;
	struct nt_client_error error;

	if (nt_incident_is_act(config))
		return nt_incident_act(client, config);
	if (config->args.count > 1) {
		(void)fprintf(stderr, "neutracer incidents: '%.64s' is none of: %s\n",
			      config->args.value[0], NT_INCIDENT_ACTS);
		return NT_EXIT_USAGE;
	}
	if (config->args.count)
		return run_one(client, config);
	if (nt_buf_printf(&path, "/api/v1/incidents") < 0 ||
	    nt_client_parameter(&path, "job", config->job) < 0 ||
	    nt_client_parameter(&path, "class", config->class) < 0 ||
	    nt_client_parameter(&path, "state", config->state) < 0 ||
	    nt_client_parameter(&path, "severity", config->severity) < 0 ||
	    nt_client_parameter(&path, "since", config->since) < 0)
		return nt_live_no_memory();
	if (nt_client_list(client, (const char *)path.data, config->limit, &items, &error) < 0)
		return nt_live_fail(&error);
	if (config->json)
		return nt_live_print_list(items);
	if (!json_array_size(items)) {
		(void)printf("No incidents.\n");
		return NT_EXIT_OK;
	}
	return print_incidents(items);
}

int nt_command_incidents(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, run);
}
