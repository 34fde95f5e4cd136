/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Renders an option table as text: for users, the manual, shells and the check scripts. */
#ifndef NT_COMMON_OPTIONS_OPT_PRINT_H
#define NT_COMMON_OPTIONS_OPT_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/options/opt_table.h"

enum {
	NT_OPT_ALLOWED_TEXT = 256,
	NT_OPT_ENV_TEXT = 72,
	NT_OPT_BUILTINS = 3,
};

/* The options that every program has: --config, --help, --version. */
extern const struct nt_opt nt_opt_builtins[NT_OPT_BUILTINS];

/* The name of an option's value in the help, or NULL if it takes none. */
const char *nt_opt_arg(const struct nt_opt *opt);
/* The positional arguments, for a usage line; may be empty. */
const char *nt_opt_usage(const struct nt_opt_program *program);
bool nt_opt_uses_exit(const struct nt_opt_program *program, enum nt_exit code);
const char *nt_opt_exit_text(const struct nt_opt_program *program, enum nt_exit code);
/* The help of an option with its choices and default. */
void nt_opt_format_help(const struct nt_opt *opt, char *text, size_t size);

/* "a duration from 10ms to 1m, such as 250ms or 5s": what nt_opt_set() accepts. Returns text. */
const char *nt_opt_format_allowed(const struct nt_opt *opt, char text[NT_OPT_ALLOWED_TEXT]);

/* "batch-linger" → "NT_BATCH_LINGER". Returns text. */
const char *nt_opt_format_env(const char *name, char text[NT_OPT_ENV_TEXT]);

void nt_opt_print_version(const struct nt_opt_program *program, FILE *out);
void nt_opt_print_help(const struct nt_opt_program *program, FILE *out);
void nt_opt_print_man(const struct nt_opt_program *program, FILE *out);
/* A config file: each setting with its help, and its default as a comment. */
void nt_opt_print_config(const struct nt_opt_program *program, FILE *out);
/* shell: "bash", "zsh" or "fish". */
void nt_opt_print_completion(const struct nt_opt_program *program, const char *shell, FILE *out);
void nt_opt_print_completion_fish(const struct nt_opt_program *program, FILE *out);
/*
 * One row a line, separated by tabs: name, environment variable, file key, value, default, help;
 * "-" for a missing field.
 */
void nt_opt_print_options(const struct nt_opt_program *program, FILE *out);

#endif
