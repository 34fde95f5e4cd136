/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One rank of a job on this node: usually a process, but a process may hold several. It takes the
 * communication and synchronising calls of its threads and finds the steps. It measures own work in
 * each step, and sums up until a window is due.
 */
#ifndef NT_AGENT_STEPS_RANK_H
#define NT_AGENT_STEPS_RANK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/host/host.h"
#include "agent/identity/identity.h"
#include "agent/steps/call_order.h"
#include "agent/steps/communicator.h"
#include "agent/steps/completion.h"
#include "agent/steps/gpu.h"
#include "agent/steps/process.h"
#include "agent/steps/step.h"
#include "agent/steps/step_accounting.h"
#include "agent/steps/stream_order.h"
#include "common/base/cleanup.h"

/* Sums of the steps that ended since the last window. */
struct nt_rank_sums {
	uint32_t steps, covered; /* all; those with valid own work */
	uint64_t first_step, step_epoch;
	uint64_t own_ns, own_blocked_ns; /* of the covered ones */
	uint32_t gpu_steps; /* whose device time is known */
	uint64_t gpu_ns, gpu_lag_ns, gpu_queued_ns; /* of these */
	bool gpu_by_communication; /* so are these */
	uint64_t host_ns, blocked_ns, comm_ns, step_ns, launches;
	uint32_t local_syncs;
	uint64_t end_ns; /* of the last step */
	bool asynchronous;
};

struct nt_detail_log;
struct nt_tracker_key;

struct nt_rank {
	struct nt_process *process; /* borrowed: it owns the rank */
	struct nt_tracker_key *in_key; /* borrowed; NULL: none, or no free slot */
	struct nt_rank *prev, *next; /* ranks of the same key */
	uint32_t missed; /* the last period in which it had none */
	/* Position in the job. */
	bool known;
	uint32_t rank, size, local_rank;
	const struct nt_communicator *world; /* its source; NULL: the environment, or none */
	char key[NT_IDENTITY_KEY]; /* empty until the first window is sent, fixed from then on */
	char name[NT_IDENTITY_NAME];

	struct nt_step *step; /* owned */
	struct nt_call_order call_order; /* of Gloo's calls */
	struct nt_stream_order *order; /* owned; NULL until an asynchronous call */
	struct nt_gpu *gpu; /* owned; NULL until a plugin reports a kernel */
	struct nt_detail_log *detail; /* owned by agent/tracker/tracker_detail.c; NULL: none */
	struct nt_completion *completion; /* owned; NULL until its process queries an event */
	struct nt_accounting work;
	struct nt_rank_sums sums;
	uint64_t found_count; /* of nt_step_info, as seen last */
	uint64_t step_epoch;
	uint64_t step_before_ns; /* begin of the step before the current one; 0: none */

	uint64_t window_ns; /* begin of the window; 0: no call yet */
	uint64_t held_ns; /* begin of its first held window; 0: none */
	uint64_t last_event_ns;
	uint64_t comms_made, errors;
	uint64_t probed_calls; /* communication calls and waits in the sums, approximately */
	uint64_t lost_seen, events_seen; /* the process's counts at the last window */
	uint64_t unobserved_seen; /* the same of nt_process.unobserved_ns */
	uint64_t measured; /* steps sent so far */
	/* Of sampled windows, weighted to recent ones: number and time of steps, other time. */
	double sliced_steps, sliced_ns, sliced_rest_ns;
	uint32_t shed; /* not observed at some time of the window: NT_WIRE_SHED_* */
	uint64_t stack_id, profile_id; /* of the last such request; 0: none so far */

	struct nt_host *host; /* owned; NULL: none open */
	struct nt_host_sample host_before;
	bool host_before_holds;

	struct {
		bool in_call, synchronising;
		uint64_t comm, number, since_ns, count, seen_ns;
		enum nt_op op;
		uint32_t type;
	} inside;

	bool asynchronous; /* it has made asynchronous calls */
	bool synchronises; /* on local work: that proves its own work, if anything does */
	bool gloo; /* its calls come from a thread pool; the main thread does the work */
};

NT_MUST_CHECK int nt_rank_new(struct nt_process *process, struct nt_rank **ret_rank);
void nt_rank_free(struct nt_rank *rank);
NT_DEFINE_AUTO(nt_rank, nt_rank_free)
size_t nt_rank_bytes(const struct nt_rank *rank);

/* Sets the position in the job as now known. It changes while communicators are created. */
void nt_rank_identify(struct nt_rank *rank);

/*
 * Takes a communication call, a blocking one at its return. True: a step has ended and is in the
 * sums.
 */
bool nt_rank_comm(struct nt_rank *rank, struct nt_communicator *comm,
		  const struct nt_communicator_call *call, uint64_t stream, uint64_t launches);
/* A wait for calls that do not block. */
void nt_rank_wait(struct nt_rank *rank, uint64_t entry_ns, uint64_t ret_ns);
/* counted: waiting of this thread keeps the rank from working. */
void nt_rank_sync(struct nt_rank *rank, enum nt_stream_order_sync what, uint64_t handle,
		  bool counted, uint64_t entry_ns, uint64_t ret_ns, uint64_t launches);
void nt_rank_record(struct nt_rank *rank, uint64_t event, uint64_t stream);
void nt_rank_stream_wait(struct nt_rank *rank, uint64_t stream, uint64_t event);
/* A query of an event returned whether it is complete. */
void nt_rank_query(struct nt_rank *rank, uint64_t event, bool is_complete, uint64_t ns);
/*
 * A graph is launched whose capture was not observed. Its contents are unknown, but a communicator
 * that was called once and no longer is taken to be in it. Waits for the stream may then be waits
 * for other ranks.
 */
void nt_rank_graph(struct nt_rank *rank, uint64_t stream, uint64_t entry_ns, uint64_t launches);

/* A device interval, reported by a plugin at now_ns. comm: its communicator; NULL: unknown. */
bool nt_rank_gpu(struct nt_rank *rank, struct nt_communicator *comm,
		 const struct nt_gpu_interval *interval, uint64_t now_ns);
/* Intervals of the rank's process were lost. */
void nt_rank_gpu_lost(struct nt_rank *rank);
/* nt_gpu_open() and nt_gpu_close(). */
void nt_rank_gpu_open(struct nt_rank *rank, uint64_t from_ns, bool by_communication);
void nt_rank_gpu_close(struct nt_rank *rank);

/* Takes steps that have ended since; true as for nt_rank_comm(). */
bool nt_rank_settle(struct nt_rank *rank, uint64_t now_ns);

/*
 * The rank was not observed since its last call: drops the current step, and follows steps from the
 * next one on.
 */
void nt_rank_gap(struct nt_rank *rank);

/* The thread that represents the rank: the one with the most communication calls. */
uint32_t nt_rank_thread(const struct nt_rank *rank);

/* The tier at which own work is observable in the sums, and its amount. */
enum nt_tier nt_rank_own(const struct nt_rank *rank, uint64_t *ret_own_ns,
			 uint64_t *ret_own_blocked_ns, enum nt_own_source *ret_source);

/* The window has been sent; the next begins at end_ns. */
void nt_rank_clear(struct nt_rank *rank, uint64_t end_ns);

#endif
