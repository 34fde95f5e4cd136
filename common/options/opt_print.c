/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/options/opt_print.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/duration.h"
#include "common/base/parse_number.h"
#include "common/base/version.h"

enum {
	HELP_COLUMN = 28,
	HELP_WIDTH = 96,
	MAX_EXAMPLES = 3,
};

static const char *const kind_nouns[] = {
	[NT_OPT_BOOL] = "true or false",  [NT_OPT_U32] = "a whole number",
	[NT_OPT_U64] = "a whole number",  [NT_OPT_SIZE] = "a size",
	[NT_OPT_DURATION] = "a duration", [NT_OPT_DOUBLE] = "a number",
	[NT_OPT_STRING] = "a text",       [NT_OPT_CHOICE] = "one of",
};

/* For messages: the first few of those that are in an option's range. */
static const uint64_t example_sizes[] = {64ULL << 10, 16ULL << 20, 1ULL << 30};
static const uint64_t example_durations[] = {250 * NT_MILLISECOND, 5 * NT_SECOND, NT_MINUTE,
					     NT_HOUR, NT_DAY};

static const char *const kind_args[] = {
	[NT_OPT_BOOL] = NULL,     [NT_OPT_U32] = "N",         [NT_OPT_U64] = "N",
	[NT_OPT_SIZE] = "SIZE",   [NT_OPT_DURATION] = "TIME", [NT_OPT_DOUBLE] = "NUMBER",
	[NT_OPT_STRING] = "TEXT", [NT_OPT_CHOICE] = "WORD",
};

const struct nt_opt nt_opt_builtins[NT_OPT_BUILTINS] = {
	{.name = "config",
	 .kind = NT_OPT_STRING,
	 .arg = "FILE",
	 .help = "read settings from this YAML file (also NT_CONFIG)"},
	{.name = "help", .kind = NT_OPT_BOOL, .help = "print this help and exit"},
	{.name = "version", .kind = NT_OPT_BOOL, .help = "print the version and exit"},
};

const char *nt_opt_arg(const struct nt_opt *opt)
{
	return opt->arg ? opt->arg : kind_args[opt->kind];
}

static const char *format_bound(const struct nt_opt *opt, unsigned long long value,
				char text[NT_PARSE_TEXT])
{
	switch (opt->kind) {
	case NT_OPT_SIZE:
		return nt_format_size(value, text);
	case NT_OPT_DURATION:
		return nt_format_duration(value, text);
	default:
		(void)snprintf(text, NT_PARSE_TEXT, "%llu", value);
		return text;
	}
}

/* ", such as 250ms, 5s or 1m": values that are allowed; may be empty. */
static void format_examples(const struct nt_opt *opt, char *text, size_t size)
{
	const bool sizes = opt->kind == NT_OPT_SIZE, durations = opt->kind == NT_OPT_DURATION;
	const uint64_t *example = sizes ? example_sizes : example_durations;
	const size_t count = sizes       ? sizeof(example_sizes) / sizeof(*example)
			     : durations ? sizeof(example_durations) / sizeof(*example)
					 : 0;
	uint64_t shown[MAX_EXAMPLES];
	size_t n = 0, len = 0;

	for (size_t i = 0; i < count && n < MAX_EXAMPLES; i++)
		if (example[i] >= opt->min && (!opt->max || example[i] <= opt->max))
			shown[n++] = example[i];
	text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		char value[NT_PARSE_TEXT];

		len += (size_t)snprintf(text + len, size - len, "%s%s",
					i == 0      ? ", such as "
					: i + 1 < n ? ", "
						    : " or ",
					format_bound(opt, shown[i], value));
	}
}

static void format_choices(const char *choices, char *text, size_t size)
{
	size_t len = 0;

	for (; *choices && len + 2 < size; choices++) {
		if (*choices == ' ')
			text[len++] = ',';
		text[len++] = *choices;
	}
	text[len] = '\0';
}

const char *nt_opt_format_allowed(const struct nt_opt *opt, char text[NT_OPT_ALLOWED_TEXT])
{
	char min[NT_PARSE_TEXT], max[NT_PARSE_TEXT], choices[160], example[128];
	/* Only of a DOUBLE does the kind allow less than the table does by default. */
	const bool has_min = opt->min || opt->kind == NT_OPT_DOUBLE;

	(void)format_bound(opt, opt->min, min);
	(void)format_bound(opt, opt->max, max);
	format_examples(opt, example, sizeof(example));
	if (opt->choices || opt->words) {
		format_choices(opt->choices ? opt->choices : opt->words, choices, sizeof(choices));
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT, "one of %s", choices);
	} else if (opt->kind == NT_OPT_BOOL) {
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT, "true or false");
	} else if (opt->form) {
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT, "%s", opt->form->text);
	} else if (opt->kind == NT_OPT_STRING) {
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT,
			       "a text of %s to %s bytes without control characters", min,
			       opt->max ? max : "4096");
	} else if (opt->max) {
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT, "%s from %s to %s%s",
			       kind_nouns[opt->kind], min, max, example);
	} else {
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT, "%s%s%s%s", kind_nouns[opt->kind],
			       has_min ? " of at least " : "", has_min ? min : "", example);
	}
	return text;
}

const char *nt_opt_format_env(const char *name, char text[NT_OPT_ENV_TEXT])
{
	int len = snprintf(text, NT_OPT_ENV_TEXT, "NT_%.64s", name);

	for (int i = 3; i < len; i++) {
		if (text[i] == '-')
			text[i] = '_';
		else if (text[i] >= 'a' && text[i] <= 'z')
			text[i] = (char)(text[i] - 'a' + 'A');
	}
	return text;
}

void nt_opt_print_version(const struct nt_opt_program *program, FILE *out)
{
	(void)fprintf(out, "%s %s\n", program->name, NT_VERSION);
}

void nt_opt_print_options(const struct nt_opt_program *program, FILE *out)
{
	for (size_t i = 0; i < program->opt_count; i++) {
		const struct nt_opt *opt = &program->opts[i];
		bool cli_only = opt->flags & NT_OPT_CLI_ONLY;
		char env[NT_OPT_ENV_TEXT], allowed[NT_OPT_ALLOWED_TEXT];

		(void)fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", opt->name,
			      cli_only ? "-" : nt_opt_format_env(opt->name, env),
			      cli_only ? "-" : opt->name, nt_opt_format_allowed(opt, allowed),
			      opt->def && *opt->def ? opt->def : "-", opt->help);
	}
}

/* ---- --help ---------------------------------------------------------------------------------- */

/* Prints words of text, wrapped at HELP_WIDTH; column: the current one. */
static void wrap(FILE *out, const char *text, size_t column, size_t indent)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		if (column > indent && column + 1 + len > HELP_WIDTH) {
			(void)fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			(void)fputc(' ', out);
			column++;
		}
		(void)fprintf(out, "%.*s", (int)len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	(void)fputc('\n', out);
}

static void print_item(FILE *out, const char *term, const char *help)
{
	int len = fprintf(out, "  %s", term);

	if (len + 2 > HELP_COLUMN)
		(void)fprintf(out, "\n%*s", HELP_COLUMN, "");
	else
		(void)fprintf(out, "%*s", HELP_COLUMN - len, "");
	wrap(out, help, HELP_COLUMN, HELP_COLUMN);
}

static void format_term(const struct nt_opt *opt, char *text, size_t size)
{
	const char *arg = nt_opt_arg(opt);

	(void)snprintf(text, size, "--%s%s%s", opt->name, arg ? " " : "", arg ? arg : "");
}

void nt_opt_format_help(const struct nt_opt *opt, char *text, size_t size)
{
	char choices[160] = "";
	bool def = opt->def && *opt->def && opt->kind != NT_OPT_BOOL;

	if (opt->kind == NT_OPT_BOOL)
		def = opt->def && strcmp(opt->def, "true") == 0;
	if (opt->choices)
		format_choices(opt->choices, choices, sizeof(choices));
	(void)snprintf(text, size, "%s%s%s%s%s%s", opt->help, opt->choices ? ": " : "", choices,
		       def ? " (default " : "", def ? opt->def : "", def ? ")" : "");
}

static void print_option_help(FILE *out, const struct nt_opt *opt)
{
	char term[128], help[512];

	format_term(opt, term, sizeof(term));
	nt_opt_format_help(opt, help, sizeof(help));
	print_item(out, term, help);
}

const char *nt_opt_usage(const struct nt_opt_program *program)
{
	return program->args ? program->args : "";
}

bool nt_opt_uses_exit(const struct nt_opt_program *program, enum nt_exit code)
{
	switch (code) {
	case NT_EXIT_OK:
	case NT_EXIT_USAGE:
	case NT_EXIT_CONFIG:
	case NT_EXIT_SYSTEM:
		return true; /* only nt_opt_load() produces these */
	default:
		break;
	}
	for (size_t i = 0; i < program->exit_count; i++)
		if (program->exits[i] == code)
			return true;
	return false;
}

const char *nt_opt_exit_text(const struct nt_opt_program *program, enum nt_exit code)
{
	return code == NT_EXIT_FINDING && program->finding ? program->finding : nt_exit_text(code);
}

static void print_commands(const struct nt_opt_program *program, FILE *out)
{
	(void)fprintf(out, "Usage: %s COMMAND [OPTION]... [ARGUMENT]...\n\n", program->name);
	(void)fprintf(out, "%s: %s.\n\nCommands:\n", program->name, program->summary);
	for (size_t i = 0; i < program->command_count; i++)
		print_item(out, program->commands[i].name, program->commands[i].help);
	(void)fprintf(out, "\n\"%s COMMAND --help\" lists the options of a command.\n",
		      program->name);
}

void nt_opt_print_help(const struct nt_opt_program *program, FILE *out)
{
	if (program->commands) {
		print_commands(program, out);
		return;
	}
	(void)fprintf(out, "Usage: %s [OPTION]...%s%s\n\n", program->name, program->args ? " " : "",
		      nt_opt_usage(program));
	(void)fprintf(out, "%s: %s.\n\n", program->name, program->summary);
	if (program->arg_help_count)
		(void)fprintf(out, "Arguments:\n");
	for (size_t i = 0; i < program->arg_help_count; i++)
		print_item(out, program->arg_help[i].name, program->arg_help[i].help);
	(void)fprintf(out, "%sOptions:\n", program->arg_help_count ? "\n" : "");
	for (size_t i = 0; i < program->opt_count; i++)
		print_option_help(out, &program->opts[i]);
	for (size_t i = 0; i < NT_OPT_BUILTINS; i++)
		print_option_help(out, &nt_opt_builtins[i]);

	(void)fprintf(
		out,
		"\nA setting --some-name is also NT_SOME_NAME in the environment and\n"
		"some-name in the config file; the command line wins, then the environment.\n");
	if (program->config_path)
		(void)fprintf(out, "The config file is %s where it exists.\n",
			      program->config_path);
	(void)fprintf(out, "\nExit status:\n");
	for (int code = NT_EXIT_OK; code < NT_EXIT_END; code++)
		if (nt_opt_uses_exit(program, (enum nt_exit)code))
			(void)fprintf(out, "  %d  %s\n", code,
				      nt_opt_exit_text(program, (enum nt_exit)code));
}
