/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion of a program's words by the shells. */
#include "common/opt_print.h"

#include <string.h>

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
	(void)fprintf(out, " \\\n\t'--%s%s[", opt->name, nt_opt_arg(opt) ? "=" : "");
	print_zsh_text(out, opt->help);
	(void)fputc(']', out);
	if (opt->choices)
		(void)fprintf(out, ":word:(%s)", opt->choices);
	else if (nt_opt_arg(opt))
		(void)fprintf(out, ":%s:_files", nt_opt_arg(opt));
	(void)fputc('\'', out);
}

static void print_zsh(const struct nt_opt_program *program, FILE *out)
{
	(void)fprintf(out, "#compdef %s\n# Made by %s --print-completion zsh.\n_arguments",
		      program->name, program->name);
	for (size_t i = 0; i < program->opt_count; i++)
		print_zsh_option(out, &program->opts[i]);
	for (size_t i = 0; i < NT_OPT_BUILTINS; i++)
		print_zsh_option(out, &nt_opt_builtins[i]);
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
