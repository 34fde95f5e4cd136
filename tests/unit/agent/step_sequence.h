/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sequence of calls as input of the step detector. */
#ifndef NT_TESTS_UNIT_AGENT_STEP_SEQUENCE_H
#define NT_TESTS_UNIT_AGENT_STEP_SEQUENCE_H

#include "agent/steps/step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000ULL

/* A rank's calls, one after the other. */
struct sequence {
	struct nt_step *step;
	uint64_t now_ns;
	uint64_t calls, begins, last_begin; /* number of the call that began the last step */
	uint64_t launches; /* so far */
};

static inline void start(struct sequence *s)
{
	*s = (struct sequence){.now_ns = 1000 * MS};
	assert_int_equal(nt_step_new(&s->step), 0);
}

static inline bool call(struct sequence *s, uint64_t comm, enum nt_op op, uint64_t bytes,
			uint64_t after_ns)
{
	struct nt_step_call c = {
		.comm = comm,
		.comm_size = 8,
		.op = op,
		.bytes = bytes,
		.type = 7,
		.entry_ns = s->now_ns += after_ns,
		.launches = s->launches,
	};
	bool begins = nt_step_call(s->step, &c);

	s->calls++;
	if (begins) {
		s->begins++;
		s->last_begin = s->calls;
	}
	return begins;
}

static inline struct nt_step_info info(const struct sequence *s)
{
	struct nt_step_info i;

	nt_step_info(s->step, &i);
	return i;
}

static inline bool reduce(struct sequence *s, uint64_t bytes)
{
	return call(s, 1, NT_OP_ALL_REDUCE, bytes, MS);
}

#endif
