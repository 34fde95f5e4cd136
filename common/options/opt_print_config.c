/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A config file with every setting as a comment. A setting with a default shows it, quoted as YAML; one
 * without shows the name of its value.
 */
#include "common/options/opt_print.h"

#include <string.h>

enum {
	WIDTH = 96,
};

/* A comment, wrapped. */
static void print_comment(FILE *out, const char *text)
{
	size_t column = 1;

	(void)fputc('#', out);
	while (*text) {
		const size_t len = strcspn(text, " ");

		if (column > 1 && column + 1 + len > WIDTH) {
			(void)fputs("\n#", out);
			column = 1;
		}
		(void)fprintf(out, " %.*s", (int)len, text);
		column += 1 + len;
		text += len;
		text += strspn(text, " ");
	}
	(void)fputc('\n', out);
}

static void print_setting(FILE *out, const struct nt_opt *opt)
{
	const char *arg = nt_opt_arg(opt);
	char allowed[NT_OPT_ALLOWED_TEXT];

	(void)fputc('\n', out);
	print_comment(out, opt->help);
	if (opt->kind != NT_OPT_STRING || opt->form)
		print_comment(out, nt_opt_format_allowed(opt, allowed));
	if (opt->kind == NT_OPT_BOOL)
		(void)fprintf(out, "#%s: %s\n", opt->name, opt->def ? opt->def : "false");
	else if (!opt->def || !*opt->def)
		(void)fprintf(out, "#%s: %s\n", opt->name, arg);
	else if (opt->kind == NT_OPT_STRING)
		(void)fprintf(out, "#%s: \"%s\"\n", opt->name, opt->def);
	else
		(void)fprintf(out, "#%s: %s\n", opt->name, opt->def);
}

void nt_opt_print_config(const struct nt_opt_program *program, FILE *out)
{
	(void)fprintf(
		out,
		"# Settings of %s, as comments. Remove the \"#\" in front of a key to set it.\n"
		"# A value is that of the default, or the name of a value where there is none.\n"
		"# A variable such as NT_SOME_NAME and an option --some-name precede this file.\n",
		program->name);
	for (size_t i = 0; i < program->opt_count; i++)
		if (!(program->opts[i].flags & NT_OPT_CLI_ONLY))
			print_setting(out, &program->opts[i]);
}
