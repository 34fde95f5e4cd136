/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report of `neutracer analyze`: as text, or as one JSON document. */
#ifndef NT_CLI_REPORT_REPORT_H
#define NT_CLI_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/trace.h"
#include "cli/replay/replay.h"
#include "common/base/buf.h"

/* Statistics of the input. A member that the source does not have is 0 or NULL. */
struct nt_report {
	const char *source; /* path as given */
	size_t jobs; /* over 1: incidents name their job */
	size_t ranks, frames;
	bool steps; /* a frame is one step */
	size_t world; /* ranks of the job, if not all were given */
	const uint32_t *missing; /* of those not given, as far as they are known by number */
	size_t missings;
	uint64_t dropped; /* calls of process groups beyond the cap */
	bool cut; /* the last line was cut short */
	uint64_t start_ns, end_ns;
	bool relative; /* times count from the start of the trace, not from 1970 */
	const struct nt_trace_collective *collective;
	size_t collectives;
	const struct nt_trace_wait *wait;
	size_t waits, waits_dropped;
	bool ungrouped; /* the process groups are unknown */
	bool groupless; /* the format has none */
	size_t hostless; /* ranks with a GPU whose host work is not recorded */
	bool stands; /* the source shows only where ranks hang */
	const struct nt_recording *recording; /* borrowed */
	const char *const *input_note; /* about files that were left out; borrowed */
	size_t input_notes;
	uint64_t skipped; /* messages of a recording that were unreadable or missing */
	const struct nt_judgement *judgement;
	bool lists_windows; /* windows are present and requested */
};

/* Sets the statistics of a source, and the judgement on it; both are borrowed. */
void nt_report_recording(struct nt_report *report, const struct nt_recording *recording,
			 const struct nt_judgement *judgement);
void nt_report_trace(struct nt_report *report, const struct nt_trace *trace,
		     const struct nt_judgement *judgement);

/* Offline times are relative to the start of the trace: "+140.1s"; live ones are wall clock. */
NT_MUST_CHECK int nt_report_time(const struct nt_report *report, uint64_t ns, struct nt_buf *buf);

/* No job was recorded long enough for any rank to be named. */
bool nt_report_is_short(const struct nt_report *report);
/* Whether it names a culprit, or is more than a note: a slow communicator, two populations. */
bool nt_report_accuses(const struct nt_wire_incident *incident);

/* A result other than 0 ends the iteration and is returned. */
typedef int nt_report_note_fn(void *data, const char *note);
NT_MUST_CHECK int nt_report_each_note(const struct nt_report *report, nt_report_note_fn *take,
				      void *data);

/* Writes each limitation of the report as a line with this prefix. */
NT_MUST_CHECK int nt_report_notes(const struct nt_report *report, const char *prefix,
				  struct nt_buf *buf);
NT_MUST_CHECK int nt_report_text(const struct nt_report *report, struct nt_buf *buf);
NT_MUST_CHECK int nt_report_json(const struct nt_report *report, struct nt_buf *buf);

#endif
