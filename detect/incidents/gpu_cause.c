/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/incidents/gpu_cause.h"

#include <math.h>

#include "detect/model/incident.h"
#include "detect/model/rank.h"
#include "detect/thresholds/thresholds.h"

/* The first that explains it counts: hardware that protects itself matters most. */
static const struct {
	enum nt_step_metric item;
	enum nt_evidence_text cause, what, unit;
	double scale;
} held[] = {
	{NT_STEP_METRIC_GPU_HARDWARE, NT_EVIDENCE_TEXT_GPU_HARDWARE, NT_EVIDENCE_TEXT_HELD_HARDWARE,
	 NT_EVIDENCE_TEXT_MS, 1e6},
	{NT_STEP_METRIC_GPU_THERMAL, NT_EVIDENCE_TEXT_GPU_THERMAL, NT_EVIDENCE_TEXT_HELD_THERMAL,
	 NT_EVIDENCE_TEXT_MS, 1e6},
	{NT_STEP_METRIC_GPU_POWER, NT_EVIDENCE_TEXT_GPU_POWER, NT_EVIDENCE_TEXT_HELD_POWER,
	 NT_EVIDENCE_TEXT_MS, 1e6},
	{NT_STEP_METRIC_GPU_ERRORS, NT_EVIDENCE_TEXT_GPU_MEMORY, NT_EVIDENCE_TEXT_GPU_ERRORS,
	 NT_EVIDENCE_TEXT_NUMBER, 1.0},
};

enum nt_evidence_text nt_gpu_cause(const struct nt_rank_evidence *evidence)
{
	const double *value = evidence->value, *peers = evidence->peers;
	const double step = fmax(1.0, value[NT_STEP_METRIC_STEP]),
		     peers_step = fmax(1.0, peers[NT_STEP_METRIC_STEP]);

	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		const enum nt_step_metric item = held[i].item;

		if (item == NT_STEP_METRIC_GPU_ERRORS
			    ? value[item] > 0.0 && peers[item] <= 0.0
			    : value[item] / step - peers[item] / peers_step >= NT_EXPLAINS)
			return held[i].cause;
	}
	return NT_EVIDENCE_TEXT_NONE;
}

void nt_gpu_cause_add_evidence(const struct nt_rank_evidence *evidence,
			       enum nt_evidence_text method, uint32_t windows,
			       struct nt_proposal *proposal)
{
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		const enum nt_step_metric item = held[i].item;

		if (evidence->value[item] <= 0.0 || proposal->evidences == NT_FINDING_MAX_EVIDENCE)
			continue;
		proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
			.what = (uint8_t)held[i].what,
			.unit = (uint8_t)held[i].unit,
			.method = (uint8_t)method,
			.value = evidence->value[item] / held[i].scale,
			.peers = evidence->peers[item] / held[i].scale,
			.windows = windows,
		};
	}
}
