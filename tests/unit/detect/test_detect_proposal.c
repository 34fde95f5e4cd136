/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rule proposes: raised, blamed on ranks, settled into an incident. */
#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/incidents/incident_settle.h"
#include "tests/unit/detect/detect_pair.h"

/* What a rule would say; every value is another. */
static struct nt_proposal propose(void)
{
	static const uint32_t list[] = {0, 1};

	return (struct nt_proposal){
		.family = NT_FAMILY_NETWORK,
		.class = NT_CLASS_NETWORK,
		.cause = NT_EVIDENCE_TEXT_NETWORK,
		.kind = NT_CULPRIT_COMMUNICATOR,
		.rank = list,
		.ranks = 2,
		.comm = 5,
		.onset_ns = 7,
		.cost = 0.5,
		.tier = NT_FRAME_T3,
		.chance = 0.125,
		.evidence = {{.what = NT_EVIDENCE_TEXT_TRANSFER, .value = 3.0}},
		.evidences = 1,
	};
}

static struct nt_detect_incident *raise(struct job *job, const struct nt_proposal *proposal)
{
	assert_int_equal(nt_incidents_raise(job->detect, proposal), 0);
	return nt_incidents_find(job->detect, proposal->family, proposal->comm);
}

static void one_family_has_one_incident_and_a_network_one_for_each_communicator(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	struct nt_detect_incident *incident = raise(job, &proposal);

	assert_ptr_equal(raise(job, &proposal), incident);
	proposal.comm = 6;
	assert_ptr_not_equal(raise(job, &proposal), incident);
	proposal.family = NT_FAMILY_STALL;
	incident = raise(job, &proposal);
	proposal.comm = 7;
	assert_ptr_equal(raise(job, &proposal), incident);
	assert_int_equal(job->detect->incidents.opens, 3);
	assert_null(nt_incidents_find(job->detect, NT_FAMILY_NETWORK, 7));
	assert_null(nt_incidents_find(job->detect, NT_FAMILY_PAUSE, 5));
}

static void only_what_changed_is_told_again(void **state)
{
	static const uint32_t others[] = {0, 2};
	struct job *job = *state;
	const struct nt_proposal first = propose();
	struct nt_detect_incident *incident = raise(job, &first);

	for (int i = 0; i < 7; i++) {
		struct nt_proposal next = first;

		assert_ptr_equal(raise(job, &first), incident);
		incident->changed = false;
		switch (i) {
		case 0:
			next.class = NT_CLASS_HOST;
			break;
		case 1:
			next.cause = NT_EVIDENCE_TEXT_GC;
			break;
		case 2:
			next.kind = NT_CULPRIT_STAGE;
			break;
		case 3:
			next.note = true;
			break;
		case 4:
			next.ranks = 1;
			break;
		case 5:
			next.rank = others;
			break;
		default:
			break;
		}
		assert_ptr_equal(raise(job, &next), incident);
		assert_int_equal(incident->changed, i < 6);
		assert_int_equal(incident->class, next.class);
		assert_int_equal(incident->cause, next.cause);
		assert_int_equal(incident->kind, next.kind);
		assert_int_equal(incident->note, next.note);
		assert_int_equal(incident->listed, next.ranks);
		assert_memory_equal(incident->list, next.rank, next.ranks * sizeof(*next.rank));
		assert_int_equal(incident->tier, NT_FRAME_T3);
		assert_true(incident->chance == 0.125);
		assert_true(incident->evidence[0].value == 3.0);
		assert_int_equal(incident->evidences, 1);
		assert_true(incident->stands && incident->judged);
	}
}

static void costs_are_smoothed_once_they_are_told(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	struct nt_detect_incident *incident = raise(job, &proposal);

	assert_true(incident->cost == 0.5);
	proposal.cost = 0.25;
	assert_true(raise(job, &proposal)->cost == 0.25);
	incident->version = 1;
	proposal.cost = 1.25;
	assert_true(fabs(raise(job, &proposal)->cost - 0.55) < 1e-12);
	/* What stands still costs everything at once, and at once no more. */
	proposal.cost = -1.0;
	assert_true(raise(job, &proposal)->cost == -1.0);
	proposal.cost = 0.25;
	assert_true(raise(job, &proposal)->cost == 0.25);
	proposal.cost = 0.0;
	assert_true(fabs(raise(job, &proposal)->cost - 0.175) < 1e-12);
	incident->cost = 0.0;
	proposal.cost = 1.0;
	assert_true(fabs(raise(job, &proposal)->cost - 0.3) < 1e-12);
}

static void over_the_cap_incidents_are_refused_and_counted(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();

	for (uint64_t i = 1; i <= NT_INCIDENT_MAX_OPEN + 2; i++) {
		proposal.comm = i;
		assert_int_equal(nt_incidents_raise(job->detect, &proposal), 0);
	}
	assert_int_equal(job->detect->incidents.opens, NT_INCIDENT_MAX_OPEN);
	assert_int_equal(job->detect->incidents.refused, 2);
	assert_non_null(nt_incidents_find(job->detect, NT_FAMILY_NETWORK, NT_INCIDENT_MAX_OPEN));
	assert_null(nt_incidents_find(job->detect, NT_FAMILY_NETWORK, NT_INCIDENT_MAX_OPEN + 1));
}

static void blame(struct job *job, uint32_t rank, struct nt_proposal *proposal)
{
	proposal->family = NT_FAMILY_SLOW;
	proposal->kind = NT_CULPRIT_RANK;
	assert_int_equal(nt_incidents_blame(job->detect, &job->detect->rank[rank], proposal), 0);
}

static void ranks_that_began_two_windows_and_a_half_apart_are_together(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	const double window_ns = 100.0;

	for (uint32_t i = 0; i < 2; i++)
		job->detect->roles.group[job->detect->rank[i].group].window_ns = window_ns;
	proposal.onset_ns = 1000;
	blame(job, 0, &proposal);
	proposal.onset_ns = 1251;
	blame(job, 1, &proposal);
	assert_int_equal(job->detect->incidents.opens, 2);
	assert_int_equal(nt_incidents_close(job->detect, NT_FAMILY_SLOW), 0);
	assert_int_equal(job->detect->incidents.opens, 0);
	for (int later = 0; later < 2; later++) {
		nt_incidents_begin(job->detect);
		proposal.onset_ns = 1000;
		blame(job, later, &proposal);
		proposal.onset_ns = later ? 750 : 1250;
		blame(job, !later, &proposal);
		assert_int_equal(job->detect->incidents.opens, 1);
		assert_int_equal(job->detect->incidents.open[0]->blames, 2);
		assert_int_equal(job->detect->incidents.open[0]->blame[0].rank, 0);
		assert_int_equal(job->detect->incidents.open[0]->blame[1].rank, 1);
		assert_true(job->detect->rank[0].in_incident && job->detect->rank[1].in_incident);
		assert_int_equal(nt_incidents_close(job->detect, NT_FAMILY_END), 0);
		assert_false(job->detect->rank[0].in_incident || job->detect->rank[1].in_incident);
	}
}

static void a_culprits_cost_is_smoothed_and_the_dearest_is_shown(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	struct nt_detect_incident *incident;

	for (uint32_t i = 0; i < 2; i++)
		job->detect->roles.group[job->detect->rank[i].group].window_ns = 100.0;
	blame(job, 0, &proposal);
	incident = job->detect->incidents.open[0];
	assert_true(incident->blame[0].cost == 0.5);
	proposal.cost = 1.5;
	proposal.evidence[0].value = 4.0;
	blame(job, 0, &proposal);
	assert_true(fabs(incident->blame[0].cost - 0.8) < 1e-12);
	assert_true(incident->evidence[0].value == 4.0);
	proposal.cost = 0.7;
	proposal.evidence[0].value = 5.0;
	blame(job, 1, &proposal);
	assert_true(incident->evidence[0].value == 4.0);
	proposal.cost = 2.0;
	proposal.evidence[0].value = 6.0;
	blame(job, 1, &proposal);
	assert_true(incident->evidence[0].value == 6.0);
	assert_int_equal(incident->blame[1].tier, NT_FRAME_T3);
	assert_true(incident->blame[1].chance == 0.125);
	assert_true(incident->blame[1].stands && incident->stands && incident->judged);
}

/* Settles as if every rank had been judged in this frame. */
static void settle(struct job *job)
{
	for (uint32_t i = 0; i < job->detect->ranks; i++)
		job->detect->rank[i].round_frame = job->detect->frames;
	assert_int_equal(nt_incidents_settle(job->detect, &job->sim.frame), 0);
}

static void the_class_is_that_of_the_worst_if_it_is_worse_by_a_quarter(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	struct nt_detect_incident *incident;

	proposal.class = NT_CLASS_COMPUTE;
	proposal.cause = NT_EVIDENCE_TEXT_NONE;
	proposal.cost = 0.5;
	blame(job, 0, &proposal);
	proposal.class = NT_CLASS_HOST;
	proposal.cause = NT_EVIDENCE_TEXT_GC;
	proposal.cost = 0.625;
	proposal.tier = NT_FRAME_T2;
	proposal.onset_ns = 6;
	proposal.chance = 0.25;
	blame(job, 1, &proposal);
	incident = job->detect->incidents.open[0];
	assert_int_equal(incident->blames, 2);
	incident->changed = false;
	settle(job);
	assert_int_equal(incident->class, NT_CLASS_COMPUTE);
	assert_int_equal(incident->cause, NT_EVIDENCE_TEXT_NONE);
	assert_int_equal(incident->tier, NT_FRAME_T2);
	assert_true(incident->cost == 0.625);
	assert_true(incident->chance == 0.25);
	assert_int_equal(incident->since_ns, 6);
	incident->blame[1].cost = 0.6250001;
	settle(job);
	assert_int_equal(incident->class, NT_CLASS_HOST);
	assert_int_equal(incident->cause, NT_EVIDENCE_TEXT_GC);
	/* And back again only by as much. */
	incident->blame[0].cost = 0.78;
	settle(job);
	assert_int_equal(incident->class, NT_CLASS_HOST);
	assert_true(incident->cost == 0.78);
	incident->blame[0].cost = 0.79;
	settle(job);
	assert_int_equal(incident->class, NT_CLASS_COMPUTE);
}

static void an_incident_fires_when_it_has_stood_twice(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	struct nt_detect_incident *incident = raise(job, &proposal);

	settle(job);
	assert_int_equal(incident->state, NT_INCIDENT_PENDING);
	/* A window that tells nothing of it counts neither way. */
	nt_incidents_begin(job->detect);
	settle(job);
	assert_int_equal(incident->state, NT_INCIDENT_PENDING);
	assert_int_equal(incident->stood, 1);
	nt_incidents_begin(job->detect);
	(void)raise(job, &proposal);
	job->detect->end_ns = 4242;
	settle(job);
	assert_int_equal(incident->state, NT_INCIDENT_FIRING);
	assert_int_equal(incident->fired_ns, 4242);
	assert_int_equal(incident->seen_ns, 4242);
	assert_true(incident->changed);
}

static void a_pending_one_may_do_without_evidence_for_a_while(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	const struct nt_detect_incident *incident = raise(job, &proposal);

	settle(job);
	for (unsigned int i = 1; i <= NT_INCIDENT_PATIENCE; i++) {
		nt_incidents_begin(job->detect);
		assert_int_equal(job->detect->incidents.opens, 1);
		nt_incidents_judge(job->detect, NT_FAMILY_NETWORK, 5, 0.0);
		settle(job);
		assert_int_equal(incident->absent, i);
	}
	assert_int_equal(job->detect->incidents.opens, 0);
	assert_int_equal(job->detect->incidents.gones, 1);
}

static void what_every_frame_tells_is_over_after_two_without(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	const struct nt_detect_incident *incident;

	proposal.family = NT_FAMILY_STALL;
	incident = raise(job, &proposal);
	settle(job);
	/* Pending, it is over at once. */
	nt_incidents_begin(job->detect);
	settle(job);
	assert_int_equal(job->detect->incidents.opens, 0);
	nt_incidents_begin(job->detect);
	for (int i = 0; i < 2; i++) {
		incident = raise(job, &proposal);
		settle(job);
		nt_incidents_begin(job->detect);
	}
	assert_int_equal(incident->state, NT_INCIDENT_FIRING);
	settle(job);
	assert_int_equal(job->detect->incidents.opens, 1);
	nt_incidents_begin(job->detect);
	/* Once more in between, and two are needed again. */
	(void)raise(job, &proposal);
	settle(job);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(job->detect->incidents.opens, 1);
		nt_incidents_begin(job->detect);
		settle(job);
	}
	assert_int_equal(job->detect->incidents.opens, 0);
}

static void what_it_costs_is_counted_from_its_onset_once(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	struct nt_detect_incident *incident;
	const uint64_t hour_ns = 3600ull * SIM_SECOND;

	proposal.family = NT_FAMILY_STALL; /* others by steps: see test_detect_history.c */
	/* Twice as long as it should be, on two GPUs: one of them is lost. */
	job->detect->end_ns = 10 * hour_ns;
	proposal.onset_ns = 9 * hour_ns;
	incident = raise(job, &proposal);
	settle(job);
	assert_true(fabs(incident->slowdown - 2.0) < 1e-12);
	assert_true(fabs(incident->gpu_hours - 1.0) < 1e-12);
	settle(job);
	assert_true(fabs(incident->gpu_hours - 1.0) < 1e-12);
	job->detect->end_ns += hour_ns / 2;
	job->detect->census.using_gpu = 1;
	settle(job);
	assert_true(fabs(incident->gpu_hours - 1.25) < 1e-12);
	assert_int_equal(incident->counted_ns, job->detect->end_ns);
	assert_int_equal(incident->severity, NT_SEVERITY_CRITICAL);
	/* It costs less, and is as grave as it was. */
	incident->changed = false;
	incident->reported_slowdown = 1.2;
	incident->cost = 0.1;
	job->detect->start_ns = job->detect->end_ns;
	settle(job);
	assert_int_equal(incident->severity, NT_SEVERITY_CRITICAL);
	assert_false(incident->changed);
}

static void a_slowdown_that_differs_by_a_tenth_is_not_told_again(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	struct nt_detect_incident *incident = raise(job, &proposal);
	static const struct {
		double cost;
		bool changed;
	} then[] = {{0.5, false}, {0.55, true}, {0.54, false}, {0.45, false}, {0.44, true}};

	settle(job);
	settle(job); /* it fires */
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		const uint64_t version = incident->version;

		/* Told: 2.0. */
		incident->changed = false;
		incident->reported_slowdown = 2.0;
		incident->lost_time.excess_ns = then[i].cost;
		incident->lost_time.of_ns = 1.0;
		settle(job);
		assert_int_equal(incident->changed, then[i].changed);
		assert_int_equal(incident->version, version + then[i].changed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(one_family_has_one_incident_and_a_network_one_for_each_communicator),
		JOB_TEST(only_what_changed_is_told_again),
		JOB_TEST(costs_are_smoothed_once_they_are_told),
		JOB_TEST(over_the_cap_incidents_are_refused_and_counted),
		JOB_TEST(ranks_that_began_two_windows_and_a_half_apart_are_together),
		JOB_TEST(a_culprits_cost_is_smoothed_and_the_dearest_is_shown),
		JOB_TEST(the_class_is_that_of_the_worst_if_it_is_worse_by_a_quarter),
		JOB_TEST(an_incident_fires_when_it_has_stood_twice),
		JOB_TEST(a_pending_one_may_do_without_evidence_for_a_while),
		JOB_TEST(what_every_frame_tells_is_over_after_two_without),
		JOB_TEST(what_it_costs_is_counted_from_its_onset_once),
		JOB_TEST(a_slowdown_that_differs_by_a_tenth_is_not_told_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
