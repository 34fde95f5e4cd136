/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How long a rank's blocking calls to and from single members of a communicator took, since its last
 * window. A call lasts until the peer is there too, so one call tells little; but of the two sides
 * whoever came last waited for nobody, and the shorter of their shortest is the transfer
 * (detect/model/link.h). Small messages go whether or not anybody waits for them, and are left out.
 */
#ifndef NT_AGENT_STEPS_P2P_TIMING_H
#define NT_AGENT_STEPS_P2P_TIMING_H

#include <stdint.h>

#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_P2P_TIMING_MAX = 32, /* (peer, direction) of one communicator in one window */
	/*
	 * Libraries send up to about this much eagerly: 64 KiB is Open MPI's limit over TCP, and
	 * those of MPICH and of both over shared memory and InfiniBand are lower.
	 */
	NT_P2P_TIMING_LEAST_BYTES = 65536,
};

struct nt_p2p_timing {
	struct nt_transfer *transfer; /* owned; NULL until the first */
	uint32_t count;
};

/*
 * One call. 0, -ENOSPC where the table is full, -ENOMEM. A larger call than before begins the
 * account of its peer anew, a smaller one is left out: of a mixture the largest tells most.
 */
NT_MUST_CHECK int nt_p2p_timing_note(struct nt_p2p_timing *peers, uint32_t peer, enum nt_op op,
				     uint64_t bytes, uint64_t ns);
void nt_p2p_timing_clear(struct nt_p2p_timing *peers);
void nt_p2p_timing_release(struct nt_p2p_timing *peers);

#endif
