/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GPUs' health through the stand-in for libnvidia-ml.so.1. */
#include "agent/gpu/gpu_health.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/gpu/gpu_metrics.h"
#include "agent/gpu/mig.h"
#include "agent/gpu/nvml.h"
#include "common/base/buf.h"

#define LIBRARY "build/sim/lib/libnvidia-ml.so.1"

static char path[] = "/tmp/neutracer-nvml-XXXXXX";

static void tell(const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static struct nt_nvml *open_library(void)
{
	struct nt_nvml *nvml = NULL;
	char error[NT_LIBRARY_ERROR];

	assert_int_equal(nt_nvml_open(LIBRARY, error, &nvml), 0);
	assert_string_equal(error, "");
	return nvml;
}

static void assert_value(const struct nt_gpu_card *card, enum nt_gpu_card_value at, uint64_t value)
{
	uint64_t was = 0;

	assert_true(nt_gpu_card_get(card, at, &was));
	assert_int_equal(was, value);
}

static double metric_of(const struct nt_metric_value *metric, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(metric[i].name, name) == 0)
			return metric[i].value;
	return -1.0;
}

static void a_temperature_has_two_functions(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_gpu_cards cards;

	(void)state;
	tell("0 temperature 91\n0 new-temperature 92\n1 new-temperature 93\n");
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_TEMPERATURE, 91);
	assert_value(&cards.card[1], NT_GPU_CARD_TEMPERATURE, 93);
	assert_int_equal(cards.lost, 0);
}

static void what_a_card_has_is_read(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_gpu_cards cards;
	uint64_t value;

	(void)state;
	tell("0 clock 1410\n0 most-clock 1980\n0 memory-clock 2619\n0 temperature 91\n"
	     "0 power 690000\n0 power-limit 700000\n0 reasons 96\n0 memory-total 1000\n"
	     "0 memory-used 300\n0 power-capped 5000000000\n0 thermal 7000000000\n"
	     "0 corrected 4\n0 uncorrected 1\n0 remapped 2\n0 replays 9\n0 link-errors 3\n"
	     "1 clock 1980\n1 model NVIDIA_H100_80GB_HBM3\n");
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	assert_true(nt_gpu_cards_are_sound(&cards));
	assert_int_equal(cards.count, 2);
	assert_int_equal(cards.lost, 0);
	assert_string_equal(cards.card[1].id, "GPU-00000001-0000-0000-0000-000000000000");
	assert_string_equal(cards.card[0].model, "");
	assert_string_equal(cards.card[1].model, "NVIDIA H100 80GB HBM3");
	assert_value(&cards.card[0], NT_GPU_CARD_CLOCK, 1410);
	assert_value(&cards.card[0], NT_GPU_CARD_CLOCK_MOST, 1980);
	assert_value(&cards.card[0], NT_GPU_CARD_MEMORY_CLOCK, 2619);
	assert_value(&cards.card[0], NT_GPU_CARD_TEMPERATURE, 91);
	assert_value(&cards.card[0], NT_GPU_CARD_POWER, 690000);
	assert_value(&cards.card[0], NT_GPU_CARD_POWER_LIMIT, 700000);
	/* By the older name, as this library has no other. */
	assert_value(&cards.card[0], NT_GPU_CARD_REASONS,
		     NT_GPU_REASON_THERMAL | NT_GPU_REASON_HARDWARE_THERMAL);
	assert_value(&cards.card[0], NT_GPU_CARD_MEMORY_USED, 300);
	assert_value(&cards.card[0], NT_GPU_CARD_MEMORY_TOTAL, 1000);
	assert_value(&cards.card[0], NT_GPU_CARD_POWER_CAPPED, 5000000000);
	assert_value(&cards.card[0], NT_GPU_CARD_THERMAL, 7000000000);
	assert_value(&cards.card[0], NT_GPU_CARD_CORRECTED, 4);
	assert_value(&cards.card[0], NT_GPU_CARD_UNCORRECTED, 1);
	assert_value(&cards.card[0], NT_GPU_CARD_REMAPPED, 2);
	assert_value(&cards.card[0], NT_GPU_CARD_PCIE_REPLAYS, 9);
	assert_value(&cards.card[0], NT_GPU_CARD_NVLINK_ERRORS, 6); /* of two links */
	/* What the other card lacks, or the library, is not known. It is no zero. */
	assert_value(&cards.card[1], NT_GPU_CARD_CLOCK, 1980);
	assert_false(nt_gpu_card_get(&cards.card[1], NT_GPU_CARD_TEMPERATURE, &value));
	assert_false(nt_gpu_card_get(&cards.card[1], NT_GPU_CARD_NVLINK_ERRORS, &value));
	assert_false(nt_gpu_card_get(&cards.card[0], NT_GPU_CARD_ENERGY, &value));
}

static void xids_are_counted_by_card(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_gpu_cards cards;
	uint64_t value;

	(void)state;
	tell("0 clock 1\n1 clock 1\nxid 1 79\nxid 1 94\nxid 63 13\n");
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_XIDS, 0);
	assert_false(nt_gpu_card_get(&cards.card[0], NT_GPU_CARD_LAST_XID, &value));
	assert_value(&cards.card[1], NT_GPU_CARD_XIDS, 2);
	assert_value(&cards.card[1], NT_GPU_CARD_LAST_XID, 94);
	/* A process was killed: the driver reports that as well, and it is no error of the GPU. */
	tell("0 clock 1\n1 clock 1\nxid 1 79\nxid 1 94\nxid 63 13\nxid 1 45\n");
	nt_nvml_read(nvml, &cards);
	assert_value(&cards.card[1], NT_GPU_CARD_XIDS, 2);
	assert_value(&cards.card[1], NT_GPU_CARD_LAST_XID, 94);
}

static void processes_are_those_of_their_card(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	nt_autobuf struct nt_buf text = {0};
	struct nt_metric_value metric[NT_GPU_METRICS];
	struct nt_gpu_cards cards;
	size_t n;

	(void)state;
	tell("0 clock 1\n0 pid 11\n0 pid 12\n1 clock 1\n2 clock 1\n2 pid 13\n");
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	assert_int_equal(cards.card[0].pids, 2);
	assert_int_equal(cards.card[0].pid[1], 12);
	assert_int_equal(cards.card[1].pids, 0);
	assert_int_equal(cards.card[2].pid[0], 13);
	assert_int_equal(cards.card[2].pids_over_cap, 0);
	/* More than there is room for, and more than are asked for. */
	for (int i = 1; i <= 300; i++) {
		assert_int_equal(nt_buf_printf(&text, "0 pid %d\n", i), 0);
		if (i != NT_GPU_CARD_PIDS + 2 && i != 300)
			continue;
		tell((const char *)text.data);
		nt_nvml_read(nvml, &cards);
		assert_true(nt_gpu_cards_are_sound(&cards));
		assert_int_equal(cards.card[0].pids, i == 300 ? 0 : NT_GPU_CARD_PIDS);
		assert_int_equal(cards.card[0].pids_over_cap, i == 300 ? 300 : 2);
		n = nt_gpu_metrics(&cards, metric);
		assert_true(metric_of(metric, n, "gpu_processes_over_cap") ==
			    cards.card[0].pids_over_cap);
	}
}

/* Two samples make a value: the first reading has none. */
static void what_computes_is_known_from_the_second_reading_on(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_gpu_cards cards;
	uint64_t value;

	(void)state;
	tell("0 gpm 1\n0 gpm-2 87500\n0 gpm-3 25000\n0 gpm-5 41250\n0 gpm-10 60000\n"
	     "0 gpm-20 1000\n0 gpm-21 2000\n0 gpm-60 3000\n0 gpm-61 4000\n"
	     "1 temperature 40\n1 gpm-2 50000\n");
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	assert_false(nt_gpu_card_get(&cards.card[0], NT_GPU_CARD_SM_ACTIVE, &value));
	nt_nvml_read(nvml, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_SM_ACTIVE, 875000);
	assert_value(&cards.card[0], NT_GPU_CARD_SM_OCCUPANCY, 250000);
	assert_value(&cards.card[0], NT_GPU_CARD_TENSOR_ACTIVE, 412500);
	assert_value(&cards.card[0], NT_GPU_CARD_DRAM_ACTIVE, 600000);
	assert_value(&cards.card[0], NT_GPU_CARD_PCIE_SENT, 1 << 20);
	assert_value(&cards.card[0], NT_GPU_CARD_PCIE_RECEIVED, 2 << 20);
	assert_value(&cards.card[0], NT_GPU_CARD_NVLINK_RECEIVED, 3 << 20);
	assert_value(&cards.card[0], NT_GPU_CARD_NVLINK_SENT, 4 << 20);
	/* Ampere and older. */
	assert_false(nt_gpu_card_get(&cards.card[1], NT_GPU_CARD_SM_ACTIVE, &value));
	/* A sample that fails ends the pair. */
	tell("0 temperature 40\n");
	nt_nvml_read(nvml, &cards);
	assert_false(nt_gpu_card_get(&cards.card[0], NT_GPU_CARD_SM_ACTIVE, &value));
	tell("0 gpm 1\n0 gpm-2 100000\n");
	nt_nvml_read(nvml, &cards);
	assert_false(nt_gpu_card_get(&cards.card[0], NT_GPU_CARD_SM_ACTIVE, &value));
	nt_nvml_read(nvml, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_SM_ACTIVE, NT_GPU_CARD_WHOLE);
	assert_false(nt_gpu_card_get(&cards.card[0], NT_GPU_CARD_TENSOR_ACTIVE, &value));
}

static void impossible_values_of_gpm_are_no_values(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_gpu_cards cards;
	uint64_t value;

	(void)state;
	tell("0 gpm 1\n0 gpm-2 100001\n0 gpm-nan-5 0\n0 gpm-20 18000000000000000000\n");
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	nt_nvml_read(nvml, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_SM_ACTIVE, NT_GPU_CARD_WHOLE);
	assert_false(nt_gpu_card_get(&cards.card[0], NT_GPU_CARD_TENSOR_ACTIVE, &value));
	assert_value(&cards.card[0], NT_GPU_CARD_PCIE_SENT, 1000000000000000);
}

/* Instances are GPUs of their own to jobs, and of one card to the driver. */
static void instances_have_their_cards_health_and_their_own_processes(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_metric_value metric[NT_GPU_METRICS];
	struct nt_gpu_cards cards;
	uint64_t value;
	size_t n;

	(void)state;
	tell("0 gpm 1\n0 mig 1\n0 clock 990\n0 temperature 91\n0 memory-total 80\n0 memory-used 8\n"
	     "0 pid 7\n0 instance 3\n0 instance 5\n"
	     "0/3 gpm 1\n0/3 gpm-2 50000\n0/3 memory-total 40\n0/3 memory-used 4\n0/3 pid 7\n"
	     "0/5 pid 8\n1 clock 1980\n1 pid 9\n"
	     "xid 0/5 43\nxid 0 79\n");
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	nt_nvml_read(nvml, &cards);
	assert_true(nt_gpu_cards_are_sound(&cards));
	assert_int_equal(cards.count, 4);
	assert_int_equal(cards.card[0].pids, 0);
	assert_int_equal(cards.card[1].pid[0], 9);
	assert_false(cards.card[1].is_instance);
	assert_true(cards.card[2].is_instance && cards.card[3].is_instance);
	assert_string_equal(cards.card[2].id, "MIG-00000000-0000-0000-0000-000000000003");
	assert_int_equal(cards.card[2].pids, 1);
	assert_int_equal(cards.card[2].pid[0], 7);
	assert_int_equal(cards.card[3].pid[0], 8);
	assert_value(&cards.card[2], NT_GPU_CARD_CLOCK, 990);
	assert_value(&cards.card[3], NT_GPU_CARD_TEMPERATURE, 91);
	assert_value(&cards.card[2], NT_GPU_CARD_MEMORY_TOTAL, 40);
	assert_false(nt_gpu_card_get(&cards.card[3], NT_GPU_CARD_MEMORY_TOTAL, &value));
	assert_value(&cards.card[2], NT_GPU_CARD_SM_ACTIVE, 500000);
	assert_false(nt_gpu_card_get(&cards.card[0], NT_GPU_CARD_SM_ACTIVE, &value));
	assert_false(nt_gpu_card_get(&cards.card[3], NT_GPU_CARD_SM_ACTIVE, &value));
	/* The error of one, and that of the card. */
	assert_value(&cards.card[0], NT_GPU_CARD_XIDS, 2);
	assert_value(&cards.card[2], NT_GPU_CARD_XIDS, 1);
	assert_value(&cards.card[2], NT_GPU_CARD_LAST_XID, 79);
	assert_value(&cards.card[3], NT_GPU_CARD_XIDS, 2);
	n = nt_gpu_metrics(&cards, metric);
	assert_true(metric_of(metric, n, "gpu_cards") == 2.0);
	assert_true(metric_of(metric, n, "gpu_mig_instances") == 2.0);
	assert_true(metric_of(metric, n, "gpu_memory_used_bytes") == 8.0);
}

/* They are made and destroyed while the library is open. */
static void instances_may_change(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_gpu_cards cards;
	uint64_t value;

	(void)state;
	tell("0 gpm 1\n0 mig 1\n0 instance 1\n0/1 gpm 1\n0/1 gpm-2 50000\n");
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	nt_nvml_read(nvml, &cards);
	assert_value(&cards.card[1], NT_GPU_CARD_SM_ACTIVE, 500000);
	tell("0 gpm 1\n0 mig 0\n0 gpm-2 70000\n");
	nt_nvml_read(nvml, &cards);
	assert_int_equal(cards.count, 1);
	nt_nvml_read(nvml, &cards);
	assert_value(&cards.card[0], NT_GPU_CARD_SM_ACTIVE, 700000);
	/* A first sample again: what it did meanwhile is not known. */
	tell("0 gpm 1\n0 mig 1\n0 instance 1\n0/1 gpm 1\n0/1 gpm-2 50000\n");
	nt_nvml_read(nvml, &cards);
	assert_false(nt_gpu_card_get(&cards.card[1], NT_GPU_CARD_SM_ACTIVE, &value));
}

static void instances_over_the_cap_are_counted(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_gpu_cards cards;
	FILE *file = fopen(path, "we");

	(void)state;
	assert_non_null(file);
	for (int i = 0; i < 5; i++) {
		(void)fprintf(file, "%d mig 1\n", i);
		for (int j = 0; j < NT_MIG_INSTANCES; j++)
			(void)fprintf(file, "%d instance %d\n", i, j);
	}
	assert_int_equal(fclose(file), 0);
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	assert_true(nt_gpu_cards_are_sound(&cards));
	assert_int_equal(cards.count, NT_GPU_CARDS);
	assert_int_equal(cards.over_cap, 5 + 5 * NT_MIG_INSTANCES - NT_GPU_CARDS);
}

static void a_card_that_fell_off_the_bus_is_lost(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_gpu_cards cards;

	(void)state;
	tell("0 clock 1\n0 result 15\n1 clock 1\n1 temperature 40\n");
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	assert_int_equal(cards.count, 2);
	assert_int_equal(cards.lost, 1);
	assert_int_equal(cards.card[0].known & ~(UINT32_C(1) << NT_GPU_CARD_XIDS), 0);
	assert_value(&cards.card[1], NT_GPU_CARD_TEMPERATURE, 40);
}

static void cards_over_the_cap_are_counted(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_gpu_cards cards;
	struct nt_metric_value metric[NT_GPU_METRICS];
	nt_autobuf struct nt_buf text = {0};
	size_t n;

	(void)state;
	for (int i = 0; i < NT_GPU_CARDS + 3; i++)
		assert_int_equal(nt_buf_printf(&text, "%d clock %d\n", i, 1000 + i), 0);
	tell((const char *)text.data);
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	assert_int_equal(cards.count, NT_GPU_CARDS);
	assert_int_equal(cards.over_cap, 3);
	assert_value(&cards.card[NT_GPU_CARDS - 1], NT_GPU_CARD_CLOCK, 1000 + NT_GPU_CARDS - 1);
	n = nt_gpu_metrics(&cards, metric);
	assert_true(metric_of(metric, n, "gpu_cards_over_cap") == 3.0);
}

static void what_keeps_it_from_opening_is_stated(void **state)
{
	static const struct {
		const char *library, *text, *error;
		int result;
	} refusal[] = {
		{"/nonexistent/libnvidia-ml.so.1", "", "load: /nonexistent/", -ENOENT},
		{LIBRARY, "init 9 0\n", "initialise: Driver Not Loaded", -ENODEV},
		{LIBRARY, "init 18 0\n", "initialise: Unknown Error", -EIO},
		{LIBRARY, "", "count GPUs: there is none", -ENODEV},
		{"libm.so.6", "", "nvmlInit_v2: the library has no such function", -EPROTO},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refusal) / sizeof(refusal[0]); i++) {
		struct nt_nvml *nvml = NULL;
		char error[NT_LIBRARY_ERROR];

		tell(refusal[i].text);
		assert_int_equal(nt_nvml_open(refusal[i].library, error, &nvml), refusal[i].result);
		assert_null(nvml);
		assert_memory_equal(error, refusal[i].error, strlen(refusal[i].error));
	}
}

static void values_that_cannot_be_are_not_sound(void **state)
{
	struct nt_gpu_cards cards = {.count = NT_GPU_CARDS};

	(void)state;
	assert_true(nt_gpu_cards_are_sound(&cards));
	memset(cards.card[3].id, 'x', sizeof(cards.card[3].id));
	assert_false(nt_gpu_cards_are_sound(&cards));
	cards.count = 3;
	assert_true(nt_gpu_cards_are_sound(&cards));
	cards.count = NT_GPU_CARDS + 1;
	assert_false(nt_gpu_cards_are_sound(&cards));
	cards.count = 3;
	memset(cards.card[1].model, 'x', sizeof(cards.card[1].model));
	assert_false(nt_gpu_cards_are_sound(&cards));
	*cards.card[1].model = '\0';
	assert_true(nt_gpu_cards_are_sound(&cards));
	cards.card[2].pids = NT_GPU_CARD_PIDS + 1;
	assert_false(nt_gpu_cards_are_sound(&cards));
}

static void the_node_has_the_sums_and_the_worst_card(void **state)
{
	nt_auto(nt_nvml) struct nt_nvml *nvml = NULL;
	struct nt_metric_value metric[NT_GPU_METRICS];
	struct nt_gpu_cards cards;
	size_t n;

	(void)state;
	assert_int_equal(nt_gpu_metrics(NULL, metric), 0);
	/* The third one is idle: its clock is low for that. */
	tell("0 clock 1980\n0 most-clock 1980\n0 reasons 0\n0 temperature 60\n0 power 300000\n"
	     "1 clock 990\n1 most-clock 1980\n1 reasons 64\n1 temperature 91\n1 power 400000\n"
	     "1 thermal 1500000000\n2 clock 210\n2 most-clock 1980\n2 reasons 1\n");
	nvml = open_library();
	nt_nvml_read(nvml, &cards);
	n = nt_gpu_metrics(&cards, metric);
	assert_true(metric_of(metric, n, "gpu_cards") == 3.0);
	assert_true(metric_of(metric, n, "gpu_cards_lost") == 0.0);
	assert_true(metric_of(metric, n, "gpu_clock_least") == 0.5);
	assert_true(metric_of(metric, n, "gpu_cards_held_down") == 1.0);
	assert_true(metric_of(metric, n, "gpu_temperature_celsius") == 91.0);
	assert_true(metric_of(metric, n, "gpu_power_watts") == 700.0);
	assert_true(metric_of(metric, n, "gpu_thermal_seconds") == 1.5);
	/* What no card has is no zero. */
	assert_true(metric_of(metric, n, "gpu_power_capped_seconds") == -1.0);
	assert_true(metric_of(metric, n, "gpu_sm_active") == -1.0);
	for (uint32_t i = 0; i < 2; i++) {
		cards.card[i].known |= UINT32_C(1) << NT_GPU_CARD_SM_ACTIVE |
				       UINT32_C(1) << NT_GPU_CARD_NVLINK_SENT;
		cards.card[i].value[NT_GPU_CARD_SM_ACTIVE] = 500000 * i;
		cards.card[i].value[NT_GPU_CARD_NVLINK_SENT] = 1000;
	}
	n = nt_gpu_metrics(&cards, metric);
	assert_true(metric_of(metric, n, "gpu_sm_active") == 0.25);
	assert_true(metric_of(metric, n, "gpu_nvlink_sent_bytes_per_second") == 2000.0);
}

/* ---- by a worker ----------------------------------------------------------------------------- */

/* Ticks until it has been `reads` times, at most ten seconds. */
static void tick_until(struct nt_gpu_health *health, uint64_t *now_ns, uint64_t reads)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};

	for (int i = 0; i < 1000 && nt_gpu_health_stats(health)->reads < reads; i++) {
		nt_gpu_health_tick(health, *now_ns);
		*now_ns += 1000 * 1000;
		(void)nanosleep(&pause, NULL);
	}
	assert_int_equal(nt_gpu_health_stats(health)->reads, reads);
}

/* Waits until no killed worker is left: another one is not started before. */
static void await_deaths(struct nt_workers *workers)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};

	for (int i = 0; i < 6000 && workers->lefts; i++) {
		(void)nanosleep(&pause, NULL);
		nt_workers_reap(workers);
	}
	assert_int_equal(workers->lefts, 0);
}

static void a_worker_reads_while_the_loop_goes_on(void **state)
{
	struct nt_workers workers = {0};
	nt_auto(nt_gpu_health) struct nt_gpu_health *health = NULL;
	uint64_t now_ns = NT_SECOND;

	(void)state;
	tell("0 clock 1410\n");
	assert_int_equal(nt_gpu_health_new(&workers, NT_GPU_NVIDIA, LIBRARY, &health), 0);
	assert_null(nt_gpu_health_cards(health));
	tick_until(health, &now_ns, 1);
	assert_value(&nt_gpu_health_cards(health)->card[0], NT_GPU_CARD_CLOCK, 1410);
	assert_in_range(nt_gpu_health_begun_ns(health), NT_SECOND, now_ns - 1);
	tell("0 clock 1980\n");
	tick_until(health, &now_ns, 3);
	assert_value(&nt_gpu_health_cards(health)->card[0], NT_GPU_CARD_CLOCK, 1980);
	assert_int_equal(workers.started, 1);
	assert_int_equal(nt_gpu_health_stats(health)->failures, 0);
}

static void one_that_does_not_answer_is_killed_and_tried_again_later(void **state)
{
	struct nt_workers workers = {0};
	nt_auto(nt_gpu_health) struct nt_gpu_health *health = NULL;
	uint64_t now_ns = NT_SECOND;

	(void)state;
	tell("0 temperature 40\nhang 60 0\n");
	assert_int_equal(nt_gpu_health_new(&workers, NT_GPU_NVIDIA, LIBRARY, &health), 0);
	nt_gpu_health_tick(health, now_ns);
	nt_gpu_health_tick(health, now_ns + NT_GPU_HEALTH_STALL_NS - 1);
	assert_int_equal(nt_gpu_health_stats(health)->stalls, 0);
	now_ns += NT_GPU_HEALTH_STALL_NS;
	nt_gpu_health_tick(health, now_ns);
	assert_int_equal(nt_gpu_health_stats(health)->stalls, 1);
	assert_int_equal(workers.killed, 1);
	tell("0 temperature 40\n");
	nt_gpu_health_tick(health, now_ns + NT_GPU_HEALTH_REST_NS - 1);
	assert_int_equal(workers.started, 1);
	await_deaths(&workers);
	now_ns += NT_GPU_HEALTH_REST_NS;
	tick_until(health, &now_ns, 1);
	assert_int_equal(workers.started, 2);
	assert_int_equal(nt_gpu_health_stats(health)->failures, 0);
}

static void one_that_crashes_takes_nothing_along(void **state)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	struct nt_workers workers = {0};
	nt_auto(nt_gpu_health) struct nt_gpu_health *health = NULL;
	uint64_t now_ns = NT_SECOND;

	(void)state;
	tell("0 temperature 40\n");
	assert_int_equal(nt_gpu_health_new(&workers, NT_GPU_NVIDIA, LIBRARY, &health), 0);
	tick_until(health, &now_ns, 1);
	tell("0 temperature 40\ncrash 0 0\n");
	for (int i = 0; i < 1000 && !nt_gpu_health_stats(health)->failures; i++) {
		nt_gpu_health_tick(health, now_ns++);
		(void)nanosleep(&pause, NULL);
	}
	assert_int_equal(nt_gpu_health_stats(health)->failures, 1);
	/* What was read is of no use now. */
	assert_null(nt_gpu_health_cards(health));
	tell("0 temperature 41\n");
	await_deaths(&workers);
	now_ns += NT_GPU_HEALTH_REST_NS;
	tick_until(health, &now_ns, nt_gpu_health_stats(health)->reads + 1);
	assert_value(&nt_gpu_health_cards(health)->card[0], NT_GPU_CARD_TEMPERATURE, 41);
}

static void without_a_library_it_is_rarely_tried(void **state)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	struct nt_workers workers = {0};
	nt_auto(nt_gpu_health) struct nt_gpu_health *health = NULL;
	uint64_t now_ns = NT_SECOND;

	(void)state;
	assert_int_equal(nt_gpu_health_new(&workers, NT_GPU_NVIDIA,
					   "/nonexistent/libnvidia-ml.so.1", &health),
			 0);
	for (int i = 0; i < 1000 && !workers.killed; i++) {
		nt_gpu_health_tick(health, now_ns++);
		(void)nanosleep(&pause, NULL);
	}
	assert_int_equal(workers.killed, 1);
	/* Most nodes have no GPU: that is no failure. */
	assert_int_equal(nt_gpu_health_stats(health)->failures, 0);
	now_ns += NT_GPU_HEALTH_LATE_NS - NT_SECOND;
	nt_gpu_health_tick(health, now_ns);
	assert_int_equal(workers.started, 1);
	await_deaths(&workers);
	nt_gpu_health_tick(health, now_ns + NT_SECOND);
	assert_int_equal(workers.started, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_card_has_is_read),
		cmocka_unit_test(a_temperature_has_two_functions),
		cmocka_unit_test(xids_are_counted_by_card),
		cmocka_unit_test(processes_are_those_of_their_card),
		cmocka_unit_test(what_computes_is_known_from_the_second_reading_on),
		cmocka_unit_test(impossible_values_of_gpm_are_no_values),
		cmocka_unit_test(instances_have_their_cards_health_and_their_own_processes),
		cmocka_unit_test(instances_may_change),
		cmocka_unit_test(instances_over_the_cap_are_counted),
		cmocka_unit_test(a_card_that_fell_off_the_bus_is_lost),
		cmocka_unit_test(cards_over_the_cap_are_counted),
		cmocka_unit_test(what_keeps_it_from_opening_is_stated),
		cmocka_unit_test(values_that_cannot_be_are_not_sound),
		cmocka_unit_test(the_node_has_the_sums_and_the_worst_card),
		cmocka_unit_test(a_worker_reads_while_the_loop_goes_on),
		cmocka_unit_test(one_that_does_not_answer_is_killed_and_tried_again_later),
		cmocka_unit_test(one_that_crashes_takes_nothing_along),
		cmocka_unit_test(without_a_library_it_is_rarely_tried),
	};
	const int fd = mkstemp(path);
	int failed;

	if (fd < 0 || close(fd) < 0 || setenv("SIM_NVML", path, 1) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
