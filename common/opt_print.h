/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An option table as text: for people, for the manual, for shells and for the check scripts. */
#ifndef NT_COMMON_OPT_PRINT_H
#define NT_COMMON_OPT_PRINT_H

#include <stdio.h>

#include "common/opt.h"

enum {
	NT_OPT_ALLOWED_TEXT = 256,
	NT_OPT_ENV_TEXT = 72,
};

/* "a duration from 10ms to 1m, such as 250ms or 5s": what nt_opt_set() takes. Returns text. */
const char *nt_opt_format_allowed(const struct nt_opt *opt, char text[NT_OPT_ALLOWED_TEXT]);

/* "batch-linger" → "NT_BATCH_LINGER". Returns text. */
const char *nt_opt_format_env(const char *name, char text[NT_OPT_ENV_TEXT]);

void nt_opt_print_version(const struct nt_opt_program *program, FILE *out);
void nt_opt_print_help(const struct nt_opt_program *program, FILE *out);
void nt_opt_print_man(const struct nt_opt_program *program, FILE *out);
/* shell: "bash" or "zsh". */
void nt_opt_print_completion(const struct nt_opt_program *program, const char *shell, FILE *out);
/* One row a line, tabs between: name, environment variable, file key, value, default, help. */
void nt_opt_print_options(const struct nt_opt_program *program, FILE *out);

#endif
