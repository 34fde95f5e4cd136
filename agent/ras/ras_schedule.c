/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/ras/ras_schedule.h"

#include <string.h>

static bool is_over(const struct nt_ras_schedule *schedule, size_t i)
{
	return schedule->of[i].tries == NT_RAS_SCHEDULE_TRIES;
}

static bool is_of(const struct nt_ras_schedule *schedule, size_t i, const struct nt_ras_want *want)
{
	return schedule->of[i].file == want->file && schedule->of[i].owner == want->owner;
}

static bool is_wanted(const struct nt_ras_schedule *schedule, size_t i,
		      const struct nt_ras_want *want, size_t wants)
{
	for (size_t w = 0; w < wants; w++)
		if (is_of(schedule, i, &want[w]))
			return true;
	return false;
}

/* Files that are not wanted any more make room; one that is keeps its tries. */
static bool make_room(struct nt_ras_schedule *schedule, const struct nt_ras_want *want,
		      size_t wants)
{
	if (schedule->files < NT_RAS_SCHEDULE_FILES)
		return true;
	for (size_t i = 0; i < schedule->files; i++) {
		if (is_wanted(schedule, i, want, wants))
			continue;
		schedule->files--;
		memmove(&schedule->of[i], &schedule->of[i + 1],
			(schedule->files - i) * sizeof(schedule->of[0]));
		return true;
	}
	return false;
}

/* The entry of want[w]'s file, made if missing; NT_RAS_SCHEDULE_FILES: no room. */
static size_t find(struct nt_ras_schedule *schedule, const struct nt_ras_want *want, size_t wants,
		   size_t w, uint64_t now_ns)
{
	for (size_t i = 0; i < schedule->files; i++)
		if (is_of(schedule, i, &want[w]))
			return i;
	if (!make_room(schedule, want, wants)) {
		schedule->over_cap++;
		return NT_RAS_SCHEDULE_FILES;
	}
	memset(&schedule->of[schedule->files], 0, sizeof(schedule->of[0]));
	schedule->of[schedule->files].file = want[w].file;
	schedule->of[schedule->files].owner = want[w].owner;
	schedule->of[schedule->files].seen_ns = now_ns;
	return schedule->files++;
}

/* Jobs with the same file come and go: the first turn is that of the job that is here now. */
static uint64_t due_ns(const struct nt_ras_schedule *schedule, size_t i,
		       const struct nt_ras_want *want)
{
	if (schedule->of[i].tries)
		return schedule->of[i].due_ns;
	return schedule->of[i].seen_ns + (uint64_t)want->node * NT_RAS_SCHEDULE_TURN_NS;
}

const struct nt_ras_want *nt_ras_schedule_pick(struct nt_ras_schedule *schedule,
					       const struct nt_ras_want *want, size_t wants,
					       uint64_t now_ns)
{
	const bool may =
		!schedule->last_ns || now_ns - schedule->last_ns >= NT_RAS_SCHEDULE_TURN_NS;

	for (size_t w = 0; w < wants; w++) {
		const size_t i = find(schedule, want, wants, w, now_ns);

		if (i == NT_RAS_SCHEDULE_FILES || is_over(schedule, i))
			continue;
		if (!want[w].has_node) {
			schedule->unplaced += !schedule->of[i].is_unplaced;
			schedule->of[i].is_unplaced = true;
			continue;
		}
		if (!may || now_ns < due_ns(schedule, i, &want[w]))
			continue;
		schedule->of[i].tries++;
		schedule->of[i].due_ns = now_ns + NT_RAS_SCHEDULE_AGAIN_NS;
		schedule->last_ns = now_ns;
		return &want[w];
	}
	return NULL;
}
