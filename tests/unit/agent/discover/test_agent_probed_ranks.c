/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/discover/gc_interpreter.h"

enum {
	START = 1000,
};

struct hooks {
	struct nt_gc_interpreters *interpreters;
	uint64_t attached, detached;
	uint32_t pid; /* looked at last */
	int result;
};

static int attach(void *data, uint32_t pid, uint64_t start_boot_ns, struct nt_gc_probe **ret_span)
{
	struct hooks *h = data;

	assert_int_equal(start_boot_ns, START);
	h->pid = pid;
	h->attached++;
	if (h->result == 0)
		*ret_span = malloc(1);
	return h->result;
}

static void detach(void *data, struct nt_gc_probe *span)
{
	struct hooks *h = data;

	h->detached++;
	free(span);
}

static void start(struct hooks *h)
{
	struct nt_gc_interpreters_hooks hooks = {.attach = attach, .detach = detach, .data = h};

	*h = (struct hooks){0};
	assert_int_equal(nt_gc_interpreters_new(&hooks, &h->interpreters), 0);
}

static struct nt_gc_interpreters_stats stats_of(const struct hooks *h)
{
	struct nt_gc_interpreters_stats stats;

	nt_gc_interpreters_stats(h->interpreters, &stats);
	return stats;
}

static void a_rank_is_looked_at_once(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	nt_gc_interpreters_attach(h.interpreters);
	assert_int_equal(h.attached, 0);
	nt_gc_interpreters_add(h.interpreters, 7, START);
	nt_gc_interpreters_add(h.interpreters, 7, START);
	for (int i = 0; i < 3; i++)
		nt_gc_interpreters_attach(h.interpreters);
	nt_gc_interpreters_add(h.interpreters, 7, START);
	nt_gc_interpreters_attach(h.interpreters);
	assert_int_equal(h.attached, 1);
	assert_int_equal(h.pid, 7);
	assert_int_equal(stats_of(&h).attached, 1);
	nt_gc_interpreters_free(h.interpreters);
	assert_int_equal(h.detached, 1);
}

/* Each takes a while, in which nobody reads the ring. */
static void one_is_attached_and_one_let_go_at_a_time(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	for (uint32_t pid = 1; pid <= 3; pid++)
		nt_gc_interpreters_add(h.interpreters, pid, START);
	for (uint64_t i = 1; i <= 3; i++) {
		nt_gc_interpreters_attach(h.interpreters);
		assert_int_equal(h.attached, i);
	}
	for (uint32_t pid = 1; pid <= 3; pid++)
		nt_gc_interpreters_end(h.interpreters, pid, START);
	assert_int_equal(h.detached, 0);
	assert_int_equal(stats_of(&h).attached, 3);
	nt_gc_interpreters_detach(h.interpreters);
	assert_int_equal(h.detached, 1);
	assert_int_equal(stats_of(&h).attached, 2);
	nt_gc_interpreters_free(h.interpreters); /* what is left over */
	assert_int_equal(h.detached, 3);
}

static void who_ends_before_it_was_looked_at_never_is(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	nt_gc_interpreters_add(h.interpreters, 1, START);
	nt_gc_interpreters_end(h.interpreters, 1, START);
	nt_gc_interpreters_end(h.interpreters, 1, START);
	nt_gc_interpreters_attach(h.interpreters);
	nt_gc_interpreters_detach(h.interpreters);
	assert_int_equal(h.attached, 0);
	nt_gc_interpreters_add(h.interpreters, 2, START);
	nt_gc_interpreters_attach(h.interpreters);
	assert_int_equal(h.pid, 2);
	nt_gc_interpreters_free(h.interpreters);
}

static void another_process_of_that_number_is_another(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	nt_gc_interpreters_add(h.interpreters, 1, START - 1);
	nt_gc_interpreters_end(h.interpreters, 1, START); /* not that one's end */
	nt_gc_interpreters_add(h.interpreters, 1, START);
	nt_gc_interpreters_attach(h.interpreters);
	nt_gc_interpreters_attach(h.interpreters);
	assert_int_equal(h.attached, 1);
	nt_gc_interpreters_free(h.interpreters);
}

static void no_python_is_no_failure(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	h.result = -ENOENT;
	nt_gc_interpreters_add(h.interpreters, 1, START);
	nt_gc_interpreters_attach(h.interpreters);
	h.result = -ESRCH;
	nt_gc_interpreters_add(h.interpreters, 2, START);
	nt_gc_interpreters_attach(h.interpreters);
	assert_int_equal(stats_of(&h).failed, 0);
	h.result = -EINVAL;
	nt_gc_interpreters_add(h.interpreters, 3, START);
	nt_gc_interpreters_attach(h.interpreters);
	assert_int_equal(stats_of(&h).failed, 1);
	assert_int_equal(stats_of(&h).attached, 0);
	nt_gc_interpreters_free(h.interpreters);
	assert_int_equal(h.detached, 0);
}

static void processes_over_the_cap_are_counted(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	for (uint32_t pid = 1; pid <= NT_GC_INTERPRETERS_MAX; pid++)
		nt_gc_interpreters_add(h.interpreters, pid, START);
	assert_int_equal(stats_of(&h).over_cap, 0);
	nt_gc_interpreters_add(h.interpreters, NT_GC_INTERPRETERS_MAX + 1, START);
	assert_int_equal(stats_of(&h).over_cap, 1);
	nt_gc_interpreters_end(h.interpreters, 1, START);
	nt_gc_interpreters_add(h.interpreters, NT_GC_INTERPRETERS_MAX + 1, START);
	assert_int_equal(stats_of(&h).over_cap, 1);
	nt_gc_interpreters_free(h.interpreters);
}

/* Processes end faster than their links are let go. */
static void what_is_still_to_be_let_go_has_a_place(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	for (uint32_t pid = 1; pid <= NT_GC_INTERPRETERS_MAX; pid++) {
		nt_gc_interpreters_add(h.interpreters, pid, START);
		nt_gc_interpreters_attach(h.interpreters);
		nt_gc_interpreters_end(h.interpreters, pid, START);
	}
	nt_gc_interpreters_add(h.interpreters, 9999, START);
	assert_int_equal(stats_of(&h).over_cap, 1);
	nt_gc_interpreters_detach(h.interpreters);
	nt_gc_interpreters_add(h.interpreters, 9999, START);
	assert_int_equal(stats_of(&h).over_cap, 1);
	nt_gc_interpreters_free(h.interpreters);
}

/* ---- finding ------------------------------------------------------------------------------ */

static void interpreters_are_known_by_their_names(void **state)
{
	static const char *const yes[] = {"libpython3.11.so.1.0", "libpython3.so",
					  "libpython3.6m.so.1.0", "libpython3.13t.so",
					  "libpython2.7.so.1.0"};
	static const char *const no[] = {
		"libpython",       "libpython.so",    "libpython_x.so",    "libtorch_python.so",
		"libpython3.11.a", "libpython3.so-1", "libpython3.11.sox", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!nt_gc_interpreter_is_library(yes[i]))
			fail_msg("'%s' is one", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (nt_gc_interpreter_is_library(no[i]))
			fail_msg("'%s' is none", no[i]);
}

struct found {
	int files, result;
	struct stat st;
};

static int take(void *data, int fd, const struct stat *st)
{
	struct found *found = data;

	found->files++;
	assert_int_equal(fstat(fd, &found->st), 0);
	assert_int_equal(found->st.st_ino, st->st_ino);
	assert_true(fcntl(fd, F_GETFL) & O_PATH);
	return found->result;
}

static void a_process_without_a_library_is_asked_for_its_program(void **state)
{
	struct found found = {.result = 5};
	struct stat st;

	(void)state;
	assert_int_equal(nt_gc_interpreter_find((uint32_t)getpid(), take, &found), 5);
	assert_int_equal(found.files, 1);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	assert_int_equal(found.st.st_ino, st.st_ino);
	found.result = -ENOENT;
	assert_int_equal(nt_gc_interpreter_find((uint32_t)getpid(), take, &found), -ENOENT);
}

static void a_process_that_is_gone_has_none(void **state)
{
	struct found found = {0};

	(void)state;
	assert_int_equal(nt_gc_interpreter_find(INT32_MAX, take, &found), -ESRCH);
	assert_int_equal(found.files, 0);
}

static void what_is_looked_for_is_attached_when_it_is_found(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	h.result = -EINPROGRESS;
	nt_gc_interpreters_add(h.interpreters, 7, START);
	nt_gc_interpreters_add(h.interpreters, 8, START);
	nt_gc_interpreters_attach(h.interpreters);
	nt_gc_interpreters_attach(h.interpreters);
	assert_int_equal(h.attached, 2);
	assert_int_equal(stats_of(&h).attached, 0);
	nt_gc_interpreters_found(h.interpreters, 7, START, 0, malloc(1));
	assert_int_equal(stats_of(&h).attached, 1);
	/* It has ended meanwhile. */
	nt_gc_interpreters_end(h.interpreters, 8, START);
	nt_gc_interpreters_found(h.interpreters, 8, START, 0, malloc(1));
	assert_int_equal(h.detached, 1);
	assert_int_equal(stats_of(&h).attached, 1);
	nt_gc_interpreters_found(h.interpreters, 9, START, -ETIMEDOUT, NULL);
	assert_int_equal(stats_of(&h).failed, 1);
	nt_gc_interpreters_free(h.interpreters);
	assert_int_equal(h.detached, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_looked_for_is_attached_when_it_is_found),
		cmocka_unit_test(a_rank_is_looked_at_once),
		cmocka_unit_test(one_is_attached_and_one_let_go_at_a_time),
		cmocka_unit_test(who_ends_before_it_was_looked_at_never_is),
		cmocka_unit_test(another_process_of_that_number_is_another),
		cmocka_unit_test(no_python_is_no_failure),
		cmocka_unit_test(processes_over_the_cap_are_counted),
		cmocka_unit_test(what_is_still_to_be_let_go_has_a_place),
		cmocka_unit_test(interpreters_are_known_by_their_names),
		cmocka_unit_test(a_process_without_a_library_is_asked_for_its_program),
		cmocka_unit_test(a_process_that_is_gone_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
