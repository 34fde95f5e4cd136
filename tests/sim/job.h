/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the simulated jobs share: time, their work on host and device, and the count of the truth. */
#ifndef NT_SIM_JOB_H
#define NT_SIM_JOB_H

#include <stddef.h>
#include <stdint.h>

/* A whole decimal number such as "12" or "1.5". -EINVAL for anything else. */
int sim_number(const char *text, double *ret_value);

uint64_t sim_now_ns(void); /* monotonic */
void sim_sleep_ns(uint64_t ns);
void sim_burn_ns(uint64_t ns); /* of CPU time */
/* Writes to a file in DIR (or the current one), which has no name, for so long. */
void sim_checkpoint_ns(const char *dir, uint64_t ns);

/* The next number of a small deterministic generator, in [0, 1). */
double sim_random(uint64_t *state);

/* What a rank did, exactly, by operation and communicator. */
enum {
	SIM_TRUTH_ROWS = 128,
};

struct sim_truth_row {
	char op[24]; /* the names of proto/wire.c: "all-reduce" */
	char comm[24]; /* the job's own name of the communicator: "world", "dp" */
	uint32_t size, comm_rank;
	uint64_t calls, bytes;
};

struct sim_truth {
	uint32_t rank, size;
	uint64_t steps, launches;
	struct sim_truth_row row[SIM_TRUTH_ROWS];
	size_t rows;
};

void sim_truth_add(struct sim_truth *truth, const char *op, const char *comm, uint32_t comm_rank,
		   uint32_t size, uint64_t bytes);

/* Writes DIR/rank-N.json whole or not at all. 0 or -errno. */
int sim_truth_write(const struct sim_truth *truth, const char *dir);

#endif
