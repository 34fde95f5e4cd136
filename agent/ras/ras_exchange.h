/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The exchange with NCCL's RAS subsystem on a connected socket: protocol, format, status. Nothing else
 * is ever requested: DIAGNOSTICS runs tests on the GPUs of the job, and CONTROL changes it. For
 * workers only, as the functions block.
 */
#ifndef NT_AGENT_RAS_RAS_EXCHANGE_H
#define NT_AGENT_RAS_RAS_EXCHANGE_H

#include <stdint.h>

#include "agent/ras/ras_answer.h"

/*
 * Requests the status of the job and reads it. until_ns: monotonic time. -ETIMEDOUT: not complete by
 * then. -EPROTONOSUPPORT: it is no RAS, or NCCL is older than 2.28.7 and has no JSON. Also the errors
 * of nt_ras_answer_read() and of the socket.
 */
NT_MUST_CHECK int nt_ras_exchange(int fd, uint32_t pid, uint64_t until_ns,
				  struct nt_ras_answer *ret_answer);

/* Waits until the descriptor has one of these events of poll(). -ETIMEDOUT. */
NT_MUST_CHECK int nt_ras_exchange_wait(int fd, short events, uint64_t until_ns);

#endif
