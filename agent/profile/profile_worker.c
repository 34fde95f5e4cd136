/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/profile/profile_worker.h"

#include <string.h>
#include <time.h>

#include "agent/discover/worker.h"
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

static bool has_ended(const struct nt_stack *stack)
{
	return stack->threads && stack->thread[0].native == NT_STACK_ENDED;
}

/*
 * A time at which the budget is used up is missed, and so is one that comes while the sample before it
 * is still being taken.
 */
static void take_samples(const struct nt_profile_task *task, struct nt_stack_reader *reader,
			 struct nt_profile *profile)
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
		profile->cpu_ns = cpu_ns() - begin_cpu_ns;
		if (profile->cpu_ns > allowed_ns) {
			profile->missed++;
			continue;
		}
		nt_stack_reader_read(reader, task->thread, NT_STACK_THREADS, &stack);
		if (has_ended(&stack)) {
			profile->reason = NT_STACK_ENDED;
			break;
		}
		nt_profile_add(profile, &stack, task->wish.kind);
	}
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

void nt_profile_serve(int socket, const uint8_t *request, size_t len, int fd)
{
	static struct nt_profile profile;
	nt_auto(nt_stack_reader) struct nt_stack_reader *reader = NULL;
	struct nt_profile_task task;

	(void)fd;
	if (len != sizeof(task))
		return;
	memcpy(&task, request, sizeof(task));
	nt_worker_limit_cpu(CPU_SECONDS);
	nt_profile_init(&profile);
	profile.begin_boot_ns = nt_clock_boot_ns();
	if (nt_profile_wish_is_sound(&task.wish) && nt_stack_reader_new(task.pid, &reader) == 0)
		take_samples(&task, reader, &profile);
	else
		profile.reason = NT_STACK_STALLED;
	answer_pieces(socket, &profile);
}
