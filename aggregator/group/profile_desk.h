/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The last profiles that were requested here, of all jobs, with what has arrived of them. In memory
 * only. All functions are for any thread.
 */
#ifndef NT_AGGREGATOR_GROUP_PROFILE_DESK_H
#define NT_AGGREGATOR_GROUP_PROFILE_DESK_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "control/level_table.h"
#include "proto/arena.h"
#include "proto/wire.h"

enum {
	NT_PROFILE_DESK_KEPT = 16, /* one more replaces the oldest */
	NT_PROFILE_DESK_BYTES = 4 << 20, /* of one profile; a larger one is refused */
	NT_PROFILE_DESK_TEXT = 256, /* bytes of a name; longer ones are cut */
};

#define NT_PROFILE_DESK_WAIT (2 * NT_MINUTE) /* beyond its seconds, then a profile has expired */

enum nt_profile_progress {
	NT_PROFILE_WAITING, /* no agent has reported it */
	NT_PROFILE_RUNNING,
	NT_PROFILE_COMPLETE,
	NT_PROFILE_EXPIRED, /* nothing arrived in time */
};

/* What an agent has measured. */
struct nt_profile_result {
	atomic_uint users;
	struct nt_arena arena;
	uint64_t begin_real_ns; /* 0: not known */
	struct nt_wire_profile profile; /* in the arena; its numbers of frames are valid */
};

struct nt_profile_view {
	struct nt_level_entry request;
	enum nt_profile_progress progress;
	struct nt_profile_result *result; /* NULL: none so far */
};

/* Accepts a view without a result. */
void nt_profile_view_release(struct nt_profile_view *view);
#define nt_autoprofile __attribute__((cleanup(nt_profile_view_release)))

struct nt_profile_desk_stats {
	uint64_t taken, malformed;
	uint64_t unknown; /* not requested here, or replaced since */
};

struct nt_profile_desk;

NT_MUST_CHECK int nt_profile_desk_new(struct nt_profile_desk **ret_desk);
void nt_profile_desk_free(struct nt_profile_desk *desk);
NT_DEFINE_AUTO(nt_profile_desk, nt_profile_desk_free)

/* A request was accepted. */
void nt_profile_desk_add(struct nt_profile_desk *desk, const struct nt_level_entry *request);

/* The same. It replaces the one with this id, if that is still kept; id 0: none. */
void nt_profile_desk_replace(struct nt_profile_desk *desk, uint64_t id,
			     const struct nt_level_entry *request);

/* Takes the profiles of a window, if it has any. -ENOMEM. */
NT_MUST_CHECK int nt_profile_desk_take(struct nt_profile_desk *desk,
				       const struct nt_message *message);

/* -ENOENT: not known, or replaced. The caller releases the view. */
NT_MUST_CHECK int nt_profile_desk_get(struct nt_profile_desk *desk, uint64_t id,
				      uint64_t now_real_ns, struct nt_profile_view *ret_view);

/* All that are kept, the latest first; their number. The caller releases each view. */
size_t nt_profile_desk_list(struct nt_profile_desk *desk, uint64_t now_real_ns,
			    struct nt_profile_view ret_view[NT_PROFILE_DESK_KEPT]);

void nt_profile_desk_stats(struct nt_profile_desk *desk, struct nt_profile_desk_stats *ret_stats);

#endif
