/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What readings of the cards add up to, and whose they are. */
#include "agent/gpu/gpu_totals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	PID = 4711,
};

struct reading {
	struct nt_gpu_totals totals;
	struct nt_gpu_cards cards;
	uint64_t now_ns;
};

static int begin(void **state)
{
	struct reading *reading = calloc(1, sizeof(*reading));

	assert_non_null(reading);
	reading->cards.count = 2;
	reading->now_ns = NT_SECOND;
	for (uint32_t i = 0; i < 2; i++)
		(void)snprintf(reading->cards.card[i].id, NT_GPU_CARD_ID, "GPU-%u", i);
	reading->cards.card[0].pid[0] = PID;
	reading->cards.card[0].pids = 1;
	*state = reading;
	return 0;
}

static int end(void **state)
{
	free(*state);
	return 0;
}

static void set(struct reading *reading, uint32_t card, enum nt_gpu_card_value at, uint64_t value)
{
	reading->cards.card[card].value[at] = value;
	reading->cards.card[card].known |= UINT32_C(1) << at;
}

/* One more reading, so many ns after the last. */
static void read_after(struct reading *reading, uint64_t ns)
{
	reading->now_ns += ns;
	nt_gpu_totals_add(&reading->totals, &reading->cards, reading->now_ns);
}

static struct nt_gpu_total total_of(const struct reading *reading, uint32_t pid)
{
	struct nt_gpu_total total;

	assert_true(nt_gpu_totals_get(&reading->totals, pid, NULL, &total));
	return total;
}

static void the_time_between_readings_counts_while_a_reason_stands(void **state)
{
	struct reading *reading = *state;

	read_after(reading, 0);
	set(reading, 0, NT_GPU_CARD_REASONS, NT_GPU_REASON_THERMAL);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).thermal_ns, NT_SECOND);
	set(reading, 0, NT_GPU_CARD_REASONS, NT_GPU_REASON_POWER_CAP | NT_GPU_REASON_POWER_BRAKE);
	read_after(reading, NT_SECOND);
	set(reading, 0, NT_GPU_CARD_REASONS,
	    NT_GPU_REASON_HARDWARE | NT_GPU_REASON_HARDWARE_THERMAL);
	read_after(reading, NT_SECOND);
	set(reading, 0, NT_GPU_CARD_REASONS, NT_GPU_REASON_HARDWARE);
	read_after(reading, NT_SECOND);
	set(reading, 0, NT_GPU_CARD_REASONS, NT_GPU_REASON_IDLE);
	read_after(reading, NT_SECOND);
	/* The hardware's slowdown because of temperature is of that. */
	assert_int_equal(total_of(reading, PID).thermal_ns, 2 * NT_SECOND);
	assert_int_equal(total_of(reading, PID).power_ns, NT_SECOND);
	assert_int_equal(total_of(reading, PID).hardware_ns, 2 * NT_SECOND);
}

static void the_drivers_counters_count_up_to_the_time_between(void **state)
{
	struct reading *reading = *state;

	set(reading, 0, NT_GPU_CARD_THERMAL, 100 * NT_SECOND);
	read_after(reading, 0);
	set(reading, 0, NT_GPU_CARD_THERMAL, 100 * NT_SECOND + NT_SECOND / 4);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).thermal_ns, NT_SECOND / 4);
	set(reading, 0, NT_GPU_CARD_THERMAL, UINT64_MAX);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).thermal_ns, NT_SECOND + NT_SECOND / 4);
	/* The driver was loaded again. */
	set(reading, 0, NT_GPU_CARD_THERMAL, 0);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).thermal_ns, NT_SECOND + NT_SECOND / 4);
}

/* The driver hung, or a worker was replaced: what held meanwhile is not known. */
static void a_long_time_between_readings_counts_nothing(void **state)
{
	struct reading *reading = *state;

	set(reading, 0, NT_GPU_CARD_REASONS, NT_GPU_REASON_THERMAL);
	read_after(reading, 0);
	read_after(reading, NT_GPU_TOTALS_GAP_NS + 1);
	assert_int_equal(total_of(reading, PID).thermal_ns, 0);
	read_after(reading, NT_GPU_TOTALS_GAP_NS);
	assert_int_equal(total_of(reading, PID).thermal_ns, NT_GPU_TOTALS_GAP_NS);
}

static void what_computes_is_summed_over_the_time_in_which_it_is_known(void **state)
{
	struct reading *reading = *state;
	struct nt_gpu_total total;

	read_after(reading, 0);
	set(reading, 0, NT_GPU_CARD_TENSOR_ACTIVE, 250000);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).activity_ns, 0);
	set(reading, 0, NT_GPU_CARD_SM_ACTIVE, 500000);
	set(reading, 0, NT_GPU_CARD_SM_OCCUPANCY, 100000);
	set(reading, 0, NT_GPU_CARD_DRAM_ACTIVE, 750000);
	set(reading, 0, NT_GPU_CARD_NVLINK_SENT, 1000);
	set(reading, 0, NT_GPU_CARD_NVLINK_RECEIVED, 500);
	set(reading, 0, NT_GPU_CARD_PCIE_SENT, 10);
	read_after(reading, 2 * NT_SECOND);
	total = total_of(reading, PID);
	assert_int_equal(total.activity_ns, 2 * NT_SECOND);
	assert_int_equal(total.sm_ns, NT_SECOND);
	assert_int_equal(total.occupancy_ns, NT_SECOND / 5);
	assert_int_equal(total.tensor_ns, NT_SECOND / 2);
	assert_int_equal(total.dram_ns, 3 * NT_SECOND / 2);
	assert_int_equal(total.nvlink_bytes, 3000);
	assert_int_equal(total.pcie_bytes, 20);
	/* A share of more than the whole comes from a compromised worker. */
	set(reading, 0, NT_GPU_CARD_SM_ACTIVE, UINT64_MAX);
	set(reading, 0, NT_GPU_CARD_PCIE_SENT, UINT64_MAX);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).sm_ns, 2 * NT_SECOND);
	/* The mean of two cards. */
	set(reading, 1, NT_GPU_CARD_SM_ACTIVE, 0);
	reading->cards.card[1].pid[0] = PID;
	reading->cards.card[1].pids = 1;
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).activity_ns, 5 * NT_SECOND);
	assert_int_equal(total_of(reading, PID).sm_ns, 3 * NT_SECOND);
}

static void errors_are_those_since_the_first_reading(void **state)
{
	struct reading *reading = *state;

	set(reading, 0, NT_GPU_CARD_UNCORRECTED, 7);
	set(reading, 0, NT_GPU_CARD_XIDS, 0);
	read_after(reading, 0);
	set(reading, 0, NT_GPU_CARD_UNCORRECTED, 9);
	set(reading, 0, NT_GPU_CARD_XIDS, 1);
	set(reading, 0, NT_GPU_CARD_LAST_XID, 94);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).uncorrected, 2);
	assert_int_equal(total_of(reading, PID).xids, 1);
	assert_int_equal(total_of(reading, PID).last_xid, 94);
	/* Another worker begins to count. */
	set(reading, 0, NT_GPU_CARD_XIDS, 0);
	reading->cards.card[0].known &= ~(UINT32_C(1) << NT_GPU_CARD_LAST_XID);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).xids, 1);
	assert_int_equal(total_of(reading, PID).last_xid, 94);
	/* So does the driver: what it has counted since is new. */
	set(reading, 0, NT_GPU_CARD_UNCORRECTED, 3);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).uncorrected, 5);
}

static void a_process_without_a_card_has_no_totals(void **state)
{
	struct reading *reading = *state;
	struct nt_gpu_total total;

	read_after(reading, 0);
	assert_false(nt_gpu_totals_get(&reading->totals, PID + 1, NULL, &total));
	assert_int_equal(total.thermal_ns, 0);
	reading->cards.card[0].pids = 0;
	read_after(reading, NT_SECOND);
	read_after(reading, NT_GPU_TOTALS_KEPT_NS);
	assert_false(nt_gpu_totals_get(&reading->totals, PID, NULL, &total));
	/* A card that is gone has no processes. */
	reading->cards.card[0].pids = 1;
	read_after(reading, NT_SECOND);
	reading->cards.count = 0;
	read_after(reading, NT_SECOND);
	read_after(reading, NT_GPU_TOTALS_KEPT_NS);
	assert_false(nt_gpu_totals_get(&reading->totals, PID, NULL, &total));
}

/* The error that ended it is read when the driver lists it no longer. */
static void a_process_that_ended_keeps_its_card_for_a_while(void **state)
{
	struct reading *reading = *state;
	struct nt_gpu_total total;

	set(reading, 0, NT_GPU_CARD_XIDS, 0);
	read_after(reading, 0);
	read_after(reading, NT_SECOND);
	reading->cards.card[0].pids = 0;
	set(reading, 0, NT_GPU_CARD_XIDS, 1);
	set(reading, 0, NT_GPU_CARD_LAST_XID, 79);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).xids, 1);
	assert_int_equal(total_of(reading, PID).last_xid, 79);
	read_after(reading, NT_GPU_TOTALS_KEPT_NS - 1);
	assert_int_equal(total_of(reading, PID).xids, 1);
	read_after(reading, 1);
	assert_false(nt_gpu_totals_get(&reading->totals, PID, NULL, &total));
}

/* Its number is that of another process, on another card. */
static void the_card_that_a_process_has_counts_before_the_one_that_it_had(void **state)
{
	struct reading *reading = *state;

	read_after(reading, 0);
	reading->cards.card[0].pids = 0;
	reading->cards.card[1].pids = 1;
	reading->cards.card[1].pid[0] = PID;
	set(reading, 0, NT_GPU_CARD_CLOCK, 990);
	set(reading, 1, NT_GPU_CARD_CLOCK, 1980);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).clock_mhz, 1980);
}

/* More processes end than a card can have at a time: the last ones are remembered. */
static void the_last_processes_of_a_card_are_remembered(void **state)
{
	struct reading *reading = *state;
	struct nt_gpu_total total;

	for (uint32_t i = 0; i < NT_GPU_CARD_PIDS + 2; i++) {
		reading->cards.card[0].pid[0] = PID + i;
		read_after(reading, 1);
	}
	reading->cards.card[0].pids = 0;
	read_after(reading, 1);
	assert_false(nt_gpu_totals_get(&reading->totals, PID + 1, NULL, &total));
	assert_true(nt_gpu_totals_get(&reading->totals, PID + 2, NULL, &total));
	assert_true(nt_gpu_totals_get(&reading->totals, PID + NT_GPU_CARD_PIDS + 1, NULL, &total));
}

/* A MIG instance or a card by the UUID of the environment, where the driver names no processes. */
static void a_uuid_counts_where_processes_are_not_known(void **state)
{
	struct reading *reading = *state;
	struct nt_gpu_total total;

	(void)snprintf(reading->cards.card[1].id, NT_GPU_CARD_ID,
		       "MIG-00000000-0000-0000-0000-000000000003");
	reading->cards.card[1].is_instance = 1;
	set(reading, 0, NT_GPU_CARD_CLOCK, 1980);
	set(reading, 1, NT_GPU_CARD_CLOCK, 990);
	read_after(reading, 0);
	read_after(reading, NT_SECOND);
	assert_true(
		nt_gpu_totals_get(&reading->totals, PID + 1, reading->cards.card[1].id, &total));
	assert_int_equal(total.clock_mhz, 990);
	assert_false(nt_gpu_totals_get(&reading->totals, PID + 1, "MIG-0", &total));
	assert_false(nt_gpu_totals_get(&reading->totals, PID + 1, "", &total));
	/* The other card has processes, and this is none of them: it states what is not so. */
	assert_false(nt_gpu_totals_get(&reading->totals, PID + 1, "GPU-0", &total));
	/* What the driver says of a process counts first. */
	assert_true(nt_gpu_totals_get(&reading->totals, PID, reading->cards.card[1].id, &total));
	assert_int_equal(total.clock_mhz, 1980);
	/* A card with so many processes that none is named has some. */
	reading->cards.card[1].pids_over_cap = 300;
	read_after(reading, NT_SECOND);
	assert_false(
		nt_gpu_totals_get(&reading->totals, PID + 1, reading->cards.card[1].id, &total));
	reading->cards.card[1].pids_over_cap = 0;
	reading->cards.count = 1;
	read_after(reading, NT_SECOND);
	assert_false(
		nt_gpu_totals_get(&reading->totals, PID + 1, reading->cards.card[1].id, &total));
}

static void of_several_cards_the_worst_counts(void **state)
{
	struct reading *reading = *state;

	reading->cards.card[1].pid[0] = PID;
	reading->cards.card[1].pids = 1;
	set(reading, 0, NT_GPU_CARD_CLOCK, 1980);
	set(reading, 0, NT_GPU_CARD_CLOCK_MOST, 1980);
	set(reading, 0, NT_GPU_CARD_UNCORRECTED, 0);
	set(reading, 1, NT_GPU_CARD_UNCORRECTED, 0);
	set(reading, 1, NT_GPU_CARD_CLOCK, 990);
	set(reading, 1, NT_GPU_CARD_CLOCK_MOST, 1755);
	set(reading, 1, NT_GPU_CARD_TEMPERATURE, 91);
	set(reading, 1, NT_GPU_CARD_REASONS, NT_GPU_REASON_THERMAL);
	read_after(reading, 0);
	set(reading, 0, NT_GPU_CARD_UNCORRECTED, 1);
	set(reading, 1, NT_GPU_CARD_UNCORRECTED, 2);
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).thermal_ns, NT_SECOND);
	assert_int_equal(total_of(reading, PID).uncorrected, 3);
	assert_int_equal(total_of(reading, PID).clock_mhz, 990);
	assert_int_equal(total_of(reading, PID).most_clock_mhz, 1755);
	assert_int_equal(total_of(reading, PID).celsius, 91);
}

static void cards_of_several_models_have_none(void **state)
{
	struct reading *reading = *state;

	for (uint32_t i = 0; i < 2; i++)
		(void)snprintf(reading->cards.card[i].model, NT_GPU_CARD_MODEL, "NVIDIA H100 PCIe");
	read_after(reading, 0);
	assert_int_equal(total_of(reading, PID).cards, 1);
	assert_string_equal(total_of(reading, PID).model, "NVIDIA H100 PCIe");
	reading->cards.card[1].pid[0] = PID;
	reading->cards.card[1].pids = 1;
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).cards, 2);
	assert_string_equal(total_of(reading, PID).model, "NVIDIA H100 PCIe");
	(void)snprintf(reading->cards.card[1].model, NT_GPU_CARD_MODEL, "NVIDIA H100 NVL");
	read_after(reading, NT_SECOND);
	assert_string_equal(total_of(reading, PID).model, "");
}

/* Cards are known by their names: another order, or another card in the place, changes nothing. */
static void cards_keep_their_totals(void **state)
{
	struct reading *reading = *state;
	struct nt_gpu_card first = reading->cards.card[0];

	set(reading, 0, NT_GPU_CARD_REASONS, NT_GPU_REASON_THERMAL);
	read_after(reading, 0);
	read_after(reading, NT_SECOND);
	first = reading->cards.card[0];
	reading->cards.card[0] = reading->cards.card[1];
	reading->cards.card[1] = first;
	read_after(reading, NT_SECOND);
	assert_int_equal(total_of(reading, PID).thermal_ns, 2 * NT_SECOND);
}

static void more_cards_than_places_replace_those_that_are_gone(void **state)
{
	struct reading *reading = *state;

	reading->cards.count = NT_GPU_CARDS;
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < NT_GPU_CARDS; i++)
			(void)snprintf(reading->cards.card[i].id, NT_GPU_CARD_ID, "GPU-%d-%u",
				       round, i);
		set(reading, 0, NT_GPU_CARD_REASONS, NT_GPU_REASON_THERMAL);
		read_after(reading, NT_SECOND);
		/* The new one has not the totals of the old. */
		assert_int_equal(total_of(reading, PID).thermal_ns, 0);
		read_after(reading, NT_SECOND);
		assert_int_equal(total_of(reading, PID).thermal_ns, NT_SECOND);
		assert_int_equal(reading->totals.count, NT_GPU_CARDS);
	}
	/* Names that are the same do no harm. */
	for (uint32_t i = 0; i < NT_GPU_CARDS; i++)
		(void)snprintf(reading->cards.card[i].id, NT_GPU_CARD_ID, "GPU");
	read_after(reading, NT_SECOND);
	assert_int_equal(reading->totals.count, NT_GPU_CARDS);
}

static void processes_share_a_card_that_both_compute_on(void **state)
{
	struct reading *reading = *state;

	reading->cards.card[1].pid[0] = PID + 1;
	reading->cards.card[1].pids = 1;
	read_after(reading, NT_SECOND);
	assert_int_equal(nt_gpu_totals_shared(&reading->totals, PID, PID + 1), NT_GPU_SHARED_NO);
	reading->cards.card[1].pid[1] = PID;
	reading->cards.card[1].pids = 2;
	read_after(reading, NT_SECOND);
	assert_int_equal(nt_gpu_totals_shared(&reading->totals, PID, PID + 1), NT_GPU_SHARED_YES);
	assert_int_equal(nt_gpu_totals_shared(&reading->totals, PID + 1, PID), NT_GPU_SHARED_YES);
	assert_int_equal(nt_gpu_totals_shared(&reading->totals, PID, PID + 2),
			 NT_GPU_SHARED_UNKNOWN);
}

#define TOTALS_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TOTALS_TEST(the_time_between_readings_counts_while_a_reason_stands),
		TOTALS_TEST(the_drivers_counters_count_up_to_the_time_between),
		TOTALS_TEST(a_long_time_between_readings_counts_nothing),
		TOTALS_TEST(what_computes_is_summed_over_the_time_in_which_it_is_known),
		TOTALS_TEST(errors_are_those_since_the_first_reading),
		TOTALS_TEST(a_process_without_a_card_has_no_totals),
		TOTALS_TEST(a_process_that_ended_keeps_its_card_for_a_while),
		TOTALS_TEST(the_card_that_a_process_has_counts_before_the_one_that_it_had),
		TOTALS_TEST(the_last_processes_of_a_card_are_remembered),
		TOTALS_TEST(a_uuid_counts_where_processes_are_not_known),
		TOTALS_TEST(of_several_cards_the_worst_counts),
		TOTALS_TEST(processes_share_a_card_that_both_compute_on),
		TOTALS_TEST(cards_of_several_models_have_none),
		TOTALS_TEST(cards_keep_their_totals),
		TOTALS_TEST(more_cards_than_places_replace_those_that_are_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
