/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stacks and profiles of a rank's process: of which threads, and in which window they are sent. */
#include "agent/tracker/tracker_impl.h"

#include <string.h>

#include "agent/profile/window_profile.h"
#include "agent/stack/window_stack.h"

/* The rank's window sends them, if the process is still the same one. */
static struct nt_process *find_rank(const struct nt_tracker *tracker, uint32_t pid,
				    uint64_t start_ns)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);

	return process && process->start_ns == start_ns && process->ranks ? process : NULL;
}

bool nt_tracker_stack_threads(const struct nt_tracker *tracker, uint32_t pid, uint64_t start_ns,
			      uint32_t ret_tid[NT_STACK_THREADS])
{
	const struct nt_process *process = find_rank(tracker, pid, start_ns);
	size_t n = 0;

	if (!process)
		return false;
	for (size_t i = 0; i < NT_STACK_THREADS; i++)
		ret_tid[i] = 0;
	for (uint32_t i = 0; i < process->ranks && n < NT_STACK_THREADS; i++)
		ret_tid[n++] = nt_rank_thread(process->rank[i]);
	return true;
}

bool nt_tracker_stack_read(struct nt_tracker *tracker, uint32_t pid, uint64_t start_ns,
			   struct nt_window_stack *stack)
{
	struct nt_process *process = find_rank(tracker, pid, start_ns);

	if (!process) {
		nt_window_stack_free(stack);
		return false;
	}
	tracker->stats.stacks_replaced += process->stack != NULL;
	nt_window_stack_free(process->stack);
	process->stack = stack;
	return true;
}

void nt_tracker_drop_profile(struct nt_process *process, uint32_t index)
{
	nt_window_profile_free(process->profile[index]);
	process->profiles--;
	memmove(&process->profile[index], &process->profile[index + 1],
		(process->profiles - index) * sizeof(process->profile[0]));
}

/* That one has begun is no longer of interest once it has ended. */
static void drop_state_of(struct nt_process *process, uint64_t request)
{
	for (uint32_t i = 0; i < process->profiles; i++) {
		const struct nt_wire_profile *wire = &process->profile[i]->wire;

		if (wire->request == request && wire->is_running) {
			nt_tracker_drop_profile(process, i);
			return;
		}
	}
}

bool nt_tracker_profile_taken(struct nt_tracker *tracker, uint32_t pid, uint64_t start_ns,
			      struct nt_window_profile *profile)
{
	struct nt_process *process = find_rank(tracker, pid, start_ns);

	if (!process) {
		nt_window_profile_free(profile);
		return false;
	}
	drop_state_of(process, profile->wire.request);
	if (process->profiles == NT_PROCESS_PROFILES) {
		tracker->stats.profiles_replaced++;
		nt_tracker_drop_profile(process, 0);
	}
	process->profile[process->profiles++] = profile;
	return true;
}
