/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/attack/attack.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/job.h"

enum {
	OPTIONS_MAX = 16,
	PATH_BYTES = 4096,
	CODE_BYTES = 4096,
};

const char attack_target[ATTACK_TARGET_BYTES];

/* The file that a probed function lies in, by the beginning of its name. */
static const struct {
	const char *prefix, *library;
} libraries[] = {
	{"cuda", "libcudart.so.13"},
	{"nccl", "libnccl.so.2"},
	{"MPI_", "libmpi.so.40"},
};

static void print_usage(FILE *out, const char *program, const struct attack_option *options,
			size_t count)
{
	(void)fprintf(out, "usage: %s [options]\n", program);
	for (size_t i = 0; i < count; i++)
		(void)fprintf(out, "  --%-14s %s\n", options[i].name, options[i].help);
}

int attack_options(int argc, char **argv, const struct attack_option *options, size_t count)
{
	struct option known[OPTIONS_MAX + 2] = {0};
	int key;

	if (count > OPTIONS_MAX)
		abort();
	for (size_t i = 0; i < count; i++)
		known[i] = (struct option){options[i].name, required_argument, NULL, (int)i};
	known[count] = (struct option){"help", no_argument, NULL, OPTIONS_MAX};
	while ((key = getopt_long(argc, argv, "+", known, NULL)) != -1) {
		const struct attack_option *option = &options[key];

		if (key == OPTIONS_MAX) {
			print_usage(stdout, argv[0], options, count);
			exit(0);
		}
		if (key == '?' || (option->number && sim_number(optarg, option->number) < 0)) {
			print_usage(stderr, argv[0], options, count);
			exit(2);
		}
		if (option->text)
			*option->text = optarg;
	}
	return optind;
}

_Noreturn void attack_give_up(const char *what)
{
	(void)fprintf(stderr, "attack: %s: %s\n", what, strerrordesc_np(errno));
	_exit(1);
}

long attack_must(long r, const char *what)
{
	if (r < 0)
		attack_give_up(what);
	return r;
}

void attack_say(const char *line)
{
	(void)printf("%s\n", line);
	(void)fflush(stdout);
}

void attack_become(uid_t user)
{
	if (geteuid() == 0 && user != 0) {
		(void)attack_must(setgroups(0, NULL), "leave all groups");
		(void)attack_must(setresgid(user, user, user), "become the group");
		(void)attack_must(setresuid(user, user, user), "become the user");
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* becoming another user has cleared it */
}

char *attack_library(const char *dir, const char *name)
{
	char self[PATH_BYTES], *path = NULL;
	ssize_t n;

	if (dir) {
		(void)attack_must(asprintf(&path, "%s/%s", dir, name), "name the library");
		return path;
	}
	n = attack_must(readlink("/proc/self/exe", self, sizeof(self) - 1), "find the program");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	(void)attack_must(asprintf(&path, "%s/lib/%s", self, name), "name the library");
	return path;
}

int attack_open_library(const char *dir, const char *name)
{
	char *path = attack_library(dir, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)attack_must(fd, path);
	free(path);
	return fd;
}

void *attack_function(const char *dir, const char *symbol)
{
	const char *name = NULL;
	void *handle, *call;
	char *path;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (strncmp(symbol, libraries[i].prefix, strlen(libraries[i].prefix)) == 0)
			name = libraries[i].library;
	errno = EINVAL;
	if (!name)
		attack_give_up(symbol);
	path = attack_library(dir, name);
	handle = dlopen(path, RTLD_NOW);
	call = handle ? dlsym(handle, symbol) : NULL;
	if (!call)
		attack_give_up(handle ? symbol : path);
	free(path);
	return call;
}

void attack_map_code(int fd)
{
	if (mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		attack_give_up("map the library");
}

static void end_set(sigset_t *ret_set)
{
	(void)sigemptyset(ret_set);
	(void)sigaddset(ret_set, SIGTERM);
	(void)sigaddset(ret_set, SIGINT);
}

void attack_take_signals(void)
{
	sigset_t set;

	end_set(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

bool attack_wait(double seconds)
{
	struct timespec most = {.tv_sec = (time_t)seconds,
				.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
	sigset_t set;

	end_set(&set);
	return sigtimedwait(&set, NULL, &most) > 0;
}
