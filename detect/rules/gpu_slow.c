/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/rules/gpu_slow.h"

#include <math.h>

#include "detect/incidents/incident_raise.h"
#include "detect/incidents/incident_retire.h"
#include "detect/math/stats.h"
#include "detect/model/detector_state.h"
#include "detect/thresholds/thresholds.h"

/* Values of one step, ns, and parts of the time. */
struct measure {
	double step, sm, tensor;
	double held[NT_GPU_HELD_END];
};

/* A rank's measures while the steps were as usual, and since they are longer. */
struct change {
	struct measure before, since;
	double sm; /* growth, ns */
	double tensor; /* growth, of its own */
};

/* The columns of these values of a role's ranks. */
enum {
	SM_GROWTH,
	TENSOR_GROWTH,
	SM,
	TENSOR,
	HELD, /* and the others of NT_GPU_HELD_END */
};

static const struct {
	enum nt_evidence_text cause, what;
} held[NT_GPU_HELD_END] = {
	[NT_GPU_HELD_HARDWARE] = {NT_EVIDENCE_TEXT_GPU_HARDWARE, NT_EVIDENCE_TEXT_HELD_HARDWARE},
	[NT_GPU_HELD_THERMAL] = {NT_EVIDENCE_TEXT_GPU_THERMAL, NT_EVIDENCE_TEXT_HELD_THERMAL},
	[NT_GPU_HELD_POWER] = {NT_EVIDENCE_TEXT_GPU_POWER, NT_EVIDENCE_TEXT_HELD_POWER},
};

static bool measure(const struct nt_gpu_span *span, struct measure *ret_measure)
{
	if (span->known_ns < NT_GPU_KNOWN_NS || span->steps <= 0.0 || span->window_ns <= 0.0)
		return false;
	ret_measure->step = span->step_ns / span->steps;
	ret_measure->sm = span->sm_ns / span->known_ns * ret_measure->step;
	ret_measure->tensor = span->tensor_ns / span->known_ns * ret_measure->step;
	for (int i = 0; i < NT_GPU_HELD_END; i++)
		ret_measure->held[i] = span->held_ns[i] / span->window_ns;
	return ret_measure->step > 0.0;
}

/* False: it is not known, or its tensor cores do too little to be compared. */
static bool find_change(const struct nt_detect_rank *rank, struct change *ret_change)
{
	if (rank->ended || !measure(&rank->gpu_before, &ret_change->before) ||
	    !measure(&rank->gpu_since, &ret_change->since) ||
	    ret_change->before.tensor < NT_GPU_TENSOR_LEAST * ret_change->before.step)
		return false;
	ret_change->sm = ret_change->since.sm - ret_change->before.sm;
	ret_change->tensor = ret_change->since.tensor / ret_change->before.tensor - 1.0;
	return true;
}

/*
 * False: nothing is known. The median of two lies between them, so that neither explains half of the
 * longer step by its distance from it: of two ranks none is named.
 */
static bool find_medians(struct nt_detect *detect, const struct nt_group *group,
			 struct change *ret_median)
{
	double *const *column = detect->scratch.column;
	struct change change;
	uint32_t n = 0;

	for (uint32_t i = 0; i < group->members; i++) {
		if (!find_change(&detect->rank[detect->roles.member[group->first + i]], &change))
			continue;
		column[SM_GROWTH][n] = change.sm;
		column[TENSOR_GROWTH][n] = change.tensor;
		column[SM][n] = change.since.sm;
		column[TENSOR][n] = change.since.tensor;
		for (int j = 0; j < NT_GPU_HELD_END; j++)
			column[HELD + j][n] = change.since.held[j];
		n++;
	}
	if (!n)
		return false;
	ret_median->sm = nt_stats_median_of(column[SM_GROWTH], n);
	ret_median->tensor = nt_stats_median_of(column[TENSOR_GROWTH], n);
	ret_median->since.sm = nt_stats_median_of(column[SM], n);
	ret_median->since.tensor = nt_stats_median_of(column[TENSOR], n);
	for (int j = 0; j < NT_GPU_HELD_END; j++)
		ret_median->since.held[j] = nt_stats_median_of(column[HELD + j], n);
	return true;
}

/* What held the clock down since, and neither before nor on the peers; NT_GPU_HELD_END: nothing. */
static enum nt_gpu_held find_held(const struct change *change, const struct change *median)
{
	enum nt_gpu_held at = 0;

	while (at < NT_GPU_HELD_END &&
	       change->since.held[at] - fmax(change->before.held[at], median->since.held[at]) <
		       NT_EXPLAINS)
		at++;
	return at;
}

/* Whether the rank's GPU explains the longer step. *ret_held: what holds its clock down. */
static bool is_slow(const struct nt_detect *detect, const struct nt_detect_rank *rank,
		    const struct change *median, struct change *ret_change,
		    enum nt_gpu_held *ret_held)
{
	double longer;

	/* At higher tiers its own work is known, and decides. */
	if (!rank->known || rank->tier > NT_FRAME_T1 || !find_change(rank, ret_change))
		return false;
	longer = ret_change->since.step - ret_change->before.step;
	if (longer < NT_WIDE_TIMES * detect->rules.size_floor * ret_change->since.step ||
	    ret_change->sm - median->sm < NT_EXPLAINS * longer ||
	    ret_change->tensor - median->tensor < NT_GPU_CLOCK * longer / ret_change->before.step)
		return false;
	*ret_held = find_held(ret_change, median);
	return *ret_held < NT_GPU_HELD_END;
}

static void add_row(struct nt_proposal *proposal, enum nt_evidence_text what, double value,
		    double peers, uint32_t windows)
{
	proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
		.what = (uint8_t)what,
		.unit = NT_EVIDENCE_TEXT_MS,
		.method = NT_EVIDENCE_TEXT_RATIO,
		.value = value / 1e6,
		.peers = peers / 1e6,
		.windows = windows,
	};
}

/* Of several slow ranks that of the one whose tensor cores slowed down most. */
static void add_evidence(struct nt_proposal *proposal, const struct change *change,
			 const struct change *median, enum nt_gpu_held at, uint32_t windows)
{
	proposal->evidences = 0;
	proposal->cause = held[at].cause;
	proposal->cost = 1.0 - change->before.step / change->since.step;
	add_row(proposal, NT_EVIDENCE_TEXT_TENSOR, change->since.tensor, median->since.tensor,
		windows);
	add_row(proposal, NT_EVIDENCE_TEXT_SM, change->since.sm, median->since.sm, windows);
	add_row(proposal, held[at].what, change->since.held[at] * change->since.step,
		median->since.held[at] * change->since.step, windows);
}

/* Lists the slow ranks, ascending, in scratch. */
static uint32_t find_slow(struct nt_detect *detect, struct nt_proposal *proposal)
{
	uint32_t *slow = detect->scratch.index, n = 0;
	const struct nt_detect_incident *open = nt_incidents_find(detect, NT_FAMILY_GPU, 0);
	uint32_t windows = detect->step.level.windows;
	double most = 0.0;

	if (open && open->evidence[0].windows > windows)
		windows = open->evidence[0].windows;
	for (uint32_t i = 0; i < detect->ranks; i++)
		detect->scratch.label[i] = 0;
	for (uint32_t i = 0; i < detect->roles.groups; i++) {
		const struct nt_group *group = &detect->roles.group[i];
		struct change median;
		const bool is_known = find_medians(detect, group, &median);

		for (uint32_t j = 0; is_known && j < group->members; j++) {
			const uint32_t index = detect->roles.member[group->first + j];
			struct change change;
			enum nt_gpu_held at;

			if (!is_slow(detect, &detect->rank[index], &median, &change, &at))
				continue;
			detect->scratch.label[index] = 1;
			if (change.tensor > most)
				add_evidence(proposal, &change, &median, at, windows);
			most = fmax(most, change.tensor);
		}
	}
	for (uint32_t i = 0; i < detect->ranks; i++)
		if (detect->scratch.label[i])
			slow[n++] = detect->rank[i].rank;
	return n;
}

/* Whether another incident explains that the steps are longer. */
static bool is_explained(const struct nt_detect *detect)
{
	for (uint32_t i = 0; i < detect->incidents.opens; i++) {
		const struct nt_detect_incident *incident = detect->incidents.open[i];

		if (incident->family == NT_FAMILY_GPU || incident->family == NT_FAMILY_UNDECIDED)
			continue;
		/* That the job is slower, and nothing else, is no explanation. */
		if (incident->family != NT_FAMILY_JOB_WIDE ||
		    incident->evidence[0].what != NT_EVIDENCE_TEXT_STEP)
			return true;
	}
	return false;
}

int nt_gpu_slow_check(struct nt_detect *detect, const struct nt_frame *frame)
{
	const struct nt_detect_incident *open = nt_incidents_find(detect, NT_FAMILY_GPU, 0);
	const struct nt_detect_step *step = &detect->step;
	const struct nt_cusum *level = &step->level;
	const double longer = (step->step_ns - step->past.value_centre) / fmax(1.0, step->step_ns);
	struct nt_proposal proposal = {
		.family = NT_FAMILY_GPU,
		.class = NT_CLASS_COMPUTE,
		.kind = NT_CULPRIT_RANK,
		.rank = detect->scratch.index,
		.onset_ns = level->onset_ns,
		.tier = NT_FRAME_T1,
		.chance = nt_cusum_chance(level->sum, &detect->rules, 1.0, 1.0),
	};

	(void)frame;
	if (step->round_steps <= 0.0)
		return 0;
	if (is_explained(detect))
		return open ? nt_incidents_close(detect, NT_FAMILY_GPU) : 0;
	if (!open && (level->sum < NT_WIDE_TIMES * detect->threshold || !nt_cusum_lasts(level)))
		return 0;
	if (open)
		proposal.chance = fmin(proposal.chance, open->chance);
	if (longer >= detect->rules.size_floor)
		proposal.ranks = find_slow(detect, &proposal);
	/* What lasts after its GPU has recovered has another reason. */
	nt_incidents_judge(detect, NT_FAMILY_GPU, 0, proposal.ranks ? longer : 0.0);
	return proposal.ranks ? nt_incidents_raise(detect, &proposal) : 0;
}
