/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whose job a process is of: keys that no other tenant can make, and windows that wait for theirs. */
#include <stdio.h>

#include "agent/identity/tenant.h"
#include "common/base/hash.h"
#include "tests/unit/agent/agent_job.h"

#define POD_A "11111111-90ab-cdef-1234-567890abcdef"
#define POD_B "22222222-90ab-cdef-1234-567890abcdef"

/* ---- keys ----------------------------------------------------------------------------------- */

static void key_of(const char *scope, const struct nt_environ *env, char ret_key[NT_IDENTITY_KEY])
{
	const struct nt_identity_facts facts = {.scope = scope, .boot = 1, .parent = 2};

	(void)nt_identity_key(env, &facts, ret_key);
}

static void scopes_are_of_namespace_user_pod_container_and_process(void **state)
{
	const struct nt_cgroup pod = {.pod = POD_A, .container = "c"},
			       container = {.container = "c"};
	struct nt_tenant tenant;

	(void)state;
	nt_tenant_of_namespace("team-a", &tenant);
	assert_string_equal(tenant.scope, "ns/team-a/");
	assert_false(tenant.is_private);
	nt_tenant_of_user(4294967294U, &tenant);
	assert_string_equal(tenant.scope, "user/4294967294/");
	assert_false(tenant.is_private);
	nt_tenant_of_cgroup(&pod, &tenant);
	assert_string_equal(tenant.scope, "pod/" POD_A "/");
	assert_true(tenant.is_private);
	nt_tenant_of_cgroup(&container, &tenant);
	assert_string_equal(tenant.scope, "container/c/");
	nt_tenant_of_process(0xabc, 7, 9, &tenant);
	assert_string_equal(tenant.scope, "process/0000000000000abc.7.9/");
	assert_true(tenant.is_private);
}

static void a_namespace_that_is_no_label_cannot_pass_for_another(void **state)
{
	static const char *const odd[] = {"a/b", "a/", "/", "a b", "ns/a", "a\n"};
	char longest[64], too_long[NT_PLACEMENT_NAMESPACE + 1];
	struct nt_tenant tenant;

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		nt_tenant_of_namespace(odd[i], &tenant);
		assert_memory_equal(tenant.scope, "ns/:", 4);
		assert_int_equal(strlen(tenant.scope), 21);
	}
	memset(longest, 'n', 63);
	longest[63] = '\0';
	nt_tenant_of_namespace(longest, &tenant);
	assert_int_equal(strlen(tenant.scope), 67);
	memset(too_long, 'n', 64);
	too_long[64] = '\0';
	nt_tenant_of_namespace(too_long, &tenant);
	assert_memory_equal(tenant.scope, "ns/:", 4);
}

/* Up to its second slash a key is its scope, whatever the environment holds. */
static void no_environment_makes_the_key_of_another_tenant(void **state)
{
	static const char letters[] = "/../ns:user0-a1\xff ";
	static const char *const scopes[] = {"ns/a/", "ns/b/", "user/0/", "user/1000/"};
	uint64_t random = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char text[3][100], key[NT_IDENTITY_KEY], other[NT_IDENTITY_KEY];
		struct nt_environ env;

		nt_environ_parse("", 0, &env);
		for (int i = 0; i < 3; i++) {
			size_t len;

			random = nt_hash_mix(random + 0x9e3779b97f4a7c15ULL);
			len = random % sizeof(text[i]);
			for (size_t n = 0; n < len; n++) {
				random = nt_hash_mix(random + 0x9e3779b97f4a7c15ULL);
				text[i][n] = letters[random % (sizeof(letters) - 1)];
			}
			text[i][len] = '\0';
		}
		(void)snprintf(env.master_addr, sizeof(env.master_addr), "%s%s",
			       round % 2 ? "/../ns/b/torch:" : "", text[0]);
		(void)snprintf(env.master_port, sizeof(env.master_port), "%.15s", text[1]);
		(void)snprintf(env.pmix_namespace, sizeof(env.pmix_namespace), "%s", text[2]);
		for (size_t i = 0; i < 4; i++) {
			key_of(scopes[i], &env, key);
			assert_true(strlen(key) < NT_IDENTITY_KEY);
			assert_memory_equal(key, scopes[i], strlen(scopes[i]));
			for (size_t j = 0; j < i; j++) {
				key_of(scopes[j], &env, other);
				assert_string_not_equal(key, other);
			}
		}
	}
}

static void the_longest_scope_leaves_long_keys_apart(void **state)
{
	char scope[NT_TENANT_SCOPE], a[NT_IDENTITY_KEY], b[NT_IDENTITY_KEY];
	struct nt_tenant tenant;
	struct nt_environ env;

	(void)state;
	memset(scope, 'n', 63);
	scope[63] = '\0';
	nt_tenant_of_namespace(scope, &tenant);
	nt_environ_parse("", 0, &env);
	memset(env.pmix_namespace, 'x', sizeof(env.pmix_namespace) - 1);
	key_of(tenant.scope, &env, a);
	env.pmix_namespace[sizeof(env.pmix_namespace) - 2] = 'y';
	key_of(tenant.scope, &env, b);
	assert_int_equal(strlen(a), NT_IDENTITY_KEY - 1);
	assert_memory_equal(a, tenant.scope, strlen(tenant.scope));
	assert_string_not_equal(a, b);
}

static void what_a_user_makes_below_user_slice_is_delegated(void **state)
{
	struct nt_cgroup cgroup = {.path = "/user.slice/user-7.slice/kubepods/pod" POD_A};

	(void)state;
	assert_true(nt_tenant_is_delegated(&cgroup));
	(void)snprintf(cgroup.path, sizeof(cgroup.path), "/../../user.slice/x");
	assert_true(nt_tenant_is_delegated(&cgroup));
	(void)snprintf(cgroup.path, sizeof(cgroup.path), "/kubepods.slice/user.slice/x");
	assert_false(nt_tenant_is_delegated(&cgroup));
}

/* ---- the tracker ---------------------------------------------------------------------------- */

static void in_pod(struct node *node, size_t process, const char *pod)
{
	struct nt_cgroup *cgroup = &node->process[process].cgroup;

	(void)snprintf(cgroup->pod, sizeof(cgroup->pod), "%s", pod);
	(void)snprintf(cgroup->path, sizeof(cgroup->path), "/kubepods/pod%s", pod);
}

static struct nt_tracker_stats stats_of(const struct node *node)
{
	struct nt_tracker_stats stats;

	nt_tracker_stats(node->tracker, &stats);
	return stats;
}

static void two_users_with_one_address_are_two_jobs(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	ENVIRON(&node, PID + 1, MPI_ENVIRON("0"));
	node.process[0].uid = 1000;
	node.process[1].uid = 1001;
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 60);
	assert_string_equal(node_last(&node)->key, "user/1000/mpi:77");
	mpi_process(&node, PID + 1, 0, false);
	mpi_steps(&node, PID + 1, 60);
	assert_string_equal(node_last(&node)->key, "user/1001/mpi:77");
	node_stop(&node);
}

static void without_an_api_server_a_pod_is_its_users(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, "POD_NAMESPACE=team-a\0" MPI_ENVIRON("0"));
	in_pod(&node, 0, POD_A);
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 60);
	assert_string_equal(node_last(&node)->key, "user/7/mpi:77");
	node_stop(&node);
}

static void a_process_without_a_user_is_alone(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	node.process[0].has_no_uid = true;
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 60);
	assert_string_equal(node_last(&node)->key, "process/000000000000b007.100.100/mpi:77");
	assert_int_equal(stats_of(&node).tenants_unknown, 1);
	node_stop(&node);
}

static void a_pod_that_a_user_has_made_up_is_the_users(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	node.has_api = true;
	node.namespace = "victim";
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	in_pod(&node, 0, POD_A);
	(void)snprintf(node.process[0].cgroup.path, sizeof(node.process[0].cgroup.path),
		       "/user.slice/user-7.slice/pod" POD_A);
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 60);
	assert_string_equal(node_last(&node)->key, "user/7/mpi:77");
	node_stop(&node);
}

/* What came of the key: windows in order, none before a watermark that was given, and all calls. */
static uint64_t check_key(const struct node *node, const char *key)
{
	uint64_t calls = 0, watermark = 0;

	for (size_t i = 0; i < node->windows; i++) {
		const struct node_window *w = &node->window[i];

		if (strcmp(w->key, key) != 0)
			continue;
		assert_true(w->window.start_boot_ns >= watermark);
		watermark = w->watermark_ns;
		for (size_t c = 0; c < w->window.comms; c++)
			calls += w->comm[c].ops ? w->op[c][0].calls : 0;
	}
	return calls;
}

static void a_pod_whose_namespace_comes_late_has_all_its_windows_under_it(void **state)
{
	struct node node;
	size_t ranks = 2;

	(void)state;
	node_start(&node);
	node.has_api = true;
	ENVIRON(&node, PID, "POD_NAMESPACE=victim\0" MPI_ENVIRON("0"));
	ENVIRON(&node, PID + 1, "POD_NAMESPACE=victim\0" MPI_ENVIRON("1"));
	in_pod(&node, 0, POD_A);
	in_pod(&node, 1, POD_B);
	mpi_process(&node, PID, 0, false);
	mpi_process(&node, PID + 1, 1, false);
	for (int i = 0; i < 200; i++) {
		mpi_steps(&node, PID, 1);
		mpi_steps(&node, PID + 1, 1);
		nt_tracker_tick(node.tracker, node.now_ns);
	}
	assert_int_equal(node.windows, 0);
	assert_int_equal(node.heartbeats, 0);
	assert_true(stats_of(&node).held >= 2 * ranks);
	node.namespace = "team-a";
	nt_tracker_tick(node.tracker, node.now_ns);
	assert_int_equal(stats_of(&node).held, 0);
	assert_int_equal(stats_of(&node).held_bytes, 0);
	assert_int_equal(stats_of(&node).held_so_far, node.windows);
	for (size_t i = 0; i < ranks; i++)
		nt_tracker_exited(node.tracker, PID + (uint32_t)i, PID + i, node.now_ns);
	assert_int_equal(check_key(&node, "ns/team-a/mpi:77"), 400);
	for (size_t i = 0; i < node.windows; i++) {
		assert_string_equal(node.window[i].key, "ns/team-a/mpi:77");
		assert_string_equal(node.window[i].job, node_last(&node)->job);
	}
	assert_int_equal(stats_of(&node).tenants_unknown, 0);
	node_stop(&node);
}

static void a_pod_whose_namespace_never_comes_joins_no_other(void **state)
{
	uint64_t begin_ns;
	struct node node;

	(void)state;
	node_start(&node);
	node.has_api = true;
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	ENVIRON(&node, PID + 1, MPI_ENVIRON("1"));
	in_pod(&node, 0, POD_A);
	in_pod(&node, 1, POD_B);
	mpi_process(&node, PID, 0, false);
	mpi_process(&node, PID + 1, 1, false);
	mpi_steps(&node, PID, 40);
	mpi_steps(&node, PID + 1, 40);
	assert_int_equal(node.windows, 0);
	begin_ns = node.now_ns;
	nt_tracker_tick(node.tracker, begin_ns + NT_TRACKER_HELD_NS - 2 * SECOND);
	assert_int_equal(node.windows, 0);
	nt_tracker_tick(node.tracker, begin_ns + NT_TRACKER_HELD_NS);
	assert_true(node.windows >= 2);
	assert_int_equal(stats_of(&node).tenants_unknown, 2);
	assert_int_equal(stats_of(&node).held, 0);
	node.now_ns = begin_ns + NT_TRACKER_HELD_NS;
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	nt_tracker_exited(node.tracker, PID + 1, PID + 1, node.now_ns);
	assert_int_equal(check_key(&node, "pod/" POD_A "/mpi:77"), 40);
	assert_int_equal(check_key(&node, "pod/" POD_B "/mpi:77"), 40);
	node_stop(&node);
}

static void a_namespace_that_comes_after_all_ends_the_private_job(void **state)
{
	const struct node_window *last = NULL;
	struct node node;

	(void)state;
	node_start(&node);
	node.has_api = true;
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	in_pod(&node, 0, POD_A);
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 40);
	nt_tracker_tick(node.tracker, node.now_ns += NT_TRACKER_HELD_NS + SECOND);
	mpi_steps(&node, PID, 60);
	assert_string_equal(node_last(&node)->key, "pod/" POD_A "/mpi:77");
	assert_false(node_last(&node)->window.ended);
	node.namespace = "team-a";
	mpi_steps(&node, PID, 100);
	assert_string_equal(node_last(&node)->key, "ns/team-a/mpi:77");
	assert_false(node_last(&node)->window.ended);
	for (size_t i = 0; i < node.windows; i++) {
		if (strncmp(node.window[i].key, "pod/", 4) == 0)
			last = &node.window[i];
	}
	assert_non_null(last);
	assert_true(last->window.ended);
	assert_int_equal(stats_of(&node).tenants_late, 1);
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	assert_int_equal(check_key(&node, "pod/" POD_A "/mpi:77") +
				 check_key(&node, "ns/team-a/mpi:77"),
			 200);
	node_stop(&node);
}

static void a_process_that_ends_unnamed_loses_nothing(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	node.has_api = true;
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	in_pod(&node, 0, POD_A);
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 60);
	assert_int_equal(node.windows, 0);
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	assert_int_equal(check_key(&node, "pod/" POD_A "/mpi:77"), 60);
	assert_true(node_last(&node)->window.ended);
	assert_int_equal(stats_of(&node).held_bytes, 0);
	node_stop(&node);
}

/* Discovery may give it up while its windows wait; it has not ended. */
static void a_process_that_is_given_up_unnamed_loses_nothing(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	node.has_api = true;
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	in_pod(&node, 0, POD_A);
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 60);
	assert_int_equal(node.windows, 0);
	nt_tracker_tick(node.tracker, node.now_ns);
	nt_tracker_evicted(node.tracker, PID, PID);
	assert_int_equal(check_key(&node, "pod/" POD_A "/mpi:77"), 60);
	assert_false(node_last(&node)->window.ended);
	assert_int_equal(stats_of(&node).held, 0);
	assert_int_equal(stats_of(&node).held_bytes, 0);
	node_stop(&node);
}

/* What the governor did not observe is stated, and of the windows that wait as of all others. */
static void pauses_in_windows_that_wait_are_stated(void **state)
{
	uint64_t unobserved_ns = 0;
	struct node node;

	(void)state;
	node_start(&node);
	node.has_api = true;
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	in_pod(&node, 0, POD_A);
	mpi_process(&node, PID, 0, false);
	for (int i = 0; i < 4; i++) {
		mpi_steps(&node, PID, 30);
		nt_tracker_paused(node.tracker, PID, node.now_ns);
		nt_tracker_tick(node.tracker, node.now_ns += 400 * MS);
		nt_tracker_resumed(node.tracker, PID, node.now_ns);
	}
	assert_int_equal(node.windows, 0);
	node.namespace = "team-a";
	nt_tracker_tick(node.tracker, node.now_ns);
	nt_tracker_exited(node.tracker, PID, PID, node.now_ns);
	for (size_t i = 0; i < node.windows; i++) {
		assert_string_equal(node.window[i].key, "ns/team-a/mpi:77");
		unobserved_ns += node.window[i].window.unobserved_ns;
	}
	assert_int_equal(unobserved_ns, 4 * 400 * MS);
	node_stop(&node);
}

/* All keys are other jobs', which go on: what has waited is lost then, and is counted. */
static void windows_that_waited_for_a_key_without_room_are_counted(void **state)
{
	static char environ[NT_TRACKER_KEYS][32];
	size_t windows;
	uint64_t held;
	struct node node;

	(void)state;
	node_start(&node);
	for (uint32_t i = 0; i < NT_TRACKER_KEYS; i++) {
		int len = snprintf(environ[i], sizeof(environ[i]), "PMIX_NAMESPACE=%u", 1000 + i);

		node.processes = 0;
		node_describe_as(&node, 10000 + i, environ[i], (size_t)len + 1);
		node_map(&node, 10000 + i, "/usr/lib/libnccl.so.2", NT_LIBRARY_NCCL, false);
		nccl_init(&node, 10000 + i, 10000 + i, 0x5000, 0, 2, 0x11);
		nccl_reduce(&node, 10000 + i, 10000 + i, 0x5000, 1 << 20, STREAM);
	}
	nt_tracker_tick(node.tracker, node.now_ns += 2 * SECOND);
	windows = node.windows;
	assert_int_equal(windows, NT_TRACKER_KEYS);
	node.has_api = true;
	node.processes = 0;
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	in_pod(&node, 0, POD_A);
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 60);
	held = stats_of(&node).held;
	assert_true(held >= 2);
	assert_int_equal(stats_of(&node).keys_over_cap, 0);
	node.namespace = "team-a";
	nt_tracker_tick(node.tracker, node.now_ns);
	assert_int_equal(stats_of(&node).held, 0);
	assert_true(stats_of(&node).keys_over_cap >= held);
	for (size_t i = windows; i < node.windows; i++)
		assert_string_not_equal(node.window[i].key, "ns/team-a/mpi:77");
	node_stop(&node);
}

static void an_agent_that_ends_hands_out_what_waits(void **state)
{
	struct node node;

	(void)state;
	node_start(&node);
	node.has_api = true;
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	in_pod(&node, 0, POD_A);
	mpi_process(&node, PID, 0, false);
	mpi_steps(&node, PID, 60);
	nt_tracker_drain(node.tracker, node.now_ns);
	assert_int_equal(check_key(&node, "pod/" POD_A "/mpi:77"), 60);
	node_stop(&node);
}

/* Nobody ticks, so only room ends the wait. */
static void a_pod_over_its_share_of_what_waits_waits_no_more(void **state)
{
	size_t most = 0;
	struct node node;

	(void)state;
	node_start(&node);
	node.has_api = true;
	ENVIRON(&node, PID, MPI_ENVIRON("0"));
	in_pod(&node, 0, POD_A);
	mpi_process(&node, PID, 0, false);
	while (!node.windows && most < NT_TRACKER_HELD_SHARE) {
		most = stats_of(&node).held_bytes;
		mpi_steps(&node, PID, 20);
	}
	assert_true(node.windows > 1);
	assert_true(most <= NT_TRACKER_HELD_SHARE);
	assert_true(most > NT_TRACKER_HELD_SHARE / 2);
	assert_int_equal(stats_of(&node).tenants_unknown, 1);
	assert_int_equal(stats_of(&node).held_bytes, 0);
	assert_string_equal(node_last(&node)->key, "pod/" POD_A "/mpi:77");
	node_stop(&node);
}

/* Of all pods together, of which none is over its share. */
static void all_pods_together_wait_within_one_cap(void **state)
{
	char pods[8][NT_CGROUP_POD];
	size_t most = 0;
	struct node node;

	(void)state;
	node_start(&node);
	node.has_api = true;
	for (uint32_t i = 0; i < 8; i++) {
		ENVIRON(&node, PID + i, MPI_ENVIRON("0"));
		(void)snprintf(pods[i], sizeof(pods[i]), "%u", 100 + i);
		in_pod(&node, i, pods[i]);
		mpi_process(&node, PID + i, 0, false);
	}
	while (!node.windows && most < NT_TRACKER_HELD_BYTES) {
		most = stats_of(&node).held_bytes;
		for (uint32_t i = 0; i < 8; i++)
			mpi_steps(&node, PID + i, 20);
	}
	assert_true(most <= NT_TRACKER_HELD_BYTES);
	assert_true(most > NT_TRACKER_HELD_BYTES / 2);
	assert_true(node.windows > 0);
	node_stop(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scopes_are_of_namespace_user_pod_container_and_process),
		cmocka_unit_test(a_namespace_that_is_no_label_cannot_pass_for_another),
		cmocka_unit_test(no_environment_makes_the_key_of_another_tenant),
		cmocka_unit_test(the_longest_scope_leaves_long_keys_apart),
		cmocka_unit_test(what_a_user_makes_below_user_slice_is_delegated),
		cmocka_unit_test(two_users_with_one_address_are_two_jobs),
		cmocka_unit_test(without_an_api_server_a_pod_is_its_users),
		cmocka_unit_test(a_process_without_a_user_is_alone),
		cmocka_unit_test(a_pod_that_a_user_has_made_up_is_the_users),
		cmocka_unit_test(a_pod_whose_namespace_comes_late_has_all_its_windows_under_it),
		cmocka_unit_test(a_pod_whose_namespace_never_comes_joins_no_other),
		cmocka_unit_test(a_namespace_that_comes_after_all_ends_the_private_job),
		cmocka_unit_test(a_process_that_ends_unnamed_loses_nothing),
		cmocka_unit_test(a_process_that_is_given_up_unnamed_loses_nothing),
		cmocka_unit_test(pauses_in_windows_that_wait_are_stated),
		cmocka_unit_test(windows_that_waited_for_a_key_without_room_are_counted),
		cmocka_unit_test(an_agent_that_ends_hands_out_what_waits),
		cmocka_unit_test(a_pod_over_its_share_of_what_waits_waits_no_more),
		cmocka_unit_test(all_pods_together_wait_within_one_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
