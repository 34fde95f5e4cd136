/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of ranks that threads read at the same time: the results are those of one after another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/flight/flight.h"
#include "cli/readers/pool.h"
#include "cli/readers/timelines.h"
#include "common/base/buf.h"
#include "common/system/thread.h"
#include "tests/unit/scratch.h"

enum {
	FILES = 150, /* more than timelines are read at once */
	BAD = 7, /* every seventh file is damaged */
	PADDING_BYTES = 6 << 20, /* of a pickle that is read alone */
};

static char dir[SCRATCH_BYTES], path[FILES][SCRATCH_BYTES + 32];
static const char *paths[FILES];
static struct nt_trace_error error;

static int set_up(void **state)
{
	(void)state;
	error = (struct nt_trace_error){0};
	for (int i = 0; i < FILES; i++)
		paths[i] = path[i];
	return scratch_make(dir);
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void put(int i, const void *text, size_t len)
{
	FILE *file;

	(void)snprintf(path[i], sizeof(path[i]), "%s/rank%d", dir, i);
	file = fopen(path[i], "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static bool is_bad(int i)
{
	return i % BAD == 3;
}

/* The first damaged files are named in their order, and all are counted. */
static void assert_unread(const struct nt_trace *trace)
{
	size_t bad = 0;

	for (int i = 0; i < FILES; i++) {
		char name[32];

		if (!is_bad(i))
			continue;
		(void)snprintf(name, sizeof(name), "/rank%d:1: invalid JSON", i);
		if (bad < NT_TRACE_MAX_UNREAD)
			assert_non_null(strstr(trace->unread_text[bad], name));
		bad++;
	}
	assert_int_equal(trace->unread, bad);
}

/* ---- the pool ------------------------------------------------------------------------------- */

static void count(void *data, size_t i)
{
	((uint32_t *)data)[i]++;
}

static void a_pool_calls_once_for_each(void **state)
{
	uint32_t calls[1000] = {0};

	(void)state;
	assert_true(nt_pool_threads() >= 1 && nt_pool_threads() <= NT_POOL_THREADS);
	for (size_t threads = 0; threads < 12; threads++) {
		nt_pool_run(threads, 1000, count, calls);
		for (size_t i = 0; i < 1000; i++)
			assert_int_equal(calls[i], threads + 1);
	}
	nt_pool_run(8, 0, count, calls);
}

struct use {
	struct nt_pool_memory memory;
	_Atomic size_t used;
	_Atomic bool exceeded;
};

static void use_memory(void *data, size_t i)
{
	struct use *use = data;
	const size_t taken = nt_pool_memory_take(&use->memory, i % 40);

	if (atomic_fetch_add(&use->used, taken) + taken > 100)
		use->exceeded = true;
	(void)atomic_fetch_sub(&use->used, taken);
	nt_pool_memory_give(&use->memory, taken);
}

static void threads_use_no_more_memory_than_there_is(void **state)
{
	struct use use = {0};

	(void)state;
	nt_pool_memory_init(&use.memory, 100);
	nt_pool_run(8, 10000, use_memory, &use);
	assert_false(use.exceeded);
	assert_int_equal(use.memory.left, 100);
	nt_pool_memory_release(&use.memory);
}

static void what_needs_more_than_there_is_takes_all(void **state)
{
	struct nt_pool_memory memory;

	(void)state;
	nt_pool_memory_init(&memory, 100);
	assert_int_equal(nt_pool_memory_take(&memory, SIZE_MAX), 100);
	assert_int_equal(memory.left, 0);
	assert_int_equal(nt_pool_memory_take(&memory, 0), 0);
	nt_pool_memory_give(&memory, 100);
	assert_int_equal(nt_pool_memory_take(&memory, 99), 99);
	nt_pool_memory_give(&memory, 99);
	nt_pool_memory_release(&memory);
}

/* ---- dumps of the flight recorder ------------------------------------------------------------ */

/* One call of all ranks, which all but rank 0 have entered. */
static void put_dump(int i, const char *ranks)
{
	nt_autobuf struct nt_buf text = {0};

	assert_int_equal(
		nt_buf_printf(
			&text,
			"{\"version\": \"2.5\", \"rank\": %d, \"pg_config\": {\"0\": {\"desc\": "
			"\"default_pg\", \"ranks\": \"%s\"}}, \"entries\": [%s",
			i, ranks, is_bad(i) ? "!" : ""),
		0);
	for (int n = 1; n <= (i ? 3 : 2); n++)
		assert_int_equal(
			nt_buf_printf(&text,
				      "%s{\"record_id\": %d, \"process_group\": [\"0\", "
				      "\"default_pg\"], \"profiling_name\": \"nccl:all_reduce\", "
				      "\"collective_seq_id\": %d, \"input_sizes\": [[8]], "
				      "\"input_dtypes\": [\"Float\"], \"state\": \"%s\", "
				      "\"time_created_ns\": %d000000000}",
				      n > 1 ? ", " : "", n - 1, n, n < 3 ? "completed" : "started",
				      n),
			0);
	assert_int_equal(nt_buf_printf(&text, "]}"), 0);
	put(i, text.data, text.len);
}

static void dumps_share_the_lists_of_their_groups(void **state)
{
	nt_autobuf struct nt_buf ranks = {0};
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_trace_wait *wait;

	(void)state;
	for (int i = 0; i < FILES; i++)
		assert_int_equal(nt_buf_printf(&ranks, "%s%d", i ? ", " : "[", i), 0);
	assert_int_equal(nt_buf_printf(&ranks, "]"), 0);
	for (int i = 0; i < FILES; i++)
		put_dump(i, (const char *)ranks.data);
	if (nt_trace_read_flight(paths, FILES, &trace, &error) < 0)
		fail_msg("%s", error.text);
	assert_unread(trace);
	assert_int_equal(trace->world, FILES);
	assert_int_equal(trace->given, FILES - trace->unread);
	assert_int_equal(trace->waits, 1);
	wait = &trace->wait[0];
	assert_int_equal(wait->number, 3);
	assert_int_equal(wait->ranks, FILES - 1 - trace->unread);
	for (size_t i = 1; i < wait->ranks; i++)
		assert_true(wait->rank[i - 1] < wait->rank[i]);
	assert_int_equal(wait->absent[0], 0);
}

/* A dict with the version and a text that is ignored; what is behind it counts. */
static void a_large_pickle_is_read_to_its_end(void **state)
{
	static const char head[] = "\x80\x02}(X\x07\0\0\0versionX\x03\0\0\0"
				   "2.5X\x01\0\0\0zX";
	static const char tail[] = "X\x07\0\0\0entriesK\x07u.";
	const uint32_t len = PADDING_BYTES;
	nt_autobuf struct nt_buf text = {0};
	struct nt_trace *trace = NULL;

	(void)state;
	assert_int_equal(nt_buf_append(&text, head, sizeof(head) - 1), 0);
	assert_int_equal(nt_buf_append(&text, &len, sizeof(len)), 0);
	assert_int_equal(nt_buf_reserve(&text, len), 0);
	memset(text.data + text.len, 'z', len);
	text.len += len;
	assert_int_equal(nt_buf_append(&text, tail, sizeof(tail) - 1), 0);
	for (int i = 0; i < NT_POOL_THREADS; i++)
		put(i, text.data, text.len);
	assert_int_equal(nt_trace_read_flight(paths, NT_POOL_THREADS, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "/rank0: 'entries' is not a list"));
}

/* ---- timelines ------------------------------------------------------------------------------- */

static void timelines_are_read_at_the_same_time_and_reported_in_their_order(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	size_t ranks = 0;

	(void)state;
	for (int i = 0; i < FILES; i++) {
		nt_autobuf struct nt_buf text = {0};

		assert_int_equal(nt_buf_printf(&text,
					       "[{\"name\": \"forward-compute\", \"ph\": \"X\", "
					       "\"pid\": 0, \"args\": {\"rank\": %d, \"step\": 0, "
					       "\"pp\": 0}, \"ts\": 1, \"dur\": %d}%s]",
					       i, i + 1, is_bad(i) ? "!" : ""),
				 0);
		put(i, text.data, text.len);
	}
	if (nt_trace_read_timelines(paths, FILES, &trace, &error) < 0)
		fail_msg("%s", error.text);
	assert_unread(trace);
	assert_int_equal(trace->frames, 1);
	assert_int_equal(trace->frame[0].frame.ranks, FILES - trace->unread);
	for (int i = 0; i < FILES; i++) {
		if (is_bad(i))
			continue;
		assert_int_equal(trace->frame[0].rank[ranks].rank, i);
		assert_int_equal(trace->frame[0].rank[ranks++].own_ns, (i + 1) * 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_calls_once_for_each),
		cmocka_unit_test(threads_use_no_more_memory_than_there_is),
		cmocka_unit_test(what_needs_more_than_there_is_takes_all),
		cmocka_unit_test_setup_teardown(dumps_share_the_lists_of_their_groups, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_large_pickle_is_read_to_its_end, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			timelines_are_read_at_the_same_time_and_reported_in_their_order, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
