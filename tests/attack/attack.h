/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the attackers share: options, threads' work, processes of another user, and the libraries
 * whose probed functions they call. An attacker that fails to attack ends with status 1: a test
 * must not take that for a defence.
 */
#ifndef NT_ATTACK_H
#define NT_ATTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	ATTACK_NOBODY = 65534,
	ATTACK_TARGET_BYTES = 4096,
};

/* Exactly one of number and text is set; name "help" is taken. */
struct attack_option {
	const char *name;
	const char *help;
	double *number;
	const char **text;
};

typedef long (*attack_call)(const void *a, const void *b, const void *c, const void *d,
			    const void *e, const void *f, const void *g, const void *h);

/* What arguments of calls may point to. */
extern const char attack_target[ATTACK_TARGET_BYTES];

/* Ends the program with status 2 for a wrong option and 0 for --help. Returns optind. */
int attack_options(int argc, char **argv, const struct attack_option *options, size_t count);

/* Prints what failed, with errno, and ends the program with status 1. */
_Noreturn void attack_give_up(const char *what);
/* The same if r is negative; else r. */
long attack_must(long r, const char *what);

/* A line on standard output, at once: what scripts wait for. */
void attack_say(const char *line);

/* This process becomes the user, if it is root, and ends with its parent. */
void attack_become(uid_t user);

/* DIR/NAME; DIR NULL: `lib` beside the program. The caller frees it. */
char *attack_library(const char *dir, const char *name);
/* The library's file, opened. */
int attack_open_library(const char *dir, const char *name);
/* Loads the library that has the function, as cuda…, nccl… and MPI_… say. */
void *attack_function(const char *dir, const char *symbol);

/* Maps the file executable, as a loader does, without running anything of it. */
void attack_map_code(int fd);

/* SIGTERM and SIGINT are taken; waits for one, or for `seconds`. True: signalled. */
void attack_take_signals(void);
bool attack_wait(double seconds);

#endif
