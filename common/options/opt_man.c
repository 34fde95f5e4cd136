/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Generates the manual page of a program, in roff. */
#include "common/options/opt_print.h"

#include <string.h>

#include "common/base/version.h"

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
	const char *arg = nt_opt_arg(opt);
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
	nt_opt_format_help(opt, help, sizeof(help));
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

/* "neutracer jobs" has the page neutracer-jobs. */
static void page_name(FILE *out, const char *name)
{
	for (; *name; name++)
		(void)fputc(*name == ' ' ? '-' : *name, out);
}

static void man_commands(const struct nt_opt_program *program, FILE *out)
{
	(void)fputs(".SH COMMANDS\n", out);
	for (size_t i = 0; i < program->command_count; i++) {
		const struct nt_opt_command *command = &program->commands[i];

		(void)fputs(".TP\n\\fB", out);
		roff(out, command->name);
		(void)fputs("\\fR\n", out);
		roff(out, command->help);
		(void)fputs(".\n", out);
	}
	(void)fputs(".SH SEE ALSO\n", out);
	for (size_t i = 0; i < program->command_count; i++)
		(void)fprintf(out, ".BR %s-%s (%u)%s\n", program->name, program->commands[i].name,
			      program->section, i + 1 < program->command_count ? "," : "");
}

void nt_opt_print_man(const struct nt_opt_program *program, FILE *out)
{
	(void)fprintf(out, ".\\\" SPDX-License-Identifier: GPL-3.0-or-later\n");
	(void)fprintf(out, ".\\\" Made by %s --print-man; change the option table instead.\n",
		      program->name);
	(void)fputs(".TH ", out);
	page_name(out, program->name);
	(void)fprintf(out, " %u \"\" \"NeuTracer %s\"\n.SH NAME\n", program->section, NT_VERSION);
	page_name(out, program->name);
	(void)fputs(" \\- ", out);
	roff(out, program->summary);
	(void)fputs("\n.SH SYNOPSIS\n.B ", out);
	roff(out, program->name);
	if (program->commands)
		(void)fputs("\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n", out);
	else
		(void)fprintf(out, "\n[\\fIOPTION\\fR]... %s\n", nt_opt_usage(program));
	if (program->description) {
		(void)fputs(".SH DESCRIPTION\n", out);
		roff_paragraphs(out, program->description);
	}
	if (program->commands) {
		man_commands(program, out);
		return;
	}
	(void)fputs(".SH OPTIONS\n", out);
	for (size_t i = 0; i < program->opt_count; i++)
		man_option(out, &program->opts[i], false);
	for (size_t i = 0; i < NT_OPT_BUILTINS; i++)
		man_option(out, &nt_opt_builtins[i], true);
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
	(void)fputs(".SH EXIT STATUS\n", out);
	for (int code = NT_EXIT_OK; code < NT_EXIT_END; code++)
		if (nt_opt_uses_exit(program, (enum nt_exit)code))
			(void)fprintf(out, ".TP\n%d\n%s.\n", code,
				      nt_opt_exit_text(program, (enum nt_exit)code));
}
