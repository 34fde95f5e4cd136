/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/links/job_links.h"

#define SECOND_NS 1000000000ULL

/* One queue pair, connected, with some traffic. */
static struct nt_rdma_pair pair_of(uint32_t qpn, const char *local, uint32_t remote_qpn,
				   const char *remote)
{
	return (struct nt_rdma_pair){
		.qpn = qpn,
		.remote_qpn = remote_qpn,
		.local_gid = local,
		.remote_gid = remote,
		.device = "mlx5_0",
		.writes = 10,
		.write_bytes = 1000,
		.completions = 8,
		.errors = 2,
		.error_status = 12,
		.timed = 8,
		.latency_ns = 800,
		.latency_least_ns = 50,
		.latency_most_ns = 200,
	};
}

static void take(struct nt_rank_links **links, const struct nt_rdma_pair *pair, size_t pairs,
		 uint64_t end_ns)
{
	const struct nt_window window = {.rdma = {.pair = (struct nt_rdma_pair *)pair,
						  .pair_count = pairs,
						  .pairs = (uint32_t)pairs,
						  .observed_ns = SECOND_NS / 2}};

	assert_int_equal(nt_rank_links_take(links, &window, end_ns), 0);
}

static size_t join(const struct nt_rank_links *const *links, size_t ranks,
		   struct nt_job_link **ret_link)
{
	uint64_t over_cap;
	size_t count;

	assert_int_equal(nt_job_links_join(links, ranks, ret_link, &count, &over_cap), 0);
	assert_int_equal(over_cap, 0);
	return count;
}

static void two_ends_are_a_link_in_each_direction(void **state)
{
	const struct nt_rdma_pair a = pair_of(1, "fe80::1", 2, "fe80::2");
	struct nt_rdma_pair b = pair_of(2, "fe80::2", 1, "fe80::1");
	struct nt_rank_links *links[2] = {NULL};
	struct nt_job_link *link;

	(void)state;
	b.write_bytes = 0;
	take(&links[0], &a, 1, SECOND_NS);
	take(&links[1], &b, 1, SECOND_NS);
	assert_int_equal(join((const struct nt_rank_links *const *)links, 2, &link), 2);
	assert_true(link[0].rank == 0 && link[0].has_peer && link[0].peer == 1);
	assert_true(link[1].rank == 1 && link[1].has_peer && link[1].peer == 0);
	assert_true(link[0].bytes_per_s == 2000);
	assert_true(link[0].requests_per_s == 20);
	assert_int_equal(link[0].sums.errors, 2);
	assert_int_equal(link[0].error_status, 12);
	assert_int_equal(link[0].sums.latency_ns, 800);
	assert_int_equal(link[0].sums.least_ns, 50);
	assert_int_equal(link[0].sums.most_ns, 200);
	assert_true(link[1].bytes_per_s == 0);
	free(link);
	nt_rank_links_free(links[0]);
	nt_rank_links_free(links[1]);
}

/* The same numbers on all nodes, as drivers give them. */
static void equal_numbers_are_told_apart_by_address(void **state)
{
	enum { RANKS = 8 };
	char local[RANKS][16];
	struct nt_rank_links *links[RANKS] = {NULL};
	struct nt_job_link *link;
	size_t count;

	(void)state;
	for (int i = 0; i < RANKS; i++)
		(void)snprintf(local[i], sizeof(local[i]), "fe80::%x", i + 1);
	for (int i = 0; i < RANKS; i++) {
		const struct nt_rdma_pair pair = pair_of(7, local[i], 7, local[(i + 1) % RANKS]);

		take(&links[i], &pair, 1, SECOND_NS);
	}
	/* Rank i says i + 1, but that one says i + 2: neither is believed. */
	count = join((const struct nt_rank_links *const *)links, RANKS, &link);
	assert_int_equal(count, RANKS);
	for (size_t i = 0; i < count; i++)
		assert_false(link[i].has_peer);
	free(link);
	/* In pairs they agree. */
	for (int i = 0; i < RANKS; i++) {
		const struct nt_rdma_pair pair = pair_of(9, local[i], 9, local[i ^ 1]);

		nt_rank_links_free(links[i]);
		links[i] = NULL;
		take(&links[i], &pair, 1, SECOND_NS);
	}
	count = join((const struct nt_rank_links *const *)links, RANKS, &link);
	assert_int_equal(count, RANKS);
	for (uint32_t i = 0; i < count; i++)
		assert_true(link[i].has_peer && link[i].peer == (link[i].rank ^ 1));
	free(link);
	for (int i = 0; i < RANKS; i++)
		nt_rank_links_free(links[i]);
}

static void one_end_that_knows_names_both(void **state)
{
	const struct nt_rdma_pair knows = pair_of(1, "fe80::1", 2, "fe80::2");
	const struct nt_rdma_pair from_before = pair_of(2, "", 0, "");
	struct nt_rank_links *links[2] = {NULL};
	struct nt_job_link *link;

	(void)state;
	take(&links[0], &knows, 1, SECOND_NS);
	take(&links[1], &from_before, 1, SECOND_NS);
	assert_int_equal(join((const struct nt_rank_links *const *)links, 2, &link), 2);
	assert_true(link[0].has_peer && link[0].peer == 1);
	assert_true(link[1].has_peer && link[1].peer == 0);
	free(link);
	nt_rank_links_free(links[0]);
	nt_rank_links_free(links[1]);
}

static void a_peer_outside_of_the_job_keeps_its_address(void **state)
{
	struct nt_rdma_pair pairs[2] = {pair_of(1, "fe80::1", 2, "2001::9"),
					pair_of(2, "fe80::1", 3, "")};
	struct nt_rank_links *links[1] = {NULL};
	struct nt_job_link *link;

	(void)state;
	pairs[1].remote_lid = 7;
	take(&links[0], pairs, 2, SECOND_NS);
	assert_int_equal(join((const struct nt_rank_links *const *)links, 1, &link), 2);
	assert_false(link[0].has_peer || link[1].has_peer);
	assert_string_equal(link[0].remote, "2001::9");
	assert_string_equal(link[1].remote, "lid 7");
	free(link);
	nt_rank_links_free(links[0]);
}

static void what_is_not_visible_has_no_figures(void **state)
{
	struct nt_rdma_pair pair = pair_of(1, "fe80::1", 2, "fe80::2");
	struct nt_rank_links *links[1] = {NULL};
	struct nt_job_link *link;

	(void)state;
	pair.not_visible = true;
	take(&links[0], &pair, 1, SECOND_NS);
	assert_int_equal(join((const struct nt_rank_links *const *)links, 1, &link), 1);
	assert_int_equal(link[0].pairs_not_visible, 1);
	assert_true(link[0].bytes_per_s < 0);
	free(link);
	nt_rank_links_free(links[0]);
}

static void figures_are_of_the_last_minutes(void **state)
{
	const struct nt_rdma_pair pair = pair_of(1, "fe80::1", 2, "fe80::2");
	const struct nt_window empty = {.rdma = {.pairs = 1}};
	struct nt_rank_links *links = NULL;

	(void)state;
	assert_int_equal(nt_rank_links_take(&links, &(struct nt_window){0}, 1), 0);
	assert_null(links); /* it uses none */
	take(&links, &pair, 1, SECOND_NS);
	take(&links, &pair, 1, 61 * SECOND_NS);
	assert_int_equal(nt_rank_pair_sums(&links->pair[0]).requests, 20);
	take(&links, &pair, 1, 121 * SECOND_NS);
	assert_int_equal(nt_rank_pair_sums(&links->pair[0]).requests, 20); /* the first is old */
	assert_int_equal(nt_rank_links_take(&links, &empty, 182 * SECOND_NS), 0);
	assert_int_equal(links->pairs, 1);
	assert_int_equal(nt_rank_links_take(&links, &empty, 243 * SECOND_NS), 0);
	assert_int_equal(links->pairs, 0); /* not stated for two minutes */
	nt_rank_links_free(links);
}

static void a_number_that_is_used_anew_begins_anew(void **state)
{
	const struct nt_rdma_pair before = pair_of(1, "fe80::1", 2, "fe80::2");
	const struct nt_rdma_pair now = pair_of(1, "fe80::1", 3, "fe80::3");
	struct nt_rank_links *links = NULL;

	(void)state;
	take(&links, &before, 1, SECOND_NS);
	take(&links, &now, 1, 2 * SECOND_NS);
	assert_int_equal(links->pairs, 1);
	assert_string_equal(links->pair[0].remote, "fe80::3");
	assert_int_equal(nt_rank_pair_sums(&links->pair[0]).requests, 10);
	nt_rank_links_free(links);
}

/* ---- TCP ------------------------------------------------------------------------------------- */

static struct nt_tcp_socket socket_of(const char *local, uint32_t local_port, const char *remote,
				      uint32_t remote_port)
{
	return (struct nt_tcp_socket){
		.local = local,
		.local_port = local_port,
		.remote = remote,
		.remote_port = remote_port,
		.sent_bytes = 5000,
		.segments = 100,
		.retransmits = 4,
		.rtt_ns = 30000,
	};
}

static void take_sockets(struct nt_rank_links **links, const struct nt_tcp_socket *sockets,
			 size_t count, uint64_t end_ns)
{
	const struct nt_window window = {.tcp = {.socket = (struct nt_tcp_socket *)sockets,
						 .socket_count = count,
						 .sockets = (uint32_t)count,
						 .observed_ns = 10 * SECOND_NS}};

	assert_int_equal(nt_rank_links_take(links, &window, end_ns), 0);
}

/* Rank 0 listens; the others are on one node, and rank 2 has two connections. */
static void sockets_of_two_ranks_are_a_link_in_each_direction(void **state)
{
	const struct nt_tcp_socket accepted[] = {
		socket_of("10.0.0.1", 7000, "10.0.0.2", 41000),
		socket_of("10.0.0.1", 7000, "10.0.0.2", 41001),
		socket_of("10.0.0.1", 7000, "10.0.0.2", 41002),
		socket_of("10.0.0.1", 41000, "10.9.9.9", 2049),
		socket_of("10.0.0.1", 41001, "10.9.9.9", 2049),
	};
	const struct nt_tcp_socket one = socket_of("10.0.0.2", 41000, "10.0.0.1", 7000);
	const struct nt_tcp_socket two[] = {socket_of("10.0.0.2", 41001, "10.0.0.1", 7000),
					    socket_of("10.0.0.2", 41002, "10.0.0.1", 7000)};
	struct nt_rank_links *links[3] = {NULL};
	struct nt_job_link *link;

	(void)state;
	take_sockets(&links[0], accepted, 5, SECOND_NS);
	take_sockets(&links[1], &one, 1, SECOND_NS);
	take_sockets(&links[2], two, 2, SECOND_NS);
	take_sockets(&links[2], two, 2, 11 * SECOND_NS);
	assert_int_equal(join((const struct nt_rank_links *const *)links, 3, &link), 5);
	assert_true(link[0].rank == 0 && link[0].has_peer && link[0].peer == 1);
	assert_true(link[1].rank == 0 && link[1].has_peer && link[1].peer == 2);
	assert_true(link[2].rank == 0 && !link[2].has_peer && link[2].pairs == 2);
	assert_string_equal(link[2].remote, "10.9.9.9");
	assert_true(link[3].rank == 1 && link[3].has_peer && link[3].peer == 0);
	assert_true(link[4].rank == 2 && link[4].has_peer && link[4].peer == 0);
	assert_int_equal(link[4].transport, NT_LINK_TCP);
	assert_int_equal(link[4].pairs, 2);
	assert_int_equal(link[4].sums.bytes, 20000);
	assert_int_equal(link[4].sums.segments, 400);
	assert_int_equal(link[4].sums.retransmits, 16);
	assert_int_equal(link[4].sums.latency_ns / link[4].sums.timed, 30000);
	assert_true(link[4].bytes_per_s == 1000 && link[4].requests_per_s < 0);
	free(link);
	for (int i = 0; i < 3; i++)
		nt_rank_links_free(links[i]);
}

static void a_process_has_no_link_with_itself(void **state)
{
	const struct nt_tcp_socket ends[] = {socket_of("127.0.0.1", 5000, "127.0.0.1", 6000),
					     socket_of("127.0.0.1", 6000, "127.0.0.1", 5000)};
	struct nt_rank_links *links[1] = {NULL};
	struct nt_job_link *link;

	(void)state;
	take_sockets(&links[0], ends, 2, SECOND_NS);
	assert_int_equal(join((const struct nt_rank_links *const *)links, 1, &link), 0);
	free(link);
	nt_rank_links_free(links[0]);
}

/* Ports of loopback repeat on other nodes. A queue pair's number may be a port. */
static void what_two_ranks_state_alike_names_none(void **state)
{
	const struct nt_tcp_socket a = socket_of("127.0.0.1", 5000, "127.0.0.1", 6000);
	const struct nt_tcp_socket b = socket_of("127.0.0.1", 6000, "127.0.0.1", 5000);
	const struct nt_rdma_pair pair = pair_of(6000, "127.0.0.1", 5000, "127.0.0.1");
	struct nt_rank_links *links[3] = {NULL};
	struct nt_job_link *link;

	(void)state;
	take_sockets(&links[0], &a, 1, SECOND_NS);
	take(&links[1], &pair, 1, SECOND_NS);
	assert_int_equal(join((const struct nt_rank_links *const *)links, 2, &link), 2);
	assert_false(link[0].has_peer || link[1].has_peer);
	free(link);
	take_sockets(&links[1], &b, 1, SECOND_NS);
	take_sockets(&links[2], &b, 1, SECOND_NS);
	assert_int_equal(join((const struct nt_rank_links *const *)links, 3, &link), 4);
	assert_true(link[0].rank == 0 && !link[0].has_peer);
	free(link);
	for (int i = 0; i < 3; i++)
		nt_rank_links_free(links[i]);
}

/* ---- caps ------------------------------------------------------------------------------------ */

static void queue_pairs_of_a_rank_are_capped_and_counted(void **state)
{
	struct nt_rank_links *links = NULL;

	(void)state;
	for (uint32_t i = 0; i < NT_RANK_LINKS_PAIRS + 3; i++) {
		const struct nt_rdma_pair pair = pair_of(i, "fe80::1", 1, "fe80::2");

		take(&links, &pair, 1, SECOND_NS);
	}
	assert_int_equal(links->pairs, NT_RANK_LINKS_PAIRS);
	assert_int_equal(links->pairs_over_cap, 1); /* of the last window */
	nt_rank_links_free(links);
}

static void sockets_of_a_rank_are_capped_and_counted_beside_queue_pairs(void **state)
{
	struct nt_rank_links *links = NULL;

	(void)state;
	for (uint32_t i = 0; i < NT_RANK_LINKS_PAIRS + 2; i++) {
		const struct nt_rdma_pair pair = pair_of(i, "fe80::1", 1, "fe80::2");
		const struct nt_tcp_socket socket = socket_of("10.0.0.1", i, "10.0.0.2", 7000);

		take(&links, &pair, 1, SECOND_NS);
		take_sockets(&links, &socket, 1, SECOND_NS);
	}
	assert_int_equal(links->pairs, 2 * NT_RANK_LINKS_PAIRS);
	assert_int_equal(links->sockets_over_cap, 1); /* of the last window */
	assert_int_equal(links->pairs_over_cap, 1);
	nt_rank_links_free(links);
}

/* The same end, stated by many ranks: that is not quadratic either. */
static void hostile_sockets_name_none_and_ends_of_a_job_are_capped(void **state)
{
	enum { RANKS = NT_JOB_LINKS_ENDS / NT_RANK_LINKS_PAIRS + 1 };
	const struct nt_rank_links *rank[RANKS];
	struct nt_tcp_socket socket = socket_of("10.0.0.1", 7, "10.0.0.1", 7);
	struct nt_rank_links *links = NULL;
	struct nt_job_link *link;
	char remote[NT_RANK_LINKS_PAIRS][24];
	uint64_t over_cap;
	size_t count;

	(void)state;
	for (int i = 0; i < NT_RANK_LINKS_PAIRS; i++) {
		(void)snprintf(remote[i], sizeof(remote[i]), "10.0.%d.1", i);
		socket.remote = remote[i];
		take_sockets(&links, &socket, 1, SECOND_NS);
	}
	for (int i = 0; i < RANKS; i++)
		rank[i] = links;
	assert_int_equal(nt_job_links_join(rank, RANKS, &link, &count, &over_cap), 0);
	assert_int_equal(count, NT_JOB_LINKS);
	assert_true(over_cap >= NT_RANK_LINKS_PAIRS);
	for (size_t i = 0; i < count; i++)
		assert_false(link[i].has_peer);
	free(link);
	nt_rank_links_free(links);
}

/* All with one number, which would be quadratic work: it ends, and none is named. */
static void links_of_a_job_are_capped_and_hostile_numbers_name_none(void **state)
{
	enum { RANKS = 64 };
	struct nt_rank_links *links[RANKS] = {NULL};
	struct nt_job_link *link;
	uint64_t over_cap;
	size_t count;

	(void)state;
	for (int i = 0; i < RANKS; i++)
		for (int j = 0; j < NT_RANK_LINKS_PAIRS; j++) {
			struct nt_rdma_pair pair = pair_of(5, "", 5, "");
			char device[16], remote[24];

			(void)snprintf(device, sizeof(device), "d%d", j);
			(void)snprintf(remote, sizeof(remote), "2001::%x", j);
			pair.device = device;
			pair.remote_gid = remote;
			take(&links[i], &pair, 1, SECOND_NS);
		}
	assert_int_equal(nt_job_links_join((const struct nt_rank_links *const *)links, RANKS, &link,
					   &count, &over_cap),
			 0);
	assert_int_equal(count, NT_JOB_LINKS);
	assert_int_equal(over_cap, RANKS * NT_RANK_LINKS_PAIRS - NT_JOB_LINKS);
	for (size_t i = 0; i < count; i++)
		assert_false(link[i].has_peer);
	free(link);
	for (int i = 0; i < RANKS; i++)
		nt_rank_links_free(links[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_ends_are_a_link_in_each_direction),
		cmocka_unit_test(sockets_of_two_ranks_are_a_link_in_each_direction),
		cmocka_unit_test(a_process_has_no_link_with_itself),
		cmocka_unit_test(what_two_ranks_state_alike_names_none),
		cmocka_unit_test(sockets_of_a_rank_are_capped_and_counted_beside_queue_pairs),
		cmocka_unit_test(hostile_sockets_name_none_and_ends_of_a_job_are_capped),
		cmocka_unit_test(equal_numbers_are_told_apart_by_address),
		cmocka_unit_test(one_end_that_knows_names_both),
		cmocka_unit_test(a_peer_outside_of_the_job_keeps_its_address),
		cmocka_unit_test(what_is_not_visible_has_no_figures),
		cmocka_unit_test(figures_are_of_the_last_minutes),
		cmocka_unit_test(a_number_that_is_used_anew_begins_anew),
		cmocka_unit_test(queue_pairs_of_a_rank_are_capped_and_counted),
		cmocka_unit_test(links_of_a_job_are_capped_and_hostile_numbers_name_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
