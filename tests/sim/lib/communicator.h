/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Communicators of the stand-in libnccl, and how their ranks meet: a file of shared memory named
 * after the unique id. It goes from the directory when the last rank has come, so nothing is left
 * behind by a job that is killed.
 *
 * A collective is known by its number. A rank *publishes* its part (when its stream reached it, and
 * its data if they are small); when all parts that it needs are there, the rank *resolves* it: the
 * end is the last arrival plus the transfer time, and the data are fetched. A rank publishes a
 * collective only after it has resolved the one before, so a few slots are enough. Sends and
 * receives have slots for each pair of ranks.
 */
#ifndef NT_SIM_COMM_H
#define NT_SIM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/lib/nccl/nccl.h"

enum {
	SIM_SLOTS = 4,
	SIM_CHANNEL_SLOTS = 16,
	SIM_MAX_RANKS = 256,
	SIM_DATA_BYTES = 8 << 20, /* larger collectives take their time but move no data */
	SIM_CHANNEL_DATA_BYTES = 256 << 10,
	SIM_EAGER_BYTES = 64 << 10, /* larger sends wait for the receiver */
};

/* What a rank publishes. Written whole, then its number. */
struct sim_part {
	uint64_t number; /* 0: never used */
	uint64_t arrive_ns;
	/* operation, count, type, root: equal on all ranks, or nobody goes on */
	uint64_t signature;
	double nic;
	uint32_t has_data, pad[7];
};

_Static_assert(sizeof(struct sim_part) == 64, "a cache line");

struct sim_member {
	uint32_t bell; /* a futex: the rank's process looks again */
	uint32_t pid;
	uint64_t resolved; /* collectives */
	uint64_t split; /* number of the last split, with its arguments */
	int32_t color[2], key[2]; /* by the parity of the split's number */
	uint64_t pad[3];
};

struct sim_channel {
	struct sim_part send[SIM_CHANNEL_SLOTS], recv[SIM_CHANNEL_SLOTS];
	uint64_t received; /* messages taken */
	uint64_t pad[7];
};

struct sim_shared {
	uint32_t joined; /* a futex */
	uint32_t splits; /* a futex: changes with each rank's split */
	uint32_t starved; /* somebody waits for a slot */
	uint32_t ranks;
	uint64_t pad[6];
	struct sim_member member[];
};

struct sim_comm {
	struct sim_shared *shared;
	size_t bytes;
	unsigned int rank, ranks;
	int device;
	uint64_t hash;
	bool aborted;
	unsigned int refs; /* of the handle and of the operations under way */
	uint64_t numbered, resolved; /* collectives */
	uint64_t splits;
	uint64_t *sent, *received; /* by peer: numbered */
	ncclUniqueId id;
};

/* Waits until all ranks have come. NULL: no memory, or more than SIM_MAX_RANKS. */
struct sim_comm *sim_comm_join(const ncclUniqueId *id, unsigned int ranks, unsigned int rank,
			       int device);
/* The last reference unmaps. Under the device's lock. */
void sim_comm_unref(struct sim_comm *comm);

struct sim_part *sim_comm_part(const struct sim_comm *comm, uint64_t number, unsigned int rank);
char *sim_comm_data(const struct sim_comm *comm, uint64_t number, unsigned int rank);
struct sim_channel *sim_comm_channel(const struct sim_comm *comm, unsigned int from,
				     unsigned int to);
char *sim_comm_channel_data(const struct sim_comm *comm, unsigned int from, unsigned int to,
			    uint64_t number);

/* Writes the part and its number; visible to all ranks that see the number. */
void sim_part_publish(struct sim_part *part, const struct sim_part *value);
bool sim_part_is(const struct sim_part *part, uint64_t number);

/* Has the process of one rank, or of all but this one, look again. */
void sim_comm_ring(const struct sim_comm *comm, unsigned int rank);
void sim_comm_ring_all(const struct sim_comm *comm);
/* All ranks are near enough for a slot with this number. */
bool sim_comm_has_room(const struct sim_comm *comm, uint64_t number);
/* This rank is done with the collective; wakes who waits for a slot. */
void sim_comm_resolved(struct sim_comm *comm, uint64_t number);

/* Tells colour and key to all ranks and waits for theirs. The new rank and size; size 0: none. */
void sim_comm_split(struct sim_comm *comm, int color, int key, unsigned int *ret_rank,
		    unsigned int *ret_ranks, ncclUniqueId *ret_id);
/* An id that all ranks derive alike. */
void sim_comm_derive(const struct sim_comm *comm, uint64_t salt, ncclUniqueId *ret_id);

uint64_t sim_hash(uint64_t seed, const void *data, size_t len);

#endif
