/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The device memory of a rank, by its windows. */
#include "engine/rank_session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/system/clock.h"

#define END_NS  (1700000000 * NT_SECOND)
#define BOOT_NS (500 * NT_SECOND) /* the same on the node's boot clock */

static struct nt_heap_device devices[64];
static struct nt_heap_site sites[16];

static struct nt_window window_of(size_t device_count, size_t site_count)
{
	const struct nt_window window = {
		.end_boot_ns = BOOT_NS,
		.heap = {.device = devices,
			 .devices = device_count,
			 .site = sites,
			 .sites = site_count,
			 .has_sites = site_count > 0,
			 .failure = {.call = "", .file = "", .holder_file = ""}},
	};

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		devices[i] = (struct nt_heap_device){.number = (uint32_t)i, .live_bytes = 1000 + i};
	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
		sites[i] = (struct nt_heap_site){.file = "libtrain.so", .live_bytes = 2000 + i};
	return window;
}

static void a_window_without_memory_makes_no_heap(void **state)
{
	const struct nt_window window = window_of(0, 0);
	struct nt_rank_heap *heap = NULL;

	(void)state;
	assert_int_equal(nt_rank_heap_take(&heap, &window, END_NS), 0);
	assert_null(heap);
}

static void sites_stay_until_they_are_sent_again(void **state)
{
	struct nt_window window = window_of(1, 2);
	struct nt_rank_heap *heap = NULL;

	(void)state;
	window.heap.failure.call = "cudaMalloc";
	window.heap.failure.boot_ns = BOOT_NS - 3 * NT_SECOND;
	window.heap.since_boot_ns = BOOT_NS - 100 * NT_SECOND;
	assert_int_equal(nt_rank_heap_take(&heap, &window, END_NS), 0);
	assert_int_equal(heap->sites, 2);
	assert_string_equal(heap->site[1].place.file, "libtrain.so");
	assert_int_equal(heap->failure.at_ns, END_NS - 3 * NT_SECOND);
	assert_int_equal(heap->since_ns, END_NS - 100 * NT_SECOND);
	assert_true(heap->device[0].number_known);

	window = window_of(1, 0);
	devices[0].live_bytes = 5;
	window.heap.is_whole = true;
	assert_int_equal(nt_rank_heap_take(&heap, &window, END_NS), 0);
	assert_int_equal(heap->device[0].live_bytes, 5);
	assert_true(heap->is_whole);
	assert_int_equal(heap->since_ns, 0);
	assert_int_equal(heap->sites, 2);
	assert_string_equal(heap->failure.call, "cudaMalloc");

	window = window_of(0, 0); /* all of it is freed */
	assert_int_equal(nt_rank_heap_take(&heap, &window, END_NS), 0);
	assert_int_equal(heap->devices, 0);
	free(heap);
}

static void what_is_over_the_caps_is_left_out(void **state)
{
	struct nt_window window = window_of(64, 16);
	struct nt_rank_heap *heap = NULL;
	char name[200];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	name[3] = '\n';
	sites[0].file = name;
	/* A time before the node was booted is not one before 1970. */
	window.heap.failure.boot_ns = 1;
	assert_int_equal(nt_rank_heap_take(&heap, &window, NT_SECOND), 0);
	assert_int_equal(heap->devices, NT_RANK_HEAP_DEVICES);
	assert_int_equal(heap->device[16].live_bytes, 1016);
	assert_int_equal(heap->sites, NT_RANK_HEAP_SITES);
	assert_int_equal(heap->site[7].live_bytes, 2007);
	assert_int_equal(strlen(heap->site[0].place.file), NT_RANK_HEAP_TEXT - 1);
	assert_int_equal(heap->site[0].place.file[3], '?');
	assert_int_equal(heap->failure.at_ns, 1);
	free(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_without_memory_makes_no_heap),
		cmocka_unit_test(sites_stay_until_they_are_sent_again),
		cmocka_unit_test(what_is_over_the_caps_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
