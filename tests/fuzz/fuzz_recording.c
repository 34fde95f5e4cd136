/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A recording that somebody made: a spool of windows, with sound frames around any bytes, judged as
 * `neutracer analyze` would. Each record is two bytes of its length, and the message.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/replay/replay.h"
#include "cli/report/report.h"
#include "common/bus/bus.h"
#include "common/bus/spool/frame.h"
#include "tests/fuzz/lib/cost.h"
#include "tests/fuzz/lib/disk.h"

enum {
	LOG = 7,
	MAX_RECORDS = 64,
	MAX_BYTES = 1 << 16,
};

static size_t make_segment(const uint8_t *data, size_t size, uint8_t *out)
{
	const struct nt_spool_header header = {.log = LOG, .base = 0};
	size_t len = NT_SPOOL_HEADER_BYTES;

	nt_spool_header_write(&header, out);
	for (uint64_t i = 0; i < MAX_RECORDS && size >= 2; i++) {
		struct nt_bus_record record = {.real_ns = i, .value = data + 2};

		record.value_len = (size_t)data[0] | (size_t)data[1] << 8;
		data += 2;
		size -= 2;
		if (record.value_len > size)
			record.value_len = size;
		nt_spool_frame_write(&record, LOG, i, out + len);
		len += nt_spool_frame_size(&record);
		data += record.value_len;
		size -= record.value_len;
	}
	return len;
}

static void print_all(const struct nt_judgement *judgement, const struct nt_recording *recording)
{
	nt_autobuf struct nt_buf buf = {0};
	struct nt_report report = {.source = "fuzz"};

	nt_report_recording(&report, recording, judgement);
	assert(nt_report_text(&report, &buf) == 0);
}

static int run(const uint8_t *data, size_t size)
{
	static uint8_t
		bytes[MAX_BYTES + MAX_RECORDS * NT_SPOOL_FRAME_BYTES + NT_SPOOL_HEADER_BYTES];
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_rules rules = nt_rules_default();
	struct nt_recording recording = {0};
	struct nt_trace_error error = {0};
	char path[160];
	int r;

	if (size > MAX_BYTES)
		return 0;
	fuzz_disk_clear();
	(void)snprintf(path, sizeof(path), FUZZ_DISK "/recording/%s/0/%020u.seg",
		       nt_topic_name(NT_TOPIC_WINDOW), 0);
	fuzz_disk_put(path, bytes, make_segment(data, size, bytes));
	assert(nt_judgement_new(&judgement) == 0);
	r = nt_replay_recording(FUZZ_DISK "/recording", &rules, judgement, &recording, &error);
	assert(r == 0 || r == -ENOENT || r == -EBADMSG || r == -E2BIG);
	if (r == 0)
		print_all(judgement, &recording);
	return 0;
}

FUZZ_TARGET(run, .peak = {1 << 20, 256}, .total = {16 << 20, 4096}, .steps = {2000000, 2000},
	    .cpu_ns = {200000000, 20000})
