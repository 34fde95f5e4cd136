/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Real interpreters that run a script of the test. NT_PYTHONS: paths, separated by blanks; with
 * ROOT!PATH the interpreter runs in that root directory. Beside these: those of this machine.
 */
#ifndef NT_TESTS_UNIT_AGENT_STACK_LIVE_PYTHON_H
#define NT_TESTS_UNIT_AGENT_STACK_LIVE_PYTHON_H

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"

struct live_python {
	pid_t pid;
	int output; /* the script writes a byte when it is where it shall be */
};

static inline int live_python_ends_with(const char *text, const char *end)
{
	const size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* The path of CPython 3.minor: from the environment, or from the usual places. False: none. */
static inline int live_python_find(int minor, char path[PATH_MAX])
{
	static const char *const places[] = {"/usr/bin", "/usr/local/bin",
					     "/.pyenv/versions/*/bin" /* in the home directory */};
	const char *home = getenv("HOME") ? getenv("HOME") : "/root";
	const char *stated = getenv("NT_PYTHONS");
	char name[32], pattern[PATH_MAX], list[PATH_MAX * 4], *word, *rest = list;
	int found = 0;

	(void)snprintf(name, sizeof(name), "/python3.%d", minor);
	(void)snprintf(list, sizeof(list), "%s", stated ? stated : "");
	while (!found && (word = strsep(&rest, " ")))
		if (live_python_ends_with(word, name)) {
			(void)snprintf(path, PATH_MAX, "%s", word);
			found = 1;
		}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !found; i++) {
		char place[PATH_MAX / 2];
		glob_t files;

		(void)snprintf(place, sizeof(place), "%s%s", i == 2 ? home : "", places[i]);
		(void)snprintf(pattern, sizeof(pattern), "%s%s", place, name);
		if (glob(pattern, 0, NULL, &files) != 0)
			continue;
		for (size_t j = 0; j < files.gl_pathc && !found; j++)
			if (access(files.gl_pathv[j], X_OK) == 0) {
				(void)snprintf(path, PATH_MAX, "%s", files.gl_pathv[j]);
				found = 1;
			}
		globfree(&files);
	}
	return found;
}

static inline void live_python_exec(const char *path, const char *script)
{
	char root[PATH_MAX];
	const char *mark = strchr(path, '!');

	if (mark) {
		(void)snprintf(root, sizeof(root), "%.*s", (int)(mark - path), path);
		if (chroot(root) < 0 || chdir("/") < 0)
			_exit(127);
		path = mark + 1;
	}
	(void)unsetenv("PYTHONPATH");
	(void)execl(path, path, "-S", "-c", script, (char *)NULL);
	_exit(127);
}

/* Starts it and waits for its byte. -1: it does not run here. */
static inline int live_python_start(const char *path, const char *script,
				    struct live_python *ret_python)
{
	int ends[2];
	char byte;

	*ret_python = (struct live_python){.pid = -1, .output = -1};
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	ret_python->pid = fork();
	if (ret_python->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(ends[1], STDOUT_FILENO);
		live_python_exec(path, script);
	}
	(void)close(ends[1]);
	ret_python->output = ends[0];
	return read(ends[0], &byte, 1) == 1 ? 0 : -1;
}

static inline void live_python_end(struct live_python *python)
{
	/* -1 stands for all processes. */
	if (python->pid > 0) {
		(void)kill(python->pid, SIGKILL);
		(void)waitpid(python->pid, NULL, 0);
	}
	if (python->output >= 0)
		(void)close(python->output);
	*python = (struct live_python){.pid = -1, .output = -1};
}

/* The line of the script that holds a mark. */
static inline uint32_t live_python_line(const char *script, const char *mark)
{
	const char *at = strstr(script, mark);
	uint32_t line = 1;

	for (const char *c = script; at && c < at; c++)
		line += *c == '\n';
	return at ? line : 0;
}

#endif
