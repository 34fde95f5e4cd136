/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiler traces as streams: members in any order, defects, many files, and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

#include "cli/readers/trace.h"
#include "common/system/thread.h"
#include "tests/unit/scratch.h"

enum {
	FILES = 40,
	LARGE_BYTES = 32 << 20,
};

static char dir[SCRATCH_BYTES], path[FILES][SCRATCH_BYTES + 32];
static const char *paths[FILES];
static struct nt_trace_error error;

#define INFO                                                                                       \
	"\"distributedInfo\": {\"rank\": 0, \"world_size\": 2, \"pg_config\": [{\"pg_name\": "     \
	"\"g\", \"pg_size\": 2, \"ranks\": [0, 1]}]}"
#define KERNEL(name, args) "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" name "\"" args "}"
#define CALL(seq)                                                                                  \
	KERNEL("ncclDevKernel_AllReduce_x",                                                        \
	       ", \"ts\": 10." seq                                                                 \
	       ", \"dur\": 2.5, \"args\": {\"Collective name\": \"allreduce\", "                   \
	       "\"Process Group Name\": \"g\", \"Group size\": 2, \"In msg nelems\": 4, "          \
	       "\"dtype\": \"Float\", \"Seq\": " seq "}")
#define EVENTS "\"traceEvents\": [" KERNEL("gemm", ", \"ts\": 1, \"dur\": 9") ", " CALL("7") "]"
#define BASE   "\"baseTimeNanoseconds\": 5000000000"

static int set_up(void **state)
{
	(void)state;
	error = (struct nt_trace_error){0};
	if (scratch_make(dir) < 0)
		return -1;
	for (int i = 0; i < FILES; i++) {
		(void)snprintf(path[i], sizeof(path[i]), "%s/rank%d.json", dir, i);
		paths[i] = path[i];
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void put(int at, const char *text)
{
	FILE *file = fopen(path[at], "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static struct nt_trace *must_read(const char *text)
{
	struct nt_trace *trace = NULL;

	put(0, text);
	if (nt_trace_read_kineto(paths, 1, &trace, &error) < 0)
		fail_msg("%s: %s", text, error.text);
	return trace;
}

static void assert_refused(const char *text, const char *why)
{
	struct nt_trace *trace = NULL;

	error = (struct nt_trace_error){0};
	put(0, text);
	assert_int_equal(nt_trace_read_kineto(paths, 1, &trace, &error), -EBADMSG);
	if (!strstr(error.text, why))
		fail_msg("'%s' does not say '%s'", error.text, why);
}

static void assert_same(const struct nt_trace *trace)
{
	const struct nt_frame_rank *rank;

	assert_int_equal(trace->frames, 1);
	assert_int_equal(trace->world, 2);
	rank = trace->frame[0].rank;
	assert_int_equal(rank->own_ns, 9000);
	assert_int_equal(rank->comms, 1);
	assert_int_equal(rank->comm[0].size, 2);
	assert_int_equal(rank->comm[0].last, 7);
	assert_int_equal(trace->frame[0].frame.samples, 1);
	assert_int_equal(trace->frame[0].sample[0].arrive_ns, 5000010700);
}

static void members_come_in_any_order(void **state)
{
	static const char *const texts[] = {
		"{" INFO ", " BASE ", " EVENTS "}",
		"{" EVENTS ", " INFO ", " BASE "}",
		"{" BASE ", " EVENTS ", " INFO "}",
		"{" INFO ", " EVENTS ", " BASE "}",
		/* Of several of one name the last counts. */
		"{\"distributedInfo\": 7, \"baseTimeNanoseconds\": 1, " EVENTS ", " INFO ", " BASE
		"}",
		"{" INFO ", " BASE
		", \"traceEvents\": [{\"ph\": \"X\", \"name\": \"bad\"}], " EVENTS "}",
		"{\"traceEvents\": 7, " INFO ", " BASE ", " EVENTS "}",
		"{" EVENTS ", \"distributedInfo\": {\"rank\": 0, \"world_size\": 9}, " BASE
		", " INFO "}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		nt_auto(nt_trace) struct nt_trace *trace = must_read(texts[i]);

		assert_same(trace);
	}
}

static void members_of_an_event_come_in_any_order(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = must_read(
		"{" INFO ", " BASE
		", \"traceEvents\": [{\"args\": {\"Seq\": 7, \"dtype\": \"Float\", \"In msg "
		"nelems\": 4, \"unread\": [{\"Seq\": 8}], \"Group size\": 2, \"Process Group Name\": "
		"\"\\u0067\", \"Collective name\": \"allreduce\"}, \"dur\": 2.5, \"ts\": 10.7, "
		"\"name\": \"nccl_AllReduce\", \"cat\": \"kernel\", \"ph\": \"X\"}, {\"dur\": 9, "
		"\"ts\": 1, \"name\": \"gemm\", \"cat\": \"ker\\u006eel\", \"ph\": \"\\u0058\"}]}");

	(void)state;
	assert_same(trace);
}

static void the_gravest_defect_is_reported(void **state)
{
	(void)state;
	/* A malformed end counts more than a bad event before it. */
	assert_refused("{" INFO ", \"traceEvents\": [\n{\"ph\": \"X\", \"name\": \"bad\"},\n!",
		       "rank0.json:3: invalid JSON at byte");
	assert_refused("{" INFO ",\n\"traceEvents\": [\n7,\n\n{\"ph\": \"X\", \"name\": \"bad\"}]}",
		       "rank0.json:5: event 1: 'bad': expected ts and dur");
	assert_refused("{\n\"distributedInfo\": {\"rank\": 3, \"world_size\": 2}, \"traceEvents\": "
		       "[{\"ph\": \"X\", \"name\": \"bad\"}]}",
		       "rank0.json:2: distributedInfo: world_size is not a number from 4");
	assert_refused("{" INFO ", \"traceEvents\": {}}", "no list 'traceEvents'");
	assert_refused("{" INFO "}", "no list 'traceEvents'");
	assert_refused("{\"distributedInfo\": {\"rank\": -1}, " EVENTS "}", "rank unknown");
}

static void damaged_compression_counts_more_than_what_it_unpacks_to(void **state)
{
	struct nt_trace *trace = NULL;
	struct stat st;
	gzFile file;

	(void)state;
	file = gzopen(path[0], "wb");
	assert_non_null(file);
	for (int i = 0; i < 100000; i++)
		assert_true(gzprintf(file, "%s%x", i == 5 ? "!" : "[", (unsigned int)i * 7919) > 0);
	assert_int_equal(gzclose(file), Z_OK);
	assert_int_equal(stat(path[0], &st), 0);
	assert_int_equal(truncate(path[0], st.st_size - 10), 0);
	assert_int_equal(nt_trace_read_kineto(paths, 1, &trace, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "cut short"));
}

static void *feed(void *data)
{
	FILE *file = fopen(data, "w");

	assert_non_null(file);
	assert_true(fputs("{" EVENTS ", " BASE ", " INFO "}", file) >= 0);
	assert_int_equal(fclose(file), 0);
	return NULL;
}

/* What precedes the events in the file's order is needed twice. */
static void a_pipe_is_read_like_a_file(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	pthread_t thread;

	(void)state;
	assert_int_equal(mkfifo(path[0], 0600), 0);
	assert_int_equal(nt_thread_start(&thread, feed, path[0]), 0);
	if (nt_trace_read_kineto(paths, 1, &trace, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_same(trace);
}

static void files_are_read_at_the_same_time_and_reported_in_their_order(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	char text[512];

	(void)state;
	for (int i = 0; i < FILES; i++) {
		(void)snprintf(text, sizeof(text),
			       "{\"distributedInfo\": {\"rank\": %d}, \"traceEvents\": [%s%s]}", i,
			       i % 3 == 1 ? "!" : "", KERNEL("gemm", ", \"ts\": 1, \"dur\": 9"));
		put(i, text);
	}
	if (nt_trace_read_kineto(paths, FILES, &trace, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(trace->unread, FILES / 3);
	for (size_t i = 0; i < trace->unread; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "/rank%zu.json:1: invalid JSON", 3 * i + 1);
		assert_non_null(strstr(trace->unread_text[i], name));
	}
	assert_int_equal(trace->frame[0].frame.ranks, FILES - FILES / 3);
	for (size_t i = 1; i < trace->frame[0].frame.ranks; i++)
		assert_true(trace->frame[0].rank[i - 1].rank < trace->frame[0].rank[i].rank);
}

/* Events of which nothing is kept, and text that no member is picked of; packed it is tiny. */
static void put_large(void)
{
	static const char event[] =
		"{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"train.py(7): f\", \"ts\": "
		"7, \"dur\": 1, \"args\": {\"Python id\": 7, \"Call stack\": [\"a\", \"b\"]}},\n";
	static char blank[1 << 16];
	gzFile file = gzopen(path[0], "wb1");

	assert_non_null(file);
	memset(blank, ' ', sizeof(blank));
	assert_true(gzputs(file, "{" INFO ", \"x\": \"") > 0);
	for (int i = 0; i < LARGE_BYTES / 2; i += (int)sizeof(blank))
		assert_int_equal(gzwrite(file, blank, sizeof(blank)), sizeof(blank));
	assert_true(gzputs(file, "\", \"traceEvents\": [") > 0);
	for (int i = 0; i < LARGE_BYTES / 2; i += (int)strlen(event))
		assert_true(gzputs(file, event) > 0);
	assert_true(gzputs(file, KERNEL("gemm", ", \"ts\": 1, \"dur\": 9") "]}") > 0);
	assert_int_equal(gzclose(file), Z_OK);
}

static long peak_kb(int who)
{
	struct rusage usage;

	assert_int_equal(getrusage(who, &usage), 0);
	return usage.ru_maxrss;
}

/* In a process of its own, whose memory so far is what it was forked with. */
static void memory_does_not_grow_with_the_file(void **state)
{
	struct nt_trace *trace = NULL;
	struct rusage usage;
	int status = 0;
	pid_t child;
	long before;

	(void)state;
	put_large();
	before = peak_kb(RUSAGE_SELF);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(nt_trace_read_kineto(paths, 1, &trace, &error) == 0 && trace->frames == 1
			      ? 0
			      : 1);
	assert_int_equal(wait4(child, &status, 0, &usage), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(usage.ru_maxrss < before + LARGE_BYTES / 2 / 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(members_come_in_any_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(members_of_an_event_come_in_any_order, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_gravest_defect_is_reported, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			damaged_compression_counts_more_than_what_it_unpacks_to, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pipe_is_read_like_a_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			files_are_read_at_the_same_time_and_reported_in_their_order, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(memory_does_not_grow_with_the_file, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
