/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads the settings that a table describes (common/options/opt_table.h). Later sources win:
 * default, file, environment, command line.
 */
#ifndef NT_COMMON_OPTIONS_OPT_H
#define NT_COMMON_OPTIONS_OPT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/cleanup.h"
#include "common/options/opt_table.h"

/*
 * Fills config, which must be zeroed, from all sources. Returns 0: continue; 1: an option such as
 * --help was printed on stdout, exit with NT_EXIT_OK; or a negative errno with *ret_error filled.
 * In every case the caller ends with nt_opt_free().
 *
 * Built into every program: --config FILE (and NT_CONFIG), --help, --version, and for the build
 * --print-man, --print-completion bash|zsh|fish, --print-options (the table as text),
 * and with a config file --print-config (one of comments).
 */
NT_MUST_CHECK int nt_opt_load(const struct nt_opt_program *program, int argc, char **argv,
			      void *config, struct nt_opt_error *ret_error);

/*
 * For a program of commands, which does not call nt_opt_load(): handles --help and similar options.
 * `option` has its dashes; false: it is none of them. shell: the word behind --print-completion,
 * NULL if there is none.
 */
bool nt_opt_answer(const struct nt_opt_program *program, const char *option, const char *shell);

/* Releases the strings and the arguments in config. Idempotent. */
void nt_opt_free(const struct nt_opt_program *program, void *config);

/*
 * Sets one option from text; `source` names its origin in messages ("--batch-linger"). On failure
 * the old value stays: -EINVAL, -ERANGE, -ENOMEM.
 */
NT_MUST_CHECK int nt_opt_set(const struct nt_opt *opt, void *config, const char *source,
			     const char *value, size_t len, struct nt_opt_error *ret_error);

#endif
