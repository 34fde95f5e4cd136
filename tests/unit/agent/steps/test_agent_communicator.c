/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/steps/communicator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/steps/sampler.h"

static struct nt_communicator *fresh(void)
{
	struct nt_communicator *comm = nt_communicator_new(
		(struct nt_communicator_key){.handle = 1, .library = NT_LIBRARY_NCCL});

	assert_non_null(comm);
	comm->epoch = NT_COMMUNICATOR_EPOCH_WHOLE;
	return comm;
}

static uint64_t call(struct nt_communicator *comm, enum nt_op op, uint64_t count, uint64_t number)
{
	struct nt_communicator_call c = {
		.op = op,
		.count = count,
		.bytes = 4 * count,
		.type = 7,
		.number = number,
		.entry_ns = 1000,
	};

	return nt_communicator_count(comm, &c);
}

static void calls_of_all_operations_are_numbered_in_one_row(void **state)
{
	struct nt_communicator *comm = fresh();

	(void)state;
	assert_int_equal(call(comm, NT_OP_ALL_REDUCE, 10, 0), 1);
	assert_int_equal(call(comm, NT_OP_BROADCAST, 10, 0), 2);
	assert_int_equal(call(comm, NT_OP_ALL_REDUCE, 20, 0), 3);
	assert_int_equal(comm->last, 3);
	assert_int_equal(comm->sum[NT_OP_ALL_REDUCE]->calls, 2);
	assert_int_equal(comm->sum[NT_OP_ALL_REDUCE]->bytes, 120);
	assert_int_equal(comm->sum[NT_OP_ALL_REDUCE]->first, 1);
	assert_int_equal(comm->sum[NT_OP_ALL_REDUCE]->last, 3);
	nt_communicator_free(comm);
}

static void sends_do_not_move_the_numbers_that_all_ranks_share(void **state)
{
	struct nt_communicator *a = fresh(), *b = fresh();

	(void)state;
	(void)call(a, NT_OP_ALL_REDUCE, 10, 0);
	(void)call(b, NT_OP_ALL_REDUCE, 10, 0);
	assert_int_equal(call(a, NT_OP_SEND, 5, 0), 1);
	assert_int_equal(call(a, NT_OP_SEND, 5, 0), 2);
	assert_int_equal(call(b, NT_OP_RECV, 5, 0), 1);
	assert_int_equal(call(a, NT_OP_ALL_REDUCE, 10, 0), 2);
	assert_int_equal(call(b, NT_OP_ALL_REDUCE, 10, 0), 2);
	assert_true(a->rolling_hash == b->rolling_hash);
	nt_communicator_free(a);
	nt_communicator_free(b);
}

static void another_count_or_type_changes_the_rolling_hash(void **state)
{
	struct nt_communicator *a = fresh(), *b = fresh(), *c = fresh();

	(void)state;
	(void)call(a, NT_OP_ALL_REDUCE, 10, 0);
	(void)call(b, NT_OP_ALL_REDUCE, 11, 0);
	(void)call(c, NT_OP_ALL_GATHER, 10, 0);
	assert_true(a->rolling_hash != b->rolling_hash);
	assert_true(a->rolling_hash != c->rolling_hash);
	nt_communicator_free(a);
	nt_communicator_free(b);
	nt_communicator_free(c);
}

static void numbers_of_the_library_may_come_in_any_order(void **state)
{
	struct nt_communicator *a = fresh(), *b = fresh();

	(void)state;
	(void)call(a, NT_OP_ALL_REDUCE, 10, 5);
	(void)call(a, NT_OP_ALL_REDUCE, 20, 6);
	(void)call(b, NT_OP_ALL_REDUCE, 20, 6);
	(void)call(b, NT_OP_ALL_REDUCE, 10, 5);
	assert_true(a->rolling_hash == b->rolling_hash);
	assert_int_equal(b->last, 6);
	assert_true(b->numbered_by_library);
	assert_int_equal(b->sum[NT_OP_ALL_REDUCE]->first, 5);
	/* What we lose does not touch them. */
	nt_communicator_set_epoch(b, 1234);
	assert_int_equal(b->epoch, NT_COMMUNICATOR_EPOCH_WHOLE);
	nt_communicator_free(a);
	nt_communicator_free(b);
}

static void a_sent_window_leaves_numbers_and_hash_alone(void **state)
{
	struct nt_communicator *comm = fresh();
	uint64_t hash;

	(void)state;
	(void)call(comm, NT_OP_ALL_REDUCE, 10, 0);
	hash = comm->rolling_hash;
	nt_communicator_clear(comm);
	assert_int_equal(comm->sum[NT_OP_ALL_REDUCE]->calls, 0);
	assert_true(comm->rolling_hash == hash);
	assert_int_equal(call(comm, NT_OP_ALL_REDUCE, 10, 0), 2);
	assert_int_equal(comm->sum[NT_OP_ALL_REDUCE]->first, 2);
	nt_communicator_free(comm);
}

static void an_operation_that_there_is_not_is_counted_as_unknown(void **state)
{
	struct nt_communicator *comm = fresh();

	(void)state;
	(void)call(comm, (enum nt_op)200, 10, 0);
	assert_int_equal(comm->sum[NT_OP_UNKNOWN]->calls, 1);
	nt_communicator_free(comm);
}

static void ids_depend_on_all_that_makes_a_communicator(void **state)
{
	(void)state;
	assert_true(nt_communicator_id_world("job", "1") != nt_communicator_id_world("job", "2"));
	assert_true(nt_communicator_id_child(1, 0, 1, 0) != nt_communicator_id_child(1, 1, 1, 0));
	assert_true(nt_communicator_id_child(1, 0, 1, 0) != nt_communicator_id_child(1, 0, 2, 0));
	assert_true(nt_communicator_id_child(1, 0, 1, 0) != nt_communicator_id_child(2, 0, 1, 0));
	assert_true(nt_communicator_id_child(1, 0, 1, 0) == nt_communicator_id_child(1, 0, 1, 0));
	assert_true(nt_communicator_id_local(1, 2, 3, 4) != nt_communicator_id_local(1, 3, 3, 4));
}

/* ---- samples -------------------------------------------------------------------------------- */

static void offer(struct nt_sampler *sampler, uint64_t number)
{
	struct nt_sample sample = {.comm = 0x77, .number = number};

	nt_sampler_offer(sampler, &sample, sample.number);
}

static bool has(const struct nt_sampler *sampler, uint64_t number)
{
	for (uint32_t i = 0; i < sampler->count; i++) {
		if (sampler->sample[i].number == number)
			return true;
	}
	return false;
}

static void few_calls_are_all_sampled(void **state)
{
	struct nt_sampler sampler = {0};

	(void)state;
	for (uint64_t i = 0; i < NT_SAMPLER_CAP; i++)
		offer(&sampler, i);
	assert_int_equal(sampler.count, NT_SAMPLER_CAP);
	assert_int_equal(sampler.left_out, 0);
}

static void ranks_sample_the_same_calls_or_one_a_part_of_the_others(void **state)
{
	struct nt_sampler a = {0}, b = {0};

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		offer(&a, i);
	for (uint64_t i = 0; i < 1000; i++)
		offer(&b, 9000 + i);
	assert_in_range(a.count, NT_SAMPLER_CAP / 4, NT_SAMPLER_CAP);
	assert_int_equal(a.count + a.left_out, 10000);
	for (uint32_t i = 0; i < a.count; i++)
		assert_true(a.sample[i].number < 9000 || has(&b, a.sample[i].number));
}

static void aligned_numbers_need_fewer_samples(void **state)
{
	struct nt_sampler sampler = {.cap = NT_SAMPLER_ALIGNED};

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		offer(&sampler, i);
	assert_in_range(sampler.count, 1, NT_SAMPLER_ALIGNED);
}

static void a_communicators_calls_are_sampled_with_its_epoch(void **state)
{
	struct nt_communicator *comm = fresh();

	(void)state;
	comm->id = 0x1234;
	for (int i = 0; i < 100; i++)
		(void)call(comm, NT_OP_ALL_REDUCE, 10, 0);
	(void)call(comm, NT_OP_SEND, 10, 0);
	assert_in_range(comm->sampler.count, 1, NT_SAMPLER_ALIGNED);
	assert_int_equal(comm->sampler.count + comm->sampler.left_out, 100);
	assert_int_equal(comm->sampler.sample[0].comm, 0x1234);
	assert_int_equal(comm->sampler.sample[0].epoch, NT_COMMUNICATOR_EPOCH_WHOLE);
	nt_communicator_clear(comm);
	assert_int_equal(comm->sampler.count, 0);
	nt_communicator_free(comm);
}

static void the_rate_follows_the_calls_down(void **state)
{
	struct nt_sampler sampler = {0};

	(void)state;
	for (uint64_t i = 0; i < 100000; i++)
		offer(&sampler, i);
	for (int i = 0; i < 30; i++)
		nt_sampler_clear(&sampler);
	assert_int_equal(sampler.level, 0);
	offer(&sampler, 1);
	assert_int_equal(sampler.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_all_operations_are_numbered_in_one_row),
		cmocka_unit_test(sends_do_not_move_the_numbers_that_all_ranks_share),
		cmocka_unit_test(another_count_or_type_changes_the_rolling_hash),
		cmocka_unit_test(numbers_of_the_library_may_come_in_any_order),
		cmocka_unit_test(a_sent_window_leaves_numbers_and_hash_alone),
		cmocka_unit_test(an_operation_that_there_is_not_is_counted_as_unknown),
		cmocka_unit_test(ids_depend_on_all_that_makes_a_communicator),
		cmocka_unit_test(few_calls_are_all_sampled),
		cmocka_unit_test(ranks_sample_the_same_calls_or_one_a_part_of_the_others),
		cmocka_unit_test(aligned_numbers_need_fewer_samples),
		cmocka_unit_test(a_communicators_calls_are_sampled_with_its_epoch),
		cmocka_unit_test(the_rate_follows_the_calls_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
