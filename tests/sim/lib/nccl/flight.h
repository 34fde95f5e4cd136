/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One run of a plan's kernel on the GPU. A plan in a graph has as many as the graph was launched. */
#ifndef NT_SIM_NCCL_FLIGHT_H
#define NT_SIM_NCCL_FLIGHT_H

#include <stddef.h>
#include <stdint.h>

struct sim_plan;
struct sim_profiled;

struct sim_flight {
	struct sim_flight *next; /* that the host has not posted yet */
	unsigned int refs; /* atomic */
	struct sim_profiled *comm; /* a reference */
	struct sim_plan *plan; /* a reference */
	/* Under the communicator's mutex; 0: not yet. */
	uint64_t start_ns; /* its stream has reached it */
	uint64_t arrive_ns, end_ns; /* all ranks have come; it is done */
	double network; /* part of the time between, in which the network has what is sent */
	uint64_t counter[]; /* of the GPU, by work and channel */
};

/* NULL: no memory. */
struct sim_flight *sim_flight_new(struct sim_plan *plan);
struct sim_flight *sim_flight_ref(struct sim_flight *flight);
void sim_flight_unref(struct sim_flight *flight);

/* ---- by the GPU: under the device's lock ---- */

/* It is put on a stream: its works get their numbers. */
void sim_flight_number(struct sim_flight *flight);
void sim_flight_start(struct sim_flight *flight, uint64_t start_ns);
void sim_flight_end(struct sim_flight *flight, uint64_t arrive_ns, uint64_t end_ns, double network);

#endif
