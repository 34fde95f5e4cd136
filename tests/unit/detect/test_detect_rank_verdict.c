/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verdict on one rank: the number from which on it is a culprit, and its class. */
#include "tests/unit/detect/incidents/rank_verdict.h"

#include "detect/rules/two_populations.h"

/* A whole past of nothing but ones. */
static const struct nt_past past = {
	.ready = true, .count = NT_PAST_WINDOWS, .value_centre = 1.0, .peer_deviation_centre = 0.0};

/* ---- whether --------------------------------------------------------------------------------- */

static void a_sum_at_the_threshold_is_high(void **state)
{
	const struct nt_blame *blame = judged();

	(void)state;
	assert_non_null(blame);
	assert_int_equal(blame->onset_ns, 77);
	assert_true(blame->cost == (double)EXCESS / STEP);
	assert_int_equal(blame->series, NT_SERIES_OWN);
	assert_int_equal(blame->tier, NT_FRAME_T2);
	own->level.sum = 9.999;
	assert_null(judged());
	/* Half of its windows must cost. */
	own->level = high;
	own->level.windows = 2;
	assert_non_null(judged());
	own->level.windows = 3;
	assert_null(judged());
}

static void only_who_was_judged_in_this_frame_is_accused(void **state)
{
	(void)state;
	assert_non_null(judged());
	rank->round_frame--;
	assert_null(judged());
	rank->round_frame++;
	own->frame--;
	assert_null(judged());
	own->frame++;
	rank->known = false;
	assert_null(judged());
	rank->known = true;
	rank->ended = true;
	assert_null(judged());
	rank->ended = false;
	assert_non_null(judged());
}

static void a_level_costs_three_percent_at_least(void **state)
{
	(void)state;
	own->level.cost = detect->rules.size_floor;
	assert_non_null(judged());
	own->level.cost = 0.0299;
	assert_null(judged());
}

static void a_level_from_the_start_is_a_tenth_above_the_fleet(void **state)
{
	(void)state;
	own->level.peer_deviation = 0.1001;
	assert_non_null(judged());
	own->level.peer_deviation = 0.0999;
	/* The others' long-run medians are all the same: a tenth of that is enough by far. */
	assert_non_null(judged());
	own->level.peer_deviation = 0.0401;
	assert_non_null(judged());
	own->level.peer_deviation = 0.0399;
	assert_null(judged());
	own->level.peer_deviation = 0.0401;
	rank->rounds = NT_PAST_WINDOWS;
	assert_non_null(judged());
	rank->rounds--;
	assert_null(judged());
	rank->rounds++;
	own->peers_seen = 4;
	assert_non_null(judged());
	own->peers_seen = 3;
	assert_null(judged());
	own->level.peer_deviation = 0.1001;
	assert_non_null(judged());
	own->peers_seen = 2;
	assert_non_null(judged());
	own->level.peer_deviation = 0.0999;
	assert_null(judged());
	own->peers_seen = 7;
	rank->accepted = true;
	assert_null(judged());
}

/* Two of the others must have a past for there to be a spread. */
static void the_spread_of_a_fleet_is_that_of_two_at_least(void **state)
{
	(void)state;
	own->level.peer_deviation = 0.06;
	for (uint32_t i = 2; i < RANKS; i++)
		if (i != CULPRIT)
			detect->rank[i].track[NT_SERIES_OWN].past = (struct nt_past){0};
	assert_non_null(judged());
	/* An incomplete past will do, from five windows on. */
	detect->rank[1].track[NT_SERIES_OWN].past.ready = false;
	detect->rank[1].track[NT_SERIES_OWN].past.count = NT_PAST_SOME;
	assert_non_null(judged());
	detect->rank[1].track[NT_SERIES_OWN].past.count--;
	assert_null(judged());
	/* Its own does not count. */
	own->past = past;
	own->past.peer_deviation_centre = 0.0;
	own->level.onset_frame = 0;
	assert_true(own->past.ready);
	for (uint32_t i = 0; i < 2; i++) {
		detect->rank[i].track[NT_SERIES_OWN].past.ready = true;
		detect->rank[i].track[NT_SERIES_OWN].past.peer_deviation_centre = 0.1 * i;
	}
	own->past.ready = false;
	own->past.count = 0;
	assert_null(judged());
}

/* Healthy ranks that differ by 2 % as seen in a run: four of seven within 0.4 %. */
static void a_few_of_a_fleet_that_lie_close_by_chance_are_not_its_spread(void **state)
{
	static const double centre[] = {0.002, 0.004, 0.002, -0.026, -0.022, 0.004, -0.010};
	uint32_t n = 0;

	(void)state;
	own->level.peer_deviation = 0.041;
	for (uint32_t i = 0; i < RANKS && n < 7; i++)
		if (i != CULPRIT)
			detect->rank[i].track[NT_SERIES_OWN].past.peer_deviation_centre =
				centre[n++];
	assert_int_equal(n, 7);
	assert_null(judged());
	/* With what the median of peers that differ so is uncertain by, a tenth does not suffice. */
	own->level.peer_deviation = 0.11;
	assert_null(judged());
	own->level.peer_deviation = 0.115;
	assert_non_null(judged());
	/* One of them that is slow, too, hides nobody. */
	for (uint32_t i = 0; i < RANKS; i++)
		detect->rank[i].track[NT_SERIES_OWN].past.peer_deviation_centre =
			i == CULPRIT - 1 ? 0.05 : 0;
	own->level.peer_deviation = 0.05;
	assert_non_null(judged());
}

static void who_was_always_so_against_its_own_past_is_not_accused(void **state)
{
	(void)state;
	/* At once with a shift of its own it is. */
	own->level = (struct nt_cusum){0};
	own->shift = high;
	own->past = past;
	own->value = 0.0;
	assert_null(judged());
	own->value = 1e9;
	assert_non_null(judged());
	own->shift.sum = 9.999;
	assert_null(judged());
	own->shift = high;
	own->shift.cost = own->shift.peer_deviation = detect->rules.size_floor;
	assert_non_null(judged());
	/* Its error is taken off. */
	own->shift_width = 0.0001;
	assert_null(judged());
}

static void half_of_what_it_is_worse_by_is_its_own_growth(void **state)
{
	const double step = 4096.0;

	(void)state;
	own->level = (struct nt_cusum){0};
	own->shift = high;
	own->past = past;
	own->past.value_centre = 1024.0;
	rank->step_metric[NT_STEP_METRIC_STEP] = step;
	own->value = 1024.0 + 256.0;
	assert_non_null(judged());
	own->value -= 0.001;
	assert_null(judged());
	/* All of them dropped. */
	detect->step.job_wide[NT_SERIES_OWN].drop = 0.001;
	assert_null(judged());
	detect->step.job_wide[NT_SERIES_OWN].drop = -0.001;
	assert_non_null(judged());
	/* Or of what the step is longer by, where peers seem to work less. */
	own->value = 1024.0 + 100.01;
	assert_null(judged());
	detect->step.past.ready = true;
	detect->step.past.value_centre = step - 200.0;
	assert_non_null(judged());
	own->value -= 2.0;
	assert_null(judged());
}

static void against_its_own_past_half_must_not_be_everybodys(void **state)
{
	(void)state;
	own->mode = NT_MODE_PAST;
	own->growth = own->net = 0.5;
	/* The level was gathered against peers: ranks differ by nature. */
	own->level = high;
	assert_null(judged());
	own->level = (struct nt_cusum){0};
	own->shift = high;
	assert_non_null(judged());
	detect->step.job_wide[NT_SERIES_OWN].growth = 0.25;
	assert_null(judged());
	/* What its role shares since a while is not in `net`. */
	own->settled = 0.001;
	assert_non_null(judged());
	own->settled = 0.0;
	detect->step.job_wide[NT_SERIES_OWN].growth = 0.2499;
	assert_non_null(judged());
	/* Nobody waits for a rank that works less than its peers. */
	own->peers = own->value + 0.0301 * rank->step_metric[NT_STEP_METRIC_STEP];
	assert_null(judged());
	own->peers = own->value;
	own->shift.cost = own->shift.peer_deviation = detect->rules.size_floor;
	assert_non_null(judged());
	own->shift_width = 0.0001;
	assert_null(judged());
}

/* ---- of what class --------------------------------------------------------------------------- */

static void half_on_the_device_is_compute(void **state)
{
	(void)state;
	value[NT_STEP_METRIC_OWN_BLOCKED] = 32;
	IS(COMPUTE, NONE);
	value[NT_STEP_METRIC_OWN_BLOCKED] = 31;
	IS(HOST, NONE);
	value[NT_STEP_METRIC_OWN_BLOCKED] = 64;
	/* Half of it waiting for a processor outside of calls is the host's. */
	value[NT_STEP_METRIC_RUN_QUEUE] = 31;
	IS(COMPUTE, NONE);
	value[NT_STEP_METRIC_RUN_QUEUE] = 32;
	IS(HOST, CPU_CONTENTION);
	value[NT_STEP_METRIC_COMM] = 512;
	IS(COMPUTE, NONE);
	value[NT_STEP_METRIC_RUN_QUEUE] = 64;
	IS(HOST, CPU_CONTENTION);
	value[NT_STEP_METRIC_COMM] = 2048;
	IS(COMPUTE, NONE);
	/* Where launches are seen, own work is the device's. */
	value[NT_STEP_METRIC_COMM] = 0;
	rank->tier = NT_FRAME_T3;
	IS(COMPUTE, NONE);
	value[NT_STEP_METRIC_OWN] = peers[NT_STEP_METRIC_OWN];
	IS(UNKNOWN, NONE);
	value[NT_STEP_METRIC_OWN] += 0.5;
	IS(COMPUTE, NONE);
}

/* Own work that overlaps: its gaps are longer by half of what the device is slower. */
static void slow_devices_with_longer_gaps_are_no_hosts(void **state)
{
	(void)state;
	value[NT_STEP_METRIC_OWN_BLOCKED] = peers[NT_STEP_METRIC_OWN_BLOCKED] + 64;
	value[NT_STEP_METRIC_OWN_LONGEST] = 100;
	peers[NT_STEP_METRIC_HOST] = 100;
	value[NT_STEP_METRIC_HOST] = 147;
	IS(COMPUTE, NONE);
	value[NT_STEP_METRIC_HOST] = 148;
	IS(HOST, NONE);
	/* Peers that wait show less: it costs no more than it grew by. */
	rank->has_metric_mean = true;
	rank->metric_mean[NT_STEP_METRIC_OWN] = value[NT_STEP_METRIC_OWN] - 32;
	value[NT_STEP_METRIC_HOST] = 124;
	IS(HOST, NONE);
	value[NT_STEP_METRIC_HOST] = 123;
	IS(COMPUTE, NONE);
}

static void the_first_that_explains_half_is_the_cause(void **state)
{
	(void)state;
	value[NT_STEP_METRIC_FAULTS] = 10;
	IS(HOST, PAGE_FAULTS);
	value[NT_STEP_METRIC_FAULTS] = 9.5;
	IS(HOST, NONE);
	value[NT_STEP_METRIC_FAULTS] = 10;
	value[NT_STEP_METRIC_IO] = 32;
	IS(HOST, DATA_LOADING);
	value[NT_STEP_METRIC_IO] = 31;
	IS(HOST, PAGE_FAULTS);
	value[NT_STEP_METRIC_IO] = 64;
	value[NT_STEP_METRIC_RUN_QUEUE] = 32;
	IS(HOST, CPU_CONTENTION);
	value[NT_STEP_METRIC_RUN_QUEUE] = 31;
	IS(HOST, DATA_LOADING);
	value[NT_STEP_METRIC_RUN_QUEUE] = 64;
	value[NT_STEP_METRIC_GC] = 32;
	IS(HOST, GC);
	value[NT_STEP_METRIC_GC] = 31;
	IS(HOST, CPU_CONTENTION);
	/* What the others have as well explains nothing. */
	value[NT_STEP_METRIC_GC] = 132;
	peers[NT_STEP_METRIC_GC] = 101;
	IS(HOST, CPU_CONTENTION);
	peers[NT_STEP_METRIC_GC] = 100;
	IS(HOST, GC);
}

static void a_quarter_more_bytes_are_more_bytes(void **state)
{
	(void)state;
	value[NT_STEP_METRIC_IO] = 64;
	peers[NT_STEP_METRIC_READ] = 60;
	peers[NT_STEP_METRIC_WRITE] = 40;
	value[NT_STEP_METRIC_READ] = 60;
	value[NT_STEP_METRIC_WRITE] = 40;
	IS(STORAGE, NONE);
	value[NT_STEP_METRIC_READ] = 84.5;
	IS(STORAGE, NONE);
	value[NT_STEP_METRIC_READ] = 85;
	IS(HOST, DATA_LOADING);
	value[NT_STEP_METRIC_READ] = 80;
	value[NT_STEP_METRIC_WRITE] = 60;
	IS(HOST, DATA_LOADING);
	value[NT_STEP_METRIC_WRITE] = 60.5;
	IS(HOST, CHECKPOINT);
	/* Fewer are not more. */
	value[NT_STEP_METRIC_READ] = 10;
	value[NT_STEP_METRIC_WRITE] = 0;
	IS(STORAGE, NONE);
	value[NT_STEP_METRIC_READ] = peers[NT_STEP_METRIC_READ] = peers[NT_STEP_METRIC_WRITE] = 0;
	IS(HOST, DATA_LOADING);
}

static void without_a_gpu_time_on_a_processor_is_computing(void **state)
{
	(void)state;
	rank->uses_gpu = false;
	IS(UNKNOWN, NONE);
	/* Its own work is 576, that of the others 512. */
	value[NT_STEP_METRIC_ON_CPU] = 32;
	IS(COMPUTE, NONE);
	peers[NT_STEP_METRIC_ON_CPU] = 1;
	IS(HOST, NONE);
	/* All that it did outside of its calls, which may spin, counts too. */
	value[NT_STEP_METRIC_ON_CPU] = 700;
	peers[NT_STEP_METRIC_ON_CPU] = 700;
	value[NT_STEP_METRIC_COMM] = 700 - 512 - 32;
	IS(COMPUTE, NONE);
	value[NT_STEP_METRIC_COMM] += 1;
	IS(UNKNOWN, NONE);
	/* Asleep for at least half of the excess: on the host. */
	value[NT_STEP_METRIC_ON_CPU] = peers[NT_STEP_METRIC_ON_CPU] = 576 - 32;
	value[NT_STEP_METRIC_COMM] = 576;
	IS(HOST, NONE);
	value[NT_STEP_METRIC_ON_CPU] = peers[NT_STEP_METRIC_ON_CPU] = 576 - 31;
	IS(UNKNOWN, NONE);
	/* A cause of the host's goes first. */
	value[NT_STEP_METRIC_GC] = 32;
	IS(HOST, GC);
	value[NT_STEP_METRIC_GC] = 0;
	value[NT_STEP_METRIC_IO] = 64;
	value[NT_STEP_METRIC_READ] = peers[NT_STEP_METRIC_READ] = 5;
	IS(STORAGE, NONE);
}

/* ---- the host beside the device -------------------------------------------------------------- */

/* At T1: its host work is long by 64, and the others wait so much longer. */
static void begin_late_host(void)
{
	rank->tier = NT_FRAME_T1;
	*host = *own;
	host->tier = NT_FRAME_T1;
	*own = (struct nt_track){.tier = NT_FRAME_T1};
	value[NT_STEP_METRIC_HOST] = 164;
	peers[NT_STEP_METRIC_HOST] = 100;
	peers[NT_STEP_METRIC_BLOCKED] = 400;
	value[NT_STEP_METRIC_BLOCKED] = 0;
	detect->step.past.ready = false;
}

static void host_work_counts_where_the_device_was_idle(void **state)
{
	(void)state;
	begin_late_host();
	IS(HOST, NONE);
	assert_int_equal(judged()->series, NT_SERIES_HOST);
	assert_true(judged()->cost == 64.0 / STEP);
	rank->tier = NT_FRAME_T2;
	assert_null(judged());
	/* Own work of two populations of several ranks is not judged: the rank is beyond both. */
	detect->roles.group[rank->group].past->apart_high = 1000;
	own->peers_seen = 2;
	own->value = 1032;
	assert_non_null(judged());
	own->value = 1031;
	assert_null(judged());
	own->value = 1032;
	own->past.ready = true;
	assert_null(judged());
	/* Beside peers it is. */
	own->mode = NT_MODE_PEERS;
	value[NT_STEP_METRIC_OWN] = peers[NT_STEP_METRIC_OWN] + 32;
	assert_non_null(judged());
	value[NT_STEP_METRIC_OWN] -= 1;
	assert_null(judged());
	rank->tier = NT_FRAME_T1;
	/* A twentieth of the step is idle. */
	value[NT_STEP_METRIC_STEP] = 1280;
	value[NT_STEP_METRIC_BLOCKED] = 64;
	assert_non_null(judged());
	value[NT_STEP_METRIC_BLOCKED] = 65;
	assert_null(judged());
	/* The others must wait by half of it longer. */
	value[NT_STEP_METRIC_BLOCKED] = 10;
	peers[NT_STEP_METRIC_BLOCKED] = 30;
	peers[NT_STEP_METRIC_COMM] = 20;
	value[NT_STEP_METRIC_COMM] = 8;
	assert_non_null(judged());
	value[NT_STEP_METRIC_COMM] = 9;
	assert_null(judged());
	value[NT_STEP_METRIC_COMM] = 8;
	value[NT_STEP_METRIC_HOST] = peers[NT_STEP_METRIC_HOST];
	assert_null(judged());
}

static void host_work_counts_where_the_step_grew_with_it(void **state)
{
	(void)state;
	begin_late_host();
	peers[NT_STEP_METRIC_BLOCKED] = 0;
	assert_null(judged());
	detect->step.past.ready = true;
	detect->step.past.value_centre = STEP - 32;
	rank->has_metric_mean = true;
	rank->metric_mean[NT_STEP_METRIC_BLOCKED] = 300;
	rank->metric_mean[NT_STEP_METRIC_STEP] = STEP - 32;
	value[NT_STEP_METRIC_BLOCKED] = 332;
	assert_non_null(judged());
	value[NT_STEP_METRIC_BLOCKED] = 333;
	assert_null(judged());
	value[NT_STEP_METRIC_BLOCKED] = 332;
	detect->step.past.value_centre = STEP - 31;
	assert_null(judged());
	detect->step.past.value_centre = STEP - 32;
	rank->has_metric_mean = false;
	assert_null(judged());
	rank->has_metric_mean = true;
	/* What the step grew by with the devices' work is not the host's. */
	rank->tier = NT_FRAME_T3;
	own->past.ready = true;
	own->past.value_centre = value[NT_STEP_METRIC_OWN];
	rank->evidence.own_weight = 1.0;
	assert_non_null(judged());
	own->past.value_centre--;
	assert_null(judged());
	rank->tier = NT_FRAME_T1;
	detect->step.past.ready = false;
	assert_null(judged());
}

static void host_work_from_the_start_costs_a_tenth_of_the_step(void **state)
{
	(void)state;
	begin_late_host();
	rank->rounds = NT_PAST_WINDOWS - 1;
	host->level.cost = 0.1001;
	assert_non_null(judged());
	host->level.cost = 0.0999;
	assert_null(judged());
	/* Where the others hardly differ, less: as ten of their spreads, and of three peers as twenty. */
	rank->rounds = NT_PAST_WINDOWS;
	host->level.cost = 0.0401;
	assert_non_null(judged());
	host->level.cost = 0.0399;
	assert_null(judged());
	host->peers_seen = NT_FEW_PEERS;
	host->level.cost = 0.0801;
	assert_non_null(judged());
	host->level.cost = 0.0799;
	assert_null(judged());
	host->peers_seen = NT_FEW_PEERS - 1;
	assert_null(judged());
}

/* ---- two populations ------------------------------------------------------------------------- */

static const struct nt_detect_incident *apart(void)
{
	judge_anew();
	assert_int_equal(nt_two_populations_check(detect, NULL), 0);
	return nt_incidents_find(detect, NT_FAMILY_APART, 0);
}

static void two_populations_are_told_after_twenty_rounds(void **state)
{
	struct nt_group *group = &detect->roles.group[0];

	(void)state;
	own->level = (struct nt_cusum){0};
	group->round_frame = detect->frames;
	group->past->apart = NT_PAST_WINDOWS;
	group->past->apart_gap = 0.1001;
	group->past->apart_cost = 0.25;
	group->past->apart_since_ns = 55;
	group->past->apart_low = 3e6;
	group->past->apart_high = 5e6;
	assert_non_null(apart());
	assert_int_equal(apart()->since_ns, 55);
	assert_true(apart()->cost == 0.25);
	assert_int_equal(apart()->evidences, 1);
	assert_int_equal(apart()->evidence[0].what, NT_EVIDENCE_TEXT_GAP);
	assert_true(apart()->evidence[0].value == 5.0 && apart()->evidence[0].peers == 3.0);
	assert_int_equal(apart()->evidence[0].windows, NT_PAST_WINDOWS);
	group->past->apart_gap = 0.1;
	assert_null(apart());
	group->past->apart_gap = 0.1001;
	group->past->apart--;
	assert_null(apart());
	group->past->apart++;
	group->round_frame--;
	assert_null(apart());
}

/* It is slower at first and becomes as fast as the others: no card that is slow from the start. */
static void a_rank_that_warms_up_is_not_accused(void **state)
{
	uint32_t accused = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct nt_detect *job = sim_detect();
		bool is_accused = false;
		struct sim sim;
		double device;

		sim_init(&sim, 4, 31 * seed);
		sim.jitter = 0.02;
		device = sim.rank[1].device;
		for (int i = 0; i < 60; i++) {
			sim.rank[1].device = device * (1.0 + 0.2 * exp(-i / 10.0));
			sim_pass(&sim, job, 1);
			for (size_t j = 0; sim_firing(job, j); j++)
				is_accused |= sim_firing(job, j)->severity != NT_SEVERITY_INFO;
		}
		accused += is_accused;
		nt_detect_free(job);
		sim_free(&sim);
	}
	assert_true(accused <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_sum_at_the_threshold_is_high),
		CASE(only_who_was_judged_in_this_frame_is_accused),
		CASE(a_level_costs_three_percent_at_least),
		CASE(a_level_from_the_start_is_a_tenth_above_the_fleet),
		CASE(a_few_of_a_fleet_that_lie_close_by_chance_are_not_its_spread),
		CASE(the_spread_of_a_fleet_is_that_of_two_at_least),
		CASE(who_was_always_so_against_its_own_past_is_not_accused),
		CASE(half_of_what_it_is_worse_by_is_its_own_growth),
		CASE(against_its_own_past_half_must_not_be_everybodys),
		CASE(half_on_the_device_is_compute),
		CASE(slow_devices_with_longer_gaps_are_no_hosts),
		CASE(the_first_that_explains_half_is_the_cause),
		CASE(a_quarter_more_bytes_are_more_bytes),
		CASE(without_a_gpu_time_on_a_processor_is_computing),
		CASE(host_work_counts_where_the_device_was_idle),
		CASE(host_work_counts_where_the_step_grew_with_it),
		CASE(host_work_from_the_start_costs_a_tenth_of_the_step),
		CASE(two_populations_are_told_after_twenty_rounds),
		cmocka_unit_test(a_rank_that_warms_up_is_not_accused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
