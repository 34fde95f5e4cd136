/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the windows show, and the page of it, under failed allocations. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/readers/trace.h"
#include "tests/oom/oom.h"
#include "tests/page/node_scene.h"
#include "tests/page/scene.h"

static int use_windows(void *data)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_rules rules = nt_rules_default();
	struct nt_report report = {.source = "x", .lists_windows = true};
	nt_autobuf struct nt_buf buf = {0};
	const struct nt_trace *trace = data;
	int r;

	r = nt_judgement_new(&judgement);
	r = r ?: nt_judgement_watch(judgement, &rules);
	r = r ?: nt_replay_trace(trace, &rules, judgement);
	if (r < 0)
		return r;
	nt_report_trace(&report, trace, judgement);
	return nt_report_json(&report, &buf) ?: nt_report_text(&report, &buf);
}

static void windows_survive_any_failed_allocation(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	struct nt_trace_error error;
	size_t frames;

	(void)state;
	assert_int_equal(
		nt_trace_read_straggler("tests/data/straggler/trace-ST.csv.gz", &trace, &error), 0);
	frames = trace->frames;
	trace->frames = 3;
	assert_true(nt_oom_sweep(use_windows, trace) > 20);
	trace->frames = frames;
}

static int use_page(void *data)
{
	const struct scene *scene = data;
	nt_autobuf struct nt_buf buf = {0};

	return nt_html_write(&scene->report, &buf);
}

static void the_page_survives_any_failed_allocation(void **state)
{
	struct scene scene;

	(void)state;
	scene_attacked(&scene);
	assert_true(nt_oom_sweep(use_page, &scene) > 50);
	scene_free(&scene);
}

static int use_node_page(void *data)
{
	const struct node_scene *scene = data;
	nt_autobuf struct nt_buf buf = {0};

	return nt_node_page_write(&scene->page, &buf);
}

static void the_page_of_nodes_survives_any_failed_allocation(void **state)
{
	struct node_scene scene;

	(void)state;
	node_scene_attacked(&scene);
	assert_true(nt_oom_sweep(use_node_page, &scene) > 50);
	node_scene_free(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_survive_any_failed_allocation),
		cmocka_unit_test(the_page_survives_any_failed_allocation),
		cmocka_unit_test(the_page_of_nodes_survives_any_failed_allocation),
	};

	return cmocka_run_group_tests_name("oom/page", tests, NULL, NULL);
}
