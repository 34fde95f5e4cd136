/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Collections of stand-ins for an interpreter, by their function or by marks. Each is counted once, with
 * its time.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "agent/host/root_path.h"
#include "agent/probes/rank_probe.h"
#include "tests/bpf/collections.h"

static const char functions_source[] =
	"void (*stub_hook)(void);\n"
	"void Py_Initialize(void) {}\n"
	"__attribute__((noinline)) int gc_collect_main(int n) {\n"
	"  volatile int kept = n; if (stub_hook) stub_hook(); return kept; }\n";

/* As sys/sdt.h makes them. */
static const char marks_source[] =
	"#define MARK(name) __asm__ volatile(\"990: nop\\n\" \\\n"
	"  \".pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n.balign 4\\n\" \\\n"
	"  \".4byte 992f-991f,994f-993f,3\\n991: .asciz \\\"stapsdt\\\"\\n992: .balign 4\\n\" \\\n"
	"  \"993: .8byte 990b,_.stapsdt.base,\" #name \"_semaphore\\n\" \\\n"
	"  \".asciz \\\"python\\\"\\n.asciz \\\"\" #name \"\\\"\\n.asciz \\\"\\\"\\n994: .balign 4\\n\" \\\n"
	"  \".popsection\\n\" \\\n"
	"  \".ifndef _.stapsdt.base\\n\" \\\n"
	"  \".pushsection .stapsdt.base,\\\"aG\\\",\\\"progbits\\\",.stapsdt.base,comdat\\n\" \\\n"
	"  \".weak _.stapsdt.base\\n.hidden _.stapsdt.base\\n_.stapsdt.base: .space 1\\n\" \\\n"
	"  \".size _.stapsdt.base,1\\n.popsection\\n.endif\\n\")\n"
	"#define HIDDEN __attribute__((section(\".probes\"), visibility(\"hidden\")))\n"
	"unsigned short gc__start_semaphore HIDDEN = 0, gc__done_semaphore HIDDEN = 0;\n"
	"void (*stub_hook)(void);\n"
	"void Py_Initialize(void) {}\n"
	"int wanted(void) { return *(volatile unsigned short *)&gc__start_semaphore |\n"
	"  *(volatile unsigned short *)&gc__done_semaphore << 8; }\n"
	"void started(void) { MARK(gc__start); }\n"
	"void done(void) { MARK(gc__done); }\n"
	"void collected(void) { MARK(gc__start); if (stub_hook) stub_hook(); MARK(gc__done); }\n";

/* One copy more than are probed: a part of them would miss collections. */
static const char clones_source[] =
	"void Py_Initialize(void) {}\n"
	"#define CLONE(n) void clone##n(void) __asm__(\"gc_collect_main.constprop.\" #n); \\\n"
	"  void clone##n(void) {}\n"
	"CLONE(0) CLONE(1) CLONE(2) CLONE(3) CLONE(4) CLONE(5) CLONE(6) CLONE(7) CLONE(8)\n";

static struct stub functions, marks, clones;

static bool make_stub(struct stub *stub, const char *name, const char *source)
{
	char path[2 * PATH_MAX];

	/* Where they are kept, another source is another file. */
	(void)snprintf(path, sizeof(path), "%s/%016llx-%s", stub_dir,
		       (unsigned long long)nt_hash_text(NT_HASH_SEED, source), name);
	if (access(path, R_OK) < 0 && !stub_compile(path, "c", source, NULL))
		return false;
	return stub_load(stub, path);
}

static void call(const struct stub *stub, const char *name)
{
	void (*function)(int) = (void (*)(int))dlsym(stub->handle, name);

	assert_non_null(function);
	function(0);
}

static int wanted(void)
{
	return ((int (*)(void))dlsym(marks.handle, "wanted"))();
}

/* This process runs it. */
static struct nt_rank_probe *watch_stub(const struct harness *h, const struct stub *stub)
{
	nt_autoclose int fd = open(stub->path, O_RDONLY | O_CLOEXEC);
	struct nt_rank_probe *probe = NULL;

	assert_true(fd >= 0);
	assert_int_equal(attach_rank_probe(h->attach, fd, getpid(), &probe), 0);
	return probe;
}

static void pause_inside(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};

	assert_int_equal(nanosleep(&pause, NULL), 0);
}

static void collect_inside(void)
{
	*functions.hook = pause_inside;
	call(&functions, "gc_collect_main");
	call(&functions, "gc_collect_main");
}

static void mark_inside(void)
{
	*marks.hook = NULL;
	call(&marks, "collected");
	pause_inside();
	call(&marks, "collected");
}

static void check_time(const struct harness *h, uint64_t calls, uint64_t least_ms, uint64_t took_ns)
{
	struct nt_process_counters counters = counters_of(h, getpid());

	assert_int_equal(counters.calls[NT_COUNTER_GC], calls);
	assert_in_range(counters.bytes[NT_COUNTER_GC], least_ms * NT_MILLISECOND, took_ns);
}

static void without_marks_the_function_is_timed(void **state)
{
	struct harness *h = of_mode(state);
	struct nt_rank_probe *probe = watch_stub(h, &functions);
	uint64_t begin_ns = nt_clock_boot_ns();

	*functions.hook = pause_inside;
	for (int i = 0; i < COLLECTIONS; i++)
		call(&functions, "gc_collect_main");
	check_time(h, COLLECTIONS, COLLECTIONS * PAUSE_MS, nt_clock_boot_ns() - begin_ns);
	nt_rank_probe_free(probe);
	call(&functions, "gc_collect_main");
	assert_int_equal(counters_of(h, getpid()).calls[NT_COUNTER_GC], COLLECTIONS);
	*functions.hook = NULL;
}

static void a_collection_within_another_is_part_of_it(void **state)
{
	struct harness *h = of_mode(state);
	struct nt_rank_probe *probe = watch_stub(h, &functions);
	uint64_t begin_ns = nt_clock_boot_ns();

	*functions.hook = collect_inside;
	call(&functions, "gc_collect_main");
	*functions.hook = NULL;
	check_time(h, 1, 2 * PAUSE_MS, nt_clock_boot_ns() - begin_ns);
	assert_int_equal(harness_stats(h).unmeasured, 2);
	nt_rank_probe_free(probe);
}

static void marks_make_the_program_come_by_while_they_are_watched(void **state)
{
	struct harness *h = of_mode(state);
	struct nt_rank_probe *probe;

	assert_int_equal(wanted(), 0);
	probe = watch_stub(h, &marks);
	assert_int_equal(wanted(), 0x202); /* two sites each */
	nt_rank_probe_free(probe);
	assert_int_equal(wanted(), 0);
}

static void marks_within_others_are_part_of_them(void **state)
{
	struct harness *h = of_mode(state);
	struct nt_rank_probe *probe = watch_stub(h, &marks);
	uint64_t begin_ns = nt_clock_boot_ns();

	*marks.hook = mark_inside;
	call(&marks, "collected");
	check_time(h, 1, PAUSE_MS, nt_clock_boot_ns() - begin_ns);
	assert_int_equal(harness_stats(h).unmeasured, 2);
	nt_rank_probe_free(probe);
}

/* The agent came in the middle of it. */
static void an_end_without_a_begin_is_counted_and_not_measured(void **state)
{
	struct harness *h = of_mode(state);
	struct nt_process_counters counters;
	struct nt_rank_probe *probe = watch_stub(h, &marks);

	call(&marks, "done");
	assert_false(nt_attach_counters(h->attach, (uint32_t)getpid(), &counters));
	assert_int_equal(harness_stats(h).unmeasured, 1);
	call(&marks, "collected");
	call(&marks, "done");
	assert_int_equal(counters_of(h, getpid()).calls[NT_COUNTER_GC], 1);
	assert_int_equal(harness_stats(h).unmeasured, 2);
	nt_rank_probe_free(probe);
}

static void a_begin_without_an_end_is_forgotten_at_the_next(void **state)
{
	struct harness *h = of_mode(state);
	struct nt_rank_probe *probe = watch_stub(h, &marks);
	uint64_t begin_ns;

	call(&marks, "started");
	pause_inside();
	begin_ns = nt_clock_boot_ns();
	call(&marks, "started");
	call(&marks, "done");
	check_time(h, 1, 0, nt_clock_boot_ns() - begin_ns);
	nt_rank_probe_free(probe);
}

static void await_rank_probe(const struct harness *h, uint32_t pid)
{
	struct pollfd ready = {.fd = nt_attach_links_fd(h->attach), .events = POLLIN};
	nt_autoclose int fd = open(marks.path, O_RDONLY | O_CLOEXEC);
	struct nt_rank_probe_sites sites;
	const struct nt_attach_rank_probe_order order = {
		.fd = fd,
		.library = NT_LIBRARY_PYTHON,
		.pid = pid,
		.start_ns = START,
		.sites = &sites,
	};

	assert_int_equal(nt_rank_probe_find(fd, NT_LIBRARY_PYTHON, &sites), 0);
	assert_int_equal(nt_attach_order_rank_probe(h->attach, &order), 0);
	assert_int_equal(poll(&ready, 1, 600000), 1);
	nt_attach_settle(h->attach);
}

static void a_thread_makes_what_is_timed_and_frees_it(void **state)
{
	struct harness *h = of_mode(state);
	const struct timespec pause = {.tv_nsec = 1000000};

	await_rank_probe(h, (uint32_t)getpid());
	assert_int_equal(rank_probe_result, 0);
	assert_non_null(rank_probe);
	assert_true(wanted() > 0);
	nt_attach_drop_rank_probe(h->attach, rank_probe);
	for (int i = 0; i < 60000 && wanted(); i++)
		(void)nanosleep(&pause, NULL);
	assert_int_equal(wanted(), 0);
}

static void with_too_many_copies_none_is_probed(void **state)
{
	struct harness *h = of_mode(state);
	nt_autoclose int fd = open(clones.path, O_RDONLY | O_CLOEXEC);
	struct nt_rank_probe *probe = NULL;

	assert_int_equal(attach_rank_probe(h->attach, fd, getpid(), &probe), -E2BIG);
	assert_null(probe);
}

static void *begin_one(void *data)
{
	call(&marks, "started");
	return data;
}

/* Nothing that other threads do pushes it out. */
static void a_collection_is_measured_however_many_threads_begin_one(void **state)
{
	struct harness *h = of_mode(state);
	struct nt_rank_probe *probe = watch_stub(h, &marks);
	uint64_t before = counters_of(h, getpid()).calls[NT_COUNTER_GC];

	call(&marks, "started");
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, begin_one, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	call(&marks, "done");
	assert_int_equal(counters_of(h, getpid()).calls[NT_COUNTER_GC], before + 1);
	assert_int_equal(harness_stats(h).unmeasured, 0);
	nt_rank_probe_free(probe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_marks_the_function_is_timed),
		TEST(a_collection_within_another_is_part_of_it),
		TEST(marks_make_the_program_come_by_while_they_are_watched),
		TEST(marks_within_others_are_part_of_them),
		TEST(an_end_without_a_begin_is_counted_and_not_measured),
		TEST(a_begin_without_an_end_is_forgotten_at_the_next),
		TEST(a_thread_makes_what_is_timed_and_frees_it),
		TEST(with_too_many_copies_none_is_probed),
		TEST(a_collection_is_measured_however_many_threads_begin_one),
	};
	int r;

	if (!stub_begin() || !make_stub(&functions, "functions.so", functions_source) ||
	    !make_stub(&marks, "marks.so", marks_source) ||
	    !make_stub(&clones, "clones.so", clones_source))
		return 1;
	if (stub_only())
		return 0;
	if (!harness_can_load()) {
		stub_clean();
		return EXIT_SKIP;
	}
	r = cmocka_run_group_tests(tests, NULL, NULL);
	stub_clean();
	return r;
}
