/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/nodes/node_cause.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	TEXT_BYTES = 192,
};

#define LEAST_TIMES 1.5 /* a smaller ratio is not stated as one */
#define MOST_TIMES  1e4 /* of nearly nothing: not stated as a ratio either */

static void write_unit(const struct nt_fleet_metric *metric, char unit[NT_NODE_CAUSE_UNIT])
{
	const bool is_rate = metric->kind != NT_MINUTE_GAUGE;

	(void)snprintf(unit, NT_NODE_CAUSE_UNIT, "%.28s%s", metric->unit,
		       is_rate && *metric->unit ? "/s" : "");
}

size_t nt_node_causes(const struct nt_fleet *fleet, const struct nt_fleet_node *node,
		      struct nt_node_cause ret_cause[NT_FLEET_TOLD])
{
	const struct nt_fleet_metrics *metrics = nt_fleet_metrics(fleet);
	size_t n = 0;

	if (!node->incident_id && !node->is_noted)
		return 0;
	for (; n < node->incident_parts; n++) {
		const struct nt_fleet_part *part = &node->incident_part[n];
		const bool has_peers = isfinite(part->peers), has_range = isfinite(part->low);
		struct nt_node_cause *cause = &ret_cause[n];

		*cause = (struct nt_node_cause){
			.metric = metrics->at[part->metric].name,
			.value = part->value,
			.usual = has_peers                 ? part->peers
				 : !has_range              ? 0.0
				 : part->value > part->low ? part->high
							   : part->low,
			.width = has_range ? part->high - part->low : 0.0,
			.has_peers = has_peers,
		};
		write_unit(&metrics->at[part->metric], cause->unit);
	}
	return n;
}

int nt_node_cause_text(const struct nt_node_cause *cause, struct nt_arena *arena,
		       const char **ret_text)
{
	const char *than = cause->has_peers ? "its peers'" : "its usual most";
	const double times = cause->usual > 0.0 ? cause->value / cause->usual : 0.0;
	char *text = nt_arena_alloc(arena, TEXT_BYTES);

	if (!text)
		return -ENOMEM;
	if (times >= LEAST_TIMES && times <= MOST_TIMES)
		(void)snprintf(text, TEXT_BYTES, "%s is %.3g times %s (%.3g%s%s)", cause->metric,
			       times, than, cause->value, *cause->unit ? " " : "", cause->unit);
	else
		(void)snprintf(text, TEXT_BYTES, "%s is %.3g%s%s, %s %.3g", cause->metric,
			       cause->value, *cause->unit ? " " : "", cause->unit,
			       cause->has_peers ? "its peers'" : "usually", cause->usual);
	*ret_text = text;
	return 0;
}

/* ---- joined with a verdict ------------------------------------------------------------------- */

/* Classes whose cause a node's metrics may be. */
static bool is_explained(const struct nt_wire_incident *incident)
{
	static const char *const classes[] = {"compute", "network", "host",
					      "storage", "hang",    "unknown"};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strcmp(incident->class, classes[i]) == 0)
			return true;
	return false;
}

/* Of the first accused node with an alarm; the others have incidents of their own. */
static size_t find_causes(const struct nt_fleet *fleet, const struct nt_wire_incident *incident,
			  const char **ret_node, struct nt_node_cause cause[NT_FLEET_TOLD])
{
	for (size_t i = 0; i < incident->culprits; i++) {
		const char *name = incident->culprit[i].node;
		const struct nt_fleet_node *node = *name ? nt_fleet_find(fleet, name) : NULL;
		const size_t causes = node ? nt_node_causes(fleet, node, cause) : 0;

		*ret_node = name;
		if (causes)
			return causes;
	}
	return 0;
}

static int copy_in(struct nt_arena *arena, const char *text, const char **ret_copy)
{
	const size_t size = strlen(text) + 1;
	char *copy = nt_arena_alloc(arena, size);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, size);
	*ret_copy = copy;
	return 0;
}

/* The evidence of the verdict, then that of the node. */
static int join_evidence(struct nt_wire_incident *incident, const struct nt_node_cause *cause,
			 size_t causes, struct nt_arena *arena)
{
	struct nt_wire_evidence *evidence =
		nt_arena_alloc(arena, (incident->evidences + causes) * sizeof(*evidence));
	size_t n = incident->evidences;
	int r = 0;

	if (!evidence)
		return -ENOMEM;
	if (n)
		memcpy(evidence, incident->evidence, n * sizeof(*evidence));
	for (size_t i = 0; i < causes && r == 0; i++, n++) {
		evidence[n] = (struct nt_wire_evidence){
			.method = NT_NODE_CAUSE_METHOD,
			.value = cause[i].value,
			.peers = cause[i].usual,
			.width = cause[i].width,
			.windows = 1,
		};
		r = copy_in(arena, cause[i].metric, &evidence[n].what);
		if (r == 0)
			r = copy_in(arena, cause[i].unit, &evidence[n].unit);
	}
	if (r < 0)
		return r;
	incident->evidence = evidence;
	incident->evidences = n;
	return 0;
}

static int join_summary(struct nt_wire_incident *incident, const char *node, const char *text,
			struct nt_arena *arena)
{
	char *summary = nt_arena_alloc(arena, NT_WIRE_MAX_TEXT);

	if (!summary)
		return -ENOMEM;
	/* It is cut at the end, if a summary is as long as that. */
	(void)snprintf(summary, NT_WIRE_MAX_TEXT, "%.700s; on its node %.64s %.192s",
		       incident->summary, node, text);
	incident->summary = summary;
	return 0;
}

int nt_node_cause_join(const struct nt_fleet *fleet, struct nt_wire_incident *incident,
		       struct nt_arena *arena)
{
	struct nt_node_cause cause[NT_FLEET_TOLD];
	struct nt_wire_incident joined = *incident;
	const char *node = "", *text;
	size_t causes;
	int r;

	if (!is_explained(incident))
		return 0;
	causes = find_causes(fleet, incident, &node, cause);
	if (!causes)
		return 0;
	r = nt_node_cause_text(cause, arena, &text);
	if (r == 0)
		r = join_evidence(&joined, cause, causes, arena);
	if (r == 0)
		r = join_summary(&joined, node, text, arena);
	if (r == 0 && !*joined.cause)
		r = copy_in(arena, cause[0].metric, &joined.cause);
	if (r < 0)
		return r;
	*incident = joined;
	return 1;
}
