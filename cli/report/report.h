/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `neutracer analyze` says of a trace: as text for a person, or as one JSON document. */
#ifndef NT_CLI_REPORT_REPORT_H
#define NT_CLI_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "common/base/buf.h"

/* What was read, beside the incidents. A member that the source does not have is 0 or NULL. */
struct nt_report {
	const char *source; /* path as given */
	size_t jobs; /* over 1: incidents say of which they are */
	size_t ranks, frames;
	bool steps; /* a frame is one step */
	size_t world; /* ranks that the job has, where not all were given */
	uint64_t dropped; /* calls of process groups beyond the cap */
	uint64_t start_ns, end_ns;
	bool relative; /* times count from the start of the trace, not from 1970 */
	const struct nt_trace_collective *collective;
	size_t collectives;
	const struct nt_trace_wait *wait;
	size_t waits, waits_dropped;
	bool ungrouped; /* it does not say which ranks work together */
	bool stands; /* the source tells where ranks stand still, and of nothing else */
	const struct nt_recording *recording; /* borrowed */
	uint64_t skipped; /* messages of a recording that could not be read, or are missing */
	const struct nt_judgement *judgement;
	bool lists_windows; /* the judgement has them, and they were asked for */
};

/* Fills in what a source says of itself, and the judgement on it; both are borrowed. */
void nt_report_recording(struct nt_report *report, const struct nt_recording *recording,
			 const struct nt_judgement *judgement);
void nt_report_trace(struct nt_report *report, const struct nt_trace *trace,
		     const struct nt_judgement *judgement);

/* Offline times are read off a trace's own zero: "+140.1s"; live ones are wall clock. */
NT_MUST_CHECK int nt_report_time(const struct nt_report *report, uint64_t ns, struct nt_buf *buf);

/* No job was recorded for long enough that anybody could have been named. */
bool nt_report_is_short(const struct nt_report *report);

/* What makes the report less than whole, one sentence each. What the function returns ends it. */
typedef int nt_report_note_fn(void *data, const char *note);
NT_MUST_CHECK int nt_report_each_note(const struct nt_report *report, nt_report_note_fn *take,
				      void *data);

/* What makes the report less than whole: a line each, which begins with the prefix. */
NT_MUST_CHECK int nt_report_notes(const struct nt_report *report, const char *prefix,
				  struct nt_buf *buf);
NT_MUST_CHECK int nt_report_text(const struct nt_report *report, struct nt_buf *buf);
NT_MUST_CHECK int nt_report_json(const struct nt_report *report, struct nt_buf *buf);

#endif
