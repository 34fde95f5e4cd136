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
 * A rank that is far behind adds at most the clip to its sum in each window; its finding becomes
 * pending in the window that reaches the threshold.
 */
static uint32_t count_needed(const struct nt_rules *rules, double threshold)
{
	return rules->pending_windows - 1 +
	       (uint32_t)ceil(threshold / (rules->z_clip - rules->drift));
}

void nt_coverage_add(struct nt_coverage *reach, const struct nt_rules *rules,
		     const struct nt_detect *detect, const struct nt_frame *frame)
{
	/* Once all ranks can be judged, that stays so: nothing to update. */
	const bool settled = reach->needed && !reach->alone && !reach->few && !reach->blind &&
			     reach->ranks >= frame->ranks;
	double threshold = 0.0;

	if (frame->ranks > reach->ranks)
		reach->ranks = (uint32_t)frame->ranks;
	for (size_t i = 0; i < frame->ranks; i++)
		reach->stepped += frame->rank[i].steps > 0;
	if (settled)
		return;
	reach->alone = reach->few = reach->blind = 0;
	for (size_t i = 0; i < frame->ranks; i++) {
		struct nt_detect_rank_view view = {0};

		if (!nt_detect_rank(detect, frame->rank[i].rank, &view))
			continue;
		reach->alone += view.peer_count == 0;
		reach->few += view.peer_count > 0 && view.peer_count < NT_FEW_PEERS;
		reach->blind += !view.own_observable;
		threshold = fmax(threshold, view.threshold);
	}
	if (threshold > 0.0)
		reach->needed = count_needed(rules, threshold);
}

void nt_coverage_restart(struct nt_coverage *reach)
{
	*reach = (struct nt_coverage){.most = nt_coverage_windows(reach)};
}

uint64_t nt_coverage_windows(const struct nt_coverage *reach)
{
	const uint64_t now = reach->ranks ? reach->stepped / reach->ranks : 0;

	return now > reach->most ? now : reach->most;
}

bool nt_coverage_is_short(const struct nt_coverage *reach)
{
	const uint64_t windows = nt_coverage_windows(reach);

	return windows == 0 || windows < reach->needed;
}

/* Two populations are reported once they last as long as learning a history takes. */
static bool lacks_past(const struct nt_coverage *reach)
{
	return reach->few && nt_coverage_windows(reach) < NT_PAST_WINDOWS + reach->needed;
}

bool nt_coverage_is_whole(const struct nt_coverage *reach)
{
	return !nt_coverage_is_short(reach) && !reach->alone && !reach->blind && !lacks_past(reach);
}

static int say_short(const struct nt_coverage *reach, const char *prefix, const char *unit,
		     nt_coverage_note_fn *take, void *data)
{
	const uint64_t windows = nt_coverage_windows(reach);
	char note[NOTE_BYTES];

	if (windows)
		(void)snprintf(note, sizeof(note),
			       "%s%" PRIu64 " %s%s: at least %u are needed to name a culprit%s",
			       prefix, windows, unit, windows == 1 ? "" : "s", reach->needed,
			       reach->ranks > 2 ? "; --windows lists the ranks that deviate in them"
						: "");
	else
		(void)snprintf(note, sizeof(note),
			       "%sno %s holds a whole step of every rank: no rank was judged",
			       prefix, unit);
	return take(data, note);
}

static int say_alone(const struct nt_coverage *reach, const char *prefix, const char *unit,
		     nt_coverage_note_fn *take, void *data)
{
	char note[NOTE_BYTES], who[64];

	if (reach->ranks == 1)
		(void)snprintf(who, sizeof(who), "one rank");
	else if (reach->alone == reach->ranks)
		(void)snprintf(who, sizeof(who), "no rank has peers");
	else
		(void)snprintf(who, sizeof(who), "%u of %u ranks have no peers", reach->alone,
			       reach->ranks);
	(void)snprintf(
		note, sizeof(note),
		"%s%s: only changes against its own history are found, and the first %d %ss are "
		"the baseline",
		prefix, who, NT_PAST_WINDOWS, unit);
	return take(data, note);
}

int nt_coverage_each(const struct nt_coverage *reach, const char *prefix, const char *unit,
		     nt_coverage_note_fn *take, void *data)
{
	char note[NOTE_BYTES];
	int r;

	r = nt_coverage_is_short(reach) ? say_short(reach, prefix, unit, take, data) : 0;
	if (r == 0 && reach->alone)
		r = say_alone(reach, prefix, unit, take, data);
	if (r == 0 && lacks_past(reach)) {
		(void)snprintf(
			note, sizeof(note),
			"%s%u of %u ranks have fewer than %d peers: a slow one is found only "
			"after the first %d %ss, which are the baseline",
			prefix, reach->few, reach->ranks, NT_FEW_PEERS, NT_PAST_WINDOWS, unit);
		r = take(data, note);
	}
	if (r == 0 && reach->blind) {
		(void)snprintf(note, sizeof(note),
			       "%sthe own work of %u of %u ranks is not observable (tier T1): only "
			       "causes on their hosts can be found",
			       prefix, reach->blind, reach->ranks);
		r = take(data, note);
	}
	return r;
}
