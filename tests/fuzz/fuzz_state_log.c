/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * States of the aggregator as the bus gives them. With an even first byte the rest is records, each a
 * byte of the key, two of the length, and the value; with an odd one it is the content of a set whose
 * manifest is right, so that what lies behind the hash is reached.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/group/offsets.h"
#include "aggregator/group/state.h"
#include "aggregator/group/state_log.h"
#include "common/base/buf.h"
#include "common/base/hash.h"
#include "engine/engine.h"
#include "engine/ingest.h"
#include "tests/fuzz/lib/cost.h"

enum {
	SHARD = 1,
};

static const char *const names[] = {
	"state/1/0/manifest", "state/1/1/manifest", "state/1/0/0",    "state/1/0/1",
	"state/1/1/0",        "state/1/1/1023",     "state/1/1/1024", "state/2/0/0",
};

static int load(void *loader, const struct nt_state_set *set)
{
	const struct nt_engine_options options = nt_engine_options_default();
	nt_auto(nt_engine) struct nt_engine *engine = NULL;
	nt_auto(nt_ingest) struct nt_ingest *ingest = NULL;
	nt_auto(nt_offsets) struct nt_offsets *offsets = NULL;

	(void)loader;
	assert(nt_engine_new(&options, NULL, &engine) == 0);
	assert(nt_ingest_new(NULL, NULL, &ingest) == 0);
	assert(nt_offsets_new(&offsets) == 0);
	return nt_state_take(set, engine, ingest, offsets);
}

static void take(struct nt_state_log *state_log, const char *key, const void *value, size_t size)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_STATE,
		.key = key,
		.key_len = strlen(key),
		.value = value,
		.value_len = size,
	};

	assert(nt_state_log_take(state_log, &record) == 0);
}

static void take_records(struct nt_state_log *state_log, const uint8_t *data, size_t size)
{
	while (size >= 3) {
		const char *key = names[data[0] % (sizeof(names) / sizeof(names[0]))];
		size_t len = (size_t)data[1] | (size_t)data[2] << 8;

		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		take(state_log, key, data, len);
		data += len;
		size -= len;
	}
}

static void take_message(struct nt_state_log *state_log, const char *key,
			 const struct nt_message *message)
{
	nt_autobuf struct nt_buf buf = {0};

	assert(nt_message_encode(message, &buf) == 0);
	take(state_log, key, buf.data, buf.len);
}

static void take_set(struct nt_state_log *state_log, const uint8_t *data, size_t size)
{
	struct nt_message message = {
		.agent = "",
		.key = "",
		.body = NT_BODY_STATE,
		.state = {.shard = SHARD, .generation = 2, .data = data, .size = size},
	};

	if (size > NT_STATE_LOG_CHUNK_BYTES)
		return;
	take_message(state_log, "state/1/0/0", &message);
	message.state.size = 0;
	message.state.chunks = 1;
	message.state.total = size;
	message.state.hash = nt_hash_bytes(NT_HASH_SEED, data, size);
	take_message(state_log, "state/1/0/manifest", &message);
}

static int run(const uint8_t *data, size_t size)
{
	nt_auto(nt_state_log) struct nt_state_log *state_log = NULL;
	int r;

	if (!size)
		return 0;
	assert(nt_state_log_new(SHARD, &state_log) == 0);
	if (data[0] % 2)
		take_set(state_log, data + 1, size - 1);
	else
		take_records(state_log, data + 1, size - 1);
	r = nt_state_log_load(state_log, load, NULL);
	assert(r == 0 || r == -ENOENT || r == -EBADMSG || r == -ENOBUFS);
	(void)nt_state_log_mark(state_log);
	return 0;
}

FUZZ_TARGET(run, .peak = {256 << 10, 256}, .total = {1 << 20, 8192}, .steps = {20000, 400},
	    .cpu_ns = {100000000, 4000})
