/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which processes spend much of their time in MPI's code outside of probed calls. */
#include "agent/tracker/tracker_impl.h"

/* True if each of its calls is observed, and has been since the look began. */
static bool is_observed(const struct nt_process *process)
{
	const struct nt_unprobed_time *time = &process->unprobed;
	const uint32_t shed = NT_WIRE_SHED_COMMUNICATION | NT_WIRE_SHED_FUNCTIONS;

	return !process->paused && !(process->shed & shed) &&
	       process->resumed_ns <= time->begun_ns && process->lost_events == time->lost_events;
}

static bool takes_walks(struct nt_process *process, uint64_t now_ns)
{
	if (!(process->libraries & 1U << NT_LIBRARY_MPI))
		return false;
	if (is_observed(process))
		return true;
	nt_unprobed_time_interrupt(&process->unprobed, process->lost_events);
	return !process->paused && process->resumed_ns <= now_ns;
}

void nt_tracker_inside_main(struct nt_process *process, uint64_t now_ns)
{
	if (takes_walks(process, now_ns))
		nt_unprobed_time_inside(&process->unprobed, process->starts, now_ns);
}

bool nt_tracker_outside(struct nt_tracker *tracker, uint32_t pid, uint64_t user_ip, uint64_t now_ns,
			uint64_t *ret_start_ns)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);

	if (!process || !takes_walks(process, now_ns) ||
	    !nt_unprobed_time_outside(&process->unprobed, user_ip, process->starts, now_ns))
		return false;
	*ret_start_ns = process->start_ns;
	return true;
}

bool nt_tracker_judge_unprobed(struct nt_tracker *tracker, uint32_t pid, uint64_t start_ns,
			       const struct nt_mpi_code *code, uint64_t now_ns,
			       struct nt_tracker_unprobed *ret_unprobed)
{
	struct nt_process *process = nt_tracker_process(tracker, pid);
	struct nt_unprobed_finding finding;

	if (!process || process->start_ns != start_ns)
		return false;
	tracker->stats.mpi_code_over_cap += code ? code->over_cap : 0;
	if (!nt_unprobed_time_judge(&process->unprobed, code, now_ns, &finding))
		return false;
	tracker->stats.unprobed++;
	*ret_unprobed = (struct nt_tracker_unprobed){
		.finding = finding,
		.command = process->facts.command,
	};
	return true;
}
