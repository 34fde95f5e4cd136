/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gpu_metrics.h"

/* How the cards' values become the node's. Those of MIG instances are their cards'. */
enum of_cards {
	SUM,
	LARGEST,
	MEAN,
};

#define SHARE (1.0 / NT_GPU_CARD_WHOLE)

static const struct {
	const char *name;
	enum nt_gpu_card_value value;
	enum of_cards of;
	double unit;
} table[] = {
	{"gpu_temperature_celsius", NT_GPU_CARD_TEMPERATURE, LARGEST, 1.0},
	{"gpu_power_watts", NT_GPU_CARD_POWER, SUM, 1e-3},
	{"gpu_memory_used_bytes", NT_GPU_CARD_MEMORY_USED, SUM, 1.0},
	{"gpu_power_capped_seconds", NT_GPU_CARD_POWER_CAPPED, SUM, 1e-9},
	{"gpu_thermal_seconds", NT_GPU_CARD_THERMAL, SUM, 1e-9},
	{"gpu_ecc_corrected", NT_GPU_CARD_CORRECTED, SUM, 1.0},
	{"gpu_ecc_uncorrected", NT_GPU_CARD_UNCORRECTED, SUM, 1.0},
	{"gpu_rows_remapped", NT_GPU_CARD_REMAPPED, SUM, 1.0},
	{"gpu_pcie_replays", NT_GPU_CARD_PCIE_REPLAYS, SUM, 1.0},
	{"gpu_nvlink_errors", NT_GPU_CARD_NVLINK_ERRORS, SUM, 1.0},
	{"gpu_xids", NT_GPU_CARD_XIDS, SUM, 1.0},
	{"gpu_sm_active", NT_GPU_CARD_SM_ACTIVE, MEAN, SHARE},
	{"gpu_sm_occupancy", NT_GPU_CARD_SM_OCCUPANCY, MEAN, SHARE},
	{"gpu_tensor_active", NT_GPU_CARD_TENSOR_ACTIVE, MEAN, SHARE},
	{"gpu_memory_bandwidth_used", NT_GPU_CARD_DRAM_ACTIVE, MEAN, SHARE},
	{"gpu_pcie_sent_bytes_per_second", NT_GPU_CARD_PCIE_SENT, SUM, 1.0},
	{"gpu_pcie_received_bytes_per_second", NT_GPU_CARD_PCIE_RECEIVED, SUM, 1.0},
	{"gpu_nvlink_sent_bytes_per_second", NT_GPU_CARD_NVLINK_SENT, SUM, 1.0},
	{"gpu_nvlink_received_bytes_per_second", NT_GPU_CARD_NVLINK_RECEIVED, SUM, 1.0},
};

enum {
	TABLE = sizeof(table) / sizeof(table[0]),
	OTHERS = 7, /* metrics that are no row */
	HELD = NT_GPU_REASON_POWER_CAP | NT_GPU_REASON_HARDWARE | NT_GPU_REASON_THERMAL |
	       NT_GPU_REASON_HARDWARE_THERMAL | NT_GPU_REASON_POWER_BRAKE,
};

_Static_assert(TABLE + OTHERS <= NT_GPU_METRICS, "room for all");

static bool gather(const struct nt_gpu_cards *cards, size_t row, double *ret_value)
{
	uint32_t known = 0;

	*ret_value = 0.0;
	for (uint32_t i = 0; i < cards->count; i++) {
		uint64_t value;
		double scaled;

		if (cards->card[i].is_instance ||
		    !nt_gpu_card_get(&cards->card[i], table[row].value, &value))
			continue;
		scaled = (double)value * table[row].unit;
		if (table[row].of != LARGEST)
			*ret_value += scaled;
		else if (!known || scaled > *ret_value)
			*ret_value = scaled;
		known++;
	}
	if (known && table[row].of == MEAN)
		*ret_value /= known;
	return known > 0;
}

/* The lowest clock of a card that works, as a part of its possible one; and cards held down. */
static bool find_held(const struct nt_gpu_cards *cards, double *ret_least, double *ret_held)
{
	bool any = false;

	*ret_least = 1.0;
	*ret_held = 0.0;
	for (uint32_t i = 0; i < cards->count; i++) {
		const struct nt_gpu_card *card = &cards->card[i];
		uint64_t clock, most, reasons;

		if (card->is_instance || !nt_gpu_card_get(card, NT_GPU_CARD_CLOCK, &clock) ||
		    !nt_gpu_card_get(card, NT_GPU_CARD_CLOCK_MOST, &most) || !most ||
		    !nt_gpu_card_get(card, NT_GPU_CARD_REASONS, &reasons))
			continue;
		any = true;
		*ret_held += (reasons & HELD) != 0;
		if (!(reasons & NT_GPU_REASON_IDLE) && (double)clock < *ret_least * (double)most)
			*ret_least = (double)clock / (double)most;
	}
	return any;
}

/* Processes of which it is not known that they are on a card. */
static double count_unknown(const struct nt_gpu_cards *cards)
{
	double unknown = 0.0;

	for (uint32_t i = 0; i < cards->count; i++)
		unknown += cards->card[i].pids_over_cap;
	return unknown;
}

size_t nt_gpu_metrics(const struct nt_gpu_cards *cards,
		      struct nt_metric_value ret_metric[NT_GPU_METRICS])
{
	double value, held, instances = 0.0;
	size_t n = 0;

	if (!cards)
		return 0;
	for (uint32_t i = 0; i < cards->count; i++)
		instances += cards->card[i].is_instance != 0;
	ret_metric[n++] = (struct nt_metric_value){"gpu_cards", cards->count - instances};
	ret_metric[n++] = (struct nt_metric_value){"gpu_mig_instances", instances};
	ret_metric[n++] = (struct nt_metric_value){"gpu_cards_lost", cards->lost};
	ret_metric[n++] = (struct nt_metric_value){"gpu_cards_over_cap", cards->over_cap};
	ret_metric[n++] = (struct nt_metric_value){"gpu_processes_over_cap", count_unknown(cards)};
	if (find_held(cards, &value, &held)) {
		ret_metric[n++] = (struct nt_metric_value){"gpu_clock_least", value};
		ret_metric[n++] = (struct nt_metric_value){"gpu_cards_held_down", held};
	}
	for (size_t i = 0; i < TABLE; i++)
		if (gather(cards, i, &value))
			ret_metric[n++] = (struct nt_metric_value){table[i].name, value};
	return n;
}
