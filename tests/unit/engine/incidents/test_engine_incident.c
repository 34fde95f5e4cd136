/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/incidents/incident.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/buf.h"

#define NOON (1795262400ULL * 1000000000) /* 2026-11-21T12:00:00Z */

static const uint32_t peers[] = {3, 7, 15};
static struct nt_finding_culprit culprit[8];
static struct nt_finding finding;
static struct nt_prices prices;
static struct nt_incident_names names;
static struct nt_arena arena;
static const char *gpu;

static bool name_rank(void *data, uint32_t rank, struct nt_detect_rank_names *ret_names)
{
	static char node[16][32];

	(void)data;
	if (rank >= 128)
		return false;
	(void)snprintf(node[rank / 8], sizeof(node[0]), "gpu-%02u", rank / 8);
	*ret_names = (struct nt_detect_rank_names){.node = node[rank / 8],
						   .pod = "llm-0",
						   .pod_uid = "u-0",
						   .gpu = gpu,
						   .own_source = NT_OWN_SOURCE_CUPTI};
	return true;
}

static const char *name_node(void *data, uint32_t index)
{
	static const char *const name[] = {"gpu-00", "gpu-01"};

	(void)data;
	return index < 2 ? name[index] : NULL;
}

static int set_up(void **state)
{
	(void)state;
	gpu = "GPU-5f";
	prices = nt_prices_unknown();
	names = (struct nt_incident_names){
		.job = "llm-70b",
		.namespace = "train",
		.job_key = "torch:x",
		.attempt = 2,
		.rank = name_rank,
		.node = name_node,
	};
	for (uint32_t i = 0; i < 8; i++)
		culprit[i] = (struct nt_finding_culprit){
			.kind = NT_CULPRIT_RANK,
			.rank = 11 + 8 * i,
			.node = NT_FRAME_NO_NODE,
			.peers = peers,
			.peer_count = 3,
		};
	finding = (struct nt_finding){
		.id = 0xabcdef,
		.state = NT_INCIDENT_FIRING,
		.fired = true,
		.class = NT_CLASS_COMPUTE,
		.severity = NT_SEVERITY_CRITICAL,
		.culprit = culprit,
		.culprits = 1,
		.since_ns = NOON + 12ULL * 1000000000,
		.seen_ns = NOON + 31ULL * 1000000000,
		.slowdown = 1.3,
		.gpu_hours = 12.5,
		.tier = NT_FRAME_T3,
		.confidence = 0.98,
		.completeness = 1,
		.evidence = {{"own work of the step", "ms", "ratio", 412.0, 314.5, 3.1, 9}},
		.evidences = 1,
		.version = 4,
	};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nt_arena_release(&arena);
	return 0;
}

static struct nt_wire_incident describe(void)
{
	struct nt_wire_incident incident;

	assert_int_equal(nt_incident_describe(&finding, &names, &prices, &arena, &incident), 0);
	return incident;
}

static void summary_is(const char *want)
{
	assert_string_equal(describe().summary, want);
}

/* Where own work is no evidence, nothing is said of how it was measured. */
static void what_measured_own_work_is_stated_where_it_counts(void **state)
{
	static const struct {
		enum nt_class class;
		uint8_t tier;
		enum nt_own_source source;
	} cases[] = {
		{NT_CLASS_COMPUTE, NT_FRAME_T2, NT_OWN_SOURCE_CUPTI},
		{NT_CLASS_HOST, NT_FRAME_T3, NT_OWN_SOURCE_CUPTI},
		{NT_CLASS_UNKNOWN, NT_FRAME_T3, NT_OWN_SOURCE_CUPTI},
		{NT_CLASS_COMPUTE, NT_FRAME_T1, NT_OWN_SOURCE_UNKNOWN},
		{NT_CLASS_HANG, NT_FRAME_T3, NT_OWN_SOURCE_UNKNOWN},
		{NT_CLASS_NETWORK, NT_FRAME_T3, NT_OWN_SOURCE_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		finding.class = cases[i].class;
		finding.tier = cases[i].tier;
		assert_int_equal(describe().own_source, cases[i].source);
	}
}

static void an_incident_has_names_for_numbers(void **state)
{
	const struct nt_wire_incident incident = describe();

	(void)state;
	assert_string_equal(incident.id, "0000000000abcdef");
	assert_string_equal(incident.state, "firing");
	assert_string_equal(incident.severity, "critical");
	assert_string_equal(incident.class, "compute");
	assert_string_equal(incident.cause, "");
	assert_string_equal(incident.job, "llm-70b");
	assert_string_equal(incident.job_key, "torch:x");
	assert_int_equal(incident.attempt, 2);
	assert_int_equal(incident.tier, NT_TIER_T3);
	assert_int_equal(incident.own_source, NT_OWN_SOURCE_CUPTI);
	assert_int_equal(incident.version, 4);
	assert_int_equal(incident.culprits, 1);
	assert_true(incident.culprit[0].has_rank);
	assert_int_equal(incident.culprit[0].rank, 11);
	assert_string_equal(incident.culprit[0].kind, "rank");
	assert_string_equal(incident.culprit[0].node, "gpu-01");
	assert_string_equal(incident.culprit[0].gpu, "GPU-5f");
	assert_string_equal(incident.culprit[0].pod_uid, "u-0");
	assert_string_equal(incident.culprit[0].container, "");
	assert_int_equal(incident.culprit[0].peer_count, 3);
	assert_int_equal(incident.culprit[0].peers[2], 15);
	assert_int_equal(incident.evidences, 1);
	assert_string_equal(incident.evidence[0].what, "own work of the step");
}

static void the_ranks_of_a_culprit_are_listed_in_order_of_their_numbers(void **state)
{
	static const uint32_t given[] = {15, 0, 7, 3};
	const uint32_t *numbers;

	(void)state;
	culprit[0].peers = culprit[0].ranks = given;
	culprit[0].peer_count = culprit[0].rank_count = 4;
	for (int i = 0; i < 2; i++) {
		const struct nt_culprit named = *describe().culprit;

		numbers = i ? named.ranks : named.peers;
		assert_int_equal(i ? named.rank_count : named.peer_count, 4);
		assert_int_equal(numbers[0], 0);
		assert_int_equal(numbers[1], 3);
		assert_int_equal(numbers[2], 7);
		assert_int_equal(numbers[3], 15);
	}
}

static void hours_that_are_not_known_have_no_price(void **state)
{
	struct nt_wire_incident incident;

	(void)state;
	prices = (struct nt_prices){
		.gpu_hour = 2, .gpu_watts = 700, .co2_kg_per_kwh = 0.4, .currency = "EUR"};
	finding.gpu_hours = -1;
	incident = describe();
	assert_true(incident.cost.gpu_hours_unknown);
	assert_true(incident.cost.gpu_hours == 0);
	assert_false(incident.cost.has_money);
	assert_false(incident.cost.has_energy);
	assert_false(incident.cost.has_co2);
}

static void what_has_no_price_has_no_cost_in_money(void **state)
{
	struct nt_wire_incident incident = describe();

	(void)state;
	assert_true(incident.cost.gpu_hours == 12.5);
	assert_false(incident.cost.has_money);
	assert_false(incident.cost.has_energy);
	assert_false(incident.cost.has_co2);
	prices = (struct nt_prices){
		.gpu_hour = 2, .gpu_watts = 700, .co2_kg_per_kwh = 0.4, .currency = "EUR"};
	incident = describe();
	assert_true(incident.cost.money == 25);
	assert_string_equal(incident.cost.currency, "EUR");
	assert_true(incident.cost.energy_kwh == 8.75);
	assert_true(incident.cost.has_co2);
	assert_false(incident.cost.gpu_hours_unknown);
	assert_true(incident.cost.co2_kg > 3.49 && incident.cost.co2_kg < 3.51);
	prices.gpu_watts = -1;
	assert_false(describe().cost.has_co2);
}

static void a_slow_rank_is_told_in_one_sentence(void **state)
{
	(void)state;
	summary_is("rank 11 (gpu-01, GPU-5f) computes 31 % slower than its 3 peers since 12:00:12;"
		   " steps take 30 % longer");
	finding.cause = "clock-held-down: power";
	summary_is("rank 11 (gpu-01, GPU-5f) computes 31 % slower than its 3 peers since 12:00:12;"
		   " steps take 30 % longer; cause: clock-held-down: power");
	finding.evidence[0].value = 3 * 314.5;
	finding.cause = NULL;
	gpu = NULL;
	summary_is("rank 11 (gpu-01, llm-0) computes 3.0 times slower than its 3 peers since "
		   "12:00:12; steps take 30 % longer");
}

/* Own work is not known: how much longer the tensor cores took is how much slower the clock is. */
static void a_rank_named_by_its_gpus_driver_is_slower_by_its_tensor_cores(void **state)
{
	(void)state;
	finding.evidence[0].what = "time per step in which the gpu's tensor cores computed";
	finding.cause = "gpu temperature";
	summary_is("rank 11 (gpu-01, GPU-5f) computes 31 % slower than its 3 peers since 12:00:12;"
		   " steps take 30 % longer; cause: gpu temperature");
}

static void a_resolved_incident_says_from_when_to_when(void **state)
{
	(void)state;
	finding.state = NT_INCIDENT_RESOLVED;
	finding.until_ns = NOON + 100ULL * 1000000000;
	summary_is("rank 11 (gpu-01, GPU-5f) computes 31 % slower than its 3 peers from 12:00:12 "
		   "to 12:01:40; steps take 30 % longer");
}

static void what_never_fired_stays_pending_when_it_is_over(void **state)
{
	(void)state;
	finding.state = NT_INCIDENT_PENDING;
	finding.fired = false;
	assert_string_equal(describe().state, "pending");
	finding.state = NT_INCIDENT_RESOLVED;
	finding.until_ns = NOON;
	assert_string_equal(describe().state, "pending");
	finding.fired = true;
	assert_string_equal(describe().state, "resolved");
}

static void a_rank_without_peers_is_compared_with_its_past(void **state)
{
	(void)state;
	culprit[0].peer_count = 0;
	culprit[0].peers = NULL;
	finding.evidence[0].method = "own past";
	summary_is("rank 11 (gpu-01, GPU-5f) computes 31 % slower than its own past since "
		   "12:00:12; steps take 30 % longer");
}

static void a_rank_with_few_peers_may_be_compared_with_its_past_too(void **state)
{
	(void)state;
	finding.evidence[0].method = "own past";
	summary_is("rank 11 (gpu-01, GPU-5f) computes 31 % slower than its own past since "
		   "12:00:12; steps take 30 % longer");
}

static void a_node_is_compared_with_peers_on_other_nodes(void **state)
{
	(void)state;
	culprit[0] = (struct nt_finding_culprit){.kind = NT_CULPRIT_NODE, .node = 1};
	summary_is("node gpu-01 computes 31 % slower than its peers on other nodes since 12:00:12;"
		   " steps take 30 % longer");
}

static void several_ranks_are_listed_and_many_are_counted(void **state)
{
	(void)state;
	finding.culprits = 2;
	summary_is("ranks 11 (gpu-01, GPU-5f) and 19 (gpu-02, GPU-5f) compute 31 % slower than "
		   "their 3 peers since 12:00:12; steps take 30 % longer");
	culprit[1].rank = 12;
	summary_is("ranks 11 and 12 (gpu-01) compute 31 % slower than their 3 peers since "
		   "12:00:12; steps take 30 % longer");
	/* One of the peers is accused, too. */
	culprit[1].rank = 7;
	assert_non_null(strstr(describe().summary, " compute 31 % slower than their 2 peers"));
	culprit[1].rank = 12;
	finding.culprits = 8;
	assert_non_null(strstr(describe().summary, " and 5 more compute 31 % slower"));
}

static void host_time_is_told_in_the_units_that_fit(void **state)
{
	(void)state;
	finding.class = NT_CLASS_HOST;
	finding.evidence[0] =
		(struct nt_finding_evidence){"host work of the step", "ms", "ratio", 52.4, 20.1};
	summary_is("rank 11 (gpu-01, GPU-5f) spends 52 ms of each step on the host, its 3 peers "
		   "20 ms, since 12:00:12");
	finding.evidence[0].value = 1520;
	finding.evidence[0].peers = 1.26;
	finding.cause = "data loading";
	summary_is("rank 11 (gpu-01, GPU-5f) spends 1.5 s of each step on the host, its 3 peers "
		   "1.3 ms, since 12:00:12; cause: data loading");
	finding.evidences = 0;
	finding.cause = "checkpoint";
	summary_is("rank 11 (gpu-01, GPU-5f) keeps the others waiting since 12:00:12; cause: "
		   "checkpoint");
}

static void every_class_has_a_sentence_with_and_without_culprits(void **state)
{
	(void)state;
	for (enum nt_class class = 0; class < NT_CLASS_END; class ++) {
		for (finding.culprits = 0; finding.culprits < 3; finding.culprits++) {
			const char *summary;

			finding.class = class;
			summary = describe().summary;
			assert_non_null(strstr(summary, " since 12:00:12"));
			assert_null(strstr(summary, "  "));
			assert_null(strstr(summary, "()"));
		}
	}
}

static void a_note_says_why_there_is_no_verdict(void **state)
{
	(void)state;
	finding.culprits = 1;
	finding.class = NT_CLASS_UNKNOWN;
	finding.severity = NT_SEVERITY_INFO;
	finding.cause = "no verdict: it costs less than the size floor";
	finding.evidence[0] = (struct nt_finding_evidence){
		"windows in which the rank is far behind its peers", "%", "ratio", 37.6};
	summary_is("rank 11 (gpu-01, GPU-5f) is far behind its peers in 38 % of its windows since "
		   "12:00:12; no verdict: it costs less than the size floor");
	finding.culprits = 0;
	finding.class = NT_CLASS_JOB_WIDE;
	finding.cause = "no verdict: no rank, link or host explains it";
	summary_is("all ranks together are 30 % slower than before since 12:00:12; no verdict: no "
		   "rank, link or host explains it");
}

static void what_accuses_nobody_names_nobody(void **state)
{
	(void)state;
	finding.culprits = 0;
	finding.class = NT_CLASS_JOB_WIDE;
	finding.evidence[0] = (struct nt_finding_evidence){"step time", "ms", "own past", 28, 20};
	summary_is("all ranks together are 30 % slower than before since 12:00:12");
	finding.class = NT_CLASS_IMBALANCE;
	summary_is("the work is uneven, no rank is at fault, since 12:00:12");
	finding.class = NT_CLASS_UNKNOWN;
	finding.cause = "two populations";
	summary_is("the ranks fall into two groups of different speed since 12:00:12; the cause is "
		   "not known");
}

static void hangs_and_ends_say_who_is_waited_for(void **state)
{
	static const uint32_t ranks[] = {0, 1, 2, 3};

	(void)state;
	finding.class = NT_CLASS_HANG;
	finding.cause = "laggard";
	summary_is("rank 11 (gpu-01, GPU-5f) has not entered the collective that others wait in "
		   "since 12:00:12");
	finding.class = NT_CLASS_MISSING;
	finding.cause = NULL;
	summary_is("rank 11 (gpu-01, GPU-5f) is gone since 12:00:12 while others go on or wait for "
		   "it");
	finding.cause = "gpu error";
	finding.evidence[0] = (struct nt_finding_evidence){"xid of the gpu's last error", "",
							   "gpu driver", 79, 0};
	summary_is("rank 11 (gpu-01, GPU-5f) is gone since 12:00:12 while others go on or wait for "
		   "it, after XID 79 of its GPU; cause: gpu error");
	finding.evidence[1] = (struct nt_finding_evidence){"time until all others had ended", "s",
							   "exit event", 1, 0};
	finding.evidences = 2;
	summary_is("rank 11 (gpu-01, GPU-5f) ended, after XID 79 of its GPU, at 12:00:12, and the "
		   "job with it; cause: gpu error");
	finding.evidences = 1;
	finding.cause = NULL;
	finding.class = NT_CLASS_HANG;
	culprit[0] = (struct nt_finding_culprit){
		.kind = NT_CULPRIT_COMMUNICATOR, .comm = 0x12, .ranks = ranks, .rank_count = 4};
	summary_is("the job hangs since 12:00:12 in the communicator of 4 ranks");
	assert_string_equal(describe().culprit[0].name, "0000000000000012");
	assert_int_equal(describe().culprit[0].rank_count, 4);
}

static void nodes_and_paths_are_called_by_name(void **state)
{
	(void)state;
	culprit[0] = (struct nt_finding_culprit){.kind = NT_CULPRIT_NODE, .node = 1};
	finding.evidence[0].peers = 0;
	summary_is("node gpu-01 computes 30 % slower than its peers on other nodes since 12:00:12;"
		   " steps take 30 % longer");
	culprit[0] =
		(struct nt_finding_culprit){.kind = NT_CULPRIT_PATH, .node = 0, .peer_node = 1};
	finding.class = NT_CLASS_NETWORK;
	summary_is("the path from gpu-00 to gpu-01 transfers slowly since 12:00:12");
	culprit[0] = (struct nt_finding_culprit){.kind = NT_CULPRIT_NODE, .node = 17};
	assert_string_equal(describe().culprit[0].node, ""); /* an index nobody knows */
}

static bool name_badly(void *data, uint32_t rank, struct nt_detect_rank_names *ret_names)
{
	static char text[2000];

	(void)data;
	(void)rank;
	memset(text, 'x', sizeof(text) - 1);
	ret_names->node = "a\nb\x1b[31m\xff";
	ret_names->pod = text;
	ret_names->gpu = text;
	ret_names->container = text;
	return true;
}

static void names_from_outside_are_cut_and_cleaned(void **state)
{
	struct nt_wire_incident incident;

	(void)state;
	names.rank = name_badly;
	incident = describe();
	assert_string_equal(incident.culprit[0].node, "a?b?[31m?");
	assert_int_equal(strlen(incident.culprit[0].pod), NT_INCIDENT_MAX_NAME);
	assert_true(strlen(incident.summary) <= NT_WIRE_MAX_TEXT);
	assert_null(strchr(incident.summary, '\n'));
}

static void the_largest_incident_fits_a_message(void **state)
{
	static struct nt_finding_culprit many[20000];
	static uint32_t all[20000];
	nt_autobuf struct nt_buf buf = {0};
	struct nt_message message = {.agent = "a", .key = "k", .seq = 1, .body = NT_BODY_INCIDENT};

	(void)state;
	names.rank = name_badly;
	for (uint32_t i = 0; i < 20000; i++) {
		all[i] = 0xfff00000 + i;
		many[i] = (struct nt_finding_culprit){.kind = NT_CULPRIT_RANK,
						      .rank = i,
						      .peers = all,
						      .peer_count = 20000,
						      .ranks = all,
						      .rank_count = 20000};
	}
	finding.culprit = many;
	for (finding.culprits = 1; finding.culprits <= 20000; finding.culprits *= 2) {
		message.incident = describe();
		nt_buf_clear(&buf);
		assert_int_equal(nt_message_encode(&message, &buf), 0);
		nt_arena_release(&arena);
	}
	finding.culprits = 20000;
	assert_int_equal(describe().culprits, NT_INCIDENT_MAX_CULPRITS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_incident_has_names_for_numbers),
		TEST(what_measured_own_work_is_stated_where_it_counts),
		TEST(the_ranks_of_a_culprit_are_listed_in_order_of_their_numbers),
		TEST(hours_that_are_not_known_have_no_price),
		TEST(what_has_no_price_has_no_cost_in_money),
		TEST(a_slow_rank_is_told_in_one_sentence),
		TEST(a_rank_named_by_its_gpus_driver_is_slower_by_its_tensor_cores),
		TEST(a_resolved_incident_says_from_when_to_when),
		TEST(what_never_fired_stays_pending_when_it_is_over),
		TEST(a_rank_without_peers_is_compared_with_its_past),
		TEST(a_rank_with_few_peers_may_be_compared_with_its_past_too),
		TEST(a_node_is_compared_with_peers_on_other_nodes),
		TEST(several_ranks_are_listed_and_many_are_counted),
		TEST(host_time_is_told_in_the_units_that_fit),
		TEST(every_class_has_a_sentence_with_and_without_culprits),
		TEST(a_note_says_why_there_is_no_verdict),
		TEST(what_accuses_nobody_names_nobody),
		TEST(hangs_and_ends_say_who_is_waited_for),
		TEST(nodes_and_paths_are_called_by_name),
		TEST(names_from_outside_are_cut_and_cleaned),
		TEST(the_largest_incident_fits_a_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
