/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the flight recorder reader; for cli/readers/flight*.c and read_flight.c only. */
#ifndef NT_CLI_READERS_FLIGHT_IMPL_H
#define NT_CLI_READERS_FLIGHT_IMPL_H

#include <jansson.h>

#include "cli/readers/flight.h"
#include "common/base/buf.h"

#define NT_FLIGHT_MAX_NS (1ULL << 62) /* limit of all times */

/* ---- flight_dump.c: one dump --------------------------------------------------------------- */

/* A process group as pg_config lists it. */
struct nt_flight_listed {
	uint64_t name, ranks_hash, number; /* number: version 1 only, see name_old */
	uint32_t size, place;
};

/* State of reading one file. */
struct nt_flight_dump {
	struct nt_flight *flight;
	struct nt_flight_rank *out;
	const struct nt_buf *text; /* NULL: a pickle, which has no lines */
	const json_t *status; /* pg_status, or NULL */
	struct nt_flight_listed *listed;
	size_t listeds;
	bool old; /* version 1, of PyTorch 2.3 */
	struct nt_trace_error *error;
};

/* A number of at most max, as number or string. False: it is none. */
bool nt_flight_read_number(const json_t *value, uint64_t max, uint64_t *ret_number);
/* Reads the process groups of pg_config. -EBADMSG, -ENOMEM. */
NT_MUST_CHECK int nt_flight_read_config(struct nt_flight_dump *dump, const json_t *config);
/* Adds the groups without calls in the dump. -ENOMEM, -E2BIG. */
NT_MUST_CHECK int nt_flight_add_silent(struct nt_flight_dump *dump);
/* Reads all calls. -EBADMSG, -ENOMEM, -E2BIG. */
NT_MUST_CHECK int nt_flight_read_entries(struct nt_flight_dump *dump, const json_t *entries);

/* ---- flight_wait.c: which rank waits for which -------------------------------------------- */

enum {
	NT_FLIGHT_CUTS = 4, /* frames by numbers */
};

/* One rank in one group. */
struct nt_flight_member {
	struct nt_flight_rank *rank;
	struct nt_flight_group *group;
	struct nt_frame_signature *signature; /* of its calls */
	struct nt_frame_op *op;
	size_t ops;
	uint64_t at; /* the last call that it entered */
	uint64_t cut[NT_FLIGHT_CUTS];
};

/* The call in which a rank hangs. */
struct nt_flight_stand {
	const struct nt_flight_group *group; /* NULL: none */
	const struct nt_flight_call *call;
	uint64_t since_ns;
	const struct nt_flight_rank *peer; /* the rank it waits for, if there is exactly one */
	uint64_t pair; /* 0: none */
	size_t pairs; /* pairs of the rank, if others wait for it */
};

/*
 * One of two ranks of which one waits for a send or receive of the other. Each numbers its sends
 * and receives independently, so the two form a communicator of their own, in its next call.
 */
struct nt_flight_side {
	uint64_t pair;
	const struct nt_flight_rank *rank;
	bool in; /* it waits for the other one */
};

struct nt_flight_making {
	struct nt_flight *flight;
	struct nt_trace *trace;
	struct nt_flight_member *member; /* by group, then by rank */
	struct nt_flight_member **of_rank; /* by rank, in the order of its groups */
	size_t members;
	struct nt_flight_stand *stand; /* by rank */
	struct nt_flight_side *side; /* by rank; no more than two a rank */
	size_t sides;
	uint64_t now_ns, differ_ns; /* differ: the first call that differs; 0: none */
};

/* Finds pairs of ranks of which one waits for the other. -ENOMEM. */
NT_MUST_CHECK int nt_flight_find_pairs(struct nt_flight_making *making);
/* Adds the calls in which ranks hang, the longest wait first. -ENOMEM. */
NT_MUST_CHECK int nt_flight_add_waits(struct nt_flight_making *making);

#endif
