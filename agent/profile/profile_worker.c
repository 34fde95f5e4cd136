/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/profile/profile_worker.h"

#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/discover/worker.h"
#include "agent/host/proc.h"
#include "agent/stack/stack_read.h"
#include "common/system/clock.h"

enum {
	CPU_SECONDS = 6, /* more than the share of a whole profile */
};

static uint64_t cpu_ns(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) < 0)
		return 0;
	return (uint64_t)now.tv_sec * NT_SECOND + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t mono_ns)
{
	const struct timespec then = {.tv_sec = (time_t)(mono_ns / NT_SECOND),
				      .tv_nsec = (long)(mono_ns % NT_SECOND)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) != 0)
		;
}

/* Another process, which may be of another pod, can have its number later. -1: it has ended. */
static int open_process(const struct nt_profile_task *task)
{
	nt_autoclose int fd = (int)syscall(SYS_pidfd_open, (pid_t)task->pid, 0);
	uint64_t start_ns;

	if (fd < 0 || nt_proc_start_ns(task->pid, &start_ns) < 0 || start_ns != task->start_boot_ns)
		return -1;
	return nt_take_fd(&fd);
}

static bool has_ended(int process)
{
	struct pollfd poller = {.fd = process, .events = POLLIN};

	return poll(&poller, 1, 0) != 0;
}

/*
 * A time at which the budget is used up is missed, and so is one that comes while the sample before it
 * is still being taken: what samples cost sets their rate.
 */
static void take_samples(const struct nt_profile_task *task, int process,
			 struct nt_stack_reader *reader, struct nt_profile *profile)
{
	static struct nt_stack stack; /* of the worker, which has one thread */
	const uint64_t begin_ns = nt_clock_mono_ns(), begin_cpu_ns = cpu_ns();
	const uint64_t times = (uint64_t)task->wish.seconds * task->wish.hz;

	for (uint64_t i = 0; i < times; i++) {
		const uint64_t at_ns = begin_ns + i * NT_SECOND / task->wish.hz;
		const uint64_t next_ns = begin_ns + (i + 1) * NT_SECOND / task->wish.hz;
		const uint64_t allowed_ns = (at_ns - begin_ns) / NT_PROFILE_CPU_SHARE +
					    NT_PROFILE_CPU_BEGIN_MS * NT_MILLISECOND;

		if (nt_clock_mono_ns() >= next_ns) {
			profile->missed++;
			continue;
		}
		sleep_until(at_ns);
		if (cpu_ns() - begin_cpu_ns > allowed_ns) {
			profile->missed++;
			continue;
		}
		nt_stack_reader_read(reader, task->thread, NT_STACK_THREADS, &stack);
		if (has_ended(process)) {
			profile->reason = NT_STACK_ENDED;
			break;
		}
		nt_profile_add(profile, &stack, task->wish.kind);
	}
	profile->cpu_ns = cpu_ns() - begin_cpu_ns;
	profile->duration_ns = nt_clock_mono_ns() - begin_ns;
}

static void answer_pieces(int socket, const struct nt_profile *profile)
{
	const uint8_t *at = (const uint8_t *)profile;

	for (size_t left = sizeof(*profile); left > 0;) {
		const size_t piece = left < NT_PROFILE_PIECE ? left : NT_PROFILE_PIECE;

		nt_worker_answer(socket, at, piece, -1);
		at += piece;
		left -= piece;
	}
}

static void take_profile(const struct nt_profile_task *task, struct nt_profile *profile)
{
	const struct nt_memory memory = nt_memory_live();
	nt_auto(nt_stack_reader) struct nt_stack_reader *reader = NULL;
	nt_autoclose int process = -1;

	if (!nt_profile_wish_is_sound(&task->wish) ||
	    nt_stack_reader_new(task->pid, task->takes_fuse, &memory, &reader) < 0) {
		profile->reason = NT_STACK_STALLED;
		return;
	}
	process = open_process(task);
	if (process < 0)
		profile->reason = NT_STACK_ENDED;
	else
		take_samples(task, process, reader, profile);
}

void nt_profile_serve(int socket, const uint8_t *request, size_t len, int fd)
{
	static struct nt_profile profile;
	struct nt_profile_task task;

	(void)fd;
	if (len != sizeof(task))
		return;
	memcpy(&task, request, sizeof(task));
	nt_worker_limit_cpu(CPU_SECONDS);
	nt_profile_init(&profile);
	profile.begin_boot_ns = nt_clock_boot_ns();
	take_profile(&task, &profile);
	answer_pieces(socket, &profile);
}
