/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/identity/owner.h"

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

static struct nt_owner owner_at(const char *path, uint32_t uid)
{
	struct nt_cgroup cgroup;
	struct nt_owner owner;
	char line[512];

	(void)snprintf(line, sizeof(line), "0::%s\n", path);
	nt_cgroup_parse(line, strlen(line), &cgroup);
	nt_owner_of(&cgroup, uid, &owner);
	return owner;
}

#define POD  "pod8b1a2f3c_0d5e_4f6a_9b7c_1d2e3f405162"
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void a_user_cannot_name_its_cgroup_after_the_pod_of_another(void **state)
{
	static const char forged[] =
		"/user.slice/user-1000.slice/user@1000.service/kubepods-" POD ".slice";

	(void)state;
	assert_string_equal(owner_at("/kubepods.slice/kubepods-" POD ".slice", 0).name,
			    "pod 8b1a2f3c-0d5e-4f6a-9b7c-1d2e3f405162");
	assert_string_equal(owner_at(forged, 1000).name, "user 1000");
	assert_int_equal(owner_at(forged, 1000).id, owner_of("", "", 1000).id);
	assert_string_equal(
		owner_at("/user.slice/user-1000.slice/x/docker-" HASH ".scope", 1000).name,
		"user 1000");
	/* As a container sees the host's. */
	assert_string_equal(owner_at("/../../user.slice/user-7.slice/" HASH, 0).name, "user 7");
}

static void a_user_is_one_owner_under_all_its_ids(void **state)
{
	static const char session[] = "/user.slice/user-1000.slice/session-3.scope";

	(void)state;
	assert_int_equal(owner_at(session, 100000).id, owner_at(session, 165535).id);
	assert_string_equal(owner_at(session, 100000).name, "user 1000");
	assert_int_equal(owner_at(session, 100000).uid, 1000);
	/* A slice within is the user's own to name. */
	assert_string_equal(owner_at("/user.slice/user-1000.slice/user.slice/user-8.slice", 9).name,
			    "user 1000");
}

static void what_is_no_users_slice_leaves_the_user_id(void **state)
{
	(void)state;
	assert_string_equal(owner_at("/user.slice", 9).name, "user 9");
	assert_string_equal(owner_at("/user.slice/user-.slice/x", 9).name, "user 9");
	assert_string_equal(owner_at("/user.slice/user-8.slicer/x", 9).name, "user 9");
	assert_string_equal(owner_at("/user.slice/user-8x.slice", 9).name, "user 9");
	assert_string_equal(owner_at("/user.slice/user-4294967296.slice", 9).name, "user 9");
	assert_string_equal(owner_at("/user.slice/x/user.slice/user-8.slice", 9).name, "user 9");
	assert_string_equal(owner_at("/system.slice/user.slice/user-8.slice", 9).name, "user 9");
	/* Slurm's, which root has made. */
	assert_string_equal(owner_at("/system.slice/slurmstepd.scope/job_5/step_0/user", 9).name,
			    "user 9");
}

enum {
	MAKER = 70001,
	SUBUID = 80000, /* the maker's by /etc/subuid, as it were */
};

static void map_ids(pid_t pid, const char *what, unsigned int first)
{
	char path[64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fprintf(file, "0 %u 10\n", first);
	assert_int_equal(fclose(file), 0);
}

/* Ends 1 where the host allows no user namespaces. */
static void live_in_namespaces(int ready, int go)
{
	char byte = 0;

	if (setresuid(MAKER, MAKER, MAKER) < 0 || unshare(CLONE_NEWUSER) < 0)
		_exit(1);
	(void)!write(ready, &byte, 1);
	if (read(go, &byte, 1) != 1 || setresuid(3, 3, 3) < 0 || unshare(CLONE_NEWUSER) < 0)
		_exit(2);
	(void)!write(ready, &byte, 1);
	(void)!read(go, &byte, 1);
	_exit(0);
}

static void a_user_is_the_owner_of_what_it_runs_in_namespaces(void **state)
{
	int ready[2], go[2], status;
	struct nt_owner owner;
	char byte = 0;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip(); /* ids are mapped by root */
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(go[1]);
		live_in_namespaces(ready[1], go[0]);
	}
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) == 1) {
		map_ids(pid, "uid_map", SUBUID);
		map_ids(pid, "gid_map", getgid()); /* a namespace is made by a known group */
		assert_int_equal(write(go[1], &byte, 1), 1);
		assert_int_equal(read(ready[0], &byte, 1), 1);
		assert_int_equal(nt_owner_read((uint32_t)pid, &owner), 0);
	} else {
		owner.uid = UINT32_MAX;
	}
	(void)close(go[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(go[0]);
	(void)close(ready[0]);
	if (WEXITSTATUS(status) == 1)
		skip();
	assert_int_equal(owner.uid, MAKER);
	assert_string_equal(owner.name, "user 70001");
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
		cmocka_unit_test(a_user_cannot_name_its_cgroup_after_the_pod_of_another),
		cmocka_unit_test(a_user_is_one_owner_under_all_its_ids),
		cmocka_unit_test(what_is_no_users_slice_leaves_the_user_id),
		cmocka_unit_test(a_user_is_the_owner_of_what_it_runs_in_namespaces),
		cmocka_unit_test(the_effective_user_is_the_second_number),
		cmocka_unit_test(the_real_user_is_the_first_number),
		cmocka_unit_test(a_status_without_a_user_leaves_the_output_alone),
		cmocka_unit_test(a_living_process_has_an_owner_and_one_that_is_gone_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
