/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replays the frames of a trace through the detection and collects the incidents. */
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

/* The incidents in opening order, each in its last version, without pending ones. */
struct nt_judged {
	struct nt_wire_incident incident; /* lies in the arena */
	struct nt_arena arena;
};

enum {
	NT_JUDGED_NAME = 64,
};

/* The coverage of one job. */
struct nt_judged_job {
	char name[NT_JUDGED_NAME], key[NT_JUDGED_NAME];
	struct nt_coverage coverage;
};

struct nt_judgement {
	struct nt_judged *judged;
	size_t incidents;
	struct nt_judged_job *job; /* none if a job was judged by its hang alone */
	size_t jobs;
	struct nt_windows *windows; /* the content of each window; NULL: not requested */
};

void nt_judgement_free(struct nt_judgement *judgement);
NT_DEFINE_AUTO(nt_judgement, nt_judgement_free)

NT_MUST_CHECK int nt_judgement_new(struct nt_judgement **ret_judgement);

/* Enables recording of each window's content. -ENOMEM. */
NT_MUST_CHECK int nt_judgement_watch(struct nt_judgement *judgement, const struct nt_rules *rules);

/* Adds a copy of the incident, or replaces an older version of it. -ENOMEM, -E2BIG. */
NT_MUST_CHECK int nt_judgement_add(struct nt_judgement *judgement,
				   const struct nt_wire_incident *incident);

/* Adds a job with its coverage. -ENOMEM. */
NT_MUST_CHECK int nt_judgement_add_job(struct nt_judgement *judgement, const char *name,
				       const char *key, const struct nt_coverage *coverage);

/* Replays a whole trace with these rules. -EINVAL for invalid frames, -ENOMEM. */
NT_MUST_CHECK int nt_replay_trace(const struct nt_trace *trace, const struct nt_rules *rules,
				  struct nt_judgement *judgement);

enum {
	NT_RECORDING_MAX_DAMAGE = 16, /* segments that are listed; all damage is counted */
};

/* Statistics of a recording. */
struct nt_recording {
	/* missing: absent, or in a damaged place; refused: readable, but invalid */
	uint64_t messages, refused, missing;
	struct nt_bus_damage damage[NT_RECORDING_MAX_DAMAGE];
	size_t damages;
	uint64_t unnamed; /* damaged places in further segments */
	uint64_t frames, start_ns, end_ns;
	uint32_t jobs; /* with a window; attempts of one job count once */
	uint32_t ranks; /* of all jobs; of each in the largest window of its attempts */
};

/*
 * Replays the windows in a spool directory as the live service would. -ENOENT if it has no windows;
 * -EBADMSG with *ret_error if nothing in it is readable; -ENOMEM, -EIO; -E2BIG for more than 65536
 * jobs or incidents.
 */
NT_MUST_CHECK int nt_replay_recording(const char *dir, const struct nt_rules *rules,
				      struct nt_judgement *judgement,
				      struct nt_recording *ret_recording,
				      struct nt_trace_error *ret_error);

#endif
