/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/admission_queue.h"

#include <errno.h>
#include <string.h>

#include "common/base/search.h"

struct nt_admission_place {
	uint64_t due_ns;
	size_t turn;
};

/* A queued session that becomes due when this communicator becomes known. */
struct nt_admission_hope {
	uint64_t comm;
	size_t turn;
};

static bool knows_tie(const struct nt_job_key *key, const struct nt_window *window)
{
	struct nt_tie_index *index;

	for (size_t i = 0; i < window->comms; i++) {
		if (window->comm[i].id_is_local || window->comm[i].size < 2)
			continue;
		/* The first session of a key has no job to be connected to. */
		if (!key->job)
			return true;
		HASH_FIND(hh, key->tie, &window->comm[i].id, sizeof(uint64_t), index);
		if (index)
			return true;
	}
	return false;
}

uint64_t nt_rank_session_due_ns(const struct nt_job_key *key, const struct nt_rank_session *member)
{
	uint64_t due;

	if (!member->waitings)
		return UINT64_MAX;
	due = member->waiting[0].end_ns + NT_JOBS_ADMISSION_NS;
	for (size_t i = 0; i < member->waitings && member->waiting[i].end_ns < due; i++) {
		const struct nt_window *window = &member->waiting[i].message->window;

		if (window->ended || window->rank.size == 1 || knows_tie(key, window))
			return member->waiting[i].end_ns;
	}
	return due;
}

int nt_turn_compare(const void *a, const void *b)
{
	const struct nt_turn *left = a, *right = b;
	const struct nt_rank_session *x = left->member, *y = right->member;
	int order;

	if (left->due_ns != right->due_ns)
		return left->due_ns < right->due_ns ? -1 : 1;
	order = strcmp(left->node, right->node);
	if (order)
		return order;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->start_boot_ns != y->start_boot_ns)
		return x->start_boot_ns < y->start_boot_ns ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

void nt_admission_release(struct nt_admission *line)
{
	free(line->turn);
	free(line->place);
	free(line->hope);
	free(line->batch);
	*line = (struct nt_admission){0};
}

/* ---- the heap -------------------------------------------------------------------------------- */

static void swap(struct nt_admission_place *a, struct nt_admission_place *b)
{
	const struct nt_admission_place kept = *a;

	*a = *b;
	*b = kept;
}

static int push(struct nt_admission *line, size_t turn)
{
	struct nt_admission_place *place;
	size_t at = line->places;
	int r = nt_jobs_grow(&line->place, line->places, &line->place_cap, sizeof(*place));

	if (r < 0)
		return r;
	place = line->place;
	place[line->places++] = (struct nt_admission_place){
		.due_ns = line->turn[turn].due_ns,
		.turn = turn,
	};
	for (; at && place[at].due_ns < place[(at - 1) / 2].due_ns; at = (at - 1) / 2)
		swap(&place[at], &place[(at - 1) / 2]);
	return 0;
}

static void pop(struct nt_admission *line)
{
	struct nt_admission_place *place = line->place;
	size_t at = 0, least;

	place[0] = place[--line->places];
	while ((least = 2 * at + 1) < line->places) {
		if (least + 1 < line->places && place[least + 1].due_ns < place[least].due_ns)
			least++;
		if (place[at].due_ns <= place[least].due_ns)
			return;
		swap(&place[at], &place[least]);
		at = least;
	}
}

uint64_t nt_admission_due_ns(struct nt_admission *line)
{
	while (line->places) {
		const struct nt_turn *turn = &line->turn[line->place[0].turn];

		if (turn->member && !turn->is_out && turn->due_ns == line->place[0].due_ns)
			return turn->due_ns;
		pop(line);
	}
	return UINT64_MAX;
}

static int by_turn(const void *a, const void *b)
{
	return nt_turn_compare(*(struct nt_turn *const *)a, *(struct nt_turn *const *)b);
}

size_t nt_admission_take(struct nt_admission *line, uint64_t now_ns)
{
	size_t count = 0;

	while (line->places && nt_admission_due_ns(line) <= now_ns) {
		struct nt_turn *turn = &line->turn[line->place[0].turn];

		turn->is_out = true;
		line->batch[count++] = turn;
	}
	if (count > 1)
		qsort(line->batch, count, sizeof(struct nt_turn *), by_turn);
	return count;
}

int nt_admission_put(struct nt_admission *line, struct nt_turn *turn, uint64_t due_ns)
{
	turn->due_ns = due_ns;
	turn->is_out = false;
	return push(line, (size_t)(turn - line->turn));
}

/* ---- awaited communicators ------------------------------------------------------------------- */

static int by_comm(const void *a, const void *b)
{
	const struct nt_admission_hope *left = a, *right = b;

	if (left->comm != right->comm)
		return left->comm < right->comm ? -1 : 1;
	return (left->turn > right->turn) - (left->turn < right->turn);
}

/* A session admitted with its first window cannot be due earlier. */
static int add_hopes(struct nt_admission *line, size_t turn)
{
	const struct nt_rank_session *member = line->turn[turn].member;

	for (size_t i = 0; i < member->waitings; i++) {
		const struct nt_window *window = &member->waiting[i].message->window;

		if (member->waiting[i].end_ns >= line->turn[turn].due_ns)
			break;
		for (size_t j = 0; j < window->comms; j++) {
			int r = nt_jobs_grow(&line->hope, line->hopes, &line->hope_cap,
					     sizeof(*line->hope));

			if (r < 0)
				return r;
			line->hope[line->hopes++] = (struct nt_admission_hope){
				.comm = window->comm[j].id,
				.turn = turn,
			};
		}
	}
	return 0;
}

static size_t find_hope(const struct nt_admission *line, uint64_t comm)
{
	return nt_search_first(0, line->hopes, i, line->hope[i].comm >= comm);
}

int nt_admission_learn(struct nt_admission *line, const struct nt_job_key *key, uint64_t comm)
{
	int r = 0;

	for (size_t i = find_hope(line, comm);
	     i < line->hopes && line->hope[i].comm == comm && r == 0; i++) {
		struct nt_turn *turn = &line->turn[line->hope[i].turn];
		uint64_t due_ns;

		/* Taken entries are examined again in any case. */
		if (!turn->member || turn->is_out)
			continue;
		due_ns = nt_rank_session_due_ns(key, turn->member);
		if (due_ns < turn->due_ns)
			r = nt_admission_put(line, turn, due_ns);
	}
	return r;
}

int nt_admission_make(const struct nt_jobs *jobs, const struct nt_job_key *key,
		      struct nt_admission *line)
{
	int r = 0;

	line->turn = calloc(key->lobbies + 1, sizeof(*line->turn));
	line->batch = calloc(key->lobbies + 1, sizeof(struct nt_turn *));
	if (!line->turn || !line->batch)
		return -ENOMEM;
	for (size_t i = 0; i < key->lobbies && r == 0; i++) {
		struct nt_rank_session *member = key->admission[i];

		line->turn[line->turns++] = (struct nt_turn){
			.member = member,
			.due_ns = nt_rank_session_due_ns(key, member),
			.node = jobs->node_at[member->node]->name,
		};
		r = push(line, i);
		if (r == 0)
			r = add_hopes(line, i);
	}
	if (line->hopes > 1)
		qsort(line->hope, line->hopes, sizeof(*line->hope), by_comm);
	return r;
}
