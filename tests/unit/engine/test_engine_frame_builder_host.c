/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a window states of its host, its ports and its GPU, on its way into frames. */
#include "tests/unit/engine/frame_feed.h"

/* The n-th window of a rank. */
static struct feed_window window_at(uint64_t n)
{
	return (struct feed_window){
		.size = 1,
		.from_ms = 520 * n,
		.to_ms = 520 * (n + 1),
		.steps = 10,
		.own_ms = 30,
		.step_ms = 52,
		.comm = 0xabc,
		.last = 10 * (n + 1),
	};
}

static void push_with_transfers(struct feed_agent *agent, size_t transfers)
{
	static struct nt_transfer transfer[NT_WIRE_MAX_TRANSFERS];

	for (uint64_t n = 0; n < 20; n++) {
		const struct feed_window window = window_at(n);
		struct nt_message *message = feed_window(agent, &window);
		struct nt_message copy = *message;

		for (size_t i = 0; i < transfers; i++)
			transfer[i] = (struct nt_transfer){
				.comm = 0xabc,
				.calls = 10,
				.bytes = 1 << 20,
				.min_ns = 5 * MS,
				.peer = 3,
				/* What is neither is of no use. */
				.op = i == 0   ? NT_OP_BARRIER
				      : i == 3 ? NT_OP_PUT
				      : i % 2  ? NT_OP_SEND
					       : NT_OP_RECV,
			};
		copy.window.transfer = transfer;
		copy.window.transfers = transfers;
		copy.window.host.nic_retransmits = 7;
		copy.window.host.nic_errors = 8;
		copy.window.host.nic_congestion = 9;
		copy.window.host.gpu_thermal_ns = 11;
		copy.window.host.gpu_power_ns = 12;
		copy.window.host.gpu_hardware_ns = 13;
		copy.window.host.gpu_uncorrected = 14;
		copy.window.host.gpu_xids = 15;
		copy.window.host.gpu_last_xid = 94;
		copy.window.host.gpu_activity_ns = 16;
		copy.window.host.gpu_sm_ns = 17;
		copy.window.host.gpu_tensor_ns = 18;
		push(feed_copy(&copy));
		nt_message_free(message);
	}
}

static void times_by_peer_and_counters_of_ports_reach_the_frame(void **state)
{
	struct feed_agent agent = feed_agent("n1", "job");
	size_t windows;

	(void)state;
	push_with_transfers(&agent, 3);
	assert_true(frames > 5);
	windows = last_rank[0].transfers / 2; /* a cell may hold more than one */
	assert_in_range(windows, 1, 2);
	assert_int_equal(last_rank[0].transfers, 2 * windows);
	assert_true(last_transfer.comm == 0xabc);
	assert_int_equal(last_transfer.calls, 10);
	assert_int_equal(last_transfer.bytes, 1 << 20);
	assert_int_equal(last_transfer.min_ns, 5 * MS);
	assert_int_equal(last_transfer.peer, 3);
	assert_false(last_transfer.sends);
	assert_false(last_transfer.in_network);
	assert_int_equal(last_rank[0].on_cpu_ns, 5 * MS * windows);
	assert_int_equal(last_rank[0].nic_retransmits, 7 * windows);
	assert_int_equal(last_rank[0].nic_errors, 8 * windows);
	assert_int_equal(last_rank[0].nic_congestion, 9 * windows);
	assert_int_equal(last_rank[0].gpu_thermal_ns, 11 * windows);
	assert_int_equal(last_rank[0].gpu_power_ns, 12 * windows);
	assert_int_equal(last_rank[0].gpu_hardware_ns, 13 * windows);
	assert_int_equal(last_rank[0].gpu_uncorrected, 14 * windows);
	assert_int_equal(last_rank[0].gpu_xids, 15 * windows);
	assert_int_equal(last_rank[0].gpu_last_xid, 94);
	assert_int_equal(last_rank[0].gpu_activity_ns, 16 * windows);
	assert_int_equal(last_rank[0].gpu_sm_ns, 17 * windows);
	assert_int_equal(last_rank[0].gpu_tensor_ns, 18 * windows);
}

static void what_proxies_sent_waited_for_nobody(void **state)
{
	struct feed_agent agent = feed_agent("n1", "job");

	(void)state;
	push_with_transfers(&agent, 4);
	assert_true(frames > 5);
	assert_int_equal(last_rank[0].transfers % 3, 0);
	assert_true(last_transfer.sends);
	assert_true(last_transfer.in_network);
}

static void times_by_peer_beyond_the_cap_are_dropped_and_counted(void **state)
{
	struct feed_agent agent = feed_agent("n1", "job");

	(void)state;
	push_with_transfers(&agent, NT_FRAME_MAX_TRANSFERS + 1 + 5);
	assert_true(frames > 5);
	assert_int_equal(last_rank[0].transfers, NT_FRAME_MAX_TRANSFERS);
	assert_true(nt_engine_frame_builder_counters(engine)->dropped_transfers >= 5 * frames);
}

/* Of two windows in a frame the one with an error may be the first or the second. */
static void the_last_error_of_a_gpu_outlives_a_window_without_one(void **state)
{
	struct feed_agent agent = feed_agent("n1", "job");
	size_t of_two = 0;

	(void)state;
	for (uint64_t n = 0; n < 40; n++) {
		const struct feed_window window = window_at(n);
		struct nt_message *message = feed_window(&agent, &window);
		struct nt_message copy = *message;
		const size_t before = frames;

		copy.window.host.gpu_xids = n % 2 ? 0 : 1;
		copy.window.host.gpu_last_xid = n % 2 ? 0 : 94;
		push(feed_copy(&copy));
		nt_message_free(message);
		if (frames == before || !last_rank[0].gpu_xids)
			continue;
		assert_int_equal(last_rank[0].gpu_last_xid, 94);
		of_two += last_rank[0].steps == 20;
	}
	assert_true(of_two >= 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(times_by_peer_and_counters_of_ports_reach_the_frame),
		TEST(what_proxies_sent_waited_for_nobody),
		TEST(times_by_peer_beyond_the_cap_are_dropped_and_counted),
		TEST(the_last_error_of_a_gpu_outlives_a_window_without_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
