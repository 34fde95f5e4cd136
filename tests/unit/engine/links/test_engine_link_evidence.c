/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/links/link_evidence.h"

enum {
	RANKS = 6,
};

/* A ring: rank i to i + 1. */
static struct nt_job_link ring[RANKS];
static bool is_accused[RANKS];
static struct nt_link_evidence row[NT_LINK_EVIDENCE_ROWS];

static int set_up(void **state)
{
	(void)state;
	memset(is_accused, 0, sizeof(is_accused));
	is_accused[2] = true;
	for (uint32_t i = 0; i < RANKS; i++)
		ring[i] = (struct nt_job_link){
			.transport = NT_LINK_TCP,
			.rank = i,
			.peer = (i + 1) % RANKS,
			.has_peer = true,
			.sums = {.timed = 10, .latency_ns = 10 * 100000, .segments = 100000},
		};
	return 0;
}

static int found(void)
{
	return nt_link_evidence_find(ring, RANKS, is_accused, row);
}

static void healthy_links_are_no_evidence(void **state)
{
	(void)state;
	assert_int_equal(found(), 0);
	ring[4].sums.latency_ns *= 100; /* of nobody that is accused */
	assert_int_equal(found(), 0);
}

/* Of both directions, by latency and by loss. */
static void a_link_that_stands_out_is_evidence(void **state)
{
	(void)state;
	ring[1].sums.latency_ns *= 4; /* 1 to 2 */
	ring[2].sums.latency_ns *= 2;
	ring[2].sums.retransmits = 300;
	ring[4].sums.retransmits = 40;
	assert_int_equal(found(), 2);
	assert_ptr_equal(row[0].link, &ring[1]);
	assert_true(row[0].value > 0.399 && row[0].value < 0.401);
	assert_true(row[0].peers > 0.099 && row[0].peers < 0.101);
	assert_string_equal(nt_link_evidence_what(&row[0]), "round-trip time of TCP");
	assert_string_equal(nt_link_evidence_unit(&row[0]), "ms");
	assert_ptr_equal(row[1].link, &ring[2]);
	assert_true(row[1].value > 0.299 && row[1].value < 0.301);
	assert_string_equal(nt_link_evidence_unit(&row[1]), "percent");
	ring[1].sums.latency_ns = 10 * 200000; /* twice is not enough */
	ring[2].sums.retransmits = 0;
	assert_int_equal(found(), 0);
	ring[1].sums.latency_ns = 10 * 100000 * 4;
	is_accused[4] = true; /* one other link is left, which is none to compare with */
	assert_int_equal(found(), 0);
}

static void losses_that_are_usual_are_none(void **state)
{
	(void)state;
	ring[2].sums.retransmits = 90; /* below a thousandth */
	assert_int_equal(found(), 0);
	for (int i = 0; i < RANKS; i++)
		ring[i].sums.retransmits = 300; /* all lose */
	ring[2].sums.retransmits = 600;
	assert_int_equal(found(), 0);
	set_up(NULL);
	ring[2].sums.segments = 80;
	ring[2].sums.retransmits = 8; /* of too few */
	assert_int_equal(found(), 0);
	ring[2].sums.segments = 200;
	assert_int_equal(found(), 1);
}

/* The others are of another transport, or lead out of the job. */
static void links_are_compared_with_their_like(void **state)
{
	(void)state;
	for (int i = 0; i < RANKS; i++)
		ring[i].transport = NT_LINK_RDMA;
	ring[2].sums.completions = ring[3].sums.completions = 1000;
	ring[2].sums.errors = 20;
	assert_int_equal(found(), 0); /* nobody else has completions */
	for (int i = 0; i < RANKS; i++)
		ring[i].sums.completions = 1000;
	assert_int_equal(found(), 1);
	assert_string_equal(nt_link_evidence_what(&row[0]), "RDMA requests that failed");
	for (int i = 3; i < RANKS; i++)
		ring[i].has_peer = false;
	assert_int_equal(found(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(healthy_links_are_no_evidence, set_up),
		cmocka_unit_test_setup(a_link_that_stands_out_is_evidence, set_up),
		cmocka_unit_test_setup(losses_that_are_usual_are_none, set_up),
		cmocka_unit_test_setup(links_are_compared_with_their_like, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
