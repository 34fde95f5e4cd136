/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Judges NIC counters. */
#include "detect/baseline/nic_counters_judge.h"

#include <math.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/search.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

static struct nt_nic_node_counters *find(const struct nt_nic_counters *counters, uint32_t node,
					 uint32_t *ret_at)
{
	const uint32_t low =
		nt_search_first(0, counters->entries, i, counters->entry[i].node >= node);

	*ret_at = low;
	return low < counters->entries && counters->entry[low].node == node ? &counters->entry[low]
									    : NULL;
}

int nt_nic_counters_add(struct nt_detect *detect, const struct nt_frame_rank *seen)
{
	const uint64_t counted[NT_NIC_COUNTER_KINDS] = {seen->nic_retransmits, seen->nic_errors,
							seen->nic_congestion};
	struct nt_nic_counters *counters = &detect->links.nic_counters;
	struct nt_nic_node_counters *entry;
	uint32_t at;
	int r;

	if (seen->node == NT_FRAME_NO_NODE || !seen->window_ns)
		return 0;
	entry = find(counters, seen->node, &at);
	if (!entry) {
		if (counters->entries == NT_NIC_NODES_MAX) {
			counters->dropped++;
			return 0;
		}
		r = nt_array_room((void **)&counters->entry, &counters->entry_cap,
				  counters->entries, sizeof(*counters->entry));
		if (r < 0)
			return r;
		entry = &counters->entry[at];
		memmove(entry + 1, entry, (counters->entries - at) * sizeof(*entry));
		/* First non-zero counters of the node. */
		*entry = (struct nt_nic_node_counters){
			.node = seen->node,
			.learned = detect->frames > NT_PAST_WINDOWS ? NT_PAST_WINDOWS
								    : (uint32_t)detect->frames - 1};
		counters->entries++;
	}
	if (entry->frame != detect->frames)
		memset(entry->rate, 0, sizeof(entry->rate));
	entry->frame = detect->frames;
	/* All ranks of the node report the same, except for different window starts. */
	for (int i = 0; i < NT_NIC_COUNTER_KINDS; i++)
		entry->rate[i] =
			fmax(entry->rate[i], (double)counted[i] * 1e9 / (double)seen->window_ns);
	return 0;
}

static double limit(const struct nt_nic_node_counters *entry, int kind)
{
	return NT_NIC_COUNTER_TIMES * fmax(0.0, entry->usual[kind]) + NT_NIC_COUNTER_MORE;
}

static void judge(struct nt_detect *detect, struct nt_nic_node_counters *entry)
{
	struct nt_cusum_window window = {.start_ns = detect->start_ns,
					 .frame = detect->frames,
					 .ceiling = NT_CUSUM_CEILING * detect->threshold};

	if (entry->frame != detect->frames)
		memset(entry->rate, 0, sizeof(entry->rate));
	if (entry->learned < NT_PAST_WINDOWS) {
		/* A rise during learning is not part of the baseline. */
		for (int i = 0; i < NT_NIC_COUNTER_KINDS; i++)
			if (entry->learned < NT_PAST_SOME || entry->rate[i] <= limit(entry, i))
				entry->usual[i] = fmax(entry->usual[i], entry->rate[i]);
		if (entry->learned++ < NT_PAST_SOME)
			return;
	}
	for (int i = 0; i < NT_NIC_COUNTER_KINDS; i++)
		window.peer_deviation =
			fmax(window.peer_deviation, entry->rate[i] / limit(entry, i));
	window.z = window.peer_deviation > 1.0 ? detect->rules.z_clip : 0.0;
	window.cost = 1.0; /* the cost is judged elsewhere */
	nt_cusum_add(&entry->level, &detect->rules, &window);
	for (int i = 0; i < NT_NIC_COUNTER_KINDS; i++)
		entry->since[i] = entry->level.windows ? entry->since[i] + entry->rate[i] : 0.0;
}

void nt_nic_counters_judge(struct nt_detect *detect)
{
	struct nt_nic_counters *counters = &detect->links.nic_counters;

	for (uint32_t i = 0; i < counters->entries; i++)
		judge(detect, &counters->entry[i]);
}

/* The mean including the largest window, as counters are read in bursts. */
static double weight(const struct nt_nic_node_counters *entry)
{
	return entry->level.windows ? entry->level.peer_deviation / entry->level.windows : 0.0;
}

/* The period in which rises have the same cause. */
struct span {
	double first_ns, last_ns;
};

/* Whether the counters rose in the period, certain or not yet. */
static bool stirred(const struct nt_nic_node_counters *entry, const struct span *span)
{
	const double onset_ns = (double)entry->level.onset_ns;

	return entry->level.sum > 0.0 && onset_ns >= span->first_ns && onset_ns <= span->last_ns;
}

static bool turned(const struct nt_nic_node_counters *entry, const struct span *span)
{
	/* An abnormal window adds the maximum that the clip allows. */
	const double sure = NT_NIC_COUNTER_WINDOWS * nt_cusum_step();

	return entry->level.sum >= sure && stirred(entry, span);
}

/*
 * The time around the onset. It is extended by nodes that rose soon after one in it, as the onset
 * may have another's time.
 */
static struct span span_of(const struct nt_detect *detect, uint64_t onset_ns)
{
	const struct nt_nic_counters *counters = &detect->links.nic_counters;
	const double window_ns = detect->window_ns;
	const struct span then = {.first_ns = (double)onset_ns - NT_NIC_COUNTER_BEFORE * window_ns,
				  .last_ns = (double)onset_ns + NT_NIC_COUNTER_AFTER * window_ns};
	struct span span = then;

	for (uint32_t i = 0; i < counters->entries; i++)
		if (turned(&counters->entry[i], &then))
			span.last_ns =
				fmax(span.last_ns, (double)counters->entry[i].level.onset_ns +
							   NT_NIC_COUNTER_AFTER * window_ns);
	return span;
}

bool nt_nic_counters_name(const struct nt_detect *detect, uint64_t onset_ns,
			  struct nt_culprit_link *ret_link)
{
	const struct nt_nic_counters *counters = &detect->links.nic_counters;
	struct nt_culprit_link link = {.node = NT_FRAME_NO_NODE, .peer = NT_FRAME_NO_NODE};
	const struct span span = span_of(detect, onset_ns);
	double most = 0.0;
	uint32_t n = 0;

	/* Wait for the node that counts most: it is chance if its peers are certain sooner. */
	for (uint32_t i = 0; i < counters->entries; i++)
		if (stirred(&counters->entry[i], &span))
			most = fmax(most, weight(&counters->entry[i]));
	for (uint32_t i = 0; i < counters->entries && most > 0.0; i++) {
		const struct nt_nic_node_counters *entry = &counters->entry[i];

		if (!turned(entry, &span) || weight(entry) < NT_NIC_COUNTER_LIKE * most)
			continue;
		if (n == 0)
			link.node = entry->node;
		else
			link.peer = entry->node;
		n++;
	}
	if (n < 1 || n > 2)
		return false;
	link.kind = n == 1 ? NT_CULPRIT_NIC : NT_CULPRIT_PATH;
	*ret_link = link;
	return true;
}

bool nt_nic_counters_rose(const struct nt_detect *detect, uint32_t node,
			  struct nt_nic_counter_account *ret_account)
{
	uint32_t at;
	const struct nt_nic_node_counters *entry = find(&detect->links.nic_counters, node, &at);
	struct nt_nic_counter_account account = {.kind = NT_NIC_COUNTER_RETRANSMITS};

	if (!entry || !entry->level.windows)
		return false;
	for (int i = 1; i < NT_NIC_COUNTER_KINDS; i++)
		if (entry->since[i] / limit(entry, i) >
		    entry->since[account.kind] / limit(entry, (int)account.kind))
			account.kind = (enum nt_nic_counter_kind)i;
	account.rate = entry->since[account.kind] / entry->level.windows;
	account.usual = entry->usual[account.kind];
	account.windows = entry->level.windows;
	if (account.rate <= account.usual)
		return false;
	*ret_account = account;
	return true;
}
