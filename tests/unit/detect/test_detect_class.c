/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which cause explains an excess of 40 ms, to a hundredth of a millisecond; and what is told of it. */
#include "tests/unit/detect/detect_frames.h"

/* Beside 70 ms of device and 10 ms of host work in a step that all ranks have, in ms. */
struct life {
	double device, host; /* more than the others */
	double on_cpu, run_queue, io, gc;
	uint64_t read, write, faults; /* a frame of six steps */
};

struct row {
	struct life all, culprit; /* the culprit's own take the place of what all have */
	bool no_gpu;
	enum nt_class class;
	const char *cause;
};

static void live(struct sim_rank *rank, const struct life *life)
{
	rank->device += life->device * SIM_MS;
	rank->host += life->host * SIM_MS;
	rank->on_cpu = life->on_cpu * SIM_MS;
	rank->run_queue = life->run_queue * SIM_MS;
	rank->io = life->io * SIM_MS;
	rank->gc = life->gc * SIM_MS;
	rank->read = life->read;
	rank->write = life->write;
	rank->faults = life->faults;
}

static void begin(struct sim *sim, const struct row *row)
{
	sim_init(sim, 8, 1);
	sim->blocking = true;
	for (uint32_t i = 0; i < 8; i++) {
		live(&sim->rank[i], &row->all);
		sim->rank[i].no_gpu = row->no_gpu;
	}
}

static void assert_classes(const struct row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct nt_detect *detect = sim_detect();
		const struct nt_finding *finding;
		struct sim sim;

		begin(&sim, &row[i]);
		sim_pass(&sim, detect, 40);
		live(&sim.rank[3], &row[i].culprit);
		sim_pass(&sim, detect, 15);
		finding = sim_firing(detect, 0);
		assert_names_rank(finding, 3);
		assert_null(sim_firing(detect, 1));
		if (finding->class != row[i].class)
			print_error("row %zu\n", i);
		assert_int_equal(finding->class, row[i].class);
		if (row[i].cause)
			assert_string_equal(finding->cause, row[i].cause);
		else
			assert_null(finding->cause);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

#define ASSERT_CLASSES(rows) assert_classes(rows, sizeof(rows) / sizeof(rows[0]))

static void half_of_it_on_the_device_is_compute(void **state)
{
	static const struct row rows[] = {
		{.culprit = {.device = 20, .host = 20}, .class = NT_CLASS_COMPUTE},
		{.culprit = {.device = 19.99, .host = 20.01}, .class = NT_CLASS_HOST},
		/* 10 of its 130 ms are in calls, and so is that part of its waiting for a processor. */
		{.culprit = {.device = 40, .run_queue = 21.65}, .class = NT_CLASS_COMPUTE},
		{.culprit = {.device = 40, .run_queue = 21.68},
		 .class = NT_CLASS_HOST,
		 .cause = "cpu contention"},
	};

	(void)state;
	ASSERT_CLASSES(rows);
}

static void half_of_it_has_one_cause_on_the_host(void **state)
{
	static const struct row rows[] = {
		{.culprit = {.host = 40}, .class = NT_CLASS_HOST},
		{.culprit = {.host = 40, .gc = 19.99}, .class = NT_CLASS_HOST},
		{.culprit = {.host = 40, .gc = 20.01, .run_queue = 30, .io = 30},
		 .class = NT_CLASS_HOST,
		 .cause = "garbage collection"},
		{.culprit = {.host = 40, .gc = 19.99, .run_queue = 20.01, .io = 30},
		 .class = NT_CLASS_HOST,
		 .cause = "cpu contention"},
		{.culprit = {.host = 40, .run_queue = 19.99, .io = 19.99}, .class = NT_CLASS_HOST},
		{.culprit = {.host = 40, .run_queue = 19.99, .io = 20.01},
		 .class = NT_CLASS_HOST,
		 .cause = "data loading"},
		/* What all have explains nothing. */
		{.all = {.gc = 30}, .culprit = {.host = 40, .gc = 30}, .class = NT_CLASS_HOST},
	};

	(void)state;
	ASSERT_CLASSES(rows);
}

static void waiting_for_bytes_is_loading_writing_or_the_storage(void **state)
{
	static const struct row rows[] = {
		{.culprit = {.host = 40, .io = 30, .read = 1000, .write = 999},
		 .class = NT_CLASS_HOST,
		 .cause = "data loading"},
		{.culprit = {.host = 40, .io = 30, .read = 1000, .write = 1001},
		 .class = NT_CLASS_HOST,
		 .cause = "checkpoint"},
		/* As many as the others, or a quarter more. */
		{.all = {.read = 6000, .write = 6000},
		 .culprit = {.host = 40, .io = 30, .read = 6000, .write = 6000},
		 .class = NT_CLASS_STORAGE},
		{.all = {.read = 6000, .write = 6000},
		 .culprit = {.host = 40, .io = 30, .read = 7499, .write = 7499},
		 .class = NT_CLASS_STORAGE},
		{.all = {.read = 6000, .write = 6000},
		 .culprit = {.host = 40, .io = 30, .read = 7501, .write = 7503},
		 .class = NT_CLASS_HOST,
		 .cause = "checkpoint"},
		{.all = {.read = 6000, .write = 6000},
		 .culprit = {.host = 40, .io = 30, .read = 9300, .write = 5800},
		 .class = NT_CLASS_HOST,
		 .cause = "data loading"},
	};

	(void)state;
	ASSERT_CLASSES(rows);
}

static void ten_page_faults_a_step_are_a_cause(void **state)
{
	static const struct row rows[] = {
		{.culprit = {.host = 40, .faults = 61},
		 .class = NT_CLASS_HOST,
		 .cause = "page faults"},
		{.culprit = {.host = 40, .faults = 59}, .class = NT_CLASS_HOST},
		{.all = {.faults = 600},
		 .culprit = {.host = 40, .faults = 659},
		 .class = NT_CLASS_HOST},
		{.all = {.faults = 600},
		 .culprit = {.host = 40, .faults = 661},
		 .class = NT_CLASS_HOST,
		 .cause = "page faults"},
	};

	(void)state;
	ASSERT_CLASSES(rows);
}

/* Own work is 80 ms, the culprit's 120 ms, of which 10 ms more are in calls. */
static void without_a_gpu_only_time_on_the_cpu_is_compute(void **state)
{
	static const struct row rows[] = {
		{.no_gpu = true, .culprit = {.host = 40}, .class = NT_CLASS_UNKNOWN},
		{.no_gpu = true,
		 .all = {.on_cpu = 50},
		 .culprit = {.host = 40, .on_cpu = 70.01},
		 .class = NT_CLASS_COMPUTE},
		{.no_gpu = true,
		 .all = {.on_cpu = 50},
		 .culprit = {.host = 40, .on_cpu = 69.99},
		 .class = NT_CLASS_HOST},
		/* A library that spins: at least what is left beside its calls is work. */
		{.no_gpu = true,
		 .all = {.on_cpu = 110.01},
		 .culprit = {.host = 40, .on_cpu = 110.01},
		 .class = NT_CLASS_COMPUTE},
		{.no_gpu = true,
		 .all = {.on_cpu = 109.99},
		 .culprit = {.host = 40, .on_cpu = 109.99},
		 .class = NT_CLASS_UNKNOWN},
		{.no_gpu = true,
		 .all = {.on_cpu = 99.99},
		 .culprit = {.host = 40, .on_cpu = 99.99},
		 .class = NT_CLASS_HOST},
		{.no_gpu = true,
		 .all = {.on_cpu = 100.01},
		 .culprit = {.host = 40, .on_cpu = 100.01},
		 .class = NT_CLASS_UNKNOWN},
		/* What the host knows goes first. */
		{.no_gpu = true,
		 .all = {.on_cpu = 50},
		 .culprit = {.host = 40, .on_cpu = 90, .gc = 20.01},
		 .class = NT_CLASS_HOST,
		 .cause = "garbage collection"},
		{.no_gpu = true,
		 .all = {.on_cpu = 50, .read = 600},
		 .culprit = {.host = 40, .on_cpu = 90, .io = 20.01, .read = 600},
		 .class = NT_CLASS_STORAGE},
	};

	(void)state;
	ASSERT_CLASSES(rows);
}

static void assert_near(double got, double want)
{
	if (fabs(got - want) > 1e-3 * fabs(want) + 1e-6)
		print_error("%g, not %g\n", got, want);
	assert_true(fabs(got - want) <= 1e-3 * fabs(want) + 1e-6);
}

static void every_number_of_a_finding_can_be_worked_out(void **state)
{
	static const struct {
		const char *what;
		double value, peers;
	} told[] = {
		{"own work of the step", 120, 80},    {"host work of the step", 15, 10},
		{"device time of the step", 105, 70}, {"blocked time of the step", 105, 70},
		{"on-CPU time of the step", 60, 50},  {"run-queue delay of the step", 14, 13},
		{"I/O wait of the step", 7, 4},       {"garbage collection of the step", 8, 3},
	};
	static const struct row row = {
		.all = {.on_cpu = 50, .run_queue = 13, .io = 4, .gc = 3},
		.culprit =
			{.device = 35, .host = 5, .on_cpu = 60, .run_queue = 14, .io = 7, .gc = 8},
	};
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	uint64_t onset_ns;
	struct sim sim;

	(void)state;
	begin(&sim, &row);
	sim_pass(&sim, detect, 40);
	onset_ns = sim.now_ns;
	live(&sim.rank[3], &row.culprit);
	sim_pass(&sim, detect, 15);
	finding = sim_firing(detect, 0);
	assert_names_rank(finding, 3);
	assert_true(finding->since_ns == onset_ns);
	assert_int_equal(finding->class, NT_CLASS_COMPUTE);
	assert_int_equal(finding->tier, NT_FRAME_T2);
	/* The step is 130 ms, 40 of them too many; on eight GPUs since the onset. */
	assert_near(finding->slowdown, 130.0 / 90.0);
	assert_near(finding->gpu_hours,
		    8.0 * 40.0 / 130.0 * (double)(sim.now_ns - onset_ns) / 3600e9);
	assert_int_equal(finding->severity, NT_SEVERITY_CRITICAL);
	assert_true(finding->completeness == 1.0);
	assert_int_equal(finding->evidences, sizeof(told) / sizeof(told[0]) + 2);
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		assert_string_equal(finding->evidence[i].what, told[i].what);
		assert_string_equal(finding->evidence[i].unit, "ms");
		assert_string_equal(finding->evidence[i].method, "ratio");
		assert_near(finding->evidence[i].value, told[i].value);
		assert_near(finding->evidence[i].peers, told[i].peers);
		/* As wide as a healthy spread is held to be at least, and a busy host adds. */
		if (i)
			assert_true(finding->evidence[i].width == 0.0);
		assert_int_equal(finding->evidence[i].windows, finding->evidence[0].windows);
	}
	assert_int_equal(finding->evidence[0].windows, 15);
	/* And the job as a whole: five steps of a window before it, in forty windows. */
	assert_string_equal(finding->evidence[8].what, "step time");
	assert_string_equal(finding->evidence[8].method, "own past");
	assert_near(finding->evidence[8].value, 130);
	assert_near(finding->evidence[8].peers, 90);
	assert_string_equal(finding->evidence[9].what, "steps concerned, and steps seen before");
	assert_string_equal(finding->evidence[9].unit, "1");
	assert_near(finding->evidence[9].value, 15.0 * sim.steps);
	assert_near(finding->evidence[9].peers, 40.0 * sim.steps);
	/* A quarter of what all wait outside of calls, which take 50 of the 130 ms. */
	assert_near(finding->evidence[0].width, 0.25 * 13.0 * 80.0 / 130.0);
	nt_detect_free(detect);
	sim_free(&sim);
}

/* What plugins tell is lost now and then: rounds in which own work is not to be seen count for neither. */
static void own_work_that_was_not_seen_is_not_zero(void **state)
{
	struct nt_detect *detect = sim_detect();
	const struct nt_finding *finding;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 1);
	for (uint32_t i = 0; i < 8; i++)
		sim.rank[i].tier = NT_FRAME_T3;
	sim_pass(&sim, detect, 40);
	sim.rank[3].device = 100.0 * SIM_MS;
	for (uint32_t i = 0; i < 60; i++) {
		sim.rank[3].tier = i % 5 < 2 ? NT_FRAME_T1 : NT_FRAME_T3;
		for (uint32_t j = 4; j < 7; j++)
			sim.rank[j].tier = i % 2 ? NT_FRAME_T1 : NT_FRAME_T3;
		sim_pass(&sim, detect, 1);
		finding = sim_firing(detect, 0);
		if (!finding)
			continue;
		assert_names_rank(finding, 3);
		assert_int_equal(finding->class, NT_CLASS_COMPUTE);
		assert_string_equal(finding->evidence[0].what, "own work of the step");
		assert_near(finding->evidence[0].value, 100);
		assert_near(finding->evidence[0].peers, 70);
	}
	assert_non_null(sim_firing(detect, 0));
	assert_null(sim_firing(detect, 1));
	nt_detect_free(detect);
	sim_free(&sim);
}

/* Its host alone is longer, by half, and it waits for nobody. Names it, or nobody. */
static bool is_host_named(uint8_t tier, uint8_t its_tier, bool no_host)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;
	bool named;

	sim_init(&sim, 8, 1);
	sim.jitter = 0.01;
	for (uint32_t i = 0; i < 8; i++) {
		sim.rank[i].tier = tier;
		sim.rank[i].device = SIM_MS;
		sim.rank[i].host = 80.0 * SIM_MS;
	}
	sim.rank[3].tier = its_tier;
	sim.rank[3].no_host = no_host;
	sim_pass(&sim, detect, 40);
	sim.rank[3].host *= 1.5;
	/* Some of its windows hold no step, and say nothing of how it is seen: others are awaited then. */
	for (int i = 0; i < 60; i++) {
		sim.rank[3].stuck = i % 2;
		sim.rank[3].tier = i % 2 ? NT_FRAME_T1 : its_tier;
		sim.rank[5].stuck = sim.rank[6].stuck = i % 2 == 0;
		sim_pass(&sim, detect, 1);
	}
	named = sim_firing(detect, 0) && sim_firing(detect, 0)->culprits;
	if (named)
		assert_names_rank(sim_firing(detect, 0), 3);
	nt_detect_free(detect);
	sim_free(&sim);
	return named;
}

static void a_host_that_is_seen_in_another_way_than_others_is_not_compared(void **state)
{
	(void)state;
	assert_true(is_host_named(NT_FRAME_T1, NT_FRAME_T1, false));
	assert_false(is_host_named(NT_FRAME_T1, NT_FRAME_T0, false));
	assert_false(is_host_named(NT_FRAME_T2, NT_FRAME_T0, false));
	assert_true(is_host_named(NT_FRAME_T3, NT_FRAME_T3, false));
	assert_false(is_host_named(NT_FRAME_T3, NT_FRAME_T3, true));
}

static void what_nobody_has_is_not_told(void **state)
{
	static const struct row row = {.culprit = {.device = 40}};
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	begin(&sim, &row);
	sim_pass(&sim, detect, 40);
	live(&sim.rank[3], &row.culprit);
	sim_pass(&sim, detect, 15);
	assert_int_equal(sim_firing(detect, 0)->evidences, 4 + 2);
	assert_string_equal(sim_firing(detect, 0)->evidence[3].what, "blocked time of the step");
	assert_near(sim_firing(detect, 0)->evidence[0].width, 0.8);
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_of_it_on_the_device_is_compute),
		cmocka_unit_test(half_of_it_has_one_cause_on_the_host),
		cmocka_unit_test(waiting_for_bytes_is_loading_writing_or_the_storage),
		cmocka_unit_test(ten_page_faults_a_step_are_a_cause),
		cmocka_unit_test(without_a_gpu_only_time_on_the_cpu_is_compute),
		cmocka_unit_test(every_number_of_a_finding_can_be_worked_out),
		cmocka_unit_test(own_work_that_was_not_seen_is_not_zero),
		cmocka_unit_test(a_host_that_is_seen_in_another_way_than_others_is_not_compared),
		cmocka_unit_test(what_nobody_has_is_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
