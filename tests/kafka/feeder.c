/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Plays the agents of some jobs on a bus, in real time: each job on a node of its own, eight ranks
 * with a window every 520 ms. From one second to another, a rank of the first job is slow, and one of
 * each further job two seconds later.
 *
 *   feeder URL JOBS SECONDS SLOW_FROM SLOW_TO
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/num.h"
#include "tests/unit/feed.h"

enum {
	RANKS = 8,
	SLOW = 5,
	MAX_JOBS = 64,
	WINDOW_MS = 520,
};

static uint64_t number(const char *text)
{
	uint64_t value;

	if (nt_num_u64(text, strlen(text), 0, 86400, &value) < 0) {
		(void)fprintf(stderr, "feeder: '%s' is no number\n", text);
		exit(2);
	}
	return value;
}

static void publish_window(struct nt_bus *bus, struct feed_agent *agent, uint32_t rank,
			   uint64_t from_ms, uint64_t round, bool is_slow, uint64_t comm)
{
	/* Nothing in the world is as even as a constant. */
	const double noise = (double)((round * 7 + rank * 13 + comm) % 17) * 0.01;
	const struct feed_window window = {
		.rank = rank,
		.size = RANKS,
		.from_ms = from_ms,
		.to_ms = from_ms + WINDOW_MS,
		.process_ms = from_ms - round * WINDOW_MS,
		.steps = 10,
		.own_ms = (is_slow && rank == SLOW ? 30 : 20) + noise,
		.step_ms = is_slow ? 31 : 21,
		.comm = comm,
		.last = round * 10 + 10,
	};
	nt_autobuf struct nt_buf buf = {0};
	struct nt_message *message = feed_window(agent, &window);
	const struct nt_bus_record record = feed_record(message, &buf);

	if (nt_bus_publish(bus, &record) < 0)
		(void)fprintf(stderr, "feeder: the bus takes nothing\n");
	nt_message_free(message);
}

static void sleep_until(uint64_t real_ms)
{
	const uint64_t ns = REAL_0 + real_ms * MS;
	const struct timespec until = {(time_t)(ns / SECOND), (long)(ns % SECOND)};

	(void)clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
}

int main(int argc, char **argv)
{
	static char name[MAX_JOBS][2][32];
	struct feed_agent agent[MAX_JOBS];
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	uint64_t begin_ms, jobs, rounds, slow_from, slow_to;

	if (argc != 6)
		return 2;
	jobs = number(argv[2]);
	rounds = number(argv[3]) * 1000 / WINDOW_MS;
	slow_from = number(argv[4]) * 1000 / WINDOW_MS;
	slow_to = number(argv[5]) * 1000 / WINDOW_MS;
	if (jobs > MAX_JOBS || nt_bus_open(argv[1], NULL, &bus) < 0)
		return 1;
	for (size_t i = 0; i < jobs; i++) {
		(void)snprintf(name[i][0], sizeof(name[i][0]), "node-%zu", i);
		(void)snprintf(name[i][1], sizeof(name[i][1]), "job-%zu", i);
		agent[i] = feed_agent(name[i][0], name[i][1]);
	}
	begin_ms = (nt_clock_real_ns() - REAL_0) / MS;
	for (uint64_t round = 0; round < rounds; round++) {
		const uint64_t from_ms = begin_ms + round * WINDOW_MS;

		sleep_until(from_ms + WINDOW_MS);
		for (size_t i = 0; i < jobs; i++)
			for (uint32_t rank = 0; rank < RANKS; rank++)
				publish_window(bus, &agent[i], rank, from_ms, round,
					       round >= slow_from + 4 * i &&
						       round < slow_to + 4 * i,
					       0xabc + i);
		if (nt_bus_flush(bus) < 0)
			(void)fprintf(stderr, "feeder: the bus does not answer\n");
	}
	return 0;
}
