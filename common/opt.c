/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/opt.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/config.h"
#include "common/num.h"
#include "common/opt_print.h"

enum {
	MAX_NAME = 64, /* longer ones are not searched for typing mistakes */
	MAX_SHOWN = 64, /* of a wrong value in a message */
	MAX_STRING = 4096,
};

/* What the command line set: applied last, after the file and the environment are known. */
struct setting {
	const struct nt_opt *opt;
	const char *source, *value;
};

struct command_line {
	struct setting *settings;
	size_t count;
	const char *config_path;
	bool answered; /* --help and its kin */
};

__attribute__((format(printf, 4, 5))) static int
refuse(struct nt_opt_error *error, enum nt_exit exit, int r, const char *fmt, ...)
{
	va_list ap;

	error->exit = r == -ENOMEM ? NT_EXIT_SYSTEM : exit;
	va_start(ap, fmt);
	(void)vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	for (char *c = error->text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	return r;
}

/* ---- values ------------------------------------------------------------------------------------ */

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
	char *copy;

	if (len < opt->min || len > max)
		return -ERANGE;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			return -EINVAL;
	copy = strndup(value, len);
	if (!copy)
		return -ENOMEM;
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
		return nt_num_u32(value, len, (uint32_t)opt->min,
				  opt->max ? (uint32_t)opt->max : UINT32_MAX, field);
	case NT_OPT_U64:
		return nt_num_u64(value, len, opt->min, max, field);
	case NT_OPT_SIZE:
		return nt_num_size(value, len, opt->min, max, field);
	case NT_OPT_DURATION:
		return nt_num_duration(value, len, opt->min, max, field);
	case NT_OPT_DOUBLE:
		return nt_num_double(value, len, (double)opt->min, (double)max, field);
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
	if (r == -ENOMEM)
		return refuse(ret_error, NT_EXIT_SYSTEM, r, "%.200s: out of memory", source);
	nt_opt_format_allowed(opt, allowed);
	if (opt->flags & NT_OPT_SECRET)
		return refuse(ret_error, NT_EXIT_CONFIG, r, "%.200s: the value is not %s", source,
			      allowed);
	return refuse(ret_error, NT_EXIT_CONFIG, r, "%.200s: '%.*s%s' is not %s", source, shown,
		      value, len > MAX_SHOWN ? "..." : "", allowed);
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
	if (program->args || program->commands) {
		struct nt_opt_args *args = (void *)((char *)config + program->args_offset);

		free(args->value);
		*args = (struct nt_opt_args){0};
	}
}

/* ---- typing mistakes --------------------------------------------------------------------------- */

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* Edits that turn a into b: insert, delete, replace. */
static size_t distance(const char *a, const char *b)
{
	size_t row[MAX_NAME + 1];
	size_t n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t above = row[j + 1];

			row[j + 1] = min3(above + 1, row[j] + 1, diagonal + (a[i] != b[j]));
			diagonal = above;
		}
	}
	return row[n];
}

static const char *nearer(const char *name, const char *candidate, const char *best,
			  size_t *best_distance)
{
	size_t d;

	if (strlen(name) > MAX_NAME || strlen(candidate) > MAX_NAME)
		return best;
	d = distance(name, candidate);
	if (d > strlen(candidate) / 3 + 1 || d >= *best_distance)
		return best;
	*best_distance = d;
	return candidate;
}

const char *nt_opt_nearest(const struct nt_opt *opts, size_t count, const char *name)
{
	size_t best_distance = SIZE_MAX;
	const char *best = NULL;

	for (size_t i = 0; i < count; i++)
		best = nearer(name, opts[i].name, best, &best_distance);
	return best;
}

static const char *nearest_option(const struct nt_opt_program *program, const char *name)
{
	static const char *const common[] = {"help", "version", "config"};
	const char *best = nt_opt_nearest(program->opts, program->opt_count, name);
	size_t best_distance = best ? distance(name, best) : SIZE_MAX;

	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		best = nearer(name, common[i], best, &best_distance);
	return best;
}

/* ---- the command line -------------------------------------------------------------------------- */

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
	nt_autofree char *copy = strndup(name, len);
	const char *near = copy ? nearest_option(program, copy) : NULL;

	if (near)
		return refuse(error, NT_EXIT_USAGE, -EINVAL,
			      "unknown option '--%.*s', did you mean '--%s'?", (int)len, name,
			      near);
	return refuse(error, NT_EXIT_USAGE, -EINVAL, "unknown option '--%.*s', see --help",
		      (int)(len > MAX_SHOWN ? MAX_SHOWN : len), name);
}

/* The value behind '=' or in the next word, which is then skipped. */
static int take_value(const char *name, size_t len, int argc, char **argv, int *at,
		      const char **ret_value, struct nt_opt_error *error)
{
	if (name[len] == '=') {
		*ret_value = name + len + 1;
		return 0;
	}
	if (*at + 1 >= argc)
		return refuse(error, NT_EXIT_USAGE, -EINVAL, "--%.*s needs a value", (int)len,
			      name);
	*ret_value = argv[++*at];
	return 0;
}

static int answer(const struct nt_opt_program *program, const char *name, size_t len, int argc,
		  char **argv, int *at, struct command_line *line, struct nt_opt_error *error)
{
	const char *shell = NULL;
	int r;

	line->answered = true;
	if (is_name(name, len, "help")) {
		nt_opt_print_help(program, stdout);
	} else if (is_name(name, len, "version")) {
		nt_opt_print_version(program, stdout);
	} else if (is_name(name, len, "print-man")) {
		nt_opt_print_man(program, stdout);
	} else if (is_name(name, len, "print-options")) {
		nt_opt_print_options(program, stdout);
	} else if (is_name(name, len, "print-completion")) {
		r = take_value(name, len, argc, argv, at, &shell, error);
		if (r < 0)
			return r;
		if (strcmp(shell, "bash") != 0 && strcmp(shell, "zsh") != 0)
			return refuse(error, NT_EXIT_USAGE, -EINVAL,
				      "--print-completion: '%.20s' is not one of bash, zsh", shell);
		nt_opt_print_completion(program, shell, stdout);
	} else {
		line->answered = false;
		return unknown_option(program, name, len, error);
	}
	return 0;
}

static int read_option(const struct nt_opt_program *program, int argc, char **argv, int *at,
		       struct command_line *line, struct nt_opt_error *error)
{
	const char *word = argv[*at], *name = word + 2;
	size_t len = strcspn(name, "=");
	const struct nt_opt *opt = find(program, name, len);
	struct setting *setting = &line->settings[line->count];

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
		return answer(program, name, len, argc, argv, at, line, error);

	setting->opt = opt;
	line->count++;
	if (opt->kind == NT_OPT_BOOL && name[len] != '=') {
		setting->value = "true";
		return 0;
	}
	return take_value(name, len, argc, argv, at, &setting->value, error);
}

static int read_command_line(const struct nt_opt_program *program, int argc, char **argv,
			     struct nt_opt_args *args, struct command_line *line,
			     struct nt_opt_error *error)
{
	bool options = true;

	for (int i = 1; i < argc && !line->answered; i++) {
		const char *word = argv[i];
		int r = 0;

		if (options && strcmp(word, "--") == 0)
			options = false;
		else if (options && strcmp(word, "-h") == 0)
			r = answer(program, "help", strlen("help"), argc, argv, &i, line, error);
		else if (options && strncmp(word, "--", 2) == 0)
			r = read_option(program, argc, argv, &i, line, error);
		else if (options && word[0] == '-' && word[1])
			r = refuse(error, NT_EXIT_USAGE, -EINVAL,
				   "unknown option '%.64s', see --help", word);
		else if (args)
			args->value[args->count++] = word;
		else
			r = refuse(error, NT_EXIT_USAGE, -EINVAL,
				   "unexpected argument '%.64s', see --help", word);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_command(const struct nt_opt_program *program, const struct nt_opt_args *args,
			 const struct nt_opt_command **ret_command, struct nt_opt_error *error)
{
	size_t best_distance = SIZE_MAX;
	const char *near = NULL;

	if (!args->count)
		return refuse(error, NT_EXIT_USAGE, -EINVAL, "no command given, see --help");
	for (size_t i = 0; i < program->command_count; i++) {
		const struct nt_opt_command *command = &program->commands[i];

		if (strcmp(command->name, args->value[0]) == 0) {
			*ret_command = command;
			return 0;
		}
		near = nearer(args->value[0], command->name, near, &best_distance);
	}
	return refuse(error, NT_EXIT_USAGE, -EINVAL, "unknown command '%.64s', %s%s%s",
		      args->value[0], near ? "did you mean '" : "see --help", near ? near : "",
		      near ? "'?" : "");
}

static int check_args(const struct nt_opt_program *program, const struct nt_opt_args *args,
		      struct nt_opt_error *error)
{
	const struct nt_opt_command *command = NULL;
	size_t min = program->min_args, max = program->max_args, count = args->count;
	int r;

	if (program->commands) {
		r = check_command(program, args, &command, error);
		if (r < 0)
			return r;
		min = command->min_args;
		max = command->max_args;
		count--;
	}
	if (count >= min && count <= max)
		return 0;
	return refuse(error, NT_EXIT_USAGE, -EINVAL, "%s arguments%s%s: %zu, see --help",
		      count < min ? "too few" : "too many", command ? " for " : "",
		      command ? command->name : "", count);
}

/* ---- all sources ------------------------------------------------------------------------------- */

static int apply_defaults(const struct nt_opt_program *program, void *config,
			  struct nt_opt_error *error)
{
	for (size_t i = 0; i < program->opt_count; i++) {
		const struct nt_opt *opt = &program->opts[i];
		int r;

		if (!opt->def)
			continue;
		r = nt_opt_set(opt, config, opt->name, opt->def, strlen(opt->def), error);
		assert(r == 0 || r == -ENOMEM); /* else the table contradicts itself */
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

	if (!values)
		return refuse(error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
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
		char source[MAX_NAME + 3];
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

	if (!settings)
		return refuse(ret_error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
	if (program->args || program->commands) {
		args = (void *)((char *)config + program->args_offset);
		args->value = calloc(words, sizeof(*args->value));
		if (!args->value)
			return refuse(ret_error, NT_EXIT_SYSTEM, -ENOMEM, "out of memory");
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
