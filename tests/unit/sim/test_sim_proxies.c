/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Played jobs whose NCCL proxies report what they send: what they send, and who is named by it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/cluster/fabric.h"
#include "tests/sim/cluster/play/play.h"
#include "tests/sim/cluster/program.h"
#include "tests/sim/cluster/ring.h"
#include "tests/sim/cluster/traffic.h"
#include "tests/unit/sim/scenarios.h"

static struct cl_scenario with_proxies(const char *fault)
{
	struct cl_scenario s = scenario_with(fault);

	s.mode = CL_PLUGIN;
	s.dp = 16;
	s.node_ranks = 4;
	s.steps = 90;
	s.fabric = s.proxies = true;
	return s;
}

/* Whether each rank has sends refused from the first steps on, or none has any. */
static bool report_all(const struct cl_scenario *s, bool reports)
{
	for (uint32_t i = 0; i < cl_scenario_ranks(s); i++)
		if (cl_fabric_reports(s, i) != reports)
			return false;
	return true;
}

static void a_ring_enters_each_node_once(void **state)
{
	struct cl_scenario s = with_proxies(NULL);
	const struct cl_group group = {0, 1, 24};
	bool seen[24] = {false};
	struct cl_ring ring;

	(void)state;
	s.dp = 24;
	s.stride = 5;
	s.node_ranks = 5;
	assert_true(cl_ring_make(&s, &group, &ring));
	assert_int_equal(ring.stops, 5);
	assert_int_equal(ring.most, 5);
	for (uint32_t i = 0; i < ring.stops; i++) {
		for (uint32_t c = 0; c < ring.stop[i].count; c++) {
			const uint32_t port = cl_ring_port(&ring, &ring.stop[i], c);

			assert_int_equal(cl_scenario_node_of(&s, port), ring.stop[i].node);
			assert_false(seen[port]);
			seen[port] = true;
		}
		/* The last node has one less: a channel shares its port. */
		assert_int_equal(cl_ring_port(&ring, &ring.stop[i], ring.stop[i].count),
				 cl_ring_port(&ring, &ring.stop[i], 0));
	}
	assert_ptr_equal(cl_ring_next(&ring, 4), &ring.stop[0]);
	cl_ring_release(&ring);
}

static void channels_share_what_the_algorithm_of_rings_moves(void **state)
{
	const struct cl_ring ring = {.stops = 4, .most = 4};
	struct cl_load load = cl_load_of_ring(&ring, 64 << 20, 16, true);

	(void)state;
	/* 2 (n - 1) / n of all, by four rings of two channels each. */
	assert_int_equal(load.rings, 4);
	assert_true(fabs(load.bytes * 8 - 2.0 * 15 / 16 * (64 << 20)) < 1);
	assert_int_equal(load.chunk, 512 << 10);
	/* Of each member's part, n - 1 times. */
	load = cl_load_of_ring(&ring, 4 << 20, 16, false);
	assert_true(fabs(load.bytes * 8 - 15.0 * (4 << 20)) < 1);
	/* A small one takes fewer channels, and a very small one small sends. */
	load = cl_load_of_ring(&ring, 16 * (128 << 10), 16, true);
	assert_int_equal(load.rings, 1);
	assert_int_equal(load.chunk, 128 << 10);
	load = cl_load_of_ring(&ring, 1 << 20, 16, true);
	assert_int_equal(load.chunk, 64 << 10);
	load = cl_load_of_pair(1 << 20);
	assert_true(fabs(load.bytes - (1 << 19)) < 1);
	assert_int_equal(load.chunk, 128 << 10);
}

/* The mean time in the network of what a node's ranks sent in so many steps; 0: nothing. */
static double mean_ns(const struct cl_scenario *s, uint32_t node, uint32_t *ret_others)
{
	struct cl_play *play;
	double sum = 0;
	uint32_t n = 0;

	assert_int_equal(cl_play_new(s, &play), 0);
	*ret_others = 0;
	for (uint32_t step = 0; step < s->steps; step++) {
		assert_int_equal(cl_play_step(play), 0);
		for (uint32_t i = 0; i < cl_scenario_ranks(s); i++) {
			struct cl_sents *sents = cl_play_sent(play, i);

			for (size_t j = 0; j < sents->count; j++) {
				const struct cl_sent *sent = &sents->sent[j];
				const struct cl_group group =
					cl_group_of(s, (enum cl_group_kind)sent->group, i);
				const uint32_t to = cl_group_member(&group, sent->peer);

				assert_int_not_equal(cl_scenario_node_of(s, to),
						     cl_scenario_node_of(s, i));
				assert_true(sent->busy_ns >= sent->shortest_ns);
				if (cl_scenario_node_of(s, i) == node && sent->bytes >= 65536) {
					sum += log((double)sent->shortest_ns / sent->bytes);
					n++;
				} else {
					++*ret_others;
				}
			}
			sents->count = 0;
		}
	}
	cl_play_free(play);
	return n ? exp(sum / n) : 0;
}

static void only_what_leaves_a_node_is_sent_and_a_slow_nic_has_it_longer(void **state)
{
	struct cl_scenario s = with_proxies("nic 1,0 3 from 0");
	uint32_t others;
	double slow, usual;

	(void)state;
	slow = mean_ns(&s, 1, &others);
	assert_true(others > 0);
	s.faults = 0;
	usual = mean_ns(&s, 1, &others);
	assert_true(usual > 0);
	assert_true(slow > 2.6 * usual && slow < 3.4 * usual);
	/* Not over the same ring, or not between nodes. */
	s = with_proxies("path 1,3 3 from 0");
	assert_true(fabs(mean_ns(&s, 1, &others) / usual - 1) < 0.02);
	s.node_ranks = 16;
	s.faults = 0;
	assert_true(mean_ns(&s, 0, &others) <= 0 && !others);
	s.node_ranks = 4;
	s.proxies = false;
	assert_true(mean_ns(&s, 1, &others) <= 0 && !others);
}

static void a_share_of_jobs_and_ranks_has_no_send_refused(void **state)
{
	struct cl_scenario s = with_proxies(NULL);
	uint32_t silent = 0, partly = 0;

	(void)state;
	for (s.seed = 1; s.seed <= 200; s.seed++) {
		const bool none = report_all(&s, false);

		silent += none;
		partly += !none && !report_all(&s, true);
		if (none)
			assert_false(cl_traffic_is_timed(&s, 0, 1));
	}
	assert_in_range(silent, 25, 60);
	assert_in_range(partly, 50, 150);
}

/* A job that reports all, or whose transport refuses nothing. */
static struct cl_scenario which_reports(const char *fault, bool reports)
{
	struct cl_scenario s = with_proxies(fault);

	while (!report_all(&s, reports))
		s.seed++;
	return s;
}

static void comes_out_right(const struct cl_scenario *s, uint32_t wanted, const char *kind)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct cl_outcome outcome;
	struct cl_score score;

	assert_int_equal(nt_judgement_new(&judgement), 0);
	score = scenario_play(s, wanted, judgement, &outcome);
	assert_int_equal(score.classed, wanted);
	for (size_t i = 0; i < judgement->incidents; i++)
		for (size_t j = 0; j < judgement->judged[i].incident.culprits; j++)
			assert_string_equal(judgement->judged[i].incident.culprit[j].kind, kind);
}

static void what_proxies_sent_names_the_nic_where_the_network_refuses_sends(void **state)
{
	(void)state;
	for (int reports = 0; reports < 2; reports++) {
		const char *kind = reports ? "nic" : "communicator";
		struct cl_scenario s = which_reports("nic 2,0 3 from 30", reports);

		comes_out_right(&s, 1, kind);
		s = which_reports("path 2,3 5 from 30", reports);
		comes_out_right(&s, 1, reports ? "path" : kind);
	}
}

/* Without times of kernels only the step shows that the network is slow. */
static void what_proxies_sent_is_enough_without_times_of_kernels(void **state)
{
	struct cl_scenario s = which_reports("nic 2,0 5 from 30", true);

	(void)state;
	s.mode = CL_ASYNC;
	comes_out_right(&s, 1, "nic");
	s.proxies = false;
	comes_out_right(&s, 0, "nic");
}

static void a_slow_switch_is_no_nic(void **state)
{
	struct cl_scenario s = which_reports("switch 1,0 4 from 30", true);

	(void)state;
	s.dp = 64;
	while (!report_all(&s, true))
		s.seed++;
	comes_out_right(&s, 1, "communicator");
}

static void a_healthy_network_accuses_nobody(void **state)
{
	struct cl_scenario s = which_reports(NULL, true);

	(void)state;
	s.steps = 150;
	comes_out_right(&s, 0, "");
	s.structure.save_every = 40;
	s.structure.save_s = 3;
	comes_out_right(&s, 0, "");
	s.mode = CL_ASYNC;
	comes_out_right(&s, 0, "");
	s = which_reports("compute 5 1.3 from 30", true);
	comes_out_right(&s, 1, "rank");
}

static void only_hosts_that_run_ahead_have_a_fabric(void **state)
{
	struct cl_scenario s = with_proxies(NULL);

	(void)state;
	assert_null(cl_scenario_check(&s));
	s.fabric = false;
	assert_non_null(cl_scenario_check(&s));
	s.fabric = true;
	s.mode = CL_BLOCKING;
	assert_non_null(cl_scenario_check(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_enters_each_node_once),
		cmocka_unit_test(channels_share_what_the_algorithm_of_rings_moves),
		cmocka_unit_test(only_what_leaves_a_node_is_sent_and_a_slow_nic_has_it_longer),
		cmocka_unit_test(a_share_of_jobs_and_ranks_has_no_send_refused),
		cmocka_unit_test(what_proxies_sent_names_the_nic_where_the_network_refuses_sends),
		cmocka_unit_test(what_proxies_sent_is_enough_without_times_of_kernels),
		cmocka_unit_test(a_slow_switch_is_no_nic),
		cmocka_unit_test(a_healthy_network_accuses_nobody),
		cmocka_unit_test(only_hosts_that_run_ahead_have_a_fabric),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
