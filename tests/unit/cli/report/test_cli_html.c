/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page: what stands in it, what does not, and how large it becomes. In a browser: tests/page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <unistd.h>
#include <zlib.h>

#include "cli/report/heatmap.h"
#include "cli/report/markup.h"
#include "cli/report/page.h"
#include "cli/report/png.h"
#include "cli/report/remediation.h"
#include "tests/page/scene.h"
#include "tests/unit/cli/page_text.h"
#include "tests/unit/scratch.h"

static struct nt_buf text;
static struct scene scene;

static int tear_down(void **state)
{
	(void)state;
	nt_buf_release(&text);
	scene_free(&scene);
	scene = (struct scene){0};
	return 0;
}

/* The page of the scene, as a string that is the test's until its end. */
static const char *page(void)
{
	nt_buf_clear(&text);
	assert_int_equal(nt_html_write(&scene.report, &text), 0);
	assert_true(text.len <= NT_PAGE_MAX_BYTES);
	assert_int_equal(strlen((const char *)text.data), text.len);
	return (const char *)text.data;
}

static const char *escaped(const char *from, size_t max)
{
	struct nt_markup out = {.buf = &text};

	nt_buf_clear(&text);
	nt_markup_text(&out, from, max);
	assert_int_equal(out.error, 0);
	assert_int_equal(nt_buf_append(&text, "", 1), 0);
	return (const char *)text.data;
}

static void text_is_escaped_cleaned_and_cut_between_characters(void **state)
{
	(void)state;
	assert_string_equal(escaped("", 8), "");
	assert_string_equal(escaped("a<b>&\"'c", 64), "a&lt;b&gt;&amp;&quot;&#39;c");
	assert_string_equal(escaped("&amp;", 64), "&amp;amp;");
	assert_string_equal(escaped("\x1b[31m\xff\x7f", 64), "?[31m??");
	assert_string_equal(escaped("\xe2\x80\xaetxt", 64), "?txt");
	assert_string_equal(escaped("12345678", 8), "12345678");
	assert_string_equal(escaped("123456789", 8), "12345678…");
	assert_string_equal(escaped("1234567é", 8), "1234567…");
	assert_string_equal(escaped("<<<<", 2), "&lt;&lt;…");
}

static void base64_is_what_others_make_of_it_at_every_length(void **state)
{
	static uint8_t data[40000], back[60000];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t size = 0; size <= sizeof(data); size += size < 9 ? 1 : 4093) {
		struct nt_markup out = {.buf = &text};

		nt_buf_clear(&text);
		nt_markup_base64(&out, data, size);
		assert_int_equal(out.error, 0);
		assert_int_equal(text.len, (size + 2) / 3 * 4);
		if (!size)
			continue;
		assert_int_equal(EVP_DecodeBlock(back, text.data, (int)text.len),
				 (size + 2) / 3 * 3);
		assert_memory_equal(back, data, size);
	}
}

static void an_error_of_the_page_stays(void **state)
{
	struct nt_markup out = {.buf = &text};

	(void)state;
	text.max = 16;
	nt_markup_put(&out, "%s", "longer than sixteen bytes");
	assert_int_equal(out.error, -ENOBUFS);
	nt_markup_put(&out, "x");
	nt_markup_text(&out, "y", 1);
	nt_markup_base64(&out, "z", 1);
	assert_int_equal(out.error, -ENOBUFS);
	assert_int_equal(text.len, 0);
}

static uint32_t number_at(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void a_png_holds_its_pixels_and_the_sums_of_its_chunks(void **state)
{
	static const uint8_t pixel[] = {0, 1, 2, 3, 4, 255};
	struct nt_png_colour colour[256] = {[1] = {1, 2, 3, 4}};
	uint8_t raw[16];
	uLongf size = sizeof(raw);
	size_t chunks = 0;

	(void)state;
	assert_int_equal(nt_png_write(&text, pixel, 0, 2, colour), -EINVAL);
	assert_int_equal(nt_png_write(&text, pixel, 3, NT_PNG_MAX_SIDE + 1, colour), -EINVAL);
	assert_int_equal(text.len, 0);
	assert_int_equal(nt_png_write(&text, pixel, 3, 2, colour), 0);
	assert_memory_equal(text.data, "\x89PNG\r\n\x1a\n", 8);
	for (size_t at = 8; at < text.len; chunks++) {
		const uint8_t *chunk = text.data + at;
		const uint32_t length = number_at(chunk);

		assert_true(at + 12 + length <= text.len);
		assert_int_equal(number_at(chunk + 8 + length),
				 crc32(0, chunk + 4, (uInt)length + 4));
		if (memcmp(chunk + 4, "IHDR", 4) == 0) {
			assert_int_equal(number_at(chunk + 8), 3);
			assert_int_equal(number_at(chunk + 12), 2);
		} else if (memcmp(chunk + 4, "PLTE", 4) == 0) {
			assert_memory_equal(chunk + 8 + 3, "\1\2\3", 3);
		} else if (memcmp(chunk + 4, "tRNS", 4) == 0) {
			assert_int_equal(chunk[8 + 1], 4);
		} else if (memcmp(chunk + 4, "IDAT", 4) == 0) {
			assert_int_equal(uncompress(raw, &size, chunk + 8, length), Z_OK);
			assert_int_equal(size, 8);
			assert_memory_equal(raw, "\0\0\1\2\0\3\4\xff", 8);
		}
		at += 12 + length;
	}
	assert_int_equal(chunks, 5);
}

static void what_comes_from_outside_makes_no_element(void **state)
{
	const char *html;

	(void)state;
	scene_attacked(&scene);
	html = page();
	does_not_say(html, "<img");
	does_not_say(html, "<a ");
	does_not_say(html, "<base");
	does_not_say(html, "<svg onload");
	does_not_say(html, "<script>alert");
	does_not_say(html, "\x1b");
	does_not_say(html, "\xff");
	does_not_say(html, "\xe2\x80\xae");
	assert_int_equal(count(html, "<script"), 1);
	assert_int_equal(count(html, "</script>"), 1);
	assert_int_equal(count(html, "</style>"), 1);
	assert_int_equal(count(html, "</title></style>"), 0);
	says(html, "&lt;/script&gt;&lt;script&gt;alert(&#39;script&#39;)&lt;/script&gt;");
	says(html, "&quot;&gt;&lt;img src=x onerror=alert(&#39;img&#39;)&gt;");
	says(html, "&amp;lt;script&amp;gt;");
}

/* The policy names the very bytes between the tags. */
static void assert_hash(const char *html, const char *open, const char *close, const char *policy)
{
	const char *begin = strstr(html, open) + strlen(open), *end = strstr(begin, close);
	unsigned char sum[SHA256_DIGEST_LENGTH];
	char wanted[128], base64[64];

	SHA256((const unsigned char *)begin, (size_t)(end - begin), sum);
	(void)EVP_EncodeBlock((unsigned char *)base64, sum, sizeof(sum));
	(void)snprintf(wanted, sizeof(wanted), "%s 'sha256-%s'", policy, base64);
	says(html, wanted);
}

static void a_stack_says_whose_it_is_and_what_is_left_out(void **state)
{
	const char *html;

	(void)state;
	scene_attacked(&scene);
	html = page();
	says(html, "<details open><summary>Stack of rank 1, thread 4711");
	says(html, "<details><summary>Stack of rank 0 for comparison, thread 4711");
	says(html, ", holds the GIL, garbage collection runs</summary>");
	says(html, ":42)</li>");
	says(html, "5 more frames.");
	says(html, "Python frames: ");
	says(html, "Native frames: ");
}

static void the_policy_allows_the_pages_own_style_and_script_and_nothing_else(void **state)
{
	const char *html;

	(void)state;
	scene_attacked(&scene);
	html = page();
	says(html, "content=\"default-src 'none'; img-src data:; base-uri 'none'; form-action "
		   "'none'; style-src ");
	does_not_say(html, "unsafe-");
	does_not_say(html, " style=\"");
	does_not_say(html, " onclick");
	assert_hash(html, "<style>", "</style>", "style-src");
	assert_hash(html, "<script>", "</script>", "script-src");
	assert_true(strstr(html, "Content-Security-Policy") < strstr(html, "<style>"));
}

static void the_largest_page_is_below_its_cap_and_says_what_it_leaves_out(void **state)
{
	const char *html;

	(void)state;
	scene_worst(&scene);
	html = page();
	assert_int_equal(count(html, "<article"), NT_HTML_MAX_INCIDENTS);
	assert_int_equal(count(html, "<figure"), 2 * NT_HTML_MAX_JOBS);
	says(html, "900 more: see --json.");
	says(html, "1016 more: see --json.");
	says(html, "and 47 more</td>");
	says(html, "800 more: see --json.");
	says(html, "16352 more: see --json --windows.");
	says(html, "4 or more further jobs are not shown");
}

static void a_large_job_is_a_heatmap_of_256_rows_and_one_of_those_that_deviated(void **state)
{
	const char *html;

	(void)state;
	assert_int_equal(nt_heatmap_ranks_per_row(1), 1);
	assert_int_equal(nt_heatmap_ranks_per_row(256), 1);
	assert_int_equal(nt_heatmap_ranks_per_row(257), 2);
	assert_int_equal(nt_heatmap_ranks_per_row(16384), 64);
	scene_large(&scene);
	html = page();
	assert_true(text.len < 1 << 20);
	says(html, "data-columns=\"512\" data-rows=\"256\"");
	says(html, "data-columns=\"512\" data-rows=\"9\"");
	says(html,
	     "One row shows the largest deviation of 64 ranks. One cell is the mean of 32 windows, each "
	     "limited to 40 % of a step.");
	says(html, "class=\"named\" x=\"98\" y=\"54.883%\" dy=\"0.35em\">8960–9023</text>");
	says(html, "<th scope=\"row\">9007</th><td>gpu-1125</td>");
	says(html, "<td class=\"n\">2048 of 4096</td>");
	/* 16,384 ranks take the place of one. */
	assert_true(count(html, "<rect") < 40);
}

static void a_page_of_nothing_accuses_nobody(void **state)
{
	const char *html;

	(void)state;
	scene_init(&scene, "empty");
	html = page();
	says(html, "<h1>No rank, node or link is to blame</h1>");
	says(html, "None: no rank deviates from its peers.");
	does_not_say(html, "<figure");
	(void)scene_job(&scene, "calm", 1, 1, 1, false);
	html = page();
	says(html, "No rank deviated from its peers in any window.");
	says(html, "data-rows=\"1\"");
	scene.judgement->windows->job[0].rank[0].judged = 0;
	html = page();
	says(html, "No rank could be compared in any window");
	does_not_say(html, "<figure");
}

static void what_no_rank_is_named_for_is_said_first(void **state)
{
	const char *html;

	(void)state;
	scene_init(&scene, "network");
	scene_incident(&scene, "j", "info", "imbalance")->summary = "uneven";
	scene_incident(&scene, "j", "critical", "network")->summary = "transfers are slow";
	html = page();
	says(html, "<h1>transfers are slow</h1>");
	does_not_say(html, "is to blame");
}

static void those_to_act_on_come_first_whatever_opened_first(void **state)
{
	static struct nt_culprit culprit;
	struct nt_wire_incident *incident;
	const char *html;

	(void)state;
	culprit = scene_culprit(3, "gpu-07");
	scene_init(&scene, "order");
	scene_incident(&scene, "j", "info", "imbalance")->summary = "uneven";
	incident = scene_incident(&scene, "j", "warning", "compute");
	incident->summary = "rank 3 is slow";
	incident->culprit = &culprit;
	incident->culprits = 1;
	scene_incident(&scene, "j", "critical", "unknown")->summary = "who knows";
	html = page();
	says(html, "<h1>rank 3 is slow</h1>");
	says(html, "2 more verdicts are informational or without a culprit.");
	assert_true(strstr(html, "</span> rank 3 is slow</h3>") <
		    strstr(html, "</span> who knows</h3>"));
	assert_true(strstr(html, "</span> who knows</h3>") < strstr(html, "</span> uneven</h3>"));
}

static void a_rank_of_another_job_of_the_same_name_is_not_framed(void **state)
{
	static struct nt_culprit culprit;
	struct nt_windows_job *job[2];
	struct nt_wire_incident *incident;

	(void)state;
	scene_init(&scene, "twins");
	job[0] = scene_job(&scene, "twin", 8, 4, 1, false);
	job[1] = scene_job(&scene, "twin", 8, 4, 1, false);
	(void)job[0];
	free(job[1]->node[0]);
	job[1]->node[0] = strdup("elsewhere");
	culprit = scene_culprit(3, "elsewhere");
	incident = scene_incident(&scene, "twin", "critical", "compute");
	incident->since_real_ns = scene.report.start_ns;
	incident->culprit = &culprit;
	incident->culprits = 1;
	assert_int_equal(count(page(), "class=\"mark\""), 1);
}

static void every_class_has_a_thing_to_do(void **state)
{
	(void)state;
	for (int class = 0; class < NT_CLASS_END; class ++) {
		const struct nt_wire_incident incident = {
			.class = nt_class_name((enum nt_class) class),
			.cause = "of its own",
			.state = "firing"};

		if (!*nt_remediation_find(&incident))
			fail_msg("nothing to do about %s", incident.class);
	}
	assert_string_equal(nt_remediation_find(&(struct nt_wire_incident){
				    .class = "of the future", .cause = "", .state = "firing"}),
			    "");
	assert_ptr_not_equal(nt_remediation_find(&(struct nt_wire_incident){
				     .class = "host", .cause = "", .state = "firing"}),
			     nt_remediation_find(&(struct nt_wire_incident){
				     .class = "host", .cause = "data loading", .state = "firing"}));
	/* Of what has ended no node is drained. */
	assert_non_null(strstr(nt_remediation_find(&(struct nt_wire_incident){
				       .class = "compute", .cause = "", .state = "resolved"}),
			       "has ended"));
}

static void a_page_takes_the_place_of_a_file_and_errors_are_told(void **state)
{
	char dir[SCRATCH_BYTES], path[SCRATCH_BYTES + 16], begin[16] = "";
	FILE *file;

	(void)state;
	assert_int_equal(scratch_make(dir), 0);
	(void)snprintf(path, sizeof(path), "%s/none/page.html", dir);
	scene_init(&scene, "saved");
	assert_int_equal(nt_html_save(&scene.report, path), -ENOENT);
	(void)snprintf(path, sizeof(path), "%s/page.html", dir);
	for (int i = 0; i < 2; i++)
		assert_int_equal(nt_html_save(&scene.report, path), 0);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(begin, sizeof(begin), file));
	assert_string_equal(begin, "<!DOCTYPE html>");
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	assert_int_equal(ftell(file), strlen(page()));
	(void)fclose(file);
	scratch_remove(dir);
	if (access("/dev/full", W_OK) == 0)
		assert_int_equal(nt_html_save(&scene.report, "/dev/full"), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(text_is_escaped_cleaned_and_cut_between_characters,
					  tear_down),
		cmocka_unit_test_teardown(base64_is_what_others_make_of_it_at_every_length,
					  tear_down),
		cmocka_unit_test_teardown(an_error_of_the_page_stays, tear_down),
		cmocka_unit_test_teardown(a_stack_says_whose_it_is_and_what_is_left_out, tear_down),
		cmocka_unit_test_teardown(a_png_holds_its_pixels_and_the_sums_of_its_chunks,
					  tear_down),
		cmocka_unit_test_teardown(what_comes_from_outside_makes_no_element, tear_down),
		cmocka_unit_test_teardown(
			the_policy_allows_the_pages_own_style_and_script_and_nothing_else,
			tear_down),
		cmocka_unit_test_teardown(
			the_largest_page_is_below_its_cap_and_says_what_it_leaves_out, tear_down),
		cmocka_unit_test_teardown(
			a_large_job_is_a_heatmap_of_256_rows_and_one_of_those_that_deviated,
			tear_down),
		cmocka_unit_test_teardown(a_page_of_nothing_accuses_nobody, tear_down),
		cmocka_unit_test_teardown(what_no_rank_is_named_for_is_said_first, tear_down),
		cmocka_unit_test_teardown(those_to_act_on_come_first_whatever_opened_first,
					  tear_down),
		cmocka_unit_test_teardown(a_rank_of_another_job_of_the_same_name_is_not_framed,
					  tear_down),
		cmocka_unit_test(every_class_has_a_thing_to_do),
		cmocka_unit_test_teardown(a_page_takes_the_place_of_a_file_and_errors_are_told,
					  tear_down),
	};

	return cmocka_run_group_tests_name("cli/html", tests, NULL, NULL);
}
