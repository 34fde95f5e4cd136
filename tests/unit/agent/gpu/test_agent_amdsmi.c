/* SPDX-License-Identifier: GPL-3.0-or-later */
/* AMD's GPUs through the stand-in for libamd_smi.so, with the ABI of three releases. */
#include "agent/gpu/amdsmi.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/gpu/gpu_health.h"
#include "agent/gpu/gpu_metrics.h"
#include "agent/gpu/gpu_totals.h"
#include "common/base/buf.h"

#define LIBRARY "build/sim/lib/libamd_smi.so."

static char path[] = "/tmp/neutracer-amdsmi-XXXXXX";
static const char *const releases[] = {LIBRARY "24", LIBRARY "25", LIBRARY "26"};

enum {
	RELEASES = sizeof(releases) / sizeof(releases[0]),
};

static void tell(const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static struct nt_amdsmi *open_library(const char *library)
{
	struct nt_amdsmi *amdsmi = NULL;
	char error[NT_LIBRARY_ERROR];

	assert_int_equal(nt_amdsmi_open(library, error, &amdsmi), 0);
	assert_string_equal(error, "");
	return amdsmi;
}

static void assert_value(const struct nt_gpu_card *card, enum nt_gpu_card_value at, uint64_t value)
{
	uint64_t was = 0;

	assert_true(nt_gpu_card_get(card, at, &was));
	assert_int_equal(was, value);
}

static void assert_unknown(const struct nt_gpu_card *card, enum nt_gpu_card_value at)
{
	uint64_t value;

	assert_false(nt_gpu_card_get(card, at, &value));
}

static void what_a_card_has_is_read(void **state)
{
	(void)state;
	for (int i = 0; i < RELEASES; i++) {
		nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
		struct nt_gpu_cards cards;

		tell("0 clock 1410\n0 most-clock 2100\n0 memory-clock 1300\n0 edge 60\n"
		     "0 hotspot 91\n0 power 690\n0 power-cap 750000000\n0 gfx 99\n"
		     "0 energy 131072\n0 throttle 0\n0 memory-total 1000\n0 memory-used 300\n"
		     "0 corrected 4\n0 uncorrected 1\n0 link-corrected 2\n0 link-uncorrected 3\n"
		     "0 metric-replays 9\n0 replays 1\n"
		     "1 clock 2100\n1 edge 40\n1 mean-power 300\n1 replays 7\n"
		     "1 model AMD_Instinct_MI300X_OAM\n");
		amdsmi = open_library(releases[i]);
		nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
		assert_true(nt_gpu_cards_are_sound(&cards));
		assert_int_equal(cards.count, 2);
		assert_int_equal(cards.lost, 0);
		assert_string_equal(cards.card[0].id, "0000:05:01.0");
		assert_string_equal(cards.card[1].id, "0000:06:01.0");
		assert_string_equal(cards.card[0].model, "");
		assert_string_equal(cards.card[1].model, "AMD Instinct MI300X OAM");
		assert_value(&cards.card[0], NT_GPU_CARD_CLOCK, 1410);
		assert_value(&cards.card[0], NT_GPU_CARD_CLOCK_MOST, 2100);
		assert_value(&cards.card[0], NT_GPU_CARD_MEMORY_CLOCK, 1300);
		assert_value(&cards.card[0], NT_GPU_CARD_TEMPERATURE, 91);
		assert_value(&cards.card[0], NT_GPU_CARD_POWER, 690000);
		assert_value(&cards.card[0], NT_GPU_CARD_POWER_LIMIT, 750000);
		assert_value(&cards.card[0], NT_GPU_CARD_USED, 99);
		assert_value(&cards.card[0], NT_GPU_CARD_ENERGY, 2000);
		assert_value(&cards.card[0], NT_GPU_CARD_REASONS, 0);
		assert_value(&cards.card[0], NT_GPU_CARD_MEMORY_TOTAL, 1000);
		assert_value(&cards.card[0], NT_GPU_CARD_MEMORY_USED, 300);
		assert_value(&cards.card[0], NT_GPU_CARD_CORRECTED, 4);
		assert_value(&cards.card[0], NT_GPU_CARD_UNCORRECTED, 1);
		assert_value(&cards.card[0], NT_GPU_CARD_NVLINK_ERRORS, 5);
		assert_value(&cards.card[0], NT_GPU_CARD_PCIE_REPLAYS, 9);
		/* Cards before MI300 have other members, and what one lacks is no zero. */
		assert_value(&cards.card[1], NT_GPU_CARD_TEMPERATURE, 40);
		assert_value(&cards.card[1], NT_GPU_CARD_POWER, 300000);
		assert_value(&cards.card[1], NT_GPU_CARD_PCIE_REPLAYS, 7);
		assert_unknown(&cards.card[1], NT_GPU_CARD_CLOCK_MOST);
		assert_unknown(&cards.card[1], NT_GPU_CARD_POWER_LIMIT);
		assert_unknown(&cards.card[1], NT_GPU_CARD_USED);
		assert_unknown(&cards.card[1], NT_GPU_CARD_REASONS);
		assert_unknown(&cards.card[1], NT_GPU_CARD_THERMAL);
		assert_unknown(&cards.card[1], NT_GPU_CARD_UNCORRECTED);
		assert_unknown(&cards.card[1], NT_GPU_CARD_XIDS);
	}
}

/* MI200 and Radeon. */
static void a_status_becomes_the_reasons_of_all_drivers(void **state)
{
	static const struct {
		const char *text;
		uint64_t reasons;
	} status[] = {
		{"0 throttle 0\n0 gfx 50\n", 0},
		{"0 throttle 0\n0 gfx 0\n", NT_GPU_REASON_IDLE},
		{"0 throttle 1\n", NT_GPU_REASON_POWER_CAP}, /* PPT0 */
		{"0 throttle 65536\n", NT_GPU_REASON_POWER_CAP}, /* TDC_GFX */
		{"0 throttle 4294967296\n", NT_GPU_REASON_THERMAL}, /* TEMP_GPU */
		{"0 throttle 68719476736\n", NT_GPU_REASON_THERMAL}, /* TEMP_HOTSPOT */
		{"0 throttle 140737488355328\n", NT_GPU_REASON_THERMAL}, /* PROCHOT_GFX */
		{"0 throttle 144115188075855872\n", NT_GPU_REASON_HARDWARE}, /* FIT */
		{"0 throttle 68719476737\n", NT_GPU_REASON_THERMAL | NT_GPU_REASON_POWER_CAP},
	};
	nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
	struct nt_gpu_cards cards;

	(void)state;
	tell("0 clock 1\n");
	amdsmi = open_library(releases[0]);
	for (size_t i = 0; i < sizeof(status) / sizeof(status[0]); i++) {
		tell(status[i].text);
		nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
		assert_value(&cards.card[0], NT_GPU_CARD_REASONS, status[i].reasons);
	}
}

/* MI300 and later: of so many cycles those in which a limit held. */
static void time_below_a_limit_is_a_part_of_the_cycles(void **state)
{
	(void)state;
	for (int i = 1; i < RELEASES; i++) {
		nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
		struct nt_gpu_cards cards;

		tell("0 cycles 1000\n0 limit-socket 100\n0 limit-power 0\n");
		amdsmi = open_library(releases[i]);
		nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
		assert_value(&cards.card[0], NT_GPU_CARD_THERMAL, 0);
		assert_value(&cards.card[0], NT_GPU_CARD_REASONS, 0);
		/* A quarter of two seconds is no reason for all of them. */
		tell("0 cycles 3000\n0 limit-socket 600\n0 limit-power 2000\n");
		nt_amdsmi_read(amdsmi, 3 * NT_SECOND, &cards);
		assert_value(&cards.card[0], NT_GPU_CARD_THERMAL, NT_SECOND / 2);
		assert_value(&cards.card[0], NT_GPU_CARD_POWER_CAPPED, 2 * NT_SECOND);
		assert_value(&cards.card[0], NT_GPU_CARD_REASONS, NT_GPU_REASON_POWER_CAP);
		/* The longest of the limits of temperature, which may hold at once. */
		tell("0 cycles 4000\n0 limit-socket 700\n0 limit-power 2000\n0 prochot 0\n");
		nt_amdsmi_read(amdsmi, 4 * NT_SECOND, &cards);
		tell("0 cycles 5000\n0 limit-socket 800\n0 limit-power 2000\n0 prochot 900\n");
		nt_amdsmi_read(amdsmi, 5 * NT_SECOND, &cards);
		assert_value(&cards.card[0], NT_GPU_CARD_THERMAL, 15 * NT_SECOND / 10);
		assert_value(&cards.card[0], NT_GPU_CARD_REASONS, NT_GPU_REASON_THERMAL);
	}
}

static void counters_that_begin_again_add_nothing(void **state)
{
	nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
	struct nt_gpu_cards cards;

	(void)state;
	tell("0 cycles 1000\n0 limit-socket 1000\n");
	amdsmi = open_library(releases[2]);
	nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
	tell("0 cycles 500\n0 limit-socket 400\n");
	nt_amdsmi_read(amdsmi, 2 * NT_SECOND, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_THERMAL, 0);
	/* The limit's alone, and more of it than cycles. */
	tell("0 cycles 1500\n0 limit-socket 0\n");
	nt_amdsmi_read(amdsmi, 3 * NT_SECOND, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_THERMAL, 0);
	tell("0 cycles 2500\n0 limit-socket 99999\n");
	nt_amdsmi_read(amdsmi, 4 * NT_SECOND, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_THERMAL, NT_SECOND);
	/* 32 bits of the driver, all set, are no number either. */
	tell("0 cycles 4294967295\n0 limit-socket 4294967295\n");
	nt_amdsmi_read(amdsmi, 5 * NT_SECOND, &cards);
	assert_unknown(&cards.card[0], NT_GPU_CARD_THERMAL);
}

static void a_table_that_is_not_renewed_counts_later(void **state)
{
	nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
	struct nt_gpu_cards cards;

	(void)state;
	tell("0 cycles 1000\n0 limit-socket 0\n");
	amdsmi = open_library(releases[2]);
	nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
	nt_amdsmi_read(amdsmi, 2 * NT_SECOND, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_THERMAL, 0);
	tell("0 cycles 2000\n0 limit-socket 1000\n");
	nt_amdsmi_read(amdsmi, 3 * NT_SECOND, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_THERMAL, 2 * NT_SECOND);
}

/* The release of ROCm 6.2 writes a shorter table. */
static void what_a_release_does_not_write_is_not_known(void **state)
{
	nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
	struct nt_gpu_cards cards;

	(void)state;
	tell("0 clock 1\n0 cycles 1000\n0 limit-socket 100\n");
	amdsmi = open_library(releases[0]);
	nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
	assert_unknown(&cards.card[0], NT_GPU_CARD_THERMAL);
	assert_unknown(&cards.card[0], NT_GPU_CARD_REASONS);
}

static void processes_are_those_with_a_queue_on_the_card(void **state)
{
	nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
	struct nt_gpu_cards cards;

	(void)state;
	tell("0 clock 1\n1 clock 1\n2 clock 1\n0 pid 7\n1 pid 8\n1 pid 7\n");
	amdsmi = open_library(releases[1]);
	nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
	assert_int_equal(cards.card[0].pids, 1);
	assert_int_equal(cards.card[0].pid[0], 7);
	assert_int_equal(cards.card[1].pids, 2);
	assert_int_equal(cards.card[1].pid[0], 7);
	assert_int_equal(cards.card[1].pid[1], 8);
	assert_int_equal(cards.card[2].pids, 0);
}

static void processes_over_the_cap_are_counted(void **state)
{
	nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
	nt_autobuf struct nt_buf text = {0};
	struct nt_gpu_cards cards;

	(void)state;
	assert_int_equal(nt_buf_printf(&text, "0 clock 1\n"), 0);
	for (int i = 1; i <= 300; i++)
		assert_int_equal(nt_buf_printf(&text, "0 pid %d\n", i), 0);
	tell((const char *)text.data);
	amdsmi = open_library(releases[2]);
	nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
	assert_true(nt_gpu_cards_are_sound(&cards));
	assert_int_equal(cards.card[0].pids, NT_GPU_CARD_PIDS);
	assert_int_equal(cards.card[0].pids_over_cap, 300 - NT_GPU_CARD_PIDS);
}

static void cards_over_the_cap_are_counted(void **state)
{
	static const char *const partitions[] = {"", "partitions 8 0\n", "partitions 96 0\n"};

	(void)state;
	for (int i = 0; i < 3; i++) {
		nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
		nt_autobuf struct nt_buf text = {0};
		struct nt_gpu_cards cards;

		assert_int_equal(nt_buf_printf(&text, "%s", partitions[i]), 0);
		for (int j = 0; j < NT_GPU_CARDS + 3; j++)
			assert_int_equal(nt_buf_printf(&text, "%d clock %d\n", j, 1000 + j), 0);
		tell((const char *)text.data);
		amdsmi = open_library(releases[2]);
		nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
		assert_true(nt_gpu_cards_are_sound(&cards));
		assert_int_equal(cards.count, NT_GPU_CARDS);
		assert_int_equal(cards.over_cap, 3);
		assert_value(&cards.card[NT_GPU_CARDS - 1], NT_GPU_CARD_CLOCK,
			     1000 + NT_GPU_CARDS - 1);
	}
}

/* Of one card, which has one address. */
static void partitions_have_names_of_their_own(void **state)
{
	nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
	struct nt_gpu_cards cards;

	(void)state;
	tell("partitions 2 0\n0 clock 1\n1 clock 1\n2 clock 1\n3 clock 1\n3 pid 9\n");
	amdsmi = open_library(releases[2]);
	nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
	assert_int_equal(cards.count, 4);
	assert_string_equal(cards.card[0].id, "0000:05:01.0");
	assert_string_equal(cards.card[1].id, "0000:05:01.0 partition 1");
	assert_string_equal(cards.card[2].id, "0000:06:01.0");
	assert_string_equal(cards.card[3].id, "0000:06:01.0 partition 3");
	assert_int_equal(cards.card[3].pid[0], 9);
}

static void a_name_that_does_not_end_is_cut(void **state)
{
	(void)state;
	for (int i = 0; i < RELEASES; i++) {
		nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
		struct nt_gpu_cards cards;

		tell("0 model unterminated\n");
		amdsmi = open_library(releases[i]);
		nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
		assert_true(nt_gpu_cards_are_sound(&cards));
		assert_int_equal(strlen(cards.card[0].model), NT_GPU_CARD_MODEL - 1);
	}
}

static void a_card_that_answers_nothing_is_lost(void **state)
{
	nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
	struct nt_gpu_cards cards;

	(void)state;
	tell("0 clock 1\n0 result 7\n1 clock 1\n");
	amdsmi = open_library(releases[2]);
	nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
	assert_int_equal(cards.count, 2);
	assert_int_equal(cards.lost, 1);
	assert_int_equal(cards.card[0].known, 0);
}

static void what_keeps_it_from_opening_is_stated(void **state)
{
	static const struct {
		const char *library, *text, *error;
		int result;
	} refusal[] = {
		{"/nonexistent/libamd_smi.so.26", "", "load: /nonexistent/", -ENOENT},
		{LIBRARY "26", "init 34 0\n", "initialise: Driver not loaded", -ENODEV},
		{LIBRARY "26", "init 18 0\n", "initialise: Unknown error", -EIO},
		{LIBRARY "26", "0 clock 1\nrelease 27 0\n",
		 "the library's release: 27 is none of 24 to 26", -EPROTO},
		{LIBRARY "24", "0 clock 1\nrelease 23 0\n",
		 "the library's release: 23 is none of 24 to 26", -EPROTO},
		{LIBRARY "25", "", "count GPUs: there is none", -ENODEV},
		{"libm.so.6", "", "amdsmi_init: the library has no such function", -EPROTO},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refusal) / sizeof(refusal[0]); i++) {
		struct nt_amdsmi *amdsmi = NULL;
		char error[NT_LIBRARY_ERROR];

		tell(refusal[i].text);
		assert_int_equal(nt_amdsmi_open(refusal[i].library, error, &amdsmi),
				 refusal[i].result);
		assert_null(amdsmi);
		assert_memory_equal(error, refusal[i].error, strlen(refusal[i].error));
	}
}

/* What is read is used as of any driver: the node's metrics, and the totals of a process. */
static void a_hot_card_is_held_down(void **state)
{
	static struct nt_gpu_totals totals;
	nt_auto(nt_amdsmi) struct nt_amdsmi *amdsmi = NULL;
	struct nt_metric_value metric[NT_GPU_METRICS];
	struct nt_gpu_total total;
	struct nt_gpu_cards cards;
	double held = -1.0;
	size_t n;

	(void)state;
	tell("0 pid 7\n0 clock 1410\n0 most-clock 2100\n0 cycles 1000\n0 limit-socket 0\n");
	amdsmi = open_library(releases[2]);
	nt_amdsmi_read(amdsmi, NT_SECOND, &cards);
	nt_gpu_totals_add(&totals, &cards, NT_SECOND);
	tell("0 pid 7\n0 clock 1410\n0 most-clock 2100\n0 cycles 2000\n0 limit-socket 900\n");
	nt_amdsmi_read(amdsmi, 2 * NT_SECOND, &cards);
	nt_gpu_totals_add(&totals, &cards, 2 * NT_SECOND);
	assert_true(nt_gpu_totals_get(&totals, 7, NULL, &total));
	assert_int_equal(total.thermal_ns, NT_SECOND);
	assert_int_equal(total.power_ns, 0);
	assert_int_equal(total.clock_mhz, 1410);
	n = nt_gpu_metrics(&cards, metric);
	for (size_t i = 0; i < n; i++)
		if (strcmp(metric[i].name, "gpu_cards_held_down") == 0)
			held = metric[i].value;
	assert_true(held == 1.0);
}

static void a_worker_reads_it(void **state)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	struct nt_workers workers = {0};
	nt_auto(nt_gpu_health) struct nt_gpu_health *health = NULL;

	(void)state;
	tell("0 clock 1410\n");
	assert_int_equal(nt_gpu_health_new(&workers, NT_GPU_AMD, releases[2], &health), 0);
	for (uint64_t i = 0; i < 1000 && !nt_gpu_health_stats(health)->reads; i++) {
		nt_gpu_health_tick(health, NT_SECOND + i);
		(void)nanosleep(&pause, NULL);
	}
	assert_int_equal(nt_gpu_health_stats(health)->reads, 1);
	assert_value(&nt_gpu_health_cards(health)->card[0], NT_GPU_CARD_CLOCK, 1410);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_card_has_is_read),
		cmocka_unit_test(a_status_becomes_the_reasons_of_all_drivers),
		cmocka_unit_test(time_below_a_limit_is_a_part_of_the_cycles),
		cmocka_unit_test(counters_that_begin_again_add_nothing),
		cmocka_unit_test(a_table_that_is_not_renewed_counts_later),
		cmocka_unit_test(what_a_release_does_not_write_is_not_known),
		cmocka_unit_test(processes_are_those_with_a_queue_on_the_card),
		cmocka_unit_test(processes_over_the_cap_are_counted),
		cmocka_unit_test(cards_over_the_cap_are_counted),
		cmocka_unit_test(partitions_have_names_of_their_own),
		cmocka_unit_test(a_name_that_does_not_end_is_cut),
		cmocka_unit_test(a_card_that_answers_nothing_is_lost),
		cmocka_unit_test(what_keeps_it_from_opening_is_stated),
		cmocka_unit_test(a_hot_card_is_held_down),
		cmocka_unit_test(a_worker_reads_it),
	};
	const int fd = mkstemp(path);
	int failed;

	if (fd < 0 || close(fd) < 0 || setenv("SIM_AMDSMI", path, 1) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
