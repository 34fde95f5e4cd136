/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A linker, a child process whose calls it links to, and the results that its owner receives. */
#ifndef NT_TESTS_BPF_OWN_LINKS_H
#define NT_TESTS_BPF_OWN_LINKS_H

#include <poll.h>
#include <sys/wait.h>

#include "agent/governor/own_links.h"
#include "agent/probes/linker.h"
#include "tests/bpf/harness.h"

enum {
	WAIT_S = 60,
	SEQUENCE = 2, /* the word that numbers the neighbour's calls */
	SEEN_MAX = 1 << 20,
	PID_MAX = 1 << 22, /* no process has this number or a larger one */
};

static struct stub nccl, mpi;
static uint64_t args[STUB_ARGS];

struct world {
	struct harness harness;
	struct nt_linker *linker;
	struct nt_own_links *own;
	/* The neighbour's calls, as judged. */
	uint64_t next, repeated, left_out, taken;
	uint64_t others_taken, others_counted;
	uint64_t barriers; /* of the neighbour, that were left */
	uint64_t look_ns;
	uint32_t paused, resumed, missed, looked;
};

struct child {
	pid_t pid;
	int command[2], answer[2];
};

static inline void start_child(struct child *child)
{
	assert_int_equal(pipe(child->command), 0);
	assert_int_equal(pipe(child->answer), 0);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (child->pid == 0) {
		uint32_t calls;

		(void)close(child->command[1]);
		while (read(child->command[0], &calls, sizeof(calls)) == sizeof(calls)) {
			for (uint32_t i = 0; i < calls; i++)
				(void)stub_call(&nccl, "ncclAllReduce", args);
			(void)stub_call(&nccl, "ncclGroupStart", args);
			(void)!write(child->answer[1], &calls, sizeof(calls));
		}
		_exit(0);
	}
	(void)close(child->command[0]);
}

static inline void stop_child(struct child *child)
{
	int status;

	(void)close(child->command[1]);
	(void)close(child->answer[0]);
	(void)close(child->answer[1]);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
}

static inline void on_paused(void *data, uint32_t pid, uint64_t boot_ns)
{
	(void)pid;
	(void)boot_ns;
	((struct world *)data)->paused++;
}

static inline void on_resumed(void *data, uint32_t pid, uint64_t boot_ns)
{
	(void)pid;
	(void)boot_ns;
	((struct world *)data)->resumed++;
}

static inline void on_missed(void *data, uint32_t pid)
{
	((struct world *)data)->missed += pid == (uint32_t)getpid();
}

static inline void on_looked(void *data, uint32_t pid, uint64_t look_ns)
{
	(void)pid;
	assert_true(look_ns >= 10 * NT_MILLISECOND);
	((struct world *)data)->looked++;
}

static inline void take_call(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	struct world *world = data;
	enum nt_own_links_verdict verdict = nt_own_links_judge(world->own, call);

	(void)id;
	if (call->h.row == harness_row("MPI_Barrier", NT_LIBRARY_MPI) &&
	    call->h.pid == (uint32_t)getpid() && verdict == NT_OWN_LINKS_TAKE)
		world->barriers++;
	if (call->h.row != harness_row("ncclAllReduce", NT_LIBRARY_NCCL))
		return;
	if (call->h.pid != (uint32_t)getpid()) {
		world->others_taken += verdict == NT_OWN_LINKS_TAKE;
		world->others_counted += verdict == NT_OWN_LINKS_COUNT;
		return;
	}
	if (verdict != NT_OWN_LINKS_TAKE)
		return;
	world->taken++;
	if (call->word[SEQUENCE] < world->next)
		world->repeated++;
	else
		world->left_out += call->word[SEQUENCE] - world->next;
	world->next = call->word[SEQUENCE] + 1;
}

static uint64_t later_ns; /* added to the clock that files are joined by */

static inline void turn_within(struct world *world, int ms)
{
	struct pollfd ready = {.fd = nt_linker_fd(world->linker), .events = POLLIN};
	uint64_t boot_ns, real_ns;

	(void)poll(&ready, 1, ms);
	assert_int_equal(harness_drain(world->harness.attach, take_call, world), 0);
	nt_own_links_settle(world->own);
	nt_clock_pair(&boot_ns, &real_ns);
	nt_own_links_tick(world->own, boot_ns + later_ns, real_ns);
}

static inline void turn(struct world *world)
{
	turn_within(world, 20);
}

static inline struct nt_own_links_stats stats_of(const struct world *world)
{
	struct nt_own_links_stats stats;

	nt_own_links_stats(world->own, &stats);
	return stats;
}

static inline void begin(struct world *world)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	const struct nt_own_links_hooks hooks = {on_paused, on_resumed, on_missed, on_looked,
						 world};

	*world = (struct world){0};
	later_ns = 0;
	harness_init(&world->harness, &options);
	assert_int_equal(nt_linker_new(nt_attach_loader(world->harness.attach), &world->linker), 0);
	assert_int_equal(
		nt_own_links_new(world->harness.attach, world->linker, &hooks, &world->own), 0);
	assert_true(harness_attach(&world->harness, &nccl, NT_LIBRARY_NCCL, UINT32_MAX) > 0);
}

static inline void use(struct world *world, pid_t pid)
{
	nt_own_links_use(world->own, (uint32_t)pid, 1, nccl.st.st_dev, nccl.st.st_ino);
}

static inline void end(struct world *world)
{
	nt_own_links_free(world->own);
	nt_linker_free(world->linker);
	harness_release(&world->harness);
}

/* What the governor says of a process whose ncclAllReduce is hot. */
static inline struct nt_governor_plan hot_plan(void)
{
	uint16_t row = harness_row("ncclAllReduce", NT_LIBRARY_NCCL);
	struct nt_governor_plan plan = {
		.governed = true,
		.permille = NT_GOVERNOR_WHOLE,
		.period_ns = 2 * NT_SECOND,
		.hot_count = 1,
		.version = 1,
	};

	plan.hot[row / 64] |= 1ULL << row % 64;
	return plan;
}

static inline void wait_for_split(struct world *world, uint64_t files)
{
	uint64_t until_ns = nt_clock_boot_ns() + WAIT_S * NT_SECOND;

	/* Own links of both, and the shared ones gone. */
	while (nt_clock_boot_ns() < until_ns) {
		struct nt_own_links_stats stats = stats_of(world);

		if (stats.files_split == files && (!files || stats.splits))
			break;
		turn(world);
	}
	assert_int_equal(stats_of(world).files_split, files);
	for (int i = 0; i < 60; i++)
		turn(world); /* past the time for which the shared links linger */
}

#endif
