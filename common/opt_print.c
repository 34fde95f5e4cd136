/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/opt_print.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "common/num.h"
#include "common/version.h"

enum {
	HELP_COLUMN = 28,
	HELP_WIDTH = 96,
};

static const char *const kind_nouns[] = {
	[NT_OPT_BOOL] = "true or false",  [NT_OPT_U32] = "a whole number",
	[NT_OPT_U64] = "a whole number",  [NT_OPT_SIZE] = "a size",
	[NT_OPT_DURATION] = "a duration", [NT_OPT_DOUBLE] = "a number",
	[NT_OPT_STRING] = "a text",       [NT_OPT_CHOICE] = "one of",
};

static const char *const kind_examples[NT_OPT_CHOICE + 1] = {
	[NT_OPT_SIZE] = ", such as 64K or 16M",
	[NT_OPT_DURATION] = ", such as 250ms, 5s or 1m",
};

static const char *const kind_args[] = {
	[NT_OPT_BOOL] = NULL,     [NT_OPT_U32] = "N",         [NT_OPT_U64] = "N",
	[NT_OPT_SIZE] = "SIZE",   [NT_OPT_DURATION] = "TIME", [NT_OPT_DOUBLE] = "NUMBER",
	[NT_OPT_STRING] = "TEXT", [NT_OPT_CHOICE] = "WORD",
};

/* The options that every program has. */
static const struct nt_opt common[] = {
	{.name = "config",
	 .kind = NT_OPT_STRING,
	 .arg = "FILE",
	 .help = "read settings from this YAML file (also NT_CONFIG)"},
	{.name = "help", .kind = NT_OPT_BOOL, .help = "show this and end"},
	{.name = "version", .kind = NT_OPT_BOOL, .help = "show the version and end"},
};

enum {
	COMMON_COUNT = sizeof(common) / sizeof(common[0]),
};

static const char *arg_of(const struct nt_opt *opt)
{
	return opt->arg ? opt->arg : kind_args[opt->kind];
}

static const char *format_bound(const struct nt_opt *opt, unsigned long long value,
				char text[NT_NUM_TEXT])
{
	switch (opt->kind) {
	case NT_OPT_SIZE:
		return nt_num_format_size(value, text);
	case NT_OPT_DURATION:
		return nt_num_format_duration(value, text);
	default:
		(void)snprintf(text, NT_NUM_TEXT, "%llu", value);
		return text;
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
	const char *example = kind_examples[opt->kind] ? kind_examples[opt->kind] : "";
	char min[NT_NUM_TEXT], max[NT_NUM_TEXT], choices[160];

	(void)format_bound(opt, opt->min, min);
	(void)format_bound(opt, opt->max, max);
	if (opt->kind == NT_OPT_CHOICE) {
		format_choices(opt->choices, choices, sizeof(choices));
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT, "one of %s", choices);
	} else if (opt->kind == NT_OPT_BOOL) {
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT, "true or false");
	} else if (opt->kind == NT_OPT_STRING) {
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT,
			       "a text of %s to %s bytes without control characters", min,
			       opt->max ? max : "4096");
	} else if (opt->max) {
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT, "%s from %s to %s%s",
			       kind_nouns[opt->kind], min, max, example);
	} else {
		(void)snprintf(text, NT_OPT_ALLOWED_TEXT, "%s%s%s%s", kind_nouns[opt->kind],
			       opt->min ? " of at least " : "", opt->min ? min : "", example);
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

/* ---- --help ------------------------------------------------------------------------------------ */

/* Words of text, wrapped at HELP_WIDTH; column: where the cursor is. */
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
	const char *arg = arg_of(opt);

	(void)snprintf(text, size, "--%s%s%s", opt->name, arg ? " " : "", arg ? arg : "");
}

/* The help line with choices and default. */
static void format_help(const struct nt_opt *opt, char *text, size_t size)
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
	format_help(opt, help, sizeof(help));
	print_item(out, term, help);
}

static const char *usage_args(const struct nt_opt_program *program)
{
	if (program->commands)
		return " COMMAND [ARGUMENT]...";
	return program->args ? program->args : "";
}

void nt_opt_print_help(const struct nt_opt_program *program, FILE *out)
{
	(void)fprintf(out, "Usage: %s [OPTION]...%s%s\n\n", program->name,
		      program->args && !program->commands ? " " : "", usage_args(program));
	(void)fprintf(out, "%s: %s.\n", program->name, program->summary);
	if (program->commands)
		(void)fprintf(out, "\nCommands:\n");
	for (size_t i = 0; i < program->command_count; i++) {
		const struct nt_opt_command *command = &program->commands[i];
		char term[128];

		(void)snprintf(term, sizeof(term), "%s%s%s", command->name,
			       command->args ? " " : "", command->args ? command->args : "");
		print_item(out, term, command->help);
	}
	(void)fprintf(out, "\nOptions:\n");
	for (size_t i = 0; i < program->opt_count; i++)
		print_option_help(out, &program->opts[i]);
	for (size_t i = 0; i < COMMON_COUNT; i++)
		print_option_help(out, &common[i]);

	(void)fprintf(
		out,
		"\nA setting --some-name is also NT_SOME_NAME in the environment and\n"
		"some-name in the config file; the command line wins, then the environment.\n");
	if (program->config_path)
		(void)fprintf(out, "The config file is %s where it exists.\n",
			      program->config_path);
	(void)fprintf(out, "\nExit status:\n");
	(void)fprintf(out, "  %d  %s\n", NT_EXIT_OK, nt_exit_text(NT_EXIT_OK));
	for (int code = NT_EXIT_OK + 1; code < NT_EXIT_END; code++) {
		bool used = code == NT_EXIT_USAGE || code == NT_EXIT_CONFIG;

		for (size_t i = 0; i < program->exit_count; i++)
			used |= program->exits[i] == (enum nt_exit)code;
		if (used)
			(void)fprintf(out, "  %d  %s\n", code, nt_exit_text((enum nt_exit)code));
	}
}

/* ---- the manual -------------------------------------------------------------------------------- */

static void roff(FILE *out, const char *text)
{
	bool line_start = true;

	for (; *text; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			(void)fputs("\\&", out);
		if (*text == '\\')
			(void)fputs("\\e", out);
		else if (*text == '-')
			(void)fputs("\\-", out);
		else
			(void)fputc(*text, out);
		line_start = *text == '\n';
	}
}

static void roff_paragraphs(FILE *out, const char *text)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t len = end ? (size_t)(end - text) : strlen(text);
		char paragraph[2048];

		(void)snprintf(paragraph, sizeof(paragraph), "%.*s", (int)len, text);
		roff(out, paragraph);
		(void)fputc('\n', out);
		text += len;
		text += strspn(text, "\n");
		if (*text)
			(void)fputs(".PP\n", out);
	}
}

static void man_option(FILE *out, const struct nt_opt *opt, bool builtin)
{
	const char *arg = arg_of(opt);
	char help[512], allowed[NT_OPT_ALLOWED_TEXT], env[NT_OPT_ENV_TEXT];

	(void)fputs(".TP\n\\fB\\-\\-", out);
	roff(out, opt->name);
	(void)fputs("\\fR", out);
	if (arg) {
		(void)fputs(" \\fI", out);
		roff(out, arg);
		(void)fputs("\\fR", out);
	}
	(void)fputc('\n', out);
	format_help(opt, help, sizeof(help));
	roff(out, help);
	if (builtin) {
		(void)fputs(".\n", out);
		return;
	}
	(void)fputs(".\nValue: ", out);
	roff(out, nt_opt_format_allowed(opt, allowed));
	if (opt->flags & NT_OPT_CLI_ONLY)
		(void)fputs(".\nOn the command line only.\n", out);
	else
		(void)fprintf(out, ".\nEnvironment: %s.\n", nt_opt_format_env(opt->name, env));
}

void nt_opt_print_man(const struct nt_opt_program *program, FILE *out)
{
	(void)fprintf(out, ".\\\" SPDX-License-Identifier: GPL-3.0-or-later\n");
	(void)fprintf(out, ".\\\" Made by %s --print-man; change the option table instead.\n",
		      program->name);
	(void)fprintf(out, ".TH %s %u \"\" \"NeuTracer %s\"\n.SH NAME\n", program->name,
		      program->section, NT_VERSION);
	roff(out, program->name);
	(void)fputs(" \\- ", out);
	roff(out, program->summary);
	(void)fprintf(out, "\n.SH SYNOPSIS\n.B ");
	roff(out, program->name);
	(void)fprintf(out, "\n[\\fIOPTION\\fR]...%s%s\n",
		      program->args && !program->commands ? " " : "", usage_args(program));
	if (program->description) {
		(void)fputs(".SH DESCRIPTION\n", out);
		roff_paragraphs(out, program->description);
	}
	if (program->commands)
		(void)fputs(".SH COMMANDS\n", out);
	for (size_t i = 0; i < program->command_count; i++) {
		const struct nt_opt_command *command = &program->commands[i];

		(void)fputs(".TP\n\\fB", out);
		roff(out, command->name);
		(void)fputs("\\fR ", out);
		roff(out, command->args ? command->args : "");
		(void)fputc('\n', out);
		roff(out, command->help);
		(void)fputs(".\n", out);
	}
	(void)fputs(".SH OPTIONS\n", out);
	for (size_t i = 0; i < program->opt_count; i++)
		man_option(out, &program->opts[i], false);
	for (size_t i = 0; i < COMMON_COUNT; i++)
		man_option(out, &common[i], true);
	(void)fputs(
		".SH FILES AND ENVIRONMENT\n"
		"Later sources win: the default, the config file, the environment, the command line.\n"
		"The key in the file is the name of the option without its dashes.\n"
		"An empty environment variable counts as not set.\n",
		out);
	if (program->config_path) {
		(void)fputs("Without \\fB\\-\\-config\\fR and NT_CONFIG the file is ", out);
		roff(out, program->config_path);
		(void)fputs(", where it exists.\n", out);
	}
	(void)fprintf(out, ".SH EXIT STATUS\n.TP\n%d\n%s.\n", NT_EXIT_OK, nt_exit_text(NT_EXIT_OK));
	for (int code = NT_EXIT_OK + 1; code < NT_EXIT_END; code++) {
		bool used = code == NT_EXIT_USAGE || code == NT_EXIT_CONFIG;

		for (size_t i = 0; i < program->exit_count; i++)
			used |= program->exits[i] == (enum nt_exit)code;
		if (used)
			(void)fprintf(out, ".TP\n%d\n%s.\n", code,
				      nt_exit_text((enum nt_exit)code));
	}
}

/* ---- shells ------------------------------------------------------------------------------------ */

static void print_bash(const struct nt_opt_program *program, FILE *out)
{
	(void)fprintf(out, "# Made by %s --print-completion bash.\n", program->name);
	(void)fprintf(out, "_nt_complete_%s()\n{\n",
		      strrchr(program->name, '-') ? strrchr(program->name, '-') + 1
						  : program->name);
	(void)fputs("\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
		    "\tcase $before in\n",
		    out);
	for (size_t i = 0; i < program->opt_count; i++) {
		const struct nt_opt *opt = &program->opts[i];

		if (opt->choices)
			(void)fprintf(out,
				      "\t--%s)\n\t\tmapfile -t COMPREPLY < "
				      "<(compgen -W '%s' -- \"$word\")\n\t\treturn ;;\n",
				      opt->name, opt->choices);
		else if (opt->kind != NT_OPT_BOOL)
			(void)fprintf(out,
				      "\t--%s)\n\t\tmapfile -t COMPREPLY < "
				      "<(compgen -f -- \"$word\")\n\t\treturn ;;\n",
				      opt->name);
	}
	(void)fputs("\t--config)\n\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
		    "\t\treturn ;;\n\tesac\n\tmapfile -t COMPREPLY < <(compgen -W '",
		    out);
	for (size_t i = 0; i < program->command_count; i++)
		(void)fprintf(out, "%s ", program->commands[i].name);
	for (size_t i = 0; i < program->opt_count; i++)
		(void)fprintf(out, "--%s ", program->opts[i].name);
	(void)fprintf(out, "--config --help --version' -- \"$word\")\n}\n");
	(void)fprintf(out, "complete -o default -F _nt_complete_%s %s\n",
		      strrchr(program->name, '-') ? strrchr(program->name, '-') + 1 : program->name,
		      program->name);
}

/* Inside [...] of zsh's _arguments, within single quotes. */
static void print_zsh_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			(void)fputs("'\\''", out);
		else if (strchr("[]:\\", *text))
			(void)fprintf(out, "\\%c", *text);
		else
			(void)fputc(*text, out);
	}
}

static void print_zsh_option(FILE *out, const struct nt_opt *opt)
{
	(void)fprintf(out, " \\\n\t'--%s%s[", opt->name, arg_of(opt) ? "=" : "");
	print_zsh_text(out, opt->help);
	(void)fputc(']', out);
	if (opt->choices)
		(void)fprintf(out, ":word:(%s)", opt->choices);
	else if (arg_of(opt))
		(void)fprintf(out, ":%s:_files", arg_of(opt));
	(void)fputc('\'', out);
}

static void print_zsh(const struct nt_opt_program *program, FILE *out)
{
	(void)fprintf(out, "#compdef %s\n# Made by %s --print-completion zsh.\n_arguments",
		      program->name, program->name);
	for (size_t i = 0; i < program->opt_count; i++)
		print_zsh_option(out, &program->opts[i]);
	for (size_t i = 0; i < COMMON_COUNT; i++)
		print_zsh_option(out, &common[i]);
	if (program->commands) {
		(void)fputs(" \\\n\t'1:command:(", out);
		for (size_t i = 0; i < program->command_count; i++)
			(void)fprintf(out, "%s%s", i ? " " : "", program->commands[i].name);
		(void)fputs(")'", out);
	}
	if (program->commands || program->args)
		(void)fputs(" \\\n\t'*:argument:_files'", out);
	(void)fputc('\n', out);
}

void nt_opt_print_completion(const struct nt_opt_program *program, const char *shell, FILE *out)
{
	if (strcmp(shell, "zsh") == 0)
		print_zsh(program, out);
	else
		print_bash(program, out);
}

void nt_opt_print_options(const struct nt_opt_program *program, FILE *out)
{
	for (size_t i = 0; i < program->opt_count; i++) {
		const struct nt_opt *opt = &program->opts[i];
		bool cli_only = opt->flags & NT_OPT_CLI_ONLY;
		char env[NT_OPT_ENV_TEXT], allowed[NT_OPT_ALLOWED_TEXT];

		(void)fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", opt->name,
			      cli_only ? "" : nt_opt_format_env(opt->name, env),
			      cli_only ? "" : opt->name, nt_opt_format_allowed(opt, allowed),
			      opt->def ? opt->def : "", opt->help);
	}
}
