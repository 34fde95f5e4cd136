/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers of workers, which may be anything; and the catalog of what they found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/discover/catalog.h"
#include "agent/discover/inspection.h"
#include "agent/discover/outside_process.h"
#include "agent/probes/probe.h"

static uint8_t bytes[256 << 10];

/* ---- answers ------------------------------------------------------------------------------ */

static void an_answer_has_a_known_kind_and_a_result(void **state)
{
	struct nt_inspection_answer answer = {.kind = NT_ANSWER_FILE, .result = -5, .number = 9};
	struct nt_inspection_answer got;
	const uint8_t *body;
	size_t len;

	(void)state;
	memcpy(bytes, &answer, sizeof(answer));
	assert_int_equal(nt_inspection_parse(bytes, sizeof(answer) + 3, &got, &body, &len), 0);
	assert_int_equal(got.number, 9);
	assert_int_equal(len, 3);
	assert_ptr_equal(body, bytes + sizeof(answer));
	assert_int_equal(nt_inspection_parse(bytes, sizeof(answer) - 1, &got, &body, &len),
			 -EBADMSG);
	answer.kind = NT_ANSWER_END;
	memcpy(bytes, &answer, sizeof(answer));
	assert_int_equal(nt_inspection_parse(bytes, sizeof(answer), &got, &body, &len), -EBADMSG);
	answer = (struct nt_inspection_answer){.result = 1};
	memcpy(bytes, &answer, sizeof(answer));
	assert_int_equal(nt_inspection_parse(bytes, sizeof(answer), &got, &body, &len), -EBADMSG);
}

static int parse_file(const struct nt_inspection_file *file, const void *name, size_t len)
{
	struct nt_inspection_file got;
	char text[NT_PROC_PATH];
	int r;

	memcpy(bytes, file, sizeof(*file));
	memcpy(bytes + sizeof(*file), name, len);
	r = nt_inspection_parse_file(bytes, sizeof(*file) + len, &got, text);
	if (r == 0) {
		assert_int_equal(strlen(text), len);
		assert_memory_equal(&got, file, sizeof(got));
	}
	return r;
}

static void a_file_has_a_name_that_ends_and_a_library_that_exists(void **state)
{
	static char long_name[NT_PROC_PATH];
	struct nt_inspection_file file = {.library = NT_LIBRARY_MPI, .start = 1, .end = 2};

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	assert_int_equal(parse_file(&file, "/lib", 4), 0);
	assert_int_equal(parse_file(&file, long_name, NT_PROC_PATH - 1), 0);
	assert_int_equal(parse_file(&file, long_name, NT_PROC_PATH), -EBADMSG);
	assert_int_equal(parse_file(&file, "", 0), -EBADMSG);
	assert_int_equal(parse_file(&file, "/l\0b", 4), -EBADMSG);
	file.library = NT_LIBRARY_FILE_END;
	assert_int_equal(parse_file(&file, "/lib", 4), -EBADMSG);
	file.library = 0;
	file.is_fuse = 2;
	assert_int_equal(parse_file(&file, "/lib", 4), -EBADMSG);
	file = (struct nt_inspection_file){.start = 3, .end = 2};
	assert_int_equal(parse_file(&file, "/lib", 4), -EBADMSG);
}

static struct nt_symbols_row rows[NT_SYMBOLS_MAX + 1];

static int parse_symbols(uint32_t holds, uint32_t count, size_t given)
{
	static struct nt_symbols got;
	const struct nt_inspection_symbols head = {.holds = holds, .count = count};
	int r;

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), rows, given * sizeof(rows[0]));
	r = nt_inspection_parse_symbols(bytes, sizeof(head) + given * sizeof(rows[0]), &got);
	if (r == 0) {
		assert_int_equal(got.count, count);
		assert_memory_equal(got.row, rows, given * sizeof(rows[0]));
	}
	return r;
}

static void symbols_are_as_many_as_they_say_and_each_is_checked(void **state)
{
	const uint16_t all = nt_probe_rows();

	(void)state;
	for (uint16_t i = 0; i <= NT_SYMBOLS_MAX; i++)
		rows[i] = (struct nt_symbols_row){.row = i, .symbol = {.offset = i}};
	assert_int_equal(parse_symbols(1, 2, 2), 0);
	assert_int_equal(parse_symbols(0, 0, 0), 0);
	assert_int_equal(parse_symbols(1, all, all), 0);
	assert_int_equal(parse_symbols(1, all + 1U, all + 1U), -EBADMSG);
	assert_int_equal(parse_symbols(1, NT_SYMBOLS_MAX + 1, NT_SYMBOLS_MAX + 1), -EBADMSG);
	assert_int_equal(parse_symbols(1, 2, 1), -EBADMSG);
	assert_int_equal(parse_symbols(1, 1, 2), -EBADMSG);
	assert_int_equal(parse_symbols(2, 1, 1), -EBADMSG);
	rows[1].row = 0;
	assert_int_equal(parse_symbols(1, 2, 2), -EBADMSG);
	rows[1].row = 1;
	rows[1].symbol.offset = UINT64_MAX;
	assert_int_equal(parse_symbols(1, 2, 2), -EBADMSG);
	rows[1].symbol.offset = 1;
	rows[1].symbol.insn = (enum nt_insn)17;
	assert_int_equal(parse_symbols(1, 2, 2), -EBADMSG);
}

static void places_are_of_a_timed_row_and_within_their_number(void **state)
{
	struct nt_rank_probe_sites sites = {.begins = 1, .ends = NT_RANK_PROBE_SITES}, got;
	const uint8_t *body = (const uint8_t *)&sites;

	(void)state;
	while (!nt_probe_row((uint16_t)sites.row)->timed)
		sites.row++;
	assert_int_equal(nt_inspection_parse_sites(body, sizeof(sites), &got), 0);
	assert_int_equal(nt_inspection_parse_sites(body, sizeof(sites) - 1, &got), -EBADMSG);
	sites.ends++;
	assert_int_equal(nt_inspection_parse_sites(body, sizeof(sites), &got), -EBADMSG);
	sites.ends = 0;
	assert_int_equal(nt_inspection_parse_sites(body, sizeof(sites), &got), -EBADMSG);
	sites.ends = 1;
	sites.end[0].offset = UINT64_MAX;
	assert_int_equal(nt_inspection_parse_sites(body, sizeof(sites), &got), -EBADMSG);
	sites.end[0].offset = 0;
	sites.row = 0;
	assert_int_equal(nt_inspection_parse_sites(body, sizeof(sites), &got), -EBADMSG);
	sites.row = UINT32_MAX;
	assert_int_equal(nt_inspection_parse_sites(body, sizeof(sites), &got), -EBADMSG);
}

static void ranges_of_code_are_as_many_as_fit_and_each_is_checked(void **state)
{
	struct nt_mpi_code code = {0}, got;
	const uint8_t *body = (const uint8_t *)&code;

	(void)state;
	nt_mpi_code_add(&code, 4096, 8192);
	assert_int_equal(nt_inspection_parse_mpi_code(body, sizeof(code), &got), 0);
	assert_memory_equal(&got, &code, sizeof(got));
	assert_int_equal(nt_inspection_parse_mpi_code(body, sizeof(code) - 1, &got), -EBADMSG);
	code.range[0].end = 0;
	assert_int_equal(nt_inspection_parse_mpi_code(body, sizeof(code), &got), -EBADMSG);
	code = (struct nt_mpi_code){.count = NT_MPI_CODE_RANGES + 1};
	assert_int_equal(nt_inspection_parse_mpi_code(body, sizeof(code), &got), -EBADMSG);
}

static void a_place_of_code_has_a_name_that_can_be_printed(void **state)
{
	struct nt_inspection_code_place place = {.offset = 0x1234, .name = "libtrain\n.so"}, got;
	const uint8_t *body = (const uint8_t *)&place;

	(void)state;
	assert_int_equal(nt_inspection_parse_code_place(body, sizeof(place), &got), 0);
	assert_int_equal(got.offset, 0x1234);
	assert_string_equal(got.name, "libtrain?.so");
	assert_int_equal(nt_inspection_parse_code_place(body, sizeof(place) - 1, &got), -EBADMSG);
	place.name[0] = '\0';
	assert_int_equal(nt_inspection_parse_code_place(body, sizeof(place), &got), -EBADMSG);
	memset(place.name, 'x', sizeof(place.name));
	assert_int_equal(nt_inspection_parse_code_place(body, sizeof(place), &got), -EBADMSG);
}

static int parse_provider(const struct nt_provider_place *place)
{
	struct nt_provider_place got;

	memcpy(bytes, place, sizeof(*place));
	return nt_inspection_parse_provider(bytes, sizeof(*place), &got);
}

static void a_provider_has_both_places_or_none_and_a_flag(void **state)
{
	struct nt_provider_place place = {.holds_device = 1};

	(void)state;
	assert_int_equal(parse_provider(&place), 0);
	place.holds_device = 2;
	assert_int_equal(parse_provider(&place), -EBADMSG);
	place = (struct nt_provider_place){.post_offset = 1, .build_id = "0f"};
	assert_int_equal(parse_provider(&place), -EBADMSG);
	place.poll_offset = 2;
	assert_int_equal(parse_provider(&place), 0);
	place.build_id[1] = 'x';
	assert_int_equal(parse_provider(&place), -EBADMSG);
}

static void an_environment_from_a_worker_is_cleaned(void **state)
{
	static struct nt_environ env, got;

	(void)state;
	memset(&env, 'A', sizeof(env));
	env.rank = -77;
	env.master_port[1] = '\n';
	assert_int_equal(nt_inspection_parse_environ((const uint8_t *)&env, sizeof(env) - 1, &got),
			 -EBADMSG);
	assert_int_equal(nt_inspection_parse_environ((const uint8_t *)&env, sizeof(env), &got), 0);
	assert_int_equal(got.rank, NT_ENVIRON_ABSENT);
	assert_int_equal(strlen(got.job), NT_ENVIRON_TEXT - 1);
	assert_null(strchr(got.master_port, '\n'));
	assert_true(strlen(got.nvidia_devices) < NT_ENVIRON_DEVICES);
}

/* ---- the catalog -------------------------------------------------------------------------- */

static struct nt_catalog catalog;

static const struct nt_owner owner = {.id = 1000, .name = "a test's"};

static int init(void **state)
{
	(void)state;
	nt_catalog_init(&catalog);
	return 0;
}

static int release(void **state)
{
	(void)state;
	nt_catalog_release(&catalog);
	assert_int_equal(catalog.held, 0);
	assert_int_equal(catalog.share.count, 0);
	catalog = (struct nt_catalog){0};
	return 0;
}

static struct nt_catalog_file *add(uint64_t ino)
{
	const struct nt_catalog_key key = {.dev = 1, .ino = ino};

	return nt_catalog_add(&catalog, &key, owner.id);
}

static struct nt_catalog_file *find(uint64_t ino, uint64_t now_ns)
{
	const struct nt_catalog_key key = {.dev = 1, .ino = ino};

	return nt_catalog_find(&catalog, &key, now_ns);
}

static void a_changed_file_is_another_one(void **state)
{
	struct nt_inspection_file file = {.dev = 1, .ino = 2, .bytes = 3, .changed_ns = 4};
	struct nt_catalog_key key;

	(void)state;
	nt_catalog_key(&file, &key);
	assert_non_null(nt_catalog_add(&catalog, &key, owner.id));
	assert_non_null(nt_catalog_find(&catalog, &key, 1));
	file.changed_ns++;
	nt_catalog_key(&file, &key);
	assert_null(nt_catalog_find(&catalog, &key, 1));
}

static void a_refused_file_is_remembered_until_it_may_be_tried_again(void **state)
{
	struct nt_catalog_file *file = add(1), *late = add(2);

	(void)state;
	file->state = late->state = NT_CATALOG_REFUSED;
	late->retry_ns = 100;
	assert_int_equal(find(1, UINT64_MAX)->state, NT_CATALOG_REFUSED);
	assert_int_equal(find(2, 99)->state, NT_CATALOG_REFUSED);
	assert_null(find(2, 100));
}

static void those_that_wait_come_back_in_order_and_are_capped(void **state)
{
	struct nt_catalog_file *file = add(1);
	char name[] = "/lib";
	struct nt_catalog_waiter waiter = {.name = name}, *taken, *next;
	uint32_t n = 0;

	(void)state;
	for (waiter.pid = 0; waiter.pid < NT_CATALOG_WAITERS / 2; waiter.pid++)
		nt_catalog_wait(&catalog, file, &waiter);
	assert_int_equal(catalog.lost, 0);
	nt_catalog_wait(&catalog, file, &waiter);
	assert_int_equal(catalog.lost, 1);
	assert_int_equal(catalog.over_cap, 1);
	for (taken = nt_catalog_take_waiters(&catalog, file); taken; taken = next) {
		next = taken->next;
		assert_int_equal(taken->pid, n++);
		nt_catalog_waiter_free(taken);
	}
	assert_int_equal(n, NT_CATALOG_WAITERS / 2);
	nt_catalog_wait(&catalog, file, &waiter);
	assert_int_equal(catalog.lost, 1);
}

static void at_the_cap_the_oldest_that_is_not_pending_is_forgotten(void **state)
{
	struct nt_catalog_file *file;

	(void)state;
	for (uint64_t ino = 1; ino <= NT_CATALOG_FILES; ino++) {
		file = add(ino);
		assert_non_null(file);
		file->state = ino == 1 ? NT_CATALOG_PENDING : NT_CATALOG_NOTHING;
	}
	assert_non_null(add(NT_CATALOG_FILES + 1));
	assert_int_equal(catalog.over_cap, 1);
	assert_non_null(find(1, 1));
	assert_null(find(2, 1));
	for (uint64_t ino = NT_CATALOG_FILES + 2; add(ino); ino++)
		;
	/* All of them are pending: there is room for no more. */
	assert_int_equal(HASH_COUNT(catalog.file), NT_CATALOG_FILES);
}

static void of_files_that_hold_something_the_one_not_used_longest_goes(void **state)
{
	(void)state;
	for (uint64_t ino = 1; ino <= NT_CATALOG_HELD; ino++)
		nt_catalog_hold(&catalog, add(ino), -1, calloc(1, sizeof(struct nt_symbols)), ino);
	assert_non_null(find(1, 1000));
	nt_catalog_hold(&catalog, add(1000), -1, NULL, 1001);
	assert_int_equal(catalog.over_cap, 1);
	assert_int_equal(catalog.held, NT_CATALOG_HELD);
	assert_non_null(nt_catalog_find_inode(&catalog, 1, 1));
	assert_null(nt_catalog_find_inode(&catalog, 1, 2));
	assert_non_null(nt_catalog_find_inode(&catalog, 1, 1000));
}

static void those_outside_are_capped_and_one_that_is_seen_becomes_the_last(void **state)
{
	struct nt_outside_processes outside = {0};

	(void)state;
	for (uint32_t pid = 1; pid <= NT_OUTSIDE_PROCESSES; pid++)
		assert_true(nt_outside_processes_add(&outside, pid));
	assert_false(nt_outside_processes_add(&outside, NT_OUTSIDE_PROCESSES + 1));
	assert_int_equal(outside.process->pid, 1);
	assert_true(nt_outside_processes_add(&outside, 1));
	assert_int_equal(outside.process->pid, 2);
	nt_outside_processes_remove(&outside, 2);
	assert_false(nt_outside_processes_has(&outside, 2));
	assert_true(nt_outside_processes_has(&outside, 1));
	nt_outside_processes_release(&outside);
	assert_null(outside.process);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, init, release)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_has_a_known_kind_and_a_result),
		cmocka_unit_test(a_file_has_a_name_that_ends_and_a_library_that_exists),
		cmocka_unit_test(symbols_are_as_many_as_they_say_and_each_is_checked),
		cmocka_unit_test(places_are_of_a_timed_row_and_within_their_number),
		cmocka_unit_test(ranges_of_code_are_as_many_as_fit_and_each_is_checked),
		cmocka_unit_test(a_place_of_code_has_a_name_that_can_be_printed),
		cmocka_unit_test(a_provider_has_both_places_or_none_and_a_flag),
		cmocka_unit_test(an_environment_from_a_worker_is_cleaned),
		WITH(a_changed_file_is_another_one),
		WITH(a_refused_file_is_remembered_until_it_may_be_tried_again),
		WITH(those_that_wait_come_back_in_order_and_are_capped),
		WITH(at_the_cap_the_oldest_that_is_not_pending_is_forgotten),
		WITH(of_files_that_hold_something_the_one_not_used_longest_goes),
		cmocka_unit_test(those_outside_are_capped_and_one_that_is_seen_becomes_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
