/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Ten million random events: of all types, in any order, with handles that are of others, stale or made
 * up, of communicators that have ended, from several threads and after a fork. Nothing may crash or
 * stop, and what is reported must be possible. Times are right in the first half, in which time stands
 * still, as the plugin gives up once they are not.
 */
#include "tests/unit/plugin/nccl/nccl_fake.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	EVENTS = 10000000,
	THREADS = 3,
	HANDLES = 256, /* that are kept, of each kind */
	COMMS = 10000, /* that begin, in turn */
};

struct chance {
	uint64_t seed;
	void *handle[HANDLES];
};

static uint64_t draw(struct chance *chance, uint64_t below)
{
	uint64_t x = chance->seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (x ^ (x >> 31)) % below;
}

static void *contexts[COMMS];
static atomic_int has_wrong_times, is_done;

static void *any_context(struct chance *chance)
{
	return __atomic_load_n(&contexts[draw(chance, COMMS)], __ATOMIC_RELAXED);
}

static uint64_t the_time(void)
{
	return __atomic_load_n(&now_ns, __ATOMIC_RELAXED);
}

static void *any_handle(struct chance *chance)
{
	switch (draw(chance, 8)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(uintptr_t)draw(chance, UINT64_MAX); /* NOLINT(performance-*) */
	case 2:
		return any_context(chance);
	default:
		return chance->handle[draw(chance, HANDLES)];
	}
}

static struct nt_nccl_event any_event(struct chance *chance)
{
	static const char *const functions[] = {"AllReduce", "ReduceScatter", "", NULL};
	struct nt_nccl_event event = {
		.type = draw(chance, 4) ? UINT64_C(1) << draw(chance, 16)
					: draw(chance, UINT64_MAX) << 8,
		.parent = any_handle(chance),
	};

	switch (event.type) {
	case NT_NCCL_COLLECTIVE:
		event.collective.function = functions[draw(chance, 4)];
		event.collective.channels = (uint8_t)draw(chance, 256);
		break;
	case NT_NCCL_P2P:
		event.p2p.channels = (uint8_t)draw(chance, 3);
		break;
	case NT_NCCL_PROXY_OP:
		event.rank = (int)draw(chance, 3) - 1;
		event.proxy_op.pid = (int)getpid() + (draw(chance, 8) == 0);
		event.proxy_op.peer = (int)draw(chance, 100) - 1;
		event.proxy_op.channel = (uint8_t)draw(chance, 2);
		event.proxy_op.is_send = draw(chance, 4) != 0;
		break;
	case NT_NCCL_PROXY_STEP:
		event.proxy_step.step = (int)draw(chance, UINT64_MAX);
		break;
	case NT_NCCL_KERNEL_CHANNEL:
		event.kernel_channel.channel = (uint8_t)draw(chance, 256);
		event.kernel_channel.start = has_wrong_times && draw(chance, 4) == 0
						     ? draw(chance, UINT64_MAX)
						     : the_time();
		break;
	case NT_NCCL_GROUP_API:
		event.group_api.is_captured = draw(chance, 50) == 0;
		break;
	default:
		break;
	}
	return event;
}

static void make_event(struct chance *chance, int version)
{
	const struct nt_nccl_profiler *table = table_of(version);
	static const int states[] = {NT_NCCL_KERNEL_CHANNEL_STOP, NT_NCCL_STEP_SEND_WAIT, 8, 20};
	union nt_nccl_state_args args = {.stop = the_time()};
	struct nt_nccl_event event;
	void *handle = NULL;

	switch (draw(chance, 8)) {
	case 0:
		(void)table->stop(any_handle(chance));
		break;
	case 1:
	case 2:
		(void)table->state(any_handle(chance),
				   draw(chance, 4) ? states[draw(chance, 4)]
						   : (int)draw(chance, 40),
				   draw(chance, 8) ? &args : NULL);
		break;
	default:
		event = any_event(chance);
		(void)table->start(draw(chance, 8) ? any_context(chance) : any_handle(chance),
				   &handle, &event);
		if (handle)
			chance->handle[draw(chance, HANDLES)] = handle;
	}
}

static void *run(void *data)
{
	struct chance *chance = data;

	for (int i = 0; i < EVENTS / THREADS; i++) {
		if (i == EVENTS / THREADS / 2)
			atomic_store(&has_wrong_times, 1);
		make_event(chance, 4 + (int)draw(chance, 4));
	}
	return NULL;
}

/* Communicators come and go, and so does the request. */
static void *turn(void *data)
{
	struct chance *chance = data;

	while (!atomic_load(&is_done)) {
		const uint64_t i = draw(chance, COMMS);
		void *context = NULL;

		(void)ncclProfiler_v6.finalize(contexts[i]);
		(void)init_of(1 + (int)draw(chance, 7), &context);
		__atomic_store_n(&contexts[i], context, __ATOMIC_RELAXED);
		__atomic_store_n(&is_asked, draw(chance, 1000) != 0, __ATOMIC_RELAXED);
		__atomic_store_n(&sends_are_asked, draw(chance, 1000) != 0, __ATOMIC_RELAXED);
		if (has_wrong_times)
			__atomic_add_fetch(&now_ns, MS, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void random_events_harm_nothing(void **state)
{
	static struct chance chance[THREADS + 1];
	pthread_t thread[THREADS + 1];
	int status;
	pid_t pid;

	(void)state;
	for (uint64_t i = 0; i <= THREADS; i++)
		chance[i].seed = 1000 * i;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run, &chance[i]), 0);
	assert_int_equal(pthread_create(&thread[THREADS], NULL, turn, &chance[THREADS]), 0);
	/* A thread may hold the tables at that time: the child must go on without. */
	for (int i = 0; i < 20; i++) {
		pid = fork();
		if (pid == 0) {
			for (int j = 0; j < 1000; j++)
				make_event(&chance[0], 6);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	atomic_store(&is_done, 1);
	assert_int_equal(pthread_join(thread[THREADS], NULL), 0);
	/* Of records about 10,000: how many depends on the turns of the threads. */
	assert_true(records > EVENTS / 10000);
	for (uint32_t i = 0; i < MOST && i < records; i++) {
		assert_in_range(got[i].kind, 1, NT_GPU_RECORD_KIND_END - 1);
		assert_true(got[i].end_ns >= got[i].start_ns);
	}
	assert_true(transfers > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_events_harm_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
