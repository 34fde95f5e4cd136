/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/options/opt.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/parse_number.h"
#include "common/options/config.h"
#include "common/options/opt_print.h"

enum {
	MAX_SHOWN = 64, /* of a wrong value in a message */
	MAX_STRING = 4096,
};

/* A setting of the command line: applied last, after the file and the environment. */
struct setting {
	const struct nt_opt *opt;
	const char *source, *value;
};

struct command_line {
	struct setting *settings;
	size_t count;
	const char *config_path;
	bool answered; /* an option such as --help was handled */
};

__attribute__((format(printf, 3, 4))) static void complain(struct nt_opt_error *error,
							   enum nt_exit exit, const char *fmt, ...)
{
	va_list ap;

	error->exit = exit;
	va_start(ap, fmt);
	(void)vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	for (char *c = error->text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

/* ---- values ---------------------------------------------------------------------------------- */

static int parse_bool(const char *value, size_t len, bool *ret_value)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i]) != len || memcmp(words[i], value, len) != 0)
			continue;
		*ret_value = i % 2;
		return 0;
	}
	return -EINVAL;
}

static int parse_choice(const char *choices, const char *value, size_t len, uint32_t *ret_value)
{
	uint32_t index = 0;

	for (const char *word = choices; *word; index++) {
		size_t word_len = strcspn(word, " ");

		if (word_len == len && memcmp(word, value, len) == 0) {
			*ret_value = index;
			return 0;
		}
		word += word_len;
		word += strspn(word, " ");
	}
	return -EINVAL;
}

static int parse_string(const struct nt_opt *opt, const char *value, size_t len, char **ret_value)
{
	size_t max = opt->max ? (size_t)opt->max : MAX_STRING;
	uint32_t index;
	char *copy;

	if (len < opt->min || len > max)
		return -ERANGE;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			return -EINVAL;
	if (opt->words && len && parse_choice(opt->words, value, len, &index) < 0)
		return -EINVAL;
	copy = strndup(value, len);
	if (!copy)
		return -ENOMEM;
	if (opt->form && !opt->form->fits(copy)) {
		free(copy);
		return -EINVAL;
	}
	free(*ret_value);
	*ret_value = copy;
	return 0;
}

static int parse_value(const struct nt_opt *opt, void *field, const char *value, size_t len)
{
	uint64_t max = opt->max ? opt->max : UINT64_MAX;

	switch (opt->kind) {
	case NT_OPT_BOOL:
		return parse_bool(value, len, field);
	case NT_OPT_U32:
		return nt_parse_u32(value, len, (uint32_t)opt->min,
				    opt->max ? (uint32_t)opt->max : UINT32_MAX, field);
	case NT_OPT_U64:
		return nt_parse_u64(value, len, opt->min, max, field);
	case NT_OPT_SIZE:
		return nt_parse_size(value, len, opt->min, max, field);
	case NT_OPT_DURATION:
		return nt_parse_duration(value, len, opt->min, max, field);
	case NT_OPT_DOUBLE:
		return nt_parse_double(value, len, (double)opt->min, (double)max, field);
	case NT_OPT_STRING:
		return parse_string(opt, value, len, field);
	case NT_OPT_CHOICE:
		return parse_choice(opt->choices, value, len, field);
	}
	return -EINVAL;
}

int nt_opt_set(const struct nt_opt *opt, void *config, const char *source, const char *value,
	       size_t len, struct nt_opt_error *ret_error)
{
	int shown = len > MAX_SHOWN ? MAX_SHOWN : (int)len;
	char allowed[NT_OPT_ALLOWED_TEXT];
	int r = parse_value(opt, (char *)config + opt->offset, value, len);

	if (r == 0)
		return 0;
	if (r == -ENOMEM) {
		complain(ret_error, NT_EXIT_SYSTEM, "%.200s: out of memory", source);
		return r;
	}
	nt_opt_format_allowed(opt, allowed);
	if (opt->flags & NT_OPT_SECRET) {
		complain(ret_error, NT_EXIT_CONFIG, "%.200s: the value is not %s", source, allowed);
		return r;
	}
	complain(ret_error, NT_EXIT_CONFIG, "%.200s: '%.*s%s' is not %s", source, shown, value,
		 len > MAX_SHOWN ? "..." : "", allowed);
	return r;
}

void nt_opt_free(const struct nt_opt_program *program, void *config)
{
	for (size_t i = 0; i < program->opt_count; i++) {
		char **field = (void *)((char *)config + program->opts[i].offset);

		if (program->opts[i].kind != NT_OPT_STRING)
			continue;
		free(*field);
		*field = NULL;
	}
	if (program->args) {
		struct nt_opt_args *args = (void *)((char *)config + program->args_offset);

		free(args->value);
		*args = (struct nt_opt_args){0};
	}
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct nt_opt *find(const struct nt_opt_program *program, const char *name, size_t len)
{
	for (size_t i = 0; i < program->opt_count; i++)
		if (strlen(program->opts[i].name) == len &&
		    memcmp(program->opts[i].name, name, len) == 0)
			return &program->opts[i];
	return NULL;
}

static bool is_name(const char *name, size_t len, const char *want)
{
	return strlen(want) == len && memcmp(name, want, len) == 0;
}

static int unknown_option(const struct nt_opt_program *program, const char *name, size_t len,
			  struct nt_opt_error *error)
{
	char shown[MAX_SHOWN + 1];
	struct nt_nearest nearest = {.name = shown};

	(void)snprintf(shown, sizeof(shown), "%.*s", len > MAX_SHOWN ? MAX_SHOWN : (int)len, name);
	for (size_t i = 0; i < program->opt_count; i++)
		nt_nearest_try(&nearest, program->opts[i].name);
	for (size_t i = 0; i < NT_OPT_BUILTINS; i++)
		nt_nearest_try(&nearest, nt_opt_builtins[i].name);
	if (nearest.best) {
		complain(error, NT_EXIT_USAGE, "unknown option '--%s', did you mean '--%s'?", shown,
			 nearest.best);
		return -EINVAL;
	}
	complain(error, NT_EXIT_USAGE, "unknown option '--%s', see --help", shown);
	return -EINVAL;
}

/* The value behind '=' or in the next word, which is then skipped. */
static int take_value(const char *name, size_t len, int argc, char **argv, int *at,
		      const char **ret_value, struct nt_opt_error *error)
{
	if (name[len] == '=') {
		*ret_value = name + len + 1;
		return 0;
	}
	if (*at + 1 >= argc) {
		complain(error, NT_EXIT_USAGE, "--%.*s needs a value", (int)len, name);
		return -EINVAL;
	}
	*ret_value = argv[++*at];
	return 0;
}

static bool is_shell(const char *name)
{
	return strcmp(name, "bash") == 0 || strcmp(name, "zsh") == 0 || strcmp(name, "fish") == 0;
}

bool nt_opt_answer(const struct nt_opt_program *program, const char *option, const char *shell)
{
	if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
		nt_opt_print_help(program, stdout);
	else if (strcmp(option, "--version") == 0)
		nt_opt_print_version(program, stdout);
	else if (strcmp(option, "--print-man") == 0)
		nt_opt_print_man(program, stdout);
	else if (strcmp(option, "--print-options") == 0)
		nt_opt_print_options(program, stdout);
	else if (strcmp(option, "--print-config") == 0 && program->config_path)
		nt_opt_print_config(program, stdout);
	else if (strcmp(option, "--print-completion") == 0 && shell && is_shell(shell))
		nt_opt_print_completion(program, shell, stdout);
	else
		return false;
	return true;
}

static int read_option(const struct nt_opt_program *program, int argc, char **argv, int *at,
		       struct command_line *line, struct nt_opt_error *error)
{
	const char *word = argv[*at], *name = word + 2;
	struct setting *setting = &line->settings[line->count];
	const struct nt_opt *opt;
	size_t len;

	if (nt_opt_answer(program, word, *at + 1 < argc ? argv[*at + 1] : NULL)) {
		line->answered = true;
		return 0;
	}
	if (word[1] != '-') {
		complain(error, NT_EXIT_USAGE, "unknown option '%.64s', see --help", word);
		return -EINVAL;
	}
	len = strcspn(name, "=");
	opt = find(program, name, len);
	if (is_name(name, len, "config"))
		return take_value(name, len, argc, argv, at, &line->config_path, error);

	setting->source = word;
	if (!opt && strncmp(name, "no-", 3) == 0 && !name[len]) {
		opt = find(program, name + 3, len - 3);
		if (opt && opt->kind == NT_OPT_BOOL) {
			setting->opt = opt;
			setting->value = "false";
			line->count++;
			return 0;
		}
		opt = NULL;
	}
	if (!opt)
		return unknown_option(program, name, len, error);

	setting->opt = opt;
	line->count++;
	if (opt->kind == NT_OPT_BOOL && name[len] != '=') {
		setting->value = "true";
		return 0;
	}
	return take_value(name, len, argc, argv, at, &setting->value, error);
}

/* A word that is no option. */
static int read_argument(const char *word, struct nt_opt_args *args, struct nt_opt_error *error)
{
	if (!args) {
		complain(error, NT_EXIT_USAGE, "unexpected argument '%.64s', see --help", word);
		return -EINVAL;
	}
	args->value[args->count++] = word;
	return 0;
}

static int read_command_line(const struct nt_opt_program *program, int argc, char **argv,
			     struct nt_opt_args *args, struct command_line *line,
			     struct nt_opt_error *error)
{
	bool options = true;

	for (int i = 1; i < argc && !line->answered; i++) {
		const char *word = argv[i];
		int r = 0;

		if (!options || word[0] != '-' || !word[1])
			r = read_argument(word, args, error);
		else if (strcmp(word, "--") == 0)
			options = false;
		else
			r = read_option(program, argc, argv, &i, line, error);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_args(const struct nt_opt_program *program, const struct nt_opt_args *args,
		      struct nt_opt_error *error)
{
	if (args->count >= program->min_args && args->count <= program->max_args)
		return 0;
	if (args->count < program->min_args)
		complain(error, NT_EXIT_USAGE, "not given: %s, see --help", program->args);
	else
		complain(error, NT_EXIT_USAGE, "too many arguments: %zu, see --help", args->count);
	return -EINVAL;
}

/* ---- all sources ----------------------------------------------------------------------------- */

static int apply_defaults(const struct nt_opt_program *program, void *config,
			  struct nt_opt_error *error)
{
	for (size_t i = 0; i < program->opt_count; i++) {
		const struct nt_opt *opt = &program->opts[i];
		int r;

		if (!opt->def)
			continue;
		r = nt_opt_set(opt, config, opt->name, opt->def, strlen(opt->def), error);
		assert(r == 0 || r == -ENOMEM); /* otherwise the table is inconsistent */
		if (r < 0)
			return r;
	}
	return 0;
}

static int apply_file(const struct nt_opt_program *program, const char *path, void *config,
		      struct nt_opt_error *error)
{
	nt_autofree char **values = calloc(program->opt_count + 1, sizeof(*values));
	char source[256];
	int r;

	if (!values) {
		complain(error, NT_EXIT_SYSTEM, "out of memory");
		return -ENOMEM;
	}
	r = nt_config_read(path, program->opts, program->opt_count, values, error);
	if (r < 0)
		return r;
	for (size_t i = 0; i < program->opt_count; i++) {
		const struct nt_opt *opt = &program->opts[i];

		if (values[i] && r == 0) {
			(void)snprintf(source, sizeof(source), "%.150s: %s", path, opt->name);
			r = nt_opt_set(opt, config, source, values[i], strlen(values[i]), error);
		}
		free(values[i]);
	}
	return r;
}

static int apply_environment(const struct nt_opt_program *program, void *config,
			     struct nt_opt_error *error)
{
	for (size_t i = 0; i < program->opt_count; i++) {
		const struct nt_opt *opt = &program->opts[i];
		char name[NT_OPT_ENV_TEXT];
		const char *value;
		int r;

		if (opt->flags & NT_OPT_CLI_ONLY)
			continue;
		value = getenv(nt_opt_format_env(opt->name, name));
		if (!value || !*value)
			continue;
		r = nt_opt_set(opt, config, name, value, strlen(value), error);
		if (r < 0)
			return r;
	}
	return 0;
}

static int apply_command_line(const struct command_line *line, void *config,
			      struct nt_opt_error *error)
{
	for (size_t i = 0; i < line->count; i++) {
		const struct setting *setting = &line->settings[i];
		char source[NT_OPT_ENV_TEXT];
		int r;

		(void)snprintf(source, sizeof(source), "--%s", setting->opt->name);
		r = nt_opt_set(setting->opt, config, source, setting->value, strlen(setting->value),
			       error);
		if (r < 0) {
			if (r != -ENOMEM)
				error->exit = NT_EXIT_USAGE;
			return r;
		}
	}
	return 0;
}

int nt_opt_load(const struct nt_opt_program *program, int argc, char **argv, void *config,
		struct nt_opt_error *ret_error)
{
	size_t words = argc > 0 ? (size_t)argc : 1;
	nt_autofree struct setting *settings = calloc(words, sizeof(*settings));
	struct command_line line = {.settings = settings};
	struct nt_opt_args *args = NULL;
	const char *path;
	int r;

	if (!settings) {
		complain(ret_error, NT_EXIT_SYSTEM, "out of memory");
		return -ENOMEM;
	}
	if (program->args) {
		args = (void *)((char *)config + program->args_offset);
		args->count = 0;
		args->value = calloc(words, sizeof(*args->value));
		if (!args->value) {
			complain(ret_error, NT_EXIT_SYSTEM, "out of memory");
			return -ENOMEM;
		}
	}
	r = read_command_line(program, argc, argv, args, &line, ret_error);
	if (r < 0)
		return r;
	if (line.answered)
		return 1;
	r = args ? check_args(program, args, ret_error) : 0;
	if (r < 0)
		return r;

	r = apply_defaults(program, config, ret_error);
	if (r < 0)
		return r;
	path = line.config_path ? line.config_path : getenv("NT_CONFIG");
	if (!path || !*path)
		path = program->config_path && access(program->config_path, F_OK) == 0
			       ? program->config_path
			       : NULL;
	r = path ? apply_file(program, path, config, ret_error) : 0;
	if (r < 0)
		return r;
	r = apply_environment(program, config, ret_error);
	if (r < 0)
		return r;
	return apply_command_line(&line, config, ret_error);
}
