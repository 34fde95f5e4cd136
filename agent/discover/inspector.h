/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The inspector: a queue of inspections, done by workers while the loop goes on. One worker is the
 * norm; another is started if all are slow, so that one stall delays no other process. An owner has
 * one slow inspection at a time. After NT_INSPECTOR_STALL_NS a worker is killed and the process
 * quarantined. Owners are served round-robin, and each has a share of the queue.
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
	/* queued per process; beyond that the whole process is inspected */
	NT_INSPECTOR_MAPPINGS = 8,
};

#define NT_INSPECTOR_SLOW_NS  50000000ULL
#define NT_INSPECTOR_STALL_NS 5000000000ULL
#define NT_INSPECTOR_IDLE_NS  10000000000ULL /* then idle workers but one are stopped */
#define NT_INSPECTOR_BUSY_NS  20000000000ULL /* timeout without a processor */

struct nt_inspector;
struct nt_inspector_task;

/* The end of a task. The callee may take the descriptor (and set it to -1); else it is closed. */
struct nt_inspector_outcome {
	/*
	 * -ETIMEDOUT: it stalled; -EIO: the worker crashed or used up its processor time; -EBUSY:
	 * the process is quarantined, until nt_quarantine_due(); -ESRCH: it has ended.
	 */
	int result;
	enum nt_answer_kind kind;
	const uint8_t *body;
	size_t len;
	int fd;
};

struct nt_inspector_client {
	/*
	 * result < 0: a file could not be opened; the rest is then NULL and -1. fd is borrowed. NULL:
	 * files are not reported.
	 */
	void (*found)(void *data, const struct nt_inspector_task *task, int result,
		      const struct nt_inspection_file *file, const char *name, int fd);
	void (*done)(void *data, const struct nt_inspector_task *task,
		     struct nt_inspector_outcome *outcome);
	void *data;
};

/* A request, with state that the client keeps in it. */
struct nt_inspector_task {
	struct nt_inspection_request request;
	const struct nt_inspector_client *client; /* borrowed until the task has ended */
	uint64_t start_ns; /* of the process; 0: any that has the pid when the task begins */
	uint64_t begun_ns; /* boot time at which a worker began; set by the inspector */
	struct nt_owner owner; /* of the process when queued; id 0: not known; set too */
	uint64_t seen_ns, exec_ns;
	uint32_t known; /* files */
	bool is_late, is_exec, is_called;
};

struct nt_inspector_hooks {
	/* The owner of a running process. NULL: nt_owner_read(). */
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
/* Ends no task: the clients may be freed already. Accepts NULL. */
void nt_inspector_free(struct nt_inspector *inspector);
NT_DEFINE_AUTO(nt_inspector, nt_inspector_free)

/* An epoll fd, readable when there are answers. */
int nt_inspector_fd(const struct nt_inspector *inspector);

/*
 * Queues a task. path: NULL, or follows the request; fd: borrowed, or -1. -ENOSPC: the queue or the
 * owner's share is full; -ENOMEM. Calls no hook. A task that is covered by a queued one is merged
 * into it, and does not end on its own.
 */
NT_MUST_CHECK int nt_inspector_submit(struct nt_inspector *inspector,
				      const struct nt_inspector_task *task, const char *path,
				      int fd);

/* True if an inspection of the process is pending; false positives are rare. */
bool nt_inspector_has(const struct nt_inspector *inspector, uint32_t pid);

/* Delivers results to the clients and starts queued tasks. Call every 0.1 s, too. */
void nt_inspector_run(struct nt_inspector *inspector);
/* The same until nothing is pending, a worker is slow, or wait_ns has passed. */
void nt_inspector_wait(struct nt_inspector *inspector, uint64_t wait_ns);

/* Boot time at which the oldest pending task was queued; 0: none. */
uint64_t nt_inspector_oldest_ns(const struct nt_inspector *inspector);

void nt_inspector_stats(const struct nt_inspector *inspector, struct nt_inspector_stats *ret_stats);

#endif
