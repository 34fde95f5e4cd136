/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/discover/attachment.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct hooks {
	struct nt_attachment *attachment;
	uint64_t attached, dropped;
	ino_t last_attached, last_dropped;
	uint32_t subjects;
};

static int attach(void *data, const struct nt_mapped_file *file, uint32_t subjects)
{
	struct hooks *h = data;

	h->attached++;
	h->last_attached = file->ino;
	h->subjects = subjects;
	return 1;
}

static void drop(void *data, dev_t dev, ino_t ino)
{
	struct hooks *h = data;

	(void)dev;
	h->dropped++;
	h->last_dropped = ino;
}

static void start(struct hooks *h)
{
	struct nt_attachment_hooks hooks = {.attach = attach, .drop = drop, .data = h};

	*h = (struct hooks){0};
	assert_int_equal(nt_attachment_new(&hooks, &h->attachment), 0);
}

static int use(struct hooks *h, uint32_t pid, ino_t ino, enum nt_library library)
{
	struct nt_mapped_file file = {
		.pid = pid,
		.start_boot_ns = pid,
		.dev = 1,
		.ino = ino,
		.path = "/x/lib",
		.name = "/x/lib",
		.library = library,
	};

	return nt_attachment_use(h->attachment, &file);
}

static void a_file_is_let_go_a_while_after_its_last_user(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	assert_int_equal(use(&h, 1, 50, NT_LIBRARY_NCCL), 1);
	assert_int_equal(use(&h, 2, 50, NT_LIBRARY_NCCL), 1);
	nt_attachment_end(h.attachment, 1, 1, 1000);
	nt_attachment_tick(h.attachment, 1000 + 2 * NT_ATTACHMENT_KEEP_NS);
	assert_int_equal(h.dropped, 0); /* one is left */
	nt_attachment_end(h.attachment, 2, 999, 1000); /* another process of that number */
	nt_attachment_end(h.attachment, 2, 2, 5000);
	nt_attachment_tick(h.attachment, 5000 + NT_ATTACHMENT_KEEP_NS - 1);
	assert_int_equal(h.dropped, 0);
	nt_attachment_tick(h.attachment, 5000 + NT_ATTACHMENT_KEEP_NS);
	assert_int_equal(h.dropped, 1);
	assert_int_equal(h.last_dropped, 50);
	nt_attachment_tick(h.attachment, 5000 + 2 * NT_ATTACHMENT_KEEP_NS);
	assert_int_equal(h.dropped, 1);
	nt_attachment_free(h.attachment);
}

static void a_new_user_in_the_meantime_keeps_it(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	(void)use(&h, 1, 50, NT_LIBRARY_MPI);
	nt_attachment_end(h.attachment, 1, 1, 1000);
	(void)use(&h, 2, 50, NT_LIBRARY_MPI);
	nt_attachment_tick(h.attachment, 1000 + 5 * NT_ATTACHMENT_KEEP_NS);
	assert_int_equal(h.dropped, 0);
	nt_attachment_free(h.attachment);
}

/* But its allocations, which end the runtime's, and which libraries call directly. */
static void the_driver_is_attached_only_where_there_is_no_runtime(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	assert_int_equal(use(&h, 1, 60, NT_LIBRARY_CUDA), 1);
	assert_int_equal(h.subjects, 1U << NT_SUBJECT_ALLOC);
	assert_int_equal(use(&h, 2, 61, NT_LIBRARY_CUDA), 1);
	assert_int_equal(use(&h, 1, 70, NT_LIBRARY_CUDART), 1);
	assert_int_equal(h.attached, 3);
	assert_false(h.subjects >> NT_SUBJECT_DRIVER & 1);
	for (uint64_t i = 0; i < 5; i++)
		nt_attachment_tick(h.attachment, i);
	assert_int_equal(h.attached, 4);
	assert_int_equal(h.last_attached, 61);
	assert_true(h.subjects >> NT_SUBJECT_DRIVER & 1);
	nt_attachment_free(h.attachment);
}

static int use_as(struct hooks *h, uint32_t pid, ino_t ino, uint32_t uid)
{
	struct nt_owner owner = {.id = uid + 10, .uid = uid, .name = "user"};
	struct nt_mapped_file file = {
		.pid = pid,
		.start_boot_ns = pid,
		.dev = 1,
		.ino = ino,
		.path = "/x/lib",
		.name = "/x/lib",
		.library = NT_LIBRARY_MPI,
		.owner = &owner,
	};

	return nt_attachment_use(h->attachment, &file);
}

static uint64_t left_out(const struct hooks *h)
{
	struct nt_share_report report;

	nt_share_read(nt_attachment_share(h->attachment), &report);
	return report.left_out;
}

static void files_of_a_process_and_processes_have_caps(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	for (uint32_t i = 1; i <= NT_ATTACHMENT_PROCESSES; i++)
		assert_int_equal(use(&h, i, 50, NT_LIBRARY_MPI), 1);
	assert_int_equal(use(&h, 9999, 50, NT_LIBRARY_MPI), -ENOSPC);
	assert_int_equal(nt_attachment_over_cap(h.attachment), 1);
	for (ino_t ino = 51; ino < 50 + NT_PROCESS_TABLE_FILES; ino++)
		assert_int_equal(use(&h, 1, ino, NT_LIBRARY_MPI), 1);
	assert_int_equal(use(&h, 1, 50, NT_LIBRARY_MPI), 1); /* known already */
	assert_int_equal(use(&h, 1, 999, NT_LIBRARY_MPI), -ENOSPC);
	assert_int_equal(nt_attachment_over_cap(h.attachment), 2);
	nt_attachment_free(h.attachment);
	nt_attachment_free(NULL);
}

/* So many copies of a library. */
static void map_copies(struct hooks *h, uint32_t uid, uint32_t first_pid, ino_t first, ino_t count)
{
	for (ino_t i = 0; i < count; i++)
		(void)use_as(h, first_pid + (uint32_t)i / NT_PROCESS_TABLE_FILES, first + i, uid);
}

static void a_user_of_many_files_makes_room_for_those_of_others(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	map_copies(&h, 1, 1, 1000, NT_ATTACHMENT_FILES);
	assert_int_equal(h.attached, NT_ATTACHMENT_FILES);
	assert_int_equal(use_as(&h, 900, 77777, 1), -ENOSPC);
	assert_int_equal(nt_attachment_over_cap(h.attachment), 1);
	assert_int_equal(left_out(&h), 1);
	assert_int_equal(use_as(&h, 901, 88888, 2), 1);
	assert_int_equal(h.dropped, 1);
	assert_int_equal(h.last_dropped, 1000);
	assert_int_equal(left_out(&h), 2);
	/* The end of who used what was dropped takes nothing from who has it again. */
	nt_attachment_end(h.attachment, 901, 901, 5);
	assert_int_equal(use_as(&h, 902, 1000, 2), 1); /* in the place of what nobody uses now */
	assert_int_equal(h.last_dropped, 88888);
	nt_attachment_end(h.attachment, 1, 1, 5);
	for (int i = 0; i < NT_PROCESS_TABLE_FILES; i++)
		nt_attachment_tick(h.attachment, 5 + NT_ATTACHMENT_KEEP_NS);
	assert_int_equal(h.dropped, 2 + NT_PROCESS_TABLE_FILES - 1);
	nt_attachment_free(h.attachment);
}

static void files_are_let_go_a_few_at_a_time(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	map_copies(&h, 1, 1, 1000, 3 * NT_ATTACHMENT_DROPS);
	for (uint32_t pid = 1; pid <= 3 * NT_ATTACHMENT_DROPS; pid++)
		nt_attachment_end(h.attachment, pid, pid, 5);
	for (uint64_t i = 1; i <= 3; i++) {
		nt_attachment_tick(h.attachment, 5 + NT_ATTACHMENT_KEEP_NS);
		assert_int_equal(h.dropped, i * NT_ATTACHMENT_DROPS);
	}
	nt_attachment_tick(h.attachment, 5 + NT_ATTACHMENT_KEEP_NS);
	assert_int_equal(h.dropped, 3 * NT_ATTACHMENT_DROPS);
	nt_attachment_free(h.attachment);
}

static void what_another_owner_uses_too_is_not_lost_with_the_rest(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	map_copies(&h, 1, 1, 1000, 1); /* it came first */
	assert_int_equal(use_as(&h, 901, 1000, 2), 1);
	map_copies(&h, 1, 2, 2000, NT_ATTACHMENT_FILES);
	for (ino_t i = 0; i < NT_ATTACHMENT_FILES / 2; i++)
		assert_int_equal(
			use_as(&h, 910 + (uint32_t)i / NT_PROCESS_TABLE_FILES, 5000 + i, 3), 1);
	assert_int_equal(h.dropped, NT_ATTACHMENT_FILES / 2);
	assert_int_equal(h.last_dropped, 2000 + NT_ATTACHMENT_FILES / 2 - 1);
	nt_attachment_free(h.attachment);
}

static void nothing_is_let_go_while_processes_are_left_out(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	assert_int_equal(use(&h, 1, 50, NT_LIBRARY_NCCL), 1);
	nt_attachment_end(h.attachment, 1, 1, 1000);
	nt_attachment_hold(h.attachment, true);
	nt_attachment_tick(h.attachment, 1000 + 2 * NT_ATTACHMENT_KEEP_NS);
	assert_int_equal(h.dropped, 0);
	nt_attachment_hold(h.attachment, false);
	nt_attachment_tick(h.attachment, 1000 + 2 * NT_ATTACHMENT_KEEP_NS);
	assert_int_equal(h.dropped, 1);
	nt_attachment_free(h.attachment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_let_go_a_while_after_its_last_user),
		cmocka_unit_test(a_new_user_in_the_meantime_keeps_it),
		cmocka_unit_test(the_driver_is_attached_only_where_there_is_no_runtime),
		cmocka_unit_test(files_of_a_process_and_processes_have_caps),
		cmocka_unit_test(a_user_of_many_files_makes_room_for_those_of_others),
		cmocka_unit_test(files_are_let_go_a_few_at_a_time),
		cmocka_unit_test(what_another_owner_uses_too_is_not_lost_with_the_rest),
		cmocka_unit_test(nothing_is_let_go_while_processes_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
