/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the REST interface says of the GPUs of ranks. */
#include "tests/unit/aggregator/api.h"

static void ranks_tell_what_their_gpus_compute_where_it_is_known(void **state)
{
	nt_autojson json_t *list = get("/api/v1/jobs/00000000000000a1/ranks");
	const json_t *items = json_object_get(list, "items");
	const json_t *unknown = json_object_get(json_array_get(items, 0), "gpu_state");
	const json_t *known = json_object_get(json_array_get(items, 1), "gpu_state");

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(unknown, "clock_mhz")), 1980);
	assert_true(json_is_null(json_object_get(unknown, "sm_active")));
	assert_true(json_is_null(json_object_get(unknown, "pcie_bytes_per_second")));
	assert_true(json_number_value(json_object_get(known, "sm_active")) == 0.75);
	assert_true(json_number_value(json_object_get(known, "nvlink_bytes_per_second")) == 1e9);
	/* Idle tensor cores are not unknown ones. */
	assert_true(json_is_number(json_object_get(known, "tensor_active")));
}

static void the_device_memory_of_a_rank_is_shown_with_its_holder(void **state)
{
	nt_autojson json_t *list = get("/api/v1/jobs/00000000000000a1/ranks");
	const json_t *ranks = json_object_get(list, "items");
	const json_t *memory = json_object_get(json_array_get(ranks, 1), "device_memory");
	const json_t *device = json_array_get(json_object_get(memory, "devices"), 1);
	const json_t *site = json_array_get(json_object_get(memory, "sites"), 0);
	const json_t *last = json_object_get(memory, "last_out_of_memory");
	const json_t *holder = json_object_get(last, "holder");

	(void)state;
	assert_true(json_is_null(json_object_get(json_array_get(ranks, 0), "device_memory")));
	assert_true(json_is_false(json_object_get(memory, "complete")));
	assert_string_equal(text(memory, "since"), "2026-11-21T02:00:12Z");
	assert_int_equal(json_array_size(json_object_get(memory, "devices")), 2);
	assert_true(json_is_null(json_object_get(device, "device")));
	assert_int_equal(json_integer_value(json_object_get(device, "live_bytes")), 1 << 20);
	assert_string_equal(text(site, "file"), "libcache.so");
	assert_int_equal(json_integer_value(json_object_get(site, "offset")), 0x1a2b);
	assert_true(json_is_true(json_object_get(site, "leaks")));
	assert_int_equal(json_integer_value(json_object_get(memory, "failed_allocations")), 3);
	assert_int_equal(json_integer_value(json_object_get(memory, "out_of_memory")), 2);
	assert_string_equal(text(last, "call"), "cudaMalloc");
	assert_int_equal(json_integer_value(json_object_get(last, "device")), 0);
	assert_string_equal(text(last, "at"), "2026-11-21T03:00:12Z");
	assert_string_equal(text(holder, "file"), "libcache.so");
	assert_int_equal(json_integer_value(json_object_get(holder, "rank")), 1);
	assert_int_equal(json_integer_value(json_object_get(holder, "site_bytes")), 50LL << 30);
}

static void what_is_not_known_of_multiplications_is_null(void **state)
{
	nt_autojson json_t *list = get("/api/v1/jobs/00000000000000a1/ranks");
	const json_t *items = json_object_get(list, "items");
	const json_t *gemms[4], *types;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		gemms[i] = json_object_get(json_array_get(items, i), "gemms");
	types = json_object_get(gemms[0], "types");
	assert_true(nt_json_get_number(gemms[0], "flops_per_second", 0) == 412e12);
	assert_true(nt_json_get_number(gemms[0], "mfu", 0) == 0.416);
	assert_true(nt_json_get_number(gemms[0], "coverage", 0) == 0.83);
	assert_string_equal(text(gemms[0], "coverage_of"), "launches");
	assert_true(nt_json_get_number(gemms[0], "gpu_time_share", 0) == 0.75);
	assert_string_equal(text(gemms[0], "gpu_time_at"), "2026-11-21T03:00:12Z");
	assert_int_equal(json_array_size(types), 2);
	assert_string_equal(text(json_array_get(types, 0), "type"), "bf16");
	assert_string_equal(text(json_array_get(types, 0), "compute"), "32f");
	assert_int_equal(nt_json_get_number(json_array_get(types, 0), "calls", 0), 1000);
	assert_true(nt_json_get_number(json_array_get(types, 1), "peak_flops_per_second", 0) ==
		    67e12);
	types = json_object_get(gemms[1], "types");
	assert_true(json_is_null(json_object_get(gemms[1], "mfu")));
	assert_true(json_is_null(json_object_get(gemms[1], "coverage")));
	assert_true(json_is_null(json_object_get(gemms[1], "coverage_of")));
	assert_true(json_is_null(json_object_get(gemms[1], "gpu_time_share")));
	assert_true(json_is_null(json_object_get(gemms[1], "gpu_time_at")));
	assert_int_equal(nt_json_get_number(gemms[1], "unread_calls", 0), 7);
	assert_int_equal(nt_json_get_number(gemms[1], "graph_launches", 0), 2);
	/* Numbers without a name are stated as they are. */
	assert_string_equal(text(json_array_get(types, 0), "type"), "27");
	assert_string_equal(text(json_array_get(types, 0), "compute"), "76");
	assert_true(
		json_is_null(json_object_get(json_array_get(types, 0), "peak_flops_per_second")));
	types = json_object_get(gemms[2], "types");
	assert_true(json_is_null(json_object_get(gemms[2], "flops_per_second")));
	assert_true(json_is_null(json_object_get(json_array_get(types, 0), "flops_per_second")));
	assert_true(json_is_null(gemms[3]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ranks_tell_what_their_gpus_compute_where_it_is_known),
		TEST(the_device_memory_of_a_rank_is_shown_with_its_holder),
		TEST(what_is_not_known_of_multiplications_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
