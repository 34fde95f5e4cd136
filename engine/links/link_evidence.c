/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/links/link_evidence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "detect/math/stats.h"
#include "detect/thresholds/thresholds.h"

#define MILLISECOND_NS 1e6
#define PERCENT        100.0

/* NaN: not known, or too little to tell. */
static double value_of(const struct nt_job_link *link, enum nt_link_evidence_kind kind)
{
	const struct nt_pair_sums *sums = &link->sums;
	const bool is_tcp = link->transport == NT_LINK_TCP;
	const double sent =
		is_tcp ? (double)sums->segments : (double)sums->completions + (double)sums->errors;
	const double lost = is_tcp ? (double)sums->retransmits : (double)sums->errors;

	if (kind == NT_LINK_EVIDENCE_LATENCY)
		return sums->timed ? (double)sums->latency_ns / (double)sums->timed / MILLISECOND_NS
				   : NAN;
	return sent >= NT_LINK_EVIDENCE_SENT ? PERCENT * lost / sent : NAN;
}

static bool has_accused(const struct nt_job_link *link, const bool *is_accused)
{
	return is_accused[link->rank] || (link->has_peer && is_accused[link->peer]);
}

/* Links to addresses outside of the job are of other purposes: storage, a launcher. */
static bool is_of(const struct nt_job_link *link, enum nt_link_transport transport)
{
	return link->has_peer && link->transport == transport;
}

/* The median over links without accused ranks. NaN: they are too few. */
static double median_of_others(const struct nt_job_link *link, size_t links, const bool *is_accused,
			       enum nt_link_transport transport, enum nt_link_evidence_kind kind,
			       double *scratch)
{
	size_t count = 0;

	for (size_t i = 0; i < links; i++) {
		const double value = value_of(&link[i], kind);

		if (is_of(&link[i], transport) && !has_accused(&link[i], is_accused) &&
		    isfinite(value))
			scratch[count++] = value;
	}
	return count >= NT_LINK_EVIDENCE_LINKS ? nt_stats_median_of(scratch, count) : NAN;
}

static bool stands_out(const struct nt_link_evidence *row)
{
	if (row->kind == NT_LINK_EVIDENCE_LOSS &&
	    row->value < PERCENT * NT_LINK_EVIDENCE_LOSS_LEAST)
		return false;
	return row->value > 0 && row->value >= NT_LINK_EVIDENCE_FACTOR * row->peers;
}

/* The accused link with the largest value. False: none stands out. */
static bool find_worst(const struct nt_job_link *link, size_t links, const bool *is_accused,
		       enum nt_link_transport transport, enum nt_link_evidence_kind kind,
		       double *scratch, struct nt_link_evidence *ret_row)
{
	struct nt_link_evidence row = {.kind = kind};

	row.peers = median_of_others(link, links, is_accused, transport, kind, scratch);
	if (!isfinite(row.peers))
		return false;
	for (size_t i = 0; i < links; i++) {
		const double value = value_of(&link[i], kind);

		if (!is_of(&link[i], transport) || !has_accused(&link[i], is_accused) ||
		    !isfinite(value) || (row.link && value <= row.value))
			continue;
		row.link = &link[i];
		row.value = value;
	}
	if (!row.link || !stands_out(&row))
		return false;
	*ret_row = row;
	return true;
}

int nt_link_evidence_find(const struct nt_job_link *link, size_t links, const bool *is_accused,
			  struct nt_link_evidence ret_row[NT_LINK_EVIDENCE_ROWS])
{
	nt_autofree double *scratch = calloc(links + 1, sizeof(*scratch));
	int rows = 0;

	if (!scratch)
		return -ENOMEM;
	/* A job that uses RDMA has connections of TCP for its set-up alone. */
	for (int t = 0; t < NT_LINK_TRANSPORTS && !rows; t++)
		for (int kind = NT_LINK_EVIDENCE_LATENCY; kind <= NT_LINK_EVIDENCE_LOSS; kind++)
			rows += find_worst(link, links, is_accused, (enum nt_link_transport)t,
					   (enum nt_link_evidence_kind)kind, scratch,
					   &ret_row[rows]);
	return rows;
}

const char *nt_link_evidence_what(const struct nt_link_evidence *row)
{
	const bool is_tcp = row->link->transport == NT_LINK_TCP;

	if (row->kind == NT_LINK_EVIDENCE_LATENCY)
		return is_tcp ? "round-trip time of TCP" : "latency of RDMA requests";
	return is_tcp ? "TCP segments sent again" : "RDMA requests that failed";
}

const char *nt_link_evidence_unit(const struct nt_link_evidence *row)
{
	return row->kind == NT_LINK_EVIDENCE_LATENCY ? "ms" : "percent";
}
