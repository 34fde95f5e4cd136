/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A queue of inspections that workers do while the loop goes on. Mostly there is one worker; where all
 * are slow, another one is started, so that who stalls one delays nobody else. An owner has one slow
 * inspection at a time, and what is not done after NT_INSPECTOR_STALL_NS is given up: the worker is
 * killed, and the process quarantined. Owners take turns, and have shares of the queue's places.
 */
#ifndef NT_AGENT_DISCOVER_INSPECTOR_H
#define NT_AGENT_DISCOVER_INSPECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/discover/inspection.h"
#include "agent/discover/quarantine.h"
#include "agent/discover/worker.h"
#include "agent/identity/owner.h"
#include "common/base/cleanup.h"

enum {
	NT_INSPECTOR_WORKERS = 3, /* at a time; each may hold some 10 MiB */
	NT_INSPECTOR_TASKS = 8192, /* queued, of all owners; more are refused, and counted */
	/* of one process, queued; for more the whole of it is looked at */
	NT_INSPECTOR_MAPPINGS = 8,
};

#define NT_INSPECTOR_SLOW_NS  50000000ULL
#define NT_INSPECTOR_STALL_NS 5000000000ULL
#define NT_INSPECTOR_IDLE_NS  10000000000ULL /* then one worker is enough again */
#define NT_INSPECTOR_BUSY_NS  20000000000ULL /* for a worker that gets no processor */

struct nt_inspector;
struct nt_inspector_task;

/* The end of a task. The descriptor is the callee's to take (set to -1), else it is closed. */
struct nt_inspector_outcome {
	/*
	 * -ETIMEDOUT: it stalled; -EIO: the worker died of it, or used up its processor time; -EBUSY:
	 * the process is quarantined, and comes back by nt_quarantine_due(); -ESRCH: it has ended.
	 */
	int result;
	enum nt_answer_kind kind;
	const uint8_t *body;
	size_t len;
	int fd;
};

struct nt_inspector_client {
	/* result < 0: a file that could not be had; the rest is then NULL and -1. fd is borrowed. */
	void (*found)(void *data, const struct nt_inspector_task *task, int result,
		      const struct nt_inspection_file *file, const char *name, int fd);
	void (*done)(void *data, const struct nt_inspector_task *task,
		     struct nt_inspector_outcome *outcome);
	void *data;
};

/* What is to be done, and what the client wants to remember of it. */
struct nt_inspector_task {
	struct nt_inspection_request request;
	const struct nt_inspector_client *client; /* borrowed until the task has ended */
	uint64_t start_ns; /* of the process; 0: the one that has this number when its turn comes */
	uint64_t asked_ns; /* boot time at which a worker began; set by the inspector */
	struct nt_owner owner; /* of the process when it was asked; id 0: not known; set as well */
	uint64_t seen_ns, exec_ns;
	uint32_t known; /* files */
	bool is_late, is_exec, is_called;
};

struct nt_inspector_hooks {
	/* Of a living process. NULL: nt_owner_read(). */
	int (*owner)(void *data, uint32_t pid, struct nt_owner *ret_owner);
	void (*stalled)(void *data, uint32_t pid, const struct nt_owner *owner, bool held);
	void *data;
};

struct nt_inspector_stats {
	uint64_t pending; /* now */
	uint64_t stalled, died, refused, over_cap; /* so far */
};

/* workers and quarantine are borrowed. */
NT_MUST_CHECK int nt_inspector_new(struct nt_workers *workers, struct nt_quarantine *quarantine,
				   const struct nt_inspector_hooks *hooks,
				   struct nt_inspector **ret_inspector);
/* Ends no task: the clients may be gone. Accepts NULL. */
void nt_inspector_free(struct nt_inspector *inspector);
NT_DEFINE_AUTO(nt_inspector, nt_inspector_free)

/* Readable (epoll) when there are answers. */
int nt_inspector_fd(const struct nt_inspector *inspector);

/*
 * path: NULL, or what follows the request; fd: borrowed, or -1. -ENOSPC: the owner has its share of the
 * queue, or that is full; -ENOMEM. Calls nothing. What a task that is still queued will report anyhow is
 * not queued again, and has no end of its own.
 */
NT_MUST_CHECK int nt_inspector_ask(struct nt_inspector *inspector,
				   const struct nt_inspector_task *task, const char *path, int fd);

/* Is something about the process pending? Rarely true where nothing is. */
bool nt_inspector_has(const struct nt_inspector *inspector, uint32_t pid);

/* Calls the clients with what is new, and goes on with the queue. Call every 0.1 s, too. */
void nt_inspector_run(struct nt_inspector *inspector);
/* The same until nothing is pending, a worker is slow, or so much time has passed. */
void nt_inspector_wait(struct nt_inspector *inspector, uint64_t wait_ns);

/* Boot time since when the oldest task waits; 0: there is none. */
uint64_t nt_inspector_oldest_ns(const struct nt_inspector *inspector);

void nt_inspector_stats(const struct nt_inspector *inspector, struct nt_inspector_stats *ret_stats);

#endif
