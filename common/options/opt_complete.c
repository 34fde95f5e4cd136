/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Generates completions of a program's options and commands for bash and zsh, and passes on to fish's. */
#include "common/options/opt_print.h"

#include <stdbool.h>
#include <string.h>

/* "neutracer jobs" → "neutracer_jobs": a valid name of a shell function. */
static void function_name(FILE *out, const char *program, const char *command)
{
	(void)fputs("_nt_", out);
	for (const char *c = program; *c; c++)
		(void)fputc(*c == '-' || *c == ' ' ? '_' : *c, out);
	if (*command)
		(void)fputc('_', out);
	for (const char *c = command; *c; c++)
		(void)fputc(*c == '-' ? '_' : *c, out);
}

static void bash_begin(const struct nt_opt_program *program, FILE *out)
{
	(void)fprintf(out, "# Made by %s --print-completion bash.\n", program->name);
	function_name(out, program->name, "");
	(void)fputs("()\n{\n\tlocal word=${COMP_WORDS[COMP_CWORD]}\n", out);
}

/* A command is completed through its program. */
static void bash_end(const struct nt_opt_program *program, FILE *out)
{
	(void)fputs("}\n", out);
	if (strchr(program->name, ' '))
		return;
	(void)fputs("complete -o default -F ", out);
	function_name(out, program->name, "");
	(void)fprintf(out, " %s\n", program->name);
}

/* Candidates for the value of an option, by name; NULL: unknown. */
static const char *words_of(const struct nt_opt *opt)
{
	return opt->choices ? opt->choices : opt->words;
}

static bool is_arg(const struct nt_opt *opt, const char *arg)
{
	const char *own = nt_opt_arg(opt);

	return own && strcmp(own, arg) == 0;
}

/* Without a match, bash would offer files by default. */
#define BASH_NO_FILES "\t\tcompopt +o default 2>/dev/null\n"

static void bash_value(const struct nt_opt *opt, FILE *out)
{
	const char *words = words_of(opt);

	(void)fprintf(out, "\t--%s)\n", opt->name);
	if (words)
		(void)fprintf(
			out,
			"\t\tmapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\")\n" BASH_NO_FILES,
			words);
	else if (is_arg(opt, "FILE") || is_arg(opt, "DIR"))
		(void)fprintf(out, "\t\tmapfile -t COMPREPLY < <(compgen -%c -- \"$word\")\n",
			      is_arg(opt, "DIR") ? 'd' : 'f');
	else
		(void)fputs("\t\tCOMPREPLY=()\n" BASH_NO_FILES, out);
	(void)fputs("\t\treturn ;;\n", out);
}

static void bash_options(const struct nt_opt_program *program, FILE *out)
{
	bash_begin(program, out);
	(void)fputs("\tcase ${COMP_WORDS[COMP_CWORD - 1]} in\n", out);
	for (size_t i = 0; i < program->opt_count; i++)
		if (program->opts[i].kind != NT_OPT_BOOL)
			bash_value(&program->opts[i], out);
	(void)fputs("\t--config)\n\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
		    "\t\treturn ;;\n\tesac\n",
		    out);
	if (program->arg_words)
		(void)fprintf(
			out,
			"\tif [[ $COMP_CWORD -eq 2 && $word != -* ]]; then\n"
			"\t\tmapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\")\n" BASH_NO_FILES
			"\t\treturn\n\tfi\n",
			program->arg_words);
	(void)fputs("\tmapfile -t COMPREPLY < <(compgen -W '", out);
	for (size_t i = 0; i < program->opt_count; i++)
		(void)fprintf(out, "--%s ", program->opts[i].name);
	(void)fputs("--config --help --version' -- \"$word\")\n", out);
	bash_end(program, out);
}

static void print_names(const struct nt_opt_program *program, FILE *out)
{
	for (size_t i = 0; i < program->command_count; i++)
		(void)fprintf(out, "%s%s", i ? " " : "", program->commands[i].name);
}

static void bash_commands(const struct nt_opt_program *program, FILE *out)
{
	bash_begin(program, out);
	(void)fputs(
		"\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tmapfile -t COMPREPLY < <(compgen -W '",
		out);
	print_names(program, out);
	(void)fputs(" help --help --version' -- \"$word\")\n\t\treturn\n\tfi\n"
		    "\tcase ${COMP_WORDS[1]} in\n\thelp)\n"
		    "\t\t[ \"$COMP_CWORD\" -ne 2 ] || mapfile -t COMPREPLY < <(compgen -W '",
		    out);
	print_names(program, out);
	(void)fputs("' -- \"$word\")\n" BASH_NO_FILES "\t\t;;\n", out);
	for (size_t i = 0; i < program->command_count; i++) {
		(void)fprintf(out, "\t%s) ", program->commands[i].name);
		function_name(out, program->name, program->commands[i].name);
		(void)fputs(" ;;\n", out);
	}
	(void)fputs("\tesac\n", out);
	bash_end(program, out);
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
	(void)fprintf(out, " \\\n\t\t'--%s%s[", opt->name, nt_opt_arg(opt) ? "=" : "");
	print_zsh_text(out, opt->help);
	(void)fputc(']', out);
	if (words_of(opt))
		(void)fprintf(out, ":word:(%s)", words_of(opt));
	else if (is_arg(opt, "FILE") || is_arg(opt, "DIR"))
		(void)fprintf(out, ":%s:_files%s", nt_opt_arg(opt),
			      is_arg(opt, "DIR") ? " -/" : "");
	else if (nt_opt_arg(opt))
		(void)fprintf(out, ":%s: ", nt_opt_arg(opt)); /* nothing is offered */
	(void)fputc('\'', out);
}

/* Arguments of commands are counted from the command's name. */
static void zsh_options(const struct nt_opt_program *program, FILE *out)
{
	function_name(out, program->name, "");
	(void)fputs("()\n{\n\t_arguments", out);
	for (size_t i = 0; i < program->opt_count; i++)
		print_zsh_option(out, &program->opts[i]);
	for (size_t i = 0; i < NT_OPT_BUILTINS; i++)
		print_zsh_option(out, &nt_opt_builtins[i]);
	if (program->arg_words)
		(void)fprintf(out, " \\\n\t\t'1:word:(%s)' \\\n\t\t'*:argument: '",
			      program->arg_words);
	else if (program->args)
		(void)fputs(" \\\n\t\t'*:argument:_files'", out);
	(void)fputs("\n}\n", out);
}

static void zsh_commands(const struct nt_opt_program *program, FILE *out)
{
	function_name(out, program->name, "");
	(void)fputs("()\n{\n\tif ((CURRENT == 2)); then\n\t\tcompadd ", out);
	print_names(program, out);
	(void)fputs(" help\n\t\treturn\n\tfi\n\tshift words\n\t((CURRENT--))\n"
		    "\tcase $words[1] in\n\thelp) ((CURRENT > 2)) || compadd ",
		    out);
	print_names(program, out);
	(void)fputs(" ;;\n", out);
	for (size_t i = 0; i < program->command_count; i++) {
		(void)fprintf(out, "\t%s) ", program->commands[i].name);
		function_name(out, program->name, program->commands[i].name);
		(void)fputs(" ;;\n", out);
	}
	(void)fputs("\tesac\n}\n", out);
}

void nt_opt_print_completion(const struct nt_opt_program *program, const char *shell, FILE *out)
{
	bool zsh = strcmp(shell, "zsh") == 0;

	if (strcmp(shell, "fish") == 0)
		nt_opt_print_completion_fish(program, out);
	else if (zsh && program->commands)
		zsh_commands(program, out);
	else if (zsh)
		zsh_options(program, out);
	else if (program->commands)
		bash_commands(program, out);
	else
		bash_options(program, out);
	if (zsh && !strchr(program->name, ' ')) {
		(void)fprintf(out, "compdef ");
		function_name(out, program->name, "");
		(void)fprintf(out, " %s\n", program->name);
	}
}
