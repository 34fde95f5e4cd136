/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the flight recorder reader; for cli/flight/flight*.c and read_flight.c only. */
#ifndef NT_CLI_READERS_FLIGHT_IMPL_H
#define NT_CLI_READERS_FLIGHT_IMPL_H

#include <jansson.h>

#include "cli/flight/flight.h"
#include "cli/readers/pool.h"

#define NT_FLIGHT_MAX_NS (1ULL << 62) /* limit of all times */

enum {
	NT_FLIGHT_MAX_CALLS = 1 << 17, /* of one rank; the recorder keeps 2,000 by default */
};

/* ---- flight_files.c: all dumps ------------------------------------------------------------- */

void nt_flight_release_rank(struct nt_flight_rank *rank);
void nt_flight_release_lists(struct nt_flight *flight);
/*
 * Reads the files at the same time, into a rank each, in their order; notes in the trace which
 * could not be read. -ENOMEM.
 */
NT_MUST_CHECK int nt_flight_read_files(struct nt_flight *flight, const char *const *paths,
				       size_t count, struct nt_trace *trace,
				       struct nt_trace_error *error);

/* ---- read_flight.c, flight_dump.c, flight_group.c: one dump ------------------------------- */

/* A process group as pg_config lists it. */
struct nt_flight_listed {
	uint64_t name, ranks_hash;
	uint64_t number; /* its name, if that is a number; else UINT64_MAX */
	uint64_t pg_id; /* its number in the process; UINT64_MAX: unknown */
	const struct nt_flight_rank_list *rank_list;
	uint32_t size, place;
};

/* The number in the process of a group, by an entry. */
struct nt_flight_number {
	uint64_t name, pg_id;
};

/* State of reading one file. */
struct nt_flight_dump {
	struct nt_flight *flight; /* what only this file says of it */
	struct nt_flight_rank *out;
	struct nt_pool_memory *memory; /* for pickles and their trees */
	const json_t *status; /* pg_status, or NULL */
	struct nt_flight_listed *listed;
	size_t listeds;
	bool is_list; /* its entries */
	size_t entries;
	struct nt_flight_number *number;
	size_t numbers;
	bool old; /* version 1, of PyTorch 2.3 */
	struct nt_trace_error *error;
};

/* Reads the file of a rank, whose path is set. -errno with *error, -ENOMEM. */
NT_MUST_CHECK int nt_flight_read_dump(struct nt_flight *flight, struct nt_flight_rank *out,
				      struct nt_pool_memory *memory, struct nt_trace_error *error);
/* A number of at most max, as number or string. False: it is none. */
bool nt_flight_read_number(const json_t *value, uint64_t max, uint64_t *ret_number);
/* Reads the process groups of pg_config. -EBADMSG, -ENOMEM. */
NT_MUST_CHECK int nt_flight_read_config(struct nt_flight_dump *dump, const json_t *config);
/* Finds the group of that name, or adds it; NULL at the cap, which is counted. -ENOMEM. */
NT_MUST_CHECK int nt_flight_find_group(struct nt_flight_dump *dump, uint64_t name, bool p2p,
				       struct nt_flight_group **ret_group);
/* Adds the groups without calls in the dump. -ENOMEM, -E2BIG. */
NT_MUST_CHECK int nt_flight_add_silent(struct nt_flight_dump *dump);
/* Notes the number of its group, and counts it. -ENOMEM. */
NT_MUST_CHECK int nt_flight_note_entry(struct nt_flight_dump *dump, const json_t *entry);
/*
 * Finds the groups' keys in pg_status: numbers of the process, which only the entries relate to
 * names. -EBADMSG, -ENOMEM.
 */
NT_MUST_CHECK int nt_flight_match_status(struct nt_flight_dump *dump);
/* Its value in pg_status, or NULL. */
const json_t *nt_flight_status_of(const struct nt_flight_dump *dump,
				  const struct nt_flight_listed *listed);
/* The group's progress from pg_status, if it is there. */
void nt_flight_count(const struct nt_flight_dump *dump, const struct nt_flight_listed *listed,
		     struct nt_flight_group *group);
/* Ignores the progress of groups whose numbers sends and receives share. -ENOMEM. */
NT_MUST_CHECK int nt_flight_settle_status(struct nt_flight *flight);
/* Whether the entries are a list, and not too many: after all were noted. -EBADMSG. */
NT_MUST_CHECK int nt_flight_check_entries(struct nt_flight_dump *dump);
/* Reads the call at `at`; they come in order. -EBADMSG without place, -ENOMEM, -E2BIG. */
NT_MUST_CHECK int nt_flight_read_entry(struct nt_flight_dump *dump, size_t at, const json_t *entry);
/* After all entries. */
void nt_flight_settle_retired(struct nt_flight_rank *out);

/* ---- flight_status.c: how far a group is ------------------------------------------------- */

/* The oldest call that is not done, or NULL. */
const struct nt_flight_call *nt_flight_first_open(const struct nt_flight_group *group);
/* The number of the last call that the host enqueued; 0: none, or unknown. */
uint64_t nt_flight_enqueued(const struct nt_flight_group *group);
/* The number of the last call that is done, and all before it; 0: none, or unknown. */
uint64_t nt_flight_completed(const struct nt_flight_group *group);

struct nt_flight_making;
struct nt_flight_stand;
struct nt_flight_member;

/* ---- flight_stand.c: the call in which a rank hangs --------------------------------------- */

/* Sets the stands, and the time until which ranks have waited. */
void nt_flight_find_stands(struct nt_flight_making *making);
/*
 * The first of the rank's groups, from `from` on, with an open send or receive that was enqueued
 * before the rank's current collective. The number of its groups if there is none.
 */
size_t nt_flight_earlier(const struct nt_flight_rank *rank, const struct nt_flight_stand *stand,
			 size_t from);
/* The last call of the group that the member entered, by its stand. */
uint64_t nt_flight_entered(const struct nt_flight_making *making,
			   const struct nt_flight_member *member);
/*
 * A send or receive on the device does not keep the host from enqueuing its next call. If others
 * wait for the rank in a collective, and its partner waits for it in the end, it has no stand.
 * -ENOMEM.
 */
NT_MUST_CHECK int nt_flight_clear_loops(struct nt_flight_making *making);

/* ---- flight_missing.c: ranks without a dump ----------------------------------------------- */

/* Lists the ranks without a dump, before any is added. -ENOMEM. */
NT_MUST_CHECK int nt_flight_list_missing(const struct nt_flight *flight, struct nt_trace *trace);
/*
 * If no rank with a dump is the one that the others wait for, adds ranks without a dump. These are
 * the members of the calls in which others wait. *ret_added: start again. -ENOMEM.
 */
NT_MUST_CHECK int nt_flight_add_missing(struct nt_flight_making *making, bool *ret_added);

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
	uint64_t left; /* the last call that a member has completed */
	uint64_t cut[NT_FLIGHT_CUTS];
};

/* The call in which a rank hangs. */
struct nt_flight_stand {
	const struct nt_flight_group *group; /* NULL: none */
	const struct nt_flight_call *call;
	uint64_t since_ns;
	bool begun; /* the device is in it, or it has none */
	bool left; /* another member has completed it */
	bool after; /* earlier sends or receives are open too: the device may be there */
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
	size_t sides, unpaired; /* unpaired: left out, as a rank has too many communicators */
	uint64_t now_ns, differ_ns; /* differ: the first call that differs; 0: none */
	uint64_t since_ns; /* when the first rank began to wait; UINT64_MAX: none waits */
};

/* A send matches a receive. */
bool nt_flight_fit(const struct nt_flight_call *a, const struct nt_flight_call *b);
/* The member's stand, if it is in this group; else NULL. */
const struct nt_flight_stand *nt_flight_stand_of(const struct nt_flight_making *making,
						 const struct nt_flight_member *member);
/* NULL: it is not in the flight. */
const struct nt_flight_rank *nt_flight_find_rank(const struct nt_flight *flight, uint32_t rank);
/* The rank at that place of the group; UINT32_MAX: unknown. */
uint32_t nt_flight_rank_at(const struct nt_flight *flight, const struct nt_flight_group *group,
			   uint32_t place);
/* The member with that place, of those with sends and receives in the group; NULL: none. */
const struct nt_flight_rank *nt_flight_find_peer(const struct nt_flight_making *making,
						 const struct nt_flight_member *member,
						 uint32_t place);
/* Finds pairs of ranks of which one waits for the other, anew. -ENOMEM. */
NT_MUST_CHECK int nt_flight_find_pairs(struct nt_flight_making *making);
/* Adds the calls in which ranks hang, the longest wait first. -ENOMEM. */
NT_MUST_CHECK int nt_flight_add_waits(struct nt_flight_making *making);

#endif
