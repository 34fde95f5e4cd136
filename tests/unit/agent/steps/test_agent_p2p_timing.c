/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/p2p_timing.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
	LARGE = 1 << 20,
};

static void the_shortest_call_of_each_peer_and_direction_is_kept(void **state)
{
	struct nt_p2p_timing peers = {0};

	(void)state;
	assert_int_equal(nt_p2p_timing_note(&peers, 3, NT_OP_SEND, LARGE, 1, 500), 0);
	assert_int_equal(nt_p2p_timing_note(&peers, 3, NT_OP_SEND, LARGE, 1, 300), 0);
	assert_int_equal(nt_p2p_timing_note(&peers, 3, NT_OP_RECV, LARGE, 1, 900), 0);
	assert_int_equal(nt_p2p_timing_note(&peers, 4, NT_OP_SEND, LARGE, 1, 100), 0);
	assert_int_equal(peers.count, 3);
	assert_int_equal(peers.transfer[0].peer, 3);
	assert_int_equal(peers.transfer[0].calls, 2);
	assert_int_equal(peers.transfer[0].min_ns, 300);
	assert_int_equal(peers.transfer[1].op, NT_OP_RECV);
	assert_int_equal(peers.transfer[1].min_ns, 900);
	assert_int_equal(peers.transfer[2].min_ns, 100);
	nt_p2p_timing_clear(&peers);
	assert_int_equal(peers.count, 0);
	assert_int_equal(nt_p2p_timing_note(&peers, 4, NT_OP_SEND, LARGE, 1, 700), 0);
	assert_int_equal(peers.transfer[0].min_ns, 700);
	assert_int_equal(peers.transfer[0].calls, 1);
	nt_p2p_timing_release(&peers);
}

static void of_several_sizes_the_largest_counts_and_small_ones_never(void **state)
{
	struct nt_p2p_timing peers = {0};

	(void)state;
	assert_int_equal(
		nt_p2p_timing_note(&peers, 3, NT_OP_SEND, NT_P2P_TIMING_LEAST_BYTES - 1, 1, 1), 0);
	assert_int_equal(peers.count, 0);
	assert_int_equal(
		nt_p2p_timing_note(&peers, 3, NT_OP_SEND, NT_P2P_TIMING_LEAST_BYTES, 1, 10), 0);
	assert_int_equal(nt_p2p_timing_note(&peers, 3, NT_OP_SEND, LARGE, 1, 500), 0);
	assert_int_equal(
		nt_p2p_timing_note(&peers, 3, NT_OP_SEND, NT_P2P_TIMING_LEAST_BYTES, 1, 10), 0);
	assert_int_equal(peers.count, 1);
	assert_int_equal(peers.transfer[0].bytes, LARGE);
	assert_int_equal(peers.transfer[0].calls, 1);
	assert_int_equal(peers.transfer[0].min_ns, 500);
	nt_p2p_timing_release(&peers);
}

static void a_peer_beyond_the_cap_is_refused_and_the_others_go_on(void **state)
{
	struct nt_p2p_timing peers = {0};

	(void)state;
	for (uint32_t i = 0; i < NT_P2P_TIMING_MAX; i++)
		assert_int_equal(nt_p2p_timing_note(&peers, i, NT_OP_SEND, LARGE, 1, 5), 0);
	assert_int_equal(nt_p2p_timing_note(&peers, NT_P2P_TIMING_MAX, NT_OP_SEND, LARGE, 1, 5),
			 -ENOSPC);
	assert_int_equal(nt_p2p_timing_note(&peers, 0, NT_OP_RECV, LARGE, 1, 5), -ENOSPC);
	assert_int_equal(nt_p2p_timing_note(&peers, 0, NT_OP_SEND, LARGE, 1, 4), 0);
	assert_int_equal(peers.count, NT_P2P_TIMING_MAX);
	assert_int_equal(peers.transfer[0].min_ns, 4);
	nt_p2p_timing_release(&peers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shortest_call_of_each_peer_and_direction_is_kept),
		cmocka_unit_test(of_several_sizes_the_largest_counts_and_small_ones_never),
		cmocka_unit_test(a_peer_beyond_the_cap_is_refused_and_the_others_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
