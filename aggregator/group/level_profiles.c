/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/group/level_profiles.h"

#include <string.h>

#include "common/system/clock.h"

#define LOOK_NS NT_SECOND
/* A profile arrives with the next window of its rank. */
#define EVERY_NS ((NT_LEVEL_PROFILES_SECONDS + 5) * NT_SECOND)

static bool is_same(const struct nt_level_target *a, const struct nt_level_target *b)
{
	return a->rank == b->rank && strcmp(a->name, b->name) == 0;
}

static bool is_own(const struct nt_snapshot *snapshot, const struct nt_level_target *target)
{
	for (size_t i = 0; i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (job->is_summary || strcmp(job->key, target->name) != 0)
			continue;
		for (size_t j = 0; j < job->ranks; j++)
			if (job->rank[j].rank_known && job->rank[j].rank == target->rank)
				return !job->rank[j].ended;
	}
	return false;
}

static bool has_profiles(const struct nt_snapshot *snapshot, const struct nt_level_entry *entry)
{
	return (entry->request == NT_REQUEST_LEVEL || entry->request == NT_REQUEST_AUTO_LEVEL) &&
	       entry->level >= NT_LEVEL_PROFILES_LEVEL && entry->target.kind == NT_LEVEL_RANK &&
	       is_own(snapshot, &entry->target);
}

static struct nt_level_profiled *find(struct nt_level_profiles *profiles,
				      const struct nt_level_target *target)
{
	for (size_t i = 0; i < NT_LEVEL_PROFILES_RANKS; i++)
		if (profiles->rank[i].due_ns && is_same(&profiles->rank[i].target, target))
			return &profiles->rank[i];
	return NULL;
}

static void forget_ended(struct nt_level_profiles *profiles, const struct nt_snapshot *snapshot,
			 const struct nt_level_entry *entry, size_t count)
{
	for (size_t i = 0; i < NT_LEVEL_PROFILES_RANKS; i++) {
		struct nt_level_profiled *rank = &profiles->rank[i];
		bool is_wanted = false;

		for (size_t j = 0; rank->due_ns && j < count && !is_wanted; j++)
			is_wanted = is_same(&entry[j].target, &rank->target) &&
				    has_profiles(snapshot, &entry[j]);
		if (!is_wanted)
			*rank = (struct nt_level_profiled){0};
	}
}

/* NULL: all are in use. */
static struct nt_level_profiled *begin(struct nt_level_profiles *profiles,
				       const struct nt_level_target *target, uint64_t now_ns)
{
	for (size_t i = 0; i < NT_LEVEL_PROFILES_RANKS; i++) {
		struct nt_level_profiled *rank = &profiles->rank[i];

		if (rank->due_ns)
			continue;
		*rank = (struct nt_level_profiled){.target = *target, .due_ns = now_ns};
		return rank;
	}
	return NULL;
}

/* What cannot be requested now is tried with the next look. */
static void request(struct nt_level_profiled *rank, struct nt_level_desk *level_desk,
		    struct nt_profile_desk *profile_desk, uint64_t now_ns)
{
	static const struct nt_profile_wish wish = {
		.seconds = NT_LEVEL_PROFILES_SECONDS,
		.hz = NT_LEVEL_PROFILES_HZ,
		.kind = NT_PROFILE_ALL,
	};
	struct nt_level_entry entry;

	if (nt_level_desk_profile(level_desk, &rank->target, &wish, &entry) < 0)
		return;
	nt_profile_desk_replace(profile_desk, rank->before, &entry);
	rank->before = rank->last;
	rank->last = entry.id;
	rank->due_ns = now_ns + EVERY_NS;
}

int nt_level_profiles_look(struct nt_level_profiles *profiles, struct nt_level_desk *level_desk,
			   struct nt_profile_desk *profile_desk, const struct nt_snapshot *snapshot,
			   uint64_t now_ns)
{
	nt_autofree struct nt_level_entry *entry = NULL;
	size_t count;
	int r;

	if (profiles->looked_ns && now_ns - profiles->looked_ns < LOOK_NS)
		return 0;
	profiles->looked_ns = now_ns;
	r = nt_level_desk_list(level_desk, &entry, &count);
	if (r < 0)
		return r;
	forget_ended(profiles, snapshot, entry, count);
	profiles->left_out = 0;
	for (size_t i = 0; i < count; i++) {
		struct nt_level_profiled *rank;

		if (!has_profiles(snapshot, &entry[i]))
			continue;
		rank = find(profiles, &entry[i].target);
		if (!rank)
			rank = begin(profiles, &entry[i].target, now_ns);
		if (!rank)
			profiles->left_out++;
		else if (now_ns >= rank->due_ns)
			request(rank, level_desk, profile_desk, now_ns);
	}
	return 0;
}
