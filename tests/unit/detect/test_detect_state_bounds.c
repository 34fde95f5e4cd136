/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Every number of a saved state may go to its bound and not beyond; what contradicts itself is
 * refused.
 */
#include "tests/unit/detect/detect_frames.h"

#include <errno.h>
#include <malloc.h>

#include "common/base/codec.h"
#include "detect/model/detector_state.h"

static struct nt_detect *detect;
static bool is_consistent; /* so that what is made anew on loading is what was saved */

/* A job with something in every part of its state. */
static int begin(void **state)
{
	struct sim sim;

	(void)state;
	is_consistent = true;
	detect = sim_detect();
	sim_init_layout(&sim, 2, 2, 4, 97);
	sim.jitter = 0.02;
	for (uint32_t i = 0; i < sim.comms; i++)
		sim.comm[i].timed = sim.comm[i].id == 0xd000;
	sim_pass(&sim, detect, 40);
	sim.completeness = 0.9;
	sim.rank[1].device *= 2.0;
	sim_pass(&sim, detect, 40);
	assert_non_null(sim_firing(detect, 0));
	sim_free(&sim);
	return 0;
}

static int end(void **state)
{
	(void)state;
	nt_detect_free(detect);
	detect = NULL;
	return 0;
}

/* Saved, loaded, and saved once more: the same bytes, or an error. */
static int load_again(void)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_detect *loaded = NULL;
	uint8_t *data = NULL, *again = NULL;
	size_t size = 0, size_again = 0;
	int r;

	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	r = nt_detect_load(&rules, data, size, &loaded);
	if (r == 0 && is_consistent) {
		assert_int_equal(nt_detect_save(loaded, &again, &size_again), 0);
		assert_int_equal(size, size_again);
		assert_memory_equal(data, again, size);
	}
	nt_detect_free(loaded);
	free(data);
	free(again);
	return r;
}

static void check_u8(uint8_t *value, uint8_t most, int line)
{
	const uint8_t kept = *value;

	*value = most;
	if (load_again() != 0)
		fail_msg("line %d: %u is refused", line, most);
	*value = (uint8_t)(most + 1);
	if (load_again() != -EBADMSG)
		fail_msg("line %d: %u is taken", line, most + 1U);
	*value = kept;
}

static void check_u32(uint32_t *value, uint32_t most, int line)
{
	const uint32_t kept = *value;

	*value = most;
	if (load_again() != 0)
		fail_msg("line %d: %u is refused", line, most);
	*value = most + 1;
	if (load_again() != -EBADMSG)
		fail_msg("line %d: %u is taken", line, most + 1);
	*value = kept;
}

#define MOST(value, most)                                                                          \
	_Generic((value), uint8_t : check_u8, uint32_t : check_u32)(&(value), most, __LINE__)

static void each_number_of_a_rank_has_its_bound(void **state)
{
	struct nt_detect_rank *rank = &detect->rank[2];

	(void)state;
	assert_int_equal(load_again(), 0);
	MOST(rank->tier, NT_FRAME_T3);
	for (int i = 0; i < NT_SERIES_END; i++) {
		struct nt_track *track = &rank->track[i];

		track->tier = NT_FRAME_T2;
		MOST(track->tier, NT_FRAME_T3);
		MOST(track->mode, NT_MODE_PAST);
		track->past = (struct nt_past){.count = 0};
		MOST(track->past.count, NT_PAST_WINDOWS - 1);
	}
}

static void each_number_of_a_group_has_its_bound(void **state)
{
	struct nt_group *group = &detect->roles.group[detect->roles.groups - 1];
	struct nt_ring *ring[] = {&group->past->width[0], &group->past->width[1],
				  &group->past->core[0], &group->past->core[1],
				  &group->past->worst};

	(void)state;
	MOST(group->kind, NT_GROUP_STAGE);
	for (int i = 0; i < NT_SERIES_END; i++)
		MOST(group->tier[i], NT_FRAME_T3);
	for (size_t i = 0; i < sizeof(ring) / sizeof(ring[0]); i++) {
		/* Of more values than there is room for the size is not to be believed either. */
		const uint32_t kept = ring[i]->count, next = ring[i]->next;

		/* The next place is behind the last value, of which there is one. */
		MOST(ring[i]->next, ring[i]->count);
		ring[i]->count = NT_RING_MAX;
		ring[i]->next = 1;
		assert_int_equal(load_again(), 0);
		ring[i]->next = 0;
		assert_int_equal(load_again(), -EBADMSG);
		ring[i]->count = kept;
		ring[i]->next = next;
	}
}

static void each_number_of_a_communicator_has_its_bound(void **state)
{
	struct nt_detect_comm *comm = detect->comms;

	(void)state;
	while (comm && !comm->network.method)
		comm = comm->hh.next;
	assert_non_null(comm);
	MOST(comm->network.method, NT_NETWORK_METHODS - 1);
	MOST(comm->network.tier, NT_FRAME_T3);
	comm->network.past = (struct nt_past){.count = 0};
	MOST(comm->network.past.count, NT_PAST_WINDOWS - 1);
	for (int i = 0; i < NT_DETECT_COMM_OPS; i++)
		MOST(comm->kind_of[i], NT_FRAME_POINT_TO_POINT + 1);
}

static void each_number_of_a_collective_round_has_its_bound(void **state)
{
	struct nt_collective_round_op op[NT_COLLECTIVE_ROUND_OPS + 1];
	struct nt_detect_comm *comm = detect->comms;
	struct nt_collective_round *collective_round = &comm->collective_round;
	const struct nt_collective_round kept = *collective_round;

	(void)state;
	for (size_t i = 0; i < sizeof(op) / sizeof(op[0]); i++)
		op[i] = (struct nt_collective_round_op){
			.op = (uint8_t)(i % NT_COLLECTIVE_ROUND_OPS), .calls = 1.0};
	*collective_round = (struct nt_collective_round){
		.frame = 3, .reporters = 1, .steps = 1.0, .op = op, .ops = 1, .op_cap = 1};
	assert_int_equal(load_again(), 0);
	MOST(collective_round->tier, NT_FRAME_T3);
	MOST(collective_round->reporters, NT_FRAME_MAX_RANKS);
	MOST(collective_round->ops, NT_COLLECTIVE_ROUND_OPS);
	MOST(op[0].op, NT_COLLECTIVE_ROUND_OPS - 1);
	for (int i = 0; i < NT_COLLECTIVE_ROUND_CLOCKS; i++)
		MOST(op[0].timed[i], NT_FRAME_MAX_RANKS);
	/* What is divided by is never nothing. */
	op[0].calls = 0.0;
	assert_int_equal(load_again(), -EBADMSG);
	op[0].calls = 1.0;
	collective_round->steps = 0.0;
	assert_int_equal(load_again(), -EBADMSG);
	collective_round->reporters = 0;
	assert_int_equal(load_again(), 0);
	collective_round->steps = 1.0;
	assert_int_equal(load_again(), -EBADMSG);
	*collective_round = kept;
}

static void check_evidence(struct nt_detect_evidence *row)
{
	MOST(row->what, NT_EVIDENCE_TEXT_END - 1);
	MOST(row->unit, NT_EVIDENCE_TEXT_END - 1);
	MOST(row->method, NT_EVIDENCE_TEXT_END - 1);
}

static void each_number_of_an_incident_has_its_bound(void **state)
{
	struct nt_detect_incident *incident = detect->incidents.open[0];
	struct nt_blame *blame = &incident->blame[0];
	struct nt_fault *fault = &incident->fault;

	(void)state;
	assert_true(incident->blames > 0 && incident->evidences > 0);
	is_consistent = false;
	MOST(incident->family, NT_FAMILY_END - 1);
	MOST(incident->class, NT_CLASS_END - 1);
	MOST(incident->cause, NT_EVIDENCE_TEXT_END - 1);
	MOST(incident->severity, NT_SEVERITY_CRITICAL);
	MOST(incident->state, NT_INCIDENT_FIRING);
	MOST(incident->tier, NT_FRAME_T3);
	MOST(blame->class, NT_CLASS_END - 1);
	MOST(blame->cause, NT_EVIDENCE_TEXT_END - 1);
	MOST(blame->tier, NT_FRAME_T3);
	MOST(blame->series, NT_SERIES_END - 1);
	check_evidence(&incident->evidence[0]);

	fault->held = true;
	fault->evidences = 1;
	MOST(fault->class, NT_CLASS_END - 1);
	MOST(fault->cause, NT_EVIDENCE_TEXT_END - 1);
	MOST(fault->tier, NT_FRAME_T3);
	check_evidence(&fault->evidence[0]);

	incident->family = NT_FAMILY_NETWORK;
	MOST(incident->kind, NT_CULPRIT_STAGE);
}

/* What follows the count is there up to the bound, and is not looked at beyond. */
static void check_rows(uint32_t *count, uint32_t most, int line)
{
	const uint32_t kept = *count;

	*count = most;
	if (load_again() != 0)
		fail_msg("line %d: %u rows are refused", line, most);
	*count = kept;
}

static void lists_may_be_full(void **state)
{
	struct nt_detect_incident *incident = detect->incidents.open[0];

	(void)state;
	check_rows(&incident->evidences, NT_FINDING_MAX_EVIDENCE, __LINE__);
	incident->fault.held = true;
	check_rows(&incident->fault.evidences, NT_FINDING_MAX_EVIDENCE, __LINE__);
	check_rows(&incident->recovery.buckets, NT_RECOVERY_BUCKETS, __LINE__);
	check_rows(&incident->blame[0].recovery.buckets, NT_RECOVERY_BUCKETS, __LINE__);
	check_rows(&detect->gaps.gaps, NT_COMPLETENESS_MAX, __LINE__);
}

static void assert_room(const void *array, uint32_t used, uint32_t cap, size_t size)
{
	assert_true(cap >= used);
	assert_true(malloc_usable_size((void *)(uintptr_t)array) >= cap * size);
}

#define ROOM(array, used, cap) assert_room(array, used, cap, sizeof(*(array)))

/* Whoever adds to it later believes what it says of its room. */
static void a_loaded_state_has_the_room_that_it_tells_of(void **state)
{
	const struct nt_rules rules = nt_rules_default();
	struct nt_detect *loaded = NULL;
	uint8_t *data = NULL;
	size_t size = 0;

	(void)state;
	assert_int_equal(nt_detect_save(detect, &data, &size), 0);
	assert_int_equal(nt_detect_load(&rules, data, size, &loaded), 0);
	free(data);
	ROOM(loaded->rank, loaded->ranks, loaded->rank_cap);
	for (uint32_t i = 0; i < loaded->ranks; i++)
		ROOM(loaded->rank[i].link, loaded->rank[i].links, loaded->rank[i].link_cap);
	for (const struct nt_detect_comm *comm = loaded->comms; comm; comm = comm->hh.next)
		ROOM(comm->member, comm->members, comm->member_cap);
	ROOM(loaded->incidents.open, loaded->incidents.opens, loaded->incidents.open_cap);
	ROOM(loaded->incidents.name, loaded->incidents.names, loaded->incidents.name_cap);
	assert_true(loaded->incidents.opens > 0);
	for (uint32_t i = 0; i < loaded->incidents.opens; i++) {
		const struct nt_detect_incident *incident = loaded->incidents.open[i];

		ROOM(incident->blame, incident->blames, incident->blame_cap);
		ROOM(incident->list, incident->listed, incident->list_cap);
	}
	nt_detect_free(loaded);
}

/* ---- what contradicts itself ---------------------------------------------------------------- */

#define REFUSED() assert_int_equal(load_again(), -EBADMSG)
#define TAKEN()   assert_int_equal(load_again(), 0)

static void check_cusum(struct nt_cusum *cusum)
{
	const struct nt_cusum kept = *cusum;

	*cusum = (struct nt_cusum){.sum = 1.0, .windows = 3, .costly = 3};
	TAKEN();
	cusum->costly = 4;
	REFUSED();
	cusum->windows = cusum->costly = 0;
	REFUSED();
	cusum->windows = 1;
	TAKEN();
	cusum->sum = -1.0;
	REFUSED();
	/* Without a sum there is no more to it, and what is left of the rest is not told. */
	*cusum = (struct nt_cusum){.sum = 0.0};
	TAKEN();
	*cusum = kept;
}

static void sums_are_not_negative_and_their_windows_add_up(void **state)
{
	struct nt_detect_rank *rank = &detect->rank[5];
	struct nt_detect_comm *comm = detect->comms;

	(void)state;
	for (int i = 0; i < NT_SERIES_END; i++) {
		rank->track[i].tier = NT_FRAME_T2;
		check_cusum(&rank->track[i].level);
		check_cusum(&rank->track[i].shift);
		check_cusum(&detect->step.job_wide[i].level);
	}
	comm->network.method = NT_NETWORK_SHORTEST;
	check_cusum(&comm->network.level);
	rank->evidence.weight = 0.5;
	TAKEN();
	rank->evidence.weight = -0.5;
	REFUSED();
}

static void until_a_history_is_full_the_next_place_is_behind_the_last(void **state)
{
	struct nt_history *history = &detect->step.history;
	const struct nt_history kept = *history;

	(void)state;
	history->count = history->next = 7;
	TAKEN();
	history->next = 6;
	REFUSED();
	history->count = NT_HISTORY_ROUNDS;
	TAKEN();
	MOST(history->next, NT_HISTORY_ROUNDS - 1);
	history->next = 0;
	MOST(history->count, NT_HISTORY_ROUNDS);
	*history = kept;
}

static void of_a_tail_no_more_windows_are_far_than_there_are(void **state)
{
	(void)state;
	for (int i = 0; i < NT_SERIES_END; i++) {
		struct nt_adaptation *tail = &detect->roles.group[0].tail[i];

		*tail = (struct nt_adaptation){.windows = 2.5, .entries = 2.5};
		TAKEN();
		tail->entries = 2.75;
		REFUSED();
		*tail = (struct nt_adaptation){.windows = 2.5, .entries = -0.5};
		REFUSED();
		*tail = (struct nt_adaptation){.after = 2.5, .stayed = 2.75};
		REFUSED();
		*tail = (struct nt_adaptation){0};
		tail->entries = 0.0;
		TAKEN();
	}
}

static void ranks_ascend(void **state)
{
	const uint32_t last = detect->ranks - 1;

	(void)state;
	detect->rank[last].rank = 1000;
	TAKEN();
	detect->rank[last].rank = detect->rank[last - 1].rank;
	REFUSED();
	detect->rank[last].rank--;
	REFUSED();
	detect->rank[last].rank += 2;
	detect->rank[0].rank = detect->rank[1].rank;
	REFUSED();
}

static void links_lead_to_different_communicators_that_exist(void **state)
{
	struct nt_detect_rank *rank = &detect->rank[3];
	struct nt_detect_comm *last = detect->comms, stranger = {.index = 0};
	struct nt_detect_link *link = &rank->link[rank->links - 1];

	(void)state;
	assert_true(rank->links > 2);
	while (last->hh.next)
		last = last->hh.next;
	TAKEN();
	for (uint32_t i = 0; i + 1 < rank->links; i++) {
		struct nt_detect_comm *kept = link->comm;

		link->comm = rank->link[i].comm;
		REFUSED();
		link->comm = kept;
	}
	TAKEN();
	/* The numbers of communicators are given while they are saved, and links are put right. */
	stranger.index = last->index;
	rank->link[0].comm = &stranger;
	rank->links = 1;
	TAKEN();
	stranger.index = last->index + 1;
	rank->link[0].comm = &stranger;
	REFUSED();
	rank->link[0].comm = last;
}

static void every_rank_is_in_one_group_and_both_ascend(void **state)
{
	struct nt_peer_groups *roles = &detect->roles;
	struct nt_group *group = roles->group;
	uint32_t *member = roles->member;
	const uint32_t groups = roles->groups, first = member[0], second = member[1];

	(void)state;
	/* Saving reads where the numbers lead. */
	roles->member = member = realloc(member, 2 * detect->ranks * sizeof(*member));
	assert_non_null(member);
	memset(member + detect->ranks, 0, detect->ranks * sizeof(*member));
	detect->rank = realloc(detect->rank, (detect->ranks + 1) * sizeof(*detect->rank));
	assert_non_null(detect->rank);
	detect->rank[detect->ranks] = (struct nt_detect_rank){.group = 0};
	assert_true(groups > 2 && group[0].members > 2);
	TAKEN();
	member[1] = member[0];
	REFUSED();
	member[1] = member[group[0].members];
	REFUSED();
	member[1] = detect->ranks;
	REFUSED();
	member[0] = second;
	member[1] = first;
	REFUSED();
	member[0] = first;
	member[1] = second;
	TAKEN();

	is_consistent = false;
	group[1].id = group[0].id;
	REFUSED();
	group[1].id = group[0].id - 1;
	REFUSED();
	group[1].id = group[0].id + 1;
	TAKEN();
	group[0].kind = group[1].kind + 1;
	REFUSED();
	/* Of a lower kind it may have any number. */
	group[0].kind = NT_GROUP_ALONE;
	group[0].id = UINT64_MAX;
	TAKEN();
	roles->groups--;
	REFUSED();
	roles->groups = 0;
	REFUSED();
	roles->groups = groups;
	group[groups - 1].members++;
	REFUSED();
	group[groups - 1].members = 0;
	REFUSED();
}

static void those_who_are_blamed_and_names_ascend(void **state)
{
	struct nt_detect_incident *incident = detect->incidents.open[0];
	struct nt_blame *blame = calloc(2, sizeof(*blame));
	struct nt_name *name = calloc(2, sizeof(*name));

	(void)state;
	assert_non_null(blame);
	assert_non_null(name);
	blame[0] = blame[1] = incident->blame[0];
	is_consistent = false;
	free(incident->blame);
	incident->blame = blame;
	incident->blames = incident->blame_cap = 2;
	REFUSED();
	blame[1].rank++;
	TAKEN();
	blame[0].rank += 2;
	REFUSED();
	blame[0].rank = 0;
	TAKEN();

	free(detect->incidents.name);
	detect->incidents.name = name;
	detect->incidents.names = detect->incidents.name_cap = 2;
	name[0] = name[1] = (struct nt_name){.kind = 1, .id = 7, .count = 1};
	REFUSED();
	name[1].id = 6;
	REFUSED();
	name[1].id = 8;
	TAKEN();
	name[1] = (struct nt_name){.kind = 2, .id = 0};
	TAKEN();
	name[1] = (struct nt_name){.kind = 0, .id = 8};
	REFUSED();
	name[1] = (struct nt_name){.kind = UINT8_MAX, .id = UINT64_MAX, .count = UINT32_MAX};
	TAKEN();
}

static void a_communicator_is_there_once(void **state)
{
	struct nt_detect_comm *second = detect->comms->hh.next;
	const uint64_t kept = second->id;

	(void)state;
	second->id = detect->comms->id;
	REFUSED();
	second->id = kept;
	TAKEN();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_number_of_a_rank_has_its_bound),
		CASE(each_number_of_a_group_has_its_bound),
		CASE(each_number_of_a_communicator_has_its_bound),
		CASE(each_number_of_a_collective_round_has_its_bound),
		CASE(each_number_of_an_incident_has_its_bound),
		CASE(lists_may_be_full),
		CASE(a_loaded_state_has_the_room_that_it_tells_of),
		CASE(sums_are_not_negative_and_their_windows_add_up),
		CASE(until_a_history_is_full_the_next_place_is_behind_the_last),
		CASE(of_a_tail_no_more_windows_are_far_than_there_are),
		CASE(ranks_ascend),
		CASE(links_lead_to_different_communicators_that_exist),
		CASE(every_rank_is_in_one_group_and_both_ascend),
		CASE(those_who_are_blamed_and_names_ascend),
		CASE(a_communicator_is_there_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
