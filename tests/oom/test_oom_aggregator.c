/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From records to a snapshot and a saved state, with every allocation failing once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/group/offsets.h"
#include "aggregator/group/state.h"
#include "aggregator/snapshot_builder.h"
#include "engine/engine.h"
#include "engine/ingest.h"
#include "tests/oom/oom.h"
#include "tests/unit/engine/window_feed.h"

enum {
	RANKS = 3,
	RECORDS = RANKS * 16,
};

static struct nt_buf bytes[RECORDS];
static struct nt_bus_record record[RECORDS];

/* A rank that is slow from the start, one that is not known, and one that ends. */
static void make_records(void)
{
	struct feed_agent agent = feed_agent("n0", "job");

	for (size_t i = 0; i < RECORDS; i++) {
		const uint32_t rank = (uint32_t)(i % RANKS);
		const uint64_t at = i / RANKS * 520;
		const struct feed_window window = {
			.rank = rank,
			.size = RANKS,
			.from_ms = at,
			.to_ms = at + 520,
			.steps = 10,
			.own_ms = rank == 1 ? 90 : 30,
			.step_ms = 91,
			.comm = 0xabc,
			.epoch = rank == 2 ? 99 : 1,
			.last = at / 52 + 10,
			.gpu = "GPU-5f",
			.rank_unknown = rank == 2,
			.ended = i + 1 == RECORDS,
		};
		struct nt_message *message = feed_window(&agent, &window);

		record[i] = feed_record(message, &bytes[i]);
		record[i].key = "job";
		record[i].offset = i;
		nt_message_free(message);
	}
}

static int take_records(struct nt_engine *engine, struct nt_ingest *ingest,
			struct nt_offsets *offsets)
{
	for (size_t i = 0; i < RECORDS; i++) {
		struct nt_message *message;
		bool again;
		int r;

		r = nt_offsets_take(offsets, &record[i], &again);
		if (r < 0)
			return r;
		r = nt_ingest_take(ingest, &record[i], 0, again, &message);
		if (r < 0)
			return r;
		if (r > 0)
			r = nt_engine_push(engine, message, again);
		if (r < 0)
			return r;
	}
	return nt_engine_finish(engine);
}

/* A store whose every state is loaded at once, into parts that are thrown away. */
static int load_at_once(void *data, const struct nt_state_set *set)
{
	const struct nt_engine_options options = nt_engine_options_default();
	nt_auto(nt_engine) struct nt_engine *engine = NULL;
	nt_auto(nt_ingest) struct nt_ingest *ingest = NULL;
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;
	int r;

	(void)data;
	r = nt_engine_new(&options, NULL, &engine);
	if (r >= 0)
		r = nt_ingest_new(NULL, NULL, &ingest);
	if (r >= 0)
		r = nt_offsets_new(&offsets);
	if (r < 0)
		return r;
	return nt_state_take(set, engine, ingest, offsets);
}

static int run(void *data)
{
	const struct nt_engine_options options = nt_engine_options_default();
	nt_auto(nt_engine) struct nt_engine *engine = NULL;
	nt_auto(nt_ingest) struct nt_ingest *ingest = NULL;
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;
	const struct nt_state_store states = {.save = load_at_once};
	struct nt_snapshot *snapshot = NULL;
	int r;

	(void)data;
	r = nt_engine_new(&options, NULL, &engine);
	if (r >= 0)
		r = nt_ingest_new(NULL, NULL, &ingest);
	if (r >= 0)
		r = nt_offsets_new(&offsets);
	if (r >= 0)
		r = take_records(engine, ingest, offsets);
	if (r >= 0)
		r = nt_snapshot_builder_build(
			&(struct nt_snapshot_builder){.engine = &engine, .engines = 1}, &snapshot);
	nt_snapshot_release(snapshot);
	if (r < 0)
		return r;
	return nt_state_save(&states, 0, engine, ingest, offsets);
}

static void a_failed_allocation_is_an_error_and_no_more(void **state)
{
	(void)state;
	make_records();
	assert_true(nt_oom_sweep(run, NULL) > 100);
	for (size_t i = 0; i < RECORDS; i++)
		nt_buf_release(&bytes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_allocation_is_an_error_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
