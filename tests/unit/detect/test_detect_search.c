/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is looked up is found wherever it is, and what is measured is measured only where it may be. */
#include "tests/unit/detect/detect_job.h"

#include <errno.h>

#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/incidents/incident_settle.h"
#include "detect/incidents/node.h"
#include "detect/model/detector_state.h"
#include "detect/rules/hang.h"
#include "detect/rules/mismatch.h"

/* ---- looking up ------------------------------------------------------------------------------ */

static void ranks_are_found_by_number_however_many_there_are(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 12; n++) {
		struct nt_frame_rank rank[12] = {{0}};
		struct nt_frame frame = {.rank = rank, .ranks = n, .end_ns = 1};
		struct nt_detect *detect = sim_detect();
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		for (uint32_t i = 0; i < n; i++)
			rank[i] = (struct nt_frame_rank){.rank = 3 * i + 1, .node = i};
		assert_int_equal(nt_detect_step(detect, &frame, &finding, &findings), 0);
		for (uint32_t number = 0; number < 3 * n + 3; number++) {
			const struct nt_frame_rank *seen = nt_frame_find(&frame, number);
			const struct nt_detect_rank *known = nt_detect_find(detect, number);

			assert_int_equal(seen != NULL, number % 3 == 1 && number / 3 < n);
			assert_int_equal(known != NULL, seen != NULL);
			if (seen)
				assert_int_equal(seen->rank, number);
			if (known)
				assert_int_equal(known->node, number / 3);
		}
		nt_detect_free(detect);
	}
}

static void the_ranks_of_a_node_are_counted_wherever_it_is(void **state)
{
	(void)state;
	for (uint32_t nodes = 0; nodes < 8; nodes++) {
		uint32_t sorted[32], n = 0;

		/* One of node 1, two of node 3, three of node 5 and so on. */
		for (uint32_t i = 0; i < nodes; i++)
			for (uint32_t j = 0; j <= i; j++)
				sorted[n++] = 2 * i + 1;
		for (uint32_t node = 0; node < 2 * nodes + 2; node++)
			assert_int_equal(nt_node_ranks(sorted, n, node),
					 node % 2 && node / 2 < nodes ? node / 2 + 1 : 0);
	}
}

static void the_nodes_of_those_that_have_ended_are_not_listed(void **state)
{
	struct nt_detect_rank rank[] = {{.node = 3}, {.node = 1, .ended = true}, {.node = 2}};
	const struct nt_detect detect = {.rank = rank, .ranks = 3};
	uint32_t node[3];

	(void)state;
	assert_int_equal(nt_node_list(&detect, node), 2);
	assert_int_equal(node[0], 2);
	assert_int_equal(node[1], 3);
}

static void incidents_are_counted_by_whom_they_begin_with(void **state)
{
	static const uint32_t order[] = {5, 1, 9, 3, 7, 5, 0, 9, 5, 8};
	static const uint32_t nth[] = {0, 0, 0, 0, 0, 1, 0, 1, 2, 0};
	struct nt_detect *detect = sim_detect();
	struct nt_incidents *incidents = &detect->incidents;
	uint64_t id[10];

	(void)state;
	for (size_t i = 0; i < 10; i++) {
		const struct nt_proposal proposal = {
			.family = NT_FAMILY_STALL,
			.class = NT_CLASS_HANG,
			.kind = NT_CULPRIT_RANK,
			.rank = &order[i],
			.ranks = 1,
			.onset_ns = i,
		};

		assert_int_equal(nt_incidents_raise(detect, &proposal), 0);
		id[i] = incidents->open[0]->id;
		for (size_t j = 0; j < i; j++)
			assert_true(id[j] != id[i]);
		assert_int_equal(nt_incidents_close(detect, NT_FAMILY_STALL), 0);
		nt_incidents_begin(detect);
		for (uint32_t j = 0; j < incidents->names; j++)
			if (incidents->name[j].id == order[i])
				assert_int_equal(incidents->name[j].count, nth[i] + 1);
	}
	assert_int_equal(incidents->names, 7);
	for (uint32_t i = 1; i < incidents->names; i++)
		assert_true(incidents->name[i - 1].id < incidents->name[i].id);
	nt_detect_free(detect);
}

static void culprits_are_kept_in_order_and_found_again(void **state)
{
	static const uint32_t order[] = {4, 0, 7, 2, 6, 1, 5, 3};
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 1);
	sim_pass(&sim, detect, 3);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 8; i++) {
			const struct nt_proposal proposal = {
				.family = NT_FAMILY_SLOW,
				.kind = NT_CULPRIT_RANK,
				.onset_ns = 5,
				.cost = order[i],
			};
			const struct nt_detect_incident *incident;

			assert_int_equal(
				nt_incidents_blame(detect, &detect->rank[order[i]], &proposal), 0);
			incident = detect->incidents.open[0];
			assert_int_equal(incident->blames, round ? 8 : i + 1);
			for (uint32_t j = 1; j < incident->blames; j++)
				assert_true(incident->blame[j - 1].rank < incident->blame[j].rank);
			for (uint32_t j = 0; j < incident->blames; j++)
				assert_true(incident->blame[j].cost == incident->blame[j].rank);
		}
	}
	assert_int_equal(detect->incidents.opens, 1);
	sim_free(&sim);
	nt_detect_free(detect);
}

/* ---- samples --------------------------------------------------------------------------------- */

static void each_communicator_is_measured_by_its_own_samples(void **state)
{
	struct job *job = *state;

	add_comms(job, COMMS);
	(void)sim_next(&job->sim);
	for (uint64_t i = 1; i <= COMMS; i++) {
		add_call(job, 10 * i, 1, 500 * i);
		add_call(job, 10 * i, 2, 100 * i);
		add_call(job, 10 * i, 3, 300 * i);
	}
	job->sim.frame.sample = job->sample;
	job->sim.frame.samples = job->samples;
	step(job, &job->sim.frame);
	for (uint64_t i = 1; i <= COMMS; i++) {
		const struct nt_network *network = network_of(job, 10 * i);

		assert_int_equal(network->method, NT_NETWORK_SAMPLES);
		/* The median of the calls, twice a step. */
		assert_true(network->transfer == 600.0 * (double)i);
		assert_true(network->bytes == 1e6);
		assert_int_equal(network->op, 1);
		assert_int_equal(network->tier, NT_FRAME_T2);
	}
	/* A window without samples says nothing of what they watch. */
	(void)sim_next(&job->sim);
	step(job, &job->sim.frame);
	for (uint64_t i = 1; i <= COMMS; i++)
		assert_int_equal(network_of(job, 10 * i)->frame, 1);
}

static enum nt_network_method method_with(void (*change)(struct nt_frame_sample *sample, size_t *n))
{
	void *state = NULL;
	enum nt_network_method method;
	struct job *job;

	assert_int_equal(begin(&state), 0);
	job = state;
	add_comms(job, 1);
	(void)sim_next(&job->sim);
	add_call(job, 10, 1, 500);
	change(job->sample, &job->samples);
	job->sim.frame.sample = job->sample;
	job->sim.frame.samples = job->samples;
	step(job, &job->sim.frame);
	method = (enum nt_network_method)network_of(job, 10)->method;
	assert_int_equal(end(&state), 0);
	return method;
}

static void leave(struct nt_frame_sample *sample, size_t *n)
{
	(void)sample;
	(void)n;
}

static void end_at_once(struct nt_frame_sample *sample, size_t *n)
{
	(void)n;
	sample[1].release_ns = sample[1].arrive_ns;
}

static void end_soon(struct nt_frame_sample *sample, size_t *n)
{
	(void)n;
	sample[1].release_ns = sample[1].arrive_ns + 1;
}

static void call_something_else(struct nt_frame_sample *sample, size_t *n)
{
	(void)n;
	sample[2].op = 2;
}

static void move_a_little_more(struct nt_frame_sample *sample, size_t *n)
{
	(void)n;
	sample[0].bytes = 1050000;
	sample[1].bytes = 950000;
}

static void move_more(struct nt_frame_sample *sample, size_t *n)
{
	(void)n;
	sample[0].bytes = 1050001;
}

static void move_less(struct nt_frame_sample *sample, size_t *n)
{
	(void)n;
	sample[2].bytes = 949999;
}

static void miss_one(struct nt_frame_sample *sample, size_t *n)
{
	(void)sample;
	(*n)--;
}

static void be_of_another_epoch(struct nt_frame_sample *sample, size_t *n)
{
	(void)n;
	sample[2].epoch = 2;
}

static void be_of_another_number(struct nt_frame_sample *sample, size_t *n)
{
	(void)n;
	sample[2].number = 2;
}

static void be_told_twice(struct nt_frame_sample *sample, size_t *n)
{
	sample[3] = sample[2];
	*n = 4;
}

static void a_sample_counts_where_all_made_the_same_call(void **state)
{
	(void)state;
	assert_int_equal(method_with(leave), NT_NETWORK_SAMPLES);
	assert_int_equal(method_with(end_soon), NT_NETWORK_SAMPLES);
	assert_int_equal(method_with(move_a_little_more), NT_NETWORK_SAMPLES);
	assert_int_not_equal(method_with(end_at_once), NT_NETWORK_SAMPLES);
	assert_int_not_equal(method_with(call_something_else), NT_NETWORK_SAMPLES);
	assert_int_not_equal(method_with(move_more), NT_NETWORK_SAMPLES);
	assert_int_not_equal(method_with(move_less), NT_NETWORK_SAMPLES);
	assert_int_not_equal(method_with(miss_one), NT_NETWORK_SAMPLES);
	assert_int_not_equal(method_with(be_of_another_epoch), NT_NETWORK_SAMPLES);
	assert_int_not_equal(method_with(be_of_another_number), NT_NETWORK_SAMPLES);
	assert_int_not_equal(method_with(be_told_twice), NT_NETWORK_SAMPLES);
}

/* Of several operations the one that moves most is watched, whatever its number and its place. */
static void the_operation_that_moves_most_is_watched(void **state)
{
	static const struct {
		uint8_t op[2], watched;
		uint64_t bytes[2];
	} then[] = {
		{{0, 1}, 0, {5000, 4000}}, {{1, 0}, 0, {4000, 5000}}, {{0, 1}, 1, {4000, 5000}},
		{{3, 31}, 31, {1, 2}},     {{31, 3}, 3, {1, 2}},      {{4, 5}, 4, {7, 7}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		struct nt_frame_op op[2] = {{0}};
		void *data = NULL;
		struct job *job;

		assert_int_equal(begin(&data), 0);
		job = data;
		add_comms(job, 1);
		(void)sim_next(&job->sim);
		for (int j = 0; j < 2; j++)
			op[j] = (struct nt_frame_op){.op = then[i].op[j],
						     .kind = NT_FRAME_SYNCHRONISING,
						     .calls = 12,
						     .bytes = then[i].bytes[j],
						     .timed_calls = 12,
						     .min_ns = 100};
		for (uint32_t j = 0; j < RANKS; j++) {
			job->sim.out_comm[j].op = op;
			job->sim.out_comm[j].ops = 2;
		}
		step(job, &job->sim.frame);
		assert_int_equal(network_of(job, 10)->method, NT_NETWORK_SHORTEST);
		assert_int_equal(network_of(job, 10)->op, then[i].watched);
		/* Twelve calls of every member in six steps. */
		assert_true(network_of(job, 10)->transfer == 200.0);
		assert_int_equal(end(&data), 0);
	}
}

/* Who is not heard may be the one that came last, and is waited for. */
static void a_communicator_is_measured_when_all_its_members_are_heard(void **state)
{
	(void)state;
	for (uint32_t why = 0; why < 6; why++) {
		void *data = NULL;
		struct job *job;

		assert_int_equal(begin(&data), 0);
		job = data;
		add_comms(job, 1);
		job->sim.comm[0].timed = true;
		for (uint64_t i = 1; i <= 3; i++) {
			struct nt_frame_rank *rank;

			(void)sim_next(&job->sim);
			rank = &job->sim.out[1];
			if (i == 2 && why == 0)
				rank->observed = false;
			if (i == 2 && why == 1)
				rank->steps = 0;
			if (i == 2 && why == 2)
				rank->comms = 0;
			for (uint32_t j = 0; j < RANKS && i == 2 && why == 3; j++)
				job->sim.out_op[j].kind = NT_FRAME_ROOTED;
			for (uint32_t j = 0; j < RANKS && i == 2 && why == 4; j++)
				job->sim.out_op[j].op = 32;
			/* The largest size that was told stays: one has never been heard of. */
			if (i == 2 && why == 5)
				job->sim.out_comm[1].size = RANKS + 1;
			step(job, &job->sim.frame);
			assert_int_equal(network_of(job, 10)->frame,
					 i == 2 || (i == 3 && why == 5) ? 1 : i);
			assert_int_equal(network_of(job, 10)->method, NT_NETWORK_SHORTEST);
		}
		assert_int_equal(end(&data), 0);
	}
}

/* Twice 5 ms beside 80 ms of work, then twice 10 ms. */
static void transfers_are_held_against_their_own_past(void **state)
{
	struct job *job = *state;
	const struct nt_network *network;
	double step_ns;

	add_comms(job, 1);
	job->sim.comm[0].timed = true;
	job->sim.comm[0].transfer = 5.0 * SIM_MS;
	for (uint32_t i = 1; i <= 20; i++) {
		(void)sim_next(&job->sim);
		step_now(job);
		assert_int_equal(network_of(job, 10)->past.count, i);
	}
	network = network_of(job, 10);
	assert_true(network->past.ready);
	assert_true(network->past.value_centre == 10.0 * SIM_MS);
	assert_true(network->transfer == 10.0 * SIM_MS);
	assert_true(network->level.sum == 0.0);
	job->sim.comm[0].transfer = 10.0 * SIM_MS;
	(void)sim_next(&job->sim);
	step_now(job);
	network = network_of(job, 10);
	step_ns = network->step_ns;
	assert_true(fabs(step_ns - 100.0 * SIM_MS) < 10.0);
	assert_true(network->transfer == 20.0 * SIM_MS);
	assert_true(network->level.sum == 2.0);
	assert_true(fabs(network->level.peer_deviation - 1.0) < 1e-9);
	assert_true(fabs(network->level.cost - 10.0 * SIM_MS / step_ns) < 1e-9);
	/* What a member waited for a processor is the host's: 10 ms of it are nothing more. */
	for (uint32_t i = 0; i < RANKS; i++)
		job->sim.rank[i].run_queue = (4.0 + 3.0 * i) * SIM_MS;
	(void)sim_next(&job->sim);
	step_now(job);
	network = network_of(job, 10);
	assert_true(fabs(network->transfer - 10.0 * SIM_MS) < 10.0);
	assert_true(fabs(network->level.sum - 1.0) < 1e-6);
}

/* Another size, or another operation, is another past. */
static void other_calls_have_another_past(void **state)
{
	struct job *job = *state;

	add_comms(job, 1);
	job->sim.comm[0].timed = true;
	for (uint32_t i = 0; i < 3; i++) {
		(void)sim_next(&job->sim);
		step_now(job);
	}
	assert_int_equal(network_of(job, 10)->past.count, 3);
	job->sim.comm[0].bytes = 1.05e6;
	(void)sim_next(&job->sim);
	step_now(job);
	assert_int_equal(network_of(job, 10)->past.count, 4);
	assert_true(network_of(job, 10)->bytes == 1e6);
	/* Two rounds of other calls are left out, the third begins a past. */
	job->sim.comm[0].bytes = 1.06e6;
	for (uint32_t i = 0; i < 2; i++) {
		(void)sim_next(&job->sim);
		step_now(job);
		assert_int_equal(network_of(job, 10)->past.count, 4);
		assert_true(network_of(job, 10)->bytes == 1e6);
	}
	(void)sim_next(&job->sim);
	step_now(job);
	assert_int_equal(network_of(job, 10)->past.count, 1);
	assert_true(network_of(job, 10)->bytes == 1.06e6);
	/* The past of the former calls is kept. */
	job->sim.comm[0].bytes = 1e6;
	(void)sim_next(&job->sim);
	step_now(job);
	assert_int_equal(network_of(job, 10)->past.count, 5);
	for (uint32_t i = 0; i < 3; i++) {
		(void)sim_next(&job->sim);
		for (uint32_t j = 0; j < RANKS; j++)
			job->sim.out_op[j].op = 2;
		step_now(job);
	}
	assert_int_equal(network_of(job, 10)->past.count, 1);
	assert_int_equal(network_of(job, 10)->op, 2);
}

/* ---- what a frame may be --------------------------------------------------------------------- */

static int try_frame(const struct nt_frame *frame)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding = NULL;
	size_t findings = 0;
	int r = nt_detect_step(detect, frame, &finding, &findings);

	nt_detect_free(detect);
	return r;
}

static void a_frame_is_refused_over_each_of_its_caps(void **state)
{
	static struct nt_frame_comm comm[NT_FRAME_MAX_COMMS + 1];
	struct nt_frame_rank rank[] = {{.rank = 4, .comm = comm}, {.rank = 5}};
	struct nt_frame frame = {.rank = rank, .ranks = 2, .start_ns = 5, .end_ns = 5};

	(void)state;
	for (uint64_t i = 0; i <= NT_FRAME_MAX_COMMS; i++)
		comm[i].id = i;
	assert_int_equal(try_frame(&frame), 0);
	frame.end_ns = 4;
	assert_int_equal(try_frame(&frame), -EINVAL);
	frame.end_ns = 5;
	rank[0].comms = NT_FRAME_MAX_COMMS;
	assert_int_equal(try_frame(&frame), 0);
	rank[0].comms++;
	assert_int_equal(try_frame(&frame), -EINVAL);
	rank[0].comms = 0;
	rank[0].own_tier = NT_FRAME_T3;
	assert_int_equal(try_frame(&frame), 0);
	rank[0].own_tier++;
	assert_int_equal(try_frame(&frame), -EINVAL);
	rank[0].own_tier = 0;
	rank[1].rank = 4;
	assert_int_equal(try_frame(&frame), -EINVAL);
	rank[1].rank = 3;
	assert_int_equal(try_frame(&frame), -EINVAL);
	frame.ranks = NT_FRAME_MAX_RANKS + 1;
	assert_int_equal(try_frame(&frame), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_are_found_by_number_however_many_there_are),
		cmocka_unit_test(the_ranks_of_a_node_are_counted_wherever_it_is),
		cmocka_unit_test(the_nodes_of_those_that_have_ended_are_not_listed),
		cmocka_unit_test(incidents_are_counted_by_whom_they_begin_with),
		cmocka_unit_test(culprits_are_kept_in_order_and_found_again),
		JOB_TEST(each_communicator_is_measured_by_its_own_samples),
		cmocka_unit_test(a_sample_counts_where_all_made_the_same_call),
		cmocka_unit_test(the_operation_that_moves_most_is_watched),
		cmocka_unit_test(a_communicator_is_measured_when_all_its_members_are_heard),
		JOB_TEST(transfers_are_held_against_their_own_past),
		JOB_TEST(other_calls_have_another_past),
		cmocka_unit_test(a_frame_is_refused_over_each_of_its_caps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
