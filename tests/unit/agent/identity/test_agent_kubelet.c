/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/kubelet.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/identity/placement_lookup.h"
#include "common/system/clock.h"
#include "tests/unit/agent/pod_resources.h"
#include "tests/unit/grpc_server.h"

/* ---- tests ---------------------------------------------------------------------------------- */

#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		uint64_t start_ns_ = nt_clock_mono_ns();                                           \
		while (!(condition)) {                                                             \
			assert_true(nt_clock_mono_ns() - start_ns_ < 30 * NT_SECOND);              \
			(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);             \
		}                                                                                  \
	} while (0)

static struct nt_kubelet_stats stats_of(struct nt_kubelet *kubelet)
{
	struct nt_kubelet_stats stats;

	nt_kubelet_stats(kubelet, &stats);
	return stats;
}

static void gpus_are_asked_for_and_kept_while_the_kubelet_is_not_well(void **state)
{
	struct grpc_server server = {.lock = PTHREAD_MUTEX_INITIALIZER, .status = "0"};
	nt_autobuf struct nt_buf message = {0};
	nt_auto(nt_kubelet) struct nt_kubelet *kubelet = NULL;
	char dir[SCRATCH_BYTES], gpu[NT_DEVICE_ID] = "", name[32];
	uint64_t failed;
	size_t first = 0;

	(void)state;
	/* More than one frame of HTTP/2. */
	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "train-%d", i);
		add_pod(&message, name, "main", "nvidia.com/gpu",
			(const char *[]){i == 7 ? "GPU-7" : "GPU-x", NULL});
		first = first ? first : message.len;
	}
	assert_true(message.len > 16384);
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(server.path, sizeof(server.path), "%s/kubelet.sock", dir);
	grpc_set_reply(&server, message.data, message.len, message.len, "0");
	assert_int_equal(nt_kubelet_new(server.path, 2 * NT_MILLISECOND, &kubelet), 0);
	assert_int_equal(nt_kubelet_gpus(kubelet, "ml", "train-7", "main", gpu), 0);
	grpc_begin(&server); /* it may come later than we do */
	UNTIL(stats_of(kubelet).is_there);
	assert_int_equal(server.request_len, 5);
	assert_memory_equal(server.request, "\0\0\0\0\0", 5);
	assert_int_equal(nt_kubelet_gpus(kubelet, "ml", "train-7", "main", gpu), 1);
	assert_string_equal(gpu, "GPU-7");
	assert_int_equal(stats_of(kubelet).devices, 500);

	/* A refusal, and a frame that is not what it says. */
	grpc_set_reply(&server, message.data, message.len, message.len, "13");
	failed = stats_of(kubelet).failed;
	UNTIL(stats_of(kubelet).failed > failed + 1);
	assert_int_equal(stats_of(kubelet).is_there, 0);
	assert_int_equal(stats_of(kubelet).malformed, 0);
	grpc_set_reply(&server, message.data, message.len, first, "0");
	UNTIL(stats_of(kubelet).malformed);
	assert_int_equal(nt_kubelet_gpus(kubelet, "ml", "train-7", "main", gpu), 1);

	grpc_set_reply(&server, "", 0, 0, "0");
	UNTIL(stats_of(kubelet).is_there);
	assert_int_equal(nt_kubelet_gpus(kubelet, "ml", "train-7", "main", gpu), 0);
	grpc_end(&server);
	scratch_remove(dir);
}

static void the_number_of_gpus_and_the_place_of_a_rank_name_its_own(void **state)
{
	static const struct {
		const char *pod, *gpu, *given;
		int32_t at;
	} cases[] = {
		{"one", "GPU-a", "", 3},
		{"one", "GPU-a", "cuda:1", -1},
		{"two", "cuda:1", "", 1},
		{"two", "", "", 2},
		{"two", "", "", -1},
		{"two", "GPU-b", "GPU-b", -1}, /* by its own environment */
		{"none", "", "", 0},
	};
	struct nt_kube_options none = {.api = (char *)""};
	struct grpc_server server = {.lock = PTHREAD_MUTEX_INITIALIZER, .status = "0"};
	nt_auto(nt_placement_lookup) struct nt_placement_lookup *placement_lookup = NULL;
	nt_autobuf struct nt_buf message = {0};
	struct nt_placement_lookup_stats stats = {0};
	char dir[SCRATCH_BYTES];

	(void)state;
	add_pod(&message, "one", "main", "nvidia.com/gpu", (const char *[]){"GPU-a", NULL});
	add_pod(&message, "two", "main", "nvidia.com/gpu",
		(const char *[]){"GPU-b", "GPU-c", NULL});
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(server.path, sizeof(server.path), "%s/kubelet.sock", dir);
	grpc_set_reply(&server, message.data, message.len, message.len, "0");
	grpc_begin(&server);
	assert_int_equal(nt_placement_lookup_new(
				 &(struct nt_placement_lookup_options){
					 .kube = &none, .node = "n", .kubelet = server.path},
				 &placement_lookup),
			 0);
	UNTIL((nt_placement_lookup_stats(placement_lookup, &stats), stats.kubelet.devices == 3));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nt_cgroup cgroup = {.pod = "12345678-90ab-cdef-1234-567890abcdef"};
		struct nt_placement placement = {
			.namespace = "ml", .container = "main", .gpu_at = cases[i].at};

		(void)snprintf(placement.pod, sizeof(placement.pod), "%s", cases[i].pod);
		(void)snprintf(placement.gpu, sizeof(placement.gpu), "%s", cases[i].given);
		nt_placement_lookup_find(placement_lookup, &cgroup, &placement);
		assert_string_equal(placement.gpu, cases[i].gpu);
	}
	grpc_end(&server);
	scratch_remove(dir);
}

static void without_a_socket_nobody_is_asked(void **state)
{
	nt_auto(nt_kubelet) struct nt_kubelet *kubelet = NULL;
	char gpu[NT_DEVICE_ID];

	(void)state;
	assert_int_equal(nt_kubelet_new("/no/such/socket", NT_MILLISECOND, &kubelet), 0);
	(void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	assert_int_equal(stats_of(kubelet).requests, 0);
	assert_int_equal(nt_kubelet_gpus(kubelet, "ml", "train-7", "main", gpu), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_are_asked_for_and_kept_while_the_kubelet_is_not_well),
		cmocka_unit_test(the_number_of_gpus_and_the_place_of_a_rank_name_its_own),
		cmocka_unit_test(without_a_socket_nobody_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
