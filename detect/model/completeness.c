/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completeness of the input. */
#include "detect/model/completeness.h"

#include <math.h>
#include <string.h>

#include "detect/model/frame.h"
#include "detect/thresholds/thresholds.h"

void nt_completeness_add(struct nt_completeness *gaps, const struct nt_frame *frame)
{
	const bool is_part = frame->completeness >= 0.0 && frame->completeness <= 1.0;
	const double length_ns = (double)(frame->end_ns - frame->start_ns);
	struct nt_gap *last = gaps->gaps ? &gaps->gap[gaps->gaps - 1] : NULL;
	double missing_ns = (is_part ? 1.0 - frame->completeness : 1.0) * length_ns;

	if (isfinite(frame->missed_ns))
		missing_ns += frame->missed_ns;
	if (fabs(missing_ns) < NT_GAP_NS)
		return;
	gaps->missing_ns += missing_ns;
	if (last && last->end_ns == frame->start_ns) {
		last->end_ns = frame->end_ns;
		last->missing_ns += missing_ns;
		return;
	}
	if (gaps->gaps == NT_COMPLETENESS_MAX)
		memmove(gaps->gap, gaps->gap + 1, --gaps->gaps * sizeof(*gaps->gap));
	gaps->gap[gaps->gaps++] = (struct nt_gap){frame->start_ns, frame->end_ns, missing_ns};
}

/* The missing time of a gap after since_ns, assuming an even distribution. */
static double missing_since(const struct nt_gap *gap, uint64_t since_ns)
{
	if (gap->start_ns >= since_ns)
		return gap->missing_ns;
	return gap->missing_ns * (double)(gap->end_ns - since_ns) /
	       (double)(gap->end_ns - gap->start_ns);
}

double nt_completeness_before(const struct nt_completeness *gaps, uint64_t since_ns)
{
	double missing_ns = gaps->missing_ns;

	for (uint32_t i = gaps->gaps; i-- > 0 && gaps->gap[i].end_ns > since_ns;)
		missing_ns -= missing_since(&gaps->gap[i], since_ns);
	return missing_ns;
}

double nt_completeness_share(const struct nt_completeness *gaps, double before_ns,
			     uint64_t since_ns, uint64_t end_ns)
{
	const double missing_ns = gaps->missing_ns - before_ns;

	if (missing_ns < NT_GAP_NS)
		return 1.0;
	if (end_ns <= since_ns)
		return 0.0;
	return fmax(0.0, 1.0 - missing_ns / (double)(end_ns - since_ns));
}
