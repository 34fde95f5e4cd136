/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/nodes/fleet_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/ascii.h"
#include "common/base/hash.h"
#include "detect/thresholds/thresholds.h"

enum {
	LATE_MOST = 12, /* older vectors in a row: the node's clock was set back */
};

int nt_fleet_node_new(const char *name, struct nt_fleet_node **ret_node)
{
	struct nt_fleet_node *node = calloc(1, sizeof(*node));

	if (!node)
		return -ENOMEM;
	node->name = strdup(name);
	if (!node->name) {
		free(node);
		return -ENOMEM;
	}
	memset(node->slot, NT_FLEET_NO_METRIC, sizeof(node->slot));
	node->score.is_learning = true;
	*ret_node = node;
	return 0;
}

static void clear_jobs(struct nt_fleet_node *node)
{
	while (node->jobs)
		free(node->job[--node->jobs].key);
}

void nt_fleet_node_free(struct nt_fleet_node *node)
{
	if (!node)
		return;
	clear_jobs(node);
	nt_anomaly_node_free(node->scorer);
	nt_score_history_release(&node->history);
	free(node->name);
	free(node);
}

/* ---- a vector -------------------------------------------------------------------------------- */

/* A run numbers its vectors. Of different runs the clock decides, unless it was set back. */
static bool is_older(const struct nt_fleet_node *node, const struct nt_message *message)
{
	if (!node->seq)
		return false;
	if (message->boot == node->run)
		return message->seq < node->seq;
	return message->real_ns <= node->real_ns && node->late < LATE_MOST;
}

static const char *known_text(const char *text)
{
	return text ? text : "";
}

/* Takes a name of the system. True: it differs from the one known before. */
static bool take_system(char kept[NT_FLEET_SYSTEM_BYTES], const char *given)
{
	char text[NT_FLEET_SYSTEM_BYTES];
	bool differs;

	nt_ascii_copy_text(text, sizeof(text), known_text(given));
	differs = *text && *kept && strcmp(text, kept) != 0;
	if (*text)
		memcpy(kept, text, sizeof(text));
	return differs;
}

/* Whether the node runs on as before; otherwise *ret_reason. */
static bool is_same_system(struct nt_fleet_node *node, const struct nt_message *message,
			   enum nt_fleet_reason *ret_reason)
{
	const bool knew_boot = *node->boot_id && message->node.boot_id && *message->node.boot_id;
	bool rebooted = take_system(node->boot_id, message->node.boot_id);

	/* Without a boot id: the clock since boot began anew. */
	if (!knew_boot && node->seq && message->boot_ns < node->boot_ns)
		rebooted = true;
	if (take_system(node->kernel, message->node.kernel))
		*ret_reason = NT_FLEET_OTHER_KERNEL;
	else if (rebooted)
		*ret_reason = NT_FLEET_REBOOTED;
	else
		return true;
	return false;
}

/* A job counts once for a node, however often the node lists it. The cap limits this search. */
static size_t choose_jobs(const struct nt_node_vector *vector, const char *job[NT_FLEET_JOBS],
			  uint64_t *over_cap)
{
	size_t n = 0;

	for (size_t i = 0; i < vector->jobs; i++) {
		size_t j = 0;

		while (j < n && strcmp(job[j], vector->job[i]) != 0)
			j++;
		if (j == NT_FLEET_JOBS)
			(*over_cap)++;
		else if (j == n)
			job[n++] = vector->job[i];
	}
	return n;
}

static int take_jobs(struct nt_fleet_node *node, const struct nt_node_vector *vector,
		     struct nt_fleet_counters *counters)
{
	const char *job[NT_FLEET_JOBS];
	const size_t jobs = choose_jobs(vector, job, &counters->jobs_over_cap);
	bool same = jobs == node->jobs;

	for (size_t i = 0; same && i < jobs; i++)
		same = strcmp(node->job[i].key, job[i]) == 0;
	if (same)
		return 0;
	clear_jobs(node);
	for (size_t i = 0; i < jobs; i++) {
		char *key = strdup(job[i]);

		if (!key)
			return -ENOMEM;
		node->job[node->jobs++] = (struct nt_fleet_job){
			.key = key,
			.hash = nt_hash_text(NT_HASH_SEED, key),
		};
	}
	return 0;
}

/* The slot of a metric. NT_FLEET_NO_METRIC: it has none. */
static int find_slot(struct nt_fleet_node *node, struct nt_fleet_metrics *metrics,
		     struct nt_fleet_counters *counters, const char *name, uint8_t *ret_slot)
{
	uint8_t number;
	int r;

	r = nt_fleet_metrics_find(metrics, name, &number);
	if (r < 0)
		return r;
	*ret_slot = NT_FLEET_NO_METRIC;
	if (number == NT_FLEET_NO_METRIC || !metrics->at[number].is_scored)
		return 0;
	if (node->slot[number] == NT_FLEET_NO_METRIC && node->metrics < NT_ANOMALY_METRICS_MAX) {
		node->slot[number] = (uint8_t)node->metrics;
		node->number[node->metrics++] = number;
	}
	counters->left_out += node->slot[number] == NT_FLEET_NO_METRIC;
	*ret_slot = node->slot[number];
	return 0;
}

static int take_samples(struct nt_fleet_node *node, struct nt_fleet_metrics *metrics,
			const struct nt_message *message, struct nt_fleet_counters *counters)
{
	const struct nt_node_vector *vector = &message->node;
	const uint64_t gaps = node->minute.gaps, resets = node->minute.resets;

	for (size_t i = 0; i < vector->metrics; i++) {
		uint8_t slot;
		int r = find_slot(node, metrics, counters, vector->metric[i].name, &slot);

		if (r < 0)
			return r;
		if (slot == NT_FLEET_NO_METRIC)
			continue;
		nt_minute_add(&node->minute, slot, metrics->at[node->number[slot]].kind,
			      vector->metric[i].value, message->boot_ns);
	}
	counters->gaps += node->minute.gaps - gaps;
	counters->resets += node->minute.resets - resets;
	return 0;
}

static void forget_counters(struct nt_minute *minute)
{
	for (size_t i = 0; i < NT_ANOMALY_METRICS_MAX; i++)
		minute->metric[i].has_last = false;
}

static void open_minute(struct nt_fleet_node *node, uint64_t real_ns, uint64_t first,
			struct nt_fleet_counters *counters)
{
	uint64_t number = real_ns / NT_ANOMALY_ROW_NS;

	number = number < first ? first : number > first + 1 ? first + 1 : number;
	if (nt_minute_is_over(&node->minute, number * NT_ANOMALY_ROW_NS))
		nt_fleet_node_close(node, number - 1, counters);
	if (!node->minute.number)
		node->minute.number = number;
}

int nt_fleet_node_take(struct nt_fleet_node *node, struct nt_fleet_metrics *metrics,
		       const struct nt_message *message, uint64_t first,
		       struct nt_fleet_counters *counters, bool *ret_restarted)
{
	enum nt_fleet_reason reason = NT_FLEET_NEW;
	int r;

	*ret_restarted = false;
	if (is_older(node, message)) {
		node->late++;
		counters->late++;
		return 0;
	}
	counters->vectors++;
	if (!node->seq && !node->learning_since_ns)
		node->learning_since_ns = message->real_ns;
	if (!is_same_system(node, message, &reason)) {
		*ret_restarted = true;
		nt_fleet_node_restart(node, reason, message->real_ns);
	}
	/* The counters of another run of the agent, or boot, may have begun anew: no growth is known. */
	if (message->boot != node->run || message->boot_ns < node->boot_ns)
		forget_counters(&node->minute);
	node->late = 0;
	node->run = message->boot;
	node->seq = message->seq;
	node->boot_ns = message->boot_ns;
	node->real_ns = message->real_ns;
	node->passed = message->real_ns < NT_ANOMALY_ROW_WAIT_NS
			       ? 0
			       : (message->real_ns - NT_ANOMALY_ROW_WAIT_NS) / NT_ANOMALY_ROW_NS;
	r = take_jobs(node, &message->node, counters);
	if (r < 0)
		return r;
	open_minute(node, message->real_ns, first, counters);
	return take_samples(node, metrics, message, counters);
}

void nt_fleet_node_close(struct nt_fleet_node *node, uint64_t last,
			 struct nt_fleet_counters *counters)
{
	const uint64_t number = node->minute.number;

	if (!number || number > last)
		return;
	counters->rows_lost += node->row_minute != 0;
	nt_minute_close(&node->minute, node->metrics, node->row);
	node->row_minute = number;
}

/* ---- learning -------------------------------------------------------------------------------- */

void nt_fleet_node_restart(struct nt_fleet_node *node, enum nt_fleet_reason reason,
			   uint64_t real_ns)
{
	if (node->scorer)
		nt_anomaly_node_restart(node->scorer);
	node->score = (struct nt_anomaly_score){.is_learning = true};
	node->parts = 0;
	node->refit = 0; /* what is under way is of the past */
	node->minute = (struct nt_minute){0};
	node->row_minute = 0;
	node->spread_rows = 0;
	node->learning_since_ns = real_ns;
	node->reason = reason;
}

enum nt_fleet_state nt_fleet_node_state(const struct nt_fleet_node *node)
{
	if (!node->scorer || node->score.is_learning)
		return NT_FLEET_LEARNING;
	return node->score.is_alarm ? NT_FLEET_ALARM : NT_FLEET_QUIET;
}

size_t nt_fleet_node_bytes(const struct nt_fleet_node *node)
{
	size_t bytes = sizeof(*node) + strlen(node->name) + 1;

	for (size_t i = 0; i < node->jobs; i++)
		bytes += strlen(node->job[i].key) + 1;
	if (node->scorer)
		bytes += nt_anomaly_node_bytes(node->scorer);
	return bytes + nt_score_history_bytes(&node->history);
}

const char *nt_fleet_state_name(enum nt_fleet_state state)
{
	static const char *const names[NT_FLEET_STATE_END] = {
		[NT_FLEET_LEARNING] = "learning",
		[NT_FLEET_QUIET] = "quiet",
		[NT_FLEET_ALARM] = "alarm",
	};

	return names[state];
}

const char *nt_fleet_reason_name(enum nt_fleet_reason reason)
{
	static const char *const names[NT_FLEET_REASON_END] = {
		[NT_FLEET_NEW] = "new",
		[NT_FLEET_REBOOTED] = "rebooted",
		[NT_FLEET_OTHER_KERNEL] = "other-kernel",
		[NT_FLEET_STATE_LOST] = "state-lost",
	};

	return names[reason];
}
