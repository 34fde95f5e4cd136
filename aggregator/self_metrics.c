/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/self_metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/system/metrics.h"

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
	REFUSED_WITHOUT_SIGNATURE,
	REFUSED_UNKNOWN_SECRET,
	REFUSED_WRONG_SIGNATURE,
	REFUSED_OTHER_NODE,
	VERIFIED,
	REFUSED_UNKNOWN,
	STREAMS_UNWATCHED,
	BUS_MISSED,
	BUS_RECONNECTED,
	BUS_LEFT_BEHIND,
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
	COMMS_LAPSED,
	GAPS_SKIPPED,
	INCIDENT_CHANGES,
	JOBS_RUNNING, /* in the order of enum nt_job_state */
	JOBS_HUNG,
	JOBS_UNOBSERVED,
	JOBS_ENDED,
	NODES_OBSERVED,
	NODES_UNOBSERVED,
	SHARDS,
	SHARDS_ASSIGNED,
	SHARDS_REVOKED,
	SHARDS_LOST,
	INCIDENTS_TAKEN,
	SUMMARIES_PUBLISHED,
	SUMMARIES_TAKEN,
	REPLICA_REFUSED,
	REPLICA_OVER_CAP,
	REQUESTS_PUBLISHED,
	REQUESTS_EXPIRED,
	REQUESTS_MALFORMED,
	REQUESTS_OVER_CAP,
	REQUESTS_IN_FORCE,
	PROFILES_TAKEN,
	PROFILES_MALFORMED,
	PROFILES_UNKNOWN,
	PROFILES_LEFT_OUT,
	NODES_LEARNING,
	NODES_QUIET,
	NODES_ALARM,
	NODE_BYTES,
	NODE_ROWS,
	NODE_ROWS_LOST,
	NODE_ALARMS,
	NODE_RESTARTS,
	NODE_REFITS,
	NODE_REFITS_FAILED,
	NODE_GAPS,
	NODE_RESETS,
	NODE_LATE,
	NODE_EVICTED,
	NODE_STATES_REFUSED,
	NODE_OVER_METRICS,
	NODE_OVER_NAMES,
	NODE_OVER_JOBS,
	NODE_OVER_NODES,
	BUS_WELL,
	TIMELINE_EVICTED,
	TIMELINE_BYTES,
	LAG_RECORDS,
	LAG_NS,
	READ_UNREACHABLE, /* in the order of enum nt_bus_cause */
	READ_REFUSED,
	READ_CERTIFICATE,
	READ_DENIED,
	READ_NO_TOPIC,
	READ_TOO_LARGE,
	READ_TIMED_OUT,
	READ_FENCED,
	READ_FAILED,
	UNDELIVERED_UNREACHABLE, /* likewise */
	UNDELIVERED_REFUSED,
	UNDELIVERED_CERTIFICATE,
	UNDELIVERED_DENIED,
	UNDELIVERED_NO_TOPIC,
	UNDELIVERED_TOO_LARGE,
	UNDELIVERED_TIMED_OUT,
	UNDELIVERED_FENCED,
	UNDELIVERED_FAILED,
	METRICS,
};

_Static_assert(READ_FAILED - READ_UNREACHABLE == NT_BUS_FAILED - NT_BUS_UNREACHABLE &&
		       READ_FENCED - READ_UNREACHABLE == NT_BUS_FENCED - NT_BUS_UNREACHABLE,
	       "a row for each cause");
_Static_assert(UNDELIVERED_FAILED - UNDELIVERED_UNREACHABLE == NT_BUS_FAILED - NT_BUS_UNREACHABLE,
	       "a row for each cause");
_Static_assert(JOBS_ENDED - JOBS_RUNNING == NT_JOB_ENDED - NT_JOB_RUNNING &&
		       NT_JOB_STATE_END == NT_JOB_ENDED + 1,
	       "a row for each state");
_Static_assert((int)METRICS <= (int)NT_SELF_METRICS_MAX, "sums hold every row");

#define NAME        "neutracer_aggregator_"
#define REFUSED     "Records refused."
#define LATE        "Windows not evaluated: too late, or before the start of their job."
#define READ        "Errors while reading from the brokers, by cause."
#define UNDELIVERED "Records that brokers did not acknowledge, by cause."
#define STATES      "Jobs of this aggregator now, by state."
#define NODES       "Nodes with running ranks, by whether data arrived in the last 10 s."
#define SCORED      "Nodes whose metrics are scored, by state."
#define NOT_SCORED  "Parts of node vectors that are not scored because a limit was reached."
#define OVER_CAP    "Data skipped because a limit was reached or the data was malformed."

static const struct nt_metric table[METRICS] = {
	[RECORDS] = {NAME "records_total", NT_METRIC_COUNTER, "Records read from the bus.", NULL},
	[RECORD_BYTES] = {NAME "record_bytes_total", NT_METRIC_COUNTER, "Bytes read from the bus.",
			  NULL},
	[MESSAGES] = {NAME "messages_total", NT_METRIC_COUNTER, "Messages accepted.", NULL},
	[DUPLICATES] = {NAME "duplicates_total", NT_METRIC_COUNTER, "Duplicate messages.", NULL},
	[GAPS] = {NAME "gaps_total", NT_METRIC_COUNTER,
		  "Messages that were missing when later ones arrived.", NULL},
	[GAPS_FILLED] = {NAME "gaps_filled_total", NT_METRIC_COUNTER,
			 "Missing messages that arrived later.", NULL},
	[GAPS_FORGOTTEN] =
		{NAME "gaps_forgotten_total", NT_METRIC_COUNTER,
		 "Missing messages that would now count as duplicates because there are too many "
		 "gaps.",
		 NULL},
	[REFUSED_UNDECODABLE] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
				 "why=\"undecodable\""},
	[REFUSED_IMPOSSIBLE] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
				"why=\"impossible\""},
	[REFUSED_AHEAD] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
			   "why=\"ahead\""},
	[REFUSED_WITHOUT_SIGNATURE] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
				       "why=\"without-signature\""},
	[REFUSED_UNKNOWN_SECRET] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
				    "why=\"unknown-secret\""},
	[REFUSED_WRONG_SIGNATURE] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
				     "why=\"wrong-signature\""},
	[REFUSED_OTHER_NODE] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
				"why=\"other-node\""},
	[VERIFIED] = {NAME "messages_verified_total", NT_METRIC_COUNTER,
		      "Messages with a valid signature of their node.", NULL},
	[REFUSED_UNKNOWN] = {NAME "records_refused_total", NT_METRIC_COUNTER, REFUSED,
			     "why=\"unknown\""},
	[STREAMS_UNWATCHED] =
		{NAME "streams_unwatched_total", NT_METRIC_COUNTER,
		 "Messages of streams over the cap, whose duplicates and gaps are not detected.",
		 NULL},
	[BUS_MISSED] = {NAME "bus_missed_total", NT_METRIC_COUNTER,
			"Records that the bus had removed before they were read.", NULL},
	[BUS_RECONNECTED] = {NAME "bus_reconnected_total", NT_METRIC_COUNTER,
			     "Recreations of the Kafka client that reads.", NULL},
	[BUS_LEFT_BEHIND] = {NAME "bus_clients_left_behind", NT_METRIC_GAUGE,
			     "Earlier Kafka clients that do not terminate.", NULL},
	[BUS_CORRUPT] = {NAME "bus_corrupt_total", NT_METRIC_COUNTER, "Damaged frames on the bus.",
			 NULL},
	[BUS_ERRORS] = {NAME "bus_errors_total", NT_METRIC_COUNTER, "Writes that the bus refused.",
			NULL},
	[INCIDENTS_PUBLISHED] = {NAME "incidents_published_total", NT_METRIC_COUNTER,
				 "Versions of incidents written to the bus.", NULL},
	[DLQ] = {NAME "dlq_total", NT_METRIC_COUNTER, "Refused records written to the bus.", NULL},
	[DLQ_DROPPED] = {NAME "dlq_dropped_total", NT_METRIC_COUNTER,
			 "Refused records over the limit, which were not written to the "
			 "bus.",
			 NULL},
	[SINK_ERRORS] = {NAME "sink_errors_total", NT_METRIC_COUNTER,
			 "Incidents that could not be stored.", NULL},
	[SAVE_ERRORS] = {NAME "save_errors_total", NT_METRIC_COUNTER,
			 "States that could not be saved.", NULL},
	[WINDOWS] = {NAME "windows_total", NT_METRIC_COUNTER, "Windows of ranks accepted.", NULL},
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
			    "Sampled calls of communicators that are missing in their window.",
			    NULL},
	[EPOCHS_ALIGNED] = {NAME "epochs_aligned_total", NT_METRIC_COUNTER,
			    "Call numbers counted from mid-run that were aligned.", NULL},
	[EPOCHS_TRIED] = {NAME "epochs_tried_total", NT_METRIC_COUNTER,
			  "Attempts to align call numbers that failed for lack of data.", NULL},
	[JOBS] = {NAME "jobs_seen_total", NT_METRIC_COUNTER, "Attempts of jobs seen.", NULL},
	[JOBS_SPLIT] = {NAME "jobs_split_total", NT_METRIC_COUNTER,
			"Jobs that shared their key with another one.", NULL},
	[RANKS_CONFLICTING] = {NAME "ranks_conflicting_total", NT_METRIC_COUNTER,
			       "Processes with the rank of another one, which are never "
			       "accused.",
			       NULL},
	[FRAMES] = {NAME "frames_total", NT_METRIC_COUNTER, "Frames evaluated.", NULL},
	[FRAMES_INCOMPLETE] =
		{NAME "frames_incomplete_total", NT_METRIC_COUNTER,
		 "Frames evaluated while windows, or parts of their input, were missing.", NULL},
	[COMMS_LAPSED] =
		{NAME "communicators_unheard_total", NT_METRIC_COUNTER,
		 "Times that reports of members of a communicator did not arrive within four "
		 "frames.",
		 NULL},
	[GAPS_SKIPPED] = {NAME "gaps_skipped_total", NT_METRIC_COUNTER,
			  "Periods of a job without data.", NULL},
	[INCIDENT_CHANGES] = {NAME "incident_changes_total", NT_METRIC_COUNTER,
			      "Changes of incidents.", NULL},
	[JOBS_RUNNING] = {NAME "jobs", NT_METRIC_GAUGE, STATES, "state=\"running\""},
	[JOBS_HUNG] = {NAME "jobs", NT_METRIC_GAUGE, STATES, "state=\"hung\""},
	[JOBS_UNOBSERVED] = {NAME "jobs", NT_METRIC_GAUGE, STATES, "state=\"unobserved\""},
	[JOBS_ENDED] = {NAME "jobs", NT_METRIC_GAUGE, STATES, "state=\"ended\""},
	[NODES_OBSERVED] = {NAME "nodes", NT_METRIC_GAUGE, NODES, "state=\"observed\""},
	[NODES_UNOBSERVED] = {NAME "nodes", NT_METRIC_GAUGE, NODES, "state=\"unobserved\""},
	[SHARDS] = {NAME "shards", NT_METRIC_GAUGE, "Shards that this aggregator owns now.", NULL},
	[SHARDS_ASSIGNED] = {NAME "shards_assigned_total", NT_METRIC_COUNTER,
			     "Shards assigned to this aggregator.", NULL},
	[SHARDS_REVOKED] = {NAME "shards_revoked_total", NT_METRIC_COUNTER,
			    "Shards revoked from this aggregator.", NULL},
	[SHARDS_LOST] = {NAME "shards_lost_total", NT_METRIC_COUNTER,
			 "Shards that another aggregator may have owned before this one released "
			 "them.",
			 NULL},
	[INCIDENTS_TAKEN] = {NAME "incidents_taken_total", NT_METRIC_COUNTER,
			     "Incidents of other aggregators that were read.", NULL},
	[SUMMARIES_PUBLISHED] = {NAME "heads_published_total", NT_METRIC_COUNTER,
				 "Job summaries published for other aggregators.", NULL},
	[SUMMARIES_TAKEN] = {NAME "heads_taken_total", NT_METRIC_COUNTER,
			     "Job summaries of other aggregators that were read.", NULL},
	[REPLICA_REFUSED] = {NAME "replica_refused_total", NT_METRIC_COUNTER,
			     "Malformed incidents and job summaries of other aggregators.", NULL},
	[REPLICA_OVER_CAP] = {NAME "replica_over_limit_total", NT_METRIC_COUNTER,
			      "Job summaries of other aggregators over the limit.", NULL},
	[REQUESTS_PUBLISHED] = {NAME "requests_published_total", NT_METRIC_COUNTER,
				"Requests for levels, stacks and profiles written to the bus.",
				NULL},
	[REQUESTS_EXPIRED] = {NAME "requests_expired_total", NT_METRIC_COUNTER,
			      "Such requests that expired before the bus accepted them.", NULL},
	[REQUESTS_MALFORMED] = {NAME "requests_malformed_total", NT_METRIC_COUNTER,
				"Malformed requests read from the control topic.", NULL},
	[REQUESTS_OVER_CAP] = {NAME "requests_over_limit_total", NT_METRIC_COUNTER,
			       "Requests over the limit.", NULL},
	[REQUESTS_IN_FORCE] = {NAME "requests_in_force", NT_METRIC_GAUGE,
			       "Requests in force now, of all aggregators.", NULL},
	[PROFILES_TAKEN] = {NAME "profiles_total", NT_METRIC_COUNTER,
			    "Profiles that agents have sent on request.", NULL},
	[PROFILES_MALFORMED] = {NAME "profiles_malformed_total", NT_METRIC_COUNTER,
				"Profiles that are malformed or too large.", NULL},
	[PROFILES_UNKNOWN] = {NAME "profiles_unknown_total", NT_METRIC_COUNTER,
			      "Profiles not requested here, or replaced by later ones.", NULL},
	[PROFILES_LEFT_OUT] = {NAME "level_profiles_left_out", NT_METRIC_GAUGE,
			       "Ranks at level 2 or above without profiles, as others have them.",
			       NULL},
	[BUS_WELL] = {NAME "bus_well", NT_METRIC_GAUGE, "1 if the bus is reachable, 0 otherwise.",
		      NULL},
	[READ_UNREACHABLE] = {NAME "bus_read_errors_total", NT_METRIC_COUNTER, READ,
			      "cause=\"unreachable\""},
	[READ_REFUSED] = {NAME "bus_read_errors_total", NT_METRIC_COUNTER, READ,
			  "cause=\"refused\""},
	[READ_CERTIFICATE] = {NAME "bus_read_errors_total", NT_METRIC_COUNTER, READ,
			      "cause=\"certificate\""},
	[READ_DENIED] = {NAME "bus_read_errors_total", NT_METRIC_COUNTER, READ, "cause=\"denied\""},
	[READ_NO_TOPIC] = {NAME "bus_read_errors_total", NT_METRIC_COUNTER, READ,
			   "cause=\"no-topic\""},
	[READ_TOO_LARGE] = {NAME "bus_read_errors_total", NT_METRIC_COUNTER, READ,
			    "cause=\"too-large\""},
	[READ_TIMED_OUT] = {NAME "bus_read_errors_total", NT_METRIC_COUNTER, READ,
			    "cause=\"timed-out\""},
	[READ_FENCED] = {NAME "bus_read_errors_total", NT_METRIC_COUNTER, READ, "cause=\"fenced\""},
	[READ_FAILED] = {NAME "bus_read_errors_total", NT_METRIC_COUNTER, READ, "cause=\"failed\""},
	[UNDELIVERED_UNREACHABLE] = {NAME "bus_undelivered_total", NT_METRIC_COUNTER, UNDELIVERED,
				     "cause=\"unreachable\""},
	[UNDELIVERED_REFUSED] = {NAME "bus_undelivered_total", NT_METRIC_COUNTER, UNDELIVERED,
				 "cause=\"refused\""},
	[UNDELIVERED_CERTIFICATE] = {NAME "bus_undelivered_total", NT_METRIC_COUNTER, UNDELIVERED,
				     "cause=\"certificate\""},
	[UNDELIVERED_DENIED] = {NAME "bus_undelivered_total", NT_METRIC_COUNTER, UNDELIVERED,
				"cause=\"denied\""},
	[UNDELIVERED_NO_TOPIC] = {NAME "bus_undelivered_total", NT_METRIC_COUNTER, UNDELIVERED,
				  "cause=\"no-topic\""},
	[UNDELIVERED_TOO_LARGE] = {NAME "bus_undelivered_total", NT_METRIC_COUNTER, UNDELIVERED,
				   "cause=\"too-large\""},
	[UNDELIVERED_TIMED_OUT] = {NAME "bus_undelivered_total", NT_METRIC_COUNTER, UNDELIVERED,
				   "cause=\"timed-out\""},
	[UNDELIVERED_FENCED] = {NAME "bus_undelivered_total", NT_METRIC_COUNTER, UNDELIVERED,
				"cause=\"fenced\""},
	[UNDELIVERED_FAILED] = {NAME "bus_undelivered_total", NT_METRIC_COUNTER, UNDELIVERED,
				"cause=\"failed\""},
	[NODES_LEARNING] = {NAME "nodes_scored", NT_METRIC_GAUGE, SCORED, "state=\"learning\""},
	[NODES_QUIET] = {NAME "nodes_scored", NT_METRIC_GAUGE, SCORED, "state=\"quiet\""},
	[NODES_ALARM] = {NAME "nodes_scored", NT_METRIC_GAUGE, SCORED, "state=\"alarm\""},
	[NODE_BYTES] = {NAME "node_score_bytes", NT_METRIC_GAUGE, "Memory of the scores of nodes.",
			NULL},
	[NODE_ROWS] = {NAME "node_rows_total", NT_METRIC_COUNTER,
		       "Minutes of nodes that were scored.", NULL},
	[NODE_ROWS_LOST] = {NAME "node_rows_lost_total", NT_METRIC_COUNTER,
			    "Minutes of nodes that a later one replaced before they were scored.",
			    NULL},
	[NODE_ALARMS] = {NAME "node_alarms_total", NT_METRIC_COUNTER,
			 "Alarms of nodes by their score.", NULL},
	[NODE_RESTARTS] = {NAME "node_restarts_total", NT_METRIC_COUNTER,
			   "Nodes learned anew: rebooted, another kernel, or damaged state.", NULL},
	[NODE_REFITS] = {NAME "node_refits_total", NT_METRIC_COUNTER,
			 "Refits of the subspace of a node.", NULL},
	[NODE_REFITS_FAILED] = {NAME "node_refits_failed_total", NT_METRIC_COUNTER,
				"Refits that did not converge; the old subspace stays.", NULL},
	[NODE_GAPS] = {NAME "node_series_gaps_total", NT_METRIC_COUNTER,
		       "Counters of nodes that gave no rate as they were not read for two minutes.",
		       NULL},
	[NODE_RESETS] = {NAME "node_series_resets_total", NT_METRIC_COUNTER,
			 "Counters of nodes that gave no rate as they decreased.", NULL},
	[NODE_LATE] = {NAME "node_vectors_late_total", NT_METRIC_COUNTER,
		       "Node vectors that were older than an earlier one.", NULL},
	[NODE_EVICTED] = {NAME "nodes_evicted_total", NT_METRIC_COUNTER,
			  "Silent nodes whose score gave way to a new node.", NULL},
	[NODE_STATES_REFUSED] = {NAME "node_states_refused_total", NT_METRIC_COUNTER,
				 "Damaged states of node scores; their nodes are learned anew.",
				 NULL},
	[NODE_OVER_METRICS] = {NAME "node_scores_over_limit_total", NT_METRIC_COUNTER, NOT_SCORED,
			       "what=\"metrics\""},
	[NODE_OVER_NAMES] = {NAME "node_scores_over_limit_total", NT_METRIC_COUNTER, NOT_SCORED,
			     "what=\"names\""},
	[NODE_OVER_JOBS] = {NAME "node_scores_over_limit_total", NT_METRIC_COUNTER, NOT_SCORED,
			    "what=\"jobs\""},
	[NODE_OVER_NODES] = {NAME "node_scores_over_limit_total", NT_METRIC_COUNTER, NOT_SCORED,
			     "what=\"nodes\""},
	[TIMELINE_EVICTED] =
		{NAME "timeline_cells_evicted_total", NT_METRIC_COUNTER,
		 "Cells of timelines removed within their half hour, for want of room.", NULL},
	[TIMELINE_BYTES] = {NAME "timeline_bytes", NT_METRIC_GAUGE,
			    "Memory of the timelines of all jobs, in bytes.", NULL},
	[LAG_RECORDS] = {NAME "lag_records", NT_METRIC_GAUGE,
			 "Records of windows on the bus that are not read yet.", NULL},
	[LAG_NS] = {NAME "lag_seconds", NT_METRIC_GAUGE_NS,
		    "Age of the last record read, if unread records remain.", NULL},
};

static void add_ingest(const struct nt_ingest_counters *in, uint64_t *value)
{
	value[RECORDS] += in->records;
	value[RECORD_BYTES] += in->bytes;
	value[MESSAGES] += in->messages;
	value[DUPLICATES] += in->duplicates;
	value[GAPS] += in->dedup.gaps;
	value[GAPS_FILLED] += in->dedup.filled;
	value[GAPS_FORGOTTEN] += in->dedup.forgotten;
	value[REFUSED_UNDECODABLE] += in->undecodable;
	value[REFUSED_IMPOSSIBLE] += in->impossible;
	value[REFUSED_AHEAD] += in->ahead;
	value[REFUSED_WITHOUT_SIGNATURE] += in->without_signature;
	value[REFUSED_UNKNOWN_SECRET] += in->unknown_secret;
	value[REFUSED_WRONG_SIGNATURE] += in->wrong_signature;
	value[REFUSED_OTHER_NODE] += in->other_node;
	value[VERIFIED] += in->verified;
	value[REFUSED_UNKNOWN] += in->unknown;
	value[STREAMS_UNWATCHED] += in->unwatched;
}

static void read_bus_producer(const struct nt_bus_producer_counters *out, uint64_t *value)
{
	value[BUS_ERRORS] = out->errors;
	value[INCIDENTS_PUBLISHED] = out->incidents;
	value[REQUESTS_PUBLISHED] = out->controls;
	value[DLQ] = out->refused;
	value[DLQ_DROPPED] = out->refused_dropped;
	for (int i = NT_BUS_UNREACHABLE; i <= NT_BUS_FAILED; i++)
		value[UNDELIVERED_UNREACHABLE + i - NT_BUS_UNREACHABLE] = out->undelivered[i];
}

static void add_engine(struct nt_engine *engine, uint64_t *value)
{
	const struct nt_jobs_counters *jobs = nt_jobs_counters(nt_engine_jobs(engine));
	const struct nt_frame_builder_counters *frame_builder =
		nt_engine_frame_builder_counters(engine);
	const struct nt_engine_counters *own = nt_engine_counters(engine);

	value[WINDOWS] += jobs->windows;
	value[WINDOWS_LATE] += jobs->session.late_windows;
	value[WINDOWS_EARLY] += jobs->early_windows;
	value[OVER_KEY] += jobs->refused_keys;
	value[OVER_JOB] += jobs->refused_jobs;
	value[OVER_RANK] += jobs->refused_ranks;
	value[OVER_NODE] += jobs->refused_nodes + nt_engine_shortages(engine)->over_cap;
	value[OVER_COMM] += jobs->session.refused_comms + frame_builder->dropped_comms +
			    frame_builder->dropped_transfers;
	value[OVER_SERIES] += jobs->session.refused_series;
	value[OVER_WINDOW] += jobs->session.evicted_windows;
	value[OVER_FRAME] += own->refused_frames;
	value[SAMPLES_UNUSED] += frame_builder->unaligned_samples;
	value[EPOCHS_ALIGNED] += frame_builder->align.aligned;
	value[EPOCHS_TRIED] += frame_builder->align.tried;
	value[JOBS] += jobs->jobs;
	value[JOBS_SPLIT] += jobs->splits;
	value[RANKS_CONFLICTING] += jobs->conflicting_ranks;
	value[FRAMES] += frame_builder->frames;
	value[FRAMES_INCOMPLETE] += frame_builder->incomplete_frames;
	value[COMMS_LAPSED] += own->lapsed_comms;
	value[GAPS_SKIPPED] += frame_builder->skipped_gaps;
	value[INCIDENT_CHANGES] += own->incidents;
}

void nt_self_metrics_add(struct nt_self_metrics_sum *sum, struct nt_engine *engine,
			 const struct nt_ingest_counters *ingest)
{
	add_ingest(ingest, sum->value);
	add_engine(engine, sum->value);
}

void nt_self_metrics_add_nodes(struct nt_self_metrics_sum *sum,
			       const struct nt_shortages *shortages,
			       const struct nt_ingest_counters *ingest)
{
	add_ingest(ingest, sum->value);
	sum->value[OVER_NODE] += shortages->over_cap;
}

/* Rows of a snapshot are named without the suffix of their type; gauges have none. */
static int add_row(struct nt_snapshot *snapshot, const struct nt_metric *metric, uint64_t value,
		   struct nt_snapshot_metric *row)
{
	static const char suffix[] = "_total";
	const bool gauge = metric->kind != NT_METRIC_COUNTER;
	const size_t size = strlen(metric->name) + 1 - (gauge ? 0 : sizeof(suffix) - 1);
	char *name = nt_snapshot_alloc(snapshot, size, 1);

	if (!name)
		return -ENOMEM;
	(void)snprintf(name, size, "%s", metric->name);
	*row = (struct nt_snapshot_metric){
		.name = name,
		.help = metric->help,
		.labels = metric->labels ? metric->labels : "",
		.gauge = gauge,
		.value = metric->kind == NT_METRIC_GAUGE_NS ? (double)value / 1e9 : (double)value,
	};
	return 0;
}

static void read_node_desk(const struct nt_node_desk_stats *nodes, uint64_t *value)
{
	value[NODES_LEARNING] = nodes->state[NT_FLEET_LEARNING];
	value[NODES_QUIET] = nodes->state[NT_FLEET_QUIET];
	value[NODES_ALARM] = nodes->state[NT_FLEET_ALARM];
	value[NODE_BYTES] = nodes->bytes;
	value[NODE_ROWS] = nodes->counters.rows;
	value[NODE_ROWS_LOST] = nodes->counters.rows_lost;
	value[NODE_ALARMS] = nodes->counters.alarms;
	value[NODE_RESTARTS] = nodes->counters.restarts;
	value[NODE_REFITS] = nodes->counters.refits;
	value[NODE_REFITS_FAILED] = nodes->counters.refits_failed;
	value[NODE_GAPS] = nodes->counters.gaps;
	value[NODE_RESETS] = nodes->counters.resets;
	value[NODE_LATE] = nodes->counters.late;
	value[NODE_EVICTED] = nodes->counters.evicted;
	value[NODE_STATES_REFUSED] = nodes->counters.states_refused;
	value[NODE_OVER_METRICS] = nodes->counters.left_out;
	value[NODE_OVER_NAMES] = nodes->names_over_cap;
	value[NODE_OVER_JOBS] = nodes->counters.jobs_over_cap;
	value[NODE_OVER_NODES] = nodes->counters.nodes_over_cap;
}

static void read_own(const struct nt_self_metrics *own, uint64_t *value)
{
	value[BUS_MISSED] = own->bus_missed;
	value[BUS_RECONNECTED] = own->bus_reconnected;
	value[BUS_LEFT_BEHIND] = own->bus_left_behind;
	value[BUS_CORRUPT] = own->bus_corrupt;
	value[SINK_ERRORS] = own->sink_errors;
	value[SAVE_ERRORS] = own->save_errors;
	value[SHARDS] = own->shards_now;
	value[SHARDS_ASSIGNED] = own->assigned;
	value[SHARDS_REVOKED] = own->revoked;
	value[SHARDS_LOST] = own->lost;
	value[INCIDENTS_TAKEN] = own->foreign_incidents;
	value[REPLICA_REFUSED] = own->foreign_refused;
	value[REQUESTS_EXPIRED] = own->level_desk.expired;
	value[REQUESTS_MALFORMED] = own->level_desk.table.malformed + own->level_desk.feed.bad;
	value[REQUESTS_OVER_CAP] = own->level_desk.over_cap + own->level_desk.table.over_cap;
	value[REQUESTS_IN_FORCE] = own->level_desk.in_force_now;
	value[PROFILES_TAKEN] = own->profile_desk.taken;
	value[PROFILES_MALFORMED] = own->profile_desk.malformed;
	value[PROFILES_UNKNOWN] = own->profile_desk.unknown;
	value[PROFILES_LEFT_OUT] = own->unprofiled;
	value[BUS_WELL] = own->bus_well;
	value[TIMELINE_EVICTED] = own->timelines.evicted;
	value[TIMELINE_BYTES] = own->timelines.bytes_now;
	value[LAG_RECORDS] = own->lag_records;
	value[LAG_NS] = own->lag_ns;
	for (int i = NT_BUS_UNREACHABLE; i <= NT_BUS_FAILED; i++)
		value[READ_UNREACHABLE + i - NT_BUS_UNREACHABLE] = own->bus_errors[i];
}

/* Gauges of the current state. Jobs of other aggregators are left out: their owners count them. */
static void read_snapshot(const struct nt_snapshot *snapshot, uint64_t *value)
{
	for (size_t i = 0; i < snapshot->jobs; i++)
		if (!snapshot->job[i]->is_summary)
			value[JOBS_RUNNING + snapshot->job[i]->state]++;
	for (size_t i = 0; i < snapshot->nodes; i++)
		if (snapshot->node[i].ranks)
			value[snapshot->node[i].silent ? NODES_UNOBSERVED : NODES_OBSERVED]++;
}

int nt_self_metrics_read(const struct nt_self_metrics *own, struct nt_snapshot *snapshot)
{
	struct nt_self_metrics_sum sum = own->shards;
	struct nt_snapshot_metric *row = nt_snapshot_alloc(snapshot, METRICS, sizeof(*row));
	size_t rows = 0;
	int r;

	if (!row)
		return -ENOMEM;
	read_own(own, sum.value);
	read_node_desk(&own->node_desk, sum.value);
	read_snapshot(snapshot, sum.value);
	if (own->bus_producer)
		read_bus_producer(own->bus_producer, sum.value);
	if (own->summaries) {
		sum.value[SUMMARIES_PUBLISHED] = own->summaries->published;
		sum.value[SUMMARIES_TAKEN] = own->summaries->taken;
		sum.value[REPLICA_REFUSED] += own->summaries->refused;
		sum.value[REPLICA_OVER_CAP] = own->summaries->over_cap;
	}
	for (size_t i = 0; i < METRICS; i++) {
		/* An unknown lag is omitted, not reported as 0. */
		if ((i == LAG_RECORDS || i == LAG_NS) && !own->lag_known)
			continue;
		r = add_row(snapshot, &table[i], sum.value[i], &row[rows]);
		if (r < 0)
			return r;
		rows++;
	}
	snapshot->metric = row;
	snapshot->metrics = rows;
	return 0;
}
