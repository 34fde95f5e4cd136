/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/probes/event.h"

static struct nt_event_init record;

/* An event of that type and size, no byte of which is 0. */
static void fill(uint16_t type, size_t size)
{
	memset(&record, 0x5a, sizeof(record));
	record.call.h.type = type;
	record.call.h.size = (uint16_t)size;
}

static int read_record(size_t size, struct nt_event_call *ret_call, const uint8_t **ret_id)
{
	return nt_event_read(&record, size, ret_call, ret_id);
}

static void a_call_may_have_any_number_of_words_and_the_others_are_0(void **state)
{
	(void)state;
	for (size_t words = 0; words <= NT_CALL_WORDS; words++) {
		struct nt_event_call call;
		const uint8_t *id = (const uint8_t *)"";

		memset(&call, 0xff, sizeof(call));
		fill(NT_EVENT_CALL, NT_CALL_BYTES(words));
		assert_int_equal(read_record(NT_CALL_BYTES(words), &call, &id), 0);
		assert_null(id);
		assert_memory_equal(&call, &record, NT_CALL_BYTES(words));
		for (size_t i = words; i < NT_CALL_WORDS; i++)
			assert_int_equal(call.word[i], 0);
	}
}

static void an_init_carries_all_words_and_the_id(void **state)
{
	struct nt_event_call call;
	const uint8_t *id = NULL;

	(void)state;
	fill(NT_EVENT_INIT, sizeof(record));
	assert_int_equal(read_record(sizeof(record), &call, &id), 0);
	assert_memory_equal(&call, &record.call, sizeof(call));
	assert_ptr_equal(id, record.id);
}

static void every_other_size_or_type_is_refused_and_nothing_is_written(void **state)
{
	struct nt_event_call call, before;
	const uint8_t *none = (const uint8_t *)"", *id = none;

	(void)state;
	memset(&call, 0xff, sizeof(call));
	before = call;
	for (uint16_t type = 0; type <= NT_EVENT_TYPE_END; type++) {
		for (size_t size = 0; size <= sizeof(record); size++) {
			if (type == NT_EVENT_INIT && size == sizeof(record))
				continue;
			if (type == NT_EVENT_CALL && size >= NT_CALL_BYTES(0) &&
			    size <= NT_CALL_BYTES(NT_CALL_WORDS) && size % 8 == 0)
				continue;
			fill(type, size);
			assert_int_equal(read_record(size, &call, &id), -EBADMSG);
		}
	}
	assert_memory_equal(&call, &before, sizeof(call));
	assert_ptr_equal(id, none);
}

static void a_record_that_is_not_as_long_as_it_says_is_refused(void **state)
{
	struct nt_event_call call;
	const uint8_t *id;

	(void)state;
	fill(NT_EVENT_CALL, NT_CALL_BYTES(6));
	assert_int_equal(read_record(NT_CALL_BYTES(5), &call, &id), -EBADMSG);
	assert_int_equal(read_record(NT_CALL_BYTES(7), &call, &id), -EBADMSG);
	fill(NT_EVENT_INIT, sizeof(record));
	assert_int_equal(read_record(sizeof(record.call), &call, &id), -EBADMSG);
}

static void a_batch_has_as_many_records_as_it_says(void **state)
{
	static struct nt_event_gpu sent, got;

	(void)state;
	for (uint32_t records = 0; records <= NT_GPU_BATCH + 1; records++) {
		for (size_t room = 0; room <= NT_GPU_BATCH; room += 8) {
			const size_t size = NT_GPU_BYTES(room);
			const bool fits = records >= 1 && records <= room;

			memset(&sent, 0x5a, sizeof(sent));
			sent.h.type = NT_EVENT_GPU;
			sent.h.size = (uint16_t)size;
			sent.records = records;
			assert_int_equal(nt_event_read_gpu(&sent, size, &got), fits ? 0 : -EBADMSG);
			if (fits)
				assert_memory_equal(&got, &sent, NT_GPU_BYTES(records));
			assert_int_equal(nt_event_read_gpu(&sent, size - 1, &got), -EBADMSG);
		}
	}
	assert_int_equal(nt_event_read_gpu(&sent, sizeof(sent) + 8, &got), -EBADMSG);
	sent.h.type = NT_EVENT_CALL;
	sent.records = 1;
	assert_int_equal(nt_event_read_gpu(&sent, sizeof(sent), &got), -EBADMSG);
}

static void a_query_has_one_size(void **state)
{
	struct nt_event_query sent = {
		.h = {.type = NT_EVENT_QUERY, .size = sizeof(sent), .flags = NT_QUERY_COMPLETE},
		.event = UINT64_MAX,
		.queries = 7,
	};
	struct nt_event_query got = {0};
	uint8_t longer[sizeof(sent) + 8] = {0};

	(void)state;
	assert_int_equal(nt_event_read_query(&sent, sizeof(sent) - 1, &got), -EBADMSG);
	memcpy(longer, &sent, sizeof(sent));
	assert_int_equal(nt_event_read_query(longer, sizeof(longer), &got), -EBADMSG);
	assert_int_equal(nt_event_read_query(&sent, 0, &got), -EBADMSG);
	assert_int_equal(got.queries, 0);
	assert_int_equal(nt_event_read_query(&sent, sizeof(sent), &got), 0);
	assert_memory_equal(&got, &sent, sizeof(sent));
	sent.h.size--;
	assert_int_equal(nt_event_read_query(&sent, sizeof(sent), &got), -EBADMSG);
	sent.h.size++;
	sent.h.type = NT_EVENT_END;
	assert_int_equal(nt_event_read_query(&sent, sizeof(sent), &got), -EBADMSG);
}

static void a_multiplication_has_one_size(void **state)
{
	struct nt_event_gemm sent = {
		.h = {.type = NT_EVENT_GEMM, .size = sizeof(sent), .entry_ns = 5},
		.ret_ns = UINT64_MAX,
		.thread = UINT32_MAX,
	};
	struct nt_event_gemm got = {0};
	uint8_t longer[sizeof(sent) + 8] = {0};

	(void)state;
	assert_int_equal(nt_event_read_gemm(&sent, sizeof(sent) - 1, &got), -EBADMSG);
	memcpy(longer, &sent, sizeof(sent));
	assert_int_equal(nt_event_read_gemm(longer, sizeof(longer), &got), -EBADMSG);
	assert_int_equal(nt_event_read_gemm(&sent, 0, &got), -EBADMSG);
	assert_int_equal(got.ret_ns, 0);
	assert_int_equal(nt_event_read_gemm(&sent, sizeof(sent), &got), 0);
	assert_memory_equal(&got, &sent, sizeof(sent));
	sent.h.size--;
	assert_int_equal(nt_event_read_gemm(&sent, sizeof(sent), &got), -EBADMSG);
	sent.h.size++;
	sent.h.type = NT_EVENT_QUERY;
	assert_int_equal(nt_event_read_gemm(&sent, sizeof(sent), &got), -EBADMSG);
}

static void a_capture_has_one_size(void **state)
{
	struct nt_event_capture sent = {
		.h = {.type = NT_EVENT_CAPTURE, .size = sizeof(sent), .entry_ns = 5}, .unread = 7};
	struct nt_event_capture got = {0};
	uint8_t longer[sizeof(sent) + 8] = {0};

	(void)state;
	sent.sum[NT_GEMM_SUMS - 1].flops = UINT64_MAX;
	assert_int_equal(nt_event_read_capture(&sent, sizeof(sent) - 1, &got), -EBADMSG);
	memcpy(longer, &sent, sizeof(sent));
	assert_int_equal(nt_event_read_capture(longer, sizeof(longer), &got), -EBADMSG);
	assert_int_equal(got.unread, 0);
	assert_int_equal(nt_event_read_capture(&sent, sizeof(sent), &got), 0);
	assert_memory_equal(&got, &sent, sizeof(sent));
	sent.h.size--;
	assert_int_equal(nt_event_read_capture(&sent, sizeof(sent), &got), -EBADMSG);
	sent.h.size++;
	sent.h.type = NT_EVENT_GEMM;
	assert_int_equal(nt_event_read_capture(&sent, sizeof(sent), &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_may_have_any_number_of_words_and_the_others_are_0),
		cmocka_unit_test(an_init_carries_all_words_and_the_id),
		cmocka_unit_test(every_other_size_or_type_is_refused_and_nothing_is_written),
		cmocka_unit_test(a_record_that_is_not_as_long_as_it_says_is_refused),
		cmocka_unit_test(a_batch_has_as_many_records_as_it_says),
		cmocka_unit_test(a_query_has_one_size),
		cmocka_unit_test(a_multiplication_has_one_size),
		cmocka_unit_test(a_capture_has_one_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
