/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Why a GPU is slow, by what its driver states: see agent/gpu/gpu_totals.h. */
#ifndef NT_DETECT_INCIDENTS_GPU_CAUSE_H
#define NT_DETECT_INCIDENTS_GPU_CAUSE_H

#include <stdint.h>

#include "detect/model/evidence_text.h"

struct nt_proposal;
struct nt_rank_evidence;

/*
 * The cause of a rank's slow computation: its clock was held down for half of the time more than
 * its peers', or its memory had errors that theirs had not. NT_EVIDENCE_TEXT_NONE: neither.
 */
enum nt_evidence_text nt_gpu_cause(const struct nt_rank_evidence *evidence);

/* Appends what the driver states of the rank's GPU, if it is not nothing. */
void nt_gpu_cause_add_evidence(const struct nt_rank_evidence *evidence,
			       enum nt_evidence_text method, uint32_t windows,
			       struct nt_proposal *proposal);

#endif
