/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/owner.h"

static struct nt_owner owner_of(const char *pod, const char *container, uint32_t uid)
{
	struct nt_cgroup cgroup = {0};
	struct nt_owner owner;

	memcpy(cgroup.pod, pod, strlen(pod) + 1);
	memcpy(cgroup.container, container, strlen(container) + 1);
	nt_owner_of(&cgroup, uid, &owner);
	return owner;
}

static void the_pod_comes_before_the_container_and_that_before_the_user(void **state)
{
	(void)state;
	assert_string_equal(owner_of("p", "c", 7).name, "pod p");
	assert_string_equal(owner_of("", "c", 7).name, "container c");
	assert_string_equal(owner_of("", "", 7).name, "user 7");
}

static void root_in_two_containers_is_two_owners(void **state)
{
	(void)state;
	assert_true(owner_of("", "a", 0).id != owner_of("", "b", 0).id);
	assert_true(owner_of("", "a", 0).id == owner_of("", "a", 1).id);
	assert_true(owner_of("", "", 1).id != owner_of("", "", 2).id);
	assert_true(owner_of("", "", 1).id != 0);
}

static int uid_in(const char *text, uint32_t *ret_uid)
{
	return nt_owner_parse_uid(text, strlen(text), ret_uid);
}

static void the_effective_user_is_the_second_number(void **state)
{
	uint32_t uid = 0;

	(void)state;
	assert_int_equal(uid_in("Name:\tx\nUid:\t1\t65534\t3\t4\nGid:\t5\n", &uid), 0);
	assert_int_equal(uid, 65534);
}

static void the_real_user_is_the_first_number(void **state)
{
	static const char text[] = "Name:\tsu\nUid:\t1000\t0\t0\t0\n";
	uint32_t uid = 9;

	(void)state;
	assert_int_equal(nt_owner_parse_real_uid(text, sizeof(text) - 1, &uid), 0);
	assert_int_equal(uid, 1000);
	assert_int_equal(nt_owner_parse_real_uid(text, 9, &uid), -EBADMSG);
	assert_int_equal(uid, 1000);
}

static void a_status_without_a_user_leaves_the_output_alone(void **state)
{
	uint32_t uid = 9;

	(void)state;
	assert_int_equal(uid_in("", &uid), -EBADMSG);
	assert_int_equal(uid_in("Name:\tUid:\t1\n", &uid), -EBADMSG);
	assert_int_equal(uid_in("Name:\tx\nUid:\t1", &uid), -EBADMSG);
	assert_int_equal(uid_in("Name:\tx\nUid:\t1\tx\n", &uid), -EBADMSG);
	assert_int_equal(uid_in("Name:\tx\nUid:\t1\t99999999999\n", &uid), -EBADMSG);
	assert_int_equal(uid, 9);
}

static void a_living_process_has_an_owner_and_one_that_is_gone_has_none(void **state)
{
	struct nt_owner owner;

	(void)state;
	assert_int_equal(nt_owner_read((uint32_t)getpid(), &owner), 0);
	assert_int_equal(owner.uid, geteuid());
	assert_int_equal(nt_owner_read(0x7ffffff0, &owner), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_pod_comes_before_the_container_and_that_before_the_user),
		cmocka_unit_test(root_in_two_containers_is_two_owners),
		cmocka_unit_test(the_effective_user_is_the_second_number),
		cmocka_unit_test(the_real_user_is_the_first_number),
		cmocka_unit_test(a_status_without_a_user_leaves_the_output_alone),
		cmocka_unit_test(a_living_process_has_an_owner_and_one_that_is_gone_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
