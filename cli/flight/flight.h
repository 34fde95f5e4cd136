/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Dumps of PyTorch's flight recorder: the last collectives that each rank of a job enqueued, and
 * how far its device progressed in them. They show where a job hangs.
 */
#ifndef NT_CLI_READERS_FLIGHT_H
#define NT_CLI_READERS_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "common/base/table.h"

enum {
	NT_FLIGHT_PEERS = UINT32_MAX - 1,
	NT_FLIGHT_NO_PEER = UINT32_MAX,
};

/* A call, or all of one coalesced group. */
struct nt_flight_call {
	uint64_t number; /* in its process group, from 1 */
	uint64_t created_ns; /* when the host enqueued it */
	uint64_t expires_ns; /* when it times out; UINT64_MAX: unknown */
	uint64_t count; /* elements; 0 if members may differ in it */
	uint64_t hash; /* of all calls up to here that every member still has */
	uint32_t type;
	uint32_t tensors; /* one, or those of a coalesced call; 0: members may differ in it */
	uint8_t op; /* enum nt_op */
	bool started; /* on the device, as far as recorded */
	bool done;
	bool retired; /* off the host's list: done, or failed */
	bool names; /* the last entry of a coalesced group, which has the name of the whole */
	bool sends, receives; /* to or from one member: see peer */
	/* its index in the group; NT_FLIGHT_NO_PEER, or _PEERS if there are several */
	uint32_t peer;
};

/* The ranks of a process group, by their places. */
struct nt_flight_rank_list {
	uint64_t id; /* hash of the ranks */
	uint32_t *rank;
	uint32_t size;
	UT_hash_handle hh;
};

/* The calls of a rank in one process group; sends and receives are separate. */
struct nt_flight_group {
	uint64_t id; /* equal on all members */
	uint64_t name; /* hash of it */
	const struct nt_flight_rank_list *rank_list; /* of the flight; NULL: not listed */
	uint32_t size; /* 0: unknown */
	uint32_t place; /* of the rank in it, if the size is known */
	bool p2p;
	bool all; /* the group of all ranks of the job, by its description */
	/*
	 * The numbers of the last calls that the host enqueued and the device completed, from
	 * pg_status. False: not recorded, or sends and receives are counted too.
	 */
	bool counted;
	uint64_t enqueued, completed;
	char label[48]; /* name and description, printable */
	struct nt_flight_call *call; /* ascending by number */
	size_t calls;
};

struct nt_flight_rank {
	const char *path; /* borrowed */
	uint32_t rank;
	uint32_t world; /* 0: unknown */
	uint64_t written_ns; /* mtime of the file: the dump has no time */
	uint64_t newest_ns; /* newest time in it */
	bool whole; /* nothing has been overwritten yet */
	bool empty; /* the dump has no entries */
	bool missing; /* there is no dump of it: see nt_flight_add_missing() */
	bool uses_gpu;
	struct nt_flight_group *group;
	size_t groups;
};

struct nt_flight {
	struct nt_flight_rank *rank; /* ascending */
	size_t ranks, given; /* given: with a dump */
	uint32_t world; /* 0: unknown */
	struct nt_flight_rank_list *rank_list; /* by id */
	uint32_t listed; /* the highest rank in them, plus 1 */
	bool timed; /* the starts of calls on the devices are recorded */
	bool untyped; /* the element type of some call is not recorded */
	uint64_t dropped; /* calls of groups beyond NT_FRAME_MAX_COMMS of a rank */
};

/*
 * Reads one file per rank, JSON and perhaps gzipped. A rank waits in its oldest call that is not
 * done. The frames cover the calls up to that one, and then the state of the job until the dump was
 * written.
 */
NT_MUST_CHECK int nt_trace_read_flight(const char *const *paths, size_t count,
				       struct nt_trace **ret_trace,
				       struct nt_trace_error *ret_error);

/* Makes the frames for nt_trace_read_flight(). -ENOMEM, -E2BIG. */
NT_MUST_CHECK int nt_flight_frames(struct nt_flight *flight, struct nt_trace *trace);

#endif
