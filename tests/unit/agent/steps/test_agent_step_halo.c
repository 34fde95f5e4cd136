/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Codes that exchange halos: several sends and receives a step, whose bytes change as particles move. */
#include "tests/unit/agent/step_sequence.h"

enum {
	MOVES = 20, /* steps between two changes of the bytes */
	CALLS = 8, /* of a step */
};

struct halo {
	struct sequence s;
	uint64_t seed;
	uint64_t bytes[CALLS];
};

/* As those of a domain of some thousand particles: within a few per cent of each other. */
static void move_particles(struct halo *halo)
{
	for (int i = 0; i < CALLS; i++) {
		halo->seed = halo->seed * 6364136223846793005ULL + 1442695040888963407ULL;
		halo->bytes[i] = 8 * (7000 + (halo->seed >> 33) % 1000);
	}
}

/* Receives and sends: two swaps, most of the work, two swaps back, and the rest of it. */
static void make_step(struct halo *halo)
{
	for (int i = 0; i < CALLS; i++)
		(void)call(&halo->s, 1, i % 2 ? NT_OP_SEND : NT_OP_RECV, halo->bytes[i],
			   i == CALLS - 1   ? 5 * MS
			   : i == CALLS / 2 ? MS / 5
					    : MS / 100);
}

/* Particles that left the domain, in calls of other bytes. */
static void migrate(struct halo *halo)
{
	for (int i = 0; i < 3; i++) {
		(void)call(&halo->s, 1, NT_OP_SEND_RECV, 4, MS / 100);
		(void)call(&halo->s, 1, NT_OP_RECV, halo->bytes[i] * 2 + 8, MS / 100);
		(void)call(&halo->s, 1, NT_OP_SEND, halo->bytes[i] * 2 + 24, MS / 5);
	}
}

static void run_job(struct halo *halo, int steps)
{
	for (int i = 0; i < steps; i++) {
		if (i % MOVES == 0) {
			move_particles(halo);
			migrate(halo);
		}
		make_step(halo);
	}
}

static void bytes_that_change_do_not_make_the_step_shorter(void **state)
{
	struct halo halo = {.seed = 5};
	uint64_t begins;

	(void)state;
	start(&halo.s);
	run_job(&halo, 10 * MOVES);
	begins = halo.s.begins;
	run_job(&halo, 40 * MOVES);
	assert_int_equal(info(&halo.s).period, CALLS);
	/* A migration has the calls of nearly one step more. */
	assert_in_range(halo.s.begins - begins, 40 * MOVES * 9 / 10, 40 * MOVES * 11 / 10);
	nt_step_free(halo.s.step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_that_change_do_not_make_the_step_shorter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
