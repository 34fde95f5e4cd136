/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Frames of a trace through the detection, and the incidents that come of it. */
#ifndef NT_CLI_REPLAY_REPLAY_H
#define NT_CLI_REPLAY_REPLAY_H

#include <stddef.h>

#include "cli/readers/trace.h"
#include "cli/replay/coverage.h"
#include "cli/replay/windows.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"
#include "detect/detect.h"
#include "proto/arena.h"
#include "proto/wire.h"

/* The incidents in the order in which they opened, each as it stood last; pending ones left out. */
struct nt_judged {
	struct nt_wire_incident incident; /* lies in the arena */
	struct nt_arena arena;
};

enum {
	NT_JUDGED_NAME = 64,
};

/* How much of one job could be judged. */
struct nt_judged_job {
	char name[NT_JUDGED_NAME], key[NT_JUDGED_NAME];
	struct nt_coverage reach;
};

struct nt_judgement {
	struct nt_judged *judged;
	size_t incidents;
	struct nt_judged_job *job; /* none where a job was judged by where it stands still */
	size_t jobs;
	struct nt_windows *windows; /* what each window showed; NULL: nobody asked */
};

void nt_judgement_free(struct nt_judgement *judgement);
NT_DEFINE_AUTO(nt_judgement, nt_judgement_free)

NT_MUST_CHECK int nt_judgement_new(struct nt_judgement **ret_judgement);

/* What each window shows is kept from here on. -ENOMEM. */
NT_MUST_CHECK int nt_judgement_watch(struct nt_judgement *judgement, const struct nt_rules *rules);

/* Takes the incident in, in the place of an older version of it. It is copied. -ENOMEM, -E2BIG. */
NT_MUST_CHECK int nt_judgement_add(struct nt_judgement *judgement,
				   const struct nt_wire_incident *incident);

/* Takes a job in, of which that much could be judged. -ENOMEM. */
NT_MUST_CHECK int nt_judgement_add_job(struct nt_judgement *judgement, const char *name,
				       const char *key, const struct nt_coverage *reach);

/* Judges a whole trace by these rules. -EINVAL for frames that break their own rules, -ENOMEM. */
NT_MUST_CHECK int nt_replay_trace(const struct nt_trace *trace, const struct nt_rules *rules,
				  struct nt_judgement *judgement);

enum {
	NT_RECORDING_MAX_DAMAGE = 16, /* segments that are named; all damage is counted */
};

/* What a recording held, beside the incidents. */
struct nt_recording {
	/* missing: never came, or lie where there is damage; refused: read, and of no use */
	uint64_t messages, refused, missing;
	struct nt_bus_damage damage[NT_RECORDING_MAX_DAMAGE];
	size_t damages;
	uint64_t unnamed; /* places of damage in further segments */
	uint64_t frames, start_ns, end_ns;
	uint32_t jobs; /* with a window; attempts of one job are one */
	uint32_t ranks; /* of all jobs; of each in the largest window of its attempts */
};

/*
 * Judges the windows in a directory of the spool bus as the live service would have. -ENOENT where
 * it holds no windows; -EBADMSG where nothing in it can be read, and *ret_error then says why; -ENOMEM, -EIO; -E2BIG for more jobs or incidents than 65536.
 */
NT_MUST_CHECK int nt_replay_recording(const char *dir, const struct nt_rules *rules,
				      struct nt_judgement *judgement,
				      struct nt_recording *ret_recording,
				      struct nt_trace_error *ret_error);

#endif
