/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A worker: a child process that does blocking work for the loop, one request at a time. Unlike a
 * thread it can be killed, has its own limits, and crashes alone. It holds no descriptor of the
 * agent but its socket. One that cannot be killed (an uninterruptible wait in the kernel) thus
 * keeps no probe or file open.
 *
 * All functions are for the thread that started the worker: the worker dies with that thread.
 */
#ifndef NT_AGENT_DISCOVER_WORKER_H
#define NT_AGENT_DISCOVER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/cleanup.h"

enum {
	NT_WORKER_BYTES = 72 << 10, /* per message */
	/* killed but not dead yet; beyond that none is started */
	NT_WORKERS_LEFT = 16,
};

struct nt_worker;

/* State shared by all workers. Zeroed: none yet. */
struct nt_workers {
	struct nt_worker *spawner; /* NULL: none; workers are forked from the agent itself */
	pid_t left[NT_WORKERS_LEFT];
	size_t lefts;
	uint64_t started, killed; /* so far */
};

/* In the child: serves one request and replies by nt_worker_answer(). fd: passed along, or -1. */
typedef void (*nt_worker_fn)(int socket, const uint8_t *request, size_t len, int fd);

/*
 * Starts the spawner: a process that forks the workers as children of the agent. A worker forked by
 * the agent would keep a copy of each page that the agent modifies later: call this while the agent
 * is small. A spawner that does not answer is abandoned.
 */
NT_MUST_CHECK int nt_workers_begin(struct nt_workers *workers);
void nt_workers_end(struct nt_workers *workers);

/* -EBUSY: too many killed workers are not dead. The caller frees it by nt_worker_kill(). */
NT_MUST_CHECK int nt_worker_start(struct nt_workers *workers, nt_worker_fn fn,
				  struct nt_worker **ret_worker);
/*
 * Kills and releases it without waiting: it is reaped later if it does not die at once. Accepts
 * NULL.
 */
void nt_worker_kill(struct nt_workers *workers, struct nt_worker *worker);
/* Reaps killed workers that have died since. */
void nt_workers_reap(struct nt_workers *workers);

/* Readable when there is an answer, or the worker has died. */
int nt_worker_fd(const struct nt_worker *worker);
pid_t nt_worker_pid(const struct nt_worker *worker);

/*
 * Sends a request; never blocks. fd: passed along, or -1. -EAGAIN: too many requests; -EPIPE: it
 * has died.
 */
NT_MUST_CHECK int nt_worker_send(const struct nt_worker *worker, const void *request, size_t len,
				 int fd);
/*
 * Takes the next answer and returns its length. *ret_fd: passed along, for the caller to close, or
 * -1. -EAGAIN: none yet; -EPIPE: the worker has died.
 */
NT_MUST_CHECK ssize_t nt_worker_take(const struct nt_worker *worker, void *buf, size_t size,
				     int *ret_fd);

/* True if it is blocked: neither running nor runnable. */
bool nt_worker_waits(const struct nt_worker *worker);

/* In the child: sends an answer; blocks until the agent takes it. */
void nt_worker_answer(int socket, const void *answer, size_t len, int fd);
/* In the child: limits its further processor time; the kernel kills it beyond that. */
void nt_worker_limit_cpu(unsigned int seconds);

#endif
