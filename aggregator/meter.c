/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/meter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/metrics.h"

enum metric {
	RECORDS,
	RECORD_BYTES,
	MESSAGES,
	DUPLICATES,
	GAPS,
	GAPS_FILLED,
	GAPS_FORGOTTEN,
	REFUSED_UNDECODABLE,
	REFUSED_IMPOSSIBLE,
	REFUSED_AHEAD,
	REFUSED_UNKNOWN,
	STREAMS_UNWATCHED,
	BUS_MISSED,
	BUS_CORRUPT,
	BUS_ERRORS,
	INCIDENTS_PUBLISHED,
	DLQ,
	DLQ_DROPPED,
	SINK_ERRORS,
	SAVE_ERRORS,
	WINDOWS,
	WINDOWS_LATE,
	WINDOWS_EARLY,
	OVER_KEY,
	OVER_JOB,
	OVER_RANK,
	OVER_NODE,
	OVER_COMM,
	OVER_SERIES,
	OVER_WINDOW,
	OVER_FRAME,
	SAMPLES_UNUSED,
	EPOCHS_ALIGNED,
	EPOCHS_TRIED,
	JOBS,
	JOBS_SPLIT,
	RANKS_CONFLICTING,
	FRAMES,
	FRAMES_INCOMPLETE,
	GAPS_SKIPPED,
	INCIDENT_CHANGES,
	METRICS,
};

#define NAME     "neutracer_aggregator_"
#define REFUSED  "Records turned down."
#define LATE     "Windows that could not be judged: too late, or before their job began."
#define OVER_CAP "Data passed over because a limit was reached, or the data made no sense."

static const struct nt_metric table[METRICS] = {
	[RECORDS] = {NAME "records_total", NT_METRIC_COUNTER, "Records read from the bus.", NULL},
	[RECORD_BYTES] = {NAME "record_bytes_total", NT_METRIC_COUNTER, "Bytes read from the bus.",
			  NULL},
	[MESSAGES] = {NAME "messages_total", NT_METRIC_COUNTER, "Messages taken.", NULL},
	[DUPLICATES] = {NAME "duplicates_total", NT_METRIC_COUNTER,
			"Messages that were here already.", NULL},
	[GAPS] = {NAME "gaps_total", NT_METRIC_COUNTER,
		  "Messages that were missing when later ones had come.", NULL},
	[GAPS_FILLED] = {NAME "gaps_filled_total", NT_METRIC_COUNTER,
			 "Missing messages that came after all; the rest of the gaps never came.",
			 NULL},
	[GAPS_FORGOTTEN] =
		{NAME "gaps_forgotten_total", NT_METRIC_COUNTER,
		 "Missing messages that would now be taken for repeated ones: too many gaps.",
		 NULL},
	[REFUSED_UNDECODABLE] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
				 "why=\"undecodable\""},
	[REFUSED_IMPOSSIBLE] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
				"why=\"impossible\""},
	[REFUSED_AHEAD] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
			   "why=\"ahead\""},
	[REFUSED_UNKNOWN] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
			     "why=\"unknown\""},
	[STREAMS_UNWATCHED] =
		{NAME "streams_unwatched_total", NT_METRIC_COUNTER,
		 "Messages of streams over the cap: duplicates and gaps of them do not show.",
		 NULL},
	[BUS_MISSED] = {NAME "bus_missed_total", NT_METRIC_COUNTER,
			"Records that the bus had removed before they were read.", NULL},
	[BUS_CORRUPT] = {NAME "bus_corrupt_total", NT_METRIC_COUNTER, "Damaged frames on the bus.",
			 NULL},
	[BUS_ERRORS] = {NAME "bus_errors_total", NT_METRIC_COUNTER, "Writes that the bus refused.",
			NULL},
	[INCIDENTS_PUBLISHED] = {NAME "incidents_published_total", NT_METRIC_COUNTER,
				 "Versions of incidents written to the bus.", NULL},
	[DLQ] = {NAME "dlq_total", NT_METRIC_COUNTER, "Refused records passed on to the bus.",
		 NULL},
	[DLQ_DROPPED] = {NAME "dlq_dropped_total", NT_METRIC_COUNTER,
			 "Refused records that were too many to be passed on.", NULL},
	[SINK_ERRORS] = {NAME "sink_errors_total", NT_METRIC_COUNTER,
			 "Incidents that could not be kept.", NULL},
	[SAVE_ERRORS] = {NAME "save_errors_total", NT_METRIC_COUNTER,
			 "States that could not be saved.", NULL},
	[WINDOWS] = {NAME "windows_total", NT_METRIC_COUNTER, "Windows of ranks taken.", NULL},
	[WINDOWS_LATE] = {NAME "windows_unused_total", NT_METRIC_COUNTER, LATE, "why=\"late\""},
	[WINDOWS_EARLY] = {NAME "windows_unused_total", NT_METRIC_COUNTER, LATE, "why=\"early\""},
	[OVER_KEY] = {NAME "over_limit_total", NT_METRIC_COUNTER, OVER_CAP, "what=\"key\""},
	[OVER_JOB] = {NAME "over_limit_total", NT_METRIC_COUNTER, OVER_CAP, "what=\"job\""},
	[OVER_RANK] = {NAME "over_limit_total", NT_METRIC_COUNTER, OVER_CAP, "what=\"rank\""},
	[OVER_NODE] = {NAME "over_limit_total", NT_METRIC_COUNTER, OVER_CAP, "what=\"node\""},
	[OVER_COMM] = {NAME "over_limit_total", NT_METRIC_COUNTER, OVER_CAP,
		       "what=\"communicator\""},
	[OVER_SERIES] = {NAME "over_limit_total", NT_METRIC_COUNTER, OVER_CAP, "what=\"series\""},
	[OVER_WINDOW] = {NAME "over_limit_total", NT_METRIC_COUNTER, OVER_CAP, "what=\"window\""},
	[OVER_FRAME] = {NAME "over_limit_total", NT_METRIC_COUNTER, OVER_CAP, "what=\"frame\""},
	[SAMPLES_UNUSED] = {NAME "samples_unused_total", NT_METRIC_COUNTER,
			    "Sampled calls of communicators that their window does not have.",
			    NULL},
	[EPOCHS_ALIGNED] = {NAME "epochs_aligned_total", NT_METRIC_COUNTER,
			    "Call numbers counted from mid-run on that were aligned.", NULL},
	[EPOCHS_TRIED] = {NAME "epochs_tried_total", NT_METRIC_COUNTER,
			  "Attempts to align call numbers for which there was too little to go by.",
			  NULL},
	[JOBS] = {NAME "jobs_seen_total", NT_METRIC_COUNTER, "Attempts of jobs seen.", NULL},
	[JOBS_SPLIT] = {NAME "jobs_split_total", NT_METRIC_COUNTER,
			"Jobs that shared their key with another one.", NULL},
	[RANKS_CONFLICTING] = {NAME "ranks_conflicting_total", NT_METRIC_COUNTER,
			       "Processes whose rank was another's: they are never accused.", NULL},
	[FRAMES] = {NAME "frames_total", NT_METRIC_COUNTER, "Frames judged.", NULL},
	[FRAMES_INCOMPLETE] = {NAME "frames_incomplete_total", NT_METRIC_COUNTER,
			       "Frames judged without a window of every rank.", NULL},
	[GAPS_SKIPPED] = {NAME "gaps_skipped_total", NT_METRIC_COUNTER,
			  "Stretches of a job's time of which nothing is known.", NULL},
	[INCIDENT_CHANGES] = {NAME "incident_changes_total", NT_METRIC_COUNTER,
			      "Changes of incidents.", NULL},
};

static void read_ingest(const struct nt_ingest_counters *in, uint64_t value[METRICS])
{
	value[RECORDS] = in->records;
	value[RECORD_BYTES] = in->bytes;
	value[MESSAGES] = in->messages;
	value[DUPLICATES] = in->duplicates;
	value[GAPS] = in->sequence.gaps;
	value[GAPS_FILLED] = in->sequence.filled;
	value[GAPS_FORGOTTEN] = in->sequence.forgotten;
	value[REFUSED_UNDECODABLE] = in->undecodable;
	value[REFUSED_IMPOSSIBLE] = in->impossible;
	value[REFUSED_AHEAD] = in->ahead;
	value[REFUSED_UNKNOWN] = in->unknown;
	value[STREAMS_UNWATCHED] = in->unwatched;
}

static void read_outlet(const struct nt_outlet_counters *out, uint64_t value[METRICS])
{
	value[BUS_ERRORS] = out->errors;
	value[INCIDENTS_PUBLISHED] = out->incidents;
	value[DLQ] = out->refused;
	value[DLQ_DROPPED] = out->refused_dropped;
}

static void read_engine(struct nt_engine *engine, uint64_t value[METRICS])
{
	const struct nt_jobs_counters *jobs = nt_jobs_counters(nt_engine_jobs(engine));
	const struct nt_framer_counters *framer = nt_engine_framer_counters(engine);
	const struct nt_engine_counters *own = nt_engine_counters(engine);

	value[WINDOWS] = jobs->windows;
	value[WINDOWS_LATE] = jobs->member.late_windows;
	value[WINDOWS_EARLY] = jobs->early_windows;
	value[OVER_KEY] = jobs->refused_keys;
	value[OVER_JOB] = jobs->refused_jobs;
	value[OVER_RANK] = jobs->refused_ranks;
	value[OVER_NODE] = jobs->refused_nodes;
	value[OVER_COMM] = jobs->member.refused_comms + framer->dropped_comms;
	value[OVER_SERIES] = jobs->member.refused_series;
	value[OVER_WINDOW] = jobs->member.evicted_windows;
	value[OVER_FRAME] = own->refused_frames;
	value[SAMPLES_UNUSED] = framer->unaligned_samples;
	value[EPOCHS_ALIGNED] = framer->align.aligned;
	value[EPOCHS_TRIED] = framer->align.tried;
	value[JOBS] = jobs->jobs;
	value[JOBS_SPLIT] = jobs->splits;
	value[RANKS_CONFLICTING] = jobs->conflicting_ranks;
	value[FRAMES] = framer->frames;
	value[FRAMES_INCOMPLETE] = framer->incomplete_frames;
	value[GAPS_SKIPPED] = framer->skipped_gaps;
	value[INCIDENT_CHANGES] = own->incidents;
}

/* A row of the picture is named without the suffix of its type. */
static int add_row(struct nt_snapshot *snapshot, const struct nt_metric *metric, uint64_t value,
		   struct nt_snapshot_metric *row)
{
	static const char suffix[] = "_total";
	const size_t size = strlen(metric->name) + 1 - (sizeof(suffix) - 1);
	char *name = nt_snapshot_alloc(snapshot, size, 1);

	if (!name)
		return -ENOMEM;
	(void)snprintf(name, size, "%s", metric->name);
	*row = (struct nt_snapshot_metric){
		.name = name,
		.help = metric->help,
		.labels = metric->labels ? metric->labels : "",
		.value = (double)value,
	};
	return 0;
}

int nt_meter_read(const struct nt_meter *meter, struct nt_snapshot *snapshot)
{
	uint64_t value[METRICS] = {
		[BUS_MISSED] = meter->bus_missed,
		[BUS_CORRUPT] = meter->bus_corrupt,
		[SINK_ERRORS] = meter->sink_errors,
		[SAVE_ERRORS] = meter->save_errors,
	};
	struct nt_snapshot_metric *row = nt_snapshot_alloc(snapshot, METRICS, sizeof(*row));
	int r;

	if (!row)
		return -ENOMEM;
	read_ingest(meter->ingest, value);
	if (meter->outlet)
		read_outlet(meter->outlet, value);
	read_engine(meter->engine, value);
	for (size_t i = 0; i < METRICS; i++) {
		r = add_row(snapshot, &table[i], value[i], &row[i]);
		if (r < 0)
			return r;
	}
	snapshot->metric = row;
	snapshot->metrics = METRICS;
	return 0;
}
