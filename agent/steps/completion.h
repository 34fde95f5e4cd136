/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Completion of a rank's communication on its GPU, as the rank's own program finds it out: it
 * records an event before and after each collective (*start* and *end*) and queries them later.
 * PyTorch's back end `nccl2` does. Input: the calls that put collectives and events on a stream, and
 * what queries returned.
 *
 * A query that finds the start of a collective pending, after the end of the one before was
 * complete, proves that the device is *outside* of communication. One that finds the end pending,
 * after the start was complete, proves that it is *inside*. Own work by step (tier T2) is the share
 * of outside times the length of a step.
 *
 * Queries are few, and may come at the same place of each step. The share is therefore no mean of
 * them. Each is put at its place in the step of the host (0 to 1). Outside is integrated over the
 * places. This assumes that the device keeps its distance from the host, step by step, as it does
 * if the host runs ahead and is held back. If it does not, places have queries of both kinds, and
 * the error is large. A share whose error is too large is not given. A batch of steps ends when its
 * error is small enough: with a query a second after minutes.
 */
#ifndef NT_AGENT_STEPS_COMPLETION_H
#define NT_AGENT_STEPS_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"

enum {
	NT_COMPLETION_MARKS =
		1 << 11, /* events of the stream that are not known to be complete, and one */
	NT_COMPLETION_LOOK = 64, /* of them, the oldest: where a queried event is searched */
	NT_COMPLETION_QUERIES = 512, /* of a step that has not ended; then every other is dropped */
	NT_COMPLETION_PLACES = 128, /* of a step */
};

struct nt_completion;

struct nt_completion_stats {
	uint64_t inside, outside; /* queries that prove where the device was */
	uint64_t unproved; /* queries that prove nothing */
	uint64_t marks_over_cap, queries_over_cap;
	uint64_t measured, given_up; /* batches of steps, with and without a result */
};

NT_MUST_CHECK int nt_completion_new(struct nt_completion **ret_completion);
void nt_completion_free(struct nt_completion *completion);
NT_DEFINE_AUTO(nt_completion, nt_completion_free)
size_t nt_completion_bytes(void);

/* A collective was put on the stream. Only ranks with all of them on one stream are measured. */
void nt_completion_collective(struct nt_completion *completion, uint64_t stream);
void nt_completion_record(struct nt_completion *completion, uint64_t event, uint64_t stream);
void nt_completion_query(struct nt_completion *completion, uint64_t event, bool is_complete,
			 uint64_t ns);
/* A step of the host. Queries made in it were given before. */
void nt_completion_step(struct nt_completion *completion, uint64_t start_ns, uint64_t end_ns);
/* Calls were missed, or steps are others: all is forgotten. */
void nt_completion_reset(struct nt_completion *completion);

/*
 * Own work of a window that ends at now_ns, of which the steps took step_ns: by the median share of
 * the last three batches of steps that had a result. False: there are fewer, they are too old, or the
 * steps took another time then.
 */
bool nt_completion_own(const struct nt_completion *completion, uint64_t now_ns, uint32_t steps,
		       uint64_t step_ns, uint64_t *ret_own_ns);

const struct nt_completion_stats *nt_completion_stats(const struct nt_completion *completion);

#endif
