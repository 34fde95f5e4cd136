/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page of scored series: what stands in it, what is left out, how large it becomes. In a browser: tests/page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "cli/anomaly/node_chart.h"
#include "tests/page/node_scene.h"
#include "tests/unit/cli/page_text.h"

static struct nt_buf text;
static struct node_scene scene;

static int tear_down(void **state)
{
	(void)state;
	nt_buf_release(&text);
	node_scene_free(&scene);
	return 0;
}

/* The page of the scene, as a string that is the test's until its end. */
static const char *page(void)
{
	nt_buf_clear(&text);
	assert_int_equal(nt_node_page_write(&scene.page, &text), 0);
	assert_true(text.len <= NT_PAGE_MAX_BYTES);
	assert_int_equal(strlen((const char *)text.data), text.len);
	return (const char *)text.data;
}

static const char *node_metric(size_t i)
{
	static const char *const names[] = {"tcp_retransmits", "cpu_busy", "memory_available_bytes",
					    "made_up"};

	return names[i % 4];
}

/* Four nodes of 300 rows: an alarm that lasts, one that ended, a quiet node, and one that is learned. */
static void open_states(void)
{
	struct nt_node_series *series;

	node_scene_init(&scene, "dir", 4, 300);
	series = node_scene_add(&scene, "quiet-node", 4, node_metric);
	series = node_scene_add(&scene, "ended-node", 4, node_metric);
	(void)node_scene_alarm(series, 150, 160, 500.0);
	series = node_scene_add(&scene, "young-node", 4, node_metric);
	series->learned_rows = 300;
	series->is_learning = true;
	series = node_scene_add(&scene, "alarmed-node", 4, node_metric);
	(void)node_scene_alarm(series, 290, 299, 50.0);
}

static void each_node_has_a_row_with_its_state_and_alarms_come_first(void **state)
{
	static const char *const order[] = {"alarmed-node", "ended-node", "quiet-node",
					    "young-node"};
	const char *html, *at;

	(void)state;
	open_states();
	html = page();
	at = html;
	for (size_t i = 0; i < 4; i++) {
		at = strstr(at, order[i]);
		assert_non_null(at);
	}
	says(html, "<h1>2 of 4 nodes had an alarm</h1>");
	says(html, "alarmed-node</a></th><td class=\"warning\"><span class=\"severity\">alarm"
		   "</span></td><td class=\"n\">1</td><td class=\"n\">50.0</td>"
		   "<td class=\"n\">100</td><td class=\"n\">200</td><td class=\"n\">4</td>");
	says(html, "ended-node</a></th><td>quiet</td><td class=\"n\">1</td>"
		   "<td class=\"n\">500.0</td>");
	says(html, "quiet-node</th><td>quiet</td><td class=\"n\">0</td>");
	says(html, "young-node</th><td>learning</td><td class=\"n\">0</td><td class=\"n\">–</td>"
		   "<td class=\"n\">300</td><td class=\"n\">0</td>");
	assert_int_equal(count(html, "<article "), 2);
	assert_int_equal(count(html, "<figure "), 2);
}

static void an_alarm_has_a_chart_and_its_metrics_with_units(void **state)
{
	const char *html;

	(void)state;
	open_states();
	html = page();
	/* Score 50 on four decades from 0.1 to 1000, 200 pixels high; 290 of 300 columns before it. */
	says(html, "<path class=\"threshold\" d=\"M0 46.6H1V46.6H2");
	says(html, "<path class=\"score\" d=\"M100 ");
	says(html, "<rect class=\"alarm\" x=\"96.667%\" y=\"0\" width=\"3.333%\"");
	says(html, "<rect class=\"learned\" x=\"0.000%\" y=\"0\" width=\"33.333%\"");
	says(html, "<title>Alarm 1: 2025-11-21T07:50:00Z to 2025-11-21T07:59:00Z</title>");
	says(html, "<td class=\"t\">2025-11-21T07:50:00Z</td><td class=\"t\">lasts</td>");
	says(html, "tcp_retransmits</th><td class=\"n\">50 %</td><td class=\"n\">40.5</td>"
		   "<td class=\"n\">0.25 to 1.75</td><td>segments/s</td>");
	says(html, "cpu_busy</th><td class=\"n\">25 %</td><td class=\"n\">40.5</td>"
		   "<td class=\"n\">0.25 to 1.75</td><td>–</td>");
	says(html, "<td class=\"n\">0.25 to 1.75</td><td>bytes</td>");
	says(html, "made_up</th><td class=\"n\">12 %</td><td class=\"n\">40.5</td>"
		   "<td class=\"n\">0.25 to 1.75</td><td>unknown</td>");
	does_not_say(html, "Each point is");
}

static void peers_have_a_column_of_their_own(void **state)
{
	(void)state;
	open_states();
	scene.fleet->has_peers = true;
	scene.fleet->series[3].alarm[0].metric[0].peers = 1.5;
	says(page(), "tcp_retransmits</th><td class=\"n\">50 %</td><td class=\"n\">40.5</td>"
		     "<td class=\"n\">1.5</td><td class=\"n\">0.25 to 1.75</td>");
	says(page(), "compared with the median of all nodes");
}

static void what_is_missing_is_stated(void **state)
{
	static const char *const note[] = {"x.txt: left out"};
	struct nt_node_series *series;
	const char *html;

	(void)state;
	open_states();
	series = &scene.fleet->series[3];
	for (size_t row = 200; row < 230; row++)
		for (size_t j = 0; j < 4; j++, series->missing++)
			series->table->value[row * 4 + j] = NAN;
	for (size_t row = 0; row < 30; row++, series->missing++)
		series->table->value[row * 4 + 1] = INFINITY;
	series->alarm[0].metric[0].value = NAN;
	series->table->left_out = 5;
	series->table->cut = true;
	scene.page.note = note;
	scene.page.notes = 1;
	html = page();
	says(html, "<li>x.txt: left out</li>");
	says(html, "<td>12 % of values; 5 metrics beyond the first 64; the last line, which is cut "
		   "short</td>");
	says(html, "Missing values: cpu_busy 20 %, made_up 10 %, memory_available_bytes 10 %, "
		   "tcp_retransmits 10 %.");
	says(html, "tcp_retransmits</th><td class=\"n\">50 %</td><td class=\"n\">missing</td>");
	/* The line ends before the gap and begins behind it. */
	says(html, "<rect class=\"missing\" x=\"66.667%\" y=\"0\" width=\"10.000%\"");
	says(html, "H200M230 ");
}

static void tables_without_times_have_numbers_of_rows(void **state)
{
	const char *html;

	(void)state;
	open_states();
	for (size_t i = 0; i < 4; i++)
		free(nt_take(scene.fleet->series[i].table->time_s));
	html = page();
	says(html, "<title>Alarm 1: row 290 to row 299</title>");
	does_not_say(html, "2025-");
}

static void without_a_threshold_the_chart_has_no_line(void **state)
{
	const char *html;

	(void)state;
	open_states();
	scene.fleet->threshold = INFINITY;
	for (size_t i = 0; i < 300; i++)
		scene.fleet->threshold_row[i] = INFINITY;
	html = page();
	says(html, "Alarms are disabled");
	assert_int_equal(count(html, "class=\"threshold\""), 1); /* of the legend */
	does_not_say(html, " inf");
	does_not_say(html, ">inf");
	does_not_say(html, ">nan");
}

static void without_alarms_there_is_no_chart(void **state)
{
	const char *html;

	(void)state;
	node_scene_init(&scene, "one", 1, 10);
	(void)node_scene_add(&scene, "gpu-07", 2, node_metric);
	html = page();
	says(html, "<h1>Node gpu-07 had no alarm</h1>");
	does_not_say(html, "<figure");
	does_not_say(html, "<h2 id=\"alarms\">");
}

/* A column shows the highest score of its rows: a short alarm is seen in a long series. */
static void a_single_high_row_of_a_long_series_is_drawn(void **state)
{
	struct nt_node_series *series;
	const char *html;
	size_t steps = 0;

	(void)state;
	node_scene_init(&scene, "long", 1, 100 * NT_NODE_CHART_COLUMNS);
	series = node_scene_add(&scene, "gpu-07", 1, node_metric);
	(void)node_scene_alarm(series, 50 * NT_NODE_CHART_COLUMNS, 50 * NT_NODE_CHART_COLUMNS,
			       1000.0);
	html = page();
	says(html, "Each point is the highest score of up to 100 rows.");
	says(html, "V0.0H361V");
	says(html, "<rect class=\"alarm\" x=\"50.000%\" y=\"0\" width=\"0.139%\"");
	html = strstr(html, "d=\"M240 ");
	assert_non_null(html);
	for (html += 3; *html != '"'; html++)
		steps += *html == 'H';
	assert_int_equal(steps, NT_NODE_CHART_COLUMNS * 2 / 3);
}

static void names_are_never_markup(void **state)
{
	const char *html;

	(void)state;
	node_scene_attacked(&scene);
	html = page();
	does_not_say(html, "<script");
	does_not_say(html, "<img");
	does_not_say(html, "<base");
	does_not_say(html, "onmouseover='");
	does_not_say(html, "\x1b");
	says(html, "&lt;/script&gt;&lt;script&gt;");
	assert_int_equal(count(html, "<svg onload"), 0);
	assert_int_equal(count(html, "<article "), SCENE_ATTACKS);
	/* Links lead to the page's own nodes alone. */
	assert_int_equal(count(html, "<a "), count(html, "<a href=\"#node-"));
}

static void what_exceeds_a_page_is_counted_on_it(void **state)
{
	const char *html;

	(void)state;
	node_scene_worst(&scene);
	html = page();
	assert_int_equal(count(html, "<article "), NT_NODE_PAGE_CHARTS);
	assert_int_equal(count(html, "<li>&quot;"), NT_NODE_PAGE_NOTES);
	assert_int_equal(count(html, "metrics beyond the first 64"), NT_NODE_PAGE_NODES);
	assert_int_equal(count(html, "<rect class=\"alarm\" x"),
			 NT_NODE_PAGE_CHARTS * NT_NODE_CHART_ALARMS);
	says(html, "<li>50 further notes are not shown.</li>");
	says(html, "<p>512 more nodes: see --json.</p>");
	says(html, "<p>992 more nodes had an alarm: see --json.</p>");
	says(html, "Only the first 100 of 9223372036854776107 alarms are marked.");
	says(html, "more alarms: see --json.</p>");
	says(html, ", and 8 metrics more.");
}

static void a_full_disk_and_no_directory_are_errors(void **state)
{
	(void)state;
	open_states();
	assert_int_equal(nt_node_page_save(&scene.page, "/no/such/dir/page.html"), -ENOENT);
	assert_int_equal(nt_node_page_save(&scene.page, "/dev/full"), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_node_has_a_row_with_its_state_and_alarms_come_first,
					  tear_down),
		cmocka_unit_test_teardown(an_alarm_has_a_chart_and_its_metrics_with_units,
					  tear_down),
		cmocka_unit_test_teardown(peers_have_a_column_of_their_own, tear_down),
		cmocka_unit_test_teardown(what_is_missing_is_stated, tear_down),
		cmocka_unit_test_teardown(tables_without_times_have_numbers_of_rows, tear_down),
		cmocka_unit_test_teardown(without_a_threshold_the_chart_has_no_line, tear_down),
		cmocka_unit_test_teardown(without_alarms_there_is_no_chart, tear_down),
		cmocka_unit_test_teardown(a_single_high_row_of_a_long_series_is_drawn, tear_down),
		cmocka_unit_test_teardown(names_are_never_markup, tear_down),
		cmocka_unit_test_teardown(what_exceeds_a_page_is_counted_on_it, tear_down),
		cmocka_unit_test_teardown(a_full_disk_and_no_directory_are_errors, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
