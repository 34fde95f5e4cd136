/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/identity/pods.h"
#include "proto/json.h"
#include "tests/unit/agent/kube_pod.h"

static struct nt_placement find(const struct nt_pods *pods, unsigned int pod,
				unsigned int container)
{
	struct nt_placement placement = {.pod = "as before", .workload.kind = ""};
	struct nt_cgroup cgroup;
	bool found;

	pod_cgroup(pod, container, &cgroup);
	found = nt_pods_find(pods, &cgroup, &placement);
	assert_int_equal(found, strcmp(placement.pod, "as before") != 0);
	return placement;
}

static bool is_known(const struct nt_pods *pods, unsigned int pod)
{
	return strcmp(find(pods, pod, 0).pod, "as before") != 0;
}

static void put(struct nt_pods *pods, unsigned int pod, unsigned int container)
{
	nt_autojson json_t *json = pod_json(pod, container, "Running");

	nt_pods_put(pods, json);
}

static void remove_pod(struct nt_pods *pods, unsigned int pod, uint64_t now_ns)
{
	nt_autojson json_t *json = pod_json(pod, 0, "Running");

	nt_pods_remove(pods, json, now_ns);
}

static struct nt_pods_stats stats_of(const struct nt_pods *pods)
{
	struct nt_pods_stats stats;

	nt_pods_stats(pods, &stats);
	return stats;
}

static void a_pod_is_found_by_the_uid_and_the_container_of_a_cgroup(void **state)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;
	struct nt_placement placement;

	(void)state;
	assert_int_equal(nt_pods_new(&pods), 0);
	put(pods, 7, 1);
	placement = find(pods, 7, 1);
	assert_string_equal(placement.pod, "train-7");
	assert_string_equal(placement.namespace, "ml");
	assert_string_equal(placement.container, "main");
	assert_string_equal(placement.workload.job, "train");
	assert_string_equal(placement.workload.replica, "7");
	assert_int_equal(strlen(placement.pod_uid), 36);
	/* Of a container that is not told yet, what is known stays. */
	placement = find(pods, 7, 2);
	assert_string_equal(placement.pod, "train-7");
	assert_string_equal(placement.container, "");
	assert_false(is_known(pods, 8));
	assert_int_equal(stats_of(pods).pods, 1);
}

static void a_cgroup_that_names_no_pod_is_found_by_its_container(void **state)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;
	struct nt_cgroup cgroup;
	struct nt_placement placement = {0};

	(void)state;
	assert_int_equal(nt_pods_new(&pods), 0);
	put(pods, 6, 1);
	put(pods, 7, 1);
	pod_cgroup(7, 1, &cgroup);
	cgroup.pod[0] = '\0';
	assert_true(nt_pods_find(pods, &cgroup, &placement));
	assert_string_equal(placement.pod, "train-7");
	cgroup.container[0] = '\0';
	assert_false(nt_pods_find(pods, &cgroup, &placement));
}

static void a_container_that_started_again_has_its_name_under_both_ids(void **state)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;

	(void)state;
	assert_int_equal(nt_pods_new(&pods), 0);
	put(pods, 7, 1);
	put(pods, 7, 2);
	assert_string_equal(find(pods, 7, 1).container, "main");
	assert_string_equal(find(pods, 7, 2).container, "main");
}

static void the_oldest_of_too_many_containers_makes_room(void **state)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;

	(void)state;
	assert_int_equal(nt_pods_new(&pods), 0);
	for (unsigned int i = 1; i <= NT_PODS_CONTAINERS; i++)
		put(pods, 7, i);
	assert_int_equal(stats_of(pods).containers_over_cap, 0);
	assert_string_equal(find(pods, 7, 1).container, "main");
	put(pods, 7, NT_PODS_CONTAINERS + 1);
	assert_int_equal(stats_of(pods).containers_over_cap, 1);
	assert_string_equal(find(pods, 7, 1).container, "");
	assert_string_equal(find(pods, 7, 2).container, "main");
	assert_string_equal(find(pods, 7, NT_PODS_CONTAINERS + 1).container, "main");
}

static void a_pod_that_is_gone_is_remembered_for_five_minutes(void **state)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;

	(void)state;
	assert_int_equal(nt_pods_new(&pods), 0);
	put(pods, 7, 1);
	put(pods, 8, 1);
	remove_pod(pods, 7, NT_SECOND);
	remove_pod(pods, 7, NT_MINUTE); /* a second word does not make it younger */
	remove_pod(pods, 9, NT_SECOND);
	assert_int_equal(stats_of(pods).pods, 1);
	assert_int_equal(stats_of(pods).gone, 1);
	nt_pods_tick(pods, NT_SECOND + NT_PODS_KEEP_NS - 1);
	assert_true(is_known(pods, 7));
	nt_pods_tick(pods, NT_SECOND + NT_PODS_KEEP_NS);
	assert_false(is_known(pods, 7));
	assert_true(is_known(pods, 8));
	assert_int_equal(stats_of(pods).gone, 0);
}

static void a_container_that_is_first_told_with_the_end_of_its_pod_has_its_name(void **state)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;
	nt_autojson json_t *last = pod_json(7, 3, "Succeeded");

	(void)state;
	assert_int_equal(nt_pods_new(&pods), 0);
	put(pods, 7, 0);
	assert_string_equal(find(pods, 7, 3).container, "");
	nt_pods_remove(pods, last, NT_SECOND);
	assert_string_equal(find(pods, 7, 3).container, "main");
}

static void what_a_new_list_lacks_is_gone_and_what_it_has_is_back(void **state)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;

	(void)state;
	assert_int_equal(nt_pods_new(&pods), 0);
	nt_pods_list_begin(pods);
	put(pods, 1, 1);
	put(pods, 2, 1);
	nt_pods_list_end(pods, NT_SECOND);
	remove_pod(pods, 2, NT_SECOND);
	nt_pods_list_begin(pods);
	put(pods, 2, 1);
	put(pods, 3, 1);
	nt_pods_list_end(pods, 2 * NT_SECOND);
	assert_int_equal(stats_of(pods).pods, 2);
	assert_int_equal(stats_of(pods).gone, 1);
	nt_pods_tick(pods, 2 * NT_SECOND + NT_PODS_KEEP_NS);
	assert_false(is_known(pods, 1));
	assert_true(is_known(pods, 2));
	assert_true(is_known(pods, 3));
}

static void at_the_cap_the_gone_make_room_then_the_ended_then_nobody(void **state)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;
	nt_autojson json_t *ended = pod_json(1, 1, "Succeeded");

	(void)state;
	assert_int_equal(nt_pods_new(&pods), 0);
	for (unsigned int i = 0; i < NT_PODS_MAX; i++)
		put(pods, i, 1);
	assert_int_equal(stats_of(pods).pods, NT_PODS_MAX);
	put(pods, NT_PODS_MAX, 1);
	assert_false(is_known(pods, NT_PODS_MAX));
	assert_int_equal(stats_of(pods).over_cap, 1);

	nt_pods_put(pods, ended);
	remove_pod(pods, 2, 20);
	remove_pod(pods, 3, 10);
	for (unsigned int i = 0; i < 4; i++)
		put(pods, NT_PODS_MAX + i, 1);
	assert_false(is_known(pods, 3) || is_known(pods, 2) || is_known(pods, 1));
	assert_true(is_known(pods, NT_PODS_MAX + 2));
	assert_false(is_known(pods, NT_PODS_MAX + 3));
	assert_int_equal(stats_of(pods).forgotten, 3);
	assert_int_equal(stats_of(pods).over_cap, 2);
	assert_int_equal(stats_of(pods).pods, NT_PODS_MAX);
	assert_int_equal(stats_of(pods).gone, 0);
}

static void a_static_pod_is_found_by_its_hash_and_keeps_its_uid(void **state)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;
	nt_autojson json_t *json = pod_json(7, 1, "Running");
	struct nt_cgroup cgroup = {.pod = "a4e5c7aabbccddeeff00112233445566"};
	struct nt_placement placement = {0};

	(void)state;
	json_object_set_new(json_object_get(json, "metadata"), "annotations",
			    json_pack("{s:s}", "kubernetes.io/config.hash", cgroup.pod));
	assert_int_equal(nt_pods_new(&pods), 0);
	nt_pods_put(pods, json);
	assert_true(nt_pods_find(pods, &cgroup, &placement));
	assert_string_equal(placement.pod, "train-7");
	assert_int_equal(strlen(placement.pod_uid), 36);
}

static void a_pod_that_calls_itself_by_anothers_uid_does_not_take_its_place(void **state)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;
	nt_autojson json_t *json = pod_json(8, 2, "Running");
	struct nt_placement placement;
	char uid[40];

	(void)state;
	pod_uid(7, uid);
	json_object_set_new(json_object_get(json, "metadata"), "annotations",
			    json_pack("{s:s}", "kubernetes.io/config.hash", uid));
	assert_int_equal(nt_pods_new(&pods), 0);
	put(pods, 7, 1);
	nt_pods_put(pods, json);
	placement = find(pods, 7, 1);
	assert_string_equal(placement.pod, "train-7");
	assert_string_equal(placement.pod_uid, uid);
	placement = find(pods, 8, 2);
	assert_string_equal(placement.pod, "train-8");
	nt_pods_remove(pods, json, 1);
	assert_int_equal(stats_of(pods).gone, 1);
	assert_int_equal(stats_of(pods).pods, 1);
}

static void what_is_no_pod_is_counted(void **state)
{
	static const char *const texts[] = {"{}", "[]", "{\"metadata\":{\"name\":\"x\"}}",
					    "{\"metadata\":{\"uid\":\"x\"}}",
					    "{\"metadata\":{\"uid\":7,\"name\":\"x\"}}"};
	nt_auto(nt_pods) struct nt_pods *pods = NULL;

	(void)state;
	assert_int_equal(nt_pods_new(&pods), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		nt_autojson json_t *json = json_loads(texts[i], 0, NULL);

		nt_pods_put(pods, json);
		assert_int_equal(stats_of(pods).malformed, i + 1);
	}
	assert_int_equal(stats_of(pods).pods, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_found_by_the_uid_and_the_container_of_a_cgroup),
		cmocka_unit_test(a_cgroup_that_names_no_pod_is_found_by_its_container),
		cmocka_unit_test(a_container_that_started_again_has_its_name_under_both_ids),
		cmocka_unit_test(the_oldest_of_too_many_containers_makes_room),
		cmocka_unit_test(a_pod_that_is_gone_is_remembered_for_five_minutes),
		cmocka_unit_test(
			a_container_that_is_first_told_with_the_end_of_its_pod_has_its_name),
		cmocka_unit_test(what_a_new_list_lacks_is_gone_and_what_it_has_is_back),
		cmocka_unit_test(at_the_cap_the_gone_make_room_then_the_ended_then_nobody),
		cmocka_unit_test(a_static_pod_is_found_by_its_hash_and_keeps_its_uid),
		cmocka_unit_test(a_pod_that_calls_itself_by_anothers_uid_does_not_take_its_place),
		cmocka_unit_test(what_is_no_pod_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
