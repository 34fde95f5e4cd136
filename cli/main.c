/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command that a person types: picks the command and hands over. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "common/exit.h"
#include "common/nearest.h"
#include "common/version.h"

static void print_help(FILE *out)
{
	(void)fprintf(out, "Usage: neutracer COMMAND [OPTION]... [ARGUMENT]...\n\n"
			   "neutracer: find the slow rank of a training job, and say why.\n\n"
			   "Commands:\n");
	for (size_t i = 0; i < nt_command_count; i++)
		(void)fprintf(out, "  %-12s %s\n", nt_commands[i].name, nt_commands[i].summary);
	(void)fprintf(out, "  %-12s %s\n", "help", "show this, or the help of a command");
	(void)fprintf(out, "\n\"neutracer help COMMAND\" tells a command's options.\n");
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
static int help(int argc, char **argv)
{
	static char option[] = "--help";
	const struct nt_command *command;

	if (argc < 2) {
		print_help(stdout);
		return NT_EXIT_OK;
	}
	command = nt_command_find(argv[1]);
	if (!command)
		return refuse(argv[1]);
	return command->run(2, (char *[]){argv[1], option, NULL});
}

static int run(int argc, char **argv)
{
	const struct nt_command *command;

	if (argc < 2) {
		print_help(stderr);
		return NT_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--version")) {
		(void)printf("neutracer %s\n", NT_VERSION);
		return NT_EXIT_OK;
	}
	command = nt_command_find(argv[1]);
	return command ? command->run(argc - 1, argv + 1) : refuse(argv[1]);
}

int main(int argc, char **argv)
{
	int code;

	(void)setlocale(LC_CTYPE, "");
	code = run(argc, argv);
	/* A full disk or a closed pipe must not look like an empty answer. */
	if (fflush(stdout) || ferror(stdout)) {
		(void)fprintf(stderr, "neutracer: write the output: %m\n");
		return code ? code : NT_EXIT_SYSTEM;
	}
	return code;
}
