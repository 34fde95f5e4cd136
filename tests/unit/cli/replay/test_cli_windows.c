/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each window shows: whom the space detector marks, and the cells of the picture. */
#include "tests/unit/detect/detect_frames.h"

#include <stdio.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "cli/replay/windows.h"
#include "cli/report/report.h"
#include "proto/json.h"

static const struct nt_windows_names job_names = {
	.id = 7, .name = "llm", .key = "llm", .attempt = 1};

static struct nt_windows *windows;

static int set_up(void **state)
{
	const struct nt_rules rules = nt_rules_default();

	(void)state;
	return nt_windows_new(&rules, &windows);
}

static int tear_down(void **state)
{
	(void)state;
	nt_windows_free(windows);
	windows = NULL;
	return 0;
}

static void take(const struct nt_detect *detect, const struct nt_frame *frame)
{
	assert_int_equal(nt_windows_add(windows, &job_names, detect, frame), 0);
}

/* So many frames of the played job through a detector of its own. */
static void pass(struct sim *sim, struct nt_detect *detect, uint32_t frames)
{
	for (uint32_t i = 0; i < frames; i++) {
		const struct nt_frame *frame = sim_next(sim);
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		assert_int_equal(nt_detect_step(detect, frame, &finding, &findings), 0);
		take(detect, frame);
	}
}

/* All marks from this window on are of this rank, one in each of them. */
static void assert_marked_alone(uint32_t rank, size_t from)
{
	for (size_t i = from; i < windows->listed; i++) {
		const struct nt_windows_window *window = &windows->window[i];

		if (window->marks != 1 || windows->mark[window->first].rank != rank)
			fail_msg("window %zu has %u marks", i, window->marks);
	}
}

static void the_slowed_worker_of_AR_is_marked_alone_in_each_of_its_44_windows(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();
	struct nt_trace_error error = {0};

	(void)state;
	assert_int_equal(
		nt_trace_read_straggler("tests/data/straggler/trace-AR.csv.gz", &trace, &error), 0);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_judgement_watch(judgement, &rules), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	nt_windows_free(windows);
	windows = nt_take(judgement->windows);
	assert_int_equal(windows->listed, 44);
	assert_marked_alone(0, 0);
	for (size_t i = 0; i < windows->marks; i++) {
		assert_false(windows->mark[i].host);
		assert_true(windows->mark[i].value_ns > 2 * windows->mark[i].peers_ns);
	}
	for (size_t i = 0; i < windows->listed; i++)
		assert_int_equal(windows->window[i].judged, 16);
}

static void the_document_lists_every_window_with_those_that_are_marked(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	struct nt_report report = {.source = "x", .lists_windows = true};
	struct nt_detect *detect = sim_detect();
	nt_autojson json_t *root = NULL;
	nt_autobuf struct nt_buf buf = {0};
	json_t *list, *marked;
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 2);
	sim.jitter = 0.002;
	pass(&sim, detect, 3);
	sim.rank[6].device *= 1.5;
	pass(&sim, detect, 1);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	judgement->windows = nt_take(windows);
	report.judgement = judgement;
	assert_int_equal(nt_report_json(&report, &buf), 0);
	assert_int_equal(nt_json_load(buf.data, buf.len, &root), 0);
	list = json_object_get(root, "window_findings");
	assert_int_equal(json_array_size(list), 4);
	assert_int_equal(json_array_size(json_object_get(json_array_get(list, 2), "marked")), 0);
	marked = json_object_get(json_array_get(list, 3), "marked");
	assert_int_equal(json_array_size(marked), 1);
	marked = json_array_get(marked, 0);
	assert_int_equal(json_integer_value(json_object_get(marked, "rank")), 6);
	assert_string_equal(nt_json_get_text(marked, "what", ""), "own work of the step");
	assert_true(nt_json_get_number(marked, "value", 0) >
		    1.3 * nt_json_get_number(marked, "peers", 0));
	assert_int_equal(json_array_size(json_object_get(root, "notes")), 0);

	/* What is over a cap is said. */
	judgement->windows->marks_left_out = 3;
	nt_buf_clear(&buf);
	assert_int_equal(nt_report_text(&report, &buf), 0);
	assert_int_equal(nt_buf_append(&buf, "", 1), 0);
	assert_non_null(strstr((const char *)buf.data, "3 marks"));
	assert_non_null(strstr((const char *)buf.data, "ranks marked in 1 of 4 windows"));
	assert_non_null(strstr((const char *)buf.data, ": rank 6 (own work of the step "));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_slow_rank_is_marked_and_its_victims_are_not(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 64, 3);
	sim.jitter = 0.002;
	pass(&sim, detect, 10);
	assert_int_equal(windows->marks, 0);
	sim.rank[11].device *= 1.3;
	pass(&sim, detect, 10);
	assert_marked_alone(11, 10);
	assert_true(windows->mark[0].excess > 0.15 && windows->mark[0].excess < 0.25);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_host_that_dawdles_is_marked_for_its_host_work(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 8, 4);
	sim.jitter = 0.002;
	for (uint32_t i = 0; i < sim.ranks; i++)
		sim.rank[i].tier = NT_FRAME_T1;
	pass(&sim, detect, 5);
	sim.rank[2].host *= 4;
	pass(&sim, detect, 5);
	assert_marked_alone(2, 5);
	assert_true(windows->mark[0].host);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void healthy_ranks_are_hardly_ever_marked(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 256, 5);
	sim.jitter = 0.02;
	pass(&sim, detect, 100);
	/* Of 25,600 ranks' windows; the evidence that adds up is another matter. */
	assert_true(windows->marks < 256);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void of_two_populations_nobody_is_marked(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 16, 6);
	sim.jitter = 0.002;
	for (uint32_t i = 0; i < 8; i++)
		sim.rank[i].device *= 1.5;
	pass(&sim, detect, 10);
	assert_int_equal(windows->marks, 0);
	assert_int_equal(windows->window[9].judged, 16);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void of_three_ranks_one_can_be_marked_and_of_two_none(void **state)
{
	for (uint32_t ranks = 2; ranks <= 3; ranks++) {
		struct nt_detect *detect = sim_detect();
		struct sim sim;

		(void)tear_down(state);
		(void)set_up(state);
		sim_init(&sim, ranks, 7);
		sim.jitter = 0.002;
		sim.rank[1].device *= 1.5;
		pass(&sim, detect, 10);
		assert_int_equal(windows->marks, ranks == 3 ? 10 : 0);
		nt_detect_free(detect);
		sim_free(&sim);
	}
}

static void who_has_nobody_to_be_compared_with_has_empty_cells(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 1, 8);
	pass(&sim, detect, 4);
	assert_int_equal(windows->job[0].ranks, 1);
	assert_int_equal(windows->job[0].columns, 4);
	for (size_t i = 0; i < NT_WINDOWS_MAX_COLUMNS; i++)
		assert_int_equal(windows->job[0].rank[0].cell[i], NT_CELL_NONE);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_rank_that_comes_late_gets_its_row_in_order(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 4, 9);
	sim.jitter = 0.002;
	sim.rank[1].absent = true;
	pass(&sim, detect, 3);
	sim.rank[1].absent = false;
	pass(&sim, detect, 3);
	assert_int_equal(windows->job[0].ranks, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(windows->job[0].rank[i].rank, i);
	assert_int_equal(windows->job[0].rank[1].cell[0], NT_CELL_NONE);
	assert_int_not_equal(windows->job[0].rank[1].cell[5], NT_CELL_NONE);
	assert_int_not_equal(windows->job[0].rank[2].cell[0], NT_CELL_NONE);
	assert_non_null(nt_windows_find(&windows->job[0], 3));
	assert_null(nt_windows_find(&windows->job[0], 4));
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_long_run_is_merged_into_columns_of_which_each_is_a_mean_without_outliers(void **state)
{
	const size_t frames = 5 * NT_WINDOWS_MAX_COLUMNS + 3;
	struct nt_detect *detect = sim_detect();
	const struct nt_windows_job *job;
	const double device = 70.0 * SIM_MS;
	uint64_t begin;
	struct sim sim;
	size_t hot = 0;

	(void)state;
	sim_init(&sim, 8, 10);
	sim.jitter = 0.001;
	begin = sim.now_ns;
	pass(&sim, detect, 700);
	sim.rank[5].device = 2 * device;
	pass(&sim, detect, 1);
	sim.rank[5].device = device;
	pass(&sim, detect, (uint32_t)frames - 701);

	job = &windows->job[0];
	assert_int_equal(job->windows, frames);
	assert_int_equal(job->span, 8);
	assert_int_equal(job->columns, (frames + 7) / 8);
	assert_int_equal(job->column[0].start_ns, begin);
	assert_int_equal(job->column[job->columns - 1].end_ns, sim.now_ns);
	for (size_t i = 1; i < job->columns; i++)
		assert_int_equal(job->column[i].start_ns, job->column[i - 1].end_ns);
	for (size_t i = 0; i < job->columns; i++)
		hot += job->rank[5].cell[i] > NT_CELL_EVEN + 1;
	assert_int_equal(hot, 1);
	/* One window of eight; it alone was much more than the limit. */
	assert_in_range(job->rank[5].cell[700 / 8], NT_CELL_EVEN + NT_CELL_LIMIT / 8 - 1,
			NT_CELL_EVEN + NT_CELL_LIMIT / 8 + 1);
	assert_int_equal(job->rank[5].marked, 1);
	assert_true(job->rank[5].worst.excess > 0.3);
	assert_int_equal(windows->listed, frames);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void what_lasts_is_as_strong_in_a_merged_column_as_in_a_single_one(void **state)
{
	const uint8_t cells[] = {NT_CELL_NONE, 255, NT_CELL_EVEN + 10, 1, NT_CELL_NONE};
	struct nt_detect *detect = sim_detect();
	const struct nt_windows_job *job;
	struct sim sim;

	(void)state;
	assert_int_equal(nt_windows_mean(&cells[0], 1), NT_CELL_NONE);
	assert_int_equal(nt_windows_mean(&cells[1], 1), 255);
	assert_int_equal(nt_windows_mean(&cells[0], 3), NT_CELL_EVEN + 25);
	assert_int_equal(nt_windows_mean(&cells[2], 3), NT_CELL_EVEN - 15);
	assert_int_equal(nt_windows_mean(&cells[4], 1), NT_CELL_NONE);
	sim_init(&sim, 8, 13);
	sim.jitter = 0.001;
	pass(&sim, detect, 100);
	sim.rank[2].device *= 1.3;
	pass(&sim, detect, 3 * NT_WINDOWS_MAX_COLUMNS + 2);
	job = &windows->job[0];
	assert_int_equal(job->span, 4);
	for (size_t i = 0; i < job->columns; i++) {
		const bool slow = i >= 100 / 4;

		assert_in_range(job->rank[2].cell[i], NT_CELL_EVEN + (slow ? 18 : -1),
				NT_CELL_EVEN + (slow ? 22 : 1));
	}
	nt_detect_free(detect);
	sim_free(&sim);
}

static void a_difference_beyond_all_bounds_stays_in_its_cell(void **state)
{
	struct nt_detect *detect = sim_detect();
	struct sim sim;

	(void)state;
	sim_init(&sim, 4, 11);
	sim.jitter = 0.001;
	sim.rank[0].device = 1e15;
	pass(&sim, detect, 3);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_not_equal(windows->job[0].rank[i].cell[2], NT_CELL_NONE);
	nt_detect_free(detect);
	sim_free(&sim);
}

static void windows_marks_and_jobs_over_the_caps_are_counted(void **state)
{
	struct nt_windows_names names = job_names;
	struct nt_detect *detect = sim_detect();
	const struct nt_frame *frame;
	struct sim sim;

	(void)state;
	sim_init(&sim, 64, 12);
	sim.jitter = 0.001;
	sim.rank[3].device *= 2;
	pass(&sim, detect, 10);
	assert_int_equal(windows->marks, 10);
	/* What comes now is what would have come after many more windows. */
	windows->mark = realloc(windows->mark, NT_WINDOWS_MAX_MARKS * sizeof(*windows->mark));
	windows->marks = windows->mark_cap = NT_WINDOWS_MAX_MARKS;
	pass(&sim, detect, 1);
	assert_int_equal(windows->marks, NT_WINDOWS_MAX_MARKS);
	assert_int_equal(windows->marks_left_out, 1);
	assert_int_equal(windows->window[10].marks, 1);
	assert_int_equal(windows->window[10].kept, 0);

	windows->window =
		realloc(windows->window, NT_WINDOWS_MAX_LISTED * sizeof(*windows->window));
	windows->listed = windows->window_cap = NT_WINDOWS_MAX_LISTED;
	pass(&sim, detect, 1);
	assert_int_equal(windows->listed, NT_WINDOWS_MAX_LISTED);
	assert_int_equal(windows->windows_left_out, 1);
	assert_int_equal(windows->marks_left_out, 2);
	assert_int_equal(windows->job[0].columns, 12);

	windows->rows = NT_WINDOWS_MAX_RANKS;
	frame = sim_next(&sim);
	for (names.id = 100; windows->jobs < NT_WINDOWS_MAX_JOBS; names.id++)
		assert_int_equal(nt_windows_add(windows, &names, detect, frame), 0);
	assert_int_equal(windows->ranks_left_out, 64 * (NT_WINDOWS_MAX_JOBS - 1));
	assert_int_equal(nt_windows_add(windows, &names, detect, frame), 0);
	assert_int_equal(windows->jobs, NT_WINDOWS_MAX_JOBS);
	assert_int_equal(windows->jobs_left_out, 1);
	nt_detect_free(detect);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_slowed_worker_of_AR_is_marked_alone_in_each_of_its_44_windows, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			the_document_lists_every_window_with_those_that_are_marked, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_slow_rank_is_marked_and_its_victims_are_not,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_host_that_dawdles_is_marked_for_its_host_work,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(healthy_ranks_are_hardly_ever_marked, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(of_two_populations_nobody_is_marked, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(of_three_ranks_one_can_be_marked_and_of_two_none,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_has_nobody_to_be_compared_with_has_empty_cells,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_rank_that_comes_late_gets_its_row_in_order,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_long_run_is_merged_into_columns_of_which_each_is_a_mean_without_outliers,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_lasts_is_as_strong_in_a_merged_column_as_in_a_single_one, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_difference_beyond_all_bounds_stays_in_its_cell,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(windows_marks_and_jobs_over_the_caps_are_counted,
						set_up, tear_down),
	};

	return cmocka_run_group_tests_name("cli/windows", tests, NULL, NULL);
}
