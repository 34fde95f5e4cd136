/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Communicators. */
#include "detect/model/communicator.h"

struct nt_detect_comm *nt_detect_comm_find(struct nt_detect_comm *head, uint64_t id)
{
	struct nt_detect_comm *comm = NULL;

	HASH_FIND(hh, head, &id, sizeof(id), comm);
	return comm;
}

enum nt_detect_comm_use nt_detect_comm_use(const struct nt_detect_comm *comm)
{
	if (comm->all_to_all_calls > 0.0)
		return NT_DETECT_COMM_EXPERT;
	if (comm->sync_calls > 0.0)
		return NT_DETECT_COMM_REDUCING;
	if (comm->p2p_calls > 0.0)
		return NT_DETECT_COMM_PIPELINE;
	return NT_DETECT_COMM_IDLE;
}

double nt_detect_comm_calls(const struct nt_detect_comm *comm)
{
	return comm->steps > 0.0 ? comm->sync_calls / comm->steps : comm->sync_calls;
}

double nt_detect_comm_call_bytes(const struct nt_detect_comm *comm)
{
	return comm->sync_calls > 0.0 ? comm->sync_bytes / comm->sync_calls : 0.0;
}

void nt_network_forget(struct nt_detect_comm *comm)
{
	comm->network = comm->other_network = (struct nt_network){0};
	comm->strange_rounds = 0;
}
