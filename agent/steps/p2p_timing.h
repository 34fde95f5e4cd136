/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Durations of a rank's blocking calls to and from single members of a communicator, since its last
 * window. A call lasts until the peer has arrived, so one call means little. The side that arrived
 * last did not wait: the shorter of both sides' shortest calls is the transfer
 * (detect/model/link.h). Small messages are sent without waiting and are ignored.
 *
 * What NCCL's proxies send (plugin/nccl/proxy_send.h) is recorded as NT_OP_PUT: it waits for nobody.
 */
#ifndef NT_AGENT_STEPS_P2P_TIMING_H
#define NT_AGENT_STEPS_P2P_TIMING_H

#include <stdint.h>

#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_P2P_TIMING_MAX = 32, /* (peer, direction) of one communicator in one window */
	/*
	 * Upper bound of eager sends: 64 KiB is Open MPI's limit over TCP. Those of MPICH, and of
	 * both over shared memory and InfiniBand, are lower.
	 */
	NT_P2P_TIMING_LEAST_BYTES = 65536,
};

struct nt_p2p_timing {
	struct nt_transfer *transfer; /* owned; NULL until the first */
	uint32_t count;
};

/*
 * Records calls, of which the shortest took `ns`. 0, -ENOSPC if the table is full, -ENOMEM. A larger
 * call than before restarts the account of its peer, a smaller one is ignored.
 */
NT_MUST_CHECK int nt_p2p_timing_note(struct nt_p2p_timing *peers, uint32_t peer, enum nt_op op,
				     uint64_t bytes, uint64_t calls, uint64_t ns);
void nt_p2p_timing_clear(struct nt_p2p_timing *peers);
void nt_p2p_timing_release(struct nt_p2p_timing *peers);

#endif
