/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The commands of `neutracer`, one row of the table in commands.c each. A command's function gets
 * the name of its option program ("neutracer jobs") as argv[0], and the arguments behind the
 * command's name. It handles --help by nt_opt_load() and returns an exit code of
 * common/options/exit.h.
 */
#ifndef NT_CLI_LIVE_COMMAND_H
#define NT_CLI_LIVE_COMMAND_H

#include <stddef.h>

#include "common/options/opt.h"

struct nt_command {
	const char *name;
	const char *summary; /* one line, lower case, no full stop */
	int (*run)(int argc, char **argv);
};

extern const struct nt_command nt_commands[];
extern const size_t nt_command_count;

/* The row of that name, or NULL. */
const struct nt_command *nt_command_find(const char *name);

/*
 * The body of a command: loads the options into config, which is zeroed, runs, and releases config.
 * run() gets config and returns an exit code, as does this.
 */
int nt_command_main(const struct nt_opt_program *program, int argc, char **argv, void *config,
		    int (*run)(void *config));

int nt_command_slow_ranks(int argc, char **argv);
int nt_command_links(int argc, char **argv);
int nt_command_jobs(int argc, char **argv);
int nt_command_nodes(int argc, char **argv);
int nt_command_incidents(int argc, char **argv);
int nt_command_events(int argc, char **argv);
int nt_command_top(int argc, char **argv);
int nt_command_analyze(int argc, char **argv);
int nt_command_topics(int argc, char **argv);
int nt_command_alert(int argc, char **argv);
int nt_command_audit(int argc, char **argv);
int nt_command_level(int argc, char **argv);
int nt_command_profile(int argc, char **argv);
int nt_command_detail(int argc, char **argv);
int nt_command_node_key(int argc, char **argv);

#endif
