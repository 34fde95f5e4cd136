/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "detect/incidents/host_cause.h"

#include <stdbool.h>

#include "detect/model/incident.h"
#include "detect/model/rank.h"
#include "detect/thresholds/thresholds.h"

static double excess_of(const struct nt_rank_evidence *evidence, enum nt_step_metric item)
{
	return evidence->value[item] - evidence->peers[item];
}

/* Page faults alone also come with a file that is mapped for the first time. */
static bool has_reclaim(const struct nt_rank_evidence *evidence)
{
	const double reclaim = excess_of(evidence, NT_STEP_METRIC_RECLAIM);

	return reclaim > 0.0 &&
	       reclaim >= NT_PRESSURE * (reclaim + excess_of(evidence, NT_STEP_METRIC_FAULT_WAIT));
}

static double memory_excess(const struct nt_rank_evidence *evidence)
{
	return excess_of(evidence, NT_STEP_METRIC_FAULT_WAIT) +
	       excess_of(evidence, NT_STEP_METRIC_RECLAIM);
}

/* Pages are read again and again, as there is too little memory: the thread hardly does anything else. */
static bool is_pressed(const struct nt_rank_evidence *evidence, double excess)
{
	return excess_of(evidence, NT_STEP_METRIC_FAULTS) >= NT_PAGE_FAULTS &&
	       has_reclaim(evidence) && memory_excess(evidence) >= NT_PRESSED * excess;
}

/* The quota that is used up makes threads runnable that nobody keeps from running. */
static enum nt_evidence_text name_queue(const struct nt_rank_evidence *evidence, double excess)
{
	const double queue = excess_of(evidence, NT_STEP_METRIC_RUN_QUEUE);

	if (is_pressed(evidence, excess))
		return NT_EVIDENCE_TEXT_MEMORY_PRESSURE;
	return excess_of(evidence, NT_STEP_METRIC_QUOTA) >= NT_EXPLAINS * queue
		       ? NT_EVIDENCE_TEXT_CPU_QUOTA
		       : NT_EVIDENCE_TEXT_CPU_CONTENTION;
}

/* As many bytes as the others, but slower: storage. Which, only tracepoints show. */
static enum nt_class name_io(const struct nt_rank_evidence *evidence,
			     enum nt_evidence_text *ret_cause)
{
	const double read = excess_of(evidence, NT_STEP_METRIC_READ);
	const double write = excess_of(evidence, NT_STEP_METRIC_WRITE);
	const double bytes =
		evidence->value[NT_STEP_METRIC_READ] + evidence->value[NT_STEP_METRIC_WRITE];

	if (bytes <= 0.0 || read + write >= NT_STORAGE_MORE * (bytes - read - write)) {
		*ret_cause =
			write > read ? NT_EVIDENCE_TEXT_CHECKPOINT : NT_EVIDENCE_TEXT_DATA_LOADING;
		return NT_CLASS_HOST;
	}
	if (evidence->value[NT_STEP_METRIC_SYSTEM] > 0.0)
		*ret_cause = excess_of(evidence, NT_STEP_METRIC_FILE) >=
					     NT_EXPLAINS * excess_of(evidence, NT_STEP_METRIC_IO)
				     ? NT_EVIDENCE_TEXT_NETWORK_FILES
				     : NT_EVIDENCE_TEXT_BLOCK_DEVICE;
	return NT_CLASS_STORAGE;
}

enum nt_class nt_host_cause(const struct nt_rank_evidence *evidence, double excess,
			    enum nt_evidence_text *ret_cause)
{
	const double part = NT_EXPLAINS * excess;

	*ret_cause = NT_EVIDENCE_TEXT_NONE;
	if (excess_of(evidence, NT_STEP_METRIC_GC) >= part)
		*ret_cause = NT_EVIDENCE_TEXT_GC;
	else if (excess_of(evidence, NT_STEP_METRIC_QUOTA) >= part && !is_pressed(evidence, excess))
		/* Peers that spin while they wait have run-queue delay, too. */
		*ret_cause = NT_EVIDENCE_TEXT_CPU_QUOTA;
	else if (excess_of(evidence, NT_STEP_METRIC_RUN_QUEUE) >= part)
		*ret_cause = name_queue(evidence, excess);
	else if (is_pressed(evidence, excess))
		*ret_cause = NT_EVIDENCE_TEXT_MEMORY_PRESSURE;
	else if (memory_excess(evidence) >= part)
		*ret_cause = has_reclaim(evidence) ? NT_EVIDENCE_TEXT_MEMORY_PRESSURE
						   : NT_EVIDENCE_TEXT_PAGE_FAULTS;
	else if (excess_of(evidence, NT_STEP_METRIC_IO) >= part)
		return name_io(evidence, ret_cause);
	else if (excess_of(evidence, NT_STEP_METRIC_FAULTS) >= NT_PAGE_FAULTS)
		*ret_cause = NT_EVIDENCE_TEXT_PAGE_FAULTS;
	else if (excess_of(evidence, NT_STEP_METRIC_PROCESS_IO) >= part)
		/* The thread waits for another that reads. */
		*ret_cause = NT_EVIDENCE_TEXT_DATA_LOADING;
	return NT_CLASS_HOST;
}

void nt_host_cause_add_evidence(const struct nt_rank_evidence *evidence,
				enum nt_evidence_text method, uint32_t windows,
				struct nt_proposal *proposal)
{
	static const struct {
		enum nt_step_metric item;
		enum nt_evidence_text what;
	} row[] = {
		{NT_STEP_METRIC_QUOTA, NT_EVIDENCE_TEXT_QUOTA_WAIT},
		{NT_STEP_METRIC_FILE, NT_EVIDENCE_TEXT_FILE_WAIT},
		{NT_STEP_METRIC_FAULT_WAIT, NT_EVIDENCE_TEXT_FAULT_WAIT},
		{NT_STEP_METRIC_RECLAIM, NT_EVIDENCE_TEXT_RECLAIM},
		{NT_STEP_METRIC_PROCESS_IO, NT_EVIDENCE_TEXT_PROCESS_IO},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		if (evidence->value[row[i].item] <= 0.0 ||
		    proposal->evidences == NT_FINDING_MAX_EVIDENCE)
			continue;
		proposal->evidence[proposal->evidences++] = (struct nt_detect_evidence){
			.what = (uint8_t)row[i].what,
			.unit = NT_EVIDENCE_TEXT_MS,
			.method = (uint8_t)method,
			.value = evidence->value[row[i].item] / 1e6,
			.peers = evidence->peers[row[i].item] / 1e6,
			.windows = windows,
		};
	}
}
