/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events of NCCL in, records for the agent out. */
#include "tests/unit/plugin/nccl/nccl_fake.h"

#include <sys/wait.h>
#include <unistd.h>

static int idle_of(int version)
{
	return version == 4 ? NT_NCCL_GROUP : NT_NCCL_GROUP_API;
}

/* What the plugin keeps of a process is changed for ever by some tests: each has its own. */
static void in_a_process(void (*test)(void))
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		forget();
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void until_it_is_asked_one_event_of_a_call_is_enough(void **state)
{
	static const int masks[] = {
		0, 0, 0, NT_NCCL_GROUP, NT_NCCL_GROUP_API, NT_NCCL_GROUP_API, NT_NCCL_GROUP_API};

	(void)state;
	for (int version = 1; version <= 7; version++) {
		void *context;

		mask = -1;
		context = add_comm(version);
		assert_int_equal(mask, masks[version - 1]);
		begin_call(version, context, 0);
		assert_null(enqueue(version, context, 1));
		assert_int_equal(mask, masks[version - 1]);
		assert_int_equal(table_of(version)->finalize(context), 0);
	}
	assert_int_equal(records, 0);
}

static void a_collective_is_a_call_and_a_kernel(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(windowed) / sizeof(windowed[0]); i++) {
		const int version = windowed[i];
		void *context = add_comm(version), *call, *channel[2];
		const uint64_t called_ns = now_ns;

		forget();
		ask(version, context);
		assert_int_equal(mask, idle_of(version) | ALL);
		call = enqueue(version, context, 2);
		now_ns += 30 * MS;
		channel[0] = begin_channel(version, context, call, 0, now_ns - 20 * MS);
		channel[1] = begin_channel(version, context, call, 1, now_ns - 21 * MS);
		assert_int_equal(table_of(version)->stop(call), 0);
		assert_int_equal(records, 1); /* the begin: the rest is incomplete */
		end_channel(version, channel[1], now_ns - 2 * MS);
		end_channel(version, channel[0], now_ns);
		assert_int_equal(records, 3);
		assert_int_equal(got[0].kind, NT_GPU_RECORD_OPEN);
		assert_int_equal(got[0].start_ns, called_ns);
		assert_int_equal(got[1].kind, NT_GPU_RECORD_LAUNCH);
		assert_int_equal(got[1].start_ns, called_ns);
		assert_int_equal(got[2].kind, NT_GPU_RECORD_COMMUNICATION);
		assert_int_equal(got[2].op, NT_GPU_RECORD_OP_ALL_REDUCE);
		assert_int_equal(got[2].correlation, got[1].correlation);
		assert_int_equal(got[2].start_ns, called_ns + 9 * MS);
		assert_int_equal(got[2].end_ns, called_ns + 30 * MS);
		end_asking(version, context);
		assert_int_equal(mask, idle_of(version));
		table_of(version)->finalize(context);
	}
}

static void an_operation_has_the_name_that_nccl_gives_it(void **state)
{
	static const struct {
		const char *function;
		enum nt_gpu_record_op op;
	} cases[] = {
		{"AllReduce", NT_GPU_RECORD_OP_ALL_REDUCE},
		{"AllGather", NT_GPU_RECORD_OP_ALL_GATHER},
		{"AllGatherV", NT_GPU_RECORD_OP_UNKNOWN},
		{"ReduceScatter", NT_GPU_RECORD_OP_REDUCE_SCATTER},
		{"Broadcast", NT_GPU_RECORD_OP_BROADCAST},
		{"Reduce", NT_GPU_RECORD_OP_REDUCE},
		{"", NT_GPU_RECORD_OP_UNKNOWN},
		{NULL, NT_GPU_RECORD_OP_UNKNOWN},
	};
	void *context = add_comm(5);

	(void)state;
	ask(5, context);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		void *call;

		forget();
		call = start(5, context,
			     (struct nt_nccl_event){
				     .type = NT_NCCL_COLLECTIVE,
				     .collective = {.function = cases[i].function, .channels = 1}});
		now_ns += MS;
		end_channel(5, begin_channel(5, context, call, 0, now_ns), now_ns);
		assert_int_equal(got[1].op, cases[i].op);
	}
	end_asking(5, context);
	table_of(5)->finalize(context);
}

static void a_send_is_a_call_and_a_kernel_too(void **state)
{
	void *context = add_comm(4), *call;

	(void)state;
	forget();
	ask(4, context);
	call = start(4, context,
		     (struct nt_nccl_event){.type = NT_NCCL_P2P,
					    .p2p = {.function = "Send", .peer = 1, .channels = 1}});
	now_ns += MS;
	end_channel(4, begin_channel(4, context, call, 3, now_ns), now_ns);
	assert_int_equal(records, 3);
	assert_int_equal(got[2].op, NT_GPU_RECORD_OP_SEND_RECV);
	end_asking(4, context);
	table_of(4)->finalize(context);
}

/* Calls that overlap are handed over together, and none later than 50 ms after the next event. */
static void records_wait_for_what_is_under_way(void **state)
{
	void *context = add_comm(6), *first, *second;

	(void)state;
	ask(6, context);
	forget();
	first = enqueue(6, context, 1);
	second = enqueue(6, context, 1);
	now_ns += MS;
	end_channel(6, begin_channel(6, context, first, 0, now_ns), now_ns);
	assert_int_equal(records, 0);
	now_ns += 48 * MS;
	begin_call(6, context, 0);
	assert_int_equal(records, 0);
	now_ns += MS;
	begin_call(6, context, 0);
	assert_int_equal(records, 3);
	end_channel(6, begin_channel(6, context, second, 0, now_ns), now_ns);
	assert_int_equal(records, 4);
	assert_int_equal(batches, 2);
	end_asking(6, context);
	table_of(6)->finalize(context);
}

static void what_is_used_late_or_again_is_nothing(void **state)
{
	void *context = add_comm(6), *call, *channel;
	union nt_nccl_state_args args = {.stop = device(now_ns)};

	(void)state;
	forget();
	ask(6, context);
	call = enqueue(6, context, 1);
	channel = begin_channel(6, context, call, 0, now_ns);
	end_channel(6, channel, now_ns);
	assert_int_equal(records, 3);
	/* Once more, each of them, and of the call that has ended. */
	end_channel(6, channel, now_ns + MS);
	assert_null(begin_channel(6, context, call, 1, now_ns));
	assert_int_equal(table_of(6)->stop(call), 0);
	assert_int_equal(table_of(6)->stop(call), 0);
	/* A state of something else, without arguments, of nothing. */
	call = enqueue(6, context, 1);
	channel = begin_channel(6, context, call, 0, now_ns);
	assert_int_equal(table_of(6)->state(channel, NT_NCCL_KERNEL_CHANNEL_STOP, NULL), 0);
	assert_int_equal(table_of(6)->state(channel, 21, &args), 0);
	assert_int_equal(table_of(6)->state(call, NT_NCCL_KERNEL_CHANNEL_STOP, &args), 0);
	assert_int_equal(table_of(6)->state(NULL, NT_NCCL_KERNEL_CHANNEL_STOP, &args), 0);
	assert_int_equal(table_of(6)->stop(NULL), 0);
	assert_int_equal(records, 3);
	/* A channel that no communicator has. */
	assert_null(begin_channel(6, context, call, NT_NCCL_CHANNELS, now_ns));
	/* Of a communicator that has ended. */
	table_of(6)->finalize(context);
	assert_int_equal(table_of(6)->finalize(context), 0);
	assert_null(enqueue(6, context, 1));
	context = add_comm(6);
	end_asking(6, context);
	table_of(6)->finalize(context);
}

static void what_ends_after_the_measurement_is_not_of_the_next(void **state)
{
	void *context = add_comm(6), *call, *channel;

	(void)state;
	ask(6, context);
	call = enqueue(6, context, 2);
	channel = begin_channel(6, context, call, 0, now_ns);
	end_asking(6, context);
	end_channel(6, channel, now_ns);
	forget();
	ask(6, context);
	end_channel(6, begin_channel(6, context, call, 1, now_ns), now_ns);
	assert_int_equal(records, 1);
	assert_int_equal(got[0].kind, NT_GPU_RECORD_OPEN);
	call = enqueue(6, context, 1);
	end_channel(6, begin_channel(6, context, call, 0, now_ns), now_ns);
	assert_int_equal(records, 3);
	assert_int_equal(gaps, 0);
	end_asking(6, context);
	table_of(6)->finalize(context);
}

/* Times of kernels that are switched on in a capture are reported, and paid for, at each replay. */
static void nothing_is_switched_on_near_a_capture(void **state)
{
	void *context = add_comm(5);

	(void)state;
	ask(5, context);
	begin_call(5, context, 1);
	assert_int_equal(mask, NT_NCCL_GROUP_API);
	now_ns += SECOND - 1;
	begin_call(5, context, 0);
	assert_int_equal(mask, NT_NCCL_GROUP_API);
	now_ns += 1;
	begin_call(5, context, 0);
	assert_int_equal(mask, NT_NCCL_GROUP_API | ALL);
	end_asking(5, context);
	/* While nobody asks it costs nothing to see one, and the next measurement sees its own. */
	begin_call(5, context, 1);
	ask(5, context);
	assert_int_equal(mask, NT_NCCL_GROUP_API | ALL);
	end_asking(5, context);
	table_of(5)->finalize(context);
}

static void the_oldest_of_too_many_calls_is_a_gap(void **state)
{
	void *context = add_comm(6), *oldest, *second, *call;

	(void)state;
	ask(6, context);
	forget();
	oldest = enqueue(6, context, 1);
	second = enqueue(6, context, 1);
	for (int i = 2; i < NT_PROFILER_CALLS; i++)
		(void)enqueue(6, context, 1);
	begin_call(6, context, 0);
	assert_int_equal(gaps, 0);
	call = enqueue(6, context, 1);
	assert_null(begin_channel(6, context, oldest, 0, now_ns));
	assert_non_null(begin_channel(6, context, second, 0, now_ns));
	end_channel(6, begin_channel(6, context, call, 0, now_ns), now_ns);
	now_ns += SECOND;
	begin_call(6, context, 0);
	assert_int_equal(gaps, 1);
	assert_int_equal(records, NT_PROFILER_CALLS + 2);
	end_asking(6, context);
	table_of(6)->finalize(context);
}

static void the_calls_of_too_many_communicators_are_gaps(void **state)
{
	static void *contexts[NT_PROFILER_COMMS];

	(void)state;
	for (int i = 0; i < NT_PROFILER_COMMS; i++) {
		contexts[i] = add_comm(6);
		assert_non_null(contexts[i]);
	}
	assert_null(add_comm(6));
	ask(6, contexts[0]);
	forget();
	assert_null(enqueue(6, NULL, 1));
	end_channel(6, begin_channel(6, contexts[0], enqueue(6, contexts[0], 1), 0, now_ns),
		    now_ns);
	assert_int_equal(gaps, 1);
	end_asking(6, contexts[0]);
	/* One that ends makes room. */
	table_of(6)->finalize(contexts[5]);
	contexts[5] = add_comm(6);
	assert_non_null(contexts[5]);
	assert_null(add_comm(6));
	for (int i = 0; i < NT_PROFILER_COMMS; i++)
		table_of(6)->finalize(contexts[i]);
}

/* The host stood still: only what was reported too late is not known. */
static void a_late_report_is_not_used_and_is_no_contradiction(void **state)
{
	void *context = add_comm(6), *call, *channel;

	(void)state;
	ask(6, context);
	end_channel(6, begin_channel(6, context, enqueue(6, context, 1), 0, now_ns), now_ns);
	forget();
	call = enqueue(6, context, 2);
	channel = begin_channel(6, context, call, 0, now_ns);
	now_ns += SECOND;
	end_channel(6, channel, now_ns - SECOND);
	assert_null(begin_channel(6, context, call, 1, now_ns - SECOND));
	call = enqueue(6, context, 1);
	now_ns += SECOND;
	assert_null(begin_channel(6, context, call, 0, now_ns - SECOND));
	call = enqueue(6, context, 1);
	end_channel(6, begin_channel(6, context, call, 0, now_ns), now_ns);
	/* Three calls and one kernel. */
	assert_int_equal(records, 4);
	assert_int_equal(got[3].kind, NT_GPU_RECORD_COMMUNICATION);
	assert_int_equal(got[3].correlation, got[2].correlation);
	assert_int_equal(gaps, 0);
	end_asking(6, context);
	table_of(6)->finalize(context);
}

/* ---- times that contradict each other ---- */

static void expect_given_up(void *context, int result)
{
	const uint32_t last = records;
	void *call;

	assert_int_equal(got[last - 1].kind, NT_GPU_RECORD_GIVEN_UP);
	assert_int_equal((int32_t)got[last - 1].stream, result);
	/* Once, and nothing more is measured in this process. */
	call = enqueue(6, context, 1);
	assert_null(call);
	begin_call(6, context, 0);
	assert_int_equal(mask, NT_NCCL_GROUP_API);
	assert_int_equal(records, last);
	end_asking(6, context);
	ask(6, context);
	assert_int_equal(records, last + 2);
	assert_int_equal(got[last].kind, NT_GPU_RECORD_OPEN);
	assert_int_equal(got[last + 1].kind, NT_GPU_RECORD_GIVEN_UP);
}

static void before_its_call(void)
{
	void *context = add_comm(6), *call;

	ask(6, context);
	call = enqueue(6, context, 1);
	end_channel(6, begin_channel(6, context, call, 0, now_ns), now_ns);
	now_ns += MS;
	call = enqueue(6, context, 1);
	now_ns += MS;
	/* The clock's steps are no contradiction. */
	end_channel(6, begin_channel(6, context, call, 0, now_ns - MS - 50000), now_ns);
	call = enqueue(6, context, 1);
	now_ns += MS;
	assert_null(begin_channel(6, context, call, 1, now_ns - MS - 50001));
	expect_given_up(context, NT_PROFILER_BEFORE_CALL);
}

/* Version 4 has no event of the call, and the kernel may have begun when its own event comes. */
static void long_before_its_event(void)
{
	void *context = add_comm(4), *call;

	ask(4, context);
	call = enqueue(4, context, 1);
	end_channel(4, begin_channel(4, context, call, 0, now_ns), now_ns);
	now_ns += SECOND;
	call = enqueue(4, context, 1);
	end_channel(4, begin_channel(4, context, call, 0, now_ns - 100 * MS), now_ns);
	assert_int_equal(got[records - 1].kind, NT_GPU_RECORD_COMMUNICATION);
	assert_int_equal(got[records - 1].start_ns, now_ns);
	call = enqueue(4, context, 1);
	assert_null(begin_channel(4, context, call, 1, now_ns - 100 * MS - 1));
	assert_int_equal(got[records - 1].kind, NT_GPU_RECORD_GIVEN_UP);
}

static void backwards(void)
{
	void *context = add_comm(6), *call;

	ask(6, context);
	call = enqueue(6, context, 2);
	now_ns += 10 * MS;
	end_channel(6, begin_channel(6, context, call, 0, now_ns - MS), now_ns);
	end_channel(6, begin_channel(6, context, call, 1, now_ns - 2 * MS), now_ns);
	/* Two operations may share a kernel. */
	call = enqueue(6, context, 1);
	now_ns += MS;
	end_channel(6, begin_channel(6, context, call, 0, now_ns), now_ns);
	call = enqueue(6, context, 1);
	end_channel(6, begin_channel(6, context, call, 0, now_ns), now_ns);
	now_ns += MS;
	call = enqueue(6, context, 1);
	assert_null(begin_channel(6, context, call, 0, now_ns - MS - 1));
	expect_given_up(context, NT_PROFILER_BACKWARDS);
}

static void ends_before_it_begins(void)
{
	void *context = add_comm(6), *call, *channel;

	ask(6, context);
	call = enqueue(6, context, 1);
	now_ns += 10 * MS;
	channel = begin_channel(6, context, call, 0, now_ns - MS);
	end_channel(6, channel, now_ns - MS - 1);
	expect_given_up(context, NT_PROFILER_BACKWARDS);
}

static void in_another_unit(void)
{
	void *context = add_comm(6), *call;
	uint64_t ticks = 0;

	ask(6, context);
	for (int i = 0; i < 50 && got[records - 1].kind != NT_GPU_RECORD_GIVEN_UP; i++) {
		call = enqueue(6, context, 1);
		now_ns += 100 * MS;
		ticks += 1000 * MS; /* of 10 GHz */
		end_channel(6, begin_channel(6, context, call, 0, ticks), ticks);
	}
	expect_given_up(context, NT_PROFILER_OTHER_CLOCK);
}

static void times_that_contradict_each_other_are_given_up(void **state)
{
	(void)state;
	in_a_process(before_its_call);
	in_a_process(long_before_its_event);
	in_a_process(backwards);
	in_a_process(ends_before_it_begins);
	in_a_process(in_another_unit);
}

/* ---- several communicators: they have one mask ---- */

static void the_mask_is_set_by_whichever_communicator_is_used(void **state)
{
	void *one = add_comm(6), *two = add_comm(6);

	(void)state;
	forget();
	ask(6, one);
	assert_int_equal(mask, NT_NCCL_GROUP_API | ALL);
	/* A graph is made of a call of the other one, which is used for the first time. */
	begin_call(6, two, 1);
	assert_int_equal(mask, NT_NCCL_GROUP_API);
	now_ns += 2 * SECOND;
	begin_call(6, two, 0);
	assert_int_equal(mask, NT_NCCL_GROUP_API | ALL);
	/* An event of a communicator that is not known ends nothing. */
	is_asked = 0;
	begin_call(6, NULL, 0);
	assert_int_equal(mask, NT_NCCL_GROUP_API | ALL);
	end_asking(6, two);
	assert_int_equal(mask, NT_NCCL_GROUP_API);
	ask(6, one);
	end_asking(6, two);
	assert_int_equal(mask, NT_NCCL_GROUP_API);
	table_of(6)->finalize(two);
	ask(6, one);
	assert_int_equal(mask, NT_NCCL_GROUP_API | ALL);
	end_asking(6, one);
	assert_int_equal(mask, NT_NCCL_GROUP_API);
	table_of(6)->finalize(one);
}

/* ---- NCCL 2.31 and later ---- */

static void from_the_first_communicator_on(void)
{
	void *context, *call, *channel;

	(void)setenv("NEUTRACER_NCCL_KERNELS", "always", 1);
	context = add_comm(7);
	assert_int_equal(mask, NT_NCCL_GROUP_API | ALL);
	call = enqueue(7, context, 1);
	assert_null(call);
	assert_null(begin_channel(7, context, call, 0, now_ns));
	is_asked = 1;
	begin_call(7, context, 1);
	assert_int_equal(mask, NT_NCCL_GROUP_API | ALL);
	call = enqueue(7, context, 1);
	now_ns += MS;
	channel = begin_channel(7, context, call, 0, now_ns);
	end_channel(7, channel, now_ns);
	assert_int_equal(records, 3);
	is_asked = 0;
	begin_call(7, context, 0);
	assert_int_equal(mask, NT_NCCL_GROUP_API | ALL);
	table_of(7)->finalize(context);
}

static void unless_requested_that_alone_is_reported(void)
{
	void *context = add_comm(7);

	assert_int_equal(mask, NT_NCCL_GROUP_API);
	begin_call(7, context, 0);
	assert_int_equal(records, 0);
	is_asked = 1;
	for (int i = 0; i < 10; i++)
		begin_call(7, context, 0);
	assert_null(enqueue(7, context, 1));
	assert_int_equal(records, 1);
	assert_int_equal(got[0].kind, NT_GPU_RECORD_GIVEN_UP);
	assert_int_equal((int32_t)got[0].stream, NT_PROFILER_ON_REQUEST);
	assert_int_equal(mask, NT_NCCL_GROUP_API);
	/* A later agent gets it too. */
	now_ns += 2 * SECOND;
	begin_call(7, context, 0);
	assert_int_equal(records, 2);
	table_of(7)->finalize(context);
}

static void where_windows_mix_up_times_it_is_always_or_never(void **state)
{
	(void)state;
	in_a_process(from_the_first_communicator_on);
	in_a_process(unless_requested_that_alone_is_reported);
}

/*
 * Events come although we asked for none, as another plugin did. Those of versions 1 to 3 are laid out
 * otherwise: where later ones have the name of the function they have a hash.
 */
static void where_nothing_is_measured_no_event_is_read(void **state)
{
	static const int versions[] = {1, 2, 3};

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		void *context = add_comm(versions[i]);
		struct nt_nccl_event event = {.type = NT_NCCL_COLLECTIVE,
					      .collective = {.channels = 1}};
		const uint64_t hash = 0x1234;

		forget();
		(void)memcpy(&event.collective.function, &hash, sizeof(hash));
		is_asked = 1;
		assert_null(start(versions[i], context, event));
		assert_null(start(versions[i], NULL, event));
		is_asked = 0;
		assert_null(start(versions[i], context, event));
		assert_int_equal(records, 0);
		table_of(versions[i])->finalize(context);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(until_it_is_asked_one_event_of_a_call_is_enough),
		cmocka_unit_test(a_collective_is_a_call_and_a_kernel),
		cmocka_unit_test(an_operation_has_the_name_that_nccl_gives_it),
		cmocka_unit_test(a_send_is_a_call_and_a_kernel_too),
		cmocka_unit_test(records_wait_for_what_is_under_way),
		cmocka_unit_test(what_is_used_late_or_again_is_nothing),
		cmocka_unit_test(what_ends_after_the_measurement_is_not_of_the_next),
		cmocka_unit_test(nothing_is_switched_on_near_a_capture),
		cmocka_unit_test(the_oldest_of_too_many_calls_is_a_gap),
		cmocka_unit_test(the_calls_of_too_many_communicators_are_gaps),
		cmocka_unit_test(a_late_report_is_not_used_and_is_no_contradiction),
		cmocka_unit_test(where_nothing_is_measured_no_event_is_read),
		cmocka_unit_test(times_that_contradict_each_other_are_given_up),
		cmocka_unit_test(the_mask_is_set_by_whichever_communicator_is_used),
		cmocka_unit_test(where_windows_mix_up_times_it_is_always_or_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
