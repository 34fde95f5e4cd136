/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ring buffer at its limits: full, flooded by one process, polled slowly. */
#include "tests/bpf/call_stubs.h"

static void a_full_ring_drops_events_and_counts_every_one(void **state)
{
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	struct harness h;
	size_t events;

	(void)state;
	options.ring_bytes = 4096;
	harness_init(&h, &options);
	attach_gpu(&h);
	for (int i = 0; i < 100; i++)
		(void)stub_call(&nccl, "ncclAllReduce", args);
	for (int i = 0; i < 100; i++)
		(void)stub_call(&nccl, "ncclCommInitRank", args);
	events = harness_poll(&h);
	assert_true(events > 0 && events < 300);
	assert_int_equal(harness_stats(&h).dropped[NT_EVENT_CALL] +
				 harness_stats(&h).dropped[NT_EVENT_INIT] + events,
			 300);
	(void)stub_call(&nccl, "ncclAllReduce", args);
	assert_int_equal(harness_poll(&h), 1);
	harness_release(&h);
}

/* A flood of one process must not take the room of another. */
static void a_process_that_floods_the_ring_loses_events_and_others_do_not(void **state)
{
	enum {
		CALMS = 8, /* the share of a process however full the ring: slow machines take many periods */
	};
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	struct nt_process_counters counters;
	struct harness h;
	int begin[2], ready[2], status;
	char byte = 0;
	pid_t pid;

	(void)state;
	options.ring_bytes = 256 << 10;
	harness_init(&h, &options);
	attach_gpu(&h);
	assert_int_equal(pipe(begin), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(begin[1]); /* it ends with its parent */
		/* Another user: as owner it has a share of its own. */
		if (setuid(65534) < 0 || read(begin[0], &byte, 1) != 1)
			_exit(1);
		for (int i = 0; i < 5000; i++)
			(void)stub_call(&nccl, "ncclAllReduce", args);
		(void)!write(ready[1], &byte, 1);
		(void)!read(begin[0], &byte, 1);
		_exit(0);
	}
	(void)harness_poll(&h);
	assert_int_equal(write(begin[1], &byte, 1), 1);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	for (int i = 0; i < CALMS; i++)
		(void)stub_call(&nccl, "ncclAllReduce", args);
	assert_int_equal(harness_poll(&h), CALMS);
	assert_true(harness_stats(&h).over_share > 0);
	assert_true(nt_attach_counters(h.attach, (uint32_t)pid, &counters));
	assert_true(counters.lost > 0);
	assert_int_equal(counters.unseen[harness_row("ncclAllReduce", NT_LIBRARY_NCCL)],
			 counters.lost);
	/* Who has lost nothing has no loss, whatever the ring looked like. */
	if (nt_attach_counters(h.attach, (uint32_t)getpid(), &counters))
		assert_int_equal(counters.lost, 0);
	assert_int_equal(write(begin[1], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++) {
		(void)close(begin[i]);
		(void)close(ready[i]);
	}
	harness_release(&h);
}

static void count_event(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	uint64_t *count = data;

	(void)id;
	*count += call->h.pid == (uint32_t)getpid();
}

/* The first takes as long as a poll may. */
static void count_slowly(void *data, const struct nt_event_call *call, const uint8_t *id)
{
	const uint64_t start_ns = nt_clock_mono_ns();

	while (*(uint64_t *)data == 0 && nt_clock_mono_ns() - start_ns < NT_SECOND)
		;
	count_event(data, call, id);
}

static void a_poll_has_an_end_and_no_event_is_lost_there(void **state)
{
	enum { MANY = 70000 };
	struct nt_attach_options options = harness_options(NT_ATTACH_AUTO);
	uint64_t count = 0;
	struct harness h;

	(void)state;
	options.ring_bytes = 128 << 20;
	harness_init(&h, &options);
	assert_true(harness_attach(&h, &nccl, NT_LIBRARY_NCCL, UINT32_MAX) > 0);
	(void)harness_poll(&h);
	for (int i = 0; i < MANY; i++)
		(void)stub_call(&nccl, "ncclGroupStart", args);
	assert_int_equal(harness_stats(&h).dropped[NT_EVENT_CALL], 0);
	assert_int_equal(nt_attach_poll(h.attach, count_slowly, &count), 1);
	assert_in_range(count, 1, 64);
	assert_int_equal(harness_drain(h.attach, count_event, &count), 0);
	assert_int_equal(count, MANY);
	harness_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_ring_drops_events_and_counts_every_one),
		cmocka_unit_test(a_process_that_floods_the_ring_loses_events_and_others_do_not),
		cmocka_unit_test(a_poll_has_an_end_and_no_event_is_lost_there),
	};
	int r;

	if (!stub_begin() || load_libraries(NULL) < 0)
		return 1;
	if (stub_only())
		return 0;
	if (!harness_can_load()) {
		stub_clean();
		return EXIT_SKIP;
	}
	r = cmocka_run_group_tests(tests, NULL, NULL);
	stub_clean();
	return r;
}
