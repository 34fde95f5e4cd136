/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/live/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/live/table.h"
#include "cli/term/screen.h"
#include "common/options/exit.h"
#include "common/system/clock.h"

enum {
	HEAD_ROWS = 1, /* of the time or the error */
};

/* What one run printed. */
struct printed {
	char *out, *error; /* owned */
	size_t out_len, error_len;
	int code;
};

static void release_printed(struct printed *printed)
{
	free(printed->out);
	free(printed->error);
	*printed = (struct printed){0};
}

/* The commands print on stdout and stderr, which are streams in memory meanwhile. */
static int run_captured(int (*run)(void *data), void *data, struct printed *ret_printed)
{
	FILE *out = stdout, *error = stderr;
	struct printed printed = {0};
	FILE *out_copy = open_memstream(&printed.out, &printed.out_len);
	FILE *error_copy = open_memstream(&printed.error, &printed.error_len);
	bool failed = !out_copy || !error_copy;

	if (!failed) {
		stdout = out_copy;
		stderr = error_copy;
		printed.code = run(data);
		stdout = out;
		stderr = error;
	}
	failed |= out_copy && fclose(out_copy);
	failed |= error_copy && fclose(error_copy);
	if (failed) {
		release_printed(&printed);
		(void)fprintf(stderr, "neutracer: out of memory\n");
		return NT_EXIT_SYSTEM;
	}
	*ret_printed = printed;
	return NT_EXIT_OK;
}

/* A line no wider than the terminal; sequences of colours take no column. */
static void print_line(const char *line, size_t len, size_t columns)
{
	for (size_t i = 0; i < len;) {
		const char *end = line[i] == '\033' ? memchr(line + i, 'm', len - i) : NULL;
		size_t bytes, used, stop;
		char text[256];

		if (end) {
			(void)fwrite(line + i, 1, (size_t)(end + 1 - line) - i, stdout);
			i = (size_t)(end + 1 - line);
			continue;
		}
		stop = strcspn(line + i, "\033\n");
		stop = stop < sizeof(text) - 1 ? stop : sizeof(text) - 1;
		/* A character is not cut by the end of the piece. */
		while (stop > 1 && i + stop < len && ((unsigned char)line[i + stop] & 0xc0) == 0x80)
			stop--;
		memcpy(text, line + i, stop);
		text[stop] = '\0';
		bytes = nt_text_fit(text, columns, &used);
		(void)fwrite(text, 1, bytes, stdout);
		columns -= used;
		i += stop ? stop : 1;
		if (bytes < stop)
			columns = 0;
	}
	(void)printf("%s", nt_style_end(stdout));
}

/* As many lines as fit; the last one states how many more there are. */
static void print_lines(const char *text, size_t columns, size_t rows)
{
	size_t count = 0, lines = 0;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	while (*text && count < rows) {
		const size_t len = strcspn(text, "\n");

		(void)putchar('\n');
		if (count + 1 == rows && lines > rows) {
			(void)printf("%zu more lines", lines - count);
			return;
		}
		print_line(text, len, columns);
		text += len + (text[len] == '\n');
		count++;
	}
}

static void print_in_place(const struct printed *last, const struct printed *failure,
			   uint64_t last_ns, uint64_t every_ns)
{
	char head[256], time[NT_CLOCK_TEXT];
	size_t columns, rows;

	nt_screen_size(STDOUT_FILENO, &columns, &rows);
	if (failure)
		(void)snprintf(head, sizeof(head), "STALE since %s: %.*s",
			       nt_clock_format(last_ns, 0, time),
			       (int)strcspn(failure->error, "\n"), failure->error);
	else
		(void)snprintf(head, sizeof(head), "%s, every %.3g s",
			       nt_clock_format(last_ns, 0, time), (double)every_ns / 1e9);
	nt_text_defuse(head);
	(void)printf("\033[H\033[2J%s",
		     nt_style_begin(failure ? NT_STYLE_BAD : NT_STYLE_DIM, stdout));
	print_line(head, strlen(head), columns);
	if (rows > HEAD_ROWS)
		print_lines(last->out ? last->out : "", columns, rows - HEAD_ROWS);
}

static void sleep_ns(uint64_t ns)
{
	const struct timespec rest = {(time_t)(ns / NT_SECOND), (long)(ns % NT_SECOND)};

	(void)nanosleep(&rest, NULL);
}

static bool has_failed(const struct printed *printed)
{
	return printed->code != NT_EXIT_OK && printed->code != NT_EXIT_FINDING;
}

/* What is on the terminal, or was printed last. */
struct watch {
	struct printed last;
	uint64_t last_ns; /* 0: never */
	bool in_place, is_json;
	uint64_t every_ns;
};

/* Shows what a run printed. Returns an exit code: not OK if this was the first one and failed. */
static int show(struct watch *watch, struct printed *next)
{
	const bool is_first = !watch->last_ns;

	if (has_failed(next)) {
		if (is_first || !watch->in_place)
			(void)fwrite(next->error, 1, next->error_len, stderr);
		else
			print_in_place(&watch->last, next, watch->last_ns, watch->every_ns);
		return is_first ? next->code : NT_EXIT_OK;
	}
	release_printed(&watch->last);
	watch->last = *next;
	*next = (struct printed){0};
	watch->last_ns = nt_clock_real_ns();
	if (watch->in_place)
		print_in_place(&watch->last, NULL, watch->last_ns, watch->every_ns);
	else
		(void)printf("%s%s", is_first || watch->is_json ? "" : "\n", watch->last.out);
	return NT_EXIT_OK;
}

int nt_watch(int (*run)(void *data), void *data, uint64_t every_ns, bool is_json)
{
	struct watch watch = {
		.in_place = isatty(STDOUT_FILENO) && !is_json,
		.is_json = is_json,
		.every_ns = every_ns,
	};
	int code = NT_EXIT_OK;

	nt_table_set_terminal(watch.in_place ? STDOUT_FILENO : -1);
	while (code == NT_EXIT_OK) {
		struct printed next = {0};

		code = run_captured(run, data, &next);
		if (code == NT_EXIT_OK)
			code = show(&watch, &next);
		release_printed(&next);
		if (fflush(stdout) || ferror(stdout))
			code = NT_EXIT_SYSTEM;
		if (code == NT_EXIT_OK)
			sleep_ns(every_ns);
	}
	release_printed(&watch.last);
	return code;
}
