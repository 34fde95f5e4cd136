/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/completion.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/clock.h"

enum {
	STEPS_MIN = 8, /* of a batch */
	PLACES_MIN = NT_COMPLETION_PLACES / 4, /* with a query */
	GAP_MAX = NT_COMPLETION_PLACES / 8, /* places in a row without one */
	VALUES = 3, /* one of them may be far off: their median is taken */
};

/*
 * Twice the standard deviation of a value. The median of three is then wrong by less than 2 % of the
 * step (test_agent_completion_watchdog.c): two ranks do not differ by `size_floor` (3 %) because of errors.
 */
#define ERROR_MAX 0.012
/* Neighbouring places that differ by more: the device enters or leaves communication there. */
#define EDGE         0.25
#define BATCH_MIN_NS (2 * NT_SECOND)
#define BATCH_MAX_NS (10 * NT_MINUTE)
#define VALID_NS     BATCH_MAX_NS /* of results, from the end of the last batch on */
/*
 * A window whose steps differ by more from those of the last batch has no result: that they are
 * longer may be the work of any rank, or communication. Steps that stay longer or shorter by more
 * are others, of which nothing is known yet.
 */
#define WINDOW_CHANGE 0.05
#define STEP_CHANGE   0.1
#define RECENT_PART   (1.0 / 16) /* of a step in the moving mean */
/* Variance of the length of steps over their squared mean: 0.25 squared. */
#define UNEVEN_MAX 0.0625

enum mark_kind {
	OTHER, /* it has no place in the order of collectives */
	START,
	END,
};

struct stream_mark {
	uint64_t event;
	enum mark_kind kind;
};

struct query {
	uint64_t ns;
	bool is_outside;
};

struct step_place {
	uint32_t outside, queries;
};

struct nt_completion {
	/* The stream of the collectives, and the marks on it: a ring from `done` to `marks`. */
	bool has_stream;
	uint64_t stream;
	struct stream_mark mark[NT_COMPLETION_MARKS];
	uint64_t marks, done; /* so far; of them, complete */
	uint64_t after; /* marks when the last collective was put */
	bool has_collective; /* one was put since marks are known */

	struct query query[NT_COMPLETION_QUERIES];
	uint32_t queries;

	/* The current batch of steps. */
	struct step_place place[NT_COMPLETION_PLACES];
	bool is_void; /* collectives on several streams */
	uint32_t steps;
	uint64_t begin_ns;
	double step_ns, step_ns2; /* sums of the lengths and of their squares */

	double recent_ns; /* moving mean of the lengths, of which single ones are limited */
	double value[VALUES]; /* share of outside, of the last batches that had a result, in turn */
	uint64_t values, value_at_ns; /* so far; end of the last of these batches */
	double value_step_ns; /* mean length of a step in that one */
	struct nt_completion_stats stats;
};

int nt_completion_new(struct nt_completion **ret_completion)
{
	struct nt_completion *completion = calloc(1, sizeof(*completion));

	if (!completion)
		return -ENOMEM;
	*ret_completion = completion;
	return 0;
}

void nt_completion_free(struct nt_completion *completion)
{
	free(completion);
}

size_t nt_completion_bytes(void)
{
	return sizeof(struct nt_completion);
}

const struct nt_completion_stats *nt_completion_stats(const struct nt_completion *completion)
{
	return &completion->stats;
}

/* ---- the stream ----------------------------------------------------------------------------- */

static struct stream_mark *mark_at(struct nt_completion *completion, uint64_t number)
{
	return &completion->mark[number % NT_COMPLETION_MARKS];
}

static void forget_marks(struct nt_completion *completion)
{
	completion->marks = completion->done = completion->after = 0;
	completion->has_collective = false;
}

void nt_completion_collective(struct nt_completion *completion, uint64_t stream)
{
	if (!completion->has_stream || completion->stream != stream) {
		completion->is_void |= completion->has_stream;
		completion->has_stream = true;
		completion->stream = stream;
		completion->queries = 0;
		forget_marks(completion);
	}
	/* The last event since the collective before is the start, unless it is that one's end. */
	if (completion->marks > completion->after + completion->has_collective)
		mark_at(completion, completion->marks - 1)->kind = START;
	completion->after = completion->marks;
	completion->has_collective = true;
}

void nt_completion_record(struct nt_completion *completion, uint64_t event, uint64_t stream)
{
	const bool is_end = completion->has_collective && completion->marks == completion->after;

	if (!completion->has_stream || completion->stream != stream)
		return;
	/* The newest that is complete is kept, too. */
	if (completion->marks - completion->done == NT_COMPLETION_MARKS - 1) {
		completion->stats.marks_over_cap++;
		completion->is_void = true;
		forget_marks(completion);
		return;
	}
	*mark_at(completion, completion->marks++) =
		(struct stream_mark){.event = event, .kind = is_end ? END : OTHER};
}

/* ---- queries -------------------------------------------------------------------------------- */

static void keep_query(struct nt_completion *completion, bool is_outside, uint64_t ns)
{
	if (completion->queries == NT_COMPLETION_QUERIES) {
		for (uint32_t i = 0; i < NT_COMPLETION_QUERIES / 2; i++)
			completion->query[i] = completion->query[2 * i];
		completion->queries = NT_COMPLETION_QUERIES / 2;
		completion->stats.queries_over_cap += NT_COMPLETION_QUERIES / 2;
	}
	completion->query[completion->queries++] =
		(struct query){.ns = ns, .is_outside = is_outside};
	completion->stats.outside += is_outside;
	completion->stats.inside += !is_outside;
}

/*
 * Whether the pending mark proves where the device is. All before it must be complete, except events
 * that are no start and no end: the program may never ask for these.
 */
static bool proves(struct nt_completion *completion, uint64_t number)
{
	for (uint64_t before = completion->done; before < number; before++)
		if (mark_at(completion, before)->kind != OTHER)
			return false;
	if (!completion->done)
		return false;
	switch (mark_at(completion, number)->kind) {
	case START:
		return true;
	case END:
		return mark_at(completion, number - 1)->kind == START;
	default:
		return false;
	}
}

void nt_completion_query(struct nt_completion *completion, uint64_t event, bool is_complete,
			 uint64_t ns)
{
	uint64_t end = completion->marks, number = completion->done;

	if (end - number > NT_COMPLETION_LOOK)
		end = number + NT_COMPLETION_LOOK;
	while (number < end && mark_at(completion, number)->event != event)
		number++;
	if (number == end) {
		completion->stats.unproved++;
		return;
	}
	if (is_complete) {
		/* And so is all before it on the stream. */
		completion->done = number + 1;
		return;
	}
	if (proves(completion, number))
		keep_query(completion, mark_at(completion, number)->kind == START, ns);
	else
		completion->stats.unproved++;
}

/* ---- batches of steps ----------------------------------------------------------------------- */

static double share_of(const struct step_place *place)
{
	return (double)place->outside / place->queries;
}

/* All queries say the same. */
static bool is_pure(const struct step_place *place)
{
	return !place->outside || place->outside == place->queries;
}

static double distance(double a, double b)
{
	return a > b ? a - b : b - a;
}

/*
 * Integrates the share of outside over the places, with the places between two queried ones taken
 * as their mean. Its error is twice the standard deviation: of where the device enters or leaves
 * communication between two places, and of the shares at and beside these edges. False: too few
 * places, a large gap, or an error over ERROR_MAX.
 */
static bool integrate(const struct step_place *place, double *ret_share)
{
	uint32_t queried[NT_COMPLETION_PLACES], n = 0;
	double sum = 0, variance = 0;

	for (uint32_t i = 0; i < NT_COMPLETION_PLACES; i++)
		if (place[i].queries)
			queried[n++] = i;
	if (n < PLACES_MIN)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct step_place *at = &place[queried[i]];
		const uint32_t next = queried[(i + 1) % n];
		const double share = share_of(at), after = share_of(&place[next]);
		const double before = share_of(&place[queried[(i + n - 1) % n]]);
		const double step = distance(after, share);
		const uint32_t gap =
			(next + NT_COMPLETION_PLACES - queried[i] - 1) % NT_COMPLETION_PLACES;
		double width;

		if (gap > GAP_MAX)
			return false;
		sum += share + gap * (share + after) / 2;
		/* Of an edge anywhere between two places, or within one. */
		width = gap + (share != after && is_pure(at) && is_pure(&place[next]));
		variance += width * width * step * step / 12;
		if (step > EDGE || distance(before, share) > EDGE || (share > 0 && share < 1)) {
			/* Of one query alone the share is 0 or 1, and its variance would be 0. */
			const double likely = (at->outside + 0.5) / (at->queries + 1.0);

			variance += likely * (1 - likely) / at->queries;
		}
	}
	/* Twice the standard deviation is the error. */
	if (4 * variance > ERROR_MAX * NT_COMPLETION_PLACES * ERROR_MAX * NT_COMPLETION_PLACES)
		return false;
	*ret_share = sum / NT_COMPLETION_PLACES;
	return true;
}

/* The host's steps differ in length: a place in the one is not a place in the other. */
static bool is_uneven(const struct nt_completion *completion)
{
	const double mean = completion->step_ns / completion->steps;

	return completion->step_ns2 / completion->steps - mean * mean > UNEVEN_MAX * mean * mean;
}

static void begin_batch(struct nt_completion *completion, uint64_t ns)
{
	memset(completion->place, 0, sizeof(completion->place));
	completion->is_void = false;
	completion->steps = 0;
	completion->step_ns = completion->step_ns2 = 0;
	completion->begin_ns = ns;
}

static void end_batch(struct nt_completion *completion, uint64_t end_ns)
{
	const uint64_t length_ns = end_ns - completion->begin_ns;
	double share;

	if (length_ns < BATCH_MIN_NS || completion->steps < STEPS_MIN)
		return;
	if (!completion->is_void && !is_uneven(completion) &&
	    integrate(completion->place, &share)) {
		completion->value[completion->values++ % VALUES] = share;
		completion->value_step_ns = completion->step_ns / completion->steps;
		completion->value_at_ns = end_ns;
		completion->stats.measured++;
		begin_batch(completion, end_ns);
	} else if (length_ns >= BATCH_MAX_NS || completion->is_void) {
		/* A barrier on another stream now and then leaves the rest as it is. */
		if (!completion->is_void)
			completion->values = 0;
		completion->stats.given_up++;
		begin_batch(completion, end_ns);
	}
}

static void place_queries(struct nt_completion *completion, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < completion->queries; i++) {
		const struct query *query = &completion->query[i];
		struct step_place *place;

		if (query->ns >= end_ns) {
			completion->query[left++] = *query;
			continue;
		}
		if (query->ns < start_ns)
			continue;
		place = &completion->place[(uint64_t)((double)(query->ns - start_ns) /
						      (double)(end_ns - start_ns) *
						      NT_COMPLETION_PLACES) %
					   NT_COMPLETION_PLACES];
		place->queries++;
		place->outside += query->is_outside;
	}
	completion->queries = left;
}

/*
 * Adds a step to the means. True: the steps are no more those of the last batch with a result, or,
 * without one, of this batch. A single step that takes long is not enough.
 */
static bool add_length(struct nt_completion *completion, double length_ns)
{
	const double limited_ns =
		length_ns > 2 * completion->recent_ns ? 2 * completion->recent_ns : length_ns;
	double mean_ns = completion->value_step_ns;

	completion->recent_ns =
		completion->recent_ns == 0
			? length_ns
			: completion->recent_ns +
				  (limited_ns - completion->recent_ns) * RECENT_PART;
	completion->steps++;
	completion->step_ns += length_ns;
	completion->step_ns2 += length_ns * length_ns;
	if (completion->steps < STEPS_MIN)
		return false;
	if (!completion->values)
		mean_ns = completion->step_ns / completion->steps;
	return distance(completion->recent_ns, mean_ns) > STEP_CHANGE * mean_ns;
}

void nt_completion_step(struct nt_completion *completion, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns >= end_ns)
		return;
	if (!completion->begin_ns)
		completion->begin_ns = start_ns;
	place_queries(completion, start_ns, end_ns);
	if (add_length(completion, (double)(end_ns - start_ns))) {
		completion->values = 0;
		completion->recent_ns = 0;
		completion->stats.given_up++;
		begin_batch(completion, end_ns);
		return;
	}
	end_batch(completion, end_ns);
}

void nt_completion_reset(struct nt_completion *completion)
{
	completion->has_stream = false;
	completion->queries = 0;
	completion->values = 0;
	completion->recent_ns = 0;
	forget_marks(completion);
	begin_batch(completion, 0);
}

bool nt_completion_own(const struct nt_completion *completion, uint64_t now_ns, uint32_t steps,
		       uint64_t step_ns, uint64_t *ret_own_ns)
{
	const double *value = completion->value;
	const double low = value[0] < value[1] ? value[0] : value[1];
	const double high = value[0] < value[1] ? value[1] : value[0];
	const double as_before_ns = completion->value_step_ns * steps;
	double share;

	if (completion->values < VALUES || now_ns > completion->value_at_ns + VALID_NS ||
	    distance((double)step_ns, as_before_ns) > WINDOW_CHANGE * as_before_ns)
		return false;
	share = value[2] < low ? low : value[2] > high ? high : value[2];
	*ret_own_ns = (uint64_t)(share * (double)step_ns);
	return true;
}
