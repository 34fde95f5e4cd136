/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * `neutracer top`: incidents, jobs, ranks and nodes in a terminal, refreshed. One thread: it polls
 * the keys, the signals and the request on its way, so that none blocks another.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/live/command.h"
#include "cli/live/live.h"
#include "cli/term/screen.h"
#include "cli/top/top_fetch.h"
#include "cli/top/top_view.h"
#include "common/system/clock.h"

enum {
	TICK_MS = 1000, /* between frames without any event: the clock and the age of stale data */
	DOCUMENT_ROWS = 60, /* of --once without a terminal and LINES */
};

static const struct nt_opt options[] = {
	NT_LIVE_SERVER_OPTIONS,
	{.name = "every",
	 .kind = NT_OPT_DURATION,
	 .offset = offsetof(struct nt_live_config, every_ns),
	 .def = "2s",
	 .min = NT_SECOND / 2,
	 .max = NT_HOUR,
	 .help = "how often it is refreshed",
	 .flags = NT_OPT_CLI_ONLY},
	{.name = "once",
	 .kind = NT_OPT_BOOL,
	 .offset = offsetof(struct nt_live_config, once),
	 .def = "false",
	 .help = "print one frame and exit, as without a terminal",
	 .flags = NT_OPT_CLI_ONLY},
	NT_LIVE_FILTER("job", job, "ID", NULL, "the job whose ranks are shown: its id"),
};

static const enum nt_exit exits[] = {NT_EXIT_CONFIG, NT_EXIT_NETWORK, NT_EXIT_SYSTEM};

static const struct nt_opt_program program = {
	.name = "neutracer top",
	.section = 1,
	.summary = "show incidents, jobs, ranks and nodes in a terminal, live",
	.description =
		"Shows the firing incidents, the jobs with their step times and slowdowns, the ranks of "
		"one job with bars of own work and waiting, the most unlike its peers first, and the "
		"nodes by score. The ranks are those of the first job with an incident, or of the job "
		"that was opened last.\n\n"
		"Keys: arrows, page up, page down, home, end, j, k, g and G select; tab goes to the next "
		"list; enter shows the details, of a job also its ranks; escape goes back; 1, 2 and 3 "
		"are the views of all lists, the ranks and the nodes; / filters; p pauses; ? lists the "
		"keys; q quits.\n\n"
		"If the aggregator does not respond, the last data stays, marked STALE with its time. Of "
		"a job with more than 4000 ranks, the first 4000 are shown, and those on the nodes of its "
		"culprits. With NO_COLOR there are no colours, and in a locale without UTF-8 all is "
		"ASCII. COLUMNS and LINES set the size where there is no terminal.",
	.opts = options,
	.opt_count = sizeof(options) / sizeof(options[0]),
	.exits = exits,
	.exit_count = sizeof(exits) / sizeof(exits[0]),
};

struct top {
	struct nt_client *client; /* borrowed */
	struct nt_top_fetch *fetch;
	struct nt_top_data data;
	struct nt_top_view view;
	struct nt_keys keys;
	struct nt_screen_frame *shown;
	struct nt_client_error error;
	bool is_fetching, has_failed; /* the last fetch */
	uint64_t next_ns, byte_ns; /* monotonic: the next fetch; when the last byte of a key came */
	int key_fd, signal_fd;
	bool is_colourful;
	int exit; /* -1: goes on */
};

static void release_top(struct top *top)
{
	nt_top_fetch_free(top->fetch);
	nt_top_data_release(&top->data);
	nt_screen_frame_free(top->shown);
}

/* ---- data ------------------------------------------------------------------------------------ */

static int begin_fetch(struct top *top)
{
	top->next_ns = nt_clock_mono_ns() + top->view.every_ns;
	top->is_fetching = true;
	return nt_top_fetch_begin(top->fetch, top->view.job, nt_clock_real_ns(), &top->error);
}

/* 0: nothing to report; the error of a fetch that failed is in top->error. */
static int turn_fetch(struct top *top)
{
	struct nt_top_data data;
	int r;

	if (!top->is_fetching) {
		if (top->view.is_paused || nt_clock_mono_ns() < top->next_ns)
			return 0;
		r = begin_fetch(top);
	} else {
		r = nt_top_fetch_turn(top->fetch, &data, &top->error);
		if (r == -EINPROGRESS)
			return 0;
		if (r == 0) {
			nt_top_data_release(&top->data);
			top->data = data;
			top->is_fetching = top->has_failed = false;
			return nt_top_view_refresh(&top->view);
		}
	}
	if (r < 0) {
		top->is_fetching = false;
		top->has_failed = true;
		top->next_ns = nt_clock_mono_ns() + top->view.every_ns;
	}
	return r;
}

/* ---- the screen ------------------------------------------------------------------------------ */

static int draw(struct top *top, size_t columns, size_t rows, struct nt_screen_frame **ret_frame)
{
	nt_auto(nt_screen_frame) struct nt_screen_frame *frame = NULL;
	int r = nt_screen_frame_new(columns, rows, &frame);

	top->view.now_ns = nt_clock_real_ns();
	top->view.error = top->has_failed ? top->error.text : NULL;
	r = r ? r : nt_top_draw(&top->view, frame);
	if (r == 0)
		*ret_frame = nt_take(frame);
	return r;
}

static int paint(struct top *top)
{
	nt_auto(nt_screen_frame) struct nt_screen_frame *frame = NULL;
	nt_autofree char *text = NULL;
	size_t columns, rows, len = 0;
	FILE *out;
	int r;

	nt_screen_size(STDOUT_FILENO, &columns, &rows);
	r = draw(top, columns, rows, &frame);
	if (r < 0)
		return r;
	out = open_memstream(&text, &len);
	if (!out)
		return -ENOMEM;
	r = nt_screen_frame_paint(frame, top->shown, top->is_colourful, !top->view.is_ascii, out);
	if (fclose(out) || r < 0)
		return -ENOMEM;
	nt_screen_frame_free(top->shown);
	top->shown = nt_take(frame);
	return nt_screen_write(text, len);
}

static void repaint_all(struct top *top)
{
	nt_screen_frame_free(top->shown);
	top->shown = NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int take_key(struct top *top, const struct nt_key *key)
{
	enum nt_top_action action;
	int r = nt_top_view_key(&top->view, key, &action);

	if (r < 0)
		return r;
	if (action == NT_TOP_QUIT)
		top->exit = NT_EXIT_OK;
	else if (action == NT_TOP_FETCH)
		r = begin_fetch(top);
	else if (action == NT_TOP_REPAINT)
		repaint_all(top);
	return r;
}

static bool is_key_pending(const struct top *top)
{
	return top->keys.len > 0;
}

static int read_keys(struct top *top)
{
	struct pollfd in = {.fd = top->key_fd, .events = POLLIN};
	char byte[NT_KEYS_MAX_BYTES];
	struct nt_key key;
	bool is_over;
	int r = 0;

	if (poll(&in, 1, 0) > 0) {
		ssize_t n = read(top->key_fd, byte, NT_KEYS_MAX_BYTES - top->keys.len);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			top->exit = NT_EXIT_SYSTEM; /* the terminal is gone */
			return 0;
		}
		if (n > 0)
			nt_keys_add(&top->keys, byte, (size_t)n);
		top->byte_ns = nt_clock_mono_ns();
	}
	is_over = nt_clock_mono_ns() - top->byte_ns >= NT_KEYS_WAIT_MS * NT_MILLISECOND;
	while (r == 0 && top->exit < 0 && nt_keys_next(&top->keys, is_over, &key))
		r = take_key(top, &key);
	return r;
}

static void take_signal(struct top *top, int signal)
{
	switch (signal) {
	case SIGWINCH:
		break;
	case SIGTSTP:
		nt_screen_suspend();
		break;
	case SIGCONT:
		nt_screen_resume();
		repaint_all(top);
		break;
	default:
		nt_screen_die(signal);
	}
}

static int timeout_of(const struct top *top)
{
	const uint64_t now_ns = nt_clock_mono_ns();
	int timeout_ms = is_key_pending(top) ? NT_KEYS_WAIT_MS : TICK_MS;
	uint64_t rest_ms;

	if (top->is_fetching || top->view.is_paused)
		return timeout_ms;
	rest_ms = top->next_ns > now_ns ? (top->next_ns - now_ns) / NT_MILLISECOND + 1 : 0;
	return rest_ms < (uint64_t)timeout_ms ? (int)rest_ms : timeout_ms;
}

/* Without any data there is nothing to show but the error. */
static bool is_fatal(const struct top *top, int r)
{
	return r == -ENOMEM || (r < 0 && !top->data.real_ns);
}

/* Returns an exit code; the error is printed by the caller, once the terminal is restored. */
static int run_loop(struct top *top)
{
	const int fds[] = {top->key_fd, top->signal_fd};
	int signal, r;

	for (;;) {
		r = turn_fetch(top);
		if (r == -ENOMEM)
			return NT_EXIT_SYSTEM;
		if (is_fatal(top, r))
			return (int)top->error.exit;
		r = paint(top);
		if (r < 0)
			return NT_EXIT_SYSTEM;
		nt_client_poll(top->client, fds, 2, timeout_of(top));
		while ((signal = nt_screen_signal(top->signal_fd)) != 0)
			take_signal(top, signal);
		r = read_keys(top);
		if (r == -ENOMEM)
			return NT_EXIT_SYSTEM;
		if (top->exit >= 0)
			return top->exit;
	}
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run_once(struct top *top)
{
	nt_auto(nt_screen_frame) struct nt_screen_frame *frame = NULL;
	const bool is_terminal = isatty(STDOUT_FILENO);
	size_t columns, rows;
	int r = begin_fetch(top);

	while (r == 0 && top->is_fetching) {
		nt_client_poll(top->client, NULL, 0, TICK_MS);
		r = turn_fetch(top);
	}
	if (r < 0)
		return nt_live_fail(&top->error);
	top->view.is_document = true;
	nt_screen_size(STDOUT_FILENO, &columns, &rows);
	if (!is_terminal && !getenv("LINES"))
		rows = DOCUMENT_ROWS;
	if (draw(top, columns, rows, &frame) < 0 ||
	    nt_screen_frame_print(frame, top->is_colourful, !top->view.is_ascii, stdout) < 0)
		return nt_live_no_memory();
	return NT_EXIT_OK;
}

static int run_on_screen(struct top *top)
{
	int code;

	top->key_fd = isatty(STDIN_FILENO) ? STDIN_FILENO : open("/dev/tty", O_RDWR | O_CLOEXEC);
	top->signal_fd = top->key_fd < 0 ? -ENOTTY : nt_screen_open(top->key_fd, STDOUT_FILENO);
	if (top->signal_fd < 0) {
		(void)fprintf(stderr, "neutracer top: there is no terminal for keys; --once prints "
				      "one frame without\n");
		return NT_EXIT_SYSTEM;
	}
	code = run_loop(top);
	nt_screen_close();
	if (code != NT_EXIT_OK && code == (int)top->error.exit)
		(void)nt_live_fail(&top->error);
	else if (code == NT_EXIT_SYSTEM)
		(void)nt_live_no_memory();
	/* The resolver of names cannot be cancelled; the user does not wait for it. */
	if (top->is_fetching)
		_exit(code);
	return code;
}

static int run(struct nt_client *client, const struct nt_live_config *config)
{
	struct top top = {
		.client = client,
		.view = {.server = config->server, .every_ns = config->every_ns},
		.exit = -1,
	};
	int code;

	top.view.data = &top.data;
	top.view.is_ascii = !nt_text_locale_is_utf8();
	top.is_colourful = nt_text_takes_colours(STDOUT_FILENO);
	if (config->job)
		(void)snprintf(top.view.job, sizeof(top.view.job), "%s", config->job);
	if (nt_top_fetch_new(client, &top.fetch) < 0)
		return nt_live_no_memory();
	code = config->once || !isatty(STDOUT_FILENO) ? run_once(&top) : run_on_screen(&top);
	release_top(&top);
	return code;
}

int nt_command_top(int argc, char **argv)
{
	return nt_live_main(&program, argc, argv, run);
}
