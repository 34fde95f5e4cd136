/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/discover/catalog.h"
#include "common/base/cleanup.h"
#include "common/system/clock.h"

enum {
	OWNER = 1000,
	OTHER = 1001,
	THIRD = 1002,
	NOW = 7,
};

static struct nt_catalog catalog;

static int begin(void **state)
{
	(void)state;
	catalog = (struct nt_catalog){0};
	nt_catalog_init(&catalog);
	return 0;
}

static int end(void **state)
{
	(void)state;
	nt_catalog_release(&catalog);
	return 0;
}

static struct nt_catalog_key key_of(uint64_t ino)
{
	return (struct nt_catalog_key){.dev = 9, .ino = ino};
}

static bool knows(uint64_t ino)
{
	const struct nt_catalog_key key = key_of(ino);

	return nt_catalog_find(&catalog, &key, NOW) != NULL;
}

static struct nt_catalog_file *add(uint64_t owner, uint64_t ino, enum nt_catalog_state state)
{
	const struct nt_catalog_key key = key_of(ino);
	struct nt_catalog_file *file = nt_catalog_add(&catalog, &key, owner);

	if (file)
		file->state = state;
	return file;
}

static void hold(uint64_t owner, uint64_t ino, uint64_t now_ns)
{
	struct nt_catalog_file *file = add(owner, ino, NT_CATALOG_PENDING);

	assert_non_null(file);
	nt_catalog_hold(&catalog, file, -1, NULL, now_ns);
}

static void wait_for(struct nt_catalog_file *file, uint32_t pid, uint64_t owner)
{
	char name[] = "/lib/libnccl.so.2";
	const struct nt_catalog_waiter waiter = {
		.pid = pid, .name = name, .owner = {.id = owner, .name = "a test's"}};

	nt_catalog_wait(&catalog, file, &waiter);
}

static void one_owners_files_do_not_make_those_of_others_forgotten(void **state)
{
	(void)state;
	assert_non_null(add(OTHER, 1, NT_CATALOG_NOTHING));
	for (uint64_t i = 0; i < 3 * NT_CATALOG_FILES; i++)
		assert_non_null(add(OWNER, 100 + i, NT_CATALOG_NOTHING));
	assert_int_equal(HASH_COUNT(catalog.file), NT_CATALOG_FILES);
	assert_int_equal(catalog.over_cap, 2 * NT_CATALOG_FILES + 1);
	assert_true(knows(1));
	assert_false(knows(100)); /* the oldest of the owner with the most */
	assert_non_null(add(THIRD, 2, NT_CATALOG_REFUSED));
	assert_true(knows(1));
}

static void one_owners_pending_files_leave_room_for_those_of_others(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < NT_CATALOG_FILES; i++)
		assert_non_null(add(OWNER, 100 + i, NT_CATALOG_PENDING));
	wait_for(catalog.file, 5, OWNER);
	assert_null(add(OWNER, 1, NT_CATALOG_PENDING));
	assert_true(knows(100));
	assert_non_null(add(OTHER, 2, NT_CATALOG_PENDING));
	assert_false(knows(100));
	assert_int_equal(catalog.lost, 1);
	assert_false(nt_catalog_is_awaited(&catalog, 5));
	assert_int_equal(HASH_COUNT(catalog.file), NT_CATALOG_FILES);
}

static void one_owners_open_files_do_not_close_those_of_others(void **state)
{
	(void)state;
	hold(OTHER, 1, 1); /* not used for longest */
	for (uint64_t i = 0; i < 2 * NT_CATALOG_HELD; i++)
		hold(OWNER, 100 + i, 2 + i);
	assert_int_equal(catalog.held, NT_CATALOG_HELD);
	assert_true(knows(1));
	assert_false(knows(100));
	assert_true(knows(100 + 2 * NT_CATALOG_HELD - 1));
}

static void one_owners_waiting_processes_leave_room_for_those_of_others(void **state)
{
	struct nt_catalog_file *file = add(OWNER, 1, NT_CATALOG_PENDING);
	uint32_t waiters = 0;

	(void)state;
	for (uint32_t i = 0; i < 2 * NT_CATALOG_WAITERS; i++)
		wait_for(file, 10 + i, OWNER);
	assert_int_equal(catalog.lost, 3 * NT_CATALOG_WAITERS / 2);
	assert_int_equal(catalog.over_cap, catalog.lost);
	wait_for(file, 5, OTHER);
	assert_true(nt_catalog_is_awaited(&catalog, 5));
	assert_int_equal(catalog.lost, 3 * NT_CATALOG_WAITERS / 2);
	for (struct nt_catalog_waiter *waiter = nt_catalog_take_waiters(&catalog, file), *next;
	     waiter; waiter = next) {
		next = waiter->next;
		nt_catalog_waiter_free(waiter);
		waiters++;
	}
	assert_int_equal(waiters, NT_CATALOG_WAITERS / 2 + 1);
	assert_false(nt_catalog_is_awaited(&catalog, 5));
}

static bool may_inspect(uint64_t owner, uint64_t ino, uint64_t now_ns, bool *ret_is_news)
{
	const struct nt_catalog_key key = {.dev = 9, .ino = ino, .changed_ns = now_ns};

	return nt_catalog_may_inspect(&catalog, &key, owner, now_ns, ret_is_news);
}

static void a_file_that_changes_all_the_time_is_refused_for_a_minute(void **state)
{
	uint64_t now_ns = NT_SECOND;
	bool is_news = true;

	(void)state;
	for (int i = 0; i < NT_CATALOG_CHANGES; i++) {
		assert_true(may_inspect(OWNER, 1, now_ns += NT_SECOND, &is_news));
		assert_false(is_news);
	}
	assert_false(may_inspect(OWNER, 1, now_ns += NT_SECOND, &is_news));
	assert_true(is_news);
	for (int i = 0; i < 59; i++) {
		assert_false(may_inspect(OWNER, 1, now_ns += NT_SECOND, &is_news));
		assert_false(is_news);
	}
	/* Another file, and the same for another owner. */
	assert_true(may_inspect(OWNER, 2, now_ns, &is_news));
	assert_true(may_inspect(OTHER, 1, now_ns, &is_news));
	for (int i = 0; i < NT_CATALOG_CHANGES; i++)
		assert_true(may_inspect(OWNER, 1, now_ns += NT_SECOND, &is_news));
	assert_false(may_inspect(OWNER, 1, now_ns += NT_SECOND, &is_news));
	assert_true(is_news);
}

static void a_file_that_changes_seldom_is_never_refused(void **state)
{
	bool is_news;

	(void)state;
	for (uint64_t i = 1; i < 100; i++)
		assert_true(may_inspect(OWNER, 1, i * 16 * NT_SECOND, &is_news));
}

static void changing_files_have_a_cap(void **state)
{
	bool is_news;

	(void)state;
	for (int i = 0; i <= NT_CATALOG_CHANGES; i++)
		(void)may_inspect(OWNER, 1, NT_SECOND, &is_news);
	assert_false(may_inspect(OWNER, 1, NT_SECOND, &is_news));
	for (uint64_t ino = 2; ino < NT_CATALOG_CHANGING + 2; ino++)
		assert_true(may_inspect(OWNER, ino, NT_SECOND, &is_news));
	assert_int_equal(HASH_COUNT(catalog.changing), NT_CATALOG_CHANGING);
	assert_int_equal(catalog.over_cap, 1); /* a refusal that was forgotten before its time */
	assert_true(may_inspect(OWNER, 1, NT_SECOND, &is_news));
}

static void an_inode_is_known_as_long_as_a_file_has_it(void **state)
{
	struct nt_catalog_file *file;

	(void)state;
	assert_false(nt_catalog_has_inode(&catalog, 5));
	file = add(OWNER, 5, NT_CATALOG_NOTHING);
	assert_true(nt_catalog_has_inode(&catalog, 5));
	nt_catalog_remove(&catalog, file);
	assert_false(nt_catalog_has_inode(&catalog, 5));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(one_owners_files_do_not_make_those_of_others_forgotten),
		WITH(one_owners_pending_files_leave_room_for_those_of_others),
		WITH(one_owners_open_files_do_not_close_those_of_others),
		WITH(one_owners_waiting_processes_leave_room_for_those_of_others),
		WITH(a_file_that_changes_all_the_time_is_refused_for_a_minute),
		WITH(a_file_that_changes_seldom_is_never_refused),
		WITH(changing_files_have_a_cap),
		WITH(an_inode_is_known_as_long_as_a_file_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
