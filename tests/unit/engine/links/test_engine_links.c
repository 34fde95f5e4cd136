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
	free(links[0]);
	free(links[1]);
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

		free(links[i]);
		links[i] = NULL;
		take(&links[i], &pair, 1, SECOND_NS);
	}
	count = join((const struct nt_rank_links *const *)links, RANKS, &link);
	assert_int_equal(count, RANKS);
	for (uint32_t i = 0; i < count; i++)
		assert_true(link[i].has_peer && link[i].peer == (link[i].rank ^ 1));
	free(link);
	for (int i = 0; i < RANKS; i++)
		free(links[i]);
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
	free(links[0]);
	free(links[1]);
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
	free(links[0]);
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
	free(links[0]);
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
	free(links);
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
	free(links);
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
	free(links);
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
		free(links[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_ends_are_a_link_in_each_direction),
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
