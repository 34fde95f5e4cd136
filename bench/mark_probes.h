/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * For programs that compare the cost of a mark with the agent's probe with that of a mark of their own
 * with an empty probe: the same nop. Costs are of the thread's CPU time.
 */
#ifndef NT_BENCH_MARK_PROBES_H
#define NT_BENCH_MARK_PROBES_H

#include <stddef.h>
#include <stdint.h>

enum {
	MARK_PROBES_ROUNDS = 101, /* at most */
};

struct mark_probes;

/* argv: EMPTY_BPF_OBJECT [ROUNDS]. Prints what is wrong. The agent's events are read from now on. */
int mark_probes_open(int argc, char **argv, struct mark_probes **ret_probes, uint64_t *ret_rounds);
void mark_probes_close(struct mark_probes *probes);
/* Attaches to the mark of `library` in this program, and the empty probe to the other one. */
int mark_probes_attach(struct mark_probes *probes, int library);
void mark_probes_detach(struct mark_probes *probes);

double mark_probes_cpu_ns(void);
/* ns of the mark with the empty probe. */
double mark_probes_fire(void);
double mark_probes_median(double *of, size_t n);

#endif
