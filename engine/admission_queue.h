/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The members of a admission in the order in which they are due. A communicator that becomes known can
 * make those due at once who were seen in it; nothing else changes the order while people are let in.
 */
#ifndef NT_ENGINE_ADMISSION_QUEUE_H
#define NT_ENGINE_ADMISSION_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "engine/job_impl.h"

/* A member, and what its place in line depends on. */
struct nt_turn {
	struct nt_rank_session *member; /* NULL: it has left the admission */
	uint64_t due_ns;
	const char *node;
	bool is_out; /* of the line: taken */
};

/* By time, and then by what cannot be equal: the order in which they came leaves no trace. */
int nt_turn_compare(const void *a, const void *b);

struct nt_admission_place;
struct nt_admission_hope;

struct nt_admission {
	struct nt_turn *turn; /* one for each member of the admission, in its order */
	size_t turns;
	struct nt_admission_place *place; /* a heap; those whose time has changed are in it twice */
	size_t places, place_cap;
	struct nt_admission_hope *hope; /* ascending by communicator */
	size_t hopes, hope_cap;
	struct nt_turn **batch; /* of the last nt_admission_take() */
};

/* Of the whole admission, which it borrows. Zeroed before, and to be released in every case. -ENOMEM. */
NT_MUST_CHECK int nt_admission_make(const struct nt_jobs *jobs, const struct nt_job_key *key,
				    struct nt_admission *line);
void nt_admission_release(struct nt_admission *line);

/* When the first one is due; UINT64_MAX: nobody waits. */
uint64_t nt_admission_due_ns(struct nt_admission *line);

/* Takes those out who are due by then, in order, to line->batch. How many they are. */
size_t nt_admission_take(struct nt_admission *line, uint64_t now_ns);

/* Back into the line, at that time. -ENOMEM. */
NT_MUST_CHECK int nt_admission_put(struct nt_admission *line, struct nt_turn *turn,
				   uint64_t due_ns);

/* The communicator is known now. -ENOMEM. */
NT_MUST_CHECK int nt_admission_learn(struct nt_admission *line, const struct nt_job_key *key,
				     uint64_t comm);

#endif
