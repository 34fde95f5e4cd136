/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Process groups of traces that state the size of each call's group, but not its name (PyTorch
 * before 2.3). A process group has a stream of its own on each device, and the members of a
 * collective end it together. Thus the streams whose calls keep the same distances in time, though
 * work and clocks differ, are of one group. Sends have a stream for each peer: these are of one
 * group if they find the same ranks.
 */
#include "cli/kineto/kineto.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/hash.h"
#include "common/base/sort.h"
#include "engine/frame_builder.h"

enum {
	MAX_SEQUENCES = 4096, /* pairs of them are compared */
	MAX_RANK_SEQUENCES = 32,
	MAX_COMPARED = 256, /* calls of a sequence */
	MIN_COMPARED = 8,
	MAX_SAMPLES = 64, /* distances of a pair */
	SENDS = 255, /* in place of an operation: a send ends with its receive */
};

static const double APART = 2; /* so many times farther away are the ranks that are no members */
static const double CLOCK_NS = 2000; /* below it no difference is significant */

/* The calls of one stream of a rank that state the same size. */
struct stream_calls {
	struct nt_kineto_rank *rank;
	uint32_t stream;
	uint16_t size;
	size_t calls, compared;
	uint64_t end_ns[MAX_COMPARED];
	uint8_t op[MAX_COMPARED];
	bool sends;
	uint64_t members; /* equal for those that find the same ones; 0: not found */
	size_t found;
};

/* The sequence of another rank that is most alike. */
struct likely_member {
	double distance_ns;
	size_t at;
};

struct derivation {
	struct nt_kineto_ranks *in;
	bool is_whole; /* all ranks of the job are given */
	struct stream_calls *sequence;
	size_t sequences;
	struct likely_member *likely;
	uint32_t *number; /* of ranks: scratch */
};

static void release(struct derivation *derivation)
{
	free(derivation->sequence);
	free(derivation->likely);
	free(derivation->number);
}

/* What is compared of a call; 0: nothing, as members end it at different times. */
static uint8_t compared_op(const struct nt_kineto_interval *kernel)
{
	switch (nt_frame_builder_kind(kernel->op)) {
	case NT_FRAME_SYNCHRONISING:
	case NT_FRAME_ALL_TO_ALL:
		return kernel->op;
	case NT_FRAME_POINT_TO_POINT:
		return SENDS;
	default:
		return 0;
	}
}

static void add_call(struct stream_calls *sequence, const struct nt_kineto_interval *kernel)
{
	const uint8_t op = compared_op(kernel);

	if (!op)
		return;
	sequence->sends |= op == SENDS;
	if (sequence->compared < MAX_COMPARED) {
		sequence->end_ns[sequence->compared] = kernel->end_ns;
		sequence->op[sequence->compared++] = op;
	}
	sequence->calls++;
}

/* -E2BIG beyond the caps. */
static int find_sequence(struct derivation *derivation, size_t first, struct nt_kineto_rank *rank,
			 const struct nt_kineto_interval *kernel,
			 struct stream_calls **ret_sequence)
{
	for (size_t i = first; i < derivation->sequences; i++) {
		*ret_sequence = &derivation->sequence[i];
		if ((*ret_sequence)->stream == kernel->kind &&
		    (*ret_sequence)->size == kernel->stated_size)
			return 0;
	}
	if (derivation->sequences - first == MAX_RANK_SEQUENCES ||
	    derivation->sequences == MAX_SEQUENCES)
		return -E2BIG;
	/* Grows at powers of two, so that no capacity is stored. */
	if (!derivation->sequence || (derivation->sequences & (derivation->sequences - 1)) == 0) {
		struct stream_calls *grown = reallocarray(
			derivation->sequence, derivation->sequences ? derivation->sequences * 2 : 1,
			sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		derivation->sequence = grown;
	}
	*ret_sequence = &derivation->sequence[derivation->sequences++];
	**ret_sequence = (struct stream_calls){
		.rank = rank, .stream = kernel->kind, .size = kernel->stated_size};
	return 0;
}

/* -E2BIG if some call states no size, or there are too many streams; -ENOMEM. */
static int list_sequences(struct derivation *derivation)
{
	for (size_t i = 0; i < derivation->in->ranks; i++) {
		struct nt_kineto_rank *rank = &derivation->in->rank[i];
		const size_t first = derivation->sequences;

		for (size_t c = 0; c < rank->comms; c++) {
			struct stream_calls *sequence = NULL;
			int r = rank->comm[c]->stated_size < 2 ? -E2BIG : 0;

			r = r ?: find_sequence(derivation, first, rank, rank->comm[c], &sequence);
			if (r < 0)
				return r;
			add_call(sequence, rank->comm[c]);
		}
	}
	return 0;
}

/*
 * The median change of the difference of two ranks' ends over a quarter of the calls. That of
 * members is their clocks' drift; ranks of other groups do other work.
 */
static double distance_of(const struct stream_calls *a, const struct stream_calls *b)
{
	const size_t n = a->compared < b->compared ? a->compared : b->compared, lag = n / 4,
		     stride = (n - lag + MAX_SAMPLES - 1) / MAX_SAMPLES;
	double change[MAX_SAMPLES];
	size_t changes = 0;

	/* A record may be cut. */
	if (a->size != b->size || n < MIN_COMPARED || 2 * a->calls < b->calls ||
	    2 * b->calls < a->calls || memcmp(a->op, b->op, n) != 0)
		return INFINITY;
	for (size_t i = 0; i + lag < n; i += stride) {
		const int64_t mine = (int64_t)(a->end_ns[i + lag] - a->end_ns[i]),
			      other = (int64_t)(b->end_ns[i + lag] - b->end_ns[i]);

		change[changes++] = fabs((double)(mine - other));
	}
	nt_sort_select(change, changes, changes / 2, changes / 2 + 1);
	return change[changes / 2] + CLOCK_NS;
}

static int by_distance(const void *a, const void *b)
{
	const struct likely_member *x = a, *y = b;

	if (x->distance_ns != y->distance_ns)
		return x->distance_ns < y->distance_ns ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The nearest sequence of each other rank, in order. Returns their number. */
static size_t find_candidates(struct derivation *derivation, const struct stream_calls *of)
{
	size_t candidates = 0;
	const struct nt_kineto_rank *rank = NULL;

	for (size_t i = 0; i < derivation->sequences; i++) {
		const struct stream_calls *other = &derivation->sequence[i];
		struct likely_member candidate = {.at = i};

		if (other->rank == of->rank)
			continue;
		candidate.distance_ns = distance_of(of, other);
		if (isinf(candidate.distance_ns))
			continue;
		if (other->rank != rank)
			derivation->likely[candidates++] = candidate;
		else if (by_distance(&candidate, &derivation->likely[candidates - 1]) < 0)
			derivation->likely[candidates - 1] = candidate;
		rank = other->rank;
	}
	if (candidates)
		qsort(derivation->likely, candidates, sizeof(*derivation->likely), by_distance);
	return candidates;
}

/* How many times farther away the next one is than the n-th. */
static double gap_behind(const struct derivation *derivation, size_t candidates, size_t n)
{
	return n < candidates
		       ? derivation->likely[n].distance_ns / derivation->likely[n - 1].distance_ns
		       : INFINITY;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Whether the nearest ones and the rank itself are a group that its file lists. */
static bool is_listed(const struct derivation *derivation, const struct stream_calls *calls)
{
	const struct nt_kineto_rank *rank = calls->rank;
	uint32_t *number = derivation->number;

	number[0] = rank->rank;
	for (size_t i = 1; i < calls->size; i++)
		number[i] = derivation->sequence[derivation->likely[i - 1].at].rank->rank;
	qsort(number, calls->size, sizeof(*number), by_number);
	for (size_t i = 0; i < rank->groups; i++) {
		const struct nt_kineto_group *group = &rank->group[i];
		uint64_t id = group->name_hash;

		if (!group->listed || group->size != calls->size)
			continue;
		for (size_t j = 0; j < calls->size; j++)
			id = nt_hash_u64(id, number[j]);
		if (nt_hash_mix(id) == group->id)
			return true;
	}
	return false;
}

/* How many candidates are members; 0: it cannot be said. */
static size_t count_members(const struct derivation *derivation,
			    const struct stream_calls *sequence, size_t candidates)
{
	const size_t others = sequence->size - 1;
	size_t best = 0;

	if (candidates >= others &&
	    (gap_behind(derivation, candidates, others) > APART || is_listed(derivation, sequence)))
		return others;
	if (derivation->is_whole)
		return 0;
	/* Some members are not given: those that are stand out the most. */
	for (size_t n = 1; n < others && n <= candidates; n++)
		if (gap_behind(derivation, candidates, n) > APART &&
		    (!best || gap_behind(derivation, candidates, n) >
				      gap_behind(derivation, candidates, best)))
			best = n;
	return best;
}

/* Of a member: of collectives the sequence, of sends the rank. */
static uint64_t member_hash(const struct derivation *derivation, size_t at)
{
	const struct stream_calls *sequence = &derivation->sequence[at];

	return sequence->sends ? nt_hash_mix(nt_hash_u64(SENDS, sequence->rank->rank))
			       : nt_hash_mix(at + 1);
}

static void find_members(struct derivation *derivation, size_t at)
{
	struct stream_calls *sequence = &derivation->sequence[at];
	const size_t candidates = find_candidates(derivation, sequence),
		     found = count_members(derivation, sequence, candidates);

	if (!found)
		return;
	sequence->found = found + 1;
	sequence->members = member_hash(derivation, at);
	for (size_t i = 0; i < found; i++)
		sequence->members += member_hash(derivation, derivation->likely[i].at);
}

/* Whether all members found the same ones, with each stream that they send by. */
static bool is_agreed(const struct derivation *derivation, const struct stream_calls *sequence)
{
	const struct nt_kineto_rank *last = NULL;
	size_t agree = 0;

	for (size_t i = 0; i < derivation->sequences; i++) {
		const struct stream_calls *other = &derivation->sequence[i];

		if (other->members != sequence->members)
			continue;
		agree += other->rank != last;
		last = other->rank;
	}
	return sequence->found && agree == sequence->found;
}

/* "0,2,4,6": what a person reads, as far as there is room; the stream makes it unique. */
static int name_group(const struct derivation *derivation, const struct stream_calls *sequence,
		      struct nt_buf *name, uint32_t *ret_place)
{
	const struct nt_kineto_rank *last = NULL;
	uint32_t place = 0;
	int r = 0;

	for (size_t i = 0; i < derivation->sequences && r == 0; i++) {
		const struct stream_calls *member = &derivation->sequence[i];

		if (member->members != sequence->members || member->rank == last)
			continue;
		last = member->rank;
		if (member->rank == sequence->rank)
			*ret_place = place;
		r = nt_buf_printf(name, "%s%u", place++ ? "," : "", member->rank->rank);
	}
	if (r == 0 && sequence->sends)
		return nt_buf_printf(name, " of %u, sends", sequence->size);
	return r ?: nt_buf_printf(name, " of stream %u", sequence->stream);
}

static int assign(const struct derivation *derivation, const struct stream_calls *sequence)
{
	struct nt_kineto_rank *rank = sequence->rank;
	nt_autobuf struct nt_buf name = {0};
	struct nt_kineto_group *group = NULL;
	uint32_t place = 0;
	int r = name_group(derivation, sequence, &name, &place);

	r = r ?: nt_kineto_find_group(rank, (const char *)name.data, &group);
	if (r < 0)
		return r;
	if (group) {
		group->id = nt_hash_mix(sequence->members);
		group->size = sequence->size;
		group->place = place;
		group->listed = true;
		group->used = true;
	}
	for (size_t c = 0; c < rank->comms; c++) {
		struct nt_kineto_interval *kernel = rank->comm[c];

		if (kernel->kind != sequence->stream || kernel->stated_size != sequence->size)
			continue;
		if (group)
			kernel->group = (uint16_t)(group - rank->group + 1);
		else
			rank->dropped++;
	}
	return 0;
}

/* Without the sends nobody knows which ranks are one stage. */
static bool knows_sends(const struct derivation *derivation)
{
	for (size_t i = 0; i < derivation->sequences; i++) {
		const struct stream_calls *sequence = &derivation->sequence[i];

		if (memchr(sequence->op, SENDS, sequence->compared) &&
		    !is_agreed(derivation, sequence))
			return false;
	}
	return true;
}

int nt_kineto_derive_groups(struct nt_kineto_ranks *in, uint32_t world)
{
	__attribute__((cleanup(release))) struct derivation derivation = {
		.in = in, .is_whole = world == in->ranks};
	int r;

	if (in->ranks < 2)
		return 0;
	r = list_sequences(&derivation);
	if (r < 0)
		return r == -E2BIG ? 0 : r;
	derivation.likely = calloc(in->ranks, sizeof(*derivation.likely));
	derivation.number = calloc(in->ranks, sizeof(*derivation.number));
	if (!derivation.likely || !derivation.number)
		return -ENOMEM;
	for (size_t i = 0; i < derivation.sequences; i++)
		find_members(&derivation, i);
	if (!knows_sends(&derivation))
		return 0;
	for (size_t i = 0; i < derivation.sequences; i++) {
		if (is_agreed(&derivation, &derivation.sequence[i]))
			r = assign(&derivation, &derivation.sequence[i]);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < in->ranks; i++)
		nt_kineto_number_calls(&in->rank[i]);
	return 0;
}
