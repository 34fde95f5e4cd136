/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables of operation times whose end is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/readers/trace.h"

#define HEADER "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
#define FIRST  "0,0,0,7,forward-compute,0.5,1.0,0,0,0,0\n"

static struct nt_trace *read_table(const char *text)
{
	struct nt_trace_error error = {0};
	struct nt_trace *trace = NULL;
	char path[64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "build/test-cut-table-%d.csv", (int)getpid());
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
	if (nt_trace_read_straggler(path, &trace, &error) < 0)
		assert_null(trace);
	(void)unlink(path);
	return trace;
}

/* A job that is killed leaves a table whose last line is written in part. */
static void a_table_that_is_cut_in_its_last_line_is_read_without_it(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace =
		read_table(HEADER FIRST "0,0,0,7,backward-compute,1.5,2.0,0,0");

	(void)state;
	assert_non_null(trace);
	assert_true(trace->cut);
	assert_int_equal(trace->frame[0].frame.rank[0].own_ns, 1000000000);
}

static void a_last_line_without_an_end_is_read_if_it_is_complete(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace =
		read_table(HEADER FIRST "0,0,0,7,backward-compute,1.5,2.0,0,0,0,0");

	(void)state;
	assert_non_null(trace);
	assert_false(trace->cut);
	assert_int_equal(trace->frame[0].frame.rank[0].own_ns, 3000000000);
}

static void a_short_line_with_an_end_is_refused(void **state)
{
	(void)state;
	assert_null(read_table(HEADER FIRST "0,0,0,7,backward-compute,1.5,2.0,0,0\n"));
	assert_null(read_table(HEADER FIRST "0,0,0,7,backward-compute,1.5,2.0,0,0\n" FIRST));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_that_is_cut_in_its_last_line_is_read_without_it),
		cmocka_unit_test(a_last_line_without_an_end_is_read_if_it_is_complete),
		cmocka_unit_test(a_short_line_with_an_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
