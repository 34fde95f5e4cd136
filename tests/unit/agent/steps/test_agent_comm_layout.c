/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/comm_layout.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/agent/agent_memory.h"

enum {
	PID = 42,
	FILE_A = 7,
	LARGE = 0x200000,
};

#define ADDRESS 0x7f0000000000ULL

static const struct nt_comm_layout_learned nothing;

static int read_nccl(uint8_t *comm, size_t size, const struct nt_comm_layout_learned *learned,
		     struct nt_comm_layout_comm *ret_comm)
{
	struct fake_memory fake = {0};
	struct nt_memory memory = fake_memory(&fake);

	fake_memory_add(&fake, PID, ADDRESS, comm, size);
	return nt_comm_layout_nccl(&memory, PID, ADDRESS, FILE_A, 1, learned, ret_comm);
}

static void every_known_release_of_nccl_is_read(void **state)
{
	static const size_t offsets[][2] = {{0x1044c8, 0x10458c},
					    {0x1206d0, 0x120794},
					    {0x1206e8, 0x1207ac},
					    {0x1206e0, 0x1207a4},
					    {0x1206e0, 0x1207b0}};

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		uint8_t *comm = calloc(1, LARGE);
		struct nt_comm_layout_comm found;

		assert_non_null(comm);
		fake_nccl_at(comm, offsets[i][0], 0xabcdef, 5, 8, offsets[i][1]);
		assert_int_equal(read_nccl(comm, LARGE, &nothing, &found), 0);
		assert_int_equal(found.hash, 0xabcdef);
		assert_int_equal(found.rank, 5);
		assert_int_equal(found.size, 8);
		free(comm);
	}
}

static void memory_that_is_no_communicator_is_refused(void **state)
{
	struct nt_comm_layout_comm found = {.rank = 99};
	uint8_t *comm = calloc(1, LARGE);

	(void)state;
	assert_non_null(comm);
	fake_nccl(comm, 1, 2, 8);
	comm[0] ^= 1; /* the magic number */
	assert_int_equal(read_nccl(comm, LARGE, &nothing, &found), -ENOENT);
	fake_nccl(comm, 1, 8, 8); /* a rank that there is not */
	assert_int_equal(read_nccl(comm, LARGE, &nothing, &found), -ENOENT);
	fake_nccl(comm, 0, 1, 8); /* no hash */
	assert_int_equal(read_nccl(comm, LARGE, &nothing, &found), -ENOENT);
	fake_nccl(comm, 1, 1, 0x7fffffff);
	assert_int_equal(read_nccl(comm, LARGE, &nothing, &found), -ENOENT);
	assert_int_equal(read_nccl(comm, 8, &nothing, &found), -ENOENT); /* the rest unreadable */
	assert_int_equal(found.rank, 99);
	free(comm);
}

static void an_unknown_release_is_learned_from_a_known_communicator(void **state)
{
	struct nt_comm_layout_learned learned = {0};
	struct fake_memory fake = {0};
	struct nt_memory memory = fake_memory(&fake);
	struct nt_comm_layout_comm found;
	uint8_t *comm = calloc(1, LARGE);
	uint64_t reads;

	(void)state;
	assert_non_null(comm);
	fake_nccl_at(comm, 0x133330, 0xfeed, 3, 16, 0x133500);
	fake_memory_add(&fake, PID, ADDRESS, comm, LARGE);
	assert_int_equal(nt_comm_layout_nccl(&memory, PID, ADDRESS, FILE_A, 1, &learned, &found),
			 -ENOENT);
	nt_comm_layout_learn(&memory, PID, ADDRESS, FILE_A, 1, 0xfeed, 3, 16, &learned);
	assert_int_equal(nt_comm_layout_nccl(&memory, PID, ADDRESS, FILE_A, 1, &learned, &found),
			 0);
	assert_int_equal(found.rank, 3);
	assert_int_equal(found.size, 16);
	assert_int_equal(
		nt_comm_layout_nccl(&memory, PID, ADDRESS, FILE_A + 1, 1, &learned, &found),
		-ENOENT);
	reads = fake.reads;
	nt_comm_layout_learn(&memory, PID, ADDRESS, FILE_A, 1, 0xfeed, 3, 16, &learned);
	assert_int_equal(fake.reads, reads); /* once per file */
	free(comm);
}

static void what_cannot_be_learned_is_tried_once_and_files_are_capped(void **state)
{
	struct nt_comm_layout_learned learned = {0};
	struct fake_memory fake = {0};
	struct nt_memory memory = fake_memory(&fake);
	struct nt_comm_layout_comm found;
	uint8_t *comm = calloc(1, LARGE);

	(void)state;
	assert_non_null(comm);
	fake_nccl(comm, 0x1, 3, 16);
	fake_memory_add(&fake, PID, ADDRESS, comm, LARGE);
	for (uint64_t i = 1; i <= NT_COMM_LAYOUT_FILES + 4; i++)
		nt_comm_layout_learn(&memory, PID, ADDRESS, i, 1, 0xfeed, 3, 16, &learned);
	assert_int_equal(learned.files, NT_COMM_LAYOUT_FILES);
	assert_int_equal(learned.of[0].file, 1);
	/* Another owner's take half of the places, the oldest ones. */
	for (uint64_t i = 101; i <= 100 + NT_COMM_LAYOUT_FILES; i++)
		nt_comm_layout_learn(&memory, PID, ADDRESS, i, 2, 0xfeed, 3, 16, &learned);
	assert_int_equal(learned.files, NT_COMM_LAYOUT_FILES);
	assert_int_equal(learned.of[0].file, NT_COMM_LAYOUT_FILES / 2 + 1);
	assert_int_equal(learned.of[NT_COMM_LAYOUT_FILES / 2].file, 101);
	assert_int_equal(learned.of[NT_COMM_LAYOUT_FILES - 1].file, 100 + NT_COMM_LAYOUT_FILES / 2);
	/* The table of releases still serves. */
	assert_int_equal(nt_comm_layout_nccl(&memory, PID, ADDRESS, 1, 1, &learned, &found), 0);
	free(comm);
}

static void an_unknown_release_is_learned_from_what_ras_states(void **state)
{
	/* The hash of the second is also in the memory, with another rank. */
	const struct nt_ras_comm others[] = {{0x11, 1, 8}, {0xfeed, 4, 16}};
	const struct nt_ras_comm stated[] = {{0x11, 1, 8}, {0xfeed, 3, 16}, {0xfeed, 4, 16}};
	struct nt_comm_layout_learned learned = {0};
	struct fake_memory fake = {0};
	struct nt_memory memory = fake_memory(&fake);
	struct nt_comm_layout_comm found;
	uint8_t *comm = calloc(1, LARGE);

	(void)state;
	assert_non_null(comm);
	fake_nccl_at(comm, 0x133330, 0xfeed, 3, 16, 0x133500);
	fake_memory_add(&fake, PID, ADDRESS, comm, LARGE);
	assert_false(
		nt_comm_layout_learn_stated(&memory, PID, ADDRESS, FILE_A, 1, others, 2, &learned));
	assert_false(nt_comm_layout_is_learned(&learned, FILE_A, 1));
	assert_int_equal(learned.files, 0);
	assert_true(
		nt_comm_layout_learn_stated(&memory, PID, ADDRESS, FILE_A, 1, stated, 3, &learned));
	assert_true(nt_comm_layout_is_learned(&learned, FILE_A, 1));
	assert_false(nt_comm_layout_is_learned(&learned, FILE_A + 1, 1));
	/* What one owner's process states changes nothing for another's, which may learn it itself. */
	assert_false(nt_comm_layout_is_learned(&learned, FILE_A, 2));
	assert_int_equal(nt_comm_layout_nccl(&memory, PID, ADDRESS, FILE_A, 2, &learned, &found),
			 -ENOENT);
	nt_comm_layout_learn(&memory, PID, ADDRESS, FILE_A, 2, 0xfeed, 3, 16, &learned);
	assert_true(nt_comm_layout_is_learned(&learned, FILE_A, 2));
	assert_int_equal(learned.files, 2);
	assert_int_equal(nt_comm_layout_nccl(&memory, PID, ADDRESS, FILE_A, 1, &learned, &found),
			 0);
	assert_int_equal(found.hash, 0xfeed);
	assert_int_equal(found.rank, 3);
	assert_int_equal(found.size, 16);
	comm[0] ^= 1; /* the magic number */
	assert_false(nt_comm_layout_learn_stated(&memory, PID, ADDRESS, FILE_A + 1, 1, stated, 3,
						 &learned));
	free(comm);
}

static void a_file_that_was_searched_in_vain_is_learned_from_what_ras_states(void **state)
{
	const struct nt_ras_comm stated = {0xfeed, 3, 16};
	struct nt_comm_layout_learned learned = {0};
	struct fake_memory fake = {0};
	struct nt_memory memory = fake_memory(&fake);
	uint8_t *comm = calloc(1, LARGE);

	(void)state;
	assert_non_null(comm);
	fake_nccl_at(comm, 0x133330, 0xfeed, 3, 16, 0x133500);
	fake_memory_add(&fake, PID, ADDRESS, comm, LARGE);
	nt_comm_layout_learn(&memory, PID, ADDRESS, FILE_A, 1, 0xbad, 3, 16, &learned);
	assert_false(nt_comm_layout_is_learned(&learned, FILE_A, 1));
	assert_true(nt_comm_layout_learn_stated(&memory, PID, ADDRESS, FILE_A, 1, &stated, 1,
						&learned));
	assert_int_equal(learned.files, 1);
	assert_int_equal(learned.of[0].hash_offset, 0x133330);
	/* No room beside those of an owner with as many. */
	for (uint64_t i = 101; learned.files < NT_COMM_LAYOUT_FILES; i++)
		nt_comm_layout_learn(&memory, PID, ADDRESS, i, 1, 0xbad, 3, 16, &learned);
	assert_false(nt_comm_layout_learn_stated(&memory, PID, ADDRESS, FILE_A + 1, 1, &stated, 1,
						 &learned));
	free(comm);
}

static void a_communicator_of_open_mpi_tells_name_rank_and_size(void **state)
{
	struct fake_memory fake = {0};
	struct nt_memory memory = fake_memory(&fake);
	uint8_t comm[FAKE_MPI_BYTES];
	struct nt_comm_layout_comm found;

	(void)state;
	fake_mpi(comm, ADDRESS, "MPI_COMM_WORLD", 2, 4);
	fake_memory_add(&fake, PID, ADDRESS, comm, sizeof(comm));
	assert_int_equal(nt_comm_layout_open_mpi(&memory, PID, ADDRESS, &found), 0);
	assert_string_equal(found.name, "MPI_COMM_WORLD");
	assert_int_equal(found.rank, 2);
	assert_int_equal(found.size, 4);
}

static void what_makes_no_sense_is_no_communicator_of_open_mpi(void **state)
{
	struct fake_memory fake = {0};
	struct nt_memory memory = fake_memory(&fake);
	uint8_t comm[FAKE_MPI_BYTES];
	struct nt_comm_layout_comm found;

	(void)state;
	fake_memory_add(&fake, PID, ADDRESS, comm, sizeof(comm));
	fake_mpi(comm, ADDRESS, "odd", 2, 2); /* a rank outside its group */
	assert_int_equal(nt_comm_layout_open_mpi(&memory, PID, ADDRESS, &found), -ENOENT);
	fake_mpi(comm, ADDRESS, "MPI_COMM_WORLD", 0xffffffff, 4);
	assert_int_equal(nt_comm_layout_open_mpi(&memory, PID, ADDRESS, &found), -ENOENT);
	fake_mpi(comm, ADDRESS, "MPI_COMM_WORLD", 1, 4);
	memset(comm + 160, 'x', 64); /* a name without an end */
	assert_int_equal(nt_comm_layout_open_mpi(&memory, PID, ADDRESS, &found), -ENOENT);
	assert_int_equal(nt_comm_layout_open_mpi(&memory, PID, ADDRESS + 400, &found), -EFAULT);
	/* Another release's group: the name still speaks for the rank. */
	fake_mpi(comm, ADDRESS, "MPI_COMM_WORLD", 1, 4);
	memset(comm + 248, 0, 8);
	assert_int_equal(nt_comm_layout_open_mpi(&memory, PID, ADDRESS, &found), 0);
	assert_int_equal(found.size, 0);
}

static void a_context_of_gloo_is_read_with_and_without_virtual_functions(void **state)
{
	struct fake_memory fake = {0};
	struct nt_memory memory = fake_memory(&fake);
	struct {
		uint64_t table;
		uint32_t rank, size;
	} debian = {0x7f129f4a5d30, 3, 4};
	uint32_t plain[] = {1, 2, 0, 0}, wrong[] = {9, 2, 5, 5};
	struct nt_comm_layout_comm found;

	(void)state;
	fake_memory_add(&fake, PID, ADDRESS, &debian, sizeof(debian));
	fake_memory_add(&fake, PID, ADDRESS + 0x1000, plain, sizeof(plain));
	fake_memory_add(&fake, PID, ADDRESS + 0x2000, wrong, sizeof(wrong));
	assert_int_equal(nt_comm_layout_gloo(&memory, PID, ADDRESS, &found), 0);
	assert_int_equal(found.rank, 3);
	assert_int_equal(found.size, 4);
	assert_int_equal(nt_comm_layout_gloo(&memory, PID, ADDRESS + 0x1000, &found), 0);
	assert_int_equal(found.rank, 1);
	assert_int_equal(nt_comm_layout_gloo(&memory, PID, ADDRESS + 0x2000, &found), -ENOENT);
}

static void the_hash_of_a_unique_id_is_nccls_own(void **state)
{
	static const uint8_t id[] = {'a', 0x80};

	(void)state;
	/* 5381 * 33 ^ 'a', times 33, xor the sign-extended second byte. */
	assert_int_equal(nt_comm_layout_nccl_hash(id, 1), 177604);
	assert_true(nt_comm_layout_nccl_hash(id, 2) == (177604ULL * 33 ^ 0xffffffffffffff80ULL));
}

static void the_first_page_and_the_end_of_memory_are_never_read(void **state)
{
	struct fake_memory fake = {0};
	struct nt_memory memory = fake_memory(&fake);
	uint64_t value;

	(void)state;
	assert_int_equal(nt_memory_u64(&memory, PID, 8, &value), -EFAULT);
	assert_int_equal(nt_memory_u64(&memory, PID, UINT64_MAX - 3, &value), -EFAULT);
	assert_int_equal(fake.reads, 0);
}

static void a_living_process_can_be_read(void **state)
{
	struct nt_memory memory = nt_memory_live();
	uint64_t here = 0x1122334455667788ULL, value;

	(void)state;
	assert_int_equal(
		nt_memory_u64(&memory, (uint32_t)getpid(), (uint64_t)(uintptr_t)&here, &value), 0);
	assert_true(value == here);
	assert_int_equal(nt_memory_u64(&memory, 0x7fffffff, (uint64_t)(uintptr_t)&here, &value),
			 -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_known_release_of_nccl_is_read),
		cmocka_unit_test(memory_that_is_no_communicator_is_refused),
		cmocka_unit_test(an_unknown_release_is_learned_from_a_known_communicator),
		cmocka_unit_test(an_unknown_release_is_learned_from_what_ras_states),
		cmocka_unit_test(a_file_that_was_searched_in_vain_is_learned_from_what_ras_states),
		cmocka_unit_test(what_cannot_be_learned_is_tried_once_and_files_are_capped),
		cmocka_unit_test(a_communicator_of_open_mpi_tells_name_rank_and_size),
		cmocka_unit_test(what_makes_no_sense_is_no_communicator_of_open_mpi),
		cmocka_unit_test(a_context_of_gloo_is_read_with_and_without_virtual_functions),
		cmocka_unit_test(the_hash_of_a_unique_id_is_nccls_own),
		cmocka_unit_test(the_first_page_and_the_end_of_memory_are_never_read),
		cmocka_unit_test(a_living_process_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
