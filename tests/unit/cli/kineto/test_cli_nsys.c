/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exports of Nsight Systems, with the documented tables: which ranks they have, and what is slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/kineto/nsys.h"
#include "cli/kineto/nsys_db.h"
#include "cli/replay/replay.h"
#include "tests/unit/scratch.h"

enum {
	RANKS = 4,
	STEPS = 40,
	MAX_FILES = 4,
};

static char dir[SCRATCH_BYTES], path[MAX_FILES][SCRATCH_BYTES + 64];
static const char *paths[MAX_FILES];
static struct nt_trace_error error;
static sqlite3 *db;

static int set_up(void **state)
{
	(void)state;
	error = (struct nt_trace_error){0};
	for (int i = 0; i < MAX_FILES; i++)
		paths[i] = path[i];
	return scratch_make(dir);
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void run(const char *fmt, ...)
{
	char sql[1024], *why = NULL;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(sql, sizeof(sql), fmt, ap);
	va_end(ap);
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s", why);
}

/* As `nsys export --type sqlite` declares them, of what is read. */
static void begin(int file, const char *name)
{
	(void)snprintf(path[file], sizeof(path[file]), "%s/%s", dir, name);
	assert_int_equal(sqlite3_open(path[file], &db), SQLITE_OK);
	run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;"
	    "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
	    "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, "
	    "localTime TEXT);"
	    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT "
	    "NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT "
	    "NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, "
	    "shortName INTEGER NOT NULL);");
	run("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT "
	    "NULL, deviceId INTEGER NOT NULL, globalPid INTEGER, bytes INTEGER NOT NULL);"
	    "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT "
	    "NULL, text TEXT, globalTid INTEGER, textId INTEGER);"
	    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');"
	    "INSERT INTO StringIds VALUES (1, 'gemm'), "
	    "(2, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'), (3, 'ProfilerStep#7');");
}

static void finish(void)
{
	run("COMMIT");
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	db = NULL;
}

static uint64_t pid_of(int process)
{
	return (uint64_t)(100 + process) << 24;
}

static void add_kernel(int process, int device, const char *name, uint64_t start_us,
		       uint64_t took_us)
{
	run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT %" PRIu64 ", %" PRIu64
	    ", %d, 1, 7, 0, %" PRIu64 ", id, id FROM StringIds WHERE value LIKE '%s%%'",
	    start_us * 1000, (start_us + took_us) * 1000, device, pid_of(process), name);
}

/* A rank computes and reduces with the others, in steps of 200 ms; the slow one works longer. */
static void play(int process, int device, bool slow)
{
	for (int n = 0; n < STEPS; n++) {
		const uint64_t start = (uint64_t)n * 200000;
		const uint64_t own =
			(slow ? 150000 : 100000) + (uint64_t)(n * 7 + device * 13) % 11 * 20;

		add_kernel(process, device, "gemm", start, own);
		add_kernel(process, device, "nccl", start + own, 190000 - own);
	}
}

static void read_all(size_t files, struct nt_trace **ret_trace)
{
	if (nt_trace_read_nsys(paths, files, ret_trace, &error) != 0)
		fail_msg("%s", error.text);
}

static void assert_names(const struct nt_trace *trace, uint32_t rank)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	const struct nt_rules rules = nt_rules_default();

	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	assert_int_equal(judgement->judged[0].incident.culprits, 1);
	assert_int_equal(judgement->judged[0].incident.culprit[0].rank, rank);
}

static void one_export_a_rank_names_the_slow_one(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	for (int i = 0; i < RANKS; i++) {
		char name[48];

		(void)snprintf(name, sizeof(name), "node7-rank%d.100.sqlite", i);
		begin(i, name);
		play(i, 0, i == 2);
		finish();
	}
	read_all(RANKS, &trace);
	assert_int_equal(trace->frame[0].frame.ranks, RANKS);
	assert_true(trace->frame[0].frame.start_ns >= 1700000000000000000);
	assert_true(trace->frame[3].rank[1].own_tier == NT_FRAME_T3);
	assert_int_equal(trace->frame[3].rank[2].own_ns / 1000000, 150);
	assert_int_equal(trace->collectives, STEPS);
	assert_string_equal(trace->collective[0].name, "AllReduce");
	assert_int_equal(trace->collective[0].last_rank, 2);
	assert_null(trace->remark);
	assert_names(trace, 2);
}

/* With MPI, nsys records the ranks. */
static void processes_of_one_export_have_the_ranks_of_mpi(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	begin(0, "node.sqlite");
	run("CREATE TABLE MPI_RANKS (globalPid INTEGER, rank INTEGER)");
	for (int i = 0; i < RANKS; i++) {
		play(i, i, i == 1);
		run("INSERT INTO MPI_RANKS VALUES (%" PRIu64 ", %d)", pid_of(i), RANKS - i);
	}
	/* A helper without collectives is no rank. */
	add_kernel(9, 0, "gemm", 10, 10);
	finish();
	read_all(1, &trace);
	assert_int_equal(trace->frame[0].frame.ranks, RANKS);
	assert_int_equal(trace->frame[0].rank[0].rank, 1);
	assert_names(trace, RANKS - 1);
}

static void without_mpi_processes_are_numbered_by_file_and_device(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	for (int file = 0; file < 2; file++) {
		begin(file, file ? "node0.sqlite" : "node1.sqlite");
		play(3, 1, file == 0);
		play(4, 0, false);
		finish();
	}
	read_all(2, &trace);
	assert_non_null(strstr(trace->remark, "numbered"));
	assert_names(trace, 3);
}

static void marked_steps_are_those_of_the_thread_s_process(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	begin(0, "rank0.sqlite");
	play(1, 0, false);
	for (uint64_t n = 0; n < 8; n++)
		run("INSERT INTO NVTX_EVENTS VALUES (%" PRIu64 ", %" PRIu64 ", 59, %s, %" PRIu64
		    ", %s)",
		    n * 1000000000, n * 1000000000 + 999000000, n % 2 ? "NULL" : "'ProfilerStep#1'",
		    pid_of(1) + 5, n % 2 ? "3" : "NULL");
	run("INSERT INTO NVTX_EVENTS VALUES (0, 5, 59, 'ProfilerStep#1', %" PRIu64 ", NULL)",
	    pid_of(2));
	finish();
	read_all(1, &trace);
	assert_int_equal(trace->frames, 8);
	assert_int_equal(trace->frame[2].rank[0].own_ns / 1000000, 500);
}

/* Copies are work of the device, too. */
static void copies_are_own_work(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	begin(0, "rank0.sqlite");
	add_kernel(1, 0, "gemm", 0, 100);
	run("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (50000, 150000, 0, %" PRIu64 ", 8)",
	    pid_of(1));
	finish();
	read_all(1, &trace);
	assert_int_equal(trace->frame[0].rank[0].own_ns, 150000);
}

/* A call of the runtime, as nsys names it. */
static void add_call(int process, const char *name, uint64_t start_us, uint64_t took_us, int number)
{
	run("INSERT INTO StringIds SELECT max(id) + 1, '%s' FROM StringIds HAVING NOT "
	    "sum(value = '%s')",
	    name, name);
	run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT %" PRIu64 ", %" PRIu64 ", %" PRIu64
	    ", %d, id FROM StringIds WHERE value = '%s'",
	    start_us * 1000, (start_us + took_us) * 1000, pid_of(process) + 7, number, name);
}

/*
 * Steps of 100 ms, at whose end the host waits for its device. The late one then works for 20 ms, as
 * all others wait for.
 */
static void play_launched(int process, bool late, bool waits)
{
	run("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT "
	    "NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL)");
	for (int n = 0; n < STEPS; n++) {
		const uint64_t start = (uint64_t)n * 100000, begin = start + (late ? 20000 : 10);
		const uint64_t own = 50000 + (uint64_t)(n * 7 + process * 13) % 11 * 20;

		add_call(process, "cudaLaunchKernel_v7000", begin, 5, n * 2 + 1);
		add_call(process, "cudaLaunchKernel_v7000", begin + 10, 5, n * 2 + 2);
		add_call(process, waits ? "cudaStreamSynchronize_v3020" : "cudaEventRecord_v3020",
			 late && waits ? start : begin + 20,
			 late && waits ? 19990 : start + 99990 - begin - 20, 1000 + n);
		add_kernel(process, 0, "gemm", begin + 10, own);
		run("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = %d WHERE rowid = "
		    "last_insert_rowid()",
		    n * 2 + 1);
		add_kernel(process, 0, "nccl", begin + 10 + own, start + 99990 - begin - 10 - own);
		run("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = %d WHERE rowid = "
		    "last_insert_rowid()",
		    n * 2 + 2);
	}
	/* A call that did not return, and one of a process without kernels. */
	run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (5000, 0, %" PRIu64
	    ", 3, 1), (5000, 6000, 5, 1, 1)",
	    pid_of(process));
}

static void play_files(int late, bool waits)
{
	for (int i = 0; i < RANKS; i++) {
		char name[48];

		(void)snprintf(name, sizeof(name), "rank%d.sqlite", i);
		begin(i, name);
		play_launched(i, i == late, waits);
		finish();
	}
}

static void calls_of_the_runtime_show_a_late_host(void **state)
{
	nt_auto(nt_judgement) struct nt_judgement *judgement = NULL;
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	const struct nt_rules rules = nt_rules_default();

	(void)state;
	play_files(2, false);
	read_all(RANKS, &trace);
	assert_int_equal(trace->hostless, 0);
	assert_in_range(trace->frame[20].rank[2].host_ns, 19900000, 20100000);
	assert_true(trace->frame[20].rank[1].host_ns < 1000000);
	assert_int_equal(nt_judgement_new(&judgement), 0);
	assert_int_equal(nt_replay_trace(trace, &rules, judgement), 0);
	assert_int_equal(judgement->incidents, 1);
	assert_string_equal(judgement->judged[0].incident.class, "host");
	assert_int_equal(judgement->judged[0].incident.culprit[0].rank, 2);
}

static void a_wait_of_the_runtime_is_no_host_work(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	play_files(2, true);
	read_all(RANKS, &trace);
	assert_true(trace->frame[20].rank[2].host_ns < 1000000);
}

static void without_calls_of_the_runtime_host_work_is_unknown(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	play_files(2, false);
	assert_int_equal(sqlite3_open(path[1], &db), SQLITE_OK);
	run("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME RENAME COLUMN nameId TO name");
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	read_all(RANKS, &trace);
	assert_int_equal(trace->hostless, 1);
	assert_true(trace->frame[20].rank[1].no_host);
	assert_false(trace->frame[20].rank[2].no_host);
}

static void assert_refused(const char *text)
{
	struct nt_trace *trace = NULL;

	error = (struct nt_trace_error){0};
	assert_int_equal(nt_trace_read_nsys(paths, 1, &trace, &error), -EBADMSG);
	assert_null(trace);
	if (!strstr(error.text, text))
		fail_msg("%s", error.text);
}

static void what_has_no_kernels_is_refused(void **state)
{
	(void)state;
	begin(0, "rank0.sqlite");
	finish();
	assert_refused("no GPU kernels");
	begin(0, "rank1.sqlite");
	run("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL");
	finish();
	assert_refused("--trace=cuda");
	begin(0, "rank2.sqlite");
	add_kernel(1, 0, "gemm", 0, 100);
	run("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = -1");
	finish();
	assert_refused("row 1: expected start and end");
}

static void processes_are_capped(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;

	(void)state;
	begin(0, "rank0.sqlite");
	for (int i = 0; i < NT_NSYS_MAX_PROCESSES; i++)
		add_kernel(i, i, "gemm", 0, 100);
	finish();
	read_all(1, &trace);
	assert_int_equal(trace->frame[0].frame.ranks, NT_NSYS_MAX_PROCESSES);
	assert_int_equal(sqlite3_open(path[0], &db), SQLITE_OK);
	add_kernel(NT_NSYS_MAX_PROCESSES, 0, "gemm", 0, 100);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_refused("more than 64 processes");
}

/* A view may compute for ever, and a schema may call it a table. */
static void views_are_not_read(void **state)
{
	static const char *const view =
		"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE c(start) AS (SELECT 1 UNION ALL "
		"SELECT start + 1 FROM c) SELECT start, start AS end, 1 AS shortName FROM c";

	(void)state;
	begin(0, "rank0.sqlite");
	run("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL");
	run("%s", view);
	finish();
	assert_refused("--trace=cuda");
	begin(0, "rank1.sqlite");
	run("PRAGMA writable_schema = ON");
	run("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL");
	run("%s", view);
	run("UPDATE sqlite_master SET type = 'table' WHERE type = 'view'");
	finish();
	assert_refused("");
}

static void what_is_no_database_or_half_of_one_is_refused(void **state)
{
	FILE *file;

	(void)state;
	begin(0, "rank0.sqlite");
	play(1, 0, false);
	finish();
	assert_int_equal(truncate(path[0], 9000), 0);
	assert_refused("");
	file = fopen(path[0], "w");
	assert_non_null(file);
	assert_true(fputs("no database", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_refused("not a database");
}

/* Out of an archive it has no name on this machine. */
static void an_unpacked_export_is_read(void **state)
{
	nt_auto(nt_trace) struct nt_trace *trace = NULL;
	char bytes[4096];
	ssize_t n;
	int from, to;

	(void)state;
	begin(0, "a?b#c%d.sqlite");
	add_kernel(1, 0, "gemm", 0, 100);
	finish();
	read_all(1, &trace);
	nt_trace_free(trace);
	trace = NULL;
	from = open(path[0], O_RDONLY);
	to = memfd_create("x", 0);
	assert_true(from >= 0 && to >= 0);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)n), n);
	(void)snprintf(path[0], sizeof(path[0]), "/proc/self/fd/%d//rank5.sqlite", to);
	read_all(1, &trace);
	assert_int_equal(trace->frame[0].rank[0].rank, 5);
	(void)close(from);
	(void)close(to);
}

#define NSYS_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NSYS_TEST(one_export_a_rank_names_the_slow_one),
		NSYS_TEST(processes_of_one_export_have_the_ranks_of_mpi),
		NSYS_TEST(without_mpi_processes_are_numbered_by_file_and_device),
		NSYS_TEST(marked_steps_are_those_of_the_thread_s_process),
		NSYS_TEST(copies_are_own_work),
		NSYS_TEST(calls_of_the_runtime_show_a_late_host),
		NSYS_TEST(a_wait_of_the_runtime_is_no_host_work),
		NSYS_TEST(without_calls_of_the_runtime_host_work_is_unknown),
		NSYS_TEST(what_has_no_kernels_is_refused),
		NSYS_TEST(processes_are_capped),
		NSYS_TEST(views_are_not_read),
		NSYS_TEST(what_is_no_database_or_half_of_one_is_refused),
		NSYS_TEST(an_unpacked_export_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
