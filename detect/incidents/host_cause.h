/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Causes in the host, by what the launching thread of a rank did and waited for. */
#ifndef NT_DETECT_INCIDENTS_HOST_CAUSE_H
#define NT_DETECT_INCIDENTS_HOST_CAUSE_H

#include <stdint.h>

#include "detect/model/evidence_text.h"
#include "detect/model/finding.h"

struct nt_proposal;
struct nt_rank_evidence;

/*
 * The class, host or storage, and the cause of `excess` ns per step: what explains half of it. Causes
 * that only tracepoints show are not named without them.
 */
enum nt_class nt_host_cause(const struct nt_rank_evidence *evidence, double excess,
			    enum nt_evidence_text *ret_cause);

/* Adds what tracepoints showed, as far as there is room. */
void nt_host_cause_add_evidence(const struct nt_rank_evidence *evidence,
				enum nt_evidence_text method, uint32_t windows,
				struct nt_proposal *proposal);

#endif
