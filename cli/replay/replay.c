/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/replay/replay.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli/replay/long_stall.h"
#include "common/base/hash.h"
#include "detect/model/evidence_text.h"
#include "detect/thresholds/thresholds.h"
#include "engine/incidents/incident.h"
#include "proto/arena.h"
#include "proto/text.h"

enum {
	MAX_INCIDENTS = 1 << 16,
};

static void free_detect(struct nt_detect **detect)
{
	nt_detect_free(*detect);
}

int nt_judgement_new(struct nt_judgement **ret_judgement)
{
	*ret_judgement = calloc(1, sizeof(**ret_judgement));
	return *ret_judgement ? 0 : -ENOMEM;
}

void nt_judgement_free(struct nt_judgement *judgement)
{
	if (!judgement)
		return;
	for (size_t i = 0; i < judgement->incidents; i++)
		nt_arena_release(&judgement->judged[i].arena);
	free(judgement->judged);
	free(judgement->job);
	nt_windows_free(judgement->windows);
	free(judgement);
}

int nt_judgement_watch(struct nt_judgement *judgement, const struct nt_rules *rules)
{
	assert(!judgement->windows);
	return nt_windows_new(rules, &judgement->windows);
}

/* Finds the incident's older version, or adds a new entry at the end. */
static int place(struct nt_judgement *judgement, const char *id, struct nt_judged **ret_judged)
{
	struct nt_judged *list;

	for (size_t i = 0; i < judgement->incidents; i++) {
		if (strcmp(judgement->judged[i].incident.id, id) == 0) {
			*ret_judged = &judgement->judged[i];
			return 0;
		}
	}
	if (judgement->incidents == MAX_INCIDENTS)
		return -E2BIG;
	list = reallocarray(judgement->judged, judgement->incidents + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	judgement->judged = list;
	list[judgement->incidents] = (struct nt_judged){0};
	*ret_judged = &list[judgement->incidents++];
	return 0;
}

int nt_judgement_add(struct nt_judgement *judgement, const struct nt_wire_incident *incident)
{
	struct nt_judged copy = {0}, *judged = NULL;
	int r;

	if (strcmp(incident->state, "pending") == 0)
		return 0;
	r = nt_incident_copy(incident, &copy.arena, &copy.incident);
	r = r ?: place(judgement, incident->id, &judged);
	if (r < 0) {
		nt_arena_release(&copy.arena);
		return r;
	}
	assert(judged);
	nt_arena_release(&judged->arena);
	*judged = copy;
	return 0;
}

int nt_judgement_add_job(struct nt_judgement *judgement, const char *name, const char *key,
			 const struct nt_coverage *coverage)
{
	struct nt_judged_job *job = reallocarray(judgement->job, judgement->jobs + 1, sizeof(*job));

	if (!job)
		return -ENOMEM;
	judgement->job = job;
	job += judgement->jobs++;
	*job = (struct nt_judged_job){.coverage = *coverage};
	(void)nt_text_clean(name, strlen(name), job->name, sizeof(job->name) - 1);
	(void)nt_text_clean(key, strlen(key), job->key, sizeof(job->key) - 1);
	return 0;
}

static const char *name_node(void *data, uint32_t index)
{
	const struct nt_trace *trace = data;

	return index < trace->nodes ? trace->node[index].name : NULL;
}

static int add_findings(struct nt_judgement *judgement, const struct nt_trace *trace,
			const struct nt_finding *finding, size_t findings)
{
	const struct nt_incident_names names = {.job = trace->job,
						.namespace = "",
						.job_key = trace->job,
						.attempt = 1,
						.node = name_node,
						.data = (void *)trace};
	const struct nt_prices prices = nt_prices_unknown();

	for (size_t i = 0; i < findings; i++) {
		nt_autoarena struct nt_arena arena = {0};
		struct nt_wire_incident incident = {0};
		int r;

		r = nt_incident_describe(&finding[i], &names, &prices, &arena, &incident);
		if (r < 0)
			return r;
		r = nt_judgement_add(judgement, &incident);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * A recording is judged once. False alarms are rare among recordings, not among days: a day holds
 * many short ones.
 */
static double false_alarms_a_day(const struct nt_trace *trace, double at_least)
{
	const struct nt_trace_frame *frame = trace->frame;
	double days;

	if (!trace->frames || frame[trace->frames - 1].frame.end_ns <= frame[0].frame.start_ns)
		return at_least;
	days = (double)(frame[trace->frames - 1].frame.end_ns - frame[0].frame.start_ns) / 86400e9;
	return fmax(at_least, NT_RECORDING_FALSE_ALARMS / days);
}

/*
 * A live window holds a second of steps, one of a recording a single step: what is over for as many windows
 * is over.
 */
static uint64_t resolve_after_ns(const struct nt_trace *trace, uint64_t at_most)
{
	const struct nt_trace_frame *frame = trace->frame;
	double length;

	if (!trace->frames || frame[trace->frames - 1].frame.end_ns <= frame[0].frame.start_ns)
		return at_most;
	length = (double)(frame[trace->frames - 1].frame.end_ns - frame[0].frame.start_ns) /
		 (double)trace->frames;
	return (uint64_t)fmin((double)at_most, length * ((double)at_most / 1e9));
}

/* Whether an incident accuses the rank at that time, so that a note on it says nothing new. */
static bool is_accused(const struct nt_judgement *judgement, const struct nt_long_stall *stall)
{
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_wire_incident *incident = &judgement->judged[i].incident;

		if (incident->since_real_ns >= stall->until_ns ||
		    (incident->until_real_ns && incident->until_real_ns <= stall->since_ns))
			continue;
		for (size_t j = 0; j < incident->culprits; j++)
			if (strcmp(incident->culprit[j].kind, "rank") == 0 &&
			    incident->culprit[j].rank == stall->rank)
				return true;
	}
	return false;
}

/* As the note that a live job gets while its ranks wait for one that works. */
static int note_stalls(struct nt_judgement *judgement, const struct nt_trace *trace,
		       const struct nt_rules *rules)
{
	struct nt_long_stall stall[NT_LONG_STALL_MAX];
	size_t stalls = 0;
	int r = nt_long_stall_find(trace, rules, stall, &stalls);

	for (size_t i = 0; i < stalls && r == 0; i++) {
		const struct nt_finding_culprit culprit = {
			.kind = NT_CULPRIT_RANK, .rank = stall[i].rank, .node = stall[i].node};
		const struct nt_finding finding = {
			.id = nt_hash_u64(nt_hash_text(NT_HASH_SEED, "stall"), stall[i].rank),
			.state = NT_INCIDENT_RESOLVED,
			.fired = true,
			.class = NT_CLASS_HOST,
			.severity = NT_SEVERITY_INFO,
			.cause = nt_evidence_text(NT_EVIDENCE_TEXT_SLOW_HOST),
			.culprit = &culprit,
			.culprits = 1,
			.since_ns = stall[i].since_ns,
			.until_ns = stall[i].until_ns,
			.seen_ns = stall[i].until_ns,
			.gpu_hours = -1.0,
			.tier = NT_FRAME_T2,
			.confidence = 1.0,
			.completeness = 1.0,
			.evidence = {{.what = "host work of one step, the longest",
				      .unit = nt_evidence_text(NT_EVIDENCE_TEXT_MS),
				      .method = nt_evidence_text(NT_EVIDENCE_TEXT_WITNESS),
				      .value = stall[i].host_ns / 1e6,
				      .peers = stall[i].peers_ns / 1e6,
				      .windows = stall[i].steps}},
			.evidences = 1,
			.version = 1,
		};

		if (!is_accused(judgement, &stall[i]))
			r = add_findings(judgement, trace, &finding, 1);
	}
	return r;
}

int nt_replay_trace(const struct nt_trace *trace, const struct nt_rules *rules,
		    struct nt_judgement *judgement)
{
	const struct nt_windows_names names = {.name = trace->job,
					       .key = trace->job,
					       .attempt = 1,
					       .node = name_node,
					       .data = (void *)trace};
	__attribute__((cleanup(free_detect))) struct nt_detect *detect = NULL;
	struct nt_rules own = *rules;
	struct nt_coverage coverage = {0};
	const struct nt_finding *open;
	size_t opens;
	int r;

	own.false_alarms_a_day = false_alarms_a_day(trace, own.false_alarms_a_day);
	own.resolve_min_ns = resolve_after_ns(trace, own.resolve_min_ns);
	if (trace->hangs)
		own.young_ns = 0;
	r = nt_detect_new(&own, nt_hash_text(NT_HASH_SEED, trace->job), 1, &detect);
	if (r < 0)
		return r;
	for (size_t i = 0; i < trace->frames; i++) {
		const struct nt_finding *finding = NULL;
		size_t findings = 0;

		r = nt_detect_step(detect, &trace->frame[i].frame, &finding, &findings);
		if (r == 0 && judgement->windows)
			r = nt_windows_add(judgement->windows, &names, detect,
					   &trace->frame[i].frame);
		if (r < 0)
			return r;
		r = add_findings(judgement, trace, finding, findings);
		if (r < 0)
			return r;
		nt_coverage_add(&coverage, &own, detect, &trace->frame[i].frame);
	}
	/* Judging a hang needs neither steps nor peers. */
	r = trace->hangs ? 0 : nt_judgement_add_job(judgement, trace->job, trace->job, &coverage);
	if (r < 0)
		return r;
	r = nt_detect_finish(detect, &open, &opens);
	r = r ?: add_findings(judgement, trace, open, opens);
	r = r ?: nt_detect_remark(detect, &open, &opens);
	r = r ?: add_findings(judgement, trace, open, opens);
	if (r < 0)
		return r;
	/* The cost of an open incident has not been reported yet. */
	nt_detect_open(detect, &open, &opens);
	r = add_findings(judgement, trace, open, opens);
	return r ?: note_stalls(judgement, trace, rules);
}
