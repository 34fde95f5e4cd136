/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events of NCCL's proxies in, how long the network takes for what they send out. */
#include "tests/unit/plugin/nccl/nccl_fake.h"

#include <unistd.h>

#include "plugin/nccl/proxy_send.h"

static int is_refused = 1; /* each send, once */

static struct nt_nccl_event op_to(int peer, uint8_t channel)
{
	return (struct nt_nccl_event){.type = NT_NCCL_PROXY_OP,
				      .rank = 0,
				      .proxy_op = {.pid = (int)getpid(),
						   .channel = channel,
						   .peer = peer,
						   .steps = 16,
						   .is_send = 1}};
}

static void *begin_step(int version, void *context, void *op, int step)
{
	return start(version, context,
		     (struct nt_nccl_event){.type = NT_NCCL_PROXY_STEP,
					    .parent = op,
					    .rank = 0,
					    .proxy_step = {.step = step}});
}

/* The network has it. Before that the step waited for its GPU and for its peer. */
static void take_step(int version, void *step, size_t bytes)
{
	union nt_nccl_state_args args = {.bytes = 0};

	assert_int_equal(table_of(version)->state(step, 8, &args), 0);
	assert_int_equal(table_of(version)->state(step, NT_NCCL_STEP_PEER_WAIT, &args), 0);
	now_ns += 7 * MS;
	if (is_refused)
		assert_int_equal(table_of(version)->state(step, NT_NCCL_STEP_PEER_WAIT, &args), 0);
	args.bytes = bytes;
	assert_int_equal(table_of(version)->state(step, NT_NCCL_STEP_SEND_WAIT, &args), 0);
}

static void send_bytes(int version, void *context, int peer, size_t bytes, uint64_t ns)
{
	void *op = start(version, context, op_to(peer, 0)),
	     *step = begin_step(version, context, op, 0);

	take_step(version, step, bytes);
	now_ns += ns;
	table_of(version)->stop(step);
	table_of(version)->stop(op);
}

static void ask_for_sends(int version, void *context)
{
	sends_are_asked = 1;
	begin_call(version, context, 0);
	forget();
}

static void end_asking_for_sends(int version, void *context)
{
	sends_are_asked = 0;
	begin_call(version, context, 0);
}

static void report(int version, void *context)
{
	now_ns += SECOND;
	begin_call(version, context, 0);
}

/* A network that takes all at once holds it until a slow receiver has read it. The first test: it is so once. */
static void until_a_send_was_refused_nothing_is_reported(void **state)
{
	void *context = add_comm(6);

	(void)state;
	ask_for_sends(6, context);
	is_refused = 0;
	for (int i = 0; i < 10; i++)
		send_bytes(6, context, 2, 1 << 20, MS);
	report(6, context);
	assert_int_equal(transfers, 0);
	is_refused = 1;
	send_bytes(6, context, 2, 1 << 20, MS);
	report(6, context);
	assert_int_equal(transfers, 1);
	end_asking_for_sends(6, context);
	table_of(6)->finalize(context);
}

static void of_a_send_the_time_in_the_network_is_measured(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(windowed) / sizeof(windowed[0]); i++) {
		const int version = windowed[i];
		void *context = add_comm(version);
		struct nt_gpu_transfer transfer;

		ask_for_sends(version, context);
		send_bytes(version, context, 2, 4096, MS / 10);
		send_bytes(version, context, 2, 1 << 20, 3 * MS);
		send_bytes(version, context, 2, 1 << 20, 2 * MS);
		send_bytes(version, context, 2, 4096, MS / 10);
		send_bytes(version, context, 2, 1 << 20, 5 * MS);
		assert_int_equal(transfers, 0);
		report(version, context);
		assert_int_equal(transfers, 1);
		transfer = sent[0];
		assert_int_equal(transfer.comm, 7);
		assert_int_equal(transfer.rank, 0);
		assert_int_equal(transfer.peer, 2);
		assert_int_equal(transfer.bytes, 1 << 20);
		assert_int_equal(transfer.sends, 3);
		assert_int_equal(transfer.shortest_ns, 2 * MS);
		assert_int_equal(transfer.busy_ns, 10 * MS);
		end_asking_for_sends(version, context);
		table_of(version)->finalize(context);
	}
}

static void sends_that_are_under_way_together_are_busy_once(void **state)
{
	void *context = add_comm(6), *op, *step[2];
	struct nt_gpu_transfer transfer;

	(void)state;
	ask_for_sends(6, context);
	op = start(6, context, op_to(2, 0));
	step[0] = begin_step(6, context, op, 8);
	step[1] = begin_step(6, context, op, 9);
	take_step(6, step[0], 1 << 20);
	take_step(6, step[1], 1 << 20);
	now_ns += 3 * MS;
	table_of(6)->stop(step[0]);
	now_ns += MS;
	table_of(6)->stop(step[1]);
	/* Twice, and of a slot without a new step: nothing of it. */
	table_of(6)->stop(step[1]);
	report(6, context);
	transfer = sent[0];
	assert_int_equal(transfer.sends, 2);
	assert_int_equal(transfer.shortest_ns, 4 * MS);
	assert_int_equal(transfer.busy_ns, 11 * MS);
	end_asking_for_sends(6, context);
	table_of(6)->finalize(context);
}

static void one_channel_of_a_peer_is_measured(void **state)
{
	void *context = add_comm(6), *op, *other;
	struct nt_nccl_event receive = op_to(2, 3), foreign = op_to(2, 3), nobody = op_to(-1, 3),
			     other_rank = op_to(2, 3);

	(void)state;
	ask_for_sends(6, context);
	op = start(6, context, op_to(2, 3));
	assert_non_null(op);
	assert_null(start(6, context, op_to(2, 4)));
	other = start(6, context, op_to(5, 4));
	assert_non_null(other);
	assert_ptr_not_equal(op, other);
	/* Nor what is received, nor what this process sends for another one. */
	receive.proxy_op.is_send = 0;
	foreign.proxy_op.pid++;
	assert_null(start(6, context, receive));
	assert_null(start(6, context, foreign));
	assert_null(start(6, context, nobody));
	other_rank.rank = 1;
	assert_null(start(6, context, other_rank));
	assert_null(begin_step(6, context, NULL, 0));
	end_asking_for_sends(6, context);
	/* The next measurement has its own. */
	ask_for_sends(6, context);
	assert_non_null(start(6, context, op_to(2, 4)));
	end_asking_for_sends(6, context);
	assert_null(start(6, context, op_to(2, 4)));
	table_of(6)->finalize(context);
}

static void sends_to_too_many_peers_are_counted(void **state)
{
	void *context = add_comm(6);
	struct nt_gpu_transfer transfer;

	(void)state;
	ask_for_sends(6, context);
	for (int i = 0; i < NT_PROXY_SEND_PEERS; i++)
		assert_non_null(start(6, context, op_to(i, 0)));
	assert_null(start(6, context, op_to(NT_PROXY_SEND_PEERS, 0)));
	assert_null(start(6, context, op_to(NT_PROXY_SEND_PEERS, 0)));
	assert_non_null(start(6, context, op_to(0, 0)));
	forget();
	report(6, context);
	assert_int_equal(transfers, 1);
	transfer = sent[0];
	assert_int_equal(transfer.peer, NT_GPU_NO_PEER);
	assert_int_equal(transfer.sends, 2);
	end_asking_for_sends(6, context);
	table_of(6)->finalize(context);
}

/* More are under way than are kept: of the oldest nothing more is measured. */
static void a_step_of_an_operation_that_is_forgotten_is_nothing(void **state)
{
	void *context = add_comm(6), *oldest, *step;

	(void)state;
	ask_for_sends(6, context);
	oldest = start(6, context, op_to(2, 0));
	step = begin_step(6, context, oldest, 0);
	take_step(6, step, 1 << 20);
	for (int i = 0; i < NT_PROXY_SEND_OPS; i++)
		assert_non_null(start(6, context, op_to(2, 0)));
	table_of(6)->stop(step);
	take_step(6, step, 1 << 20);
	table_of(6)->stop(step);
	forget();
	report(6, context);
	assert_int_equal(transfers, 0);
	end_asking_for_sends(6, context);
	table_of(6)->finalize(context);
}

/* They are measured whatever is known of kernels, and nothing else is. */
static void sends_have_a_window_of_their_own(void **state)
{
	static const int versions[] = {4, 5, 6, 7};

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		const int version = versions[i],
			  idle = version == 4 ? NT_NCCL_GROUP : NT_NCCL_GROUP_API;
		void *context = add_comm(version);

		assert_int_equal(mask, idle);
		ask_for_sends(version, context);
		assert_int_equal(mask, idle | PROXIES);
		/* It comes unasked for, as the parent of what a proxy sends. */
		assert_null(enqueue(version, context, 1));
		send_bytes(version, context, 3, 1 << 20, MS);
		report(version, context);
		assert_int_equal(transfers, 1);
		assert_int_equal(records, 0);
		end_asking_for_sends(version, context);
		assert_int_equal(mask, idle);
		/* Nor are they with kernels. */
		ask(version, context);
		assert_int_equal(mask & PROXIES, 0);
		assert_null(start(version, context, op_to(2, 0)));
		end_asking(version, context);
		table_of(version)->finalize(context);
	}
	for (int version = 1; version <= 3; version++) {
		void *context = add_comm(version);

		ask_for_sends(version, context);
		assert_int_equal(mask, 0);
		assert_null(start(version, context, op_to(2, 0)));
		end_asking_for_sends(version, context);
		table_of(version)->finalize(context);
	}
}

static void they_are_not_switched_on_near_a_capture(void **state)
{
	void *context = add_comm(6);

	(void)state;
	ask_for_sends(6, context);
	begin_call(6, context, 1);
	assert_int_equal(mask, NT_NCCL_GROUP_API);
	now_ns += SECOND;
	begin_call(6, context, 0);
	assert_int_equal(mask, NT_NCCL_GROUP_API | PROXIES);
	end_asking_for_sends(6, context);
	table_of(6)->finalize(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(until_a_send_was_refused_nothing_is_reported),
		cmocka_unit_test(of_a_send_the_time_in_the_network_is_measured),
		cmocka_unit_test(sends_that_are_under_way_together_are_busy_once),
		cmocka_unit_test(one_channel_of_a_peer_is_measured),
		cmocka_unit_test(sends_to_too_many_peers_are_counted),
		cmocka_unit_test(a_step_of_an_operation_that_is_forgotten_is_nothing),
		cmocka_unit_test(sends_have_a_window_of_their_own),
		cmocka_unit_test(they_are_not_switched_on_near_a_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
