/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Learns communicators from the reports of their members. */
#include "detect/baseline/communicator_learn.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/array.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

struct nt_detect_comm *nt_detect_comm_add(struct nt_detect *detect, uint64_t id)
{
	struct nt_detect_comm *comm = nt_detect_comm_find(detect->comms, id);

	if (comm || detect->comm_count >= NT_DETECT_COMM_MAX ||
	    nt_array_room((void **)&detect->comm, &detect->comm_cap, detect->comm_count,
			  sizeof(struct nt_detect_comm *)) < 0)
		return comm;
	comm = calloc(1, sizeof(*comm));
	if (!comm)
		return NULL;
	comm->id = id;
	HASH_ADD(hh, detect->comms, id, sizeof(comm->id), comm);
	if (!comm->hh.tbl) {
		free(comm);
		return NULL;
	}
	detect->comm[detect->comm_count++] = comm;
	return comm;
}

static void comm_free(struct nt_detect_comm *comm)
{
	free(comm->member);
	nt_collective_round_free(&comm->collective_round);
	free(comm);
}

/* Adds the rank's link to the communicator; NULL beyond a cap. */
static int link_add(struct nt_detect *detect, struct nt_detect_rank *rank, uint64_t id,
		    struct nt_detect_link **ret_link)
{
	struct nt_detect_comm *comm;

	*ret_link = NULL;
	if (rank->links == NT_FRAME_MAX_COMMS) {
		detect->dropped_comms++;
		return 0;
	}
	comm = nt_detect_comm_add(detect, id);
	if (!comm && detect->comm_count >= NT_DETECT_COMM_MAX) {
		detect->dropped_comms++;
		return 0;
	}
	if (!comm ||
	    nt_array_room((void **)&rank->link, &rank->link_cap, rank->links, sizeof(*rank->link)) <
		    0 ||
	    nt_array_room((void **)&comm->member, &comm->member_cap, comm->members,
			  sizeof(*comm->member)) < 0)
		return -ENOMEM;
	comm->member[comm->members++] = rank->rank;
	detect->roles.dirty = true;
	*ret_link = &rank->link[rank->links++];
	**ret_link = (struct nt_detect_link){.comm = comm};
	return 0;
}

/* The rank's existing link; usually at the same index. */
static struct nt_detect_link *find_link(const struct nt_detect_rank *rank, uint64_t id,
					size_t likely)
{
	if (likely < rank->links && rank->link[likely].comm->id == id)
		return &rank->link[likely];
	for (uint32_t i = 0; i < rank->links; i++)
		if (rank->link[i].comm->id == id)
			return &rank->link[i];
	return NULL;
}

/* Whether the bytes per call are equal; below 2^53 bytes the quotients are exact. */
static bool are_alike(const struct nt_frame_op *a, const struct nt_frame_op *b)
{
	return (double)a->bytes / (double)a->calls == (double)b->bytes / (double)b->calls;
}

static const struct nt_frame_op *find_op(const struct nt_frame_comm *said, uint8_t op)
{
	for (size_t i = 0; i < said->ops; i++)
		if (said->op[i].op == op && said->op[i].calls)
			return &said->op[i];
	return NULL;
}

/* The same operations with equal bytes per call. */
static bool do_alike(const struct nt_frame_comm *a, const struct nt_frame_comm *b)
{
	bool any = false;

	if (a->ops != b->ops)
		return false;
	for (size_t i = 0; i < a->ops; i++) {
		const struct nt_frame_op *other = find_op(b, a->op[i].op);

		if (!a->op[i].calls || !other || !are_alike(&a->op[i], other))
			return false;
		any |= a->op[i].bytes > 0;
	}
	return any;
}

static void compare_sizes(struct nt_detect_comm *comm, const struct nt_frame_comm *said,
			  uint64_t frame)
{
	if (comm->matched == NT_DETECT_COMM_TRUSTED)
		return;
	if (do_alike(comm->first, said))
		comm->matched_frame = frame;
	else
		comm->unlike_frame = frame;
}

static void compare_calls(struct nt_detect_comm *comm, const struct nt_frame_comm *said,
			  uint64_t frame)
{
	if (comm->first_epoch != said->epoch)
		return;
	if (comm->first_last != said->last)
		compare_sizes(comm, said, frame);
	else if (comm->first_hash == said->rolling_hash)
		comm->agreed_frame = frame;
	else
		comm->differed_frame = frame;
}

/* Records the frame's first member, with which others are compared. */
static void keep_first(struct nt_detect_comm *comm, const struct nt_frame_comm *said,
		       uint64_t frame)
{
	comm->first_frame = frame;
	comm->first_epoch = said->epoch;
	comm->first_last = said->last;
	comm->first_hash = said->rolling_hash;
	comm->first = said;
}

/* Learns the communicator's operations and their amounts. */
static void learn_ops(struct nt_detect_comm *comm, const struct nt_frame_comm *said)
{
	for (size_t i = 0; i < said->ops; i++) {
		const struct nt_frame_op *op = &said->op[i];

		if (op->op < NT_DETECT_COMM_OPS && op->kind <= NT_FRAME_POINT_TO_POINT)
			comm->kind_of[op->op] = (uint8_t)(op->kind + 1);
		if (op->kind == NT_FRAME_SYNCHRONISING) {
			comm->sync_calls += (double)op->calls;
			comm->sync_bytes += (double)op->bytes;
		} else if (op->kind == NT_FRAME_ALL_TO_ALL) {
			comm->all_to_all_calls += (double)op->calls;
		} else if (op->kind == NT_FRAME_POINT_TO_POINT) {
			comm->p2p_calls += (double)op->calls;
		}
	}
}

/* Whether a call was completed; a new epoch is not a call. */
static bool has_gone_on(const struct nt_detect_link *link, const struct nt_frame_comm *said)
{
	if (!link->frame)
		return true;
	if (link->epoch == said->epoch)
		return link->last != said->last;
	for (size_t i = 0; i < said->ops; i++)
		if (said->op[i].calls)
			return true;
	return false;
}

int nt_detect_comm_learn(struct nt_detect *detect, struct nt_detect_rank *rank,
			 const struct nt_frame_rank *seen)
{
	for (size_t i = 0; i < seen->comms; i++) {
		const struct nt_frame_comm *said = &seen->comm[i];
		struct nt_detect_link *link = find_link(rank, said->id, i);
		struct nt_detect_comm *comm;

		if (!link && link_add(detect, rank, said->id, &link) < 0)
			return -ENOMEM;
		if (!link)
			continue;
		comm = link->comm;
		if (said->size > comm->size)
			comm->size = said->size;
		if (has_gone_on(link, said))
			link->progress_ns = comm->moved_ns = detect->end_ns;
		if (comm->first_frame == detect->frames)
			compare_calls(comm, said, detect->frames);
		else
			keep_first(comm, said, detect->frames);
		/* A rank reports once per frame. */
		if (link->frame != detect->frames &&
		    nt_collective_round_take(&comm->collective_round, detect->frames,
					     detect->start_ns, link, said, seen) < 0)
			return -ENOMEM;
		link->epoch = said->epoch;
		link->last = said->last;
		link->hash = said->rolling_hash;
		link->frame = detect->frames;
		comm->steps += seen->steps;
		learn_ops(comm, said);
	}
	return 0;
}

void nt_detect_comm_free_all(struct nt_detect *detect)
{
	HASH_CLEAR(hh, detect->comms);
	for (uint32_t i = 0; i < detect->comm_count; i++)
		comm_free(detect->comm[i]);
	free(detect->comm);
}
