/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System events of one window: the differences of two readings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/tracker/window_system.h"

static struct nt_host_sample before, now;

static int make(void **state)
{
	(void)state;
	before = now = (struct nt_host_sample){.has_system = true};
	before.system.observed_ns = 1000;
	now.system.observed_ns = 3000;
	return 0;
}

static void put_device(struct nt_host_sample *sample, const char *name)
{
	(void)snprintf(sample->system.device, sizeof(sample->system.device), "%s", name);
}

static struct nt_host_evidence fill(void)
{
	struct nt_host_evidence host = {.state = "", .taker = "", .block_device = ""};

	nt_window_system_fill(&before, &now, &host);
	return host;
}

static void waits_are_told_apart(void **state)
{
	struct nt_host_evidence host;

	(void)state;
	for (uint64_t i = 0; i < NT_HOST_WAITS; i++) {
		before.system.thread.wait_ns[i] = 100;
		now.system.thread.wait_ns[i] = 101 + i;
	}
	now.system.thread.reclaim_ns = 50;
	now.system.thread.compaction_ns = 51;
	now.system.thread.migrations = 52;
	now.system.thread.numa_moves = 53;
	now.system.thread.blocked = 54;
	now.system.thread.preempted = 55;
	host = fill();
	assert_int_equal(host.system_ns, 2000);
	assert_int_equal(host.run_queue_ns, 1 + NT_HOST_WAIT_RUN_QUEUE + 1 + NT_HOST_WAIT_QUOTA);
	assert_int_equal(host.quota_ns, 1 + NT_HOST_WAIT_QUOTA);
	assert_int_equal(host.off_cpu_file_ns, 1 + NT_HOST_WAIT_NETWORK_FILE);
	assert_int_equal(host.off_cpu_io_ns,
			 1 + NT_HOST_WAIT_BLOCK_IO + 1 + NT_HOST_WAIT_NETWORK_FILE);
	assert_int_equal(host.off_cpu_lock_ns, 1 + NT_HOST_WAIT_LOCK);
	assert_int_equal(host.off_cpu_net_ns, 1 + NT_HOST_WAIT_NETWORK);
	assert_int_equal(host.off_cpu_sleep_ns, 1 + NT_HOST_WAIT_SLEEP);
	assert_int_equal(host.off_cpu_fault_ns, 1 + NT_HOST_WAIT_FAULT);
	assert_int_equal(host.off_cpu_device_ns, 1 + NT_HOST_WAIT_DEVICE);
	assert_int_equal(host.off_cpu_other_ns, 1 + NT_HOST_WAIT_OTHER);
	assert_int_equal(host.reclaim_ns, 50);
	assert_int_equal(host.compaction_ns, 51);
	assert_int_equal(host.migrations, 52);
	assert_int_equal(host.numa_moves, 53);
	assert_int_equal(host.voluntary_switches, 54);
	assert_int_equal(host.involuntary_switches, 55);
}

static void interrupts_are_not_work_of_the_thread(void **state)
{
	struct nt_host_evidence host = {.on_cpu_ns = 500, .run_queue_ns = 7};

	(void)state;
	now.system.thread.irq_ns = 80;
	now.system.thread.wait_ns[NT_HOST_WAIT_RUN_QUEUE] = 30;
	nt_window_system_fill(&before, &now, &host);
	assert_int_equal(host.on_cpu_ns, 420);
	assert_int_equal(host.interrupt_ns, 80);
	assert_int_equal(host.run_queue_ns, 7); /* the scheduler's own sum is kept */
}

static void sums_of_the_process_contain_its_workers(void **state)
{
	struct nt_host_evidence host;

	(void)state;
	before.system.wait_ns[NT_HOST_WAIT_BLOCK_IO] = 5;
	now.system.wait_ns[NT_HOST_WAIT_BLOCK_IO] = 10;
	now.system.helper_wait_ns[NT_HOST_WAIT_BLOCK_IO] = 20;
	now.system.helper_wait_ns[NT_HOST_WAIT_NETWORK_FILE] = 40;
	now.system.wait_ns[NT_HOST_WAIT_FAULT] = 80;
	now.system.reclaim_ns = 81;
	now.system.retransmits = 82;
	now.system.resets = 83;
	now.system.oom_kills = 84;
	now.system.taken_ns = 85;
	now.system.taker = (struct nt_host_taker){.tgid = 86, .ns = 87, .comm = "stress"};
	host = fill();
	assert_int_equal(host.process_io_ns, 65);
	assert_int_equal(host.process_fault_ns, 80);
	assert_int_equal(host.process_reclaim_ns, 81);
	assert_int_equal(host.tcp_retransmits, 82);
	assert_int_equal(host.tcp_resets, 83);
	assert_int_equal(host.oom_kills, 84);
	assert_int_equal(host.taken_ns, 85);
	assert_int_equal(host.taker_pid, 86);
	assert_int_equal(host.taker_ns, 87);
	assert_string_equal(host.taker, "stress");
}

static void another_device_than_before_has_no_difference(void **state)
{
	struct nt_host_evidence host;

	(void)state;
	before.system.requests = 10;
	before.system.device_requests = 10;
	put_device(&before, "sda");
	now.system.requests = 30;
	now.system.device_requests = 16;
	put_device(&now, "sda");
	host = fill();
	assert_int_equal(host.block_requests, 20);
	assert_int_equal(host.block_device_requests, 6);
	put_device(&now, "sdb");
	host = fill();
	assert_string_equal(host.block_device, "sdb");
	assert_int_equal(host.block_device_requests, 0);
}

static void without_both_readings_nothing_is_filled(void **state)
{
	struct nt_host_evidence host;

	(void)state;
	now.system.oom_kills = 1;
	before.has_system = false;
	host = fill();
	assert_int_equal(host.system_ns + host.oom_kills, 0);
	before.has_system = true;
	now.system.observed_ns = before.system.observed_ns;
	host = fill();
	assert_int_equal(host.system_ns + host.oom_kills, 0);
}

static void what_is_not_observed_all_the_time_is_stated(void **state)
{
	(void)state;
	assert_int_equal(nt_window_system_shed(&now), 0);
	now.system.is_shed = true;
	assert_int_equal(nt_window_system_shed(&now), NT_WIRE_SHED_SYSTEM);
	now.system.is_shed = false;
	now.system.is_estimated = true;
	assert_int_equal(nt_window_system_shed(&now), NT_WIRE_SHED_SWITCHES);
	now.has_system = false;
	assert_int_equal(nt_window_system_shed(&now), 0);
}

/* In slices a quota is an estimate; the groups' own sums are exact. */
static void estimates_do_not_replace_the_quota_of_the_groups(void **state)
{
	(void)state;
	before.has_quota = now.has_quota = true;
	before.quota_ns = 100;
	now.quota_ns = 400;
	now.system.thread.wait_ns[NT_HOST_WAIT_QUOTA] = 90;
	now.system.is_estimated = true;
	struct nt_host_evidence host = {.run_queue_ns = 1000};

	nt_window_system_fill(&before, &now, &host);
	assert_int_equal(host.quota_ns, 300);
	now.system.is_estimated = false;
	nt_window_system_fill(&before, &now, &host);
	assert_int_equal(host.quota_ns, 90);
}

/* Of the groups' pauses only those in which the thread was runnable are its own. */
static void without_tracepoints_the_quota_is_that_of_the_groups(void **state)
{
	struct nt_host_evidence host = {.run_queue_ns = 70};

	(void)state;
	before.has_system = now.has_system = false;
	before.quota_ns = 1000;
	now.quota_ns = 1050;
	nt_window_system_fill(&before, &now, &host);
	assert_int_equal(host.quota_ns, 0); /* it was not read */
	before.has_quota = now.has_quota = true;
	nt_window_system_fill(&before, &now, &host);
	assert_int_equal(host.quota_ns, 50);
	now.quota_ns = 1500;
	nt_window_system_fill(&before, &now, &host);
	assert_int_equal(host.quota_ns, 70);
	/* Tracepoints know better. */
	before.has_system = now.has_system = true;
	now.system.thread.wait_ns[NT_HOST_WAIT_QUOTA] = 33;
	nt_window_system_fill(&before, &now, &host);
	assert_int_equal(host.quota_ns, 33);
}

#define CASE(name_) cmocka_unit_test_setup(name_, make)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(waits_are_told_apart),
		CASE(interrupts_are_not_work_of_the_thread),
		CASE(sums_of_the_process_contain_its_workers),
		CASE(another_device_than_before_has_no_difference),
		CASE(without_both_readings_nothing_is_filled),
		CASE(what_is_not_observed_all_the_time_is_stated),
		CASE(estimates_do_not_replace_the_quota_of_the_groups),
		CASE(without_tracepoints_the_quota_is_that_of_the_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
