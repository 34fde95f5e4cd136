/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Completions for fish. A command's lines hold where the second word of the command line is its name;
 * files are offered where an option or an argument can be one, and nowhere else.
 */
#include "common/options/opt_print.h"

#include <string.h>

/* Within single quotes of fish. */
static void print_quoted(FILE *out, const char *text)
{
	(void)fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
	(void)fputc('\'', out);
}

/* "complete -c neutracer", with the condition that the command of "neutracer jobs" is typed. */
static void print_subject(FILE *out, const struct nt_opt_program *program)
{
	const size_t len = strcspn(program->name, " ");

	(void)fprintf(out, "complete -c %.*s", (int)len, program->name);
	if (program->name[len])
		(void)fprintf(out, " -n 'string match -q -- %s (commandline -opc)[2]'",
			      program->name + len + 1);
}

static void print_option(FILE *out, const struct nt_opt_program *program, const struct nt_opt *opt)
{
	const char *arg = nt_opt_arg(opt), *words = opt->choices ? opt->choices : opt->words;

	print_subject(out, program);
	(void)fprintf(out, " -l %s", opt->name);
	if (words)
		(void)fprintf(out, " -x -a '%s'", words);
	else if (arg && strcmp(arg, "FILE") == 0)
		(void)fputs(" -r -F", out);
	else if (arg && strcmp(arg, "DIR") == 0)
		(void)fputs(" -x -a '(__fish_complete_directories)'", out);
	else if (arg)
		(void)fputs(" -x", out);
	(void)fputs(" -d ", out);
	print_quoted(out, opt->help);
	(void)fputc('\n', out);
}

static void print_command(FILE *out, const char *program, const char *name, const char *help)
{
	(void)fprintf(out, "complete -c %s -n 'test (count (commandline -opc)) -eq 1' ", program);
	(void)fprintf(out, "%s %s -d ", name[0] == '-' ? "-l" : "-a",
		      name[0] == '-' ? name + 2 : name);
	print_quoted(out, help);
	(void)fputc('\n', out);
}

/* The beginning of a line, before the words that can follow the command. */
static void print_words(FILE *out, const char *program, const char *command)
{
	(void)fprintf(out,
		      "complete -c %.*s -n 'test (count (commandline -opc)) -eq 2; and string "
		      "match -q -- %s (commandline -opc)[2]' -a '",
		      (int)strcspn(program, " "), program, command);
}

void nt_opt_print_completion_fish(const struct nt_opt_program *program, FILE *out)
{
	if (!strchr(program->name, ' '))
		(void)fprintf(out, "complete -c %s -f\n", program->name);
	if (program->commands) {
		for (size_t i = 0; i < program->command_count; i++)
			print_command(out, program->name, program->commands[i].name,
				      program->commands[i].help);
		print_words(out, program->name, "help");
		for (size_t i = 0; i < program->command_count; i++)
			(void)fprintf(out, "%s%s", i ? " " : "", program->commands[i].name);
		(void)fputs("'\n", out);
		print_command(out, program->name, "help", "print the help of a command and exit");
		print_command(out, program->name, "--help", "print this help and exit");
		print_command(out, program->name, "--version", "print the version and exit");
		return;
	}
	for (size_t i = 0; i < program->opt_count; i++)
		print_option(out, program, &program->opts[i]);
	for (size_t i = 0; i < NT_OPT_BUILTINS; i++)
		print_option(out, program, &nt_opt_builtins[i]);
	if (program->arg_words) {
		print_words(out, program->name, strchr(program->name, ' ') + 1);
		(void)fprintf(out, "%s'\n", program->arg_words);
	} else if (program->args) {
		print_subject(out, program);
		(void)fputs(" -F\n", out);
	}
}
