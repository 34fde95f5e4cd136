/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A profile (agent/profile/profile.h) as a window of its rank sends it. */
#ifndef NT_AGENT_PROFILE_WINDOW_PROFILE_H
#define NT_AGENT_PROFILE_WINDOW_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/profile/profile.h"
#include "common/base/cleanup.h"
#include "proto/wire.h"

enum {
	NT_WINDOW_PROFILE_BYTES = 512 << 10, /* encoded; the rarest stacks are left out */
	NT_WINDOW_PROFILE_REASON = 64,
};

/* Owns all that it points to. */
struct nt_window_profile {
	struct nt_wire_profile wire;
};

/* Copies a checked profile, the most frequent stacks first. request: what it answers. -ENOMEM. */
NT_MUST_CHECK int nt_window_profile_new(const struct nt_profile *profile, uint64_t request,
					const struct nt_profile_wish *wish,
					struct nt_window_profile **ret_profile);
/* One without samples: it is running, or the reason why there is none; a constant. -ENOMEM. */
NT_MUST_CHECK int nt_window_profile_state(uint64_t request, const struct nt_profile_wish *wish,
					  bool is_running, const char *reason,
					  struct nt_window_profile **ret_profile);
void nt_window_profile_free(struct nt_window_profile *profile);
NT_DEFINE_AUTO(nt_window_profile, nt_window_profile_free)

#endif
