/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/attachment.h"

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

static void the_driver_is_attached_only_where_there_is_no_runtime(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	assert_int_equal(use(&h, 1, 60, NT_LIBRARY_CUDA), 0);
	assert_int_equal(use(&h, 2, 61, NT_LIBRARY_CUDA), 0);
	assert_int_equal(use(&h, 1, 70, NT_LIBRARY_CUDART), 1);
	assert_int_equal(h.attached, 1);
	assert_false(h.subjects >> NT_SUBJECT_DRIVER & 1);
	for (uint64_t i = 0; i < 5; i++)
		nt_attachment_tick(h.attachment, i);
	assert_int_equal(h.attached, 2);
	assert_int_equal(h.last_attached, 61);
	assert_true(h.subjects >> NT_SUBJECT_DRIVER & 1);
	nt_attachment_free(h.attachment);
}

static void uses_over_the_cap_are_counted(void **state)
{
	struct hooks h;

	(void)state;
	start(&h);
	for (uint32_t i = 1; i <= NT_ATTACHMENT_USES; i++)
		assert_int_equal(use(&h, i, 50, NT_LIBRARY_MPI), 1);
	assert_int_equal(use(&h, 9999, 50, NT_LIBRARY_MPI), -ENOSPC);
	assert_int_equal(nt_attachment_over_cap(h.attachment), 1);
	nt_attachment_free(h.attachment);
	nt_attachment_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_let_go_a_while_after_its_last_user),
		cmocka_unit_test(a_new_user_in_the_meantime_keeps_it),
		cmocka_unit_test(the_driver_is_attached_only_where_there_is_no_runtime),
		cmocka_unit_test(uses_over_the_cap_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
