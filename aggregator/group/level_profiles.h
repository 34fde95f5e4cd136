/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Profiles of ranks at level 2 or above: one after the other, as long as the level is in force. The last
 * two of each rank are kept.
 */
#ifndef NT_AGGREGATOR_GROUP_LEVEL_PROFILES_H
#define NT_AGGREGATOR_GROUP_LEVEL_PROFILES_H

#include <stddef.h>
#include <stdint.h>

#include "aggregator/group/level_desk.h"
#include "aggregator/group/profile_desk.h"
#include "engine/snapshot.h"

enum {
	NT_LEVEL_PROFILES_LEVEL = 2,
	NT_LEVEL_PROFILES_RANKS = 4, /* at a time; further ones are left out, and counted */
	NT_LEVEL_PROFILES_SECONDS = 10,
	NT_LEVEL_PROFILES_HZ = 19,
};

/* Zeroed: no profile yet. */
struct nt_level_profiles {
	struct nt_level_profiled {
		struct nt_level_target target;
		uint64_t due_ns; /* monotonic: the next one; 0: unused */
		uint64_t last, before; /* ids of its last profiles; 0: none */
	} rank[NT_LEVEL_PROFILES_RANKS];
	uint64_t looked_ns; /* monotonic */
	uint32_t left_out; /* ranks at such a level without profiles, when last looked at */
};

/*
 * The deciding thread, with each new snapshot: requests what is due, of ranks of own jobs. A level of a
 * job or node has no profiles. -ENOMEM.
 */
NT_MUST_CHECK int nt_level_profiles_look(struct nt_level_profiles *profiles,
					 struct nt_level_desk *level_desk,
					 struct nt_profile_desk *profile_desk,
					 const struct nt_snapshot *snapshot, uint64_t now_ns);

#endif
