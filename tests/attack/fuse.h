/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file system of one file whose server stops answering: the kernel's interface alone, no library.
 * As on a hung network file system, whoever needs a page or an attribute of it then waits in the
 * kernel, where no signal ends it.
 */
#ifndef NT_ATTACK_FUSE_H
#define NT_ATTACK_FUSE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUSE_FILE "libnccl.so.2"

struct fuse {
	int fd;
	const uint8_t *bytes; /* of the file; not owned */
	size_t size;
	atomic_bool stalls;
	atomic_uint stalled; /* requests that were not answered */
	atomic_uint opened; /* times that the file was opened */
	pthread_t thread;
};

/* Mounts it on DIR, in this process's mount namespace, and answers from a thread. */
void fuse_start(struct fuse *fuse, const char *dir, const uint8_t *bytes, size_t size);
/* Nothing is answered from here on. */
void fuse_stall(struct fuse *fuse);
/* Every waiting request fails, as when the server ends: nobody waits any longer. */
void fuse_end(struct fuse *fuse, const char *dir);

#endif
