/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * `neutracer analyze`: the verdict on files. cli/input/ finds the files below the given paths and
 * their format, a reader makes frames of them, and the detection judges these.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/anomaly/node_page.h"
#include "cli/anomaly/node_report.h"
#include "cli/anomaly/node_series.h"
#include "cli/flight/flight.h"
#include "cli/input/sources.h"
#include "cli/kineto/nsys.h"
#include "cli/live/command.h"
#include "cli/readers/timelines.h"
#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "cli/report/html.h"
#include "cli/report/report.h"
#include "cli/report/systrace.h"
#include "cli/report/systrace_metric.h"
#include "common/options/exit.h"
#include "common/options/opt.h"
#include "common/system/clock.h"
#include "detect/thresholds/thresholds.h"

enum output {
	OUTPUT_TEXT,
	OUTPUT_JSON,
	OUTPUT_SYSTRACE,
	OUTPUT_SYSTRACE_STEPS,
};

struct analyze_config {
	bool json;
	enum nt_format format;
	enum output output;
	struct nt_opt_args paths;
	bool windows;
	char *html; /* NULL: no page */
	char *rules; /* NULL: our own */
	/* Of tables of metrics. */
	enum nt_anomaly_method method;
	bool peers;
	double false_alarms;
	uint64_t row_interval_ns;
	char *scores; /* NULL: no table of scores */
};

#define FALSE_ALARMS "0.2" /* by default */

static const struct nt_opt options[] = {
	{"json", NT_OPT_BOOL, offsetof(struct analyze_config, json), "false", 0, 0,
	 "print one JSON document instead of a report: --format json", NULL, NULL, NT_OPT_CLI_ONLY},
	{"format", NT_OPT_CHOICE, offsetof(struct analyze_config, output), "text", 0, 0,
	 "what to print: a report, or a document (systrace: its results of ranks and of steps)",
	 "FORMAT", "text json systrace systrace-steps", NT_OPT_CLI_ONLY},
	{"windows", NT_OPT_BOOL, offsetof(struct analyze_config, windows), "false", 0, 0,
	 "list the ranks that deviate from their peers, per window", NULL, NULL, NT_OPT_CLI_ONLY},
	{"html", NT_OPT_STRING, offsetof(struct analyze_config, html), NULL, 0, 0,
	 "also write the report as one page for a browser", "FILE", NULL, NT_OPT_CLI_ONLY},
	{"rules", NT_OPT_STRING, offsetof(struct analyze_config, rules), NULL, 0, 0,
	 "judge sysTrace's files by its own detectors with the parameters of its metric_config.json",
	 "FILE", NULL, NT_OPT_CLI_ONLY},
	{"from", NT_OPT_CHOICE, offsetof(struct analyze_config, format), "auto", 0, 0,
	 "format of the files; auto takes that of most files", "FORMAT",
	 "auto recording kineto straggler systrace flight-recorder nsys timeline metrics-csv",
	 NT_OPT_CLI_ONLY},
	{"anomaly-method", NT_OPT_CHOICE, offsetof(struct analyze_config, method), "chart", 0, 0,
	 "of metrics-csv: what scores a row; both reconstructs what the chart suspects", "METHOD",
	 "chart compressed-sensing both", NT_OPT_CLI_ONLY},
	{"peers", NT_OPT_BOOL, offsetof(struct analyze_config, peers), "false", 0, 0,
	 "of metrics-csv: the tables are nodes of one job, compared row by row", NULL, NULL,
	 NT_OPT_CLI_ONLY},
	{"false-alarms", NT_OPT_DOUBLE, offsetof(struct analyze_config, false_alarms), FALSE_ALARMS,
	 0, 1000, "of metrics-csv: accepted false alarms per node and day", NULL, NULL,
	 NT_OPT_CLI_ONLY},
	{"row-interval", NT_OPT_DURATION, offsetof(struct analyze_config, row_interval_ns), "1m",
	 NT_SECOND, 1440 * NT_MINUTE, "of metrics-csv: time between rows if the table has no times",
	 NULL, NULL, NT_OPT_CLI_ONLY},
	{"scores", NT_OPT_STRING, offsetof(struct analyze_config, scores), NULL, 0, 0,
	 "of metrics-csv: also write the score of each row as CSV", "FILE", NULL, NT_OPT_CLI_ONLY},
};

static const enum nt_exit exits[] = {NT_EXIT_INPUT};

static const struct nt_opt_program program = {
	.name = "neutracer analyze",
	.section = 1,
	.summary = "find the culprit in recorded files",
	.description =
		"Evaluates a finished run by the same rules as the live service. PATH is a file, a "
		"directory, or an archive (.zip, .tar, .tar.gz); the files of all PATHs and of the "
		"directories in them are one run. Known are: a directory of the spool bus (a "
		"recording), a table of operation times (*.csv), the PyTorch profiler traces of all "
		"ranks (*.json), exports of Nsight Systems (*.sqlite), timelines of MegatronApp, veScale "
		"or StragglerAnalysis (*.json), and the communication "
		"markers of all ranks that sysTrace wrote (hccl_activity-IP-.RANK.csv). Text may be "
		"gzipped. For a job that "
		"hangs, PATH can name the dumps of PyTorch's flight recorder (pickle or JSON), one "
		"file per rank with the rank in its name. The report then names the ranks that did "
		"not enter a collective or entered another one, or the collective in which all wait. "
		"Files of another format than most, and files that cannot be read, are left out and "
		"named in notes; if none can be read the exit status is 8.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.args = "PATH…",
	.min_args = 1,
	.max_args = 65536,
	.args_offset = offsetof(struct analyze_config, paths),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

static int fail(const char *what)
{
	(void)fprintf(stderr, "neutracer: analyze: %s\n", what);
	return NT_EXIT_INPUT;
}

static int print_buffer(const struct nt_buf *buf)
{
	if (fwrite(buf->data, 1, buf->len, stdout) != buf->len || fflush(stdout) != 0)
		return fail("cannot write the report");
	return NT_EXIT_OK;
}

/* An exit code: whether the file was written; the report itself has been printed. */
static int conclude_file(const char *path, int r)
{
	if (r == 0)
		return NT_EXIT_OK;
	(void)fprintf(stderr, "neutracer: analyze: write '%s': %s\n", path, strerrordesc_np(-r));
	return NT_EXIT_SYSTEM;
}

static int format_report(const struct analyze_config *config, const struct nt_report *report,
			 const struct nt_trace *trace, struct nt_buf *buf)
{
	switch (config->output) {
	case OUTPUT_JSON:
		return nt_report_json(report, buf);
	case OUTPUT_SYSTRACE:
		return nt_systrace_result(report, trace, buf);
	case OUTPUT_SYSTRACE_STEPS:
		return nt_systrace_steps(report, trace, buf);
	default:
		return nt_report_text(report, buf);
	}
}

/* `trace` is NULL for a recording. */
static int print(const struct analyze_config *config, const struct nt_report *report,
		 const struct nt_trace *trace)
{
	nt_autobuf struct nt_buf buf = {0}, notes = {0};
	int r, saved;

	r = format_report(config, report, trace, &buf);
	/* On stderr, for users who pipe the document to another program. */
	if (r == 0 && config->output != OUTPUT_TEXT)
		r = nt_report_notes(report, "neutracer: analyze: ", &notes);
	if (r < 0)
		return fail(strerrordesc_np(-r));
	/* Before the report, whose reader may end, and after it what is to be said of the file. */
	saved = config->html ? nt_html_save(report, config->html) : 0;
	r = print_buffer(&buf);
	if (r != NT_EXIT_OK)
		return r;
	if (notes.len)
		(void)fwrite(notes.data, 1, notes.len, stderr);
	return config->html ? conclude_file(config->html, saved) : NT_EXIT_OK;
}

static void name_job(struct nt_trace *trace, const char *path)
{
	const char *base = strrchr(path, '/');

	base = base && base[1] ? base + 1 : path;
	(void)snprintf(trace->job, sizeof(trace->job), "%.*s", (int)strcspn(base, "."), base);
}

/* With the names of the files as the user knows them. */
static int fail_input(const struct nt_sources *sources, int r, const struct nt_trace_error *error)
{
	char text[NT_TRACE_ERROR_BYTES];

	nt_sources_relabel(sources, error->text, text, sizeof(text));
	return fail(*text ? text : strerrordesc_np(-r));
}

static int read_trace(const struct nt_sources_choice *choice, struct nt_trace **ret_trace,
		      struct nt_trace_error *error)
{
	switch (choice->format) {
	case NT_FORMAT_STRAGGLER:
		if (choice->paths != 1)
			return nt_trace_refuse(
				error, "expected one table of operation times: name a single file");
		return nt_trace_read_straggler(choice->path[0], ret_trace, error);
	case NT_FORMAT_SYSTRACE:
		return nt_trace_read_systrace(choice->path, choice->paths, ret_trace, error);
	case NT_FORMAT_FLIGHT:
		return nt_trace_read_flight(choice->path, choice->paths, ret_trace, error);
	case NT_FORMAT_NSYS:
		return nt_trace_read_nsys(choice->path, choice->paths, ret_trace, error);
	case NT_FORMAT_TIMELINE:
		return nt_trace_read_timelines(choice->path, choice->paths, ret_trace, error);
	default:
		return nt_trace_read_kineto(choice->path, choice->paths, ret_trace, error);
	}
}

static int note_limits(struct nt_sources *sources, const struct nt_trace *trace)
{
	int r = trace->remark ? nt_sources_note(sources, "%s", trace->remark) : 0;

	for (size_t i = 0; i < trace->unread && i < NT_TRACE_MAX_UNREAD && r == 0; i++)
		r = nt_sources_note(sources, "%s: left out", trace->unread_text[i]);
	if (r == 0 && trace->unread > NT_TRACE_MAX_UNREAD)
		r = nt_sources_note(sources, "%zu further files could not be read: left out",
				    trace->unread - NT_TRACE_MAX_UNREAD);
	if (r == 0 && trace->partial)
		r = nt_sources_note(sources, "files of ranks are missing: the verdict is on "
					     "incomplete data");
	return r;
}

static int analyze_trace(const struct analyze_config *config, struct nt_sources *sources,
			 const struct nt_sources_choice *choice)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_rules rules = nt_rules_default();
	struct nt_trace_error error = {0};
	struct nt_report report = {.source = config->paths.value[0]};
	int r;

	r = read_trace(choice, &trace, &error);
	if (r < 0)
		return fail_input(sources, r, &error);
	name_job(trace, report.source);
	r = note_limits(sources, trace);
	r = r ?: nt_judgement_new(&judgement);
	if (r == 0 && (config->windows || config->html))
		r = nt_judgement_watch(judgement, &rules);
	r = r ?: nt_replay_trace(trace, &rules, judgement);
	if (r < 0)
		return fail(strerrordesc_np(-r));
	nt_report_trace(&report, trace, judgement);
	report.input_note = nt_sources_notes(sources, &report.input_notes);
	report.relative =
		choice->format == NT_FORMAT_STRAGGLER || choice->format == NT_FORMAT_TIMELINE;
	report.lists_windows = config->windows;
	return print(config, &report, trace);
}

/* The verdict of sysTrace's own detectors. */
static int run_systrace(const struct analyze_config *config, const struct nt_sources *sources,
			const struct nt_sources_choice *choice)
{
	nt_auto(nt_systrace_rules) struct nt_systrace_rules *rules = NULL;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_trace_error error = {0};
	int r;

	r = nt_systrace_rules_load(config->rules, &rules, &error);
	r = r ?: nt_systrace_run(rules, choice->path, choice->paths, &buf, &error);
	if (r < 0)
		return fail_input(sources, r, &error);
	return print_buffer(&buf);
}

static int analyze_recording(const struct analyze_config *config, const struct nt_sources *sources,
			     const char *dir)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct nt_rules rules = nt_rules_default();
	struct nt_report report = {.source = dir};
	struct nt_recording recording = {0};
	struct nt_trace_error error = {0};
	char text[512];
	int r;

	r = nt_judgement_new(&judgement);
	if (r == 0 && (config->windows || config->html))
		r = nt_judgement_watch(judgement, &rules);
	r = r ?: nt_replay_recording(dir, &rules, judgement, &recording, &error);
	if (r < 0 && *error.text)
		return fail(error.text);
	if (r < 0) {
		(void)snprintf(
			text, sizeof(text), "%s: %s", dir,
			r == -ENOENT
				? "not a recording: the directory has no messages of the spool bus"
				: strerrordesc_np(-r));
		return fail(text);
	}
	nt_report_recording(&report, &recording, judgement);
	report.input_note = nt_sources_notes(sources, &report.input_notes);
	report.lists_windows = config->windows;
	return print(config, &report, NULL);
}

static int save_node_page(const struct analyze_config *config, const struct nt_sources *sources,
			  const struct nt_fleet_series *fleet)
{
	struct nt_node_page page = {.fleet = fleet, .source = config->paths.value[0]};

	page.note = nt_sources_notes(sources, &page.notes);
	return nt_node_page_save(&page, config->html);
}

/* Tables of nodes' metrics: scores in place of verdicts. */
static int analyze_metrics(const struct analyze_config *config, const struct nt_sources *sources,
			   const struct nt_sources_choice *choice)
{
	nt_auto(nt_fleet_series) struct nt_fleet_series *fleet = NULL;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_trace_error error = {0};
	const struct nt_node_series_options wanted = {
		.method = config->method,
		.peers = config->peers,
		.false_alarms = config->false_alarms,
		.row_interval_s = (double)config->row_interval_ns / NT_SECOND,
		.learn_rows = NT_ANOMALY_LEARN_ROWS,
	};
	int r, code, page, scores;

	if (config->windows || config->output > OUTPUT_JSON)
		return fail("tables of metrics are printed as text or JSON alone");
	r = nt_fleet_series_run(&wanted, choice->path, choice->paths, &fleet, &error);
	if (r < 0)
		return fail_input(sources, r, &error);
	r = config->output == OUTPUT_JSON ? nt_node_report_json(fleet, &buf)
					  : nt_node_report_text(fleet, &buf);
	if (r < 0)
		return fail(strerrordesc_np(-r));
	page = config->html ? save_node_page(config, sources, fleet) : 0;
	scores = config->scores ? nt_node_report_save_scores(fleet, config->scores) : 0;
	code = print_buffer(&buf);
	if (code != NT_EXIT_OK)
		return code;
	if (config->html)
		code = conclude_file(config->html, page);
	if (config->scores && conclude_file(config->scores, scores) != NT_EXIT_OK)
		code = NT_EXIT_SYSTEM;
	return code;
}

static int analyze(const struct analyze_config *config)
{
	nt_auto(nt_sources) struct nt_sources *sources = NULL;
	struct nt_sources_choice choice = {0};
	struct nt_trace_error error = {0};
	char text[NT_TRACE_ERROR_BYTES + 128];
	int r;

	r = nt_sources_new(&sources);
	if (r < 0)
		return fail(strerrordesc_np(-r));
	for (size_t i = 0; i < config->paths.count && r == 0; i++)
		r = nt_sources_add(sources, config->paths.value[i], &error);
	if (r < 0)
		return fail_input(sources, r, &error);
	r = nt_sources_choose(sources, config->format, &choice, &error);
	if (r < 0) {
		(void)snprintf(text, sizeof(text), "%.100s: %s", config->paths.value[0],
			       *error.text ? error.text : strerrordesc_np(-r));
		return fail(text);
	}
	if (config->rules)
		return choice.format == NT_FORMAT_SYSTRACE
			       ? run_systrace(config, sources, &choice)
			       : fail("--rules requires files of sysTrace: hccl_activity-*.csv");
	if (choice.format == NT_FORMAT_METRICS)
		return analyze_metrics(config, sources, &choice);
	if (choice.format != NT_FORMAT_RECORDING)
		return analyze_trace(config, sources, &choice);
	return choice.paths == 1 ? analyze_recording(config, sources, choice.path[0])
				 : fail("expected one recording: name a single directory");
}

/* The first option given that is of tables of metrics alone; NULL: none is. */
static const char *find_metrics_option(const struct analyze_config *config)
{
	return config->scores                                       ? "--scores"
	       : config->peers                                      ? "--peers"
	       : config->method                                     ? "--anomaly-method"
	       : config->false_alarms != strtod(FALSE_ALARMS, NULL) ? "--false-alarms"
	       : config->row_interval_ns != NT_MINUTE               ? "--row-interval"
								    : NULL;
}

/* Options that exclude each other. */
static int check_config(const struct analyze_config *config, struct nt_opt_error *error)
{
	const char *option = find_metrics_option(config);

	error->exit = NT_EXIT_USAGE;
	if (config->json && config->output > OUTPUT_JSON)
		(void)snprintf(error->text, sizeof(error->text),
			       "--json is the same as --format json: give only one of them");
	else if (config->rules &&
		 (config->output != OUTPUT_SYSTRACE || config->windows || config->html))
		(void)snprintf(error->text, sizeof(error->text),
			       "--rules requires --format systrace and excludes --windows and "
			       "--html");
	/* The columns of these tables are free: a table is never taken for one by itself. */
	else if (option && config->format != NT_FORMAT_METRICS)
		(void)snprintf(error->text, sizeof(error->text),
			       "%s requires tables of a node's metrics: --from metrics-csv",
			       option);
	else
		return 0;
	return -EINVAL;
}

int nt_command_analyze(int argc, char **argv)
{
	struct nt_opt_error error = {0};
	struct analyze_config config = {0};
	int r;

	r = nt_opt_load(&program, argc, argv, &config, &error);
	if (r == 0)
		r = check_config(&config, &error);
	if (config.json)
		config.output = OUTPUT_JSON;
	if (r < 0)
		(void)fprintf(stderr, "neutracer: analyze: %s\n", error.text);
	r = r < 0 ? (int)error.exit : r > 0 ? NT_EXIT_OK : analyze(&config);
	nt_opt_free(&program, &config);
	return r;
}
