/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/identity/device.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/agent/pod_resources.h"

static struct nt_devices devices;

static const char *gpu_of(const char *pod, const char *container)
{
	const char *id = "";

	return nt_devices_find(&devices, nt_device_owner("ml", pod, container), &id) == 1 ? id : "";
}

static size_t gpus_of(const char *pod)
{
	const char *id;

	return nt_devices_find(&devices, nt_device_owner("ml", pod, "main"), &id);
}

static void the_one_gpu_of_a_container_is_found(void **state)
{
	nt_autobuf struct nt_buf response = {0};

	(void)state;
	add_pod(&response, "train-0", "main", "nvidia.com/gpu", (const char *[]){"GPU-a", NULL});
	add_pod(&response, "train-1", "main", "nvidia.com/mig-1g.10gb",
		(const char *[]){"MIG-b", NULL});
	add_pod(&response, "train-2", "main", "rdma/hca", (const char *[]){"mlx5_0", NULL});
	add_pod(&response, "train-3", "main", "nvidia.com/gpu", (const char *[]){NULL});
	assert_int_equal(nt_devices_read(response.data, response.len, &devices), 0);
	assert_string_equal(gpu_of("train-0", "main"), "GPU-a");
	assert_string_equal(gpu_of("train-1", "main"), "MIG-b");
	assert_string_equal(gpu_of("train-2", "main"), "");
	assert_string_equal(gpu_of("train-3", "main"), "");
	assert_string_equal(gpu_of("train-0", "other"), "");
	assert_int_equal(devices.count, 2);
}

static void of_several_the_number_is_known_and_of_a_shared_one_the_card(void **state)
{
	nt_autobuf struct nt_buf response = {0};

	(void)state;
	add_pod(&response, "two", "main", "nvidia.com/gpu",
		(const char *[]){"GPU-a", "GPU-b", NULL});
	add_pod(&response, "shared", "main", "nvidia.com/gpu.shared",
		(const char *[]){"GPU-c::0", "GPU-c::3", NULL});
	assert_int_equal(nt_devices_read(response.data, response.len, &devices), 0);
	assert_int_equal(gpus_of("two"), 2);
	assert_int_equal(gpus_of("shared"), 1);
	assert_int_equal(gpus_of("other"), 0);
	assert_string_equal(gpu_of("shared", "main"), "GPU-c");
}

static void names_that_run_into_each_other_are_different_owners(void **state)
{
	(void)state;
	assert_true(nt_device_owner("ab", "c", "d") != nt_device_owner("a", "bc", "d"));
	assert_true(nt_device_owner("a", "bc", "d") != nt_device_owner("a", "b", "cd"));
}

static void ids_that_are_too_long_or_odd_are_left_out(void **state)
{
	nt_autobuf struct nt_buf response = {0};
	char fits[NT_DEVICE_ID], longer[NT_DEVICE_ID + 1];

	(void)state;
	memset(fits, 'x', sizeof(fits) - 1);
	fits[sizeof(fits) - 1] = '\0';
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	add_pod(&response, "a", "main", "nvidia.com/gpu", (const char *[]){fits, NULL});
	add_pod(&response, "b", "main", "nvidia.com/gpu", (const char *[]){longer, NULL});
	add_pod(&response, "c", "main", "nvidia.com/gpu", (const char *[]){"a\x1b", NULL});
	add_pod(&response, "d", "main", "nvidia.com/gpu", (const char *[]){"::1", NULL});
	assert_int_equal(nt_devices_read(response.data, response.len, &devices), 0);
	assert_int_equal(devices.count, 1);
	assert_string_equal(gpu_of("a", "main"), fits);
}

static void devices_over_the_cap_are_counted(void **state)
{
	nt_autobuf struct nt_buf response = {0};
	char name[32];

	(void)state;
	for (int i = 0; i <= NT_DEVICE_MAX; i++) {
		(void)snprintf(name, sizeof(name), "pod-%d", i);
		add_pod(&response, name, "main", "nvidia.com/gpu", (const char *[]){"GPU-a", NULL});
	}
	assert_int_equal(nt_devices_read(response.data, response.len, &devices), 0);
	assert_int_equal(devices.count, NT_DEVICE_MAX);
	assert_int_equal(devices.over_cap, 1);
	response.len -= 1;
	assert_int_equal(nt_devices_read(response.data, response.len, &devices), -EBADMSG);
	assert_int_equal(devices.count, 0);
}

static void of_one_container_only_so_many_are_counted(void **state)
{
	nt_autobuf struct nt_buf response = {0};
	char name[32];

	(void)state;
	for (int i = 0; i <= NT_DEVICE_COUNTED; i++) {
		(void)snprintf(name, sizeof(name), "GPU-%d", i);
		add_pod(&response, "many", "main", "nvidia.com/gpu", (const char *[]){name, NULL});
	}
	assert_int_equal(nt_devices_read(response.data, response.len, &devices), 0);
	assert_int_equal(gpus_of("many"), NT_DEVICE_COUNTED);
}

static void what_is_cut_or_no_protobuf_is_refused(void **state)
{
	static const uint8_t bad[][4] = {
		{0x0a}, {0x0a, 5, 1}, {0x0b}, {0xff}, {0x08}, {0x09, 1}, {0x0a, 0x02, 0x0a, 0x05}};
	static const uint8_t len[] = {1, 3, 1, 1, 1, 2, 4};
	static const uint8_t others[] = {0x10, 5, 0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x25, 1, 2, 3, 4};

	(void)state;
	for (size_t i = 0; i < sizeof(len); i++)
		assert_int_equal(nt_devices_read(bad[i], len[i], &devices), -EBADMSG);
	assert_int_equal(nt_devices_read(others, sizeof(others), &devices), 0);
	assert_int_equal(nt_devices_read(NULL, 0, &devices), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_one_gpu_of_a_container_is_found),
		cmocka_unit_test(of_several_the_number_is_known_and_of_a_shared_one_the_card),
		cmocka_unit_test(names_that_run_into_each_other_are_different_owners),
		cmocka_unit_test(ids_that_are_too_long_or_odd_are_left_out),
		cmocka_unit_test(devices_over_the_cap_are_counted),
		cmocka_unit_test(of_one_container_only_so_many_are_counted),
		cmocka_unit_test(what_is_cut_or_no_protobuf_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
