/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Calls as programs really make them: one inside another, left by longjmp, by many threads at once,
 * never returning. And the kernel side with full tables.
 */
#include <pthread.h>
#include <time.h>

#include "tests/bpf/call_stubs.h"

enum {
	THREADS = 4,
	CALLS = 500,
};

static jmp_buf escape;
static struct harness *watching; /* for hooks that look at what is seen meanwhile */

static int end(void **state)
{
	(void)state;
	*mpi.hook = *nccl.hook = *cudart.hook = NULL;
	return 0;
}

static void check_symbol(const struct seen *seen, const char *symbol)
{
	assert_string_equal(nt_probe_row(seen->call.h.row)->symbol, symbol);
}

/* ---- one inside another ------------------------------------------------------------------- */

static void call_others(void)
{
	(void)stub_call(&nccl, "ncclGroupStart", args);
	(void)stub_call(&nccl, "ncclAllReduce", args);
	(void)stub_call(&nccl, "ncclGroupEnd", args);
	(void)stub_call(&cudart, "cudaLaunchKernel", args);
}

static void calls_made_inside_a_call_are_no_calls_of_the_program(void **state)
{
	struct harness *h = *state;

	*mpi.hook = call_others;
	(void)stub_call(&mpi, "MPI_Allreduce", args);
	*mpi.hook = NULL;
	assert_int_equal(harness_poll(h), 1);
	check_symbol(&h->event[0], "MPI_Allreduce");
	call_others();
	assert_int_equal(harness_poll(h), 3);
	check_symbol(&h->event[2], "ncclGroupEnd");
}

static void counted_calls_are_counted_wherever_they_are_made(void **state)
{
	struct nt_process_counters before = {0}, after = {0};
	struct harness *h = *state;

	(void)nt_attach_counters(h->attach, (uint32_t)getpid(), &before);
	*mpi.hook = call_others;
	(void)stub_call(&mpi, "MPI_Allreduce", args);
	assert_true(nt_attach_counters(h->attach, (uint32_t)getpid(), &after));
	assert_int_equal(after.calls[NT_COUNTER_LAUNCH], before.calls[NT_COUNTER_LAUNCH] + 1);
}

static void launches_show_in_the_calls_after_them(void **state)
{
	struct harness *h = *state;

	uint64_t before = 0;

	for (uint64_t launches = 0; launches < 4; launches++) {
		for (int i = 0; i < 2; i++)
			(void)stub_call(&mpi, "MPI_Barrier", args);
		assert_int_equal(harness_poll(h), 2);
		if (!launches)
			before = h->event[0].call.launches;
		assert_int_equal(h->event[0].call.launches, before + launches);
		assert_int_equal(h->event[1].call.launches, before + launches);
		(void)stub_call(&cudart, "cudaLaunchKernel", args);
	}
}

/* ---- left without returning --------------------------------------------------------------- */

static void jump_out(void)
{
	longjmp(escape, 1);
}

/* Never inlined, so that all its calls are made from one depth of the stack. */
__attribute__((noinline)) static void call_and_escape(void)
{
	if (setjmp(escape) == 0) {
		*mpi.hook = jump_out;
		(void)stub_call(&mpi, "MPI_Barrier", args);
		fail_msg("the hook did not jump");
	}
	*mpi.hook = NULL;
	(void)stub_call(&mpi, "MPI_Allreduce", args);
}

static void a_call_left_by_longjmp_makes_room_for_the_next(void **state)
{
	struct harness *h = *state;

	for (int i = 0; i < 3; i++) {
		call_and_escape();
		assert_int_equal(harness_poll(h), 1);
		check_symbol(&h->event[0], "MPI_Allreduce");
		assert_int_equal(h->event[0].call.h.flags, NT_CALL_RETURNED);
	}
	/* It has not returned without being seen, so nothing is lost. */
	assert_int_equal(harness_stats(h).unreturned, 0);
}

struct found {
	uint32_t pid, tid;
	uint16_t row;
	struct nt_inside inside;
	size_t times;
};

static void find_own(void *data, uint32_t pid, uint32_t tid, uint16_t row,
		     const struct nt_inside *inside)
{
	struct found *found = data;

	if (pid != (uint32_t)getpid() || tid != (uint32_t)gettid())
		return;
	*found = (struct found){pid, tid, row, *inside, found->times + 1};
}

static void look_inside(void)
{
	struct found found = {0};

	assert_int_equal(harness_poll(watching), 0);
	assert_int_equal(nt_attach_inside(watching->attach, find_own, NULL, &found), 0);
	assert_int_equal(found.times, 1);
	assert_int_equal(found.row, harness_row("MPI_Allreduce", NT_LIBRARY_MPI));
	assert_int_equal(found.inside.word[5], args[5]);
	assert_true(found.inside.entry_ns <= nt_clock_boot_ns());
}

static void who_is_inside_a_call_can_be_seen_before_it_returns(void **state)
{
	struct harness *h = *state;
	struct found found = {0};

	watching = h;
	*mpi.hook = look_inside;
	args[5] = 0xc0;
	(void)stub_call(&mpi, "MPI_Allreduce", args);
	assert_int_equal(harness_poll(h), 1);
	assert_int_equal(nt_attach_inside(h->attach, find_own, NULL, &found), 0);
	assert_int_equal(found.times, 0);
}

struct outside {
	uint64_t user_ip;
	size_t times;
};

static void ignore_inside(void *data, uint32_t pid, uint32_t tid, uint16_t row,
			  const struct nt_inside *inside)
{
	(void)data, (void)pid, (void)tid, (void)row, (void)inside;
}

static void find_outside(void *data, uint32_t pid, uint64_t user_ip)
{
	struct outside *outside = data;

	if (pid != (uint32_t)getpid())
		return;
	outside->user_ip = user_ip;
	outside->times++;
}

static struct outside look_outside(const struct harness *h)
{
	struct outside found = {0};

	assert_int_equal(nt_attach_inside(h->attach, ignore_inside, find_outside, &found), 0);
	return found;
}

static void look_from_inside(void)
{
	assert_int_equal(look_outside(watching).times, 0);
}

/* It makes the walk, so its last entry into the kernel is the system call that reads it. */
static void where_a_main_thread_was_outside_of_calls_can_be_seen(void **state)
{
	struct harness *h = *state;
	struct outside found;
	Dl_info file;

	watching = h;
	*mpi.hook = look_from_inside;
	(void)stub_call(&mpi, "MPI_Allreduce", args);
	assert_int_equal(harness_poll(h), 1);
	found = look_outside(h);
	assert_int_equal(found.times, 1);
	assert_true(dladdr((void *)(uintptr_t)found.user_ip, &file) != 0);
	assert_non_null(strstr(file.dli_fname, "libc"));
}

static void look_at_the_making(void)
{
	assert_int_equal(harness_poll(watching), 1);
	check_symbol(&watching->event[0], "ncclCommInitRank");
	assert_int_equal(watching->event[0].call.h.flags, 0);
	assert_true(watching->event[0].has_id);
}

static void the_making_of_a_communicator_shows_before_it_returns(void **state)
{
	struct harness *h = *state;

	watching = h;
	*nccl.hook = look_at_the_making;
	(void)stub_call(&nccl, "ncclCommInitRank", args);
	assert_int_equal(harness_poll(h), 1);
	assert_int_equal(h->event[0].call.h.flags, NT_CALL_RETURNED);
}

/* Runs in a thread: left by longjmp, it ends inside the call. */
static void *end_inside(void *data)
{
	(void)data;
	if (setjmp(escape) == 0) {
		*mpi.hook = jump_out;
		(void)stub_call(&mpi, "MPI_Barrier", args);
	}
	return NULL;
}

static void count_own(void *data, uint32_t pid, uint32_t tid, uint16_t row,
		      const struct nt_inside *inside)
{
	size_t *ret_count = data;

	(void)tid;
	(void)row;
	(void)inside;
	*ret_count += pid == (uint32_t)getpid();
}

static void a_thread_that_has_ended_is_in_no_call(void **state)
{
	struct harness *h = *state;
	pthread_t thread;
	size_t count = 0;

	assert_int_equal(pthread_create(&thread, NULL, end_inside, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	*mpi.hook = NULL;
	assert_int_equal(nt_attach_inside(h->attach, count_own, NULL, &count), 0);
	assert_int_equal(count, 0);
	(void)harness_poll(h);
}

/* One function ends in a jump to the other, which then returns for both. */
static void a_call_that_ends_in_a_jump_to_another_is_not_lost(void **state)
{
	static const char source[] =
		"unsigned long MPI_Allreduce(void)\n"
		"{ __asm__ volatile(\"\" ::: \"memory\"); return 7; }\n"
		"unsigned long MPI_Barrier(void) { return MPI_Allreduce(); }\n";
	struct nt_attach_options options = harness_options(((struct harness *)*state)->mode);
	uint32_t subject = nt_probe_row(harness_row("MPI_Allreduce", NT_LIBRARY_MPI))->subject;
	char path[PATH_MAX + 32];
	struct harness own;
	struct stub jumping;

	(void)snprintf(path, sizeof(path), "%s/libjumping.so", stub_dir);
	assert_true(access(path, R_OK) == 0 ||
		    stub_compile(path, "c", source, "-foptimize-sibling-calls"));
	assert_true(stub_load(&jumping, path));
	harness_init(&own, &options);
	assert_true(harness_attach(&own, &jumping, NT_LIBRARY_MPI, 1U << subject) == 2);
	assert_int_equal(stub_call(&jumping, "MPI_Barrier", args), 7);
	assert_int_equal(harness_poll(&own), 1);
	check_symbol(&own.event[0], "MPI_Allreduce");
	assert_int_equal(harness_stats(&own).unreturned, 0);
	harness_release(&own);
}

/* ---- over a detachment -------------------------------------------------------------------- */

static size_t times_inside(const struct harness *h)
{
	struct found found = {0};

	assert_int_equal(nt_attach_inside(h->attach, find_own, NULL, &found), 0);
	return found.times;
}

static void attach_allreduce(struct harness *h)
{
	uint16_t row = harness_row("MPI_Allreduce", NT_LIBRARY_MPI);

	assert_true(harness_attach(h, &mpi, NT_LIBRARY_MPI, 1U << nt_probe_row(row)->subject) > 0);
}

static void detach_inside(void)
{
	assert_int_equal(times_inside(watching), 1);
	nt_attach_drop(watching->attach, mpi.st.st_dev, mpi.st.st_ino);
	/* The call goes on, and that can be seen. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(times_inside(watching), 1);
}

/* Never inlined, so that all its calls are made from one depth of the stack. */
__attribute__((noinline)) static void call_at_one_depth(void (*hook)(void))
{
	*mpi.hook = hook;
	(void)stub_call(&mpi, "MPI_Allreduce", args);
	*mpi.hook = NULL;
}

/* The same, from further down the stack. */
__attribute__((noinline)) static void call_deeper(void)
{
	volatile char room[4096];

	room[0] = 0;
	call_at_one_depth(NULL);
	room[1] = room[0];
}

static void begin_own(struct harness *own, enum nt_attach_mode mode)
{
	struct nt_attach_options options = harness_options(mode);

	harness_init(own, &options);
	attach_allreduce(own);
	watching = own;
}

static uint64_t lost_of_own(const struct harness *own)
{
	struct nt_process_counters counters;

	return nt_attach_counters(own->attach, (uint32_t)getpid(), &counters) ? counters.lost : 0;
}

static void a_call_whose_probes_went_is_over_when_it_returns_and_counted_as_lost(void **state)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	struct harness own, *h = *state;

	begin_own(&own, h->mode);
	call_at_one_depth(detach_inside);
	assert_int_equal(times_inside(&own), 0);
	attach_allreduce(&own);
	/* Turns, not seconds: an emulated machine may get no processor for minutes. */
	for (int i = 0; i < 3000 && !harness_stats(&own).unreturned; i++) {
		assert_int_equal(times_inside(&own), 0);
		(void)nanosleep(&pause, NULL);
	}
	assert_int_equal(harness_stats(&own).unreturned, 1);
	assert_int_equal(lost_of_own(&own), 1);
	/* What is called deeper in the stack is not within it. */
	call_deeper();
	assert_int_equal(harness_poll(&own), 1);
	assert_int_equal(times_inside(&own), 0);
	assert_int_equal(harness_stats(&own).unreturned, 1);
	harness_release(&own);
	(void)harness_poll(h);
}

static void a_call_whose_probes_went_is_counted_as_lost_when_the_next_takes_its_place(void **state)
{
	struct harness own, *h = *state;

	begin_own(&own, h->mode);
	call_at_one_depth(detach_inside);
	attach_allreduce(&own);
	call_at_one_depth(NULL);
	assert_int_equal(harness_poll(&own), 1);
	assert_int_equal(harness_stats(&own).unreturned, 1);
	assert_int_equal(lost_of_own(&own), 1);
	call_at_one_depth(NULL);
	assert_int_equal(harness_poll(&own), 1);
	assert_int_equal(harness_stats(&own).unreturned, 1);
	harness_release(&own);
	(void)harness_poll(h);
}

/* ---- by many threads --------------------------------------------------------------------- */

static void *call_often(void *data)
{
	uint64_t mine[STUB_ARGS] = {0};

	for (uint64_t i = 0; i < CALLS; i++) {
		mine[2] = i;
		mine[5] = (uintptr_t)data;
		(void)stub_call(&mpi, "MPI_Allreduce", mine);
		(void)stub_call(&nccl, "ncclAllReduce", mine);
		(void)stub_call(&cudart, "cudaLaunchKernel", mine);
	}
	return NULL;
}

static void threads_do_not_get_into_each_others_calls(void **state)
{
	struct nt_process_counters before = {0}, after = {0};
	struct harness *h = *state;
	pthread_t thread[THREADS];
	struct {
		uint32_t tid;
		uint64_t calls;
	} of[THREADS] = {0};

	(void)nt_attach_counters(h->attach, (uint32_t)getpid(), &before);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, call_often, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(harness_poll(h), 2 * THREADS * CALLS);
	for (size_t i = 0; i < h->events; i++) {
		const struct nt_event_call *call = &h->event[i].call;
		uint64_t who = call->word[5];

		assert_in_range(who, 0, THREADS - 1);
		if (!of[who].calls)
			of[who].tid = call->h.tid;
		assert_int_equal(call->h.tid, of[who].tid);
		assert_int_equal(call->word[2], of[who].calls++ / 2);
	}
	assert_true(nt_attach_counters(h->attach, (uint32_t)getpid(), &after));
	assert_int_equal(after.calls[NT_COUNTER_LAUNCH],
			 before.calls[NT_COUNTER_LAUNCH] + THREADS * CALLS);
	assert_int_equal(harness_stats(h).missed, 0);
}

/* ---- losses ------------------------------------------------------------------------------ */

static void what_is_nested_is_counted_as_unseen(void **state)
{
	struct nt_process_counters before = {0}, after = {0};
	uint16_t row = harness_row("ncclAllReduce", NT_LIBRARY_NCCL);
	struct harness *h = *state;

	(void)nt_attach_counters(h->attach, (uint32_t)getpid(), &before);
	*mpi.hook = call_others;
	(void)stub_call(&mpi, "MPI_Allreduce", args);
	assert_true(nt_attach_counters(h->attach, (uint32_t)getpid(), &after));
	assert_int_equal(after.unseen[row], before.unseen[row] + 1);
}

/* An argument that points nowhere must cost a zero, not the event. */
static void unreadable_memory_reads_as_zero(void **state)
{
	struct harness *h = *state;
	uint64_t wild[STUB_ARGS] = {0};

	wild[3] = 0xdead000000000000;
	(void)stub_call(&mpi, "MPI_Allreduce", wild);
	wild[4] = 8; /* the id of ncclCommInitRankScalable, by pointer */
	(void)stub_call(&nccl, "ncclCommInitRankScalable", wild);
	assert_int_equal(harness_poll(h), 3);
	assert_int_equal(h->event[0].call.deref, 0);
	assert_int_equal(h->event[0].call.word[3], wild[3]);
	for (size_t i = 0; i < NT_ID_BYTES; i++)
		assert_int_equal(h->event[2].id[i], 0);
}

#define IN(mode, test) IN_MODE(mode, test, end)

#define CALL_TESTS(mode)                                                                           \
	IN(mode, calls_made_inside_a_call_are_no_calls_of_the_program),                            \
		IN(mode, counted_calls_are_counted_wherever_they_are_made),                        \
		IN(mode, launches_show_in_the_calls_after_them),                                   \
		IN(mode, a_call_left_by_longjmp_makes_room_for_the_next),                          \
		IN(mode, who_is_inside_a_call_can_be_seen_before_it_returns),                      \
		IN(mode, where_a_main_thread_was_outside_of_calls_can_be_seen),                    \
		IN(mode, the_making_of_a_communicator_shows_before_it_returns),                    \
		IN(mode, a_thread_that_has_ended_is_in_no_call),                                   \
		IN(mode, a_call_that_ends_in_a_jump_to_another_is_not_lost),                       \
		IN(mode, a_call_whose_probes_went_is_over_when_it_returns_and_counted_as_lost),    \
		IN(mode,                                                                           \
		   a_call_whose_probes_went_is_counted_as_lost_when_the_next_takes_its_place),     \
		IN(mode, what_is_nested_is_counted_as_unseen),                                     \
		IN(mode, threads_do_not_get_into_each_others_calls),                               \
		IN(mode, unreadable_memory_reads_as_zero)

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
	r = RUN_IN_MODES(CALL_TESTS);
	stub_clean();
	return r;
}
