/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The life of incidents: pending, firing, resolved; who is in one, and what it is called. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"

struct count {
	uint32_t pending, firing, resolved;
};

/* Runs frames and counts how incidents change their state. */
static struct count watch(struct sim *sim, struct nt_detect *detect, uint32_t frames)
{
	struct count count = {0};
	uint64_t fired[64];
	uint32_t n = 0;

	for (uint32_t i = 0; i < frames; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, sim_next(sim), &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++) {
			bool known = false;

			for (uint32_t k = 0; k < n; k++)
				known |= fired[k] == finding[j].id;
			count.pending += finding[j].state == NT_INCIDENT_PENDING;
			count.resolved += finding[j].state == NT_INCIDENT_RESOLVED;
			if (finding[j].state != NT_INCIDENT_FIRING || known)
				continue;
			assert_true(n < 64);
			fired[n++] = finding[j].id;
			count.firing++;
		}
	}
	return count;
}

static void warm(struct sim *sim, struct nt_detect **detect, uint32_t ranks, uint64_t seed)
{
	sim_init(sim, ranks, seed);
	sim->jitter = 0.02;
	*detect = sim_detect();
	sim_pass(sim, *detect, 60);
}

static void a_finding_is_pending_before_it_fires_under_the_same_id(void **state)
{
	struct nt_detect *detect;
	uint64_t id = 0, version = 0, onset;
	struct sim sim;

	(void)state;
	warm(&sim, &detect, 8, 71);
	onset = sim.now_ns;
	sim.rank[2].device *= 1.5;
	for (int i = 0; i < 20; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
		assert_true(findings <= 1);
		if (!findings)
			continue;
		assert_true(finding[0].version > version);
		version = finding[0].version;
		if (!id) {
			assert_int_equal(finding[0].state, NT_INCIDENT_PENDING);
			id = finding[0].id;
		}
		assert_true(finding[0].id == id);
		assert_true(finding[0].since_ns == onset);
		assert_true(finding[0].until_ns == 0);
	}
	assert_int_equal(sim_firing(detect, 0)->state, NT_INCIDENT_FIRING);
	assert_true(sim_firing(detect, 0)->seen_ns > onset);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void an_intermittent_fault_is_one_incident(void **state)
{
	struct nt_detect *detect;
	struct count count = {0};
	struct sim sim;

	(void)state;
	warm(&sim, &detect, 8, 72);
	for (int i = 0; i < 60; i++) {
		struct count more;

		sim.rank[2].device *= 1.5;
		more = watch(&sim, detect, 3);
		count.resolved += more.resolved;
		sim.rank[2].device /= 1.5;
		more = watch(&sim, detect, 2);
		count.resolved += more.resolved;
	}
	assert_int_equal(count.resolved, 0);
	assert_names_rank(sim_firing(detect, 0), 2);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void simultaneous_culprits_are_one_incident(void **state)
{
	struct nt_detect *detect;
	struct count count;
	struct sim sim;

	(void)state;
	warm(&sim, &detect, 16, 73);
	sim.rank[3].device *= 1.5;
	sim.rank[12].device *= 1.4;
	count = watch(&sim, detect, 30);
	assert_int_equal(count.firing, 1);
	assert_int_equal(sim_firing(detect, 0)->culprits, 2);
	assert_int_equal(sim_firing(detect, 0)->culprit[0].rank, 3);
	assert_int_equal(sim_firing(detect, 0)->culprit[1].rank, 12);
	/* One heals: the other is left. */
	sim.rank[3].device /= 1.5;
	count = watch(&sim, detect, 200);
	assert_int_equal(count.resolved, 0);
	assert_names_rank(sim_firing(detect, 0), 12);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void faults_at_different_times_are_two_incidents(void **state)
{
	struct nt_detect *detect;
	struct count count;
	struct sim sim;

	(void)state;
	warm(&sim, &detect, 16, 74);
	sim.rank[3].device *= 1.5;
	sim_pass(&sim, detect, 20);
	sim.rank[12].host += 40.0 * SIM_MS;
	count = watch(&sim, detect, 20);
	assert_int_equal(count.pending, 1);
	assert_names_rank(sim_firing(detect, 0), 3);
	assert_names_rank(sim_firing(detect, 1), 12);
	assert_int_equal(sim_firing(detect, 1)->class, NT_CLASS_HOST);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* What was learned since the fault began was learned from the fault. */
static void a_culprits_past_ends_where_its_fault_began(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_past *past;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 79);
	sim_pass(&sim, detect, 10);
	sim.rank[2].device *= 1.5;
	sim_pass(&sim, detect, 20);
	assert_names_rank(sim_firing(detect, 0), 2);
	past = &detect->rank[2].track[NT_SERIES_OWN].past;
	assert_int_equal(past->count, 10);
	assert_int_equal(detect->lessons[2].of[NT_SERIES_OWN].frame[9], 10);
	sim_free(&sim);
	nt_detect_free(detect);
}

static void a_whole_node_is_named_as_the_node(void **state)
{
	struct nt_detect *detect;
	const struct nt_finding *finding;
	struct sim sim;

	(void)state;
	warm(&sim, &detect, 32, 75);
	for (uint32_t i = 8; i < 16; i++)
		sim.rank[i].device *= 1.3;
	assert_int_equal(watch(&sim, detect, 30).firing, 1);
	finding = sim_firing(detect, 0);
	assert_int_equal(finding->culprits, 1);
	assert_int_equal(finding->culprit[0].kind, NT_CULPRIT_NODE);
	assert_int_equal(finding->culprit[0].node, 1);
	assert_int_equal(finding->culprit[0].rank_count, 8);
	assert_int_equal(finding->culprit[0].ranks[0], 8);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_node_slow_from_the_start_with_three_times_as_many_peers_is_named(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 32, 76);
	sim.jitter = 0.02;
	for (uint32_t i = 8; i < 16; i++)
		sim.rank[i].device *= 1.4;
	assert_int_equal(watch(&sim, detect, 60).firing, 1);
	assert_int_equal(sim_firing(detect, 0)->culprit[0].kind, NT_CULPRIT_NODE);
	assert_int_equal(sim_firing(detect, 0)->culprit[0].node, 1);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_node_that_holds_all_the_peers_is_named_by_its_onset(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	/* Each of four stages is one node. */
	sim_init_layout(&sim, 1, 4, 8, 77);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 60);
	for (uint32_t i = 8; i < 16; i++)
		sim.rank[i].device *= 1.4;
	sim_pass(&sim, detect, 200);
	assert_int_equal(sim_open(detect), 1);
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
	assert_int_equal(sim_firing(detect, 0)->culprits, 1);
	assert_int_equal(sim_firing(detect, 0)->culprit[0].kind, NT_CULPRIT_NODE);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void the_node_takes_over_what_is_open_for_its_ranks(void **state)
{
	struct nt_detect *detect;
	uint64_t id;
	struct sim sim;

	(void)state;
	sim_init(&sim, 16, 78);
	for (uint32_t i = 0; i < 16; i++)
		sim.rank[i].node = i / 2;
	sim.jitter = 0.01;
	detect = sim_detect();
	sim_pass(&sim, detect, 60);
	sim.rank[4].device *= 1.5;
	sim_pass(&sim, detect, 20);
	assert_names_rank(sim_firing(detect, 0), 4);
	id = sim_firing(detect, 0)->id;
	sim.rank[5].device *= 1.5;
	sim_pass(&sim, detect, 20);
	assert_int_equal(sim_firing(detect, 0)->culprit[0].kind, NT_CULPRIT_NODE);
	assert_int_equal(sim_firing(detect, 0)->culprit[0].node, 2);
	assert_true(sim_firing(detect, 0)->id == id);
	assert_null(sim_firing(detect, 1));
	sim.rank[4].device /= 1.5;
	sim.rank[5].device /= 1.5;
	sim_pass(&sim, detect, 300);
	assert_int_equal(sim_open(detect), 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void half_of_the_ranks_slow_after_a_while_are_named_by_their_own_past(void **state)
{
	static const uint32_t slow[] = {1, 2, 5, 7, 3};
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	for (uint32_t n = 3; n <= 5; n++) {
		warm(&sim, &detect, 8, 79);
		for (uint32_t i = 0; i < n; i++)
			sim.rank[slow[i]].device *= 1.4;
		assert_int_equal(watch(&sim, detect, 40).firing, 1);
		assert_int_equal(sim_firing(detect, 0)->culprits, n);
		assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
		assert_null(sim_firing(detect, 1));
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

static void the_same_rank_again_is_another_incident(void **state)
{
	struct nt_detect *detect;
	uint64_t id;
	struct sim sim;

	(void)state;
	warm(&sim, &detect, 8, 80);
	sim.rank[1].device *= 1.5;
	sim_pass(&sim, detect, 20);
	id = sim_firing(detect, 0)->id;
	sim.rank[1].device /= 1.5;
	assert_int_equal(watch(&sim, detect, 300).resolved, 1);
	sim.rank[1].device *= 1.5;
	assert_int_equal(watch(&sim, detect, 20).firing, 1);
	assert_true(sim_firing(detect, 0)->id != id);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void the_id_depends_on_job_attempt_and_culprit(void **state)
{
	static const struct {
		uint64_t job;
		uint32_t attempt, rank;
	} with[] = {{1, 1, 2}, {1, 1, 2}, {2, 1, 2}, {1, 2, 2}, {1, 1, 3}};
	const struct nt_rules rules = nt_rules_default();
	uint64_t id[5];

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct nt_detect *detect = NULL;
		struct sim sim;

		assert_int_equal(nt_detect_new(&rules, with[i].job, with[i].attempt, &detect), 0);
		sim_init(&sim, 8, 81);
		sim.rank[with[i].rank].device *= 1.5;
		sim_pass(&sim, detect, 20);
		id[i] = sim_firing(detect, 0)->id;
		nt_detect_free(detect);
		sim_free(&sim);
	}
	assert_true(id[0] == id[1]);
	for (int i = 2; i < 5; i++)
		assert_true(id[0] != id[i]);
}

static void a_fault_is_over_after_a_minute_and_until_tells_when_it_ended(void **state)
{
	struct nt_detect *detect;
	const struct nt_finding *finding = NULL;
	uint64_t healed, resolved = 0, until = 0;
	struct sim sim;

	(void)state;
	warm(&sim, &detect, 8, 82);
	sim.rank[1].device *= 1.5;
	sim_pass(&sim, detect, 30);
	sim.rank[1].device /= 1.5;
	healed = sim.now_ns;
	while (!resolved) {
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
		for (size_t i = 0; i < findings; i++) {
			if (finding[i].state != NT_INCIDENT_RESOLVED)
				continue;
			resolved = sim.now_ns;
			until = finding[i].until_ns;
			assert_names_rank(&finding[i], 1);
		}
	}
	assert_in_range((resolved - healed) / SIM_SECOND, 55, 70);
	/* A healthy window that costs half the floor by chance may move it a little. */
	assert_in_range(until, healed, healed + 60ull * SIM_SECOND);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void the_cost_is_counted_in_gpu_hours(void **state)
{
	struct nt_detect *detect;
	double lost;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 83);
	detect = sim_detect();
	sim_pass(&sim, detect, 60);
	sim.rank[1].device *= 2.0;
	sim_pass(&sim, detect, 100);
	/* 70 of 160 ms are lost, on eight GPUs, since the onset. */
	lost = 70.0 / 160.0 * 8.0 * (double)(sim.now_ns - sim_firing(detect, 0)->since_ns) / 3600e9;
	assert_true(fabs(sim_firing(detect, 0)->gpu_hours - lost) < 0.03 * lost);
	assert_true(fabs(sim_firing(detect, 0)->slowdown - 160.0 / 90.0) < 0.02);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Every tenth window is three times as long for all, before the fault and since. */
static void pass_with_checkpoints(struct sim *sim, struct nt_detect *detect, uint32_t tens)
{
	for (uint32_t i = 0; i < tens; i++) {
		sim_pass(sim, detect, 9);
		sim->extra_ns = 2ull * SIM_SECOND;
		sim_pass(sim, detect, 1);
	}
}

static void a_checkpoint_costs_no_more_than_twice_the_fault(void **state)
{
	struct nt_detect *detect;
	uint64_t steps;
	double lost;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 83);
	detect = sim_detect();
	pass_with_checkpoints(&sim, detect, 6);
	sim.rank[1].device *= 2.0;
	pass_with_checkpoints(&sim, detect, 10);
	/* 70 ms a step. A checkpoint adds as much to the steps of its window, in place of two seconds. */
	steps = 100ull * sim.steps;
	lost = 0.070 * 8.0 * (double)steps / 3600.0;
	assert_names_rank(sim_firing(detect, 0), 1);
	assert_true(sim_firing(detect, 0)->gpu_hours > 0.95 * lost);
	assert_true(sim_firing(detect, 0)->gpu_hours < 1.15 * lost);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void incompleteness_lowers_the_confidence(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	warm(&sim, &detect, 8, 84);
	sim.rank[1].device *= 2.0;
	sim.completeness = 0.75;
	sim_pass(&sim, detect, 20);
	assert_true(fabs(sim_firing(detect, 0)->completeness - 0.75) < 1e-9);
	assert_true(fabs(sim_firing(detect, 0)->confidence - 0.75) < 1e-3);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* What the next frame has to say of an open incident, NULL where that is nothing new. */
static const struct nt_finding *told_next(struct sim *sim, struct nt_detect *detect)
{
	const struct nt_finding *finding = NULL;
	size_t findings = 0;

	assert_int_equal(nt_detect_step(detect, sim_next(sim), &finding, &findings), 0);
	return findings ? finding : NULL;
}

static void completeness_is_that_of_all_windows_since_the_onset(void **state)
{
	const struct nt_finding *told;
	struct nt_detect *detect;
	double missing, length;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 86);
	detect = sim_detect();
	sim_pass(&sim, detect, 55);
	sim.completeness = 0.5;
	sim_pass(&sim, detect, 5);
	/* What was missing before the fault is none of its own. */
	sim.completeness = 1.0;
	sim.rank[1].device *= 2.0;
	sim_pass(&sim, detect, 20);
	assert_non_null(sim_firing(detect, 0));
	assert_true(sim_firing(detect, 0)->completeness == 1.0);
	sim.completeness = 0.5;
	told = told_next(&sim, detect);
	assert_non_null(told);
	missing = 0.5 * (double)(sim.frame.end_ns - sim.frame.start_ns);
	/* It stays missing. */
	sim.completeness = 1.0;
	sim_pass(&sim, detect, 10);
	length = (double)(sim.now_ns - sim_firing(detect, 0)->since_ns);
	assert_true(fabs(sim_firing(detect, 0)->completeness - (1.0 - missing / length)) < 1e-9);
	assert_true(sim_firing(detect, 0)->confidence <= sim_firing(detect, 0)->completeness);
	/* But for what came after all. */
	sim.frame.missed_ns = -missing;
	told = told_next(&sim, detect);
	assert_non_null(told);
	assert_true(told->completeness == 1.0);
	sim.frame.missed_ns = 0.0;
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_job_that_falls_silent_takes_its_incidents_completeness_along(void **state)
{
	const struct nt_finding *told;
	struct nt_detect *detect;
	uint32_t times = 0;
	double last = 1.0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 87);
	detect = sim_detect();
	sim_pass(&sim, detect, 60);
	sim.rank[1].device *= 2.0;
	sim_pass(&sim, detect, 30);
	sim.completeness = 0.0;
	for (uint32_t i = 0; i < 8; i++)
		sim.rank[i].silent = true;
	for (int i = 0; i < 270; i++) {
		told = told_next(&sim, detect);
		if (!told)
			continue;
		assert_int_equal(told->state, NT_INCIDENT_FIRING);
		assert_names_rank(told, 1);
		assert_true(told->completeness < last);
		last = told->completeness;
		times++;
	}
	/* A tenth of the time is left, told at each tenth of what was told before. */
	assert_true(last < 0.12);
	assert_in_range(times, 5, 25);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Its own past holds the fault: that must not look like its end. */
static void who_is_slow_from_the_start_stays_one_incident(void **state)
{
	struct nt_detect *detect = sim_detect();
	uint64_t id = 0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 16, 86);
	sim.jitter = 0.002;
	sim.rank[5].device *= 1.08;
	for (int i = 0; i < 600; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
		for (size_t j = 0; j < findings; j++) {
			assert_int_not_equal(finding[j].state, NT_INCIDENT_RESOLVED);
			assert_true(!id || finding[j].id == id);
			id = finding[j].id;
		}
	}
	assert_true(id);
	sim.rank[5].device /= 1.08;
	sim_pass(&sim, detect, 200);
	assert_int_equal(sim_open(detect), 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* But each minute for what it has cost so far. */
static void what_does_not_change_is_not_told_again(void **state)
{
	const uint64_t minute_ns = 60000000000;
	uint64_t minutes = 0;
	struct nt_detect *detect;
	uint32_t told = 0;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 85);
	detect = sim_detect();
	sim_pass(&sim, detect, 60);
	sim.rank[1].device *= 2.0;
	sim_pass(&sim, detect, 40);
	for (int i = 0; i < 100; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, sim_next(&sim), &finding, &findings), 0);
		told += (uint32_t)findings;
		minutes += sim.frame.end_ns / minute_ns != sim.frame.start_ns / minute_ns;
		assert_int_equal(told, minutes);
	}
	assert_true(minutes > 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_finding_is_pending_before_it_fires_under_the_same_id),
		cmocka_unit_test(an_intermittent_fault_is_one_incident),
		cmocka_unit_test(simultaneous_culprits_are_one_incident),
		cmocka_unit_test(faults_at_different_times_are_two_incidents),
		cmocka_unit_test(a_culprits_past_ends_where_its_fault_began),
		cmocka_unit_test(a_whole_node_is_named_as_the_node),
		cmocka_unit_test(
			a_node_slow_from_the_start_with_three_times_as_many_peers_is_named),
		cmocka_unit_test(a_node_that_holds_all_the_peers_is_named_by_its_onset),
		cmocka_unit_test(the_node_takes_over_what_is_open_for_its_ranks),
		cmocka_unit_test(half_of_the_ranks_slow_after_a_while_are_named_by_their_own_past),
		cmocka_unit_test(the_same_rank_again_is_another_incident),
		cmocka_unit_test(the_id_depends_on_job_attempt_and_culprit),
		cmocka_unit_test(a_fault_is_over_after_a_minute_and_until_tells_when_it_ended),
		cmocka_unit_test(the_cost_is_counted_in_gpu_hours),
		cmocka_unit_test(a_checkpoint_costs_no_more_than_twice_the_fault),
		cmocka_unit_test(incompleteness_lowers_the_confidence),
		cmocka_unit_test(completeness_is_that_of_all_windows_since_the_onset),
		cmocka_unit_test(a_job_that_falls_silent_takes_its_incidents_completeness_along),
		cmocka_unit_test(who_is_slow_from_the_start_stays_one_incident),
		cmocka_unit_test(what_does_not_change_is_not_told_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
