/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Heads of jobs as the bus gives them: records, each a byte of its key, two of its length, and a
 * message, whose head is given the id that the key has where the length is odd.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/group/job_summary.h"
#include "common/base/utf8.h"
#include "engine/snapshot.h"
#include "proto/wire.h"
#include "tests/fuzz/lib/cost.h"

enum {
	OWN_BOOT = 7,
};

static void take(struct nt_job_summaries *summaries, const char *key, const void *value,
		 size_t size)
{
	const struct nt_bus_record record = {
		.topic = NT_TOPIC_STATE,
		.key = key,
		.key_len = strlen(key),
		.value = value,
		.value_len = size,
	};

	assert(nt_job_summaries_take(summaries, &record, OWN_BOOT) == 0);
}

/* The message of the input with what the key demands, so that what lies behind that is reached. */
static void take_fitting(struct nt_job_summaries *summaries, const char *key, const void *value,
			 size_t size)
{
	static const char *const states[] = {"live", "ended", "unobserved", "gone"};
	nt_auto(nt_message) struct nt_message *message = NULL;
	nt_autobuf struct nt_buf buf = {0};

	if (nt_message_decode(value, size, &message) < 0 || message->body != NT_BODY_STATE)
		return;
	message->state.head.id = key + strlen("job/");
	message->state.head.state = states[size / 2 % 4];
	assert(nt_message_encode(message, &buf) == 0);
	take(summaries, key, buf.data, buf.len);
}

static int run(const uint8_t *data, size_t size)
{
	nt_auto(nt_job_summaries) struct nt_job_summaries *summaries = NULL;
	const struct nt_snapshot_job **job;
	size_t jobs;

	assert(nt_job_summaries_new(&summaries) == 0);
	while (size >= 3) {
		size_t len = (size_t)data[1] | (size_t)data[2] << 8;
		char key[32];

		(void)snprintf(key, sizeof(key), "job/%016x", data[0]);
		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		take(summaries, key, data, len);
		if (len % 2)
			take_fitting(summaries, key, data, len);
		data += len;
		size -= len;
	}
	assert(nt_job_summaries_list(summaries, &job, &jobs) == 0);
	for (size_t i = 0; i < jobs; i++) {
		assert(job[i]->is_summary && job[i]->name && job[i]->key);
		assert(nt_utf8_is_valid(job[i]->name, strlen(job[i]->name)));
	}
	return 0;
}

FUZZ_TARGET(run, .peak = {256 << 10, 512}, .total = {1 << 20, 16384}, .steps = {30000, 600},
	    .cpu_ns = {100000000, 4000})
