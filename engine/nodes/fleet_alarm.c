/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Alarms of nodes: one incident from the first row of an alarm to its end. */
#include "engine/nodes/fleet_impl.h"

#include "common/base/hash.h"
#include "detect/thresholds/thresholds.h"

static void tell(struct nt_fleet *fleet, struct nt_fleet_node *node, enum nt_fleet_change change,
		 uint64_t real_ns)
{
	node->incident_version++;
	node->incident_told_ns = real_ns;
	node->incident_leading = node->parts ? node->part[0].metric : NT_FLEET_NO_METRIC;
	if (fleet->handler.alarm)
		fleet->handler.alarm(fleet->handler.data, node, change, real_ns);
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
	else if (is_alarm && node->incident_id && node->parts &&
		 node->part[0].metric != node->incident_leading &&
		 real_ns - node->incident_told_ns >= NT_ANOMALY_TELL_NS)
		tell(fleet, node, NT_FLEET_ALARM_CHANGED, real_ns);
	else if (!is_alarm && node->incident_id && node->rows_of_grace)
		node->rows_of_grace--;
	else if (!is_alarm && node->incident_id)
		nt_fleet_alarm_end(fleet, node, real_ns);
}
