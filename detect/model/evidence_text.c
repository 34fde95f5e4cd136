/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The texts of findings. */
#include "detect/model/evidence_text.h"

#include <stddef.h>

const char *nt_evidence_text(enum nt_evidence_text word)
{
	static const char *const text[NT_EVIDENCE_TEXT_END] = {
		[NT_EVIDENCE_TEXT_GC] = "garbage collection",
		[NT_EVIDENCE_TEXT_HOST_GC] = "host: garbage collection",
		[NT_EVIDENCE_TEXT_CPU_CONTENTION] = "cpu contention",
		[NT_EVIDENCE_TEXT_DATA_LOADING] = "data loading",
		[NT_EVIDENCE_TEXT_CHECKPOINT] = "checkpoint",
		[NT_EVIDENCE_TEXT_PAGE_FAULTS] = "page faults",
		[NT_EVIDENCE_TEXT_LAGGARD] = "laggard",
		[NT_EVIDENCE_TEXT_SLOW_HOST] = "slow host",
		[NT_EVIDENCE_TEXT_NETWORK] = "network",
		[NT_EVIDENCE_TEXT_TWO_POPULATIONS] = "two populations",
		[NT_EVIDENCE_TEXT_OWN_WORK] = "own work of the step",
		[NT_EVIDENCE_TEXT_DEVICE_TIME] = "device time of the step",
		[NT_EVIDENCE_TEXT_HOST_WORK] = "host work of the step",
		[NT_EVIDENCE_TEXT_BLOCKED] = "blocked time of the step",
		[NT_EVIDENCE_TEXT_ON_CPU] = "on-CPU time of the step",
		[NT_EVIDENCE_TEXT_RUN_QUEUE] = "run-queue delay of the step",
		[NT_EVIDENCE_TEXT_IO_WAIT] = "I/O wait of the step",
		[NT_EVIDENCE_TEXT_GC_TIME] = "garbage collection of the step",
		[NT_EVIDENCE_TEXT_TRANSFER] = "transfer time of the step",
		[NT_EVIDENCE_TEXT_STEP] = "step time",
		[NT_EVIDENCE_TEXT_STEPS] = "steps concerned, and steps seen before",
		[NT_EVIDENCE_TEXT_ROLE_WORK] = "own work of the role",
		[NT_EVIDENCE_TEXT_WAITING] = "time inside the call",
		[NT_EVIDENCE_TEXT_CALL] = "number of the call",
		[NT_EVIDENCE_TEXT_CALLS_UNTIL] = "number of the last call, up to which they differ",
		[NT_EVIDENCE_TEXT_COUNT] = "elements of the call",
		[NT_EVIDENCE_TEXT_TYPE] = "type of the call",
		[NT_EVIDENCE_TEXT_OPERATION] = "operation of the call",
		[NT_EVIDENCE_TEXT_GONE] = "time since the process ended",
		[NT_EVIDENCE_TEXT_SLOWEST] =
			"what the slowest rank of each window costs, each time another",
		[NT_EVIDENCE_TEXT_GAP] = "own work of the step, slower and faster half",
		[NT_EVIDENCE_TEXT_ALL_OWN_WORK] = "own work of the step, all ranks",
		[NT_EVIDENCE_TEXT_ALL_HOST_WORK] = "host work of the step, all ranks",
		[NT_EVIDENCE_TEXT_MS] = "ms",
		[NT_EVIDENCE_TEXT_S] = "s",
		[NT_EVIDENCE_TEXT_NUMBER] = "1",
		[NT_EVIDENCE_TEXT_PERCENT] = "%",
		[NT_EVIDENCE_TEXT_RATIO] = "ratio",
		[NT_EVIDENCE_TEXT_OWN_PAST] = "own past",
		[NT_EVIDENCE_TEXT_WITNESS] = "witness",
		[NT_EVIDENCE_TEXT_SAME_NUMBER] = "same number",
		[NT_EVIDENCE_TEXT_HASH] = "hash of the calls",
		[NT_EVIDENCE_TEXT_ROLES] = "roles",
		[NT_EVIDENCE_TEXT_SAMPLES] = "samples",
		[NT_EVIDENCE_TEXT_SHORTEST] = "shortest call",
		[NT_EVIDENCE_TEXT_EXIT] = "exit",
		[NT_EVIDENCE_TEXT_SENDING] = "shortest transfer from the node",
		[NT_EVIDENCE_TEXT_RECEIVING] = "shortest transfer to the node",
		[NT_EVIDENCE_TEXT_PORT_RETRANSMITS] = "what its ports had to send again",
		[NT_EVIDENCE_TEXT_PORT_ERRORS] = "errors and discards of its ports",
		[NT_EVIDENCE_TEXT_PORT_CONGESTION] = "congestion marks at its ports",
		[NT_EVIDENCE_TEXT_EVENTS_A_SECOND] = "events/s",
		[NT_EVIDENCE_TEXT_DELAY_MATRIX] = "delay matrix",
		[NT_EVIDENCE_TEXT_COUNTERS] = "counters",
		[NT_EVIDENCE_TEXT_PARTS] =
			"communicators that turned slow together, and all of the job",
		[NT_EVIDENCE_TEXT_SHARED] = "shared by communicators",
		[NT_EVIDENCE_TEXT_LOST_SIGHT] =
			"ranks whose calls are seen a part of the time, and all",
		[NT_EVIDENCE_TEXT_SIGNAL] = "signal that ended the process",
		[NT_EVIDENCE_TEXT_STATUS] = "exit status of the process",
		[NT_EVIDENCE_TEXT_FIRST] = "time until all others had ended",
		[NT_EVIDENCE_TEXT_WAITING_PEER] = "time inside a send, receive or wait",
		[NT_EVIDENCE_TEXT_RUNNING] = "ranks named, whose processes run",
		[NT_EVIDENCE_TEXT_SLEEPING] = "ranks named, whose processes sleep",
		[NT_EVIDENCE_TEXT_UNINTERRUPTIBLE] =
			"ranks named, whose processes are in uninterruptible sleep",
		[NT_EVIDENCE_TEXT_STOPPED] = "ranks named, whose processes are stopped",
		[NT_EVIDENCE_TEXT_TRACED] = "ranks named, whose processes a debugger has stopped",
		[NT_EVIDENCE_TEXT_ZOMBIE] = "ranks named, whose processes are zombies",
		[NT_EVIDENCE_TEXT_SCHEDULER] = "process state",
	};

	return word < NT_EVIDENCE_TEXT_END ? text[word] : NULL;
}
