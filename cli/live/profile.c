/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `neutracer profile`: requests a profile of a rank, waits for it, and writes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/live/command.h"
#include "cli/live/live.h"
#include "cli/profile/flame.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	POLL_MS = 500,
	ID_TEXT = 16,
};

static const struct nt_opt options[] = {
	NT_LIVE_OPTIONS,
	{.name = "seconds",
	 .kind = NT_OPT_U32,
	 .offset = offsetof(struct nt_live_config, seconds),
	 .def = "10",
	 .min = 1,
	 .max = 60,
	 .help = "how long to sample, at most 60",
	 .flags = NT_OPT_CLI_ONLY},
	{.name = "hz",
	 .kind = NT_OPT_U32,
	 .offset = offsetof(struct nt_live_config, hz),
	 .def = "49",
	 .min = 1,
	 .max = 99,
	 .help = "samples a second; the agent takes fewer if they cost too much",
	 .flags = NT_OPT_CLI_ONLY},
	{.name = "kind",
	 .kind = NT_OPT_CHOICE,
	 .offset = offsetof(struct nt_live_config, kind),
	 .def = "all",
	 .choices = "all on-cpu off-cpu",
	 .arg = "KIND",
	 .help = "which threads: on-cpu ones run or are ready to, off-cpu ones wait",
	 .flags = NT_OPT_CLI_ONLY},
	{.name = "format",
	 .kind = NT_OPT_CHOICE,
	 .offset = offsetof(struct nt_live_config, format),
	 .def = "folded",
	 .choices = "folded pprof html",
	 .arg = "FORMAT",
	 .help = "collapsed stacks, the format of pprof, or a flame graph as a page",
	 .flags = NT_OPT_CLI_ONLY},
	{.name = "last",
	 .kind = NT_OPT_BOOL,
	 .offset = offsetof(struct nt_live_config, last),
	 .def = "false",
	 .help = "write the last complete profile of the rank, such as those of level 2, and request none",
	 .flags = NT_OPT_CLI_ONLY},
	{.name = "output",
	 .kind = NT_OPT_STRING,
	 .offset = offsetof(struct nt_live_config, output),
	 .arg = "FILE",
	 .help = "write it there (default: to standard output)",
	 .flags = NT_OPT_CLI_ONLY},
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_INPUT, NT_EXIT_NETWORK,
				     NT_EXIT_SYSTEM};

static const struct nt_opt_command arguments[] = {
	{"JOB/RANK", "a job by its name, key or id, and the number of one of its ranks"},
};

static const struct nt_opt_program program = {
	.name = "neutracer profile",
	.section = 1,
	.summary = "sample the stacks of a rank, and write a flame graph",
	.description =
		"Requests samples of the stacks of a rank from the agent of its node, and writes them "
		"as soon as they have arrived. The process is not stopped. Sampled are its main "
		"thread, the thread that holds the GIL, and those that communicate. A thread that "
		"runs has Python's frames only.\n\n"
		"With --json the document of the REST interface is written.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.args = "JOB/RANK",
	.arg_help = arguments,
	.arg_help_count = sizeof(arguments) / sizeof(arguments[0]),
	.min_args = 1,
	.max_args = 1,
	.args_offset = offsetof(struct nt_live_config, args),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

/* By the words of the options. */
static const char *const kinds[] = {"all", "on-cpu", "off-cpu"};
static int (*const writers[])(const struct nt_flame *flame, struct nt_buf *buf) = {
	nt_flame_folded, nt_flame_pprof, nt_flame_html};

static int refuse(const char *text, const char *what)
{
	(void)fprintf(stderr, "neutracer profile: '%s' is not %s\n", text, what);
	return NT_EXIT_USAGE;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void pause_ms(long ms)
{
	const struct timespec rest = {.tv_nsec = ms * (long)NT_MILLISECOND};

	(void)nanosleep(&rest, NULL);
}

/* A line on a terminal, overwritten by the next one. */
static void show_progress(const char *state, uint64_t begun_ns)
{
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "\r%s: %.0f s ", state,
			      (double)(nt_clock_mono_ns() - begun_ns) / 1e9);
}

/* Polls until the profile is complete or has expired: its document, or the error's exit code. */
static int wait_for_profile(struct nt_client *client, const char *id, json_t **ret_profile)
{
	const uint64_t begun_ns = nt_clock_mono_ns();
	nt_autobuf struct nt_buf path = {0};

	if (nt_client_segment(&path, "/api/v1/profiles/", id) < 0 ||
	    nt_buf_append(&path, "", 1) < 0)
		return nt_live_no_memory();
	for (;;) {
		nt_autojson json_t *profile = NULL;
		struct nt_client_error error;
		const char *state;

		if (nt_client_get(client, (const char *)path.data, &profile, &error) < 0)
			return nt_live_fail(&error);
		state = nt_json_get_text(profile, "state", "?");
		show_progress(state, begun_ns);
		if (strcmp(state, "waiting") != 0 && strcmp(state, "running") != 0) {
			if (isatty(STDERR_FILENO))
				(void)fprintf(stderr, "\n");
			*ret_profile = nt_take(profile);
			return NT_EXIT_OK;
		}
		pause_ms(POLL_MS);
	}
}

/* ---- the result ------------------------------------------------------------------------------ */

static int write_all(int fd, const struct nt_buf *buf)
{
	for (size_t done = 0; done < buf->len;) {
		const ssize_t n = write(fd, buf->data + done, buf->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

static int save(const char *path, const struct nt_buf *buf)
{
	nt_autoclose int fd = -1;
	int r;

	if (!path || !*path) {
		r = write_all(STDOUT_FILENO, buf);
	} else {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		r = fd < 0 ? -errno : write_all(fd, buf);
		if (r == 0 && close(nt_take_fd(&fd)) < 0)
			r = -errno;
	}
	if (r == 0)
		return NT_EXIT_OK;
	(void)fprintf(stderr, "neutracer profile: write '%s': %s\n", path && *path ? path : "-",
		      strerrordesc_np(-r));
	return NT_EXIT_SYSTEM;
}

static int write_form(const struct nt_live_config *config, const json_t *profile,
		      const struct nt_flame *flame, struct nt_buf *buf)
{
	nt_autobuf struct nt_buf text = {0};
	const int r = nt_flame_describe(flame, &text);

	if (r < 0)
		return r;
	(void)fprintf(stderr, "%s\n", (const char *)text.data);
	if (!flame->taken)
		return -ENODATA;
	if (config->json)
		return nt_json_dump(profile, true, buf);
	return writers[config->format](flame, buf);
}

static int write_profile(const struct nt_live_config *config, const json_t *profile,
			 const char *job)
{
	nt_autobuf struct nt_buf buf = {.max = NT_FLAME_MAX_BYTES};
	nt_autoflame struct nt_flame flame = {0};
	int r;

	if (strcmp(nt_json_get_text(profile, "state", ""), "complete") != 0) {
		(void)fprintf(stderr, "neutracer profile: no agent has sent the profile in time: "
				      "its --requests may be off, or the rank has ended\n");
		return NT_EXIT_NETWORK;
	}
	r = nt_flame_read(profile, job, &flame);
	if (r == 0)
		r = write_form(config, profile, &flame, &buf);
	if (r == -ENODATA)
		return NT_EXIT_INPUT;
	if (r == -ENOMEM)
		return nt_live_no_memory();
	if (r < 0) {
		(void)fprintf(stderr, "neutracer profile: the reply is no profile\n");
		return NT_EXIT_NETWORK;
	}
	return save(config->output, &buf);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int take_profile(struct nt_client *client, const struct nt_live_config *config,
			const char *job, uint32_t rank)
{
	nt_autojson json_t *body = NULL, *begun = NULL, *profile = NULL;
	struct nt_client_error error;
	char id[ID_TEXT + 1];
	int r;

	body = json_pack("{s:s, s:I, s:I, s:I, s:s}", "job", job, "rank", (json_int_t)rank,
			 "seconds", (json_int_t)config->seconds, "hz", (json_int_t)config->hz,
			 "kind", kinds[config->kind]);
	if (!body)
		return refuse(job, "a valid name");
	if (nt_client_post(client, "/api/v1/profiles", body, &begun, &error) < 0)
		return nt_live_fail(&error);
	(void)snprintf(id, sizeof(id), "%s", nt_json_get_text(begun, "id", ""));
	r = wait_for_profile(client, id, &profile);
	return r == NT_EXIT_OK ? write_profile(config, profile, job) : r;
}

/* The latest of the list that is complete. NULL: there is none. */
static const char *last_id(const json_t *list, uint32_t rank)
{
	const json_t *items = json_object_get(list, "items");

	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i);
		const json_t *number = json_object_get(item, "rank");

		if (json_is_integer(number) && json_integer_value(number) == (json_int_t)rank &&
		    strcmp(nt_json_get_text(item, "state", ""), "complete") == 0)
			return nt_json_get_text(item, "id", "");
	}
	return NULL;
}

static int write_last(struct nt_client *client, const struct nt_live_config *config,
		      const char *job, uint32_t rank)
{
	nt_autojson json_t *list = NULL, *profile = NULL;
	nt_autobuf struct nt_buf path = {0};
	struct nt_client_error error;
	const char *id;
	int r;

	if (nt_client_segment(&path, "/api/v1/profiles?job=", job) < 0 ||
	    nt_buf_append(&path, "", 1) < 0)
		return nt_live_no_memory();
	if (nt_client_get(client, (const char *)path.data, &list, &error) < 0)
		return nt_live_fail(&error);
	id = last_id(list, rank);
	if (!id) {
		(void)fprintf(
			stderr,
			"neutracer profile: no profile of rank %u of '%s' is complete: request "
			"one without --last, or set level 2 with 'neutracer level %s/%u 2'\n",
			rank, job, job, rank);
		return NT_EXIT_INPUT;
	}
	r = wait_for_profile(client, id, &profile);
	return r == NT_EXIT_OK ? write_profile(config, profile, job) : r;
}

static int run_profile(struct nt_client *client, const struct nt_live_config *config)
{
	const char *target = config->args.value[0];
	const char *slash = strrchr(target, '/');
	nt_autofree char *job = NULL;
	uint32_t rank;

	if (!slash || slash == target ||
	    nt_parse_u32(slash + 1, strlen(slash + 1), 0, UINT32_MAX, &rank) < 0)
		return refuse(target, "JOB/RANK, such as llm/3");
	job = strndup(target, (size_t)(slash - target));
	if (!job)
		return nt_live_no_memory();
	return config->last ? write_last(client, config, job, rank)
			    : take_profile(client, config, job, rank);
}

int nt_command_profile(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, run_profile);
}
