/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * `neutracer analyze`: the verdict on files. The path determines the format. A directory of the
 * spool bus is a recording, *.json are Kineto traces, *.csv is a straggler table, or sysTrace's
 * markers if named so. Dumps of the flight recorder are distinguished from Kineto traces by their
 * content.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/live/command.h"
#include "cli/readers/flight.h"
#include "cli/readers/input.h"
#include "cli/readers/markers.h"
#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "cli/report/html.h"
#include "cli/report/report.h"
#include "cli/report/systrace.h"
#include "cli/report/systrace_metric.h"
#include "common/options/exit.h"
#include "common/options/opt.h"

enum format {
	FORMAT_AUTO,
	FORMAT_RECORDING,
	FORMAT_KINETO,
	FORMAT_STRAGGLER,
	FORMAT_SYSTRACE,
	FORMAT_FLIGHT,
};

enum output {
	OUTPUT_TEXT,
	OUTPUT_JSON,
	OUTPUT_SYSTRACE,
	OUTPUT_SYSTRACE_STEPS,
};

struct config {
	bool json;
	enum format format;
	enum output output;
	struct nt_opt_args paths;
	bool windows;
	char *html; /* NULL: no page */
	char *rules; /* NULL: our own */
};

static const struct nt_opt options[] = {
	{"json", NT_OPT_BOOL, offsetof(struct config, json), "false", 0, 0,
	 "print one JSON document instead of a report: --format json", NULL, NULL, NT_OPT_CLI_ONLY},
	{"format", NT_OPT_CHOICE, offsetof(struct config, output), "text", 0, 0,
	 "what to print: a report, or a document (systrace: its results of ranks and of steps)",
	 "FORMAT", "text json systrace systrace-steps", NT_OPT_CLI_ONLY},
	{"windows", NT_OPT_BOOL, offsetof(struct config, windows), "false", 0, 0,
	 "list the ranks that deviate from their peers, per window", NULL, NULL, NT_OPT_CLI_ONLY},
	{"html", NT_OPT_STRING, offsetof(struct config, html), NULL, 0, 0,
	 "also write the report as one page for a browser", "FILE", NULL, NT_OPT_CLI_ONLY},
	{"rules", NT_OPT_STRING, offsetof(struct config, rules), NULL, 0, 0,
	 "judge sysTrace's files by its own detectors with the parameters of its metric_config.json",
	 "FILE", NULL, NT_OPT_CLI_ONLY},
	{"from", NT_OPT_CHOICE, offsetof(struct config, format), "auto", 0, 0,
	 "format of the files; auto detects it from their names", "FORMAT",
	 "auto recording kineto straggler systrace flight-recorder", NT_OPT_CLI_ONLY},
};

static const enum nt_exit exits[] = {NT_EXIT_INPUT};

static const struct nt_opt_program program = {
	.name = "neutracer analyze",
	.section = 1,
	.summary = "find the culprit in recorded files",
	.description =
		"Evaluates a finished run by the same rules as the live service. PATH is a "
		"directory of the spool bus (a recording), a table of operation times (*.csv, "
		"*.csv.gz), the PyTorch "
		"profiler traces of all ranks: *.json, *.json.gz, or a directory that holds them, or "
		"the communication markers of all ranks that sysTrace wrote: "
		"hccl_activity-IP-.RANK.csv, or their directory. For a job that hangs, PATH can "
		"name the dumps of PyTorch's flight recorder (pickle or JSON), one file per rank "
		"with the rank in its name. The report then names the ranks that did not enter a "
		"collective or entered another one, or the collective in which all wait.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.args = "PATH…",
	.min_args = 1,
	.max_args = 65536,
	.args_offset = offsetof(struct config, paths),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

enum {
	MAX_FILES = 65536,
};

/* The paths in a directory, or the given paths themselves. */
struct paths {
	char **path;
	size_t count;
};

static void release_paths(struct paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->path[i]);
	free(paths->path);
}

static int add_path(struct paths *paths, const char *dir, const char *name)
{
	char **list = reallocarray(paths->path, paths->count + 1, sizeof(*list));
	char *path = NULL;

	if (!list)
		return -ENOMEM;
	paths->path = list;
	if (paths->count == MAX_FILES)
		return -E2BIG;
	if (asprintf(&path, "%s%s%s", dir ? dir : "", dir ? "/" : "", name) < 0)
		return -ENOMEM;
	list[paths->count++] = path;
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static bool is_kineto(const char *name)
{
	return ends_with(name, ".json") || ends_with(name, ".json.gz");
}

/* PyTorch's names end in the rank; others have a pickle's suffix; either may be gzipped. */
static bool is_dump(const char *name)
{
	const size_t len = strlen(name) - (ends_with(name, ".gz") ? strlen(".gz") : 0);

	if (len && strchr("0123456789", name[len - 1]))
		return true;
	return ends_with(name, ".pkl") || ends_with(name, ".pkl.gz") ||
	       ends_with(name, ".pickle") || ends_with(name, ".pickle.gz");
}

static bool is_straggler(const char *name)
{
	return ends_with(name, ".csv") || ends_with(name, ".csv.gz");
}

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lists the files of one format in a directory, sorted by name. */
static int list_files(const char *path, enum format format, struct paths *paths)
{
	__attribute__((cleanup(close_dir))) DIR *dir = opendir(path);
	const struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (format == FORMAT_SYSTRACE ? !nt_markers_is_file(entry->d_name)
		    : format == FORMAT_FLIGHT ? !is_dump(entry->d_name)
					      : !is_kineto(entry->d_name))
			continue;
		r = add_path(paths, path, entry->d_name);
		if (r < 0)
			return r;
	}
	if (paths->count)
		qsort(paths->path, paths->count, sizeof(*paths->path), by_text);
	return 0;
}

/* Dumps with a suffix, or with PyTorch's names. */
static int list_dumps(const char *path, struct paths *paths)
{
	const int r = list_files(path, FORMAT_KINETO, paths);

	return r < 0 || paths->count ? r : list_files(path, FORMAT_FLIGHT, paths);
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum format guess(const struct paths *given)
{
	const char *first = given->path[0];

	if (is_directory(first)) {
		__attribute__((cleanup(release_paths))) struct paths inside = {0};

		if (list_files(first, FORMAT_SYSTRACE, &inside) == 0 && inside.count)
			return FORMAT_SYSTRACE;
		if (list_files(first, FORMAT_KINETO, &inside) == 0 && inside.count)
			return nt_input_is_flight(inside.path[0]) ? FORMAT_FLIGHT : FORMAT_KINETO;
		if (list_files(first, FORMAT_FLIGHT, &inside) == 0 && inside.count &&
		    nt_input_is_flight(inside.path[0]))
			return FORMAT_FLIGHT;
		return FORMAT_RECORDING;
	}
	if (nt_input_is_flight(first))
		return FORMAT_FLIGHT;
	if (is_kineto(first))
		return FORMAT_KINETO;
	if (nt_markers_is_file(first))
		return FORMAT_SYSTRACE;
	return is_straggler(first) ? FORMAT_STRAGGLER : FORMAT_AUTO;
}

static int fail(const char *what)
{
	(void)fprintf(stderr, "neutracer: analyze: %s\n", what);
	return NT_EXIT_INPUT;
}

static int fail_page(const char *path, int error)
{
	(void)fprintf(stderr, "neutracer: analyze: write '%s': %s\n", path,
		      strerrordesc_np(-error));
	return NT_EXIT_SYSTEM;
}

static int format_report(const struct config *config, const struct nt_report *report,
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
static int print(const struct config *config, const struct nt_report *report,
		 const struct nt_trace *trace)
{
	nt_autobuf struct nt_buf buf = {0}, notes = {0};
	int r;

	r = format_report(config, report, trace, &buf);
	/* On stderr, for users who pipe the document to another program. */
	if (r == 0 && config->output != OUTPUT_TEXT)
		r = nt_report_notes(report, "neutracer: analyze: ", &notes);
	if (r < 0)
		return fail(strerrordesc_np(-r));
	r = config->html ? nt_html_save(report, config->html) : 0;
	if (r < 0)
		return fail_page(config->html, r);
	if (fwrite(buf.data, 1, buf.len, stdout) != buf.len || fflush(stdout) != 0)
		return fail("cannot write the report");
	if (notes.len)
		(void)fwrite(notes.data, 1, notes.len, stderr);
	return NT_EXIT_OK;
}

static void name_job(struct nt_trace *trace, const char *path)
{
	const char *base = strrchr(path, '/');

	base = base && base[1] ? base + 1 : path;
	(void)snprintf(trace->job, sizeof(trace->job), "%.*s", (int)strcspn(base, "."), base);
}

static int analyze_trace(const struct config *config, enum format format, const char *source,
			 const struct paths *paths)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_rules rules = nt_rules_default();
	struct nt_trace_error error = {0};
	struct nt_report report = {.source = source};
	int r;

	if (format == FORMAT_STRAGGLER) {
		if (paths->count != 1)
			return fail("a straggler table is one file");
		r = nt_trace_read_straggler(paths->path[0], &trace, &error);
	} else if (format == FORMAT_SYSTRACE) {
		r = nt_trace_read_systrace((const char *const *)paths->path, paths->count, &trace,
					   &error);
	} else if (format == FORMAT_FLIGHT) {
		r = nt_trace_read_flight((const char *const *)paths->path, paths->count, &trace,
					 &error);
	} else {
		r = nt_trace_read_kineto((const char *const *)paths->path, paths->count, &trace,
					 &error);
	}
	if (r < 0)
		return fail(*error.text ? error.text : strerrordesc_np(-r));
	name_job(trace, source);

	r = nt_judgement_new(&judgement);
	if (r == 0 && (config->windows || config->html))
		r = nt_judgement_watch(judgement, &rules);
	r = r ?: nt_replay_trace(trace, &rules, judgement);
	if (r < 0)
		return fail(strerrordesc_np(-r));
	nt_report_trace(&report, trace, judgement);
	report.relative = format == FORMAT_STRAGGLER;
	report.lists_windows = config->windows;
	return print(config, &report, trace);
}

/* The verdict of sysTrace's own detectors. */
static int run_systrace(const struct config *config, const struct paths *paths)
{
	nt_auto(nt_systrace_rules) struct nt_systrace_rules *rules = NULL;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_trace_error error = {0};
	int r;

	r = nt_systrace_rules_load(config->rules, &rules, &error);
	r = r
		    ?: nt_systrace_run(rules, (const char *const *)paths->path, paths->count, &buf,
				       &error);
	if (r < 0)
		return fail(*error.text ? error.text : strerrordesc_np(-r));
	if (fwrite(buf.data, 1, buf.len, stdout) != buf.len || fflush(stdout) != 0)
		return fail("cannot write the report");
	return NT_EXIT_OK;
}

static int analyze_recording(const struct config *config, const char *dir)
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
		(void)snprintf(text, sizeof(text), "%s: %s", dir,
			       r == -ENOENT ? "no recording: it has no messages of the spool bus"
					    : strerrordesc_np(-r));
		return fail(text);
	}
	nt_report_recording(&report, &recording, judgement);
	report.lists_windows = config->windows;
	return print(config, &report, NULL);
}

static int analyze(const struct config *config)
{
	__attribute__((cleanup(release_paths))) struct paths given = {0}, files = {0};
	enum format format = config->format;
	const struct paths *use = &given;
	char text[512];
	int r = 0;

	for (size_t i = 0; i < config->paths.count && r == 0; i++)
		r = add_path(&given, NULL, config->paths.value[i]);
	if (r < 0)
		return fail(strerrordesc_np(-r));
	assert(given.count); /* the option table requires one */
	if (access(given.path[0], R_OK) < 0) {
		(void)snprintf(text, sizeof(text), "%s: %s", given.path[0], strerrordesc_np(errno));
		return fail(text);
	}
	if (format == FORMAT_AUTO)
		format = guess(&given);
	if (format == FORMAT_AUTO) {
		(void)snprintf(
			text, sizeof(text),
			"%s: neither *.csv nor *.json nor a directory; specify --from recording, "
			"kineto, straggler, systrace or flight-recorder",
			given.path[0]);
		return fail(text);
	}
	if ((format == FORMAT_KINETO || format == FORMAT_SYSTRACE || format == FORMAT_FLIGHT) &&
	    given.count == 1 && is_directory(given.path[0])) {
		r = format == FORMAT_FLIGHT ? list_dumps(given.path[0], &files)
					    : list_files(given.path[0], format, &files);
		if (r < 0 || !files.count) {
			(void)snprintf(text, sizeof(text), "%s: no %s in it", given.path[0],
				       format == FORMAT_KINETO   ? "*.json or *.json.gz"
				       : format == FORMAT_FLIGHT ? "*.json, *.pkl or *RANK (or .gz)"
								 : "hccl_activity-*.csv");
			return fail(text);
		}
		use = &files;
	}
	if (config->rules)
		return format == FORMAT_SYSTRACE
			       ? run_systrace(config, use)
			       : fail("--rules requires files of sysTrace: hccl_activity-*.csv");
	if (format == FORMAT_RECORDING) {
		if (given.count != 1 || !is_directory(given.path[0]))
			return fail("a recording is one directory");
		return analyze_recording(config, given.path[0]);
	}
	return analyze_trace(config, format, given.path[0], use);
}

int nt_command_analyze(int argc, char **argv)
{
	struct nt_opt_error error = {0};
	struct config config = {0};
	int r;

	r = nt_opt_load(&program, argc, argv, &config, &error);
	if (r == 0 && config.json && config.output > OUTPUT_JSON) {
		error.exit = NT_EXIT_USAGE;
		(void)snprintf(error.text, sizeof(error.text),
			       "--json is the same as --format json: give only one of them");
		r = -EINVAL;
	}
	if (r == 0 && config.rules &&
	    (config.output != OUTPUT_SYSTRACE || config.windows || config.html)) {
		error.exit = NT_EXIT_USAGE;
		(void)snprintf(error.text, sizeof(error.text),
			       "--rules requires --format systrace and excludes --windows and "
			       "--html");
		r = -EINVAL;
	}
	if (config.json)
		config.output = OUTPUT_JSON;
	if (r < 0)
		(void)fprintf(stderr, "neutracer: analyze: %s\n", error.text);
	r = r < 0 ? (int)error.exit : r > 0 ? NT_EXIT_OK : analyze(&config);
	nt_opt_free(&program, &config);
	return r;
}
