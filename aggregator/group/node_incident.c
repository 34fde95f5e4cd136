/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/node_incident.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "detect/detect.h"
#include "engine/incidents/incident.h"
#include "engine/nodes/node_cause.h"

enum {
	ID_BYTES = 17,
	SUMMARY_BYTES = 512,
};

/* Scores have a tail of shape 1: twice the threshold is exceeded half as often. */
static double confidence_of(const struct nt_fleet *fleet, const struct nt_fleet_node *node)
{
	const double false_alarms = nt_fleet_false_alarms(fleet) * node->score.threshold;

	if (!(node->score.score > 0.0) || false_alarms >= node->score.score)
		return 0.0;
	return 1.0 - false_alarms / node->score.score;
}

static int write_summary(const struct nt_fleet_node *node, const struct nt_node_cause *cause,
			 size_t causes, struct nt_arena *arena, const char **ret_text)
{
	char *text = nt_arena_alloc(arena, SUMMARY_BYTES);
	const char *first = "";
	int r = 0;

	if (!text)
		return -ENOMEM;
	if (causes)
		r = nt_node_cause_text(cause, arena, &first);
	if (r < 0)
		return r;
	if (node->peers)
		(void)snprintf(text, SUMMARY_BYTES, "node %.64s behaves unlike its %zu peers%s%s",
			       node->name, node->peers - 1, *first ? ": " : "", first);
	else
		(void)snprintf(text, SUMMARY_BYTES, "node %.64s behaves unlike before%s%s",
			       node->name, *first ? ": " : "", first);
	for (size_t i = 1; i < causes; i++) {
		const size_t len = strlen(text);

		(void)snprintf(text + len, SUMMARY_BYTES - len, "%s%s", i == 1 ? "; also " : ", ",
			       cause[i].metric);
	}
	*ret_text = text;
	return 0;
}

int nt_node_incident_describe(const struct nt_fleet *fleet, const struct nt_fleet_node *node,
			      const struct nt_node_job *job, enum nt_fleet_change change,
			      uint64_t real_ns, struct nt_arena *arena,
			      struct nt_wire_incident *ret_incident)
{
	const bool has_ended = change == NT_FLEET_ALARM_ENDED;
	struct nt_culprit culprit = {.kind = nt_culprit_kind_name(NT_CULPRIT_NODE),
				     .node = node->name};
	struct nt_wire_evidence evidence[NT_FLEET_TOLD];
	struct nt_node_cause cause[NT_FLEET_TOLD];
	const size_t causes = nt_node_causes(fleet, node, cause);
	char id[ID_BYTES];
	struct nt_wire_incident incident = {
		.id = id,
		.state = nt_incident_state_name(has_ended ? NT_INCIDENT_RESOLVED
							  : NT_INCIDENT_FIRING),
		.severity = nt_severity_name(node->is_critical ? NT_SEVERITY_CRITICAL
							       : NT_SEVERITY_WARNING),
		.class = nt_class_name(NT_CLASS_NODE),
		.cause = causes ? cause[0].metric : "",
		.job = job->name,
		.namespace = job->namespace,
		.job_key = job->key,
		.attempt = job->attempt,
		.culprit = &culprit,
		.culprits = 1,
		.since_real_ns = node->incident_since_ns,
		.until_real_ns = has_ended ? real_ns : 0,
		.seen_real_ns = real_ns,
		.slowdown = 1.0,
		.confidence = confidence_of(fleet, node),
		.completeness = 1.0,
		.tier = NT_TIER_T0,
		.cost = {.gpu_hours_unknown = true, .currency = ""},
		.version = node->incident_version,
		.evidence = evidence,
		.evidences = causes,
	};
	int r = write_summary(node, cause, causes, arena, &incident.summary);

	if (r < 0)
		return r;
	(void)snprintf(id, sizeof(id), "%016" PRIx64, node->incident_id);
	for (size_t i = 0; i < causes; i++)
		evidence[i] = (struct nt_wire_evidence){
			.what = cause[i].metric,
			.unit = cause[i].unit,
			.method = NT_NODE_CAUSE_METHOD,
			.value = cause[i].value,
			.peers = cause[i].usual,
			.width = cause[i].width,
			.windows = 1,
		};
	return nt_incident_copy(&incident, arena, ret_incident);
}
