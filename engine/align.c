/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/align.h"

#include <errno.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/search.h"

enum {
	EPOCH_WHOLE = 1, /* on the wire: counted from the communicator's creation */
	MAX_SHIFTS = 64, /* different shifts that are voted on */
};

/* A communicator of a session. */
struct aligned_comm {
	uint64_t comm, epoch;
	struct nt_align_reading reading;
	struct nt_rank_session *session;
	size_t windows;
};

/* A sampled call of the reference. */
struct reference_call {
	uint64_t number, release_ns, bytes;
	enum nt_op op;
};

/* The reference's calls and their spacing. */
struct reference {
	struct reference_call *mark;
	size_t marks;
	uint64_t spacing_ns; /* between calls, sampled or not */
	uint32_t node;
	bool one_node;
};

static bool is_whole(const struct nt_comm_window *comm)
{
	return comm->numbered_by_library || comm->epoch == EPOCH_WHOLE;
}

static struct nt_alignment *find(const struct nt_rank_session *session, uint64_t comm)
{
	for (size_t i = 0; i < session->alignments; i++)
		if (session->alignment[i].comm == comm)
			return &session->alignment[i];
	return NULL;
}

struct nt_align_reading nt_align_read(const struct nt_rank_session *session,
				      const struct nt_comm_window *comm)
{
	const struct nt_alignment *known;
	uint64_t alone;

	if (is_whole(comm))
		return (struct nt_align_reading){.group = NT_ALIGN_WHOLE};
	known = find(session, comm->id);
	if (known && known->epoch == comm->epoch)
		return (struct nt_align_reading){.group = known->group, .shift = known->shift};
	/* A group of its own, not comparable with others. */
	alone = nt_hash_u64(nt_hash_u64(NT_HASH_SEED, session->number), comm->id);
	alone = nt_hash_u64(alone, comm->epoch);
	return (struct nt_align_reading){.group = nt_hash_mix(alone) | 1};
}

uint64_t nt_align_shift(const struct nt_rank_session *session, const struct nt_window *window)
{
	const struct nt_alignment *known = find(session, window->inside.comm);

	for (size_t i = 0; i < window->comms; i++)
		if (window->comm[i].id == window->inside.comm)
			return nt_align_read(session, &window->comm[i]).shift;
	/* A rank that is stuck in a call makes no others. */
	return known ? known->shift : 0;
}

static int by_comm(const void *a, const void *b)
{
	const struct aligned_comm *left = a, *right = b;

	if (left->comm != right->comm)
		return left->comm < right->comm ? -1 : 1;
	if (left->reading.group != right->reading.group)
		return left->reading.group < right->reading.group ? -1 : 1;
	return (left->session->number > right->session->number) -
	       (left->session->number < right->session->number);
}

static bool is_marked(const struct nt_sample *sample, const struct aligned_comm *seen)
{
	return sample->comm == seen->comm && sample->epoch == seen->epoch &&
	       sample->release_boot_ns && nt_op_synchronises(sample->op);
}

static int by_release(const void *a, const void *b)
{
	const struct reference_call *left = a, *right = b;

	if (left->release_ns != right->release_ns)
		return left->release_ns < right->release_ns ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

static size_t count_marks(const struct aligned_comm *seen)
{
	size_t count = 0;

	for (size_t i = 0; i < seen->windows; i++) {
		const struct nt_window *window = &seen->session->waiting[i].message->window;

		for (size_t j = 0; j < window->samples; j++)
			count += is_marked(&window->sample[j], seen);
	}
	return count;
}

static void add_marks(const struct aligned_comm *seen, struct reference *reference)
{
	for (size_t i = 0; i < seen->windows; i++) {
		const struct nt_message *message = seen->session->waiting[i].message;

		for (size_t j = 0; j < message->window.samples; j++) {
			const struct nt_sample *sample = &message->window.sample[j];

			if (!is_marked(sample, seen))
				continue;
			reference->mark[reference->marks++] = (struct reference_call){
				.number = sample->number + seen->reading.shift,
				.release_ns = nt_message_real_ns(message, sample->release_boot_ns),
				.bytes = sample->bytes,
				.op = sample->op,
			};
		}
	}
}

/* The calls of all members of the group, in the order of their release. */
static int make_reference(const struct aligned_comm *seen, size_t count, struct nt_arena *arena,
			  struct reference *reference)
{
	uint64_t least = UINT64_MAX, most = 0;
	size_t marks = 0;

	*reference = (struct reference){.node = seen[0].session->node, .one_node = true};
	for (size_t i = 0; i < count; i++)
		marks += count_marks(&seen[i]);
	reference->mark =
		nt_arena_alloc(arena, (marks ? marks : 1) * sizeof(struct reference_call));
	if (!reference->mark)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		add_marks(&seen[i], reference);
		reference->one_node &= seen[i].session->node == reference->node;
	}
	if (marks < NT_ALIGN_VOTES)
		return 0;
	qsort(reference->mark, marks, sizeof(struct reference_call), by_release);
	for (size_t i = 0; i < marks; i++) {
		if (reference->mark[i].number < least)
			least = reference->mark[i].number;
		if (reference->mark[i].number > most)
			most = reference->mark[i].number;
	}
	if (most > least)
		reference->spacing_ns =
			(reference->mark[marks - 1].release_ns - reference->mark[0].release_ns) /
			(most - least);
	return 0;
}

/* The mark that was released closest to the time. */
static const struct reference_call *nearest(const struct reference *reference, uint64_t release_ns)
{
	size_t low = nt_search_first(0, reference->marks, i,
				     reference->mark[i].release_ns >= release_ns);

	if (low == reference->marks)
		return &reference->mark[low - 1];
	if (low && release_ns - reference->mark[low - 1].release_ns <
			   reference->mark[low].release_ns - release_ns)
		low--;
	return &reference->mark[low];
}

/* Calls that vote for a shift. Every call has one vote; all but a few must agree. */
struct poll {
	struct {
		uint64_t shift;
		uint32_t votes;
	} choice[MAX_SHIFTS];
	size_t choices;
	uint32_t votes;
};

static void vote(struct poll *poll, uint64_t shift)
{
	poll->votes++;
	for (size_t i = 0; i < poll->choices; i++)
		if (poll->choice[i].shift == shift) {
			poll->choice[i].votes++;
			return;
		}
	if (poll->choices == MAX_SHIFTS)
		return;
	poll->choice[poll->choices].shift = shift;
	poll->choice[poll->choices++].votes = 1;
}

static void count_votes(const struct reference *reference, const struct aligned_comm *seen,
			struct poll *poll)
{
	const uint64_t tolerance = reference->spacing_ns / 4;

	for (size_t i = 0; i < seen->windows; i++) {
		const struct nt_message *message = seen->session->waiting[i].message;

		for (size_t j = 0; j < message->window.samples; j++) {
			const struct nt_sample *sample = &message->window.sample[j];
			const struct reference_call *mark;
			uint64_t release_ns, apart;

			if (!is_marked(sample, seen))
				continue;
			release_ns = nt_message_real_ns(message, sample->release_boot_ns);
			mark = nearest(reference, release_ns);
			apart = mark->release_ns > release_ns ? mark->release_ns - release_ns
							      : release_ns - mark->release_ns;
			if (apart > tolerance || mark->op != sample->op ||
			    mark->bytes != sample->bytes)
				continue;
			vote(poll, mark->number - sample->number);
		}
	}
}

static int remember(struct nt_rank_session *session, const struct nt_alignment *alignment)
{
	struct nt_alignment *known = find(session, alignment->comm), *grown;

	if (known) {
		*known = *alignment;
		return 0;
	}
	if (session->alignments == NT_RANK_SESSION_MAX_ALIGNMENTS)
		return 0;
	grown = reallocarray(session->alignment, session->alignments + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	session->alignment = grown;
	session->alignment[session->alignments++] = *alignment;
	return 0;
}

static int align_session(const struct reference *reference, const struct aligned_comm *seen,
			 uint64_t group, struct nt_align_counters *counters)
{
	const bool same_clock = reference->one_node && seen->session->node == reference->node;
	struct poll poll = {0};

	if (reference->marks < NT_ALIGN_VOTES || !reference->spacing_ns)
		return 0;
	/* If clocks differ by a quarter of the spacing, a neighbouring call could match. */
	if (!same_clock && reference->spacing_ns < 4 * NT_ALIGN_CLOCK_NS)
		return 0;
	count_votes(reference, seen, &poll);
	for (size_t i = 0; i < poll.choices; i++) {
		const struct nt_alignment alignment = {
			.comm = seen->comm,
			.epoch = seen->epoch,
			.group = group,
			.shift = poll.choice[i].shift,
		};

		if (poll.choice[i].votes < NT_ALIGN_VOTES ||
		    10 * poll.choice[i].votes < 9 * poll.votes)
			continue;
		counters->aligned++;
		seen->session->job->is_shifted |= alignment.shift != 0;
		return remember(seen->session, &alignment);
	}
	counters->tried++;
	return 0;
}

/* All members of one communicator by group; the first of the largest groups is the reference. */
static int align_comm(const struct aligned_comm *seen, size_t count, struct nt_arena *arena,
		      struct nt_align_counters *counters)
{
	size_t best = 0, best_count = 0;
	struct reference reference;
	int r;

	for (size_t from = 0, to; from < count; from = to) {
		for (to = from; to < count && seen[to].reading.group == seen[from].reading.group;)
			to++;
		/*
		 * The group that needs no alignment sorts first and is the reference, however
		 * small.
		 */
		if (best_count &&
		    (seen[best].reading.group == NT_ALIGN_WHOLE || to - from <= best_count))
			continue;
		best = from;
		best_count = to - from;
	}
	if (best_count == count)
		return 0;
	r = make_reference(seen + best, best_count, arena, &reference);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		if (seen[i].reading.group == seen[best].reading.group)
			continue;
		r = align_session(&reference, &seen[i], seen[best].reading.group, counters);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool has_parts(const struct nt_job *job, const size_t *windows)
{
	for (size_t i = 0; i < job->sessions - job->retired; i++)
		for (size_t j = 0; j < windows[i]; j++) {
			const struct nt_window *window =
				&job->session[i]->waiting[j].message->window;

			for (size_t k = 0; k < window->comms; k++)
				if (!is_whole(&window->comm[k]))
					return true;
		}
	return false;
}

int nt_align_cell(const struct nt_job *job, const size_t *windows, struct nt_arena *arena,
		  struct nt_align_counters *counters)
{
	const size_t sessions = job->sessions - job->retired;
	size_t most = 0, count = 0;
	struct aligned_comm *seen;
	int r;

	if (!has_parts(job, windows))
		return 0;
	for (size_t i = 0; i < sessions; i++)
		if (windows[i])
			most += job->session[i]->waiting[windows[i] - 1].message->window.comms;
	seen = nt_arena_alloc(arena, (most ? most : 1) * sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	for (size_t i = 0; i < sessions; i++) {
		struct nt_rank_session *session = job->session[i];
		const struct nt_window *window;

		if (!windows[i])
			continue;
		window = &session->waiting[windows[i] - 1].message->window;
		for (size_t j = 0; j < window->comms; j++)
			seen[count++] = (struct aligned_comm){
				.comm = window->comm[j].id,
				.epoch = window->comm[j].epoch,
				.reading = nt_align_read(session, &window->comm[j]),
				.session = session,
				.windows = windows[i],
			};
	}
	qsort(seen, count, sizeof(*seen), by_comm);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from; to < count && seen[to].comm == seen[from].comm;)
			to++;
		r = align_comm(seen + from, to - from, arena, counters);
		if (r < 0)
			return r;
	}
	return 0;
}
