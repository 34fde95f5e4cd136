/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fleet's state: a shared part, and the nodes in portions, as their states are large. */
#include "engine/nodes/fleet_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "detect/thresholds/thresholds.h"

enum {
	STATE_VERSION = 1,
	GRACE_ROWS = 10, /* a saved portion is so much older than the incidents, at most */
};

/* 146 years: beyond any time of a vector. */
#define TIME_MOST_NS (1ULL << 62)

static uint32_t portion_of(const char *name)
{
	return (uint32_t)(nt_hash_mix(nt_hash_text(NT_HASH_SEED, name)) % NT_FLEET_PORTIONS);
}

/* A borrowed text of a fixed size, from a saved one; false after an error. */
static bool get_name(struct nt_codec *codec, char *to, size_t size)
{
	nt_autofree char *text = nt_codec_get_text(codec);

	if (!text)
		return false;
	nt_code_fail(codec, strlen(text) >= size);
	if (codec->error)
		return false;
	memcpy(to, text, strlen(text) + 1);
	return true;
}

/* ---- the shared part ------------------------------------------------------------------------- */

static void put_incident(struct nt_codec *codec, const struct nt_fleet *fleet,
			 const struct nt_fleet_node *node)
{
	nt_codec_put_text(codec, node->name);
	nt_codec_put_u64(codec, node->real_ns);
	nt_codec_put_u64(codec, node->incident_id);
	nt_codec_put_u64(codec, node->incident_since_ns);
	nt_codec_put_u64(codec, node->incident_version);
	nt_codec_put_u64(codec, node->incident_told_ns);
	nt_codec_put_u32(codec, node->is_critical);
	nt_codec_put_u32(codec, (uint32_t)node->incident_parts);
	for (size_t i = 0; i < node->incident_parts; i++) {
		const struct nt_fleet_part *part = &node->incident_part[i];

		nt_codec_put_text(codec, fleet->metrics.at[part->metric].name);
		nt_codec_put_f64(codec, part->share);
		nt_codec_put_f64(codec, part->value);
		nt_codec_put_f64(codec, part->low);
		nt_codec_put_f64(codec, part->high);
		nt_codec_put_f64(codec, part->peers);
	}
}

int nt_fleet_save(const struct nt_fleet *fleet, uint32_t shard, struct nt_buf *buf)
{
	struct nt_alarm_budget budget = fleet->budget;
	struct nt_codec codec = {.out = buf};
	uint32_t open = 0;

	for (const struct nt_fleet_node *node = fleet->node; node; node = node->hh.next)
		open += node->shard == shard && node->incident_id;
	nt_codec_put_u32(&codec, STATE_VERSION);
	nt_codec_put_u64(&codec, fleet->done);
	nt_codec_put_u64(&codec, fleet->lead_ns);
	nt_alarm_budget_code(&codec, &budget);
	nt_codec_put_u32(&codec, open);
	for (const struct nt_fleet_node *node = fleet->node; node; node = node->hh.next)
		if (node->shard == shard && node->incident_id)
			put_incident(&codec, fleet, node);
	return codec.error;
}

static int find_or_add(struct nt_fleet *fleet, const char *name, uint32_t shard,
		       struct nt_fleet_node **ret_node)
{
	int r = 0;

	HASH_FIND_STR(fleet->node, name, *ret_node);
	if (!*ret_node)
		r = nt_fleet_add(fleet, name, ret_node);
	if (r == 0 && *ret_node)
		(*ret_node)->shard = shard;
	return r;
}

static int get_part(struct nt_codec *codec, struct nt_fleet *fleet, struct nt_fleet_node *saved)
{
	char name[NT_ANOMALY_NAME_BYTES];
	struct nt_fleet_part part = {0};
	int r = 0;

	if (get_name(codec, name, sizeof(name)))
		r = nt_fleet_metrics_find(&fleet->metrics, name, &part.metric);
	part.share = nt_codec_get_f64(codec);
	part.value = nt_codec_get_f64(codec);
	part.low = nt_codec_get_f64(codec);
	part.high = nt_codec_get_f64(codec);
	part.peers = nt_codec_get_f64(codec);
	if (r == 0 && !codec->error && part.metric != NT_FLEET_NO_METRIC)
		saved->incident_part[saved->incident_parts++] = part;
	return r;
}

/* The fields of an incident, into a node that is none of the fleet's. */
static int get_fields(struct nt_codec *codec, struct nt_fleet *fleet, struct nt_fleet_node *saved)
{
	uint32_t parts;
	int r = 0;

	saved->real_ns = nt_codec_get_u64(codec);
	saved->incident_id = nt_codec_get_u64(codec);
	saved->incident_since_ns = nt_codec_get_u64(codec);
	saved->incident_version = nt_codec_get_u64(codec);
	saved->incident_told_ns = nt_codec_get_u64(codec);
	saved->is_critical = nt_codec_get_bool(codec);
	parts = nt_codec_get_count(codec, NT_FLEET_TOLD);
	for (uint32_t i = 0; i < parts && !codec->error && r == 0; i++)
		r = get_part(codec, fleet, saved);
	nt_code_fail(codec, !saved->incident_id || saved->real_ns > TIME_MOST_NS ||
				    saved->incident_since_ns > TIME_MOST_NS ||
				    saved->incident_told_ns > TIME_MOST_NS);
	return r;
}

static int get_incident(struct nt_codec *codec, struct nt_fleet *fleet, uint32_t shard)
{
	nt_autofree struct nt_fleet_node *saved = calloc(1, sizeof(*saved));
	char name[NT_WIRE_MAX_TEXT];
	struct nt_fleet_node *node = NULL;
	int r;

	if (!saved)
		return -ENOMEM;
	(void)get_name(codec, name, sizeof(name));
	r = get_fields(codec, fleet, saved);
	if (r < 0 || codec->error)
		return r < 0 ? r : codec->error;
	r = find_or_add(fleet, name, shard, &node);
	if (r < 0 || !node)
		return r;
	if (!node->real_ns)
		node->real_ns = saved->real_ns;
	node->incident_id = saved->incident_id;
	node->incident_since_ns = saved->incident_since_ns;
	node->incident_version = saved->incident_version;
	node->incident_told_ns = saved->incident_told_ns;
	node->is_critical = saved->is_critical;
	memcpy(node->incident_part, saved->incident_part, sizeof(node->incident_part));
	node->incident_parts = saved->incident_parts;
	node->rows_of_grace = GRACE_ROWS;
	return 0;
}

int nt_fleet_load(struct nt_fleet *fleet, uint32_t shard, const void *data, size_t size)
{
	struct nt_codec codec = {.loads = true, .in = data, .in_size = size};
	struct nt_alarm_budget budget = fleet->budget;
	uint64_t done, lead_ns;
	uint32_t open;

	nt_code_fail(&codec, nt_codec_get_u32(&codec) != STATE_VERSION);
	done = nt_codec_get_u64(&codec);
	lead_ns = nt_codec_get_u64(&codec);
	nt_code_fail(&codec, done > TIME_MOST_NS / NT_ANOMALY_ROW_NS || lead_ns > TIME_MOST_NS);
	nt_alarm_budget_code(&codec, &budget);
	open = nt_codec_get_count(&codec, UINT32_MAX);
	if (codec.error)
		return codec.error;
	/* Shards of one fleet have the same budget: the one with more behind it counts. */
	if (budget.rows > fleet->budget.rows)
		fleet->budget = budget;
	if (done > fleet->done)
		fleet->done = done;
	if (lead_ns > fleet->lead_ns)
		fleet->lead_ns = lead_ns;
	for (uint32_t i = 0; i < open; i++) {
		int r = get_incident(&codec, fleet, shard);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int put_node(struct nt_codec *codec, const struct nt_fleet *fleet,
		    const struct nt_fleet_node *node)
{
	nt_autobuf struct nt_buf scorer = {0};
	int r = nt_anomaly_node_save(node->scorer, &scorer);

	if (r < 0)
		return r;
	nt_codec_put_text(codec, node->name);
	nt_codec_put_u64(codec, node->run);
	nt_codec_put_u64(codec, node->seq);
	nt_codec_put_u64(codec, node->boot_ns);
	nt_codec_put_u64(codec, node->real_ns);
	nt_codec_put_text(codec, node->boot_id);
	nt_codec_put_text(codec, node->kernel);
	nt_codec_put_u64(codec, node->scored_ns);
	nt_codec_put_u64(codec, node->learning_since_ns);
	nt_codec_put_u32(codec, node->reason);
	nt_codec_put_u32(codec, node->spread_rows);
	nt_codec_put_u32(codec, (uint32_t)node->metrics);
	for (size_t j = 0; j < node->metrics; j++) {
		nt_codec_put_text(codec, fleet->metrics.at[node->number[j]].name);
		nt_codec_put_f64(codec, (double)node->spread[j]);
		nt_codec_put_f64(codec, (double)node->usual_spread[j]);
	}
	nt_codec_put_bytes(codec, scorer.data, scorer.len);
	return codec->error;
}

int nt_fleet_save_portion(const struct nt_fleet *fleet, uint32_t shard, uint32_t portion,
			  struct nt_buf *buf)
{
	struct nt_codec codec = {.out = buf};
	uint32_t nodes = 0;
	int r = 0;

	for (const struct nt_fleet_node *node = fleet->node; node; node = node->hh.next)
		nodes += node->shard == shard && node->scorer && portion_of(node->name) == portion;
	nt_codec_put_u32(&codec, STATE_VERSION);
	nt_codec_put_u32(&codec, nodes);
	for (const struct nt_fleet_node *node = fleet->node; node && r == 0; node = node->hh.next)
		if (node->shard == shard && node->scorer && portion_of(node->name) == portion)
			r = put_node(&codec, fleet, node);
	r = r < 0 ? r : codec.error;
	return r < 0 ? r : (int)nodes;
}

/* A node as it was saved. */
struct saved_node {
	char name[NT_WIRE_MAX_TEXT];
	char boot_id[NT_FLEET_SYSTEM_BYTES], kernel[NT_FLEET_SYSTEM_BYTES];
	uint64_t run, seq, boot_ns, real_ns, scored_ns, learning_since_ns;
	uint32_t reason, spread_rows, metrics;
	char metric[NT_ANOMALY_METRICS_MAX][NT_ANOMALY_NAME_BYTES];
	double spread[NT_ANOMALY_METRICS_MAX], usual_spread[NT_ANOMALY_METRICS_MAX];
	const void *scorer; /* borrowed of the state */
	size_t size;
};

static void get_node(struct nt_codec *codec, struct saved_node *saved)
{
	(void)get_name(codec, saved->name, sizeof(saved->name));
	saved->run = nt_codec_get_u64(codec);
	saved->seq = nt_codec_get_u64(codec);
	saved->boot_ns = nt_codec_get_u64(codec);
	saved->real_ns = nt_codec_get_u64(codec);
	(void)get_name(codec, saved->boot_id, sizeof(saved->boot_id));
	(void)get_name(codec, saved->kernel, sizeof(saved->kernel));
	saved->scored_ns = nt_codec_get_u64(codec);
	saved->learning_since_ns = nt_codec_get_u64(codec);
	saved->reason = nt_codec_get_count(codec, NT_FLEET_REASON_END - 1);
	saved->spread_rows = nt_codec_get_u32(codec);
	saved->metrics = nt_codec_get_count(codec, NT_ANOMALY_METRICS_MAX);
	for (uint32_t j = 0; j < saved->metrics && !codec->error; j++) {
		(void)get_name(codec, saved->metric[j], NT_ANOMALY_NAME_BYTES);
		saved->spread[j] = nt_codec_get_f64(codec);
		saved->usual_spread[j] = nt_codec_get_f64(codec);
		nt_code_fail(codec, !(saved->spread[j] >= 0.0) ||
					    !nt_anomaly_is_value(saved->spread[j]) ||
					    !(saved->usual_spread[j] >= 0.0) ||
					    !nt_anomaly_is_value(saved->usual_spread[j]));
	}
	nt_code_fail(codec, saved->real_ns > TIME_MOST_NS || saved->scored_ns > TIME_MOST_NS);
	saved->scorer = nt_codec_get_bytes(codec, &saved->size);
}

static int set_metrics(struct nt_fleet *fleet, struct nt_fleet_node *node,
		       const struct saved_node *saved)
{
	for (uint32_t j = 0; j < saved->metrics; j++) {
		uint8_t number;
		int r = nt_fleet_metrics_find(&fleet->metrics, saved->metric[j], &number);

		if (r < 0)
			return r;
		if (number == NT_FLEET_NO_METRIC || !fleet->metrics.at[number].is_scored)
			continue;
		if (node->slot[number] == NT_FLEET_NO_METRIC) {
			if (node->metrics == NT_ANOMALY_METRICS_MAX)
				continue;
			node->slot[number] = (uint8_t)node->metrics;
			node->number[node->metrics++] = number;
		}
		node->spread[node->slot[number]] = (float)saved->spread[j];
		node->usual_spread[node->slot[number]] = (float)saved->usual_spread[j];
	}
	return 0;
}

/* Vectors may have come before the state: then only what was learned is taken. */
static void set_identity(struct nt_fleet_node *node, const struct saved_node *saved)
{
	node->scored_ns = saved->scored_ns;
	node->learning_since_ns = saved->learning_since_ns;
	node->reason = (enum nt_fleet_reason)saved->reason;
	node->spread_rows = saved->spread_rows;
	if (node->seq)
		return;
	node->run = saved->run;
	node->seq = saved->seq;
	node->boot_ns = saved->boot_ns;
	node->real_ns = saved->real_ns;
	memcpy(node->boot_id, saved->boot_id, sizeof(node->boot_id));
	memcpy(node->kernel, saved->kernel, sizeof(node->kernel));
}

/* The node was booted anew, or got another kernel, between the state and its first vector. */
static bool is_other_system(const struct nt_fleet_node *node, const struct saved_node *saved,
			    enum nt_fleet_reason *ret_reason)
{
	if (!node->seq)
		return false;
	*ret_reason = NT_FLEET_OTHER_KERNEL;
	if (*node->kernel && *saved->kernel && strcmp(node->kernel, saved->kernel) != 0)
		return true;
	*ret_reason = NT_FLEET_REBOOTED;
	if (*node->boot_id && *saved->boot_id)
		return strcmp(node->boot_id, saved->boot_id) != 0;
	/* Without a boot id: the clock since boot began anew. */
	return node->boot_ns < saved->boot_ns && node->real_ns >= saved->real_ns;
}

static int set_node(struct nt_fleet *fleet, uint32_t shard, const struct saved_node *saved)
{
	struct nt_anomaly_node *scorer = NULL;
	enum nt_fleet_reason reason = NT_FLEET_STATE_LOST;
	struct nt_fleet_node *node;
	int r = find_or_add(fleet, saved->name, shard, &node);

	if (r < 0 || !node || node->scorer)
		return r;
	if (is_other_system(node, saved, &reason)) {
		nt_fleet_node_restart(node, reason, node->real_ns);
		nt_fleet_note_restart(fleet, node);
		return 0;
	}
	r = nt_anomaly_node_load(&fleet->anomaly, saved->scorer, saved->size, &scorer);
	if (r == -ENOMEM)
		return r;
	set_identity(node, saved);
	if (r < 0) {
		fleet->counters.states_refused++;
		nt_fleet_node_restart(node, NT_FLEET_STATE_LOST, node->real_ns);
		nt_fleet_note_restart(fleet, node);
		return 0;
	}
	node->scorer = scorer;
	return set_metrics(fleet, node, saved);
}

int nt_fleet_load_portion(struct nt_fleet *fleet, uint32_t shard, const void *data, size_t size)
{
	struct nt_codec codec = {.loads = true, .in = data, .in_size = size};
	nt_autofree struct saved_node *saved = calloc(1, sizeof(*saved));
	uint32_t nodes;

	if (!saved)
		return -ENOMEM;
	nt_code_fail(&codec, nt_codec_get_u32(&codec) != STATE_VERSION);
	nodes = nt_codec_get_count(&codec, UINT32_MAX);
	for (uint32_t i = 0; i < nodes && !codec.error; i++) {
		int r;

		get_node(&codec, saved);
		if (codec.error)
			break;
		r = set_node(fleet, shard, saved);
		if (r < 0)
			return r;
	}
	fleet->counters.states_refused += codec.error != 0;
	return codec.error;
}
