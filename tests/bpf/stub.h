/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stand-in libraries made from the table of probes itself: one per library of the table, under its
 * real name, with a function for every row. Each function calls a hook, so that a test can wait in
 * it, call another from inside, or leave it by longjmp.
 *
 * NT_STUBS names a directory in which they are kept, for machines where compiling takes long: the
 * first run of a test fills it.
 */
#ifndef NT_TESTS_BPF_STUB_H
#define NT_TESTS_BPF_STUB_H

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/probes/probe.h"
#include "common/base/hash.h"

enum {
	STUB_RESULT = 1000, /* a function returns its row and this */
	STUB_ARGS = 24, /* words that every call passes: enough for 128 bytes from word 6 on */
};

extern char **environ;

static const char *const stub_file[NT_LIBRARY_END] = {
	[NT_LIBRARY_NCCL] = "libnccl.so.2", [NT_LIBRARY_RCCL] = "librccl.so.1",
	[NT_LIBRARY_HCCL] = "libhccl.so",   [NT_LIBRARY_MPI] = "libmpi.so.40",
	[NT_LIBRARY_GLOO] = "libgloo.so.0", [NT_LIBRARY_CUDART] = "libcudart.so.13",
	[NT_LIBRARY_CUDA] = "libcuda.so.1",
};

typedef uint64_t (*stub_fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			    uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			    uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			    uint64_t, uint64_t, uint64_t);

struct stub {
	char path[2 * PATH_MAX];
	void *handle;
	void (**hook)(void);
	struct stat st;
};

/* Runs a program and waits for it. Its exit status, or -1. */
static inline int stub_run(const char *const *argv)
{
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0 ||
	    waitpid(pid, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A shared library out of source text. extra: one more argument for the compiler, or NULL. */
static inline bool stub_compile(const char *path, const char *language, const char *source,
				const char *extra)
{
	char text[2 * PATH_MAX + 8];
	FILE *file;
	const char *const argv[] = {"cc", "-O1", "-w", "-fPIC", "-shared", "-nostdlib",
				    /* The frame first, so that a function starts with a push. */
				    "-fno-shrink-wrap", "-fcf-protection=none", "-x", language,
				    text, "-o", path, extra, NULL};

	(void)snprintf(text, sizeof(text), "%s.src", path);
	file = fopen(text, "we");
	if (!file)
		return false;
	(void)fputs(source, file);
	(void)fclose(file);
	return stub_run(argv) == 0 && unlink(text) == 0;
}

static inline bool stub_make(enum nt_library library, const char *path)
{
	char *source = NULL;
	size_t len = 0;
	FILE *text = open_memstream(&source, &len);
	bool ok;

	if (!text)
		return false;
	(void)fputs("void (*stub_hook)(void);\n", text);
	for (uint16_t row = 0; row < nt_probe_rows(); row++)
		if (nt_probe_row(row)->library == library)
			(void)fprintf(text,
				      "unsigned long %s(void) { if (stub_hook) stub_hook(); "
				      "__asm__ volatile(\"\" ::: \"%s\"); return %u; }\n",
				      nt_probe_row(row)->symbol,
#if defined(__aarch64__)
				      "x19",
#else
				      "rbx",
#endif
				      row + STUB_RESULT);
	(void)fclose(text);
	ok = stub_compile(path, "c", source, NULL);
	free(source);
	return ok;
}

/* Where stand-ins are made; removed by stub_clean(). */
static char stub_dir[PATH_MAX];

/* Another table makes other libraries. */
static inline uint64_t stub_version(void)
{
	uint64_t hash = NT_HASH_SEED;

	for (uint16_t row = 0; row < nt_probe_rows(); row++)
		hash = nt_hash_text(hash, nt_probe_row(row)->symbol);
	return hash;
}

static inline bool stub_begin(void)
{
	const char *kept = getenv("NT_STUBS");

	if (kept) {
		(void)snprintf(stub_dir, sizeof(stub_dir), "%s/%016llx", kept,
			       (unsigned long long)stub_version());
		return mkdir(stub_dir, 0755) == 0 || errno == EEXIST;
	}
	(void)snprintf(stub_dir, sizeof(stub_dir), "%s/nt-stub-XXXXXX",
		       getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return mkdtemp(stub_dir) != NULL;
}

/* NT_STUBS_ONLY: they are wanted now, the tests elsewhere. */
static inline bool stub_only(void)
{
	return getenv("NT_STUBS_ONLY") != NULL;
}

static inline void stub_clean(void)
{
	const char *const argv[] = {"rm", "-rf", stub_dir, NULL};

	if (!getenv("NT_STUBS") && stub_dir[0])
		(void)stub_run(argv);
}

static inline bool stub_load(struct stub *stub, const char *path)
{
	(void)snprintf(stub->path, sizeof(stub->path), "%s", path);
	stub->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!stub->handle || stat(path, &stub->st) < 0)
		return false;
	stub->hook = (void (**)(void))dlsym(stub->handle, "stub_hook");
	return true;
}

static inline bool stub_open(struct stub *stub, enum nt_library library)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", stub_dir, stub_file[library]) >=
	    (int)sizeof(path))
		return false;
	if (access(path, R_OK) < 0 && !stub_make(library, path))
		return false;
	return stub_load(stub, path) && stub->hook;
}

static inline uint64_t stub_call_at(void *function, const uint64_t *a)
{
	stub_fn fn = (stub_fn)function;

	return fn(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
		  a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23]);
}

static inline uint64_t stub_call(const struct stub *stub, const char *symbol, const uint64_t *args)
{
	void *function = dlsym(stub->handle, symbol);

	return function ? stub_call_at(function, args) : 0;
}

#endif
