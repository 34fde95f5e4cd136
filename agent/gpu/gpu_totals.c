/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/gpu/gpu_totals.h"

#include <string.h>

/* A second; a link has a thousandth of it. */
static const uint64_t MOST_BYTES = UINT64_C(1000000000000000);

static uint64_t value_of(const struct nt_gpu_card *card, enum nt_gpu_card_value at)
{
	uint64_t value = 0;

	return nt_gpu_card_get(card, at, &value) ? value : 0;
}

/* A counter that is smaller began again at zero: the driver was loaded, or the worker replaced. */
static uint64_t grown(const struct nt_gpu_card *last, const struct nt_gpu_card *card,
		      enum nt_gpu_card_value at)
{
	uint64_t before = 0, now = 0;

	if (!nt_gpu_card_get(last, at, &before) || !nt_gpu_card_get(card, at, &now))
		return 0;
	return now >= before ? now - before : now;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * How much of the time since the last reading the clock was held down: by the driver's counter,
 * which some drivers leave at zero, or if the reading states the reason.
 */
static uint64_t held(const struct nt_gpu_card *last, const struct nt_gpu_card *card,
		     uint64_t reasons, enum nt_gpu_card_value counter, uint64_t gap_ns)
{
	const bool is_held = value_of(card, NT_GPU_CARD_REASONS) & reasons;

	return larger(is_held ? gap_ns : 0, smaller(grown(last, card, counter), gap_ns));
}

/* The part of the time, of a share that the driver states as the mean of it. */
static uint64_t part_of(const struct nt_gpu_card *card, enum nt_gpu_card_value share,
			uint64_t gap_ns)
{
	return smaller(value_of(card, share), NT_GPU_CARD_WHOLE) * gap_ns / NT_GPU_CARD_WHOLE;
}

static uint64_t moved(const struct nt_gpu_card *card, enum nt_gpu_card_value sent,
		      enum nt_gpu_card_value received, uint64_t gap_ns)
{
	const double rate = (double)smaller(value_of(card, sent), MOST_BYTES) +
			    (double)smaller(value_of(card, received), MOST_BYTES);

	return (uint64_t)(rate * ((double)gap_ns / (double)NT_SECOND));
}

static void add_activity(struct nt_gpu_total *total, const struct nt_gpu_card *card,
			 uint64_t gap_ns)
{
	uint64_t ignored;

	if (!nt_gpu_card_get(card, NT_GPU_CARD_SM_ACTIVE, &ignored))
		return;
	total->activity_ns += gap_ns;
	total->sm_ns += part_of(card, NT_GPU_CARD_SM_ACTIVE, gap_ns);
	total->occupancy_ns += part_of(card, NT_GPU_CARD_SM_OCCUPANCY, gap_ns);
	total->tensor_ns += part_of(card, NT_GPU_CARD_TENSOR_ACTIVE, gap_ns);
	total->dram_ns += part_of(card, NT_GPU_CARD_DRAM_ACTIVE, gap_ns);
	total->nvlink_bytes +=
		moved(card, NT_GPU_CARD_NVLINK_SENT, NT_GPU_CARD_NVLINK_RECEIVED, gap_ns);
	total->pcie_bytes += moved(card, NT_GPU_CARD_PCIE_SENT, NT_GPU_CARD_PCIE_RECEIVED, gap_ns);
}

static void add(struct nt_gpu_total *total, const struct nt_gpu_card *last,
		const struct nt_gpu_card *card, uint64_t gap_ns)
{
	total->thermal_ns +=
		held(last, card, NT_GPU_REASON_THERMAL | NT_GPU_REASON_HARDWARE_THERMAL,
		     NT_GPU_CARD_THERMAL, gap_ns);
	total->power_ns +=
		held(last, card, NT_GPU_REASON_POWER_CAP, NT_GPU_CARD_POWER_CAPPED, gap_ns);
	/* The hardware states its reason, too, where that is a temperature. */
	if (value_of(card, NT_GPU_CARD_REASONS) & NT_GPU_REASON_POWER_BRAKE ||
	    (value_of(card, NT_GPU_CARD_REASONS) &
	     (NT_GPU_REASON_HARDWARE | NT_GPU_REASON_HARDWARE_THERMAL)) == NT_GPU_REASON_HARDWARE)
		total->hardware_ns += gap_ns;
	total->uncorrected += grown(last, card, NT_GPU_CARD_UNCORRECTED);
	total->xids += grown(last, card, NT_GPU_CARD_XIDS);
	/* A worker that was replaced has seen none yet. */
	if (value_of(card, NT_GPU_CARD_LAST_XID))
		total->last_xid = (uint32_t)value_of(card, NT_GPU_CARD_LAST_XID);
	add_activity(total, card, gap_ns);
	total->clock_mhz = (uint32_t)value_of(card, NT_GPU_CARD_CLOCK);
	total->most_clock_mhz = (uint32_t)value_of(card, NT_GPU_CARD_CLOCK_MOST);
	total->celsius = (uint32_t)value_of(card, NT_GPU_CARD_TEMPERATURE);
	total->memory_used = value_of(card, NT_GPU_CARD_MEMORY_USED);
	total->memory_total = value_of(card, NT_GPU_CARD_MEMORY_TOTAL);
}

/* The place of a card: its own, a free one, or that of a card which this reading does not have. */
static uint32_t find_place(struct nt_gpu_totals *totals, const struct nt_gpu_cards *cards,
			   const char *id)
{
	for (uint32_t i = 0; i < totals->count; i++)
		if (strcmp(totals->card[i].id, id) == 0)
			return i;
	if (totals->count < NT_GPU_CARDS)
		return totals->count++;
	for (uint32_t i = 0; i < totals->count; i++) {
		bool is_gone = true;

		for (uint32_t j = 0; j < cards->count; j++)
			is_gone = is_gone && strcmp(totals->card[i].id, cards->card[j].id) != 0;
		if (is_gone)
			return i;
	}
	return 0; /* two cards of one name: there are at most NT_GPU_CARDS of them */
}

static bool has(const struct nt_gpu_card *card, uint32_t pid)
{
	for (uint32_t i = 0; i < card->pids; i++)
		if (card->pid[i] == pid)
			return true;
	return false;
}

/* Remembers the processes that the card has no longer. now: NULL: the card is gone. */
static void part(struct nt_gpu_totals_card *card, const struct nt_gpu_card *now, uint64_t now_ns)
{
	for (uint32_t i = 0; i < card->last.pids; i++) {
		if (now && has(now, card->last.pid[i]))
			continue;
		card->former[card->formers++ % NT_GPU_CARD_PIDS] = (struct nt_gpu_former){
			.pid = card->last.pid[i], .until_ns = now_ns + NT_GPU_TOTALS_KEPT_NS};
	}
	card->last.pids = card->last.pids_over_cap = 0;
	card->is_here = false;
}

static bool had(const struct nt_gpu_totals_card *card, uint32_t pid, uint64_t now_ns)
{
	for (uint32_t i = 0; i < NT_GPU_CARD_PIDS; i++)
		if (card->former[i].pid == pid && now_ns < card->former[i].until_ns)
			return true;
	return false;
}

static const struct nt_gpu_card *find_card(const struct nt_gpu_cards *cards, const char *id)
{
	for (uint32_t i = 0; i < cards->count; i++)
		if (strcmp(cards->card[i].id, id) == 0)
			return &cards->card[i];
	return NULL;
}

void nt_gpu_totals_add(struct nt_gpu_totals *totals, const struct nt_gpu_cards *cards,
		       uint64_t now_ns)
{
	const uint64_t since_ns = now_ns - totals->read_ns,
		       gap_ns = totals->read_ns && since_ns <= NT_GPU_TOTALS_GAP_NS ? since_ns : 0;

	for (uint32_t i = 0; i < totals->count; i++)
		part(&totals->card[i], find_card(cards, totals->card[i].id), now_ns);
	for (uint32_t i = 0; i < cards->count; i++) {
		const struct nt_gpu_card *card = &cards->card[i];
		const uint32_t at = find_place(totals, cards, card->id);

		if (strcmp(totals->card[at].id, card->id) != 0) {
			memset(&totals->card[at], 0, sizeof(totals->card[at]));
			memcpy(totals->card[at].id, card->id, sizeof(card->id));
		} else {
			add(&totals->card[at].total, &totals->card[at].last, card, gap_ns);
		}
		totals->card[at].last = *card;
		totals->card[at].is_here = true;
	}
	totals->read_ns = now_ns;
}

/* A process may state any UUID: a card whose processes are known is not its own by that. */
static bool was_given(const struct nt_gpu_totals_card *card, const char *gpu)
{
	return !card->last.pids && !card->last.pids_over_cap && strcmp(card->id, gpu) == 0;
}

enum by {
	BY_PROCESS,
	BY_FORMER_PROCESS,
	BY_UUID,
};

static bool is_of(const struct nt_gpu_totals *totals, uint32_t at, uint32_t pid, const char *gpu,
		  enum by by)
{
	const struct nt_gpu_totals_card *card = &totals->card[at];

	switch (by) {
	case BY_PROCESS:
		return has(&card->last, pid);
	case BY_FORMER_PROCESS:
		return had(card, pid, totals->read_ns);
	case BY_UUID:
		return card->is_here && was_given(card, gpu);
	}
	return false;
}

/* Adds up the cards of the process. */
static bool add_up(const struct nt_gpu_totals *totals, uint32_t pid, const char *gpu, enum by by,
		   struct nt_gpu_total *ret_total)
{
	bool found = false;

	*ret_total = (struct nt_gpu_total){0};
	for (uint32_t i = 0; i < totals->count; i++) {
		const struct nt_gpu_total *total = &totals->card[i].total;
		const char *model = totals->card[i].last.model;

		if (!is_of(totals, i, pid, gpu, by))
			continue;
		ret_total->thermal_ns = larger(ret_total->thermal_ns, total->thermal_ns);
		ret_total->power_ns = larger(ret_total->power_ns, total->power_ns);
		ret_total->hardware_ns = larger(ret_total->hardware_ns, total->hardware_ns);
		ret_total->uncorrected += total->uncorrected;
		ret_total->xids += total->xids;
		if (total->last_xid)
			ret_total->last_xid = total->last_xid;
		ret_total->activity_ns += total->activity_ns;
		ret_total->sm_ns += total->sm_ns;
		ret_total->occupancy_ns += total->occupancy_ns;
		ret_total->tensor_ns += total->tensor_ns;
		ret_total->dram_ns += total->dram_ns;
		ret_total->nvlink_bytes += total->nvlink_bytes;
		ret_total->pcie_bytes += total->pcie_bytes;
		/* The slowest one: all of its cards wait for it. */
		if (!found || total->clock_mhz < ret_total->clock_mhz) {
			ret_total->clock_mhz = total->clock_mhz;
			ret_total->most_clock_mhz = total->most_clock_mhz;
		}
		ret_total->celsius =
			total->celsius > ret_total->celsius ? total->celsius : ret_total->celsius;
		ret_total->memory_used += total->memory_used;
		ret_total->memory_total += total->memory_total;
		ret_total->cards++;
		if (!found)
			memcpy(ret_total->model, model, sizeof(ret_total->model));
		else if (strcmp(ret_total->model, model) != 0)
			*ret_total->model = '\0';
		found = true;
	}
	return found;
}

bool nt_gpu_totals_get(const struct nt_gpu_totals *totals, uint32_t pid, const char *gpu,
		       struct nt_gpu_total *ret_total)
{
	return add_up(totals, pid, NULL, BY_PROCESS, ret_total) ||
	       add_up(totals, pid, NULL, BY_FORMER_PROCESS, ret_total) ||
	       (gpu && *gpu && add_up(totals, pid, gpu, BY_UUID, ret_total));
}

enum nt_gpu_shared nt_gpu_totals_shared(const struct nt_gpu_totals *totals, uint32_t pid,
					uint32_t other)
{
	bool is_known = false, other_is_known = false;

	for (uint32_t i = 0; i < totals->count; i++) {
		const bool is_here = has(&totals->card[i].last, pid);
		const bool other_is_here = has(&totals->card[i].last, other);

		if (is_here && other_is_here)
			return NT_GPU_SHARED_YES;
		is_known |= is_here;
		other_is_known |= other_is_here;
	}
	return is_known && other_is_known ? NT_GPU_SHARED_NO : NT_GPU_SHARED_UNKNOWN;
}
