/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Slow transfers: the communicator is named, and no rank. */
#include "tests/unit/detect/detect_frames.h"

enum {
	DATA = 0xda7a,
};

static void assert_names_comm(const struct nt_finding *finding, uint64_t comm, size_t ranks)
{
	assert_non_null(finding);
	assert_int_equal(finding->class, NT_CLASS_NETWORK);
	assert_int_equal(finding->culprits, 1);
	assert_int_equal(finding->culprit[0].kind, NT_CULPRIT_COMMUNICATOR);
	assert_true(finding->culprit[0].comm == comm);
	assert_int_equal(finding->culprit[0].rank_count, ranks);
}

/* A blocking job whose calls are timed. */
static struct nt_detect *start(struct sim *sim, uint64_t seed)
{
	sim_init(sim, 8, seed);
	sim->jitter = 0.02;
	sim->blocking = true;
	sim->comm[0].timed = true;
	sim->lateness = 0.2 * SIM_MS;
	return sim_detect();
}

static void a_slow_nic_names_the_communicator(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim, 41);

	(void)state;
	sim_pass(&sim, detect, 40);
	sim.comm[0].transfer *= 2.0;
	assert_in_range(sim_run(&sim, detect, 30), 5, 9);
	assert_names_comm(sim_firing(detect, 0), DATA, 8);
	assert_null(sim_firing(detect, 1));
	assert_string_equal(sim_firing(detect, 0)->evidence[0].method, "shortest call");
	/* Two calls of 5 ms more, of a step of about 100 ms. */
	assert_true(sim_firing(detect, 0)->slowdown > 1.05);
	assert_true(sim_firing(detect, 0)->slowdown < 1.2);
	assert_int_equal(sim_firing(detect, 0)->severity, NT_SEVERITY_WARNING);
	sim.comm[0].transfer /= 2.0;
	sim_pass(&sim, detect, 300);
	assert_int_equal(sim_open(detect), 0);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Of the 20 windows that its past is learned from, the last ones are slow. */
static void a_fault_while_the_past_is_learned_is_named(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim, 41);

	(void)state;
	sim_pass(&sim, detect, 12);
	sim.comm[0].transfer *= 2.0;
	assert_in_range(sim_run(&sim, detect, 11), 8, 11);
	assert_names_comm(sim_firing(detect, 0), DATA, 8);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* The cause that is named of a network that is half as fast, with so many packets sent again per step. */
static const char *cause_with(double usual, double lost)
{
	struct nt_detect *detect;
	const char *cause;
	struct sim sim;

	detect = start(&sim, 41);
	for (uint32_t i = 0; i < 8; i++) {
		sim.rank[i].traced = true;
		sim.rank[i].retransmits = usual;
	}
	sim_pass(&sim, detect, 40);
	sim.comm[0].transfer *= 2.0;
	sim.rank[3].retransmits = lost;
	(void)sim_run(&sim, detect, 30);
	assert_names_comm(sim_firing(detect, 0), DATA, 8);
	cause = sim_firing(detect, 0)->cause;
	nt_detect_free(detect);
	sim_free(&sim);
	return cause;
}

static void packets_sent_again_are_the_cause_of_a_slow_network(void **state)
{
	(void)state;
	assert_null(cause_with(0.0, 0.0));
	assert_string_equal(cause_with(0.0, 2.0), "tcp loss");
	/* All eight send as many again all the time: seven times as many of one are no change. */
	assert_null(cause_with(1.0, 7.0));
}

static void without_durations_the_least_wait_tells(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 42);
	sim.jitter = 0.02;
	sim_pass(&sim, detect, 40);
	sim.comm[0].transfer *= 3.0;
	assert_in_range(sim_run(&sim, detect, 30), 5, 9);
	assert_names_comm(sim_firing(detect, 0), DATA, 8);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_small_reduction_beside_does_not_hide_a_slow_network(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 42);
	sim.jitter = 0.02;
	/* The loss of each step, on a communicator of its own. */
	sim_comm_add(&sim, 0xa11, NT_FRAME_SYNCHRONISING, 1, 4, 0.0)->world = true;
	sim_pass(&sim, detect, 40);
	sim.comm[0].transfer *= 3.0;
	assert_in_range(sim_run(&sim, detect, 30), 5, 9);
	assert_names_comm(sim_firing(detect, 0), DATA, 8);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* One after the other is judged, whichever comes first. */
static void of_two_communicators_the_slow_one_is_named(void **state)
{
	(void)state;
	for (uint32_t slow = 0; slow < 2; slow++) {
		struct nt_detect *detect;
		struct sim sim;

		detect = start(&sim, 48);
		sim_comm_add(&sim, 0xda7b, NT_FRAME_SYNCHRONISING, 2, 25e6, 5.0 * SIM_MS)->world =
			true;
		sim.comm[1].timed = true;
		sim_pass(&sim, detect, 40);
		sim.comm[slow].transfer *= 2.0;
		sim_pass(&sim, detect, 20);
		assert_names_comm(sim_firing(detect, 0), DATA + slow, 8);
		assert_null(sim_firing(detect, 1));
		/* The other one as well: two incidents. */
		sim.comm[1 - slow].transfer *= 2.0;
		sim_pass(&sim, detect, 20);
		assert_names_comm(sim_firing(detect, 1), DATA + 1 - slow, 8);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

static void a_slow_rank_is_not_a_slow_network(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	for (int timed = 0; timed < 2; timed++) {
		detect = start(&sim, 43);
		sim.comm[0].timed = timed;
		sim.blocking = timed;
		sim_pass(&sim, detect, 40);
		sim.rank[2].device *= 2.0;
		sim_pass(&sim, detect, 100);
		assert_names_rank(sim_firing(detect, 0), 2);
		assert_null(sim_firing(detect, 1));
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/* Something else takes the processors of the host: calls of all take longer. */
static void a_host_without_free_processors_is_not_a_slow_network(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	for (int timed = 0; timed < 2; timed++) {
		detect = start(&sim, 47);
		sim.comm[0].timed = timed;
		sim.blocking = timed;
		sim_pass(&sim, detect, 40);
		sim.comm[0].transfer *= 3.0;
		for (uint32_t i = 0; i < sim.ranks; i++)
			sim.rank[i].run_queue = (10.0 + i) * 2.0 * SIM_MS;
		sim_pass(&sim, detect, 200);
		for (size_t i = 0; sim_firing(detect, i); i++)
			assert_int_not_equal(sim_firing(detect, i)->class, NT_CLASS_NETWORK);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

/*
 * Where more ranks than processors share a host, most of a call is waiting for one, and what is left
 * when that is taken off is its noise.
 */
static void the_rest_of_starving_is_noise(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim, 48);

	(void)state;
	sim.comm[0].timed = true;
	sim.blocking = true;
	sim.comm[0].transfer = 8.0 * SIM_MS; /* twice a step */
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].run_queue = 18.0 * SIM_MS;
	sim_pass(&sim, detect, 40);
	/* Some of it shifts from the one to the other. */
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].run_queue = 12.9 * SIM_MS;
	sim_pass(&sim, detect, 200);
	assert_null(sim_firing(detect, 0));
	/* But not beyond all measure. */
	sim.comm[0].transfer = 30.0 * SIM_MS;
	sim_pass(&sim, detect, 100);
	assert_non_null(sim_firing(detect, 0));
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_NETWORK);
	nt_detect_free(detect);
	sim_free(&sim);
}

/*
 * Ranks that poll share the processors: they are queued for most of any wait. Transfers that take
 * longer queue them for longer, which explains nothing.
 */
static void ranks_that_poll_are_queued_while_they_wait(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim, 48);

	(void)state;
	sim.comm[0].transfer = 8.0 * SIM_MS; /* twice a step */
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].run_queue = 12.0 * SIM_MS;
	sim_pass(&sim, detect, 40);
	sim.comm[0].transfer = 16.0 * SIM_MS;
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].run_queue = 24.0 * SIM_MS;
	sim_pass(&sim, detect, 100);
	assert_names_comm(sim_firing(detect, 0), DATA, 8);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Before anything is slow, packets are sent again for a while: that does not make them usual. */
static void a_loss_that_goes_on_does_not_become_usual(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim, 41);

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		sim.rank[i].traced = true;
	sim_pass(&sim, detect, 40);
	sim.rank[3].retransmits = 20.0;
	sim_pass(&sim, detect, 20);
	sim.comm[0].transfer *= 2.0;
	(void)sim_run(&sim, detect, 30);
	assert_names_comm(sim_firing(detect, 0), DATA, 8);
	assert_string_equal(sim_firing(detect, 0)->cause, "tcp loss");
	nt_detect_free(detect);
	sim_free(&sim);
}

/*
 * Two communicators, and no times of calls: no transfer can be measured. One of them becomes slow. What is
 * said of it, if the sockets send so many packets again.
 */
static const struct nt_finding *slow_unmeasured(struct sim *sim, struct nt_detect *detect,
						double lost)
{
	sim->comm[0].timed = false;
	sim_comm_add(sim, 0xda7b, NT_FRAME_SYNCHRONISING, 2, 25e6, 5.0 * SIM_MS)->world = true;
	for (uint32_t i = 0; i < sim->ranks; i++)
		sim->rank[i].traced = true;
	sim_pass(sim, detect, 40);
	sim->comm[0].transfer *= 4.0;
	sim->rank[3].retransmits = lost;
	sim_pass(sim, detect, 200);
	return sim_firing(detect, 0);
}

static void a_network_that_loses_packets_is_named_without_its_transfers(void **state)
{
	const struct nt_finding *finding;
	struct sim sim;
	struct nt_detect *detect = start(&sim, 51);

	(void)state;
	finding = slow_unmeasured(&sim, detect, 20.0);
	assert_names_comm(finding, DATA, 8);
	assert_string_equal(finding->cause, "tcp loss");
	assert_int_not_equal(finding->severity, NT_SEVERITY_INFO);
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
	/* Without that sign it is the whole job. */
	detect = start(&sim, 51);
	finding = slow_unmeasured(&sim, detect, 0.0);
	assert_non_null(finding);
	assert_int_equal(finding->class, NT_CLASS_JOB_WIDE);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Four of ten steps are slow, at random: once named, the network stays so until nothing is lost. */
static void a_network_that_loses_packets_now_and_then_stays_named(void **state)
{
	struct nt_detect *detect;
	bool was_named = false;
	unsigned int seed = 2;
	double usual;
	struct sim sim;

	(void)state;
	detect = start(&sim, 51);
	sim.comm[0].timed = false;
	sim_comm_add(&sim, 0xda7b, NT_FRAME_SYNCHRONISING, 2, 25e6, 5.0 * SIM_MS)->world = true;
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].traced = true;
	sim_pass(&sim, detect, 40);
	usual = sim.comm[0].transfer;
	for (int i = 0; i < 400; i++) {
		const bool is_slow = rand_r(&seed) % 10 < 4;

		sim.comm[0].transfer = is_slow ? 20.0 * usual : usual;
		sim.rank[3].retransmits = is_slow ? 4.0 : 0.0;
		sim_pass(&sim, detect, 1);
		if (was_named || sim_firing(detect, 0)) {
			was_named = true;
			assert_names_comm(sim_firing(detect, 0), DATA, 8);
			assert_string_equal(sim_firing(detect, 0)->cause, "tcp loss");
		}
	}
	assert_true(was_named);
	sim.comm[0].transfer = usual;
	sim.rank[3].retransmits = 0.0;
	sim_pass(&sim, detect, 200);
	assert_null(sim_firing(detect, 0));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* A rank becomes slow beside it. What is pending may pass: until it fires, the network stays named. */
static void a_named_loss_stays_until_what_explains_it_fires(void **state)
{
	struct sim sim;
	struct nt_detect *detect = start(&sim, 51);

	(void)state;
	assert_names_comm(slow_unmeasured(&sim, detect, 20.0), DATA, 8);
	sim.rank[5].device *= 2.0;
	for (int i = 0; i < 20; i++) {
		sim_pass(&sim, detect, 1);
		assert_non_null(sim_firing(detect, 0));
	}
	assert_int_equal(sim_firing(detect, 0)->class, NT_CLASS_COMPUTE);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void pauses_of_changing_ranks_are_not_the_network(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 44);
	sim.jitter = 0.01;
	sim_pass(&sim, detect, 40);
	sim.outliers = 0.1;
	sim_pass(&sim, detect, 400);
	for (size_t i = 0; sim_firing(detect, i); i++)
		assert_int_not_equal(sim_firing(detect, i)->class, NT_CLASS_NETWORK);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_call_that_not_all_timed_proves_nothing(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	detect = start(&sim, 45);
	sim_pass(&sim, detect, 40);
	sim.rank[7].silent = true;
	sim.comm[0].transfer *= 3.0;
	sim_pass(&sim, detect, 100);
	assert_accuses_nobody(detect);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void times_of_devices_are_tier_3_and_not_compared_with_those_of_hosts(void **state)
{
	(void)state;
	for (uint32_t by_gpu = 0; by_gpu <= 8; by_gpu += 4) {
		struct nt_detect *detect;
		struct sim sim;

		detect = start(&sim, 47);
		sim.comm[0].by_gpu = by_gpu;
		sim_pass(&sim, detect, 40);
		sim.comm[0].transfer *= 2.0;
		if (by_gpu == 4) {
			assert_int_equal(sim_run(&sim, detect, 60), 61);
		} else {
			assert_in_range(sim_run(&sim, detect, 30), 5, 9);
			assert_names_comm(sim_firing(detect, 0), DATA, 8);
			assert_int_equal(sim_firing(detect, 0)->tier,
					 by_gpu ? NT_FRAME_T3 : NT_FRAME_T2);
		}
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

static void other_sizes_are_another_past(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	detect = start(&sim, 46);
	sim_pass(&sim, detect, 40);
	sim.comm[0].transfer *= 2.0;
	sim.comm[0].bytes *= 2.0;
	sim_pass(&sim, detect, 200);
	assert_accuses_nobody(detect);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void calls_of_an_evaluation_do_not_end_a_history(void **state)
{
	struct nt_detect *detect;
	struct sim sim;
	double bytes, transfer;

	(void)state;
	detect = start(&sim, 47);
	bytes = sim.comm[0].bytes;
	transfer = sim.comm[0].transfer;
	/* Smaller calls in every eighth window, and for half a minute. */
	for (uint32_t i = 0; i < 64; i++) {
		sim.comm[0].bytes = bytes * (i % 8 == 7 ? 0.9 : 1.0);
		sim_pass(&sim, detect, 1);
	}
	sim.comm[0].bytes = bytes / 4.0;
	sim.comm[0].transfer = transfer / 4.0;
	sim_pass(&sim, detect, 60);
	assert_accuses_nobody(detect);
	sim.comm[0].bytes = bytes;
	sim.comm[0].transfer = 2.0 * transfer;
	assert_in_range(sim_run(&sim, detect, 30), 5, 12);
	assert_names_comm(sim_firing(detect, 0), DATA, 8);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void transfers_that_cost_little_are_left_alone(void **state)
{
	struct nt_detect *detect;
	struct sim sim;

	(void)state;
	detect = start(&sim, 47);
	sim.comm[0].transfer = 0.5 * SIM_MS;
	sim.lateness = 0.05 * SIM_MS;
	sim_pass(&sim, detect, 40);
	sim.comm[0].transfer *= 2.0;
	sim_pass(&sim, detect, 200);
	assert_accuses_nobody(detect);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Adds calls that all ranks sampled: the last to come waits for nobody. */
static const struct nt_frame *with_samples(struct sim *sim, double transfer, uint32_t leave_out)
{
	const struct nt_frame *frame = sim_next(sim);
	size_t n = 0;

	for (uint64_t call = 0; call < 3; call++) {
		for (uint32_t i = 0; i < sim->ranks; i++) {
			const uint64_t late = (uint64_t)(sim_uniform(sim) * 20.0 * SIM_MS);
			const uint64_t last = frame->start_ns + 20 * SIM_MS;

			if (i == leave_out)
				continue;
			sim->out_sample[n++] = (struct nt_frame_sample){
				.comm = DATA,
				.epoch = 1,
				.number = call,
				.bytes = 25000000,
				.op = 1,
				.kind = NT_FRAME_SYNCHRONISING,
				.rank = i,
				.arrive_ns = frame->start_ns + (i == call ? 20 * SIM_MS : late),
				.release_ns = last + (uint64_t)transfer,
			};
		}
	}
	sim->frame.samples = n;
	return frame;
}

static void samples_of_all_members_are_exact_whoever_comes_last(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	size_t findings;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 48);
	free(sim.out_sample);
	sim.out_sample = calloc(64, sizeof(*sim.out_sample));
	for (int i = 0; i < 60; i++)
		assert_int_equal(nt_detect_step(detect,
						with_samples(&sim, (i < 40 ? 5.0 : 12.0) * SIM_MS,
							     UINT32_MAX),
						&finding, &findings),
				 0);
	assert_names_comm(sim_firing(detect, 0), DATA, 8);
	assert_string_equal(sim_firing(detect, 0)->evidence[0].method, "samples");
	assert_true(fabs(sim_firing(detect, 0)->evidence[0].value - 24.0) < 0.5);
	assert_true(fabs(sim_firing(detect, 0)->evidence[0].peers - 10.0) < 0.5);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void samples_without_the_last_member_prove_nothing(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	size_t findings;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 49);
	free(sim.out_sample);
	sim.out_sample = calloc(64, sizeof(*sim.out_sample));
	/* Whoever is left out may have been the last: the rest all wait. */
	for (int i = 0; i < 100; i++) {
		assert_int_equal(
			nt_detect_step(detect,
				       with_samples(&sim, (i < 40 ? 5.0 : 50.0) * SIM_MS, 0),
				       &finding, &findings),
			0);
		assert_null(sim_firing(detect, 0));
	}
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_nic_names_the_communicator),
		cmocka_unit_test(a_fault_while_the_past_is_learned_is_named),
		cmocka_unit_test(packets_sent_again_are_the_cause_of_a_slow_network),
		cmocka_unit_test(without_durations_the_least_wait_tells),
		cmocka_unit_test(a_small_reduction_beside_does_not_hide_a_slow_network),
		cmocka_unit_test(of_two_communicators_the_slow_one_is_named),
		cmocka_unit_test(a_slow_rank_is_not_a_slow_network),
		cmocka_unit_test(a_host_without_free_processors_is_not_a_slow_network),
		cmocka_unit_test(the_rest_of_starving_is_noise),
		cmocka_unit_test(ranks_that_poll_are_queued_while_they_wait),
		cmocka_unit_test(a_loss_that_goes_on_does_not_become_usual),
		cmocka_unit_test(a_network_that_loses_packets_is_named_without_its_transfers),
		cmocka_unit_test(a_network_that_loses_packets_now_and_then_stays_named),
		cmocka_unit_test(a_named_loss_stays_until_what_explains_it_fires),
		cmocka_unit_test(pauses_of_changing_ranks_are_not_the_network),
		cmocka_unit_test(a_call_that_not_all_timed_proves_nothing),
		cmocka_unit_test(times_of_devices_are_tier_3_and_not_compared_with_those_of_hosts),
		cmocka_unit_test(other_sizes_are_another_past),
		cmocka_unit_test(calls_of_an_evaluation_do_not_end_a_history),
		cmocka_unit_test(transfers_that_cost_little_are_left_alone),
		cmocka_unit_test(samples_of_all_members_are_exact_whoever_comes_last),
		cmocka_unit_test(samples_without_the_last_member_prove_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
