/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A worker: a child process that does for the loop what may block, one request at a time. A process,
 * because unlike a thread it can be killed, has limits of its own, and takes nothing with it when it
 * crashes. It holds no descriptor of the agent but its socket, so that one that cannot be killed (an
 * uninterruptible wait in the kernel) keeps no probe and no file of ours alive.
 *
 * All functions are for the thread that started the worker: its end is the worker's, too.
 */
#ifndef NT_AGENT_DISCOVER_WORKER_H
#define NT_AGENT_DISCOVER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/cleanup.h"

enum {
	NT_WORKER_BYTES = 72 << 10, /* of one message */
	/* that were killed and have not died yet; beyond that none is started */
	NT_WORKERS_LEFT = 16,
};

struct nt_worker;

/* What all workers of the agent have in common. Zeroed: none yet. */
struct nt_workers {
	struct nt_worker *spawner; /* NULL: none; workers are forked from the agent itself */
	pid_t left[NT_WORKERS_LEFT];
	size_t lefts;
	uint64_t started, killed; /* so far */
};

/* In the child: serves one request, and answers by nt_worker_answer(). fd: passed along, or -1. */
typedef void (*nt_worker_fn)(int socket, const uint8_t *request, size_t len, int fd);

/*
 * Starts the spawner: a process that forks the workers in place of the agent, whose children they are
 * all the same. A worker that the agent forked itself would keep a copy of each page that the agent
 * writes to from then on: call this while the agent is small. One that does not answer is given up.
 */
NT_MUST_CHECK int nt_workers_begin(struct nt_workers *workers);
void nt_workers_end(struct nt_workers *workers);

/* -EBUSY: too many were left behind. The caller kills it by nt_worker_kill(). */
NT_MUST_CHECK int nt_worker_start(struct nt_workers *workers, nt_worker_fn fn,
				  struct nt_worker **ret_worker);
/* Releases it. Does not wait: one that does not die at once is left behind. Accepts NULL. */
void nt_worker_kill(struct nt_workers *workers, struct nt_worker *worker);
/* Reaps those left behind that have died since. */
void nt_workers_reap(struct nt_workers *workers);

/* Readable when an answer is there, or the worker has died. */
int nt_worker_fd(const struct nt_worker *worker);
pid_t nt_worker_pid(const struct nt_worker *worker);

/* Never blocks. fd: passed along, or -1. -EAGAIN: it has too many requests; -EPIPE: it has died. */
NT_MUST_CHECK int nt_worker_ask(const struct nt_worker *worker, const void *request, size_t len,
				int fd);
/*
 * The next answer, of which the length is returned; *ret_fd is passed along or -1, the caller's to
 * close. -EAGAIN: none yet; -EPIPE: the worker has died.
 */
NT_MUST_CHECK ssize_t nt_worker_take(const struct nt_worker *worker, void *buf, size_t size,
				     int *ret_fd);

/* It waits for something: neither runs nor would if there were a processor free. */
bool nt_worker_waits(const struct nt_worker *worker);

/* In the child. Blocks until the agent takes it. */
void nt_worker_answer(int socket, const void *answer, size_t len, int fd);
/* In the child: the kernel kills it when it has used so much processor time more. */
void nt_worker_limit_cpu(unsigned int seconds);

#endif
