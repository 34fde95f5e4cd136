/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The detection of one job: frames in, incidents out. A pure step: no I/O, no clock, no globals;
 * the same frames give the same incidents byte for byte. See docs/verdicts.md for the rules.
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

/* job_hash and attempt only enter the ids. -ENOMEM. */
int nt_detect_new(const struct nt_rules *rules, uint64_t job_hash, uint32_t attempt,
		  struct nt_detect **ret_detect) __attribute__((warn_unused_result));
void nt_detect_free(struct nt_detect *detect);

/*
 * One frame. *ret_finding are the incidents that this frame opened, changed or resolved, pending
 * ones included; they belong to the detector. -EINVAL for a frame that breaks its own rules (ranks
 * not ascending, more than NT_FRAME_MAX_RANKS, end before start or before the last frame's end):
 * the state is then untouched. -ENOMEM.
 */
int nt_detect_step(struct nt_detect *detect, const struct nt_frame *frame,
		   const struct nt_finding **ret_finding, size_t *ret_findings)
	__attribute__((warn_unused_result));

/* All incidents that are pending or firing now. Valid until the next step. */
void nt_detect_open(const struct nt_detect *detect, const struct nt_finding **ret_finding,
		    size_t *ret_findings);

/* Takes what is seen now as normal: baselines start afresh, open incidents resolve. */
void nt_detect_rebaseline(struct nt_detect *detect);

/* What is known of a rank now, for tables. False where the rank is not known. */
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
/* Median step time of the job in the last frame, ns; 0: none seen. */
double nt_detect_step_ns(const struct nt_detect *detect);
/* How often some members of a communicator were not heard in time, so that nothing was judged. */
uint64_t nt_detect_unheard(const struct nt_detect *detect);

/*
 * The state as bytes, versioned and independent of byte order; the caller frees *ret_data. Loading
 * takes bytes from anywhere: -EBADMSG for what is damaged or of another version.
 */
int nt_detect_save(const struct nt_detect *detect, uint8_t **ret_data, size_t *ret_size)
	__attribute__((warn_unused_result));
int nt_detect_load(const struct nt_rules *rules, const uint8_t *data, size_t size,
		   struct nt_detect **ret_detect) __attribute__((warn_unused_result));

#endif
