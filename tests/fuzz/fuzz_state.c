/* SPDX-License-Identifier: GPL-3.0-or-later */
/* States of the aggregator that a disk has damaged: the first byte says which. */
#include <assert.h>
#include <errno.h>

#include "aggregator/group/offsets.h"
#include "aggregator/snapshot_builder.h"
#include "engine/engine.h"
#include "engine/ingest.h"
#include "engine/job_state.h"
#include "engine/nodes/fleet.h"
#include "tests/fuzz/lib/cost.h"

static void check_result(int r)
{
	assert(r == 0 || r == -EBADMSG || r == -ENOBUFS);
}

/* What loads can be shown, saved and gone on with. */
static void load_jobs(const uint8_t *data, size_t size)
{
	const struct nt_engine_options options = nt_engine_options_default();
	nt_auto(nt_engine) struct nt_engine *engine = NULL;
	nt_autobuf struct nt_buf buf = {0};
	struct nt_snapshot *snapshot = NULL;
	int r;

	assert(nt_engine_new(&options, NULL, &engine) == 0);
	r = nt_jobs_load(nt_engine_jobs(engine), data, size);
	check_result(r);
	if (r < 0)
		return;
	assert(nt_jobs_save(nt_engine_jobs(engine), &buf) == 0);
	assert(nt_snapshot_builder_build(
		       &(struct nt_snapshot_builder){.engine = &engine, .engines = 1}, &snapshot) ==
	       0);
	nt_snapshot_release(snapshot);
	assert(nt_engine_sweep(engine, 3600ULL * 1000000000) == 0);
}

/* A fleet goes on from what loads: it takes a vector, saves, and shows its nodes. */
static void load_nodes(const uint8_t *data, size_t size, bool is_portion)
{
	struct nt_metric_value metric = {"cpu_busy", 0.5};
	const struct nt_message message = {
		.agent = "a",
		.boot = 1,
		.seq = 1,
		.real_ns = 1700000000ULL * 1000000000,
		.body = NT_BODY_NODE,
		.node = {.node = "a", .metric = &metric, .metrics = 1},
	};
	const struct nt_fleet_options options = nt_fleet_options_default();
	nt_auto(nt_fleet) struct nt_fleet *fleet = NULL;
	nt_autobuf struct nt_buf buf = {0};

	assert(nt_fleet_new(&options, NULL, &fleet) == 0);
	check_result(is_portion ? nt_fleet_load_portion(fleet, 0, data, size)
				: nt_fleet_load(fleet, 0, data, size));
	assert(nt_fleet_take(fleet, &message, 0) == 0);
	nt_fleet_wait(fleet, 3600ULL * 1000000000);
	assert(nt_fleet_turn(fleet, SIZE_MAX) == 0);
	assert(nt_fleet_save(fleet, 0, &buf) == 0);
	for (uint32_t i = 0; i < NT_FLEET_PORTIONS; i++)
		assert(nt_fleet_save_portion(fleet, 0, i, &buf) >= 0);
}

static int run(const uint8_t *data, size_t size)
{
	nt_auto(nt_ingest) struct nt_ingest *ingest = NULL;
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;

	if (!size)
		return 0;
	switch (data[0] % 5) {
	case 0:
		load_jobs(data + 1, size - 1);
		break;
	case 1:
		assert(nt_ingest_new(NULL, NULL, &ingest) == 0);
		check_result(nt_ingest_load(ingest, data + 1, size - 1));
		break;
	case 3:
		load_nodes(data + 1, size - 1, false);
		break;
	case 4:
		load_nodes(data + 1, size - 1, true);
		break;
	default:
		assert(nt_offsets_new(&offsets) == 0);
		check_result(nt_offsets_load(offsets, data + 1, size - 1));
	}
	return 0;
}

FUZZ_TARGET(run, .peak = {256 << 10, 128}, .total = {1 << 20, 256}, .steps = {100000, 500})
