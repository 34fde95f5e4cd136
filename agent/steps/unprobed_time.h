/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Unprobed time: the time that the main thread of a process spends in MPI's code outside of probed
 * calls. A rank that waits in functions without probes shows few calls, and its waits count as its
 * own work. Bytes do not show this: shared memory and RDMA appear in no counter of a process.
 *
 * Once a second the walk over all threads states where a main thread was. NT_UNPROBED_WALKS of them
 * are a look, which is judged by the mappings of the process. Two looks in a row that find much
 * unprobed time are a finding; it is made once. After looks without one the process rests, longer
 * each time.
 *
 * Pure: time is an argument (boot time).
 */
#ifndef NT_AGENT_STEPS_UNPROBED_TIME_H
#define NT_AGENT_STEPS_UNPROBED_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/elf/mpi_code.h"
#include "common/system/clock.h"

enum {
	NT_UNPROBED_WALKS = 30,
	NT_UNPROBED_PERCENT = 20, /* of the walks of a look: much */
	NT_UNPROBED_LOOKS = 2,
	/*
	 * Non-blocking starts a second from which on nothing is found. These have a breakpoint at
	 * their entry alone. If that was the last entry into the kernel, the thread seems to be in
	 * their function until the next timer tick, up to 10 ms later. At a lower rate that is at
	 * most a quarter of NT_UNPROBED_PERCENT.
	 */
	NT_UNPROBED_STARTS = 5,
};

#define NT_UNPROBED_REST_NS         (30 * NT_SECOND) /* after the first look that finds nothing */
#define NT_UNPROBED_REST_LONGEST_NS (16 * NT_MINUTE)
#define NT_UNPROBED_ANSWER_NS       (30 * NT_SECOND) /* then the mappings are no longer awaited */

/* Zeroed: nothing is known. */
struct nt_unprobed_time {
	uint64_t ip[NT_UNPROBED_WALKS]; /* of the walks that found it outside of calls */
	uint32_t outside, inside; /* numbers of walks of this look */
	uint64_t last_ip;
	uint64_t begun_ns, ended_ns; /* of this look */
	uint64_t starts_begun; /* non-blocking starts of the process before it */
	uint64_t rest_until_ns, rest_ns;
	uint64_t lost_events; /* of the process, at the last interruption */
	uint32_t looks; /* in a row, that found much */
	bool is_asked; /* the mappings are awaited */
	bool is_found;
};

/* A process that spends much of its time so. */
struct nt_unprobed_finding {
	uint32_t percent; /* of its time, in the last look */
};

/* A walk found the thread inside a probed call. starts: of its process so far. */
void nt_unprobed_time_inside(struct nt_unprobed_time *time, uint64_t starts, uint64_t now_ns);

/*
 * A walk found it outside of one; ip: its last known instruction. True: the mappings are wanted,
 * for nt_unprobed_time_judge().
 */
bool nt_unprobed_time_outside(struct nt_unprobed_time *time, uint64_t ip, uint64_t starts,
			      uint64_t now_ns);

/*
 * Some calls are not observed, or events of the process were lost, so many so far: the look begins
 * anew.
 */
void nt_unprobed_time_interrupt(struct nt_unprobed_time *time, uint64_t lost_events);

/* code: NULL if the mappings cannot be read. True: a finding. */
bool nt_unprobed_time_judge(struct nt_unprobed_time *time, const struct nt_mpi_code *code,
			    uint64_t now_ns, struct nt_unprobed_finding *ret_finding);

#endif
