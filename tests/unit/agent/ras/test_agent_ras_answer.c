/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/ras/ras_answer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/agent/ras/ras_status.h"
#include "tests/unit/piece_source.h"

enum {
	PID = 42,
};

static int read_text(const char *text, struct nt_ras_answer *ret_answer)
{
	struct piece_source source = {.text = text, .len = strlen(text), .piece = 7};

	return nt_ras_answer_read(piece_source_read, &source, PID, ret_answer);
}

static void the_places_of_the_process_are_kept_by_hash(void **state)
{
	struct nt_ras_answer answer;

	(void)state;
	assert_int_equal(read_text(RAS_EXAMPLE, &answer), 0);
	assert_int_equal(answer.communicators, 2);
	assert_int_equal(answer.ranks, 4);
	assert_int_equal(answer.initialising, 1);
	assert_int_equal(answer.missing, 2);
	assert_int_equal(answer.dead, 1);
	assert_int_equal(answer.impossible, 0);
	/* Rank 2 is of another node, where another process has this pid. */
	assert_int_equal(answer.comms, 3);
	assert_int_equal(answer.comm[0].hash, 0xabc);
	assert_int_equal(answer.comm[0].rank, 1);
	assert_int_equal(answer.comm[0].size, 2);
	assert_true(answer.comm[1].hash == 0xffffffffffffff01);
	assert_int_equal(answer.comm[1].rank, 0);
	assert_int_equal(answer.comm[2].rank, 2);
}

static void a_place_is_found_by_hash_rank_and_size(void **state)
{
	struct nt_ras_answer answer;

	(void)state;
	assert_int_equal(read_text(RAS_EXAMPLE, &answer), 0);
	assert_non_null(nt_ras_answer_find(answer.comm, answer.comms,
					   &(struct nt_ras_comm){0xffffffffffffff01, 2, 4}));
	assert_null(nt_ras_answer_find(answer.comm, answer.comms,
				       &(struct nt_ras_comm){0xffffffffffffff01, 1, 4}));
	assert_null(nt_ras_answer_find(answer.comm, answer.comms,
				       &(struct nt_ras_comm){0xffffffffffffff01, 2, 5}));
	assert_null(nt_ras_answer_find(answer.comm, 0, &(struct nt_ras_comm){0xabc, 1, 2}));
}

static void impossible_values_are_dropped_and_counted(void **state)
{
	static const char *const comms[] = {
		RAS_COMM("0x0", "2", RAS_RANK("0", "h", "42", "0"), ""),
		RAS_COMM("abc", "2", RAS_RANK("0", "h", "42", "0"), ""),
		RAS_COMM("0x12345678901234567", "2", RAS_RANK("0", "h", "42", "0"), ""),
		RAS_COMM("0x1", "0", RAS_RANK("0", "h", "42", "0"), ""),
		RAS_COMM("0x1", "1048577", RAS_RANK("0", "h", "42", "0"), ""),
		RAS_COMM("0x1", "\"2\"", RAS_RANK("0", "h", "42", "0"), ""),
		"{\"ranks\": [" RAS_RANK("0", "h", "42", "0") "], \"hash\": \"0x1\", \"x\": 2}",
	};
	static const char *const ranks[] = {
		RAS_COMM("0x1", "2", RAS_RANK("2", "h", "42", "0"), ""),
		RAS_COMM("0x1", "2", RAS_RANK("-1", "h", "42", "0"), ""),
		RAS_COMM("0x1", "2", RAS_RANK("0.5", "h", "42", "0"), ""),
		RAS_COMM("0x1", "2", RAS_RANK("0", "h", "-2", "0"), ""),
		RAS_COMM("0x1", "2", RAS_RANK("0", "h", "2147483648", "0"), ""),
		RAS_COMM("0x1", "2", "null", ""),
		RAS_COMM("0x1", "2", "[[]]", ""),
	};
	struct nt_ras_answer answer;
	char text[2048];

	(void)state;
	for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
		(void)snprintf(text, sizeof(text), "{\"communicators\": [%s]}", comms[i]);
		assert_int_equal(read_text(text, &answer), 0);
		assert_int_equal(answer.comms, 0);
		assert_int_equal(answer.communicators, 0);
		assert_int_equal(answer.impossible, 2);
	}
	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		(void)snprintf(text, sizeof(text), "{\"communicators\": [%s]}", ranks[i]);
		assert_int_equal(read_text(text, &answer), 0);
		assert_int_equal(answer.comms, 0);
		assert_int_equal(answer.communicators, 1);
		assert_int_equal(answer.impossible, 1);
	}
}

static void what_is_no_status_is_refused_and_the_output_stays(void **state)
{
	static const char *const texts[] = {
		"",
		"ERROR: Unknown command STATUS\n",
		"[]",
		"{}",
		"{\"communicators\": {}}",
		"{\"communicators\": [17]}",
		"{\"communicators\": [{\"ranks\": {}}]}",
		"{\"communicators\": [{\"hash\": \"0x1\", \"size\": 2, \"ranks\": [",
	};
	struct nt_ras_answer answer = {.ranks = 99};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(read_text(texts[i], &answer), -EBADMSG);
	assert_int_equal(answer.ranks, 99);
}

/* Communicators of one rank each, without end where last is 0. */
struct endless {
	uint32_t next, last;
	bool begun, is_over;
};

static ptrdiff_t write_comms(void *context, char *data, size_t size)
{
	struct endless *endless = context;
	int n;

	assert_true(size >= 512);
	if (endless->is_over)
		return 0;
	if (!endless->begun) {
		endless->begun = true;
		return snprintf(data, size, "{\"communicators\": [");
	}
	endless->next++;
	endless->is_over = endless->next == endless->last;
	n = snprintf(data, size, RAS_COMM("0x%x", "1", RAS_RANK("0", "h", "42", "0"), "") "%s",
		     endless->next, endless->is_over ? "]}" : ",");
	return n;
}

static void places_over_the_cap_are_counted(void **state)
{
	struct endless endless = {.last = NT_RAS_COMMS + 3};
	struct nt_ras_answer answer;

	(void)state;
	assert_int_equal(nt_ras_answer_read(write_comms, &endless, PID, &answer), 0);
	assert_int_equal(answer.comms, NT_RAS_COMMS);
	assert_int_equal(answer.over_cap, 3);
	assert_int_equal(answer.communicators, NT_RAS_COMMS + 3);
}

static void a_status_without_end_is_refused_at_the_cap(void **state)
{
	struct endless endless = {0};
	struct nt_ras_answer answer;

	(void)state;
	assert_int_equal(nt_ras_answer_read(write_comms, &endless, PID, &answer), -EFBIG);
}

static void the_error_of_the_source_is_returned(void **state)
{
	struct piece_source source = {
		.text = "{\"communicators\"", .len = 16, .piece = 5, .failure = -ECONNRESET};
	struct nt_ras_answer answer;

	(void)state;
	assert_int_equal(nt_ras_answer_read(piece_source_read, &source, PID, &answer), -ECONNRESET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_places_of_the_process_are_kept_by_hash),
		cmocka_unit_test(a_place_is_found_by_hash_rank_and_size),
		cmocka_unit_test(impossible_values_are_dropped_and_counted),
		cmocka_unit_test(what_is_no_status_is_refused_and_the_output_stays),
		cmocka_unit_test(places_over_the_cap_are_counted),
		cmocka_unit_test(a_status_without_end_is_refused_at_the_cap),
		cmocka_unit_test(the_error_of_the_source_is_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
