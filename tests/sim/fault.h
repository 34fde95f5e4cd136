/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Faults of the simulated jobs, switched at run time by a text file that every rank reads once a
 * step. One fault a line, "KIND RANK [VALUE]"; RANK is the job's rank or "all"; a line that starts
 * with # is ignored:
 *
 *	compute RANK FACTOR	kernels take FACTOR times as long
 *	nic RANK FACTOR		transfers that touch the rank take FACTOR times as long
 *	loader RANK MS		the host waits MS longer for its data in each step
 *	gc RANK MS		the host burns MS of CPU in every tenth step
 *	checkpoint RANK MS	the host writes for MS, once for each appearance of the line
 *	leak RANK MIB		the rank allocates MIB of device memory in each step, which it never frees
 *	hang RANK		the rank enters no further collective while the line stands
 *	mismatch RANK		the rank's next gradient reduction has one element less
 *	exit RANK [CODE]	the rank's process ends at once
 *	stop all		the job ends in an orderly way
 *
 * Write the file under another name and rename it: then no rank reads a half one.
 */
#ifndef NT_SIM_FAULT_H
#define NT_SIM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct sim_fault {
	double compute, nic; /* factors, 1: healthy */
	uint64_t loader_ns, gc_ns, checkpoint_ns, leak_bytes;
	bool hang, mismatch, exit, stop;
	int exit_code;
};

/* A missing or unreadable file, or a NULL path, means healthy. */
void sim_fault_read(const char *path, uint32_t rank, struct sim_fault *ret_fault);

#endif
