/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The `neutracer` program: finds the command and runs it. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cli/live/command.h"
#include "common/base/nearest.h"
#include "common/options/exit.h"
#include "common/options/opt.h"

enum {
	MAX_COMMANDS = 32,
};

/* The program as seen by its help, manual and shell completions. */
static struct nt_opt_program describe(struct nt_opt_command rows[MAX_COMMANDS])
{
	size_t count = nt_command_count < MAX_COMMANDS ? nt_command_count : MAX_COMMANDS;

	for (size_t i = 0; i < count; i++)
		rows[i] = (struct nt_opt_command){nt_commands[i].name, nt_commands[i].summary};
	return (struct nt_opt_program){
		.name = "neutracer",
		.section = 1,
		.summary = "find the slow rank of a training job and its cause",
		.description = "Queries a running neutracer-aggregator over its REST interface, or "
			       "evaluates recorded files by the same rules.",
		.commands = rows,
		.command_count = count,
	};
}

static int refuse(const char *name)
{
	struct nt_nearest nearest = {.name = name};

	for (size_t i = 0; i < nt_command_count; i++)
		nt_nearest_try(&nearest, nt_commands[i].name);
	(void)fprintf(stderr, "neutracer: there is no command '%.64s'", name);
	if (nearest.best)
		(void)fprintf(stderr, "; did you mean '%s'?\n", nearest.best);
	else
		(void)fprintf(stderr, "; \"neutracer help\" lists them\n");
	return NT_EXIT_USAGE;
}

/* "neutracer help jobs" is "neutracer jobs --help". */
static int help(const struct nt_opt_program *program, int argc, char **argv)
{
	static char option[] = "--help";
	const struct nt_command *command;

	if (argc < 2) {
		(void)nt_opt_answer(program, option, NULL);
		return NT_EXIT_OK;
	}
	command = nt_command_find(argv[1]);
	if (!command)
		return refuse(argv[1]);
	return command->run(2, (char *[]){argv[1], option, NULL});
}

/* The completions of the commands precede that of the program, which refers to them. */
static void complete_commands(char *option, char *shell)
{
	for (size_t i = 0; i < nt_command_count; i++)
		(void)nt_commands[i].run(3, (char *[]){option, option, shell, NULL});
}

static int run(int argc, char **argv)
{
	struct nt_opt_command rows[MAX_COMMANDS];
	const struct nt_opt_program program = describe(rows);
	const struct nt_command *command;
	char *shell = argc == 3 ? argv[2] : NULL;

	if (argc < 2) {
		(void)fprintf(stderr,
			      "neutracer: no command given; \"neutracer help\" lists them\n");
		return NT_EXIT_USAGE;
	}
	if (strcmp(argv[1], "help") == 0)
		return help(&program, argc - 1, argv + 1);
	if (strcmp(argv[1], "--print-completion") == 0 && shell)
		complete_commands(argv[1], shell);
	if (nt_opt_answer(&program, argv[1], shell))
		return NT_EXIT_OK;
	command = nt_command_find(argv[1]);
	return command ? command->run(argc - 1, argv + 1) : refuse(argv[1]);
}

int main(int argc, char **argv)
{
	int code;

	(void)setlocale(LC_CTYPE, "");
	code = run(argc, argv);
	/* A full disk or a closed pipe must not look like an empty result. */
	if (fflush(stdout) || ferror(stdout)) {
		(void)fprintf(stderr, "neutracer: write the output: %m\n");
		return code ? code : NT_EXIT_SYSTEM;
	}
	return code;
}
