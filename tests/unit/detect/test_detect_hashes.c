/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When the hashes of the calls name who made others, and when they prove nothing. */
#include "tests/unit/detect/detect_frames.h"

#include "detect/model/detector_state.h"
#include "detect/rules/mismatch.h"

enum {
	DATA = 0xda7a,
	RANKS = 5,
	NUMBER = 40,
	EPOCH = 3,
	SINCE = 1234,
};

/* Five ranks in one communicator, all at one number with one hash but for rank 2. */
struct job {
	struct sim sim;
	struct nt_detect *detect;
	struct nt_detect_comm *comm;
	struct nt_detect_link *link[RANKS];
};

static int begin(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	sim_init(&job->sim, RANKS, 1);
	job->detect = sim_detect();
	sim_pass(&job->sim, job->detect, 3);
	job->comm = nt_detect_comm_find(job->detect->comms, DATA);
	assert_non_null(job->comm);
	assert_int_equal(job->comm->members, RANKS);
	job->comm->agreed = 3;
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_int_equal(job->detect->rank[i].links, 1);
		job->link[i] = &job->detect->rank[i].link[0];
		job->link[i]->epoch = EPOCH;
		job->link[i]->last = NUMBER;
		job->link[i]->hash = i == 2 ? 0xbad : 0x900d;
	}
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

static const struct nt_detect_incident *told_of(struct job *job, uint64_t number)
{
	const uint32_t before = job->detect->incidents.opens;
	bool differ = false;

	assert_int_equal(nt_mismatch_raise_hashes(job->detect, job->comm, number, SINCE, &differ),
			 0);
	assert_int_equal(job->detect->incidents.opens, before + differ);
	return differ ? job->detect->incidents.open[before] : NULL;
}

static void assert_nothing_is_told(struct job *job)
{
	assert_null(told_of(job, NUMBER));
}

static void assert_rank_2_is_told(struct job *job)
{
	const struct nt_detect_incident *incident = told_of(job, NUMBER);

	assert_non_null(incident);
	assert_int_equal(incident->family, NT_FAMILY_STALL);
	assert_int_equal(incident->class, NT_CLASS_MISMATCH);
	assert_int_equal(incident->kind, NT_CULPRIT_RANK);
	assert_int_equal(incident->listed, 1);
	assert_int_equal(incident->list[0], 2);
	assert_int_equal(incident->since_ns, SINCE);
	assert_int_equal(incident->tier, NT_FRAME_T1);
	assert_int_equal(incident->evidences, 1);
	assert_int_equal(incident->evidence[0].what, NT_EVIDENCE_TEXT_CALLS_UNTIL);
	assert_int_equal(incident->evidence[0].method, NT_EVIDENCE_TEXT_HASH);
	assert_int_equal(incident->evidence[0].unit, NT_EVIDENCE_TEXT_NUMBER);
	assert_true(incident->evidence[0].value == NUMBER);
	assert_true(incident->evidence[0].peers == NUMBER);
}

static void one_hash_that_differs_names_its_rank(void **state)
{
	assert_rank_2_is_told(*state);
}

static void two_of_two_kinds_are_both_named(void **state)
{
	struct job *job = *state;
	const struct nt_detect_incident *incident;

	job->link[4]->hash = 0xbad0;
	incident = told_of(job, NUMBER);
	assert_non_null(incident);
	assert_int_equal(incident->listed, 2);
	assert_int_equal(incident->list[0], 2);
	assert_int_equal(incident->list[1], 4);
}

static void equal_hashes_say_nothing(void **state)
{
	struct job *job = *state;

	job->link[2]->hash = job->link[0]->hash;
	assert_nothing_is_told(job);
}

static void each_member_must_be_at_the_number(void **state)
{
	struct job *job = *state;

	assert_null(told_of(job, NUMBER - 1));
	assert_null(told_of(job, NUMBER + 1));
	for (uint32_t i = 0; i < RANKS; i++) {
		job->link[i]->last = NUMBER - 1;
		assert_nothing_is_told(job);
		job->link[i]->last = NUMBER + 1;
		assert_nothing_is_told(job);
		job->link[i]->last = NUMBER;
	}
	assert_rank_2_is_told(job);
}

static void each_member_must_count_from_the_same_start(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < RANKS; i++) {
		job->link[i]->epoch = EPOCH + 1;
		assert_nothing_is_told(job);
		job->link[i]->epoch = 0;
		assert_nothing_is_told(job);
		job->link[i]->epoch = EPOCH;
	}
	/* Whatever it is. */
	for (uint32_t i = 0; i < RANKS; i++)
		job->link[i]->epoch = 0;
	assert_rank_2_is_told(job);
}

static void each_member_must_be_known(void **state)
{
	struct job *job = *state;

	for (uint32_t i = 0; i < RANKS; i++) {
		const uint32_t kept = job->comm->member[i];
		struct nt_detect_comm other = {.id = 1};

		job->comm->member[i] = 1000;
		assert_nothing_is_told(job);
		job->comm->member[i] = kept;
		/* It is there, and has said nothing of this communicator. */
		job->link[i]->comm = &other;
		assert_nothing_is_told(job);
		job->link[i]->comm = job->comm;
		job->detect->rank[i].links = 0;
		assert_nothing_is_told(job);
		job->detect->rank[i].links = 1;
	}
	assert_rank_2_is_told(job);
}

static void what_was_never_trusted_or_always_varied_says_nothing(void **state)
{
	struct job *job = *state;

	for (uint32_t agreed = 0; agreed < 3; agreed++) {
		job->comm->agreed = agreed;
		assert_nothing_is_told(job);
	}
	job->comm->agreed = 4;
	job->comm->varies = true;
	assert_nothing_is_told(job);
	job->comm->varies = false;
	assert_rank_2_is_told(job);
}

static void only_operations_of_all_members_must_be_the_same(void **state)
{
	static const struct {
		uint8_t first, last;
		bool told;
	} kinds[] = {
		{0, 0, false}, /* nothing is known of any */
		{NT_FRAME_SYNCHRONISING + 1, 0, true},
		{0, NT_FRAME_SYNCHRONISING + 1, true},
		{NT_FRAME_ALL_TO_ALL + 1, 0, true},
		{NT_FRAME_ALL_TO_ALL + 1, NT_FRAME_SYNCHRONISING + 1, true},
		{NT_FRAME_SYNCHRONISING + 1, NT_FRAME_POINT_TO_POINT + 1, false},
		{NT_FRAME_POINT_TO_POINT + 1, NT_FRAME_SYNCHRONISING + 1, false},
		{NT_FRAME_SYNCHRONISING + 1, NT_FRAME_OTHER + 1, false},
		{NT_FRAME_OTHER + 1, NT_FRAME_ALL_TO_ALL + 1, false},
		{NT_FRAME_POINT_TO_POINT + 1, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		void *fresh = NULL;
		struct job *job;

		assert_int_equal(begin(&fresh), 0);
		job = fresh;
		memset(job->comm->kind_of, 0, sizeof(job->comm->kind_of));
		job->comm->kind_of[0] = kinds[i].first;
		job->comm->kind_of[NT_DETECT_COMM_OPS - 1] = kinds[i].last;
		if (kinds[i].told)
			assert_rank_2_is_told(job);
		else
			assert_nothing_is_told(job);
		assert_int_equal(end(&fresh), 0);
	}
}

/* ---- whether calls that differ mean something ------------------------------------------------ */

static bool matters(const struct nt_detect_comm *comm, uint8_t first, uint8_t second)
{
	const struct nt_mismatch_call call[] = {{.rank = 0, .op = first},
						{.rank = 1, .op = second}};

	return nt_mismatch_matters(comm, call, 2);
}

static void of_unknown_operations_only_a_difference_between_them_matters(void **state)
{
	const struct nt_detect_comm comm = {.kind_of = {[1] = NT_FRAME_SYNCHRONISING + 1,
							[2] = NT_FRAME_ALL_TO_ALL + 1,
							[3] = NT_FRAME_POINT_TO_POINT + 1,
							[4] = NT_FRAME_OTHER + 1}};

	(void)state;
	assert_true(matters(&comm, 1, 1));
	assert_true(matters(&comm, 2, 2));
	assert_true(matters(&comm, 1, 2));
	assert_false(matters(&comm, 3, 3));
	assert_false(matters(&comm, 1, 3));
	assert_false(matters(&comm, 3, 1));
	assert_false(matters(&comm, 4, 4));
	assert_false(matters(&comm, 1, 4));
	assert_false(matters(&comm, 5, 5)); /* of a kind that is not known */
	assert_true(matters(&comm, 1, 5));
	assert_true(matters(&comm, 5, 6));
	assert_false(matters(&comm, NT_DETECT_COMM_OPS, NT_DETECT_COMM_OPS));
	assert_false(matters(&comm, NT_DETECT_COMM_OPS - 1, NT_DETECT_COMM_OPS - 1));
	assert_true(matters(&comm, NT_DETECT_COMM_OPS, NT_DETECT_COMM_OPS - 1));
}

/* ---- a communicator's trust ------------------------------------------------------------------ */

/* Each rank is at another call, as where hosts run ahead; those of rank 2 have so many bytes more. */
static void pass_apart(struct sim *sim, struct nt_detect *detect, uint32_t frames, uint64_t more)
{
	for (uint32_t i = 0; i < sim->ranks; i++)
		sim->rank[i].behind = 2 * i;
	for (uint32_t i = 0; i < frames; i++) {
		const struct nt_finding *finding;
		size_t findings;

		(void)sim_next(sim);
		sim->out_op[2].bytes += more * sim->out_op[2].calls;
		assert_int_equal(nt_detect_step(detect, &sim->frame, &finding, &findings), 0);
	}
	for (uint32_t i = 0; i < sim->ranks; i++)
		sim->rank[i].behind = 0;
}

/* A rank whose hash differs after so many frames, in which all were at the same call or apart. */
static void differs_after(uint32_t healthy, bool apart)
{
	const uint32_t counted = healthy < 3 ? healthy : 3;
	struct nt_detect *detect = sim_detect();
	struct nt_detect_comm *comm;
	struct sim sim;

	sim_init(&sim, RANKS, 1);
	if (apart)
		pass_apart(&sim, detect, healthy, 0);
	else
		sim_pass(&sim, detect, healthy);
	comm = nt_detect_comm_find(detect->comms, DATA);
	assert_int_equal(comm->agreed, apart ? 0 : counted);
	assert_int_equal(comm->matched, apart ? counted : 0);
	assert_int_equal(comm->differed_last, 0);
	sim.rank[2].salt = 9;
	sim_pass(&sim, detect, 1);
	assert_int_equal(comm->varies, healthy < 3);
	assert_int_equal(comm->agreed, apart ? 0 : counted);
	assert_int_equal(comm->matched, apart ? counted : 0);
	/* No call shows how they differ: where it was is kept. */
	assert_true(comm->differed_last == (healthy < 3 ? 0 : sim.comm[0].last));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void three_frames_of_agreement_are_trusted_and_two_are_not(void **state)
{
	(void)state;
	for (uint32_t healthy = 1; healthy < 6; healthy++)
		differs_after(healthy, false);
}

static void calls_of_the_same_sizes_are_trusted_as_well(void **state)
{
	(void)state;
	for (uint32_t healthy = 1; healthy < 6; healthy++)
		differs_after(healthy, true);
}

static void one_whose_calls_have_other_sizes_is_never_trusted(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct nt_detect_comm *comm;
	struct sim sim;

	(void)state;
	sim_init(&sim, RANKS, 1);
	pass_apart(&sim, detect, 9, 1);
	comm = nt_detect_comm_find(detect->comms, DATA);
	assert_int_equal(comm->matched, 0);
	sim.rank[2].salt = 9;
	sim_pass(&sim, detect, 1);
	assert_true(comm->varies);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void what_differs_and_goes_on_all_the_same_varies(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 3);
	job->sim.rank[2].salt = 9;
	/* A host may run ahead of a call that never ends, but not for long. */
	for (uint32_t i = 1; i <= 8; i++) {
		sim_pass(&job->sim, job->detect, 1);
		assert_false(job->comm->varies);
		assert_int_equal(job->comm->differed_last, job->sim.comm[0].last);
		assert_int_equal(job->comm->differed_moves, i);
	}
	sim_pass(&job->sim, job->detect, 1);
	assert_true(job->comm->varies);
	assert_int_equal(sim_open(job->detect), 0);
}

static void what_differs_once_and_agrees_again_is_forgotten(void **state)
{
	struct job *job = *state;

	sim_pass(&job->sim, job->detect, 3);
	job->sim.rank[2].salt = 9;
	sim_pass(&job->sim, job->detect, 1);
	assert_true(job->comm->differed_last > 0);
	job->sim.rank[2].salt = 0;
	sim_pass(&job->sim, job->detect, 1);
	assert_true(job->comm->differed_last == 0);
	assert_false(job->comm->varies);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_hash_that_differs_names_its_rank),
		CASE(two_of_two_kinds_are_both_named),
		CASE(equal_hashes_say_nothing),
		CASE(each_member_must_be_at_the_number),
		CASE(each_member_must_count_from_the_same_start),
		CASE(each_member_must_be_known),
		CASE(what_was_never_trusted_or_always_varied_says_nothing),
		cmocka_unit_test(only_operations_of_all_members_must_be_the_same),
		cmocka_unit_test(of_unknown_operations_only_a_difference_between_them_matters),
		cmocka_unit_test(three_frames_of_agreement_are_trusted_and_two_are_not),
		cmocka_unit_test(calls_of_the_same_sizes_are_trusted_as_well),
		cmocka_unit_test(one_whose_calls_have_other_sizes_is_never_trusted),
		CASE(what_differs_and_goes_on_all_the_same_varies),
		CASE(what_differs_once_and_agrees_again_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
