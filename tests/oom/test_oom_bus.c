/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/bus/bus.h"
#include "common/bus/bus_disk_queue.h"
#include "common/system/clock.h"
#include "common/system/file.h"
#include "proto/wire.h"
#include "tests/golden/wire/messages.h"
#include "tests/oom/oom.h"
#include "tests/unit/scratch.h"

static const struct nt_message *const messages[] = {
	&golden_window, &golden_node,    &golden_detail,    &golden_incident,
	&golden_state,  &golden_control, &golden_heartbeat,
};

enum {
	MESSAGES = sizeof(messages) / sizeof(messages[0]),
};

static int encode_message(void *message)
{
	nt_autobuf struct nt_buf buf = {0};

	return nt_message_encode(message, &buf);
}

/* What decodes in spite of a failure must say the same. */
static int decode_message(void *bytes)
{
	const struct nt_buf *buf = bytes;
	nt_auto(nt_message) struct nt_message *message = NULL;
	nt_autobuf struct nt_buf again = {0};
	int r = nt_message_decode(buf->data, buf->len, &message);

	if (r < 0)
		return message ? -EPROTO : r;
	r = nt_message_encode(message, &again);
	if (r < 0)
		return r;
	return again.len == buf->len && memcmp(again.data, buf->data, buf->len) == 0 ? 0 : -EPROTO;
}

/* A field that nobody knows behind it: it is decoded the long way. */
static int decode_longer(void *bytes)
{
	static const uint8_t unknown_field[] = {0xb8, 0x02, 0x00};
	const struct nt_buf *buf = bytes;
	nt_auto(nt_message) struct nt_message *message = NULL;
	nt_autobuf struct nt_buf longer = {0}, again = {0};
	int r = nt_buf_append(&longer, buf->data, buf->len);

	if (r == 0)
		r = nt_buf_append(&longer, unknown_field, sizeof(unknown_field));
	if (r == 0)
		r = nt_message_decode(longer.data, longer.len, &message);
	if (r < 0)
		return message ? -EPROTO : r;
	r = nt_message_encode(message, &again);
	if (r < 0)
		return r;
	return again.len == buf->len && memcmp(again.data, buf->data, buf->len) == 0 ? 0 : -EPROTO;
}

static int only_decode(void *bytes)
{
	const struct nt_buf *buf = bytes;
	nt_auto(nt_message) struct nt_message *message = NULL;

	return nt_message_decode(buf->data, buf->len, &message);
}

/* One for the message with all that it points to; on the long way one more, and protobuf-c's. */
static void a_message_is_decoded_with_few_allocations(void **state)
{
	static const uint8_t unknown_field[] = {0xb8, 0x02, 0x00};

	(void)state;
	for (int i = 0; i < MESSAGES; i++) {
		nt_autobuf struct nt_buf buf = {0};

		assert_int_equal(nt_message_encode(messages[i], &buf), 0);
		assert_int_equal(nt_oom_sweep(only_decode, &buf), 1);
		assert_int_equal(nt_buf_append(&buf, unknown_field, sizeof(unknown_field)), 0);
		assert_int_equal(nt_oom_sweep(only_decode, &buf), 3);
	}
}

static void messages_survive_failed_allocations(void **state)
{
	(void)state;
	for (int i = 0; i < MESSAGES; i++) {
		nt_autobuf struct nt_buf buf = {0};
		struct nt_message message = *messages[i];

		assert_true(nt_oom_sweep(encode_message, &message) >= 2);
		assert_int_equal(nt_message_encode(&message, &buf), 0);
		assert_true(nt_oom_sweep(decode_message, &buf) >= 2);
		assert_true(nt_oom_sweep(decode_longer, &buf) >= 4);
	}
}

enum {
	MANY = NT_WIRE_MAX_CULPRITS, /* more than one chunk of an arena holds */
};

/* Whatever it is that needs more memory than there was left of the last. */
static void long_arrays_survive_failed_allocations(void **state)
{
	static uint32_t ranks[MANY];
	static struct nt_sample sample[NT_WIRE_MAX_SAMPLES];
	struct nt_culprit culprit[2] = {{.ranks = ranks, .rank_count = MANY},
					{.peers = ranks, .peer_count = MANY}};
	const struct nt_message long_messages[] = {
		{.body = NT_BODY_INCIDENT, .incident = {.culprit = culprit, .culprits = 2}},
		{.body = NT_BODY_WINDOW,
		 .window = {.sample = sample, .samples = NT_WIRE_MAX_SAMPLES}},
	};

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		ranks[i] = i + 1;
	for (uint32_t i = 0; i < NT_WIRE_MAX_SAMPLES; i++)
		sample[i].number = i + 1;
	for (size_t i = 0; i < sizeof(long_messages) / sizeof(long_messages[0]); i++) {
		struct nt_message message = long_messages[i];
		nt_autobuf struct nt_buf buf = {0};

		assert_true(nt_oom_sweep(encode_message, &message) >= 2);
		assert_int_equal(nt_message_encode(&message, &buf), 0);
		assert_true(nt_oom_sweep(decode_message, &buf) >= 2);
	}
}

/* A directory per run: what one run leaves must not help the next. */
struct place {
	char dir[SCRATCH_BYTES];
	unsigned int runs;
};

static int publish_and_read(const char *url, enum nt_topic topic)
{
	const struct nt_bus_options options = {.segment_bytes = 4096};
	nt_auto(nt_bus) struct nt_bus *bus = NULL;
	nt_auto(nt_bus_reader) struct nt_bus_reader *reader = NULL;
	uint64_t value[64] = {0};
	struct nt_bus_record record = {
		.topic = topic,
		.key = "key",
		.key_len = 3,
		.value = value,
		.value_len = sizeof(value),
	};
	int r = nt_bus_open(url, &options, &bus);

	if (r < 0)
		return r;
	for (value[0] = 0; value[0] < 20; value[0]++) {
		r = nt_bus_publish(bus, &record);
		if (r < 0)
			return r;
	}
	r = nt_bus_flush(bus);
	if (r < 0)
		return r;
	r = nt_bus_reader_open(url, 1U << topic, &reader);
	if (r < 0)
		return r;
	do {
		r = nt_bus_reader_next(reader, 0, &record);
	} while (r == 1);
	if (r < 0)
		return r;
	r = nt_bus_reader_seek_time(reader, 1);
	return r < 0 ? r : nt_bus_reader_seek_end(reader);
}

static int use_plain_topic(void *data)
{
	struct place *place = data;
	char url[SCRATCH_BYTES + 32];

	(void)snprintf(url, sizeof(url), "spool:%s/%u", place->dir, place->runs++);
	return publish_and_read(url, NT_TOPIC_WINDOW);
}

static int use_compacted_topic(void *data)
{
	struct place *place = data;
	char url[SCRATCH_BYTES + 32];

	(void)snprintf(url, sizeof(url), "spool:%s/%u", place->dir, place->runs++);
	return publish_and_read(url, NT_TOPIC_STATE);
}

/* Tidying up may fail without harm: the next roll tries again. */
static void the_spool_survives_failed_allocations(void **state)
{
	struct place place = {0};

	(void)state;
	assert_int_equal(scratch_make_in_memory(place.dir), 0);
	assert_true(nt_oom_sweep_lenient(use_plain_topic, &place) >= 10);
	assert_true(nt_oom_sweep_lenient(use_compacted_topic, &place) >= 10);
	scratch_remove(place.dir);
}

/* Into a disk queue with nothing behind it, and from there to a spool. */
static int use_disk_queue(void *data)
{
	struct place *place = data;
	char dir[SCRATCH_BYTES + 32], url[SCRATCH_BYTES + 32];
	const struct nt_disk_queue_options options = {.dir = dir,
						      .limits = {.max_age_ns = NT_HOUR}};
	nt_auto(nt_bus) struct nt_bus *disk_queue = NULL;
	nt_auto(nt_bus) struct nt_bus *behind = NULL;
	uint64_t value[128] = {0};
	struct nt_bus_record record = {
		.key = "key",
		.key_len = 3,
		.value = value,
		.value_len = sizeof(value),
		.real_ns = NT_DAY,
	};
	struct nt_disk_queue_stats stats;
	int r;

	(void)snprintf(dir, sizeof(dir), "%s/shelter-%u", place->dir, place->runs);
	(void)snprintf(url, sizeof(url), "spool:%s/%u", place->dir, place->runs++);
	r = nt_disk_queue_open(&options, &disk_queue);
	if (r < 0)
		return r;
	for (value[0] = 0; value[0] < 40; value[0]++) {
		record.topic = value[0] % 2 ? NT_TOPIC_WINDOW : NT_TOPIC_DETAIL;
		r = nt_bus_publish(disk_queue, &record);
		if (r < 0)
			return r;
	}
	r = nt_bus_flush(disk_queue);
	if (r < 0)
		return r;
	/* What is left there is found again. */
	nt_bus_close(nt_take(disk_queue));
	r = nt_disk_queue_open(&options, &disk_queue);
	if (r == 0)
		r = nt_bus_open(url, NULL, &behind);
	if (r < 0)
		return r;
	nt_disk_queue_attach(disk_queue, nt_take(behind));
	for (uint64_t turn = 1; turn < 10; turn++)
		nt_disk_queue_turn(disk_queue, turn * NT_SECOND, NT_DAY);
	nt_disk_queue_stats(disk_queue, &stats);
	return stats.class[NT_DISK_QUEUE_VERDICT].left ? -ENOMEM : 0;
}

static void the_disk_queue_survives_failed_allocations(void **state)
{
	struct place place = {0};

	(void)state;
	assert_int_equal(scratch_make_in_memory(place.dir), 0);
	assert_true(nt_oom_sweep_lenient(use_disk_queue, &place) >= 10);
	scratch_remove(place.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_survive_failed_allocations),
		cmocka_unit_test(a_message_is_decoded_with_few_allocations),
		cmocka_unit_test(long_arrays_survive_failed_allocations),
		cmocka_unit_test(the_spool_survives_failed_allocations),
		cmocka_unit_test(the_disk_queue_survives_failed_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
