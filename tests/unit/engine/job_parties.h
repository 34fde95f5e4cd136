/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An engine, and groups of ranks that send it windows. */
#ifndef NT_TESTS_UNIT_ENGINE_JOB_PARTIES_H
#define NT_TESTS_UNIT_ENGINE_JOB_PARTIES_H

#include "engine/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/engine.h"

#include "tests/unit/engine/window_feed.h"

static struct nt_engine *engine;
static struct nt_engine_options options;
static struct feed_agent agent, other;

static inline void start_engine(void)
{
	nt_engine_free(engine);
	engine = NULL;
	assert_int_equal(nt_engine_new(&options, NULL, &engine), 0);
}

static inline int set_up(void **state)
{
	(void)state;
	options = nt_engine_options_default();
	agent = feed_agent("n0", "job");
	other = feed_agent("n1", "job");
	other.booted_ms = 4242;
	start_engine();
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	nt_engine_free(engine);
	engine = NULL;
	return 0;
}

static inline void push(struct nt_message *message)
{
	assert_int_equal(nt_engine_push(engine, message, false), 0);
}

static inline const struct nt_jobs_counters *counters(void)
{
	return nt_jobs_counters(nt_engine_jobs(engine));
}

/* One window of half a second of some ranks. */
static inline void push_window(struct feed_agent *from, uint64_t at_ms, struct feed_window window)
{
	window.from_ms = at_ms;
	window.to_ms = at_ms + 500;
	window.steps = 5;
	window.own_ms = 50;
	window.step_ms = 100;
	window.last = at_ms / 100 + 5;
	push(feed_window(from, &window));
}

struct party {
	struct feed_agent *from;
	uint32_t first, count, size, pid;
	uint64_t comm;
	struct feed_window like;
};

static inline void run_party(const struct party *party, uint64_t from_ms, uint64_t to_ms)
{
	for (uint64_t at = from_ms; at < to_ms; at += 500)
		for (uint32_t rank = party->first; rank < party->first + party->count; rank++) {
			struct feed_window window = party->like;

			window.rank = rank;
			window.size = party->size;
			window.pid = party->pid + rank;
			window.comm = party->comm;
			push_window(party->from, at, window);
		}
}

static inline void end_party(const struct party *party, uint64_t at_ms)
{
	struct party ending = *party;

	ending.like.ended = true;
	run_party(&ending, at_ms, at_ms + 500);
}

static inline struct nt_job_key *only_key(void)
{
	struct nt_job_key *key = nt_jobs_keys(nt_engine_jobs(engine));

	assert_non_null(key);
	assert_null(key->hh.next);
	return key;
}

/* The n-th job of the only key. */
static inline struct nt_job *job_at(size_t n)
{
	struct nt_job *job = only_key()->job;

	while (job && n--)
		job = job->next;
	assert_non_null(job);
	return job;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
