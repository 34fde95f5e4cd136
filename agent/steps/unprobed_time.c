/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/unprobed_time.h"

static void begin_anew(struct nt_unprobed_time *time)
{
	time->outside = time->inside = 0;
	time->is_asked = false;
}

static void rest(struct nt_unprobed_time *time, uint64_t now_ns)
{
	begin_anew(time);
	time->looks = 0;
	time->rest_ns = time->rest_ns ? 2 * time->rest_ns : NT_UNPROBED_REST_NS;
	if (time->rest_ns > NT_UNPROBED_REST_LONGEST_NS)
		time->rest_ns = NT_UNPROBED_REST_LONGEST_NS;
	time->rest_until_ns = now_ns + time->rest_ns;
}

/* False: the walk is not counted. */
static bool is_looking(struct nt_unprobed_time *time, uint64_t starts, uint64_t now_ns)
{
	if (time->is_found || now_ns < time->rest_until_ns)
		return false;
	if (time->is_asked) {
		if (now_ns < time->ended_ns + NT_UNPROBED_ANSWER_NS)
			return false;
		rest(time, now_ns);
		return false;
	}
	if (!time->outside && !time->inside) {
		time->begun_ns = now_ns;
		time->starts_begun = starts;
	}
	return time->outside + time->inside < NT_UNPROBED_WALKS;
}

/* The last walk of a look is done. True: only the mappings are missing to judge it. */
static bool end_look(struct nt_unprobed_time *time, uint64_t starts, uint64_t now_ns)
{
	time->ended_ns = now_ns;
	if (starts - time->starts_begun >=
		    NT_UNPROBED_STARTS * (now_ns - time->begun_ns) / NT_SECOND ||
	    100 * time->outside < NT_UNPROBED_PERCENT * NT_UNPROBED_WALKS) {
		rest(time, now_ns);
		return false;
	}
	time->is_asked = true;
	return true;
}

void nt_unprobed_time_inside(struct nt_unprobed_time *time, uint64_t starts, uint64_t now_ns)
{
	time->last_ip = 0;
	/* A look ends with a walk outside of calls, which can ask for the mappings. */
	if (is_looking(time, starts, now_ns) &&
	    time->outside + time->inside < NT_UNPROBED_WALKS - 1)
		time->inside++;
}

bool nt_unprobed_time_outside(struct nt_unprobed_time *time, uint64_t ip, uint64_t starts,
			      uint64_t now_ns)
{
	/*
	 * The same twice: it has perhaps not entered the kernel since, on a processor without a
	 * timer tick. Then the instruction says nothing of this second.
	 */
	const bool is_stale = ip == time->last_ip;

	time->last_ip = ip;
	if (!is_looking(time, starts, now_ns))
		return false;
	time->ip[time->outside++] = is_stale ? 0 : ip;
	return time->outside + time->inside == NT_UNPROBED_WALKS && end_look(time, starts, now_ns);
}

void nt_unprobed_time_interrupt(struct nt_unprobed_time *time, uint64_t lost_events)
{
	begin_anew(time);
	time->lost_events = lost_events;
	time->looks = 0;
	time->last_ip = 0;
}

bool nt_unprobed_time_judge(struct nt_unprobed_time *time, const struct nt_mpi_code *code,
			    uint64_t now_ns, struct nt_unprobed_finding *ret_finding)
{
	uint32_t within = 0;

	if (!time->is_asked)
		return false;
	for (uint32_t i = 0; code && i < time->outside; i++)
		within += nt_mpi_code_has(code, time->ip[i]);
	if (100 * within < NT_UNPROBED_PERCENT * NT_UNPROBED_WALKS) {
		rest(time, now_ns);
		return false;
	}
	begin_anew(time);
	if (++time->looks < NT_UNPROBED_LOOKS)
		return false;
	time->is_found = true;
	*ret_finding = (struct nt_unprobed_finding){
		.percent = 100 * within / NT_UNPROBED_WALKS,
	};
	return true;
}
