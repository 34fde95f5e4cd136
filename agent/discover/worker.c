/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent/host/proc.h"
#include "common/system/log.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define MEMORY_BYTES (256UL << 20) /* address space, above what it inherits */

enum {
	SOCKET = 3, /* the child's descriptor */
	SPAWN_MS = 1000, /* timeout of the spawner, which takes under 1 ms */
};

struct nt_worker {
	pid_t pid;
	int socket;
};

/* At most one descriptor. */
union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static ssize_t send_message(int socket, const void *data, size_t len, int fd, int flags)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control;
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *header;

		memset(&control, 0, sizeof(control));
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	do
		n = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n;
}

static ssize_t receive_message(int socket, void *buf, size_t size, int *ret_fd, int flags)
{
	struct iovec iov = {.iov_base = buf, .iov_len = size};
	union control control;
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header;
	ssize_t n;

	*ret_fd = -1;
	do
		n = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return n;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(header), sizeof(int));
	return n;
}

/* ---- the child ------------------------------------------------------------------------------ */

static void limit_memory(void)
{
	unsigned long pages = 0;
	struct rlimit limit;
	char text[64];
	nt_autoclose int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		pages = pages * 10 + (unsigned long)(text[i] - '0');
	if (!pages || getrlimit(RLIMIT_AS, &limit) < 0)
		return;
	limit.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + MEMORY_BYTES;
	limit.rlim_max = limit.rlim_max < limit.rlim_cur ? limit.rlim_max : limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_AS, &limit);
}

static void reset_signals(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t none;

	/* Ignores signals: the agent ends it, and a terminal's interrupt is for the agent alone. */
	for (int signal = 1; signal < NSIG; signal++) {
		action.sa_handler = signal == SIGTERM || signal == SIGINT || signal == SIGHUP
					    ? SIG_IGN
					    : SIG_DFL;
		if (!SANITIZED || action.sa_handler == SIG_IGN)
			(void)sigaction(signal, &action, NULL);
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_descriptors(int socket)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; null >= 0 && fd < SOCKET; fd++)
		if (fd != socket && !(SANITIZED && fd == STDERR_FILENO))
			(void)dup2(null, fd);
	if (socket != SOCKET)
		(void)dup2(socket, SOCKET);
	(void)close_range(SOCKET + 1, ~0U, 0);
}

/* Makes the OOM killer choose a worker before the agent. */
static void die_first(void)
{
	static const char worst[] = "1000";
	nt_autoclose int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, worst, sizeof(worst) - 1);
}

static void __attribute__((noreturn)) work(int socket, pid_t parent, nt_worker_fn fn)
{
	static uint8_t request[NT_WORKER_BYTES];
	const struct rlimit no_core = {0};
	ssize_t n;
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	reset_signals();
	die_first();
	close_descriptors(socket);
	(void)prctl(PR_SET_NAME, "nt-worker");
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	if (!SANITIZED)
		limit_memory();
	while ((n = receive_message(SOCKET, request, sizeof(request), &fd, 0)) > 0) {
		fn(SOCKET, request, (size_t)n, fd);
		nt_closep(&fd);
	}
	_exit(0);
}

void nt_worker_answer(int socket, const void *answer, size_t len, int fd)
{
	if (send_message(socket, answer, len, fd, 0) < 0)
		_exit(0); /* the agent has exited */
}

void nt_worker_limit_cpu(unsigned int seconds)
{
	struct rusage usage;
	struct rlimit limit;

	if (SANITIZED || getrusage(RUSAGE_SELF, &usage) < 0 || getrlimit(RLIMIT_CPU, &limit) < 0)
		return;
	limit.rlim_cur = (rlim_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1 + seconds;
	if (limit.rlim_cur < limit.rlim_max)
		(void)setrlimit(RLIMIT_CPU, &limit);
}

/* ---- the agent ------------------------------------------------------------------------------ */

void nt_workers_reap(struct nt_workers *workers)
{
	for (size_t i = 0; i < workers->lefts;) {
		if (waitpid(workers->left[i], NULL, WNOHANG) == 0)
			i++;
		else
			workers->left[i] = workers->left[--workers->lefts];
	}
}

/* Forks a worker from the agent. */
static pid_t fork_worker(int socket, nt_worker_fn fn)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		work(socket, parent, fn);
	return pid < 0 ? -errno : pid;
}

/* In the spawner: the request is a function's address, which is the same in its children. */
static void spawn(int socket, const uint8_t *request, size_t len, int fd)
{
	const pid_t parent = getppid();
	nt_worker_fn fn;
	long pid;

	if (len != sizeof(fn) || fd < 0)
		_exit(1);
	memcpy(&fn, request, sizeof(fn));
	/* As fork(), but with the agent as parent. */
	pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		work(fd, parent, fn);
	if (pid < 0)
		pid = -errno;
	nt_worker_answer(socket, &pid, sizeof(pid), -1);
}

/* -EPIPE: the spawner does not answer. */
static pid_t spawn_worker(const struct nt_worker *spawner, int socket, nt_worker_fn fn)
{
	struct pollfd answered = {.fd = spawner->socket, .events = POLLIN};
	nt_autoclose int fd = -1;
	long pid;
	int r = nt_worker_send(spawner, &fn, sizeof(fn), socket);

	if (r < 0)
		return r;
	if (poll(&answered, 1, SPAWN_MS) <= 0 ||
	    nt_worker_take(spawner, &pid, sizeof(pid), &fd) != sizeof(pid))
		return -EPIPE;
	return (pid_t)pid;
}

static pid_t start(struct nt_workers *workers, int socket, nt_worker_fn fn)
{
	pid_t pid = -EPIPE;

	if (workers->spawner)
		pid = spawn_worker(workers->spawner, socket, fn);
	if (pid != -EPIPE)
		return pid;
	if (workers->spawner)
		(void)nt_warn(0, "worker spawner does not respond: the agent forks workers itself");
	nt_workers_end(workers);
	return fork_worker(socket, fn);
}

int nt_workers_begin(struct nt_workers *workers)
{
	return nt_worker_start(workers, spawn, &workers->spawner);
}

void nt_workers_end(struct nt_workers *workers)
{
	struct nt_worker *spawner = nt_take(workers->spawner);

	if (spawner)
		nt_worker_kill(workers, spawner);
}

int nt_worker_start(struct nt_workers *workers, nt_worker_fn fn, struct nt_worker **ret_worker)
{
	nt_autofree struct nt_worker *worker = malloc(sizeof(*worker));
	int pair[2], r;

	nt_workers_reap(workers);
	if (workers->lefts == NT_WORKERS_LEFT)
		return -EBUSY;
	if (!worker)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	worker->socket = pair[0];
	worker->pid = start(workers, pair[1], fn);
	r = worker->pid < 0 ? worker->pid : 0;
	(void)close(pair[1]);
	if (r < 0) {
		(void)close(pair[0]);
		return r;
	}
	workers->started++;
	*ret_worker = nt_take(worker);
	return 0;
}

void nt_worker_kill(struct nt_workers *workers, struct nt_worker *worker)
{
	if (!worker)
		return;
	(void)kill(worker->pid, SIGKILL);
	(void)close(worker->socket);
	workers->killed++;
	if (waitpid(worker->pid, NULL, WNOHANG) == 0 && workers->lefts < NT_WORKERS_LEFT)
		workers->left[workers->lefts++] = worker->pid;
	free(worker);
}

int nt_worker_fd(const struct nt_worker *worker)
{
	return worker->socket;
}

pid_t nt_worker_pid(const struct nt_worker *worker)
{
	return worker->pid;
}

int nt_worker_send(const struct nt_worker *worker, const void *request, size_t len, int fd)
{
	if (send_message(worker->socket, request, len, fd, MSG_DONTWAIT) >= 0)
		return 0;
	return errno == EAGAIN ? -EAGAIN : -EPIPE;
}

ssize_t nt_worker_take(const struct nt_worker *worker, void *buf, size_t size, int *ret_fd)
{
	ssize_t n = receive_message(worker->socket, buf, size, ret_fd, MSG_DONTWAIT);

	if (n > 0)
		return n;
	return n < 0 && errno == EAGAIN ? -EAGAIN : -EPIPE;
}

bool nt_worker_waits(const struct nt_worker *worker)
{
	char state;

	return nt_proc_state((uint32_t)worker->pid, &state) < 0 || state != 'R';
}
