/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The texts of findings. */
#include "detect/word.h"

#include <stddef.h>

const char *nt_word(enum nt_word word)
{
	static const char *const text[NT_WORD_END] = {
		[NT_WORD_GC] = "garbage collection",
		[NT_WORD_HOST_GC] = "host: garbage collection",
		[NT_WORD_CPU_CONTENTION] = "cpu contention",
		[NT_WORD_DATA_LOADING] = "data loading",
		[NT_WORD_CHECKPOINT] = "checkpoint",
		[NT_WORD_PAGE_FAULTS] = "page faults",
		[NT_WORD_LAGGARD] = "laggard",
		[NT_WORD_SLOW_HOST] = "slow host",
		[NT_WORD_NETWORK] = "network",
		[NT_WORD_TWO_POPULATIONS] = "two populations",
		[NT_WORD_OWN_WORK] = "own work of the step",
		[NT_WORD_DEVICE_TIME] = "device time of the step",
		[NT_WORD_HOST_WORK] = "host work of the step",
		[NT_WORD_BLOCKED] = "blocked time of the step",
		[NT_WORD_ON_CPU] = "on-CPU time of the step",
		[NT_WORD_RUN_QUEUE] = "run-queue delay of the step",
		[NT_WORD_IO_WAIT] = "I/O wait of the step",
		[NT_WORD_GC_TIME] = "garbage collection of the step",
		[NT_WORD_TRANSFER] = "transfer time of the step",
		[NT_WORD_STEP] = "step time",
		[NT_WORD_STEPS] = "steps concerned, and steps seen before",
		[NT_WORD_ROLE_WORK] = "own work of the role",
		[NT_WORD_WAITING] = "time inside the call",
		[NT_WORD_CALL] = "number of the call",
		[NT_WORD_CALLS_UNTIL] = "number of the last call, up to which they differ",
		[NT_WORD_COUNT] = "elements of the call",
		[NT_WORD_TYPE] = "type of the call",
		[NT_WORD_OPERATION] = "operation of the call",
		[NT_WORD_GONE] = "time since the process ended",
		[NT_WORD_SLOWEST] = "what the slowest rank of each window costs, each time another",
		[NT_WORD_GAP] = "own work of the step, slower and faster half",
		[NT_WORD_ALL_OWN_WORK] = "own work of the step, all ranks",
		[NT_WORD_ALL_HOST_WORK] = "host work of the step, all ranks",
		[NT_WORD_MS] = "ms",
		[NT_WORD_S] = "s",
		[NT_WORD_NUMBER] = "1",
		[NT_WORD_PERCENT] = "%",
		[NT_WORD_RATIO] = "ratio",
		[NT_WORD_OWN_PAST] = "own past",
		[NT_WORD_WITNESS] = "witness",
		[NT_WORD_SAME_NUMBER] = "same number",
		[NT_WORD_HASH] = "hash of the calls",
		[NT_WORD_ROLES] = "roles",
		[NT_WORD_SAMPLES] = "samples",
		[NT_WORD_SHORTEST] = "shortest call",
		[NT_WORD_EXIT] = "exit",
		[NT_WORD_SENDING] = "shortest transfer from the node",
		[NT_WORD_RECEIVING] = "shortest transfer to the node",
		[NT_WORD_PORT_RETRANSMITS] = "what its ports had to send again",
		[NT_WORD_PORT_ERRORS] = "errors and discards of its ports",
		[NT_WORD_PORT_CONGESTION] = "congestion marks at its ports",
		[NT_WORD_EVENTS_A_SECOND] = "events/s",
		[NT_WORD_DELAY_MATRIX] = "delay matrix",
		[NT_WORD_COUNTERS] = "counters",
		[NT_WORD_PARTS] = "communicators that turned slow together, and all of the job",
		[NT_WORD_SHARED] = "shared by communicators",
	};

	return word < NT_WORD_END ? text[word] : NULL;
}
