/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/incidents/incident.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect/model/evidence_text.h"
#include "engine/host/cpu_taker.h"
#include "engine/incidents/incident_summary.h"
#include "engine/stacks/incident_stack.h"
#include "proto/text.h"

enum {
	ID_BYTES = 32,
	TAKER_BYTES = 96,
};

struct nt_prices nt_prices_unknown(void)
{
	return (struct nt_prices){
		.gpu_hour = -1,
		.gpu_watts = -1,
		.co2_kg_per_kwh = -1,
		.currency = "",
	};
}

static const char *text(const char *given)
{
	return given ? given : "";
}

static struct nt_cost cost_of(double gpu_hours, const struct nt_prices *prices)
{
	struct nt_cost cost = {.gpu_hours = gpu_hours, .currency = ""};

	if (gpu_hours < 0)
		return (struct nt_cost){.gpu_hours_unknown = true, .currency = ""};
	if (prices->gpu_hour >= 0) {
		cost.has_money = true;
		cost.money = gpu_hours * prices->gpu_hour;
		cost.currency = text(prices->currency);
	}
	if (prices->gpu_watts >= 0) {
		cost.has_energy = true;
		cost.energy_kwh = gpu_hours * prices->gpu_watts / 1000;
	}
	if (cost.has_energy && prices->co2_kg_per_kwh >= 0) {
		cost.has_co2 = true;
		cost.co2_kg = cost.energy_kwh * prices->co2_kg_per_kwh;
	}
	return cost;
}

static const char *node_name(const struct nt_incident_names *names, uint32_t index)
{
	if (!names->node || index == NT_FRAME_NO_NODE)
		return "";
	return text(names->node(names->data, index));
}

static void name_culprit(const struct nt_finding_culprit *from,
			 const struct nt_incident_names *names, struct nt_culprit *to,
			 enum nt_own_source *own_source)
{
	struct nt_detect_rank_names rank = {0};

	*to = (struct nt_culprit){
		.kind = nt_culprit_kind_name(from->kind),
		.node = node_name(names, from->node),
		/* Borrowed for the copy that follows, which does not write to them. */
		.peers = (uint32_t *)from->peers,
		.peer_count = from->peers ? from->peer_count : 0,
		.ranks = (uint32_t *)from->ranks,
		.rank_count = from->ranks ? from->rank_count : 0,
	};
	if (from->kind == NT_CULPRIT_PATH)
		to->peer = node_name(names, from->peer_node);
	if (from->kind != NT_CULPRIT_RANK)
		return;
	to->rank = from->rank;
	to->has_rank = true;
	if (!names->rank || !names->rank(names->data, from->rank, &rank))
		return;
	if (text(rank.node)[0])
		to->node = rank.node;
	to->pod = rank.pod;
	to->pod_uid = rank.pod_uid;
	to->container = rank.container;
	to->gpu = rank.gpu;
	if (*own_source == NT_OWN_SOURCE_UNKNOWN)
		*own_source = rank.own_source;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Copies borrowed data into the arena, within the limits. */
struct copier {
	struct nt_arena *arena;
	size_t name_bytes; /* limit of one name */
	size_t numbers; /* numbers left */
	int error;
};

static const char *copy_text(struct copier *copier, const char *given, size_t most)
{
	size_t len = strlen(text(given));
	char *copy = nt_arena_alloc(copier->arena, (len < most ? len : most) + 1);

	if (!copy) {
		copier->error = -ENOMEM;
		return "";
	}
	(void)nt_text_clean(text(given), len, copy, most);
	return copy;
}

static void copy_numbers(struct copier *copier, uint32_t **numbers, size_t *count)
{
	size_t copied = *count < copier->numbers ? *count : copier->numbers;
	uint32_t *copy;

	if (copied > NT_WIRE_MAX_CULPRITS)
		copied = NT_WIRE_MAX_CULPRITS;
	copy = nt_arena_alloc(copier->arena, (copied ? copied : 1) * sizeof(*copy));
	if (!copy) {
		copier->error = -ENOMEM;
		return;
	}
	if (copied)
		memcpy(copy, *numbers, copied * sizeof(*copy));
	copier->numbers -= copied;
	*numbers = copy;
	*count = copied;
}

static void copy_culprit(struct copier *copier, struct nt_culprit *culprit)
{
	culprit->kind = copy_text(copier, culprit->kind, copier->name_bytes);
	culprit->node = copy_text(copier, culprit->node, copier->name_bytes);
	culprit->pod = copy_text(copier, culprit->pod, copier->name_bytes);
	culprit->pod_uid = copy_text(copier, culprit->pod_uid, copier->name_bytes);
	culprit->container = copy_text(copier, culprit->container, copier->name_bytes);
	culprit->gpu = copy_text(copier, culprit->gpu, copier->name_bytes);
	culprit->peer = copy_text(copier, culprit->peer, copier->name_bytes);
	culprit->name = copy_text(copier, culprit->name, copier->name_bytes);
	copy_numbers(copier, &culprit->peers, &culprit->peer_count);
	copy_numbers(copier, &culprit->ranks, &culprit->rank_count);
}

/* Copies an array of `count` elements; *thing is the source and then the copy. */
static void copy_array(struct copier *copier, void *array, size_t count, size_t size)
{
	void **thing = array;
	void *copy = nt_arena_alloc(copier->arena, count ? count * size : 1);

	if (!copy) {
		copier->error = -ENOMEM;
		return;
	}
	if (count)
		memcpy(copy, *thing, count * size);
	*thing = copy;
}

int nt_incident_copy(const struct nt_wire_incident *incident, struct nt_arena *arena,
		     struct nt_wire_incident *ret_copy)
{
	struct nt_wire_incident copy = *incident;
	struct copier copier = {
		.arena = arena,
		.name_bytes = NT_INCIDENT_MAX_NAME,
		.numbers = NT_INCIDENT_MAX_NUMBERS,
	};

	if (copy.culprits > NT_INCIDENT_MAX_CULPRITS)
		copy.culprits = NT_INCIDENT_MAX_CULPRITS;
	if (copy.culprits > NT_INCIDENT_MAX_CULPRITS / 4)
		copier.name_bytes = 100;
	copy_array(&copier, &copy.culprit, copy.culprits, sizeof(*copy.culprit));
	copy_array(&copier, &copy.evidence, copy.evidences, sizeof(*copy.evidence));
	copy_array(&copier, &copy.delivery, copy.deliveries, sizeof(*copy.delivery));
	if (copy.stacks > NT_INCIDENT_STACKS)
		copy.stacks = NT_INCIDENT_STACKS;
	copy_array(&copier, &copy.stack, copy.stacks, sizeof(*copy.stack));
	if (copier.error)
		return copier.error;

	for (size_t i = 0; i < copy.culprits; i++)
		copy_culprit(&copier, &copy.culprit[i]);
	for (size_t i = 0; i < copy.evidences; i++) {
		struct nt_wire_evidence *evidence = &copy.evidence[i];

		evidence->what = copy_text(&copier, evidence->what, NT_INCIDENT_MAX_NAME);
		evidence->unit = copy_text(&copier, evidence->unit, NT_INCIDENT_MAX_NAME);
		evidence->method = copy_text(&copier, evidence->method, NT_INCIDENT_MAX_NAME);
	}
	for (size_t i = 0; i < copy.deliveries; i++) {
		struct nt_delivery *delivery = &copy.delivery[i];

		delivery->receiver = copy_text(&copier, delivery->receiver, NT_INCIDENT_MAX_NAME);
		delivery->event = copy_text(&copier, delivery->event, NT_INCIDENT_MAX_NAME);
		delivery->state = copy_text(&copier, delivery->state, NT_INCIDENT_MAX_NAME);
	}
	for (size_t i = 0; i < copy.stacks && !copier.error; i++)
		copier.error =
			nt_rank_stack_copy(&copy.stack[i].stack, arena, &copy.stack[i].stack);
	copy.id = copy_text(&copier, copy.id, NT_INCIDENT_MAX_NAME);
	copy.state = copy_text(&copier, copy.state, NT_INCIDENT_MAX_NAME);
	copy.severity = copy_text(&copier, copy.severity, NT_INCIDENT_MAX_NAME);
	copy.class = copy_text(&copier, copy.class, NT_INCIDENT_MAX_NAME);
	copy.cause = copy_text(&copier, copy.cause, NT_INCIDENT_MAX_NAME);
	copy.job = copy_text(&copier, copy.job, NT_INCIDENT_MAX_NAME);
	copy.namespace = copy_text(&copier, copy.namespace, NT_INCIDENT_MAX_NAME);
	copy.job_key = copy_text(&copier, copy.job_key, NT_INCIDENT_MAX_NAME);
	copy.summary = copy_text(&copier, copy.summary, NT_WIRE_MAX_TEXT);
	copy.cost.currency = copy_text(&copier, copy.cost.currency, NT_INCIDENT_MAX_NAME);
	if (copier.error)
		return copier.error;
	*ret_copy = copy;
	return 0;
}

/* ---- from a finding -------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The detector has its own order of ranks; users expect ascending numbers. */
static void sort_ranks(struct nt_wire_incident *incident)
{
	for (size_t i = 0; i < incident->culprits; i++) {
		struct nt_culprit *culprit = &incident->culprit[i];

		qsort(culprit->peers, culprit->peer_count, sizeof(*culprit->peers), by_number);
		qsort(culprit->ranks, culprit->rank_count, sizeof(*culprit->ranks), by_number);
	}
}

static int name_culprits(const struct nt_finding *finding, const struct nt_incident_names *names,
			 struct nt_arena *arena, struct nt_wire_incident *incident)
{
	const size_t count = finding->culprits < NT_INCIDENT_MAX_CULPRITS
				     ? finding->culprits
				     : NT_INCIDENT_MAX_CULPRITS;
	struct nt_culprit *culprit;

	if (!count)
		return 0;
	culprit = nt_arena_alloc(arena, count * sizeof(*culprit));
	if (!culprit)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		char *name;

		name_culprit(&finding->culprit[i], names, &culprit[i], &incident->own_source);
		if (finding->culprit[i].kind != NT_CULPRIT_COMMUNICATOR)
			continue;
		name = nt_arena_alloc(arena, ID_BYTES);
		if (!name)
			return -ENOMEM;
		(void)snprintf(name, ID_BYTES, "%016" PRIx64, finding->culprit[i].comm);
		culprit[i].name = name;
	}
	incident->culprit = culprit;
	incident->culprits = count;
	return 0;
}

/* 1: the process that took the culprit's CPU is evidence, in the text `what`. */
static size_t name_taker(const struct nt_finding *finding, const struct nt_incident_names *names,
			 char what[TAKER_BYTES], struct nt_wire_evidence *ret_evidence)
{
	struct nt_detect_rank_names rank = {0};
	const struct nt_cpu_taker *taker;
	double part;

	if (!finding->cause ||
	    strcmp(finding->cause, nt_evidence_text(NT_EVIDENCE_TEXT_CPU_CONTENTION)) != 0 ||
	    finding->culprits != 1 || finding->culprit[0].kind != NT_CULPRIT_RANK || !names->rank ||
	    !names->rank(names->data, finding->culprit[0].rank, &rank) || !rank.cpu_takers)
		return 0;
	taker = nt_cpu_takers_main(rank.cpu_takers, &part);
	if (!taker)
		return 0;
	if (taker->pid == rank.cpu_takers->own_pid)
		(void)snprintf(what, TAKER_BYTES, NT_INCIDENT_TAKEN_BY "its own threads");
	else
		(void)snprintf(what, TAKER_BYTES, NT_INCIDENT_TAKEN_BY "'%s' (process %u)",
			       taker->name, taker->pid);
	*ret_evidence = (struct nt_wire_evidence){
		.what = what,
		.unit = nt_evidence_text(NT_EVIDENCE_TEXT_PERCENT),
		.method = nt_evidence_text(NT_EVIDENCE_TEXT_TRACEPOINTS),
		.value = 100.0 * part,
	};
	return 1;
}

/* True if it rests on the own work of the ranks that it accuses. */
static bool has_own_work(const struct nt_finding *finding)
{
	return finding->tier >= NT_FRAME_T2 &&
	       (finding->class == NT_CLASS_COMPUTE || finding->class == NT_CLASS_HOST ||
		finding->class == NT_CLASS_UNKNOWN);
}

/* An incident that ended before it fired stays pending, with an end, and is not shown. */
static const char *name_state(const struct nt_finding *finding)
{
	return nt_incident_state_name(finding->fired ? finding->state : NT_INCIDENT_PENDING);
}

int nt_incident_describe(const struct nt_finding *finding, const struct nt_incident_names *names,
			 const struct nt_prices *prices, struct nt_arena *arena,
			 struct nt_wire_incident *ret_incident)
{
	struct nt_wire_evidence evidence[NT_FINDING_MAX_EVIDENCE + 1];
	char id[ID_BYTES], taker[TAKER_BYTES];
	struct nt_wire_incident incident = {
		.id = id,
		.state = name_state(finding),
		.severity = nt_severity_name(finding->severity),
		.class = nt_class_name(finding->class),
		.cause = finding->cause,
		.job = names->job,
		.namespace = names->namespace,
		.job_key = names->job_key,
		.attempt = names->attempt,
		.since_real_ns = finding->since_ns,
		.until_real_ns = finding->until_ns,
		.seen_real_ns = finding->seen_ns,
		.slowdown = finding->slowdown,
		.confidence = finding->confidence,
		.completeness = finding->completeness,
		.tier = (enum nt_tier)finding->tier,
		.cost = cost_of(finding->gpu_hours, prices),
		.version = finding->version,
		.evidence = evidence,
	};
	int r;

	(void)snprintf(id, sizeof(id), "%016" PRIx64, finding->id);
	while (incident.evidences < finding->evidences &&
	       incident.evidences < NT_FINDING_MAX_EVIDENCE) {
		const struct nt_finding_evidence *from = &finding->evidence[incident.evidences];

		evidence[incident.evidences++] = (struct nt_wire_evidence){
			.what = from->what,
			.unit = from->unit,
			.method = from->method,
			.value = from->value,
			.peers = from->peers,
			.width = from->width,
			.windows = from->windows,
		};
	}
	incident.evidences += name_taker(finding, names, taker, &evidence[incident.evidences]);
	r = name_culprits(finding, names, arena, &incident);
	if (r < 0)
		return r;
	if (!has_own_work(finding))
		incident.own_source = NT_OWN_SOURCE_UNKNOWN;
	/* After this no text is NULL. */
	r = nt_incident_copy(&incident, arena, &incident);
	if (r < 0)
		return r;
	sort_ranks(&incident);
	r = nt_incident_summary_write(finding->class, &incident, arena, &incident.summary);
	if (r < 0)
		return r;
	*ret_incident = incident;
	return 0;
}
