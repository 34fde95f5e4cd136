/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Requests to the RAS subsystem of NCCL, which knows the communicators of a job that ran before the
 * agent. A worker makes each, in the network namespace of a rank, and is killed afterwards: it
 * cannot return. Optional, as all processes of the job take part in an answer.
 */
#ifndef NT_AGENT_RAS_RAS_H
#define NT_AGENT_RAS_RAS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/discover/worker.h"
#include "agent/ras/ras_answer.h"
#include "agent/ras/ras_schedule.h"
#include "common/base/cleanup.h"
#include "common/system/clock.h"

/* After that the worker is killed. A status may take NCCL 10 s. */
#define NT_RAS_STALL_NS (30 * NT_SECOND)

enum nt_ras_result {
	NT_RAS_ANSWERED,
	NT_RAS_OFF, /* NCCL_RAS_ENABLE=0 */
	NT_RAS_BAD_PORT, /* NCCL_RAS_ADDR has no usable port */
	NT_RAS_DENIED, /* CAP_SYS_ADMIN is missing, to enter another network namespace */
	NT_RAS_UNREACHABLE, /* nothing listens, or the connection broke */
	NT_RAS_UNSUPPORTED, /* before 2.28.7, or no RAS */
	NT_RAS_MALFORMED, /* no status, or too large */
	NT_RAS_STALLED,
	NT_RAS_FAILED, /* the process or the worker ended, out of memory */
	NT_RAS_RESULT_END,
};

struct nt_ras_stats {
	uint64_t results[NT_RAS_RESULT_END]; /* requests so far */
	uint64_t over_cap, impossible; /* of the answers, dropped */
	uint64_t files_over_cap, unplaced; /* of the schedule */
	uint64_t ranks, missing; /* of the last answer */
};

struct nt_ras;

/* workers is borrowed. -ENOMEM. */
NT_MUST_CHECK int nt_ras_new(struct nt_workers *workers, struct nt_ras **ret_ras);
/* Accepts NULL. */
void nt_ras_free(struct nt_ras *ras);
NT_DEFINE_AUTO(nt_ras, nt_ras_free)

/*
 * Starts a request if one is due, and none is under way. Never blocks; meant to be called once a second.
 * now_ns: monotonic, as below.
 */
void nt_ras_ask(struct nt_ras *ras, const struct nt_ras_want *want, size_t wants, uint64_t now_ns);

/* An answer that has come, valid until the next request is made, and the process that it is of. NULL: none. */
const struct nt_ras_answer *nt_ras_take(struct nt_ras *ras, uint64_t now_ns,
					struct nt_ras_want *ret_want);

/* True if the values are possible: they may come from a compromised worker. */
bool nt_ras_is_sound(const struct nt_ras_answer *answer);

void nt_ras_stats(const struct nt_ras *ras, struct nt_ras_stats *ret_stats);

#endif
