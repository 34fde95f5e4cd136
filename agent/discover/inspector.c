/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/inspector_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/host/proc.h"
#include "common/base/hash.h"
#include "common/system/clock.h"

enum {
	SCAN_TASKS = 64, /* of one owner, searched for one that may begin */
};

static uint16_t *pending_of(struct nt_inspector *inspector, uint32_t pid)
{
	return &inspector->pending[nt_hash_mix(pid) % NT_INSPECTOR_PIDS];
}

static void free_task(struct nt_inspector *inspector, struct nt_inspector_entry *task)
{
	if (!task)
		return;
	--*pending_of(inspector, task->task.request.pid);
	nt_share_leave(&inspector->share, &task->place);
	nt_closep(&task->fd);
	free(task->path);
	free(task);
}

int nt_inspector_new(struct nt_workers *workers, struct nt_quarantine *quarantine,
		     const struct nt_inspector_hooks *hooks, struct nt_inspector **ret_inspector)
{
	nt_auto(nt_inspector) struct nt_inspector *inspector = calloc(1, sizeof(*inspector));

	if (!inspector)
		return -ENOMEM;
	inspector->workers = workers;
	inspector->quarantine = quarantine;
	inspector->hooks = *hooks;
	nt_share_init(&inspector->share, NT_INSPECTOR_TASKS);
	inspector->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (inspector->epoll < 0)
		return -errno;
	*ret_inspector = nt_take(inspector);
	return 0;
}

void nt_inspector_free(struct nt_inspector *inspector)
{
	if (!inspector)
		return;
	for (size_t i = 0; i < NT_INSPECTOR_WORKERS; i++) {
		nt_worker_kill(inspector->workers, inspector->slot[i].worker);
		free_task(inspector, inspector->slot[i].task);
	}
	while (inspector->turn)
		free_task(inspector, nt_inspector_take_out(inspector, &inspector->turn->first));
	nt_share_release(&inspector->share);
	nt_closep(&inspector->epoll);
	free(inspector);
}

int nt_inspector_fd(const struct nt_inspector *inspector)
{
	return inspector->epoll;
}

static void learn_owner(const struct nt_inspector *inspector, struct nt_inspector_task *task)
{
	const struct nt_inspector_hooks *hooks = &inspector->hooks;
	int r;

	if (hooks->owner)
		r = hooks->owner(hooks->data, task->request.pid, &task->owner);
	else
		r = nt_owner_read(task->request.pid, &task->owner);
	if (r < 0)
		task->owner.id = 0;
}

static int fill(struct nt_inspector_entry *task, const char *path, int fd)
{
	task->queued_ns = nt_clock_boot_ns();
	if (path)
		task->path = strdup(path);
	if (fd >= 0)
		task->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return (path && !task->path) || (fd >= 0 && task->fd < 0) ? -ENOMEM : 0;
}

static int queue_task(struct nt_inspector *inspector, const struct nt_inspector_task *task,
		      const char *path, int fd)
{
	struct nt_inspector_entry *added = calloc(1, sizeof(*added));
	int r;

	if (!added)
		return -ENOMEM;
	added->task = *task;
	added->fd = -1;
	learn_owner(inspector, &added->task);
	++*pending_of(inspector, task->request.pid);
	r = fill(added, path, fd);
	if (r == 0)
		r = nt_inspector_queue(inspector, added);
	if (r < 0)
		free_task(inspector, added);
	return r;
}

static void join(struct nt_inspector_task *queued, const struct nt_inspector_task *task)
{
	queued->is_called |= task->is_called;
	if (!task->is_exec)
		return;
	queued->exec_ns = task->exec_ns;
	queued->known = task->known;
}

/* A process may map and unmap at a high rate: its owner is read only for queued tasks. */
int nt_inspector_submit(struct nt_inspector *inspector, const struct nt_inspector_task *task,
			const char *path, int fd)
{
	struct nt_inspector_entry *equal = nt_inspector_find_equal(inspector, task, path);
	struct nt_inspector_task whole = *task;

	if (equal) {
		join(&equal->task, task);
		return 0;
	}
	if (task->request.kind != NT_INSPECT_MAPPING ||
	    !nt_inspector_has_many_mappings(inspector, task->request.pid))
		return queue_task(inspector, task, path, fd);
	whole.request = (struct nt_inspection_request){
		.kind = NT_INSPECT_PROCESS,
		.pid = task->request.pid,
		.takes_fuse = task->request.takes_fuse,
	};
	whole.seen_ns = 0;
	return queue_task(inspector, &whole, NULL, -1);
}

bool nt_inspector_has(const struct nt_inspector *inspector, uint32_t pid)
{
	return inspector->pending[nt_hash_mix(pid) % NT_INSPECTOR_PIDS] > 0;
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void finish(struct nt_inspector *inspector, struct nt_inspector_entry *task,
		   struct nt_inspector_outcome *outcome)
{
	const struct nt_inspector_client *client = task->task.client;

	client->done(client->data, &task->task, outcome);
	nt_closep(&outcome->fd);
	free_task(inspector, task);
}

static void fail(struct nt_inspector *inspector, struct nt_inspector_entry *task, int result)
{
	struct nt_inspector_outcome outcome = {.result = result, .kind = NT_ANSWER_DONE, .fd = -1};

	finish(inspector, task, &outcome);
}

/* Frees the slot before the client is called, which may queue more. */
static struct nt_inspector_entry *release(struct nt_inspector *inspector,
					  struct nt_inspector_slot *slot)
{
	struct nt_inspector_entry *task = slot->task;

	slot->task = NULL;
	slot->idle_ns = nt_clock_boot_ns();
	inspector->running -= task != NULL;
	return task;
}

static void drop_worker(struct nt_inspector *inspector, struct nt_inspector_slot *slot)
{
	(void)epoll_ctl(inspector->epoll, EPOLL_CTL_DEL, nt_worker_fd(slot->worker), NULL);
	nt_worker_kill(inspector->workers, slot->worker);
	slot->worker = NULL;
}

static void take_death(struct nt_inspector *inspector, struct nt_inspector_slot *slot)
{
	struct nt_inspector_entry *task = release(inspector, slot);

	drop_worker(inspector, slot);
	inspector->stats.died++;
	if (task)
		fail(inspector, task, -EIO);
}

static void take_stall(struct nt_inspector *inspector, struct nt_inspector_slot *slot)
{
	struct nt_inspector_entry *task = release(inspector, slot);
	uint64_t now_ns = nt_clock_boot_ns();
	bool held;

	drop_worker(inspector, slot);
	inspector->stats.stalled++;
	held = nt_quarantine_strike(inspector->quarantine, task->task.request.pid,
				    task->task.start_ns, task->task.owner.id, now_ns);
	/* The state of a file is kept in the catalog. */
	if (task->task.request.kind != NT_INSPECT_SYMBOLS)
		nt_quarantine_postpone(inspector->quarantine, task->task.request.pid,
				       task->task.start_ns, task->task.owner.id, now_ns);
	inspector->hooks.stalled(inspector->hooks.data, task->task.request.pid, &task->task.owner,
				 held);
	fail(inspector, task, -ETIMEDOUT);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void take_file(const struct nt_inspector_entry *task, int result, const uint8_t *body,
		      size_t len, int fd)
{
	const struct nt_inspector_client *client = task->task.client;
	struct nt_inspection_file file;
	char name[NT_PROC_PATH];

	if (!client->found)
		return;
	if (result == 0 && fd >= 0 && nt_inspection_parse_file(body, len, &file, name) == 0)
		client->found(client->data, &task->task, 0, &file, name, fd);
	else
		client->found(client->data, &task->task, result < 0 ? result : -EBADMSG, NULL, NULL,
			      -1);
}

/* False: no answer is ready. */
static bool take_answer(struct nt_inspector *inspector, struct nt_inspector_slot *slot)
{
	struct nt_inspector_outcome outcome = {.fd = -1};
	struct nt_inspection_answer answer;
	struct nt_inspector_entry *task = slot->task;
	nt_autoclose int fd = -1;
	ssize_t n;

	n = nt_worker_take(slot->worker, inspector->message, sizeof(inspector->message), &fd);
	if (n == -EAGAIN)
		return false;
	if (n < 0 || !task ||
	    nt_inspection_parse(inspector->message, (size_t)n, &answer, &outcome.body,
				&outcome.len) < 0 ||
	    answer.number != task->task.request.number || answer.kind == NT_ANSWER_BYTES) {
		take_death(inspector, slot);
		return false;
	}
	if (answer.kind == NT_ANSWER_FILE) {
		take_file(task, answer.result, outcome.body, outcome.len, fd);
		return true;
	}
	outcome.result = answer.result;
	outcome.kind = answer.kind;
	outcome.fd = nt_take_fd(&fd);
	finish(inspector, release(inspector, slot), &outcome);
	return true;
}

/* ---- the queue ------------------------------------------------------------------------------ */

static bool is_slow(const struct nt_inspector_slot *slot, uint64_t now_ns)
{
	return slot->task && now_ns - slot->task->task.begun_ns >= NT_INSPECTOR_SLOW_NS;
}

/* True if a worker serves the same process, or is kept waiting by the same owner. */
static bool must_wait(const struct nt_inspector *inspector, const struct nt_inspector_entry *task,
		      uint64_t now_ns)
{
	for (size_t i = 0; i < NT_INSPECTOR_WORKERS; i++) {
		const struct nt_inspector_slot *slot = &inspector->slot[i];

		if (slot->task &&
		    (slot->task->task.request.pid == task->task.request.pid ||
		     (is_slow(slot, now_ns) && slot->task->task.owner.id == task->task.owner.id)))
			return true;
	}
	return false;
}

/* 0: it may begin. */
static int judge(struct nt_inspector *inspector, struct nt_inspector_entry *task, uint64_t now_ns)
{
	const uint32_t pid = task->task.request.pid;
	uint64_t start_ns;
	int r;

	/* The symbols do not depend on the process that led to them. */
	if (task->task.request.kind == NT_INSPECT_SYMBOLS)
		return 0;
	r = nt_proc_start_ns(pid, &start_ns);
	if (r < 0 || (task->task.start_ns && task->task.start_ns != start_ns))
		return -ESRCH;
	task->task.start_ns = start_ns;
	if (start_ns > task->queued_ns)
		learn_owner(inspector, &task->task); /* the pid now belongs to another process */
	if (nt_quarantine_is_empty(inspector->quarantine) ||
	    !nt_quarantine_holds(inspector->quarantine, pid, start_ns, task->task.owner.id, now_ns))
		return 0;
	inspector->stats.refused++;
	nt_quarantine_postpone(inspector->quarantine, pid, start_ns, task->task.owner.id, now_ns);
	return -EBUSY;
}

/* NULL: no task of the line may begin. */
static struct nt_inspector_entry **first_ready(const struct nt_inspector *inspector,
					       struct nt_inspector_line *line, uint64_t now_ns)
{
	struct nt_inspector_entry **at = &line->first;

	for (int i = 0; i < SCAN_TASKS && *at; i++, at = &(*at)->next)
		if (!must_wait(inspector, *at, now_ns))
			return at;
	return NULL;
}

/* Takes the first task that may begin, in round-robin order of the owners. NULL: none. */
static struct nt_inspector_entry *next_task(struct nt_inspector *inspector, uint64_t now_ns)
{
	for (struct nt_inspector_line *line = inspector->turn; line; line = line->next) {
		struct nt_inspector_entry **at = first_ready(inspector, line, now_ns);

		if (at)
			return nt_inspector_take_out(inspector, at);
	}
	return NULL;
}

static int send(struct nt_inspector *inspector, struct nt_inspector_slot *slot,
		struct nt_inspector_entry *task)
{
	struct {
		struct nt_inspection_request request;
		char path[NT_PROC_PATH];
	} message = {.request = task->task.request};
	size_t len = task->path ? strlen(task->path) : 0;

	if (len >= sizeof(message.path))
		return -ENAMETOOLONG;
	task->task.request.number = message.request.number = ++inspector->number;
	if (len)
		memcpy(message.path, task->path, len);
	task->task.begun_ns = nt_clock_boot_ns();
	return nt_worker_send(slot->worker, &message, sizeof(message.request) + len, task->fd);
}

static int start_worker(struct nt_inspector *inspector, struct nt_inspector_slot *slot)
{
	struct epoll_event event = {.events = EPOLLIN};
	int r = nt_worker_start(inspector->workers, nt_inspection_serve, &slot->worker);

	if (r < 0)
		return r;
	event.data.fd = nt_worker_fd(slot->worker);
	if (epoll_ctl(inspector->epoll, EPOLL_CTL_ADD, event.data.fd, &event) < 0) {
		r = -errno;
		nt_worker_kill(inspector->workers, slot->worker);
		slot->worker = NULL;
	}
	return r;
}

/* An idle running worker; else a new one if all are slow. NULL: none. */
static struct nt_inspector_slot *idle_slot(struct nt_inspector *inspector, uint64_t now_ns)
{
	struct nt_inspector_slot *unused = NULL;
	bool all_slow = true;

	for (size_t i = 0; i < NT_INSPECTOR_WORKERS; i++) {
		struct nt_inspector_slot *slot = &inspector->slot[i];

		if (slot->worker && !slot->task)
			return slot;
		if (!slot->worker)
			unused = unused ? unused : slot;
		else /* without a processor another worker would not help */
			all_slow &= is_slow(slot, now_ns) && nt_worker_waits(slot->worker);
	}
	return unused && all_slow && start_worker(inspector, unused) == 0 ? unused : NULL;
}

static void go_on(struct nt_inspector *inspector)
{
	while (inspector->queued) {
		uint64_t now_ns = nt_clock_boot_ns();
		struct nt_inspector_slot *slot = idle_slot(inspector, now_ns);
		struct nt_inspector_entry *task = slot ? next_task(inspector, now_ns) : NULL;
		int r;

		if (!task)
			return;
		r = judge(inspector, task, now_ns);
		if (r == 0)
			r = send(inspector, slot, task);
		if (r < 0) {
			fail(inspector, task, r == -EPIPE ? -EIO : r);
			if (r == -EPIPE || r == -EAGAIN)
				take_death(inspector, slot);
			continue;
		}
		slot->task = task;
		inspector->running++;
	}
}

static void look_at(struct nt_inspector *inspector, struct nt_inspector_slot *slot)
{
	uint64_t now_ns;

	while (slot->worker && take_answer(inspector, slot))
		;
	now_ns = nt_clock_boot_ns();
	if (slot != &inspector->slot[0] && slot->worker && !slot->task &&
	    now_ns - slot->idle_ns >= NT_INSPECTOR_IDLE_NS)
		drop_worker(inspector, slot);
	if (!slot->task || now_ns - slot->task->task.begun_ns < NT_INSPECTOR_STALL_NS)
		return;
	if (nt_worker_waits(slot->worker) ||
	    now_ns - slot->task->task.begun_ns >= NT_INSPECTOR_BUSY_NS)
		take_stall(inspector, slot);
}

void nt_inspector_run(struct nt_inspector *inspector)
{
	for (size_t i = 0; i < NT_INSPECTOR_WORKERS; i++)
		look_at(inspector, &inspector->slot[i]);
	go_on(inspector);
}

static bool any_is_slow(const struct nt_inspector *inspector)
{
	uint64_t now_ns = nt_clock_boot_ns();

	for (size_t i = 0; i < NT_INSPECTOR_WORKERS; i++)
		if (is_slow(&inspector->slot[i], now_ns))
			return true;
	return false;
}

void nt_inspector_wait(struct nt_inspector *inspector, uint64_t wait_ns)
{
	const uint64_t end_ns = nt_clock_mono_ns() + wait_ns;
	struct pollfd poller = {.fd = inspector->epoll, .events = POLLIN};

	nt_inspector_run(inspector);
	while (inspector->running && !any_is_slow(inspector) && nt_clock_mono_ns() < end_ns) {
		(void)poll(&poller, 1, 1);
		nt_inspector_run(inspector);
	}
}

uint64_t nt_inspector_oldest_ns(const struct nt_inspector *inspector)
{
	uint64_t oldest_ns = UINT64_MAX;

	for (const struct nt_inspector_line *line = inspector->turn; line; line = line->next)
		if (line->first->queued_ns < oldest_ns)
			oldest_ns = line->first->queued_ns;
	for (size_t i = 0; i < NT_INSPECTOR_WORKERS; i++)
		if (inspector->slot[i].task && inspector->slot[i].task->queued_ns < oldest_ns)
			oldest_ns = inspector->slot[i].task->queued_ns;
	return oldest_ns == UINT64_MAX ? 0 : oldest_ns;
}

void nt_inspector_stats(const struct nt_inspector *inspector, struct nt_inspector_stats *ret_stats)
{
	*ret_stats = inspector->stats;
	ret_stats->pending = inspector->queued + inspector->running;
}
