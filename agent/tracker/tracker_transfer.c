/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What NCCL's proxies sent, as the profiler plugin reports it (plugin/nccl/proxy_send.h). */
#include "agent/tracker/tracker_impl.h"

#include <errno.h>
#include <string.h>

static void take(struct nt_tracker *tracker, const struct nt_process *process,
		 const struct nt_gpu_transfer *transfer)
{
	struct nt_communicator *comm;
	int r;

	if (transfer->peer == NT_GPU_NO_PEER) {
		tracker->stats.gpu_transfers_over_cap += transfer->sends;
		return;
	}
	/* NCCL's own id is that of the communicator, unless its memory could not be read. */
	comm = nt_tracker_comm(process, transfer->comm, transfer->rank);
	if (!comm) {
		tracker->stats.gpu_transfers_unowned++;
		return;
	}
	tracker->stats.gpu_transfers++;
	r = nt_communicator_sent(comm, transfer);
	if (r == -ENOSPC)
		tracker->stats.peers_over_cap++;
	else if (r < 0)
		tracker->stats.no_memory++;
}

bool nt_tracker_take_transfers(struct nt_tracker *tracker, const struct nt_process *process,
			       const struct nt_event_gpu *batch)
{
	const struct nt_probe *row = nt_probe_row(NT_ROW_OF(batch->h.row));
	struct nt_gpu_transfer transfer;

	if (!row || row->library != (enum nt_library)NT_LIBRARY_NCCL_SENDS)
		return false;
	for (uint32_t i = 0; i < batch->records; i++) {
		memcpy(&transfer, &batch->record[i], sizeof(transfer));
		take(tracker, process, &transfer);
	}
	return true;
}
