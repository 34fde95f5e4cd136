/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The profiles that are being taken, each by a worker of its own. A worker that does not answer in time
 * is killed; if the process kept it waiting, that counts for the quarantine. Of the loop.
 */
#ifndef NT_AGENT_PROFILE_PROFILER_H
#define NT_AGENT_PROFILE_PROFILER_H

#include <stdint.h>

#include "agent/discover/quarantine.h"
#include "agent/discover/worker.h"
#include "agent/identity/owner.h"
#include "agent/profile/profile_worker.h"
#include "agent/profile/window_profile.h"
#include "common/base/cleanup.h"

enum {
	NT_PROFILER_TASKS = 4, /* at a time on a node */
	NT_PROFILER_OWNER_TASKS = 2, /* the same of one owner, such as a pod */
	NT_PROFILER_LATE_S = 10, /* after the seconds of the profile, a worker is killed */
};

/* What a profile is of. */
struct nt_profiler_order {
	uint64_t request;
	struct nt_owner owner; /* of the process; id 0: not known, which is one owner too */
	struct nt_profile_task task;
};

/* So far. */
struct nt_profiler_stats {
	uint64_t taken, failed;
	uint64_t refused, refused_owner,
		refused_held; /* over a cap; of an owner's; in quarantine */
	/* Times of profiles, and samples of threads: see nt_profile. */
	uint64_t times, missed, torn, empty, lost;
};

/* A profile has ended; the callee owns it. */
typedef void nt_profiler_done(void *data, const struct nt_profiler_order *order,
			      struct nt_window_profile *profile);

struct nt_profiler_hooks {
	nt_profiler_done *done;
	/* A process has kept a worker waiting. held: its owner is in quarantine now. */
	void (*stalled)(void *data, uint32_t pid, const struct nt_owner *owner, bool held);
	void *data;
};

struct nt_profiler;

/* workers and quarantine are borrowed. -ENOMEM. */
NT_MUST_CHECK int nt_profiler_new(struct nt_workers *workers, struct nt_quarantine *quarantine,
				  const struct nt_profiler_hooks *hooks,
				  struct nt_profiler **ret_profiler);
/* Kills the workers. Accepts NULL. */
void nt_profiler_free(struct nt_profiler *profiler);
NT_DEFINE_AUTO(nt_profiler, nt_profiler_free)

/*
 * -EAGAIN: NT_PROFILER_TASKS run; -EDQUOT: the owner's share of them does; -EACCES: the process or its
 * owner is in quarantine. -ENOMEM, or as nt_worker_start().
 */
NT_MUST_CHECK int nt_profiler_begin(struct nt_profiler *profiler,
				    const struct nt_profiler_order *order);

/* Takes what the workers have answered. now_ns: monotonic. */
void nt_profiler_tick(struct nt_profiler *profiler, uint64_t now_ns);

const struct nt_profiler_stats *nt_profiler_stats(const struct nt_profiler *profiler);

#endif
