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
	struct owner *owner;
	UT_hash_handle hh;
};

/* Whose files they are: who may write many cannot flush those of others. */
struct owner {
	uid_t uid;
	size_t programs;
	UT_hash_handle hh;
};

struct nt_programs {
	struct program *program; /* uthash, owned; in the order of their coming */
	struct owner *owner; /* uthash by uid, owned */
	uint64_t over_cap;
};

struct nt_programs *nt_programs_new(void)
{
	return calloc(1, sizeof(struct nt_programs));
}

static void forget(struct nt_programs *programs, struct program *program)
{
	struct owner *owner = program->owner;

	if (--owner->programs == 0) {
		HASH_DEL(programs->owner, owner);
		free(owner);
	}
	HASH_DEL(programs->program, program);
	free(program);
}

/* The oldest of the user with the most. */
static void forget_one(struct nt_programs *programs)
{
	const struct owner *most = programs->owner;
	struct program *program = programs->program;

	for (const struct owner *owner = programs->owner; owner; owner = owner->hh.next) {
		if (owner->programs > most->programs)
			most = owner;
	}
	while (program->owner != most)
		program = program->hh.next;
	forget(programs, program);
	programs->over_cap++;
}

static struct owner *take_owner(struct nt_programs *programs, uid_t uid)
{
	struct owner *owner = NULL;

	HASH_FIND(hh, programs->owner, &uid, sizeof(uid), owner);
	if (owner)
		return owner;
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return NULL;
	owner->uid = uid;
	HASH_ADD(hh, programs->owner, uid, sizeof(owner->uid), owner);
	return owner;
}

void nt_programs_free(struct nt_programs *programs)
{
	struct program *program, *next;

	if (!programs)
		return;
	HASH_ITER(hh, programs->program, program, next)
	forget(programs, program);
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
	if (HASH_COUNT(programs->program) >= NT_PROGRAMS_MAX)
		forget_one(programs);
	program = calloc(1, sizeof(*program));
	if (!program)
		return false;
	program->owner = take_owner(programs, st->st_uid);
	if (!program->owner) {
		free(program);
		return false;
	}
	program->owner->programs++;
	program->key = key;
	program->holds = holds_library(path);
	HASH_ADD(hh, programs->program, key, sizeof(program->key), program);
	return program->holds;
}

uint64_t nt_programs_over_cap(const struct nt_programs *programs)
{
	return programs->over_cap;
}
