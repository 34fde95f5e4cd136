/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/program.h"

#include <fcntl.h>
#include <string.h>
#include <uthash.h>

#include "agent/symbols.h"
#include "common/clock.h"

/* A changed file is another program. */
struct key {
	dev_t dev;
	ino_t ino;
	int64_t size, changed_ns;
};

struct program {
	struct key key;
	bool holds;
	UT_hash_handle hh;
};

struct nt_programs {
	struct program *program;
	uint64_t over_cap;
};

struct nt_programs *nt_programs_new(void)
{
	return calloc(1, sizeof(struct nt_programs));
}

static void forget_all(struct nt_programs *programs)
{
	struct program *program, *next;

	HASH_ITER(hh, programs->program, program, next)
	{
		HASH_DEL(programs->program, program);
		free(program);
	}
}

void nt_programs_free(struct nt_programs *programs)
{
	if (!programs)
		return;
	forget_all(programs);
	free(programs);
}

static bool holds_library(const char *path)
{
	/* Not blocking: the path may lead to a pipe or a device by now. */
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	nt_autofree struct nt_symbols *symbols = calloc(1, sizeof(*symbols));

	return fd >= 0 && symbols && nt_symbols_read(fd, NULL, NT_LIBRARY_UNKNOWN, symbols) >= 0 &&
	       symbols->holds;
}

bool nt_programs_hold(struct nt_programs *programs, const char *path, const struct stat *st)
{
	struct program *program;
	struct key key;

	memset(&key, 0, sizeof(key)); /* the padding is part of the hash */
	key.dev = st->st_dev;
	key.ino = st->st_ino;
	key.size = st->st_size;
	key.changed_ns = st->st_ctim.tv_sec * (int64_t)NT_SECOND + st->st_ctim.tv_nsec;
	HASH_FIND(hh, programs->program, &key, sizeof(key), program);
	if (program)
		return program->holds;
	if (HASH_COUNT(programs->program) >= NT_PROGRAMS_MAX) {
		programs->over_cap++;
		forget_all(programs);
	}
	program = calloc(1, sizeof(*program));
	if (!program)
		return false;
	program->key = key;
	program->holds = holds_library(path);
	HASH_ADD(hh, programs->program, key, sizeof(program->key), program);
	return program->holds;
}

uint64_t nt_programs_over_cap(const struct nt_programs *programs)
{
	return programs->over_cap;
}
