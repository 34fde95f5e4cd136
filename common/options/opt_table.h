/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Option tables: one table describes every setting of a program. Each row yields the command-line
 * option, the environment variable and the config-file key. It also yields the --help line, the
 * man-page entry and the shell completion, so they cannot disagree.
 */
#ifndef NT_COMMON_OPTIONS_OPT_TABLE_H
#define NT_COMMON_OPTIONS_OPT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/options/exit.h"

enum nt_opt_kind {
	NT_OPT_BOOL, /* bool; --name, --no-name, --name=false */
	NT_OPT_U32, /* uint32_t */
	NT_OPT_U64, /* uint64_t */
	NT_OPT_SIZE, /* uint64_t bytes; written 64K, 16M, 1G */
	NT_OPT_DURATION, /* uint64_t nanoseconds; written 250ms, 5s, 1m */
	NT_OPT_DOUBLE, /* double */
	NT_OPT_STRING, /* char *, owned by the config; NULL if unset */
	NT_OPT_CHOICE, /* uint32_t or an enum: index of the word in `choices` */
};

enum nt_opt_flag {
	NT_OPT_SECRET = 1 << 0, /* the value never appears in a message */
	NT_OPT_CLI_ONLY = 1 << 1, /* no environment variable and no key in the file */
};

/* The required form of a STRING. */
struct nt_opt_form {
	bool (*fits)(const char *value);
	const char *text; /* for messages and the manual: "ADDRESS:PORT" */
};

struct nt_opt {
	const char *name; /* "batch-linger": --batch-linger, NT_BATCH_LINGER, key batch-linger */
	enum nt_opt_kind kind;
	size_t offset; /* in the program's struct config */
	const char *def; /* in the user's notation; NULL: zero, false, no string */
	/*
	 * Allowed range in the unit held, whole numbers for DOUBLE; max 0: the range of the kind.
	 */
	unsigned long long min, max;
	const char *help; /* lower case, no full stop */
	/* the value's name in --help; NULL: by kind. Shells complete FILE and DIR */
	const char *arg;
	const char *choices; /* CHOICE: words separated by blanks */
	unsigned int flags;
	const struct nt_opt_form *form; /* STRING; NULL: any text */
	/* STRING: the accepted ones, separated by blanks, and the empty text; NULL: any text */
	const char *words;
};

/*
 * A command ("neutracer jobs"). A program of commands has an array of these; each command is a
 * program of its own with its own table, named by both words.
 */
struct nt_opt_command {
	const char *name; /* or of a positional argument */
	const char *help;
};

/* Positional arguments, in order: borrowed from argv, the array is owned by the config. */
struct nt_opt_args {
	size_t count;
	const char **value;
};

struct nt_opt_program {
	const char *name; /* "neutracer-agent" */
	unsigned int section; /* of the manual: 1 or 8 */
	const char *summary; /* one line, lower case: "watch the training jobs of this node" */
	const char *description; /* for the manual: paragraphs separated by an empty line */
	const struct nt_opt *opts;
	size_t opt_count;
	/* usage text of positional arguments, "[FILE]..."; NULL: none are accepted */
	const char *args;
	const char
		*arg_words; /* of a command's first one, for shells, separated by blanks; or NULL */
	const struct nt_opt_command
		*arg_help; /* what they mean, for --help; NULL: the usage says it */
	size_t arg_help_count;
	size_t min_args, max_args;
	size_t args_offset; /* of a struct nt_opt_args in config; used where args is set */
	const struct nt_opt_command *commands; /* then all of the above but the texts is unused */
	size_t command_count;
	const char *config_path; /* read if it exists and --config is not given; NULL: none */
	const enum nt_exit *exits; /* that the program uses, besides ok and usage */
	size_t exit_count;
	const char *finding; /* meaning of NT_EXIT_FINDING; NULL: a culprit is named */
};

struct nt_opt_error {
	enum nt_exit exit; /* exit code */
	char text[512]; /* one line */
};

/* The key of the config file closest to the mistyped `name`, or NULL. */
const char *nt_opt_nearest_key(const struct nt_opt *opts, size_t count, const char *name);

#endif
