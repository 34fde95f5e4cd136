/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Alarms of nodes: one incident from the first row of an alarm to its end. */
#include "engine/nodes/fleet_impl.h"

#include <math.h>
#include <string.h>

#include "common/base/hash.h"
#include "detect/thresholds/thresholds.h"

/* What stands out now; a small share says nothing. */
static void set_told(struct nt_fleet_node *node)
{
	node->incident_parts = 0;
	for (size_t i = 0; i < node->parts && node->incident_parts < NT_FLEET_TOLD; i++)
		if (isfinite(node->part[i].value) &&
		    (!node->incident_parts || node->part[i].share >= NT_ANOMALY_TOLD_SHARE))
			node->incident_part[node->incident_parts++] = node->part[i];
}

static void tell(struct nt_fleet *fleet, struct nt_fleet_node *node, enum nt_fleet_change change,
		 uint64_t real_ns)
{
	if (change != NT_FLEET_ALARM_ENDED)
		set_told(node);
	node->incident_version++;
	node->incident_told_ns = real_ns;
	if (fleet->handler.alarm)
		fleet->handler.alarm(fleet->handler.data, node, change, real_ns);
}

static bool is_led_by_another(const struct nt_fleet_node *node)
{
	return node->parts &&
	       (!node->incident_parts || node->part[0].metric != node->incident_part[0].metric);
}

static void raise_alarm(struct nt_fleet *fleet, struct nt_fleet_node *node, uint64_t real_ns)
{
	const uint64_t rows_ns = (uint64_t)fleet->anomaly.alarm.rows * NT_ANOMALY_ROW_NS;

	/* The rows over the threshold that the alarm waited for. */
	node->incident_since_ns = real_ns > rows_ns ? real_ns - rows_ns : 0;
	node->incident_id = nt_hash_mix(nt_hash_u64(nt_hash_text(NT_HASH_SEED, node->name),
						    node->incident_since_ns)) |
			    1;
	node->incident_version = 0;
	node->is_critical = false;
	fleet->counters.alarms++;
	tell(fleet, node, NT_FLEET_ALARM_RAISED, real_ns);
}

void nt_fleet_alarm_end(struct nt_fleet *fleet, struct nt_fleet_node *node, uint64_t real_ns)
{
	if (!node->incident_id)
		return;
	tell(fleet, node, NT_FLEET_ALARM_ENDED, real_ns);
	node->incident_id = 0;
	node->rows_of_grace = 0;
}

void nt_fleet_alarm_look(struct nt_fleet *fleet, struct nt_fleet_node *node)
{
	const uint64_t real_ns = node->scored_ns;
	const bool is_alarm = nt_fleet_node_state(node) == NT_FLEET_ALARM;

	if (is_alarm)
		node->rows_of_grace = 0;
	if (is_alarm && !node->incident_id)
		raise_alarm(fleet, node, real_ns);
	else if (is_alarm && node->incident_id && is_led_by_another(node) &&
		 real_ns - node->incident_told_ns >= NT_ANOMALY_TELL_NS)
		tell(fleet, node, NT_FLEET_ALARM_CHANGED, real_ns);
	else if (!is_alarm && node->incident_id && node->rows_of_grace)
		node->rows_of_grace--;
	else if (!is_alarm && node->incident_id)
		nt_fleet_alarm_end(fleet, node, real_ns);
}

void nt_fleet_join(struct nt_fleet *fleet, const char *name)
{
	struct nt_fleet_node *node;

	HASH_FIND_STR(fleet->node, name, node);
	if (!node || !node->incident_id || node->is_critical)
		return;
	node->is_critical = true;
	tell(fleet, node, NT_FLEET_ALARM_CHANGED, node->scored_ns);
}

int nt_fleet_note_alarm(struct nt_fleet *fleet, const struct nt_wire_incident *incident)
{
	const bool is_open = strcmp(incident->state, "firing") == 0;
	struct nt_fleet_node *node;

	if (strcmp(incident->class, "node") != 0 || incident->culprits != 1)
		return 0;
	HASH_FIND_STR(fleet->node, incident->culprit[0].node, node);
	if (!node || node->scorer)
		return 0;
	node->is_noted = is_open;
	node->incident_parts = 0;
	for (size_t i = 0; is_open && i < incident->evidences && i < NT_FLEET_TOLD; i++) {
		const struct nt_wire_evidence *evidence = &incident->evidence[i];
		struct nt_fleet_part part = {
			.value = evidence->value,
			.low = evidence->peers - evidence->width,
			.high = evidence->peers,
			.peers = evidence->peers,
		};
		int r = nt_fleet_metrics_find(&fleet->metrics, evidence->what, &part.metric);

		if (r < 0)
			return r;
		if (part.metric != NT_FLEET_NO_METRIC)
			node->incident_part[node->incident_parts++] = part;
	}
	return 0;
}
