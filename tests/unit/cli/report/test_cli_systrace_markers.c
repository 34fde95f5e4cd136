/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One file of sysTrace's markers: operations, and the errors of a damaged one. */
#include <errno.h>

#include "cli/readers/trace.h"
#include "cli/systrace/markers.h"
#include "proto/wire.h"
#include "tests/unit/cli/systrace_files.h"

/* ---- names of files ----------------------------------------------------------------------- */

static void assert_place(const char *name, uint32_t rank, const char *node)
{
	struct nt_trace_node got = {"untouched"};
	uint32_t number = 77;

	assert_true(nt_markers_place(name, &number, &got));
	assert_int_equal(number, rank);
	assert_string_equal(got.name, node);
}

static void a_file_is_named_by_address_and_rank(void **state)
{
	struct nt_trace_node node;
	uint32_t rank;

	(void)state;
	assert_place("/data/hccl_activity-10.0.0.1-.3.csv", 3, "10.0.0.1");
	assert_place("hccl_activity-10.0.0.1-.131071.csv.gz", 131071, "10.0.0.1");
	/* sysTrace takes what is between the first two '-'. */
	assert_place("hccl_activity-node-with-dashes-.12.csv", 12, "node-with-dashes");
	assert_place("mspti-marker-10.0.0.1-7.csv", 7, "10.0.0.1");
	assert_place("/proc/self/fd/5", 5, "");
	assert_place("hccl_activity-.4.csv", 4, "");
	assert_false(nt_markers_place("hccl_activity-10.0.0.1-.csv", &rank, &node));
	assert_false(nt_markers_place("hccl_activity-10.0.0.1-.131072.csv", &rank, &node));
	assert_false(
		nt_markers_place("hccl_activity-10.0.0.1-.99999999999999999999.csv", &rank, &node));
	assert_false(nt_markers_place("", &rank, &node));

	assert_true(nt_markers_is_file("a/hccl_activity-10.0.0.1-.3.csv.gz"));
	assert_true(nt_markers_is_file("hccl_activity-10.0.0.1-.3.csv"));
	assert_false(nt_markers_is_file("hccl_activity-10.0.0.1-.3.json"));
	assert_false(nt_markers_is_file("hccl_activity-/trace.csv"));
	assert_false(nt_markers_is_file("trace-AR.csv.gz"));
}

/* ---- one file ----------------------------------------------------------------------------- */

static struct nt_markers *read_markers(const char *text)
{
	struct nt_markers *markers = NULL;
	struct nt_trace_error error = {0};

	put_file(0, text);
	if (nt_markers_read(path[0], &markers, &error) < 0)
		fail_msg("%s", error.text);
	return markers;
}

static void four_rows_of_one_id_are_an_operation_in_whatever_order(void **state)
{
	nt_auto(nt_markers) struct nt_markers *markers =
		read_markers(HEADER "32,9,1,,1,5000,0,0,1,1\n"
				    "32,9,1,,0,1500,0,0,1,1\n"
				    "16,9,1," GATHER ",0,1000,0,0,1,1\n"
				    "16,9,1,,1,2000,0,0,1,1\n");
	const struct nt_marker_op *op = &markers->op[0];

	(void)state;
	assert_int_equal(markers->ops, 1);
	assert_int_equal(op->start_ns, 2000);
	assert_int_equal(op->end_ns, 5000);
	assert_int_equal(op->launch_ns, 1000);
	assert_int_equal(op->launched_ns, 1500);
	assert_int_equal(markers->kinds, 1);
	assert_string_equal(markers->kind[0].name, "HcclAllGather");
	assert_int_equal(markers->kind[0].op, NT_OP_ALL_GATHER);
	assert_int_equal(markers->kind[0].frame_kind, NT_FRAME_SYNCHRONISING);
	assert_int_equal(markers->kind[0].bytes, 2048);
	assert_int_equal(markers->unfinished, 0);
	assert_true(markers->has_host);
}

static void an_id_that_comes_again_is_another_operation(void **state)
{
	nt_auto(nt_markers) struct nt_markers *markers =
		read_markers(HEADER "16,1,1," GATHER ",1,2000,0,0,1,1\n"
				    "32,1,1,,1,3000,0,0,1,1\n"
				    "16,1,1,comm:HcclSend!pp!fp32!8,1,9000,0,0,1,1\n"
				    "32,1,1,,1,9500,0,0,1,1\n");

	(void)state;
	assert_int_equal(markers->ops, 2);
	assert_int_equal(markers->op[0].end_ns, 3000);
	assert_int_equal(markers->op[1].start_ns, 9000);
	assert_string_equal(markers->kind[markers->op[1].kind].name, "HcclSend");
	assert_int_equal(markers->kind[markers->op[1].kind].frame_kind, NT_FRAME_POINT_TO_POINT);
}

static void what_is_cut_by_the_ends_of_the_collection_is_counted_and_left_out(void **state)
{
	nt_auto(nt_markers) struct nt_markers *markers =
		read_markers(HEADER "32,1,1,,1,1000,0,0,1,1\n" /* nobody knows of what */
				    "16,2,1," GATHER ",1,2000,0,0,1,1\n"
				    "32,2,1,,1,3000,0,0,1,1\n"
				    "16,3,1," GATHER ",1,4000,0,0,1,1\n"
				    "16,4,1,my own marker,1,4000,0,0,1,1\n");

	(void)state;
	assert_int_equal(markers->ops, 1);
	assert_int_equal(markers->unfinished, 1);
	assert_false(markers->has_host);
}

static void a_name_may_have_commas_in_quotes(void **state)
{
	nt_auto(nt_markers) struct nt_markers *markers = read_markers(
		HEADER "16,1,1,\"comm:HcclAlltoAllV,ep group,int64,0\",1,2000,0,0,1,1\n"
		       "32,1,1,\"\",1,3000,0,0,1,1\n");

	(void)state;
	assert_int_equal(markers->ops, 1);
	assert_int_equal(markers->kind[0].frame_kind, NT_FRAME_ALL_TO_ALL);
	assert_int_equal(markers->kind[0].bytes, 0);
}

static void launches_of_another_clock_are_not_believed(void **state)
{
	nt_auto(nt_markers) struct nt_markers *markers =
		read_markers(HEADER "16,1,1," GATHER ",0,9000,0,0,1,1\n"
				    "32,1,1,,0,9100,0,0,1,1\n"
				    "16,1,1," GATHER ",1,2000,0,0,1,1\n"
				    "32,1,1,,1,3000,0,0,1,1\n");

	(void)state;
	assert_int_equal(markers->ops, 1);
	assert_false(markers->has_host);
	assert_int_equal(markers->op[0].launched_ns, 0);
}

static void assert_refused(const char *text, const char *why)
{
	const char *paths[] = {path[0]};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	put_file(0, text);
	assert_int_equal(nt_trace_read_systrace(paths, 1, &trace, &error), -EBADMSG);
	assert_null(trace);
	assert_non_null(strstr(error.text, path[0]));
	if (!strstr(error.text, why))
		fail_msg("'%s' does not say '%s'", error.text, why);
}

static void a_damaged_file_is_refused_by_line_and_reason(void **state)
{
	static char line[70000];

	(void)state;
	assert_refused("Flag,Id,Kind\n", ":1: no column 'Name'");
	assert_refused("Id,Name,SourceKind,Time\n", ":1: no column 'Timestamp'");
	assert_refused(HEADER "16,1,1," GATHER ",1,2000\n", ":2: 6 fields, the header has 10");
	assert_refused(HEADER "16,1,1," GATHER ",1,2000,0,0,1,1\n32,1", ":3: 2 fields");
	assert_refused(HEADER "16,-1,1,,1,2000,0,0,1,1\n", ":2: Id is '-1'");
	assert_refused(HEADER "16,1,1,,2,2000,0,0,1,1\n", ":2: SourceKind is '2'");
	assert_refused(HEADER "16,1,1,,1,1e9,0,0,1,1\n", ":2: Timestamp is '1e9'");
	assert_refused(HEADER "16,1,1,,1,9223372036854775808,0,0,1,1\n", ":2: Timestamp is '9223");
	assert_refused(HEADER "16,1,1,comm:HcclAllGather,1,2000,0,0,1,1\n", ":2: Name is 'comm:");
	assert_refused(HEADER "16,1,1,comm:!tp!fp16!1,1,2000,0,0,1,1\n", ":2: Name is 'comm:!tp");
	assert_refused(HEADER "16,1,1,comm:HcclAllGather!tp!fp16!many,1,2000,0,0,1,1\n",
		       ":2: Name is");
	assert_refused(HEADER "16,1,1,\"comm:open,1,2000,0,0,1,1\n", "a quote left open");
	assert_refused("", "no step");
	assert_refused(HEADER, "no step");
	memset(line, 'x', sizeof(line) - 1);
	assert_refused(line, ":1: line longer than 64 KiB");
	put_bytes(0, "Flag\0\n", 6);
	assert_refused(HEADER "\n", ":2: 1 fields");
}

static void a_nul_byte_is_no_text(void **state)
{
	const char *paths[] = {path[0]};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	(void)state;
	put_bytes(0, HEADER "16\0,1", sizeof(HEADER) + 4);
	assert_int_equal(nt_trace_read_systrace(paths, 1, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, ":2: damaged"));
}

static void a_missing_file_is_enoent_and_says_so(void **state)
{
	const char *paths[] = {"build/hccl_activity-none-.1.csv"};
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;

	(void)state;
	assert_int_equal(nt_trace_read_systrace(paths, 1, &trace, &error), -ENOENT);
	assert_non_null(strstr(error.text, paths[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_named_by_address_and_rank),
		cmocka_unit_test_teardown(four_rows_of_one_id_are_an_operation_in_whatever_order,
					  remove_files),
		cmocka_unit_test_teardown(an_id_that_comes_again_is_another_operation,
					  remove_files),
		cmocka_unit_test_teardown(
			what_is_cut_by_the_ends_of_the_collection_is_counted_and_left_out,
			remove_files),
		cmocka_unit_test_teardown(a_name_may_have_commas_in_quotes, remove_files),
		cmocka_unit_test_teardown(launches_of_another_clock_are_not_believed, remove_files),
		cmocka_unit_test_teardown(a_damaged_file_is_refused_by_line_and_reason,
					  remove_files),
		cmocka_unit_test_teardown(a_nul_byte_is_no_text, remove_files),
		cmocka_unit_test(a_missing_file_is_enoent_and_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
