/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/replay/coverage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "detect/thresholds/thresholds.h"

enum {
	NOTE_BYTES = 512,
};

/*
 * A rank that is far behind adds at most the clip to its sum in each window. Its finding becomes
 * pending in the window that reaches the threshold, and fires at the end of the recording.
 */
static uint32_t count_needed(const struct nt_rules *rules, double threshold)
{
	return (uint32_t)ceil(threshold / (rules->z_clip - rules->drift));
}

/* Whether the ranks call collectives, whose transfers are compared with their own past alone. */
static bool has_collectives(const struct nt_frame *frame)
{
	for (size_t i = 0; i < frame->ranks; i++)
		for (size_t j = 0; j < frame->rank[i].comms; j++) {
			const struct nt_frame_comm *comm = &frame->rank[i].comm[j];

			for (size_t k = 0; comm->size > 1 && k < comm->ops; k++)
				if (comm->op[k].kind == NT_FRAME_SYNCHRONISING ||
				    comm->op[k].kind == NT_FRAME_ALL_TO_ALL)
					return true;
		}
	return false;
}

/* A leader of each window is no verdict: in a few windows some rank may be one by chance. */
static void note_leader(struct nt_coverage_leader *leader, const struct nt_detect *detect,
			const struct nt_frame *frame)
{
	const double step_ns = fmax(1.0, nt_detect_step_ns(detect));
	struct nt_detect_rank_view most = {0}, view;
	double excess = NT_UNEVEN_PART * step_ns;
	uint32_t rank = 0;
	bool has_steps = false;

	for (size_t i = 0; i < frame->ranks; i++) {
		has_steps |= frame->rank[i].steps > 0;
		if (!frame->rank[i].steps || !nt_detect_rank(detect, frame->rank[i].rank, &view) ||
		    !view.own_observable || view.peer_count < 2 || view.own_peers_ns <= 0.0 ||
		    view.own_ns - view.own_peers_ns < excess)
			continue;
		excess = view.own_ns - view.own_peers_ns;
		rank = frame->rank[i].rank;
		most = view;
	}
	if (!has_steps)
		return;
	if (!most.peer_count || (leader->windows && leader->rank != rank))
		leader->none = true;
	if (leader->none)
		return;
	leader->rank = rank;
	leader->peers = (uint32_t)most.peer_count;
	leader->windows++;
	leader->ratio += most.own_ns / most.own_peers_ns;
}

void nt_coverage_add(struct nt_coverage *coverage, const struct nt_rules *rules,
		     const struct nt_detect *detect, const struct nt_frame *frame)
{
	/* Once all ranks can be judged, that stays so: nothing to update. */
	const bool settled = coverage->needed && !coverage->alone && !coverage->few &&
			     !coverage->blind && coverage->ranks >= frame->ranks;
	double threshold = 0.0;

	if (frame->ranks > coverage->ranks)
		coverage->ranks = (uint32_t)frame->ranks;
	coverage->network = coverage->network || has_collectives(frame);
	for (size_t i = 0; i < frame->ranks; i++)
		coverage->stepped += frame->rank[i].steps > 0;
	if (!coverage->leader.none && coverage->leader.windows <= coverage->needed)
		note_leader(&coverage->leader, detect, frame);
	if (settled)
		return;
	coverage->alone = coverage->few = coverage->blind = 0;
	for (size_t i = 0; i < frame->ranks; i++) {
		struct nt_detect_rank_view view = {0};

		if (!nt_detect_rank(detect, frame->rank[i].rank, &view))
			continue;
		coverage->alone += view.peer_count == 0;
		coverage->few += view.peer_count > 0 && view.peer_count < NT_FEW_PEERS;
		coverage->blind += !view.own_observable;
		threshold = fmax(threshold, view.threshold);
	}
	if (threshold > 0.0)
		coverage->needed = count_needed(rules, threshold);
}

void nt_coverage_restart(struct nt_coverage *coverage)
{
	*coverage = (struct nt_coverage){.most = nt_coverage_windows(coverage)};
}

uint64_t nt_coverage_windows(const struct nt_coverage *coverage)
{
	const uint64_t now = coverage->ranks ? coverage->stepped / coverage->ranks : 0;

	return now > coverage->most ? now : coverage->most;
}

bool nt_coverage_is_short(const struct nt_coverage *coverage)
{
	const uint64_t windows = nt_coverage_windows(coverage);

	return windows == 0 || windows < coverage->needed;
}

static bool is_history_short(const struct nt_coverage *coverage)
{
	return nt_coverage_windows(coverage) < NT_PAST_WINDOWS + coverage->needed;
}

/* Two populations are reported once they last as long as learning a history takes. */
static bool lacks_past(const struct nt_coverage *coverage)
{
	return coverage->few && is_history_short(coverage);
}

/* Of transfers; that no rank can be judged either is said first. */
static bool lacks_network(const struct nt_coverage *coverage)
{
	return coverage->network && !nt_coverage_is_short(coverage) && is_history_short(coverage);
}

bool nt_coverage_is_enough(const struct nt_coverage *coverage)
{
	return !nt_coverage_is_short(coverage) &&
	       (!coverage->ranks || coverage->alone + coverage->few < coverage->ranks ||
		!is_history_short(coverage));
}

bool nt_coverage_is_whole(const struct nt_coverage *coverage)
{
	return !nt_coverage_is_short(coverage) && !coverage->alone && !coverage->blind &&
	       !lacks_past(coverage) && !lacks_network(coverage);
}

static int say_short(const struct nt_coverage *coverage, const char *prefix, const char *unit,
		     nt_coverage_note_fn *take, void *data)
{
	const uint64_t windows = nt_coverage_windows(coverage);
	const struct nt_coverage_leader *leader = &coverage->leader;
	char note[NOTE_BYTES], seen[128] = "";

	if (!leader->none && leader->windows && leader->windows >= windows)
		(void)snprintf(seen, sizeof(seen),
			       "; rank %u works %.0f %% longer than its %u peers in all of them",
			       leader->rank, 100.0 * (leader->ratio / leader->windows - 1.0),
			       leader->peers);
	else if (coverage->ranks > 2)
		(void)snprintf(seen, sizeof(seen),
			       "; --windows lists the ranks that deviate in them");
	if (windows)
		(void)snprintf(note, sizeof(note),
			       "%s%" PRIu64 " %s%s: at least %u are needed to name a culprit%s",
			       prefix, windows, unit, windows == 1 ? "" : "s", coverage->needed,
			       seen);
	else
		(void)snprintf(note, sizeof(note),
			       "%sno %s holds a whole step of every rank: no rank was judged",
			       prefix, unit);
	return take(data, note);
}

static int say_alone(const struct nt_coverage *coverage, const char *prefix, const char *unit,
		     nt_coverage_note_fn *take, void *data)
{
	char note[NOTE_BYTES], who[64];

	if (coverage->ranks == 1)
		(void)snprintf(who, sizeof(who), "one rank");
	else if (coverage->alone == coverage->ranks)
		(void)snprintf(who, sizeof(who), "no rank has peers");
	else
		(void)snprintf(who, sizeof(who), "%u of %u ranks have no peers", coverage->alone,
			       coverage->ranks);
	(void)snprintf(
		note, sizeof(note),
		"%s%s: only changes against its own history are found, and the first %d %ss are "
		"the baseline",
		prefix, who, NT_PAST_WINDOWS, unit);
	return take(data, note);
}

int nt_coverage_each(const struct nt_coverage *coverage, const char *prefix, const char *unit,
		     nt_coverage_note_fn *take, void *data)
{
	char note[NOTE_BYTES];
	int r;

	r = nt_coverage_is_short(coverage) ? say_short(coverage, prefix, unit, take, data) : 0;
	if (r == 0 && coverage->alone)
		r = say_alone(coverage, prefix, unit, take, data);
	if (r == 0 && lacks_past(coverage)) {
		(void)snprintf(
			note, sizeof(note),
			"%s%u of %u ranks have fewer than %d peers: a slow one is found only "
			"after the first %d %ss, which are the baseline",
			prefix, coverage->few, coverage->ranks, NT_FEW_PEERS, NT_PAST_WINDOWS,
			unit);
		r = take(data, note);
	}
	if (r == 0 && lacks_network(coverage)) {
		(void)snprintf(note, sizeof(note),
			       "%sa slow network is found only after the first %d %ss, which are "
			       "the baseline",
			       prefix, NT_PAST_WINDOWS, unit);
		r = take(data, note);
	}
	if (r == 0 && coverage->blind) {
		(void)snprintf(note, sizeof(note),
			       "%sthe own work of %u of %u ranks is not observable (tier T1): only "
			       "causes on their hosts can be found",
			       prefix, coverage->blind, coverage->ranks);
		r = take(data, note);
	}
	return r;
}
