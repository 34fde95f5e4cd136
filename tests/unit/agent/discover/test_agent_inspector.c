/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whose inspection comes when: owners take turns, and have shares of the places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "agent/discover/inspector.h"

enum {
	CROWD = 1100, /* inspections of one owner */
	OWNER = 1000,
	OTHER = 1001,
	WAIT_MS = 60000,
};

static struct nt_workers workers;
static struct nt_quarantine *quarantine;
static struct nt_inspector *inspector;
static uint32_t done[CROWD + 1]; /* pids, in the order of their ends */
static size_t dones, owners_read;

/* This process and its parent are of two owners. */
static int owner_of(void *data, uint32_t pid, struct nt_owner *ret_owner)
{
	(void)data;
	owners_read++;
	*ret_owner = (struct nt_owner){.id = pid == (uint32_t)getpid() ? OWNER : OTHER,
				       .name = "a test's"};
	return 0;
}

static void on_stalled(void *data, uint32_t pid, const struct nt_owner *owner, bool held)
{
	(void)data, (void)pid, (void)owner, (void)held;
}

static void on_found(void *data, const struct nt_inspector_task *task, int result,
		     const struct nt_inspection_file *file, const char *name, int fd)
{
	(void)data, (void)task, (void)result, (void)file, (void)name, (void)fd;
}

static void on_done(void *data, const struct nt_inspector_task *task,
		    struct nt_inspector_outcome *outcome)
{
	(void)data, (void)outcome;
	assert_true(dones < CROWD + 1);
	done[dones++] = task->request.pid;
}

static int submit_request(struct nt_inspection_request request, const char *path)
{
	static const struct nt_inspector_client client = {.found = on_found, .done = on_done};
	const struct nt_inspector_task task = {.request = request, .client = &client};

	return nt_inspector_submit(inspector, &task, path, -1);
}

static int submit_kind(uint32_t pid, enum nt_inspection_kind kind)
{
	return submit_request((struct nt_inspection_request){.kind = kind, .pid = pid}, NULL);
}

/* One that is not equal to any other. */
static int submit(uint32_t pid)
{
	return submit_kind(pid, NT_INSPECT_RANK_FILE);
}

static int submit_mapping(uint32_t pid, uint64_t address)
{
	return submit_request((struct nt_inspection_request){.kind = NT_INSPECT_MAPPING,
							     .pid = pid,
							     .address = address,
							     .size = 4096,
							     .ino = 7},
			      "/x/libnccl.so.2");
}

static uint64_t pending(void)
{
	struct nt_inspector_stats stats;

	nt_inspector_stats(inspector, &stats);
	return stats.pending;
}

static int begin(void **state)
{
	const struct nt_inspector_hooks hooks = {.owner = owner_of, .stalled = on_stalled};

	(void)state;
	dones = owners_read = 0;
	workers = (struct nt_workers){0};
	return nt_quarantine_new(&quarantine) < 0 ||
	       nt_inspector_new(&workers, quarantine, &hooks, &inspector) < 0;
}

static int end(void **state)
{
	(void)state;
	nt_inspector_free(inspector);
	nt_quarantine_free(quarantine);
	return 0;
}

static void run_until(size_t ends)
{
	for (int ms = 0; ms < WAIT_MS && dones < ends; ms++)
		nt_inspector_wait(inspector, 1000000);
	assert_true(dones >= ends);
}

static void an_owner_does_not_wait_for_all_of_another(void **state)
{
	(void)state;
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(submit((uint32_t)getpid()), 0);
	assert_int_equal(submit((uint32_t)getppid()), 0);
	run_until(2);
	assert_int_equal(done[0], getpid());
	assert_int_equal(done[1], getppid());
	run_until(CROWD + 1);
}

static void an_owner_finds_room_that_another_has_not(void **state)
{
	struct nt_inspector_stats stats;
	int queued = 0;

	(void)state;
	while (queued <= NT_INSPECTOR_TASKS && submit((uint32_t)getpid()) == 0)
		queued++;
	assert_int_equal(queued, NT_INSPECTOR_TASKS / 2);
	assert_int_equal(submit((uint32_t)getpid()), -ENOSPC);
	nt_inspector_stats(inspector, &stats);
	assert_int_equal(stats.over_cap, 2);
	assert_int_equal(stats.pending, NT_INSPECTOR_TASKS / 2);
	for (int i = 0; i < NT_INSPECTOR_TASKS / 8; i++)
		assert_int_equal(submit((uint32_t)getppid()), 0);
	assert_int_equal(submit((uint32_t)getppid()), -ENOSPC);
}

static void what_is_asked_for_is_pending_until_it_has_ended(void **state)
{
	(void)state;
	assert_false(nt_inspector_has(inspector, (uint32_t)getpid()));
	assert_int_equal(nt_inspector_oldest_ns(inspector), 0);
	assert_int_equal(submit((uint32_t)getpid()), 0);
	assert_int_equal(submit((uint32_t)getpid()), 0);
	assert_true(nt_inspector_has(inspector, (uint32_t)getpid()));
	assert_true(nt_inspector_oldest_ns(inspector) > 0);
	run_until(2);
	assert_false(nt_inspector_has(inspector, (uint32_t)getpid()));
	assert_int_equal(nt_inspector_oldest_ns(inspector), 0);
}

static void what_is_queued_already_is_not_queued_again(void **state)
{
	const uint32_t pid = (uint32_t)getpid();

	(void)state;
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(submit_kind(pid, NT_INSPECT_PROGRAM), 0);
		assert_int_equal(submit_mapping(pid, 4096), 0);
	}
	assert_int_equal(pending(), 2);
	assert_int_equal(owners_read, 2);
	assert_int_equal(submit_mapping((uint32_t)getppid(), 4096), 0);
	assert_int_equal(pending(), 3);
	/* The whole process is more than its parts, and makes up for all that come later. */
	assert_int_equal(submit_kind(pid, NT_INSPECT_PROCESS), 0);
	assert_int_equal(submit_mapping(pid, 8192), 0);
	assert_int_equal(submit_kind(pid, NT_INSPECT_PROCESS), 0);
	assert_int_equal(pending(), 4);
	run_until(4);
	/* What was asked then may have changed since. */
	assert_int_equal(submit_mapping(pid, 4096), 0);
	assert_int_equal(pending(), 1);
	run_until(5);
}

static void a_process_with_many_new_mappings_is_looked_at_as_a_whole(void **state)
{
	const uint32_t pid = (uint32_t)getpid();

	(void)state;
	for (uint64_t i = 1; i <= CROWD; i++)
		assert_int_equal(submit_mapping(pid, 4096 * i), 0);
	assert_int_equal(pending(), NT_INSPECTOR_MAPPINGS + 1);
	assert_int_equal(owners_read, NT_INSPECTOR_MAPPINGS + 1);
	assert_int_equal(submit_mapping((uint32_t)getppid(), 4096), 0);
	assert_int_equal(pending(), NT_INSPECTOR_MAPPINGS + 2);
	run_until(NT_INSPECTOR_MAPPINGS + 2);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(an_owner_does_not_wait_for_all_of_another),
		WITH(an_owner_finds_room_that_another_has_not),
		WITH(what_is_asked_for_is_pending_until_it_has_ended),
		WITH(what_is_queued_already_is_not_queued_again),
		WITH(a_process_with_many_new_mappings_is_looked_at_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
