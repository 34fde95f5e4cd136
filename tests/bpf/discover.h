/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Processes that map libraries when they are told to, and a discovery that looks for them. */
#ifndef NT_TESTS_BPF_DISCOVER_H
#define NT_TESTS_BPF_DISCOVER_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "agent/discover/discover.h"
#include "tests/bpf/harness.h"

enum {
	NOTES_MAX = 256,
	PATIENCE_MS = 60000,
};

struct note {
	uint32_t pid;
	enum nt_library library;
	bool executable, late, exited;
	uint64_t start_ns;
	char name[PATH_MAX];
	ino_t ino;
	nlink_t links;
};

static struct note note[NOTES_MAX];
static size_t notes;
static struct stub nccl; /* its path alone: this process must not map it */
static struct nt_discover *discover;
static struct nt_workers workers;
static struct nt_quarantine *quarantine;
static int refusals, refusals_of_changes;

static inline void on_mapped(void *data, const struct nt_mapped_file *file)
{
	struct note *n = &note[notes];
	struct stat st;

	(void)data;
	if (notes == NOTES_MAX)
		return;
	*n = (struct note){
		.pid = file->pid,
		.library = file->library,
		.executable = file->executable,
		.late = file->late,
		.start_ns = file->start_boot_ns,
	};
	(void)snprintf(n->name, sizeof(n->name), "%s", file->name);
	/* The path must lead to the very file, now. */
	if (stat(file->path, &st) != 0 || st.st_dev != file->dev || st.st_ino != file->ino)
		return;
	n->ino = st.st_ino;
	n->links = st.st_nlink;
	notes++;
}

static inline void on_exited(void *data, uint32_t pid, uint64_t start_boot_ns, uint64_t boot_ns)
{
	(void)data;
	if (notes == NOTES_MAX || boot_ns < start_boot_ns)
		return;
	note[notes++] = (struct note){.pid = pid, .exited = true, .start_ns = start_boot_ns};
}

static inline void on_refused(void *data, uint32_t pid, const char *name, enum nt_refusal why)
{
	(void)data, (void)pid, (void)name;
	refusals += why == NT_REFUSED_FUSE;
	refusals_of_changes += why == NT_REFUSED_CHANGES;
}

static inline void on_stalled(void *data, uint32_t pid, const struct nt_owner *owner, bool held)
{
	(void)data, (void)pid, (void)owner, (void)held;
}

static inline int open_discover(const char *cgroup)
{
	const struct nt_discover_options options = {
		.cgroup = cgroup,
		.workers = &workers,
		.quarantine = quarantine,
		.handler = {.mapped = on_mapped,
			    .exited = on_exited,
			    .refused = on_refused,
			    .stalled = on_stalled},
	};

	return nt_discover_new(&options, &discover);
}

static inline const struct note *find(pid_t pid, bool exited)
{
	for (size_t i = 0; i < notes; i++)
		if (note[i].pid == (uint32_t)pid && note[i].exited == exited)
			return &note[i];
	return NULL;
}

static inline size_t count(pid_t pid, bool exited)
{
	size_t n = 0;

	for (size_t i = 0; i < notes; i++)
		n += note[i].pid == (uint32_t)pid && note[i].exited == exited;
	return n;
}

static inline void run_for(int ms)
{
	uint64_t end_ns = nt_clock_mono_ns() + (uint64_t)ms * NT_MILLISECOND;

	while (nt_clock_mono_ns() < end_ns) {
		struct pollfd fd = {.fd = nt_discover_fd(discover), .events = POLLIN};

		(void)poll(&fd, 1, 20);
		assert_int_equal(nt_discover_run(discover), 0);
	}
}

/* Runs until it is noted, but not for ever. */
static inline const struct note *wait_for(pid_t pid, bool exited)
{
	for (int ms = 0; ms < PATIENCE_MS && !find(pid, exited); ms += 20)
		run_for(20);
	return find(pid, exited);
}

static inline struct nt_discover_stats stats(void)
{
	struct nt_discover_stats s;

	nt_discover_stats(discover, &s);
	return s;
}

static inline void start(const char *cgroup)
{
	notes = 0;
	refusals = refusals_of_changes = 0;
	assert_int_equal(open_discover(cgroup), 0);
	for (int ms = 0; ms < PATIENCE_MS && !nt_discover_is_idle(discover); ms += 20)
		run_for(20);
	assert_true(nt_discover_is_idle(discover));
}

/* ---- processes to be found ---------------------------------------------------------------- */

struct child {
	pid_t pid;
	int to, from; /* pipes: it does a step for every byte, and answers with one */
};

static struct child children[8];
static size_t child_count;

static inline void step(const struct child *child)
{
	char byte = 0;

	assert_int_equal(write(child->to, &byte, 1), 1);
	assert_int_equal(read(child->from, &byte, 1), 1);
}

/* In the child: waits for the next step. */
static inline void next(int in, int out)
{
	char byte = 0;

	if (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1)
		_exit(0);
}

/* body runs in a new process, and begins when it is first stepped. */
static inline struct child *spawn(void (*body)(int in, int out))
{
	struct child *child = &children[child_count];
	int to[2], from[2];
	char byte;

	assert_true(child_count < sizeof(children) / sizeof(children[0]));
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (child->pid == 0) {
		(void)close(to[1]);
		(void)close(from[0]);
		next(to[0], from[1]);
		body(to[0], from[1]);
		next(to[0], from[1]);
		_exit(0);
	}
	child_count++;
	(void)close(to[0]);
	(void)close(from[1]);
	child->to = to[1];
	child->from = from[0];
	assert_int_equal(read(child->from, &byte, 1), 1);
	return child;
}

static inline void finish(struct child *child)
{
	int status;

	if (child->to >= 0)
		(void)close(child->to);
	child->to = -1;
	if (child->pid <= 0)
		return;
	/* It may not see the end of its pipe: children made later hold it open too. */
	(void)kill(child->pid, SIGKILL);
	(void)waitpid(child->pid, &status, 0);
	child->pid = -1;
}

static inline int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < child_count; i++) {
		finish(&children[i]);
		(void)close(children[i].from);
	}
	child_count = 0;
	nt_discover_free(discover);
	discover = NULL;
	return 0;
}

static inline void map_nccl(int in, int out)
{
	(void)in;
	(void)out;
	if (!dlopen(nccl.path, RTLD_NOW))
		_exit(1);
}

#endif
