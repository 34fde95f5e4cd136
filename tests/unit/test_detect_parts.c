/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of the step, each alone, at borders and on values that can be worked out by hand. */
#include "detect_frames.h"

#include <errno.h>

#include "detect/core.h"
#include "detect/fault.h"
#include "detect/kpi.h"

struct job {
	struct sim sim;
	struct nt_detect *detect;
};

/* Two ranks that have met twice; nothing is random. */
static int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init(&job->sim, 2, 1);
	job->detect = sim_detect();
	sim_pass(&job->sim, job->detect, 2);
	*state = job;
	return 0;
}

static int end(void **state)
{
	struct job *job = *state;

	nt_detect_free(job->detect);
	sim_free(&job->sim);
	free(job);
	return 0;
}

/* ---- how ranks stand ------------------------------------------------------------------------- */

static void step_on(struct nt_detect *detect)
{
	const struct nt_frame frame = {.start_ns = detect->end_ns,
				       .end_ns = detect->end_ns + SIM_SECOND,
				       .expected_ranks = 2};
	const struct nt_finding *finding;
	size_t findings;

	assert_int_equal(nt_detect_step(detect, &frame, &finding, &findings), 0);
}

static void who_is_in_no_frame_is_counted_as_it_was_last(void **state)
{
	struct nt_detect *detect = ((struct job *)*state)->detect;

	detect->rank[0].ended = true;
	detect->rank[1].inside =
		(struct nt_frame_inside){.in_call = true, .since_ns = detect->end_ns};
	step_on(detect);
	assert_int_equal(detect->census.here, 1);
	assert_int_equal(detect->census.gone, 1);
	assert_int_equal(detect->census.using_gpu, 2);
	assert_int_equal(detect->census.longest_wait_ns, SIM_SECOND);
	/* Who has not been heard of for four frames may wait or not. */
	step_on(detect);
	step_on(detect);
	assert_int_equal(detect->census.longest_wait_ns, 3ull * SIM_SECOND);
	step_on(detect);
	assert_int_equal(detect->census.longest_wait_ns, 0);
	detect->rank[1].ended = true;
	detect->rank[1].uses_gpu = false;
	step_on(detect);
	assert_int_equal(detect->census.here, 0);
	assert_int_equal(detect->census.gone, 2);
	assert_int_equal(detect->census.using_gpu, 1);
}

/* ---- what a rank says ------------------------------------------------------------------------ */

static void assert_taken(struct job *job, const struct nt_frame_rank *seen, bool taken)
{
	struct nt_rank rank = {.steps = 0};
	const uint64_t before = job->detect->implausible;

	nt_kpi_sum(job->detect, &rank, seen);
	assert_int_equal(job->detect->implausible, before + !taken);
	assert_int_equal(rank.steps, taken ? seen->steps : 0);
	assert_true(rank.sum[NT_PACE_STEP] == (taken ? seen->step_ns : 0));
	assert_true(rank.window_ns == (taken ? seen->window_ns : 0));
}

static void a_part_is_twice_as_long_as_the_step_at_most(void **state)
{
	static const struct {
		size_t at;
		uint64_t most;
	} part[] = {
		{offsetof(struct nt_frame_rank, own_ns), 2001},
		{offsetof(struct nt_frame_rank, own_blocked_ns), 2001},
		{offsetof(struct nt_frame_rank, host_ns), 2001},
		{offsetof(struct nt_frame_rank, blocked_ns), 2001},
		/* Of calls many threads may be in one at a time. */
		{offsetof(struct nt_frame_rank, comm_ns), 64063},
		{offsetof(struct nt_frame_rank, window_ns), 1ULL << 56},
	};

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		struct nt_frame_rank seen = {.steps = 3, .step_ns = 1000};
		uint64_t value = part[i].most;

		memcpy((char *)&seen + part[i].at, &value, sizeof(value));
		assert_taken(*state, &seen, true);
		value++;
		memcpy((char *)&seen + part[i].at, &value, sizeof(value));
		assert_taken(*state, &seen, false);
	}
}

static void a_step_takes_some_time_but_not_for_ever(void **state)
{
	struct nt_frame_rank seen = {.steps = 1};

	assert_taken(*state, &seen, false);
	seen.step_ns = 1;
	assert_taken(*state, &seen, true);
	seen.step_ns = 1ULL << 56;
	assert_taken(*state, &seen, true);
	seen.step_ns++;
	assert_taken(*state, &seen, false);
}

static void what_a_thread_did_counts_without_a_step_too(void **state)
{
	struct job *job = *state;
	struct nt_frame_rank seen = {
		.window_ns = 100,
		.own_ns = 1,
		.own_blocked_ns = 2,
		.host_ns = 3,
		.blocked_ns = 4,
		.comm_ns = 5,
		.step_ns = 6,
		.on_cpu_ns = 7,
		.run_queue_ns = 8,
		.io_ns = 9,
		.gc_ns = 10,
		.read_bytes = 11,
		.write_bytes = 12,
		.major_faults = 13,
	};
	struct nt_rank rank = {.rank = 0};

	for (int i = 0; i < 2; i++)
		nt_kpi_sum(job->detect, &rank, &seen);
	for (int i = 0; i < NT_PACE_THREAD; i++)
		assert_int_equal(rank.sum[i], 0);
	for (int i = NT_PACE_THREAD; i < NT_PACE_CALLS; i++)
		assert_int_equal(rank.sum[i], 2 * (i + 1));
	assert_int_equal(rank.window_ns, 200);
	assert_int_equal(rank.steps, 0);
	seen.steps = 2;
	nt_kpi_sum(job->detect, &rank, &seen);
	for (int i = 0; i < NT_PACE_THREAD; i++)
		assert_int_equal(rank.sum[i], i + 1);
	for (int i = NT_PACE_THREAD; i < NT_PACE_CALLS; i++)
		assert_int_equal(rank.sum[i], 3 * (i + 1));
	assert_int_equal(rank.window_ns, 300);
	assert_int_equal(rank.steps, 2);
}

static void steps_and_sums_do_not_wrap(void **state)
{
	struct job *job = *state;
	const struct nt_frame_rank seen = {.steps = 5, .step_ns = 10, .read_bytes = 20};
	struct nt_rank rank = {.steps = UINT32_MAX - 5};

	rank.sum[NT_PACE_READ] = UINT64_MAX - 3;
	nt_kpi_sum(job->detect, &rank, &seen);
	assert_int_equal(rank.steps, UINT32_MAX - 5);
	assert_true(rank.sum[NT_PACE_READ] == UINT64_MAX);
	rank.steps--;
	nt_kpi_sum(job->detect, &rank, &seen);
	assert_int_equal(rank.steps, UINT32_MAX - 1);
}

static void who_is_not_in_the_frame_is_not_observed(void **state)
{
	struct job *job = *state;

	assert_true(job->detect->rank[1].observed);
	job->sim.rank[1].absent = true;
	sim_pass(&job->sim, job->detect, 1);
	assert_true(job->detect->rank[0].observed);
	assert_false(job->detect->rank[1].observed);
}

static void what_another_is_held_against_is_never_nothing(void **state)
{
	const struct nt_rules rules = {.kpi_floor = 0.01};

	(void)state;
	assert_true(nt_kpi_base(&rules, 0.0, 0.0) == 1.0);
	assert_true(nt_kpi_base(&rules, 5.0, 1000.0) == 10.0);
	assert_true(nt_kpi_base(&rules, 20.0, 1000.0) == 20.0);
}

/* ---- communicators --------------------------------------------------------------------------- */

static void what_is_said_of_a_communicator_adds_up(void **state)
{
	struct job *job = *state;
	struct nt_rank *rank = &job->detect->rank[1];
	const struct nt_frame_op op[] = {
		{.op = 1, .kind = NT_FRAME_SYNCHRONISING, .calls = 3, .bytes = 30},
		{.op = 2, .kind = NT_FRAME_ALL_TO_ALL, .calls = 5, .bytes = 50},
		{.op = 3, .kind = NT_FRAME_POINT_TO_POINT, .calls = 7, .bytes = 70},
		{.op = 31, .kind = NT_FRAME_ROOTED, .calls = 9, .bytes = 90},
		{.op = 32, .kind = NT_FRAME_ROOTED, .calls = 9, .bytes = 90},
		{.op = 5, .kind = NT_FRAME_POINT_TO_POINT + 1},
	};
	struct nt_frame_comm said = {
		.id = 77, .size = 4, .epoch = 2, .last = 9, .op = op, .ops = 6};
	const struct nt_frame_rank seen = {.steps = 6, .comm = &said, .comms = 1};
	struct nt_comm *comm;

	job->detect->roles.dirty = false;
	assert_int_equal(nt_comm_learn(job->detect, rank, &seen), 0);
	assert_true(job->detect->roles.dirty);
	comm = nt_comm_find(job->detect->comms, 77);
	assert_non_null(comm);
	assert_int_equal(comm->members, 1);
	assert_int_equal(comm->member[0], 1);
	assert_int_equal(comm->size, 4);
	assert_true(comm->steps == 6.0);
	assert_true(comm->sync_calls == 3.0 && comm->sync_bytes == 30.0);
	assert_true(comm->all_to_all_calls == 5.0 && comm->p2p_calls == 7.0);
	assert_int_equal(comm->kind_of[1], NT_FRAME_SYNCHRONISING + 1);
	assert_int_equal(comm->kind_of[2], NT_FRAME_ALL_TO_ALL + 1);
	assert_int_equal(comm->kind_of[3], NT_FRAME_POINT_TO_POINT + 1);
	assert_int_equal(comm->kind_of[31], NT_FRAME_ROOTED + 1);
	assert_int_equal(comm->kind_of[5], 0);
	assert_int_equal(comm->kind_of[0], 0);
	/* Once more: the same member, and the largest size that was told. */
	job->detect->roles.dirty = false;
	said.size = 3;
	assert_int_equal(nt_comm_learn(job->detect, rank, &seen), 0);
	assert_false(job->detect->roles.dirty);
	assert_int_equal(comm->members, 1);
	assert_int_equal(comm->size, 4);
	assert_true(comm->steps == 12.0 && comm->sync_calls == 6.0);
	assert_true(nt_comm_calls(comm) == 0.5);
	assert_true(nt_comm_call_bytes(comm) == 10.0);
}

static void progress_is_a_number_or_an_epoch_that_moves(void **state)
{
	struct job *job = *state;
	struct nt_rank *rank = &job->detect->rank[0];
	struct nt_frame_comm said = {.id = 78, .size = 2, .epoch = 1, .last = 9};
	const struct nt_frame_rank seen = {.comm = &said, .comms = 1};
	const struct nt_link *link;

	job->detect->end_ns = 100;
	assert_int_equal(nt_comm_learn(job->detect, rank, &seen), 0);
	link = &rank->link[rank->links - 1];
	assert_int_equal(link->progress_ns, 100);
	assert_int_equal(link->frame, job->detect->frames);
	job->detect->end_ns = 200;
	assert_int_equal(nt_comm_learn(job->detect, rank, &seen), 0);
	assert_int_equal(link->progress_ns, 100);
	said.last++;
	assert_int_equal(nt_comm_learn(job->detect, rank, &seen), 0);
	assert_int_equal(link->progress_ns, 200);
	job->detect->end_ns = 300;
	said.epoch++;
	assert_int_equal(nt_comm_learn(job->detect, rank, &seen), 0);
	assert_int_equal(link->progress_ns, 300);
	assert_int_equal(link->last, 10);
	assert_int_equal(link->epoch, 2);
}

static void members_are_compared_where_they_are_at_the_same_call(void **state)
{
	static const struct {
		uint64_t epoch, last, hash;
		bool agreed, differed;
	} other[] = {
		{1, 9, 5, true, false},
		{1, 9, 6, false, true},
		{2, 9, 6, false, false},
		{1, 8, 6, false, false},
	};
	struct job *job = *state;
	struct nt_comm *comm;

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		struct nt_frame_comm said = {.id = 79, .epoch = 1, .last = 9, .rolling_hash = 5};
		const struct nt_frame_rank seen = {.comm = &said, .comms = 1};

		job->detect->frames++;
		assert_int_equal(nt_comm_learn(job->detect, &job->detect->rank[0], &seen), 0);
		comm = nt_comm_find(job->detect->comms, 79);
		assert_true(comm->agreed_frame != job->detect->frames);
		assert_true(comm->differed_frame != job->detect->frames);
		said.epoch = other[i].epoch;
		said.last = other[i].last;
		said.rolling_hash = other[i].hash;
		assert_int_equal(nt_comm_learn(job->detect, &job->detect->rank[1], &seen), 0);
		assert_int_equal(comm->agreed_frame == job->detect->frames, other[i].agreed);
		assert_int_equal(comm->differed_frame == job->detect->frames, other[i].differed);
	}
}

/* ---- incidents ------------------------------------------------------------------------------- */

/* What a rule would say; every value is another. */
static struct nt_proposal propose(void)
{
	static const uint32_t list[] = {0, 1};

	return (struct nt_proposal){
		.family = NT_FAMILY_NETWORK,
		.class = NT_CLASS_NETWORK,
		.cause = NT_WORD_NETWORK,
		.kind = NT_CULPRIT_COMMUNICATOR,
		.rank = list,
		.ranks = 2,
		.comm = 5,
		.onset_ns = 7,
		.cost = 0.5,
		.tier = NT_FRAME_T3,
		.chance = 0.125,
		.evidence = {{.what = NT_WORD_TRANSFER, .value = 3.0}},
		.evidences = 1,
	};
}

static struct nt_incident *raise(struct job *job, const struct nt_proposal *proposal)
{
	assert_int_equal(nt_incidents_raise(job->detect, proposal), 0);
	return nt_incidents_find(job->detect, proposal->family, proposal->comm);
}

static void one_family_has_one_incident_and_a_network_one_for_each_communicator(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	struct nt_incident *incident = raise(job, &proposal);

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
	struct nt_incident *incident = raise(job, &first);

	for (int i = 0; i < 7; i++) {
		struct nt_proposal next = first;

		assert_ptr_equal(raise(job, &first), incident);
		incident->changed = false;
		switch (i) {
		case 0:
			next.class = NT_CLASS_HOST;
			break;
		case 1:
			next.cause = NT_WORD_GC;
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
	struct nt_incident *incident = raise(job, &proposal);

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

static void who_has_just_learned_its_past_may_have_begun_with_the_others(void **state)
{
	static const struct {
		uint64_t onset_ns;
		bool first_seen, together;
	} then[] = {
		{3000, true, true}, {3001, true, false},  {1251, true, true},
		{749, true, false}, {1251, false, false},
	};
	struct job *job = *state;

	for (uint32_t i = 0; i < 2; i++)
		job->detect->roles.group[job->detect->rank[i].group].window_ns = 100.0;
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		struct nt_proposal proposal = propose();

		nt_incidents_begin(job->detect);
		proposal.onset_ns = 1000;
		blame(job, 0, &proposal);
		proposal.onset_ns = then[i].onset_ns;
		proposal.first_seen = then[i].first_seen;
		blame(job, 1, &proposal);
		assert_int_equal(job->detect->incidents.opens, then[i].together ? 1 : 2);
		assert_int_equal(nt_incidents_close(job->detect, NT_FAMILY_END), 0);
	}
}

static void a_culprits_cost_is_smoothed_and_the_dearest_is_shown(void **state)
{
	struct job *job = *state;
	struct nt_proposal proposal = propose();
	struct nt_incident *incident;

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
	struct nt_incident *incident;

	proposal.class = NT_CLASS_COMPUTE;
	proposal.cause = NT_WORD_NONE;
	proposal.cost = 0.5;
	blame(job, 0, &proposal);
	proposal.class = NT_CLASS_HOST;
	proposal.cause = NT_WORD_GC;
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
	assert_int_equal(incident->cause, NT_WORD_NONE);
	assert_int_equal(incident->tier, NT_FRAME_T2);
	assert_true(incident->cost == 0.625);
	assert_true(incident->chance == 0.25);
	assert_int_equal(incident->since_ns, 6);
	incident->blame[1].cost = 0.6250001;
	settle(job);
	assert_int_equal(incident->class, NT_CLASS_HOST);
	assert_int_equal(incident->cause, NT_WORD_GC);
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
	struct nt_incident *incident = raise(job, &proposal);

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
	const struct nt_incident *incident = raise(job, &proposal);

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
	const struct nt_incident *incident;

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
	struct nt_incident *incident;
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
	incident->told_slowdown = 1.2;
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
	struct nt_incident *incident = raise(job, &proposal);
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
		incident->told_slowdown = 2.0;
		incident->cost = then[i].cost;
		settle(job);
		assert_int_equal(incident->changed, then[i].changed);
		assert_int_equal(incident->version, version + then[i].changed);
	}
}

static void what_has_gone_is_told_as_it_was_held(void **state)
{
	struct job *job = *state;
	struct nt_incident incident = {
		.family = NT_FAMILY_STALL,
		.stands = true,
		.class = NT_CLASS_HANG,
		.cause = NT_WORD_GC,
		.tier = NT_FRAME_T3,
		.cost = 1.5,
		.chance = 0.25,
		.slowdown = 3.5,
		.gpu_hours = 4.5,
		.confidence = 0.75,
		.completeness = 1.0,
		.evidence = {{.value = 6.5}},
		.evidences = 1,
	};
	const struct nt_incident was = incident;

	nt_fault_tell(&incident);
	assert_memory_equal(&incident, &was, sizeof(was));
	nt_fault_hold(job->detect, &incident);
	incident = (struct nt_incident){
		.family = NT_FAMILY_STALL,
		.completeness = 0.5,
		.fault = incident.fault,
	};
	/* It does not stand, and so it is held as before. */
	nt_fault_hold(job->detect, &incident);
	nt_fault_tell(&incident);
	assert_int_equal(incident.class, NT_CLASS_HANG);
	assert_int_equal(incident.cause, NT_WORD_GC);
	assert_int_equal(incident.tier, NT_FRAME_T3);
	assert_true(incident.cost == 1.5);
	assert_true(incident.chance == 0.25);
	assert_true(incident.slowdown == 3.5);
	assert_true(incident.gpu_hours == 4.5);
	/* How much was seen is of all its time. */
	assert_true(incident.confidence == 0.375);
	assert_true(incident.completeness == 0.5);
	assert_true(incident.evidence[0].value == 6.5);
	assert_int_equal(incident.evidences, 1);
	assert_true(incident.fault.worst_cost == 1.5);
}

/* Half of what the fault is held to cost, and half of its worst: only such a window is the fault. */
static void a_window_of_the_recovery_is_not_the_fault(void **state)
{
	static const struct {
		double cost, window_cost;
		bool stands, is_bad, counts;
	} then[] = {
		{0.5, 0.4, true, true, true},    {0.5, 0.39, true, false, true},
		{0.5, 0.25, true, false, true},  {0.5, 0.24, true, false, false},
		{0.5, 0.4, false, false, false}, {1.0, 0.49, true, false, false},
		{0.02, 0.02, true, false, true}, {0.02, 0.0149, true, false, false},
	};
	struct job *job = *state;

	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		struct nt_incident incident = {
			.family = NT_FAMILY_NETWORK,
			.cost = then[i].cost,
			.window_cost = then[i].window_cost,
			.stands = then[i].stands,
			.gpu_hours = 2.0,
			.slowdown = 2.0,
			.fault = {.held = true,
				  .worst_cost = 0.8,
				  .gpu_hours = 1.0,
				  .slowdown = 1.0},
		};

		nt_fault_hold(job->detect, &incident);
		assert_true(incident.fault.gpu_hours == (then[i].counts ? 2.0 : 1.0));
		assert_true(incident.fault.slowdown == (then[i].is_bad ? 2.0 : 1.0));
	}
}

#define JOB_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(who_is_in_no_frame_is_counted_as_it_was_last),
		JOB_TEST(a_part_is_twice_as_long_as_the_step_at_most),
		JOB_TEST(a_step_takes_some_time_but_not_for_ever),
		JOB_TEST(what_a_thread_did_counts_without_a_step_too),
		JOB_TEST(steps_and_sums_do_not_wrap),
		JOB_TEST(who_is_not_in_the_frame_is_not_observed),
		JOB_TEST(what_another_is_held_against_is_never_nothing),
		JOB_TEST(what_is_said_of_a_communicator_adds_up),
		JOB_TEST(progress_is_a_number_or_an_epoch_that_moves),
		JOB_TEST(members_are_compared_where_they_are_at_the_same_call),
		JOB_TEST(one_family_has_one_incident_and_a_network_one_for_each_communicator),
		JOB_TEST(only_what_changed_is_told_again),
		JOB_TEST(costs_are_smoothed_once_they_are_told),
		JOB_TEST(over_the_cap_incidents_are_refused_and_counted),
		JOB_TEST(ranks_that_began_two_windows_and_a_half_apart_are_together),
		JOB_TEST(who_has_just_learned_its_past_may_have_begun_with_the_others),
		JOB_TEST(a_culprits_cost_is_smoothed_and_the_dearest_is_shown),
		JOB_TEST(the_class_is_that_of_the_worst_if_it_is_worse_by_a_quarter),
		JOB_TEST(an_incident_fires_when_it_has_stood_twice),
		JOB_TEST(a_pending_one_may_do_without_evidence_for_a_while),
		JOB_TEST(what_every_frame_tells_is_over_after_two_without),
		JOB_TEST(what_it_costs_is_counted_from_its_onset_once),
		JOB_TEST(a_slowdown_that_differs_by_a_tenth_is_not_told_again),
		JOB_TEST(what_has_gone_is_told_as_it_was_held),
		JOB_TEST(a_window_of_the_recovery_is_not_the_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
