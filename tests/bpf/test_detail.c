/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single calls of a process at level L1, sampled by the kernel side. */
#include <poll.h>
#include <pthread.h>

#include "tests/bpf/call_stubs.h"

enum {
	DETAILS_MAX = 1 << 20,
	FLOOD = 200000,
	/* Of the harness's ring of 4 MiB: an eighth, 64 bytes an event. */
	RING_EVENTS = (4 << 20) / 8 / 64,
};

static struct nt_event_detail *detail;
static size_t details;

static void keep_detail(void *data, const struct nt_event_detail *event)
{
	(void)data;
	if (details < DETAILS_MAX)
		detail[details++] = *event;
}

static size_t poll_details(struct harness *h)
{
	details = 0;
	while (nt_attach_poll_details(h->attach) > 0)
		;
	return details;
}

static void limit(struct harness *h, uint32_t pid, uint32_t most)
{
	const struct nt_detail_limits limits = {.most = {most, most, most, most}};

	assert_int_equal(nt_attach_set_detail(h->attach, pid, most ? &limits : NULL), 0);
	nt_attach_set_detailed(h->attach, most ? 1 : 0);
}

static int begin_details(void **state)
{
	enum nt_attach_mode mode = *(enum nt_attach_mode *)*state;
	struct nt_attach_options options = harness_options(mode);

	options.detail = keep_detail;
	options.min_call_ns = NT_SECOND; /* no call lasts as long, on a busy machine either */
	if (shared.attach && shared.mode != mode)
		harness_release(&shared);
	if (!shared.attach) {
		harness_init(&shared, &options);
		/* With short calls of cudaStreamSynchronize(), and copies. */
		assert_true(harness_attach(&shared, &cudart, NT_LIBRARY_CUDART,
					   1U << NT_SUBJECT_LAUNCH | 1U << NT_SUBJECT_COPY |
						   1U << NT_SUBJECT_SYNC) > 0);
		assert_true(harness_attach(&shared, &nccl, NT_LIBRARY_NCCL, UINT32_MAX) > 0);
	}
	(void)harness_poll(&shared);
	(void)poll_details(&shared);
	*state = &shared;
	return 0;
}

static int end_details(void **state)
{
	(void)state;
	limit(&shared, (uint32_t)getpid(), 0);
	return 0;
}

static struct nt_detail_rates rates_of(struct harness *h, uint32_t pid)
{
	struct nt_detail_rates rates = {0};

	(void)nt_attach_detail_rates(h->attach, pid, &rates);
	return rates;
}

static void no_call_is_recorded_below_level_1(void **state)
{
	struct harness *h = *state;

	for (int i = 0; i < 100; i++)
		(void)stub_call(&cudart, "cudaLaunchKernel", args);
	assert_int_equal(poll_details(h), 0);
	/* While another process is at level 1. */
	nt_attach_set_detailed(h->attach, 1);
	for (int i = 0; i < 100; i++)
		(void)stub_call(&cudart, "cudaLaunchKernel", args);
	assert_int_equal(poll_details(h), 0);
	nt_attach_set_detailed(h->attach, 0);
}

static void each_call_is_recorded_once_with_its_values(void **state)
{
	struct harness *h = *state;
	uint64_t begin_ns = nt_clock_boot_ns();
	struct nt_process_counters before = {0}, after;
	const uint32_t pid = (uint32_t)getpid();

	(void)nt_attach_counters(h->attach, pid, &before);
	limit(h, pid, 10000);
	args[0] = 0x1234560000;
	args[2] = 4096;
	for (int i = 0; i < 500; i++) {
		(void)stub_call(&cudart, "cudaLaunchKernel", args);
		(void)stub_call(&cudart, "cudaMemcpyAsync", args);
		(void)stub_call(&cudart, "cudaStreamSynchronize", args);
	}
	assert_int_equal(poll_details(h), 1500);
	for (size_t i = 0; i < details; i++) {
		static const char *const names[] = {"cudaLaunchKernel", "cudaMemcpyAsync",
						    "cudaStreamSynchronize"};
		static const enum nt_detail_class classes[] = {NT_DETAIL_LAUNCHES, NT_DETAIL_COPIES,
							       NT_DETAIL_SYNCS};
		const struct nt_event_detail *event = &detail[i];

		assert_int_equal(event->h.row, harness_row(names[i % 3], NT_LIBRARY_CUDART));
		assert_int_equal(event->class, classes[i % 3]);
		assert_int_equal(event->h.pid, pid);
		assert_int_equal(event->h.tid, pid);
		assert_int_equal(event->threshold, NT_DETAIL_EACH);
		assert_true(event->h.entry_ns >= begin_ns);
		begin_ns = event->h.entry_ns;
		if (i % 3 == 2) {
			assert_int_equal(event->h.flags, NT_CALL_RETURNED);
			assert_true(event->ret_ns >= event->h.entry_ns);
			assert_int_equal(event->value, event->h.row + STUB_RESULT);
			continue;
		}
		assert_int_equal(event->h.flags, 0);
		assert_int_equal(event->ret_ns, 0);
		assert_int_equal(event->value, args[0]);
		assert_int_equal(event->bytes, i % 3 == 1 ? 4096 : 0);
	}
	/* They are counted as ever. */
	assert_true(nt_attach_counters(h->attach, pid, &after));
	assert_int_equal(after.calls[NT_COUNTER_LAUNCH] - before.calls[NT_COUNTER_LAUNCH], 500);
	args[0] = args[2] = 0;
}

static void a_call_with_an_event_of_its_own_is_not_sampled(void **state)
{
	struct harness *h = *state;
	size_t seen = 0;

	limit(h, (uint32_t)getpid(), 10000);
	args[0] = 1;
	for (int i = 0; i < 300; i++)
		(void)stub_call(&nccl, "ncclAllReduce", args);
	assert_int_equal(harness_poll(h), 300);
	for (size_t i = 0; i < h->events; i++)
		seen += h->event[i].call.h.row == harness_row("ncclAllReduce", NT_LIBRARY_NCCL);
	assert_int_equal(seen, 300);
	assert_int_equal(poll_details(h), 0);
	args[0] = 0;
}

static void a_neighbour_below_level_1_has_no_records(void **state)
{
	struct harness *h = *state;
	int status;
	pid_t pid;

	limit(h, (uint32_t)getpid(), 10000);
	pid = fork(); /* of the same program: a level is not inherited */
	assert_true(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < 200; i++)
			(void)stub_call(&cudart, "cudaLaunchKernel", args);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)stub_call(&cudart, "cudaLaunchKernel", args);
	assert_int_equal(poll_details(h), 1);
	assert_int_equal(detail[0].h.pid, getpid());
}

static void *flood(void *data)
{
	(void)data;
	for (int i = 0; i < FLOOD / 4; i++)
		(void)stub_call(&cudart, "cudaLaunchKernel", args);
	return NULL;
}

/*
 * The agent reads nothing meanwhile. What is drawn, weighted, and what is lost, make up what was
 * called. Collectives keep their own ring.
 */
static void a_flood_is_bounded_and_accounted_for(void **state)
{
	struct harness *h = *state;
	const uint32_t pid = (uint32_t)getpid(), most = 100;
	struct nt_detail_rates before = rates_of(h, pid), after;
	uint64_t begin_ns = nt_clock_boot_ns(), periods;
	pthread_t thread[4];
	double estimate = 0, variance = 0, error;

	limit(h, pid, most);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, flood, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	periods = ((nt_clock_boot_ns() - begin_ns) >> NT_DETAIL_SHIFT) + 2;
	args[0] = 1;
	(void)stub_call(&nccl, "ncclAllReduce", args);
	args[0] = 0;
	assert_true(harness_poll(h) > 0);
	(void)poll_details(h);
	after = rates_of(h, pid);
	assert_int_equal(after.of[NT_DETAIL_LAUNCHES].seen - before.of[NT_DETAIL_LAUNCHES].seen,
			 FLOOD);
	/* A few more for races between the threads. */
	assert_true(details > 0 && details <= 2 * most * periods + 16);
	assert_int_equal(after.sent - before.sent, details);
	for (size_t i = 0; i < details; i++) {
		const double p = ((double)detail[i].threshold + 1) / 4294967296.0;

		estimate += 1 / p;
		variance += (1 - p) / p / p;
	}
	estimate +=
		(double)(after.of[NT_DETAIL_LAUNCHES].lost - before.of[NT_DETAIL_LAUNCHES].lost);
	error = estimate - FLOOD;
	fprintf(stderr, "# %zu records of %d calls, estimate %.0f, error %.2f sigma\n", details,
		FLOOD, estimate, variance > 0 ? error / __builtin_sqrt(variance) : 0);
	assert_true(error * error <= 36 * variance + 400);
}

static void a_full_ring_loses_calls_which_are_counted(void **state)
{
	struct harness *h = *state;
	const uint32_t pid = (uint32_t)getpid();
	struct nt_detail_rates before = rates_of(h, pid), after;
	const uint64_t dropped = harness_stats(h).dropped[NT_EVENT_DETAIL];

	limit(h, pid, INT32_MAX);
	for (int i = 0; i < 2 * RING_EVENTS; i++)
		(void)stub_call(&cudart, "cudaLaunchKernel", args);
	(void)poll_details(h);
	after = rates_of(h, pid);
	assert_true(details <= RING_EVENTS && details > RING_EVENTS / 2);
	assert_int_equal(after.of[NT_DETAIL_LAUNCHES].lost - before.of[NT_DETAIL_LAUNCHES].lost,
			 2 * RING_EVENTS - details);
	assert_int_equal(harness_stats(h).dropped[NT_EVENT_DETAIL] - dropped,
			 2 * RING_EVENTS - details);
}

static void another_program_of_the_process_has_no_level(void **state)
{
	struct harness *h = *state;
	struct nt_detail_rates rates;
	int ready[2], go[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)!read(go[0], &byte, 1);
		(void)stub_call(&cudart, "cudaLaunchKernel", args);
		(void)!write(ready[1], "", 1);
		(void)!read(go[0], &byte, 1);
		(void)execlp("sleep", "sleep", "10", (char *)NULL);
		_exit(1);
	}
	limit(h, (uint32_t)pid, 100);
	(void)!write(go[1], "", 1);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_true(nt_attach_detail_rates(h->attach, (uint32_t)pid, &rates));
	assert_int_equal(rates.of[NT_DETAIL_LAUNCHES].seen, 1);
	(void)!write(go[1], "", 1);
	for (int i = 0; i < 1000 && nt_attach_detail_rates(h->attach, (uint32_t)pid, &rates); i++)
		(void)poll(NULL, 0, 5);
	assert_false(nt_attach_detail_rates(h->attach, (uint32_t)pid, &rates));
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(nt_attach_set_detail(h->attach, (uint32_t)pid, NULL), -ESRCH);
	nt_attach_set_detailed(h->attach, 0);
}

#define IN_DETAIL(mode, test)                                                                      \
	{                                                                                          \
#test "_in_" #mode "_mode", test, begin_details, end_details, &mode                \
	}
#define TESTS(mode)                                                                                \
	IN_DETAIL(mode, no_call_is_recorded_below_level_1),                                        \
		IN_DETAIL(mode, each_call_is_recorded_once_with_its_values),                       \
		IN_DETAIL(mode, a_call_with_an_event_of_its_own_is_not_sampled),                   \
		IN_DETAIL(mode, a_neighbour_below_level_1_has_no_records),                         \
		IN_DETAIL(mode, a_flood_is_bounded_and_accounted_for),                             \
		IN_DETAIL(mode, a_full_ring_loses_calls_which_are_counted),                        \
		IN_DETAIL(mode, another_program_of_the_process_has_no_level)

int main(void)
{
	int r;

	if (!stub_begin() || load_libraries(NULL) < 0)
		return 1;
	if (stub_only())
		return 0;
	if (!harness_can_load()) {
		stub_clean();
		return EXIT_SKIP;
	}
	detail = calloc(DETAILS_MAX, sizeof(*detail));
	if (!detail)
		return 1;
	r = RUN_IN_MODES(TESTS);
	stub_clean();
	free(detail);
	return r;
}
