/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/discover/probed_ranks.h"

enum {
	START = 1000,
};

struct hooks {
	struct nt_probed_ranks *ranks;
	uint64_t attached, detached;
	uint32_t pid; /* looked at last */
	int result;
};

static int attach(void *data, uint32_t pid, uint64_t start_boot_ns, struct nt_rank_probe **ret_span)
{
	struct hooks *h = data;

	assert_int_equal(start_boot_ns, START);
	h->pid = pid;
	h->attached++;
	if (h->result == 0)
		*ret_span = malloc(1);
	return h->result;
}

static void detach(void *data, struct nt_rank_probe *span)
{
	struct hooks *h = data;

	h->detached++;
	free(span);
}

static void start(struct hooks *h)
{
	struct nt_probed_ranks_hooks hooks = {.attach = attach, .detach = detach, .data = h};

	*h = (struct hooks){0};
	assert_int_equal(nt_probed_ranks_new(&hooks, &h->ranks), 0);
}

static struct nt_probed_ranks_stats stats_of(const struct hooks *h)
{
	struct nt_probed_ranks_stats stats;

	nt_probed_ranks_stats(h->ranks, &stats);
	return stats;
}

static void a_rank_is_looked_at_once(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	nt_probed_ranks_attach(h.ranks);
	assert_int_equal(h.attached, 0);
	nt_probed_ranks_add(h.ranks, 7, START);
	nt_probed_ranks_add(h.ranks, 7, START);
	for (int i = 0; i < 3; i++)
		nt_probed_ranks_attach(h.ranks);
	nt_probed_ranks_add(h.ranks, 7, START);
	nt_probed_ranks_attach(h.ranks);
	assert_int_equal(h.attached, 1);
	assert_int_equal(h.pid, 7);
	assert_int_equal(stats_of(&h).attached, 1);
	nt_probed_ranks_free(h.ranks);
	assert_int_equal(h.detached, 1);
}

/* Each takes a while, in which nobody reads the ring. */
static void one_is_attached_and_one_let_go_at_a_time(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	for (uint32_t pid = 1; pid <= 3; pid++)
		nt_probed_ranks_add(h.ranks, pid, START);
	for (uint64_t i = 1; i <= 3; i++) {
		nt_probed_ranks_attach(h.ranks);
		assert_int_equal(h.attached, i);
	}
	for (uint32_t pid = 1; pid <= 3; pid++)
		nt_probed_ranks_end(h.ranks, pid, START);
	assert_int_equal(h.detached, 0);
	assert_int_equal(stats_of(&h).attached, 3);
	nt_probed_ranks_detach(h.ranks);
	assert_int_equal(h.detached, 1);
	assert_int_equal(stats_of(&h).attached, 2);
	nt_probed_ranks_free(h.ranks); /* what is left over */
	assert_int_equal(h.detached, 3);
}

static void who_ends_before_it_was_looked_at_never_is(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	nt_probed_ranks_add(h.ranks, 1, START);
	nt_probed_ranks_end(h.ranks, 1, START);
	nt_probed_ranks_end(h.ranks, 1, START);
	nt_probed_ranks_attach(h.ranks);
	nt_probed_ranks_detach(h.ranks);
	assert_int_equal(h.attached, 0);
	nt_probed_ranks_add(h.ranks, 2, START);
	nt_probed_ranks_attach(h.ranks);
	assert_int_equal(h.pid, 2);
	nt_probed_ranks_free(h.ranks);
}

static void another_process_of_that_number_is_another(void **state)
{
	struct hooks h;
	uint64_t start_ns;

	(void)state;
	start(&h);
	nt_probed_ranks_add(h.ranks, 1, START - 1);
	nt_probed_ranks_end(h.ranks, 1, START); /* not that one's end */
	assert_false(nt_probed_ranks_start_ns(h.ranks, 2, &start_ns));
	assert_true(nt_probed_ranks_start_ns(h.ranks, 1, &start_ns));
	assert_int_equal(start_ns, START - 1);
	nt_probed_ranks_add(h.ranks, 1, START);
	assert_true(nt_probed_ranks_start_ns(h.ranks, 1, &start_ns));
	assert_int_equal(start_ns, START);
	nt_probed_ranks_attach(h.ranks);
	nt_probed_ranks_attach(h.ranks);
	assert_int_equal(h.attached, 1);
	nt_probed_ranks_free(h.ranks);
}

static void no_python_is_no_failure(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	h.result = -ENOENT;
	nt_probed_ranks_add(h.ranks, 1, START);
	nt_probed_ranks_attach(h.ranks);
	h.result = -ESRCH;
	nt_probed_ranks_add(h.ranks, 2, START);
	nt_probed_ranks_attach(h.ranks);
	assert_int_equal(stats_of(&h).failed, 0);
	h.result = -EINVAL;
	nt_probed_ranks_add(h.ranks, 3, START);
	nt_probed_ranks_attach(h.ranks);
	assert_int_equal(stats_of(&h).failed, 1);
	assert_int_equal(stats_of(&h).attached, 0);
	nt_probed_ranks_free(h.ranks);
	assert_int_equal(h.detached, 0);
}

static void processes_over_the_cap_are_counted(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	for (uint32_t pid = 1; pid <= NT_PROBED_RANKS_MAX; pid++)
		nt_probed_ranks_add(h.ranks, pid, START);
	assert_int_equal(stats_of(&h).over_cap, 0);
	nt_probed_ranks_add(h.ranks, NT_PROBED_RANKS_MAX + 1, START);
	assert_int_equal(stats_of(&h).over_cap, 1);
	nt_probed_ranks_end(h.ranks, 1, START);
	nt_probed_ranks_add(h.ranks, NT_PROBED_RANKS_MAX + 1, START);
	assert_int_equal(stats_of(&h).over_cap, 1);
	nt_probed_ranks_free(h.ranks);
}

/* Processes end faster than their links are let go. */
static void what_is_still_to_be_let_go_has_a_place(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	for (uint32_t pid = 1; pid <= NT_PROBED_RANKS_MAX; pid++) {
		nt_probed_ranks_add(h.ranks, pid, START);
		nt_probed_ranks_attach(h.ranks);
		nt_probed_ranks_end(h.ranks, pid, START);
	}
	nt_probed_ranks_add(h.ranks, 9999, START);
	assert_int_equal(stats_of(&h).over_cap, 1);
	nt_probed_ranks_detach(h.ranks);
	nt_probed_ranks_add(h.ranks, 9999, START);
	assert_int_equal(stats_of(&h).over_cap, 1);
	nt_probed_ranks_free(h.ranks);
}

static void what_is_looked_for_is_attached_when_it_is_found(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	h.result = -EINPROGRESS;
	nt_probed_ranks_add(h.ranks, 7, START);
	nt_probed_ranks_add(h.ranks, 8, START);
	nt_probed_ranks_attach(h.ranks);
	nt_probed_ranks_attach(h.ranks);
	assert_int_equal(h.attached, 2);
	assert_int_equal(stats_of(&h).attached, 0);
	nt_probed_ranks_found(h.ranks, 7, START, 0, malloc(1));
	assert_int_equal(stats_of(&h).attached, 1);
	/* It has ended meanwhile. */
	nt_probed_ranks_end(h.ranks, 8, START);
	nt_probed_ranks_found(h.ranks, 8, START, 0, malloc(1));
	assert_int_equal(h.detached, 1);
	assert_int_equal(stats_of(&h).attached, 1);
	nt_probed_ranks_found(h.ranks, 9, START, -ETIMEDOUT, NULL);
	assert_int_equal(stats_of(&h).failed, 1);
	nt_probed_ranks_free(h.ranks);
	assert_int_equal(h.detached, 2);
}

static void a_closed_table_attaches_nothing(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	nt_probed_ranks_add(h.ranks, 7, START);
	nt_probed_ranks_add(h.ranks, 8, START);
	nt_probed_ranks_attach(h.ranks);
	h.result = -ENOENT;
	nt_probed_ranks_attach(h.ranks);
	assert_int_equal(stats_of(&h).attached, 1);
	nt_probed_ranks_close(h.ranks);
	assert_int_equal(h.detached, 1);
	assert_int_equal(stats_of(&h).attached, 0);
	nt_probed_ranks_add(h.ranks, 9, START);
	for (int i = 0; i < 4; i++)
		nt_probed_ranks_attach(h.ranks);
	assert_int_equal(h.attached, 2);
	/* A result that was under way is let go. */
	nt_probed_ranks_found(h.ranks, 9, START, 0, malloc(1));
	assert_int_equal(h.detached, 2);
	/* The one without a file may have one now. */
	h.result = 0;
	nt_probed_ranks_open(h.ranks);
	nt_probed_ranks_open(h.ranks);
	for (int i = 0; i < 5; i++)
		nt_probed_ranks_attach(h.ranks);
	assert_int_equal(h.attached, 5);
	assert_int_equal(stats_of(&h).attached, 3);
	nt_probed_ranks_end(h.ranks, 7, START);
	nt_probed_ranks_close(h.ranks);
	nt_probed_ranks_free(h.ranks);
	assert_int_equal(h.detached, 5);
}

static void a_rank_that_is_refused_is_let_go_for_good(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	nt_probed_ranks_add(h.ranks, 7, START);
	nt_probed_ranks_attach(h.ranks);
	nt_probed_ranks_add(h.ranks, 8, START);
	nt_probed_ranks_refuse(h.ranks, 9);
	for (int i = 0; i < 2; i++) {
		nt_probed_ranks_refuse(h.ranks, 7);
		nt_probed_ranks_refuse(h.ranks, 8);
	}
	assert_int_equal(h.detached, 1);
	assert_int_equal(stats_of(&h).failed, 2);
	assert_int_equal(stats_of(&h).attached, 0);
	nt_probed_ranks_found(h.ranks, 7, START, 0, malloc(1));
	assert_int_equal(h.detached, 2);
	nt_probed_ranks_close(h.ranks);
	nt_probed_ranks_open(h.ranks);
	nt_probed_ranks_attach(h.ranks);
	assert_int_equal(h.attached, 1);
	nt_probed_ranks_free(h.ranks);
}

static void a_file_that_cannot_be_probed_is_searched_once(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	h.result = -E2BIG;
	nt_probed_ranks_add(h.ranks, 7, START);
	h.result = -EINPROGRESS;
	nt_probed_ranks_add(h.ranks, 8, START);
	h.result = -E2BIG;
	nt_probed_ranks_attach(h.ranks);
	h.result = -EINPROGRESS;
	nt_probed_ranks_attach(h.ranks);
	nt_probed_ranks_found(h.ranks, 8, START, -EBADMSG, NULL);
	for (int i = 0; i < 10; i++) {
		nt_probed_ranks_close(h.ranks);
		nt_probed_ranks_open(h.ranks);
		nt_probed_ranks_attach(h.ranks);
	}
	assert_int_equal(h.attached, 2);
	assert_int_equal(stats_of(&h).failed, 2);
	nt_probed_ranks_free(h.ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_looked_for_is_attached_when_it_is_found),
		cmocka_unit_test(a_rank_is_looked_at_once),
		cmocka_unit_test(a_closed_table_attaches_nothing),
		cmocka_unit_test(a_file_that_cannot_be_probed_is_searched_once),
		cmocka_unit_test(a_rank_that_is_refused_is_let_go_for_good),
		cmocka_unit_test(one_is_attached_and_one_let_go_at_a_time),
		cmocka_unit_test(who_ends_before_it_was_looked_at_never_is),
		cmocka_unit_test(another_process_of_that_number_is_another),
		cmocka_unit_test(no_python_is_no_failure),
		cmocka_unit_test(processes_over_the_cap_are_counted),
		cmocka_unit_test(what_is_still_to_be_let_go_has_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
