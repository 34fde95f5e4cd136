/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The detector of one job: frames in, incidents out. It is pure: no I/O, no clock, no globals.
 * Equal frames give byte-identical incidents. One thread at a time. docs/detection.md specifies the
 * rules.
 */
#ifndef NT_DETECT_DETECT_H
#define NT_DETECT_DETECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/model/finding.h"
#include "detect/model/frame.h"
#include "detect/thresholds/rules.h"

struct nt_detect;

/* job_hash and attempt only enter incident ids. The caller frees *ret_detect. -ENOMEM. */
int nt_detect_new(const struct nt_rules *rules, uint64_t job_hash, uint32_t attempt,
		  struct nt_detect **ret_detect) __attribute__((warn_unused_result));
void nt_detect_free(struct nt_detect *detect);

/*
 * Processes one frame. *ret_finding lists the incidents that it opened, changed or resolved,
 * pending ones included; the detector owns them until the next step. -EINVAL for an invalid frame
 * (ranks not ascending, more than NT_FRAME_MAX_RANKS, end before start or before the last frame's
 * end): the state is unchanged. -ENOMEM.
 */
int nt_detect_step(struct nt_detect *detect, const struct nt_frame *frame,
		   const struct nt_finding **ret_finding, size_t *ret_findings)
	__attribute__((warn_unused_result));

/*
 * No frame follows, as the recording or the job has ended: resolves the incidents whose evidence has
 * ended, though not for as long as a fault may pause. *ret_finding lists them. -ENOMEM.
 */
int nt_detect_finish(struct nt_detect *detect, const struct nt_finding **ret_finding,
		     size_t *ret_findings) __attribute__((warn_unused_result));

/*
 * After nt_detect_finish() of a recording without a culprit: raises a note on what deviates, though
 * there is too little of it for a verdict. *ret_finding lists it. -ENOMEM.
 */
int nt_detect_remark(struct nt_detect *detect, const struct nt_finding **ret_finding,
		     size_t *ret_findings) __attribute__((warn_unused_result));

/* All pending and firing incidents. Valid until the next step. */
void nt_detect_open(const struct nt_detect *detect, const struct nt_finding **ret_finding,
		    size_t *ret_findings);

/* The next step lists the open incident as changed: what is known of it beside has changed. */
void nt_detect_mark(struct nt_detect *detect, uint64_t id);

/* Takes the current state as normal: resets baselines and resolves open incidents. */
void nt_detect_rebaseline(struct nt_detect *detect);

/* The current state of a rank, for tables. False if the rank is unknown. */
struct nt_detect_rank_view {
	uint8_t tier;
	bool own_observable;
	double own_ns, own_peers_ns; /* per step; of the last frame */
	double host_ns, host_peers_ns;
	double peer_deviation, width, cusum, threshold;
	const uint32_t *peers;
	size_t peer_count;
};
bool nt_detect_rank(const struct nt_detect *detect, uint32_t rank,
		    struct nt_detect_rank_view *ret_view);
/* Median step time of the job in the last frame with steps, ns; 0: none so far. */
double nt_detect_step_ns(const struct nt_detect *detect);
/* Number of collective rounds that lapsed with members missing and were not judged. */
uint64_t nt_detect_lapsed_rounds(const struct nt_detect *detect);

/*
 * Serialized state, versioned and independent of byte order; the caller frees *ret_data. Loading
 * accepts untrusted bytes: -EBADMSG if they are damaged or of another version.
 */
int nt_detect_save(const struct nt_detect *detect, uint8_t **ret_data, size_t *ret_size)
	__attribute__((warn_unused_result));
int nt_detect_load(const struct nt_rules *rules, const uint8_t *data, size_t size,
		   struct nt_detect **ret_detect) __attribute__((warn_unused_result));

#endif
