/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/discover/probed_ranks.h"
#include "agent/elf/elf.h"
#include "agent/heap/gpu_heap.h"
#include "agent/identity/pods.h"
#include "agent/probes/symbols.h"
#include "agent/tracker/detail_log.h"
#include "agent/tracker/detail_set.h"
#include "tests/oom/oom.h"
#include "tests/unit/agent/elf_image.h"
#include "tests/unit/agent/kube_pod.h"

/* Our own executable: it has a .symtab, which only the second look-up reads. */
static int look_up(void *data)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_symbol symbol;
	int r;

	(void)data;
	r = nt_elf_open("/proc/self/exe", &elf);
	if (r < 0)
		return r;
	r = find_one(elf, "look_up", &symbol);
	if (r < 0)
		return r;
	r = find_one(elf, "no_such_function", &symbol);
	return r == -ENOENT ? 0 : (r < 0 ? r : -EPROTO);
}

/* A library: it has a dynamic symbol. */
static int open_library(void *data)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_symbol symbol;
	struct image image;
	int r;

	(void)data;
	image_init(&image);
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	r = nt_elf_open(image_save(&image), &elf);
	image_close(&image);
	return r < 0 ? r : find_one(elf, "ncclSend", &symbol);
}

/* All rows of a program: nothing but one of them is there. */
static int read_rows(void *data)
{
	static struct nt_symbols symbols;
	struct image image;
	int r;

	(void)data;
	image_init(&image);
	(void)image_add_dynamic(&image, "ncclSend", 0x40, 1);
	(void)image_add_static(&image, "MPI_Init", 0x60);
	(void)image_save(&image);
	r = nt_symbols_read(image.fd, NULL, NT_LIBRARY_MPI, &symbols);
	image_close(&image);
	return r < 0 ? r : (symbols.holds && symbols.count == 1 ? 0 : -EPROTO);
}

/* A part of a function that was split off, and the places for probes. */
static int look_up_copies(void *data)
{
	nt_auto(nt_elf) struct nt_elf *elf = NULL;
	struct nt_elf_symbol symbol[2];
	struct nt_elf_mark mark[2];
	int r;

	(void)data;
	r = nt_elf_open("/proc/self/exe", &elf);
	if (r < 0)
		return r;
	r = nt_elf_find_clones(elf, "look_up_copies", symbol, 2);
	if (r < 0)
		return r;
	r = nt_elf_find_marks(elf, "python", "gc__start", mark, 2);
	if (r < 0)
		return r;
	r = nt_elf_has_prefix(elf, "look_");
	if (r < 0)
		return r;
	return r == 1 ? 0 : -EPROTO;
}

static void an_elf_file_survives_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(read_rows, NULL) >= 1);
	assert_true(nt_oom_sweep(look_up_copies, NULL) >= 1);
	assert_true(nt_oom_sweep(look_up, NULL) >= 1);
	assert_true(nt_oom_sweep(open_library, NULL) >= 1);
}

static int attach(void *data, uint32_t pid, uint64_t start_boot_ns,
		  struct nt_rank_probe **ret_probe)
{
	(void)data;
	(void)pid;
	(void)start_boot_ns;
	*ret_probe = malloc(1);
	return *ret_probe ? 0 : -ENOMEM;
}

static void detach(void *data, struct nt_rank_probe *probe)
{
	(void)data;
	free(probe);
}

/* A rank whose interpreter finds no room is one that is not watched. */
static int watch_interpreters(void *data)
{
	const struct nt_probed_ranks_hooks hooks = {.attach = attach, .detach = detach};
	nt_auto(nt_probed_ranks) struct nt_probed_ranks *interpreters = NULL;
	int r = nt_probed_ranks_new(&hooks, &interpreters);

	(void)data;
	if (r < 0)
		return r;
	for (uint32_t pid = 1; pid < 4; pid++)
		nt_probed_ranks_add(interpreters, pid, 1);
	for (int i = 0; i < 3; i++)
		nt_probed_ranks_attach(interpreters);
	nt_probed_ranks_end(interpreters, 1, 1);
	nt_probed_ranks_end(interpreters, 2, 1);
	nt_probed_ranks_detach(interpreters);
	return 0;
}

static void interpreters_survive_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep_lenient(watch_interpreters, NULL) >= 4);
}

/* A pod that finds no memory is not known, and counted; those before it are. */
static int know_pods(void *data)
{
	nt_auto(nt_pods) struct nt_pods *pods = NULL;
	struct nt_pods_stats stats;
	struct nt_placement placement = {.workload.kind = ""};
	struct nt_cgroup cgroup;
	int r = nt_pods_new(&pods);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < 3; i++)
		nt_pods_put(pods, ((json_t **)data)[i]);
	nt_pods_remove(pods, ((json_t **)data)[0], 1);
	nt_pods_stats(pods, &stats);
	if (stats.no_memory)
		return -ENOMEM;
	pod_cgroup(2, 1, &cgroup);
	return nt_pods_find(pods, &cgroup, &placement) && placement.container[0] ? 0 : -EPROTO;
}

static void pods_survive_failed_allocations(void **state)
{
	json_t *pods[] = {pod_json(0, 1, "Running"), pod_json(1, 1, "Running"),
			  pod_json(2, 1, "Running")};

	(void)state;
	assert_true(nt_oom_sweep(know_pods, pods) >= 6);
	for (size_t i = 0; i < 3; i++)
		json_decref(pods[i]);
}

/* A block or a call site that finds no memory is left out, and what is held is a lower bound. */
static int hold_memory(void *data)
{
	nt_auto(nt_gpu_heap) struct nt_gpu_heap *heap = NULL;
	int r = nt_gpu_heap_new(0, 7, &heap);

	(void)data;
	if (r < 0)
		return r;
	for (uint64_t i = 1; i <= 200; i++)
		(void)nt_gpu_heap_take(heap, &(struct nt_gpu_heap_call){.op = NT_MEMORY_ALLOC,
									.address = i << 12,
									.bytes = 1,
									.site = 1 + i % 10});
	if (!heap->is_whole || heap->sites_over_cap)
		return nt_gpu_heap_live(heap) <= 200 ? -ENOMEM : -EPROTO;
	return nt_gpu_heap_live(heap) == 200 ? 0 : -EPROTO;
}

static void device_memory_survives_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(hold_memory, NULL) >= 6);
}

/* A process that finds no room has no level. */
static int be_detailed(void *data)
{
	const struct nt_detail_set_limits limits = {.rank = 100, .owner = 100, .node = 100};
	nt_auto(nt_detail_set) struct nt_detail_set *set = NULL;
	struct nt_detail_log *log = nt_detail_log_new(0);
	int r = log ? nt_detail_set_new(&limits, &set) : -ENOMEM;

	(void)data;
	nt_detail_log_free(log);
	for (uint32_t pid = 1; r == 0 && pid <= 40; pid++)
		r = nt_detail_set_put(set, pid, pid, 1, 1);
	if (r < 0)
		return r;
	nt_detail_set_divide(set);
	return nt_detail_set_count(set) == 40 ? 0 : -EPROTO;
}

static void levels_survive_failed_allocations(void **state)
{
	(void)state;
	assert_true(nt_oom_sweep(be_detailed, NULL) >= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_elf_file_survives_failed_allocations),
		cmocka_unit_test(interpreters_survive_failed_allocations),
		cmocka_unit_test(pods_survive_failed_allocations),
		cmocka_unit_test(device_memory_survives_failed_allocations),
		cmocka_unit_test(levels_survive_failed_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
