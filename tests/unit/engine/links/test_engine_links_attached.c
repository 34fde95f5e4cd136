/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Links as evidence of an incident of class network, from windows on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine_impl.h"
#include "engine/links/job_links.h"

enum {
	RANKS = 6,
	FIRST = 10, /* the number of the first rank */
};

static struct nt_rank_session sessions[RANKS];
static struct nt_rank_session *session[RANKS];
static struct nt_job job;
static struct nt_open_incident open;
static const struct nt_open_incident none;
static struct nt_culprit culprit;
static struct nt_wire_evidence evidence;
static char nodes[RANKS][16];

/* Each rank has a connection to the next one; what rank `slow` sends is slow. */
static int set_up(void **state)
{
	char address[RANKS][24];

	(void)state;
	for (uint32_t i = 0; i < RANKS; i++)
		(void)snprintf(address[i], sizeof(address[i]), "10.0.0.%u", i + 1);
	for (uint32_t i = 0; i < RANKS; i++) {
		const uint32_t next = (i + 1) % RANKS, last = (i + RANKS - 1) % RANKS;
		struct nt_tcp_socket sockets[] = {
			{.local = address[i],
			 .local_port = 7000,
			 .remote = address[next],
			 .remote_port = 7001,
			 .segments = 1000,
			 .rtt_ns = i == 3 ? 9000000 : 1000000},
			{.local = address[i],
			 .local_port = 7001,
			 .remote = address[last],
			 .remote_port = 7000,
			 .segments = 1000,
			 .rtt_ns = 1000000},
		};
		const struct nt_window window = {.tcp = {.socket = sockets,
							 .socket_count = 2,
							 .sockets = 2,
							 .observed_ns = 1}};

		sessions[i] = (struct nt_rank_session){.number = FIRST + i};
		session[i] = &sessions[i];
		(void)snprintf(nodes[i], sizeof(nodes[i]), "n%u", i / 2);
		sessions[i].names[NT_RANK_SESSION_NODE] = nodes[i];
		assert_int_equal(nt_rank_links_take(&sessions[i].links, &window, 1), 0);
	}
	job = (struct nt_job){.session = session, .sessions = RANKS};
	culprit = (struct nt_culprit){
		.kind = "rank", .has_rank = true, .rank = FIRST + 3, .node = ""};
	evidence = (struct nt_wire_evidence){.what = "time in sends", .unit = "ms", .method = "k"};
	open = (struct nt_open_incident){
		.firing = true,
		.class = NT_CLASS_NETWORK,
		.arena = calloc(1, sizeof(struct nt_arena)),
		.incident = {.culprit = &culprit,
			     .culprits = 1,
			     .evidence = &evidence,
			     .evidences = 1},
	};
	return open.arena ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < RANKS; i++)
		nt_rank_links_free(sessions[i].links);
	nt_engine_free_open(&open);
	return 0;
}

static void the_link_of_an_accused_rank_is_evidence(void **state)
{
	(void)state;
	assert_int_equal(nt_engine_attach_links(&job, &none, &open), 0);
	assert_int_equal(open.incident.evidences, 2);
	assert_string_equal(open.incident.evidence[0].what, "time in sends");
	assert_string_equal(open.incident.evidence[1].what,
			    "round-trip time of TCP, rank 13 to rank 14");
	assert_string_equal(open.incident.evidence[1].unit, "ms");
	assert_true(open.incident.evidence[1].value == 9 && open.incident.evidence[1].peers == 1);
}

static void ranks_of_an_accused_node_count(void **state)
{
	(void)state;
	culprit = (struct nt_culprit){.kind = "nic", .node = "n1"};
	assert_int_equal(nt_engine_attach_links(&job, &none, &open), 0);
	assert_int_equal(open.incident.evidences, 2);
	open.incident.evidences = 1;
	culprit.node = "n2"; /* it has the other end */
	assert_int_equal(nt_engine_attach_links(&job, &none, &open), 0);
	assert_int_equal(open.incident.evidences, 2);
	open.incident.evidences = 1;
	culprit.node = "n0";
	assert_int_equal(nt_engine_attach_links(&job, &none, &open), 0);
	assert_int_equal(open.incident.evidences, 1);
}

/* A link that has recovered meanwhile is still there, until it is looked at again. */
static void what_was_found_is_kept_for_ten_seconds(void **state)
{
	struct nt_open_incident before;

	(void)state;
	open.incident.seen_real_ns = 100000000000;
	assert_int_equal(nt_engine_attach_links(&job, &none, &open), 0);
	assert_int_equal(open.incident.evidences, 2);
	before = open;
	for (size_t i = 0; i < sessions[3].links->pairs; i++)
		sessions[3].links->pair[i].now.latency_ns = 1000000;
	open.arena = calloc(1, sizeof(struct nt_arena));
	assert_non_null(open.arena);
	open.incident.evidence = &evidence;
	open.incident.evidences = 1;
	open.incident.seen_real_ns += 9999999999;
	assert_int_equal(nt_engine_attach_links(&job, &before, &open), 0);
	nt_engine_free_open(&before);
	assert_int_equal(open.incident.evidences, 2);
	assert_string_equal(open.incident.evidence[1].what,
			    "round-trip time of TCP, rank 13 to rank 14");
	assert_string_equal(open.incident.evidence[1].unit, "ms");
	before = open;
	open.arena = calloc(1, sizeof(struct nt_arena));
	assert_non_null(open.arena);
	open.incident.evidence = &evidence;
	open.incident.evidences = 1;
	open.incident.seen_real_ns += 1;
	assert_int_equal(nt_engine_attach_links(&job, &before, &open), 0);
	nt_engine_free_open(&before);
	assert_int_equal(open.incident.evidences, 1);
}

/* Of a job with more links than are listed, the last rank is accused. */
static void links_of_accused_ranks_are_not_left_out_at_the_cap(void **state)
{
	enum { MANY = NT_JOB_LINKS };
	struct nt_rank_session *many = calloc(MANY, sizeof(*many));
	struct nt_rank_session **at = calloc(MANY, sizeof(struct nt_rank_session *));

	(void)state;
	assert_true(many && at);
	for (uint32_t i = 0; i < MANY; i++) {
		const uint32_t next = (i + 1) % MANY, last = (i + MANY - 1) % MANY;
		struct nt_tcp_socket sockets[] = {
			{.local = "10.0.0.1",
			 .local_port = 10000 + i,
			 .remote = "10.0.0.2",
			 .remote_port = 20000 + next,
			 .rtt_ns = i == MANY - 2 ? 9000000 : 1000000},
			{.local = "10.0.0.2",
			 .local_port = 20000 + i,
			 .remote = "10.0.0.1",
			 .remote_port = 10000 + last,
			 .rtt_ns = 1000000},
		};
		const struct nt_window window = {.tcp = {.socket = sockets,
							 .socket_count = 2,
							 .sockets = 2,
							 .observed_ns = 1}};

		many[i].number = i;
		at[i] = &many[i];
		assert_int_equal(nt_rank_links_take(&many[i].links, &window, 1), 0);
	}
	job = (struct nt_job){.session = at, .sessions = MANY};
	culprit.rank = MANY - 2;
	assert_int_equal(nt_engine_attach_links(&job, &none, &open), 0);
	assert_int_equal(open.incident.evidences, 2);
	assert_string_equal(open.incident.evidence[1].what,
			    "round-trip time of TCP, rank 4094 to rank 4095");
	for (uint32_t i = 0; i < MANY; i++)
		nt_rank_links_free(many[i].links);
	free(many);
	free(at);
}

static void incidents_of_other_classes_have_none(void **state)
{
	(void)state;
	open.class = NT_CLASS_COMPUTE;
	assert_int_equal(nt_engine_attach_links(&job, &none, &open), 0);
	open.class = NT_CLASS_NETWORK;
	open.firing = false;
	assert_int_equal(nt_engine_attach_links(&job, &none, &open), 0);
	assert_int_equal(open.incident.evidences, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_link_of_an_accused_rank_is_evidence, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(ranks_of_an_accused_node_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_found_is_kept_for_ten_seconds, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(links_of_accused_ranks_are_not_left_out_at_the_cap,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(incidents_of_other_classes_have_none, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
