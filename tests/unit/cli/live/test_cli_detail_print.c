/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which records of single calls are printed, and how. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/live/detail_print.h"

static uint64_t words[] = {UINT64_MAX};
static struct nt_detail_call calls[] = {
	{.kind = NT_DETAIL_KIND_COMM,
	 .call = "ncclAllReduce",
	 .thread = 41,
	 .entry_boot_ns = 2000000001,
	 .bytes = 4096,
	 .comm = 0xf1,
	 .number = 7,
	 .op = NT_OP_ALL_REDUCE,
	 .peer = 3,
	 .probability = 1},
	{.kind = NT_DETAIL_KIND_LAUNCH,
	 .call = "cudaLaunchKernel",
	 .thread = 42,
	 .entry_boot_ns = 2000000002,
	 .probability = 0.125,
	 .word = words,
	 .words = 1},
	{.kind = NT_DETAIL_KIND_SYNC,
	 .call = "cudaStreamSynchronize",
	 .thread = 42,
	 .entry_boot_ns = 2000000003,
	 .return_boot_ns = 2000001503,
	 .result = -3,
	 .probability = 1},
};
static struct nt_detail_count counts[] = {
	{.kind = NT_DETAIL_KIND_COMM, .seen = 1},
	{.kind = NT_DETAIL_KIND_LAUNCH, .seen = 9, .lost = 2},
};

/* Booted a second after 2026-11-21T03:00:10Z. */
static struct nt_message message_of(void)
{
	return (struct nt_message){
		.agent = "gpu-07",
		.key = "ns/train/torch:10.0.0.1:29500",
		.boot_ns = 5000000000,
		.real_ns = 1795230016000000000,
		.body = NT_BODY_DETAIL,
		.detail =
			{
				.rank = {.rank = 5,
					 .rank_known = true,
					 .pid = 40,
					 .job = "llm/70b",
					 .namespace = "train",
					 .pod = "llm-5",
					 .container = "main",
					 .node = "gpu-07"},
				.level = 1,
				.record = calls,
				.records = 3,
				.count = counts,
				.counts = 2,
				.granted = 0.5,
			},
	};
}

static void a_job_is_selected_by_name_or_key_and_a_rank_behind_it(void **state)
{
	static const char *const wanted[] = {"llm/70b", "llm/70b/5",
					     "ns/train/torch:10.0.0.1:29500",
					     "ns/train/torch:10.0.0.1:29500/5"};
	static const char *const others[] = {"",
					     "/",
					     "/5",
					     "llm",
					     "llm/5",
					     "llm/70",
					     "llm/70b/",
					     "llm/70b/6",
					     "llm/70b/05x",
					     "llm/70b/x",
					     "llm/70b/-5",
					     "llm/70b/5/5",
					     "llm/70b/4294967301",
					     "llm/70b/99999999999999999999"};
	struct nt_message message = message_of();

	(void)state;
	assert_true(nt_detail_is_wanted(NULL, &message));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		assert_true(nt_detail_is_wanted(wanted[i], &message));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(nt_detail_is_wanted(others[i], &message));
	message.detail.rank.rank_known = false;
	assert_true(nt_detail_is_wanted("llm/70b", &message));
	assert_false(nt_detail_is_wanted("llm/70b/5", &message));
}

static json_t *line_of(char **text)
{
	char *line = strsep(text, "\n");
	json_error_t error;
	json_t *object;

	assert_non_null(line);
	object = json_loads(line, 0, &error);
	assert_non_null(object);
	return object;
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	assert_non_null(text);
	return text;
}

static int64_t number_of(const json_t *object, const char *name)
{
	assert_true(json_is_integer(json_object_get(object, name)));
	return json_integer_value(json_object_get(object, name));
}

static void each_record_is_one_object_with_all_its_tags(void **state)
{
	const struct nt_message message = message_of();
	char *text = NULL, *rest;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *object;

	(void)state;
	assert_non_null(out);
	assert_int_equal(nt_detail_print_json(&message, out), 0);
	(void)fclose(out);
	rest = text;
	object = line_of(&rest);
	assert_string_equal(text_of(object, "job"), "llm/70b");
	assert_string_equal(text_of(object, "job_key"), message.key);
	assert_string_equal(text_of(object, "namespace"), "train");
	assert_string_equal(text_of(object, "pod"), "llm-5");
	assert_string_equal(text_of(object, "container"), "main");
	assert_string_equal(text_of(object, "node"), "gpu-07");
	assert_int_equal(number_of(object, "rank"), 5);
	assert_int_equal(number_of(object, "pid"), 40);
	assert_int_equal(number_of(object, "thread"), 41);
	assert_string_equal(text_of(object, "kind"), "comm");
	assert_string_equal(text_of(object, "call"), "ncclAllReduce");
	assert_string_equal(text_of(object, "op"), "all-reduce");
	assert_string_equal(text_of(object, "comm"), "00000000000000f1");
	assert_string_equal(text_of(object, "time"), "2026-11-21T03:00:13.000000001Z");
	assert_int_equal(number_of(object, "number"), 7);
	assert_int_equal(number_of(object, "peer"), 2);
	assert_true(json_is_null(json_object_get(object, "duration_ns")));
	assert_true(json_is_null(json_object_get(object, "result")));
	json_decref(object);
	object = line_of(&rest);
	assert_true(json_real_value(json_object_get(object, "probability")) == 0.125);
	assert_string_equal(json_string_value(json_array_get(json_object_get(object, "words"), 0)),
			    "0xffffffffffffffff");
	assert_null(json_object_get(object, "comm"));
	assert_true(json_is_null(json_object_get(object, "peer")));
	json_decref(object);
	object = line_of(&rest);
	assert_int_equal(number_of(object, "duration_ns"), 1500);
	assert_int_equal(number_of(object, "result"), -3);
	json_decref(object);
	object = line_of(&rest);
	assert_int_equal(json_array_size(json_object_get(object, "counts")), 2);
	assert_int_equal(number_of(object, "level"), 1);
	assert_string_equal(text_of(object, "pod"), "llm-5");
	json_decref(object);
	assert_string_equal(rest, "");
	free(text);
}

static void lines_for_people_state_what_is_lost(void **state)
{
	const struct nt_message message = message_of();
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	nt_detail_print_head(out);
	nt_detail_print(&message, out);
	(void)fclose(out);
	assert_non_null(strstr(text, "03:00:13.000000001Z"));
	assert_non_null(strstr(text, "llm-5"));
	assert_non_null(strstr(text, "1.5us"));
	assert_non_null(strstr(text, "0.125"));
	assert_non_null(strstr(text, "# rank 5: 2 of 9 calls of kind 'launch' are lost"));
	assert_null(strstr(text, "'comm'"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_selected_by_name_or_key_and_a_rank_behind_it),
		cmocka_unit_test(each_record_is_one_object_with_all_its_tags),
		cmocka_unit_test(lines_for_people_state_what_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
