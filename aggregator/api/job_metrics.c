/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/api/job_metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/base/search.h"
#include "common/system/clock.h"
#include "common/system/metrics.h"
#include "proto/json.h"

/* Of a node that is scored; NAN: unknown. */
struct node_series {
	const struct nt_snapshot_node *node;
	double score, threshold, alarm;
};

/* What one scrape shows, and what it leaves out. */
struct scrape {
	struct nt_buf *out;
	enum nt_metrics_format format;
	const struct nt_snapshot_job *job[NT_JOB_METRICS_MAX_JOBS];
	size_t jobs;
	struct node_series node[NT_JOB_METRICS_MAX_NODES];
	size_t nodes;
	struct nt_rank_series rank[NT_JOB_METRICS_MAX_RANKS];
	size_t ranks;
	uint64_t left_out[NT_SERIES_KIND_END];
};

static int begin_family(const struct scrape *scrape, const struct nt_metric *metric)
{
	return nt_metrics_write_family(metric->name, metric->kind == NT_METRIC_COUNTER,
				       metric->help, scrape->format, scrape->out);
}

int nt_job_metrics_labels(const struct nt_snapshot_job *job, struct nt_buf *out)
{
	int r = nt_metrics_write_label("job_id", job->id, true, out);

	if (r == 0)
		r = nt_metrics_write_label("job_name", job->name, false, out);
	return r < 0 ? r : nt_metrics_write_label("job_namespace", job->namespace, false, out);
}

/* ---- jobs: those of this aggregator, while they run -------------------------------------------- */

static void collect_jobs(struct scrape *scrape, const struct nt_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (job->is_summary || job->state == NT_JOB_ENDED)
			continue;
		if (scrape->jobs < NT_JOB_METRICS_MAX_JOBS)
			scrape->job[scrape->jobs++] = job;
		else
			scrape->left_out[NT_SERIES_JOB]++;
	}
}

static double live_ranks(const struct nt_snapshot_job *job)
{
	return job->live;
}

static double size(const struct nt_snapshot_job *job)
{
	return job->size;
}

static double nodes(const struct nt_snapshot_job *job)
{
	return job->nodes;
}

static double step(const struct nt_snapshot_job *job)
{
	return job->step_ns > 0 ? job->step_ns / (double)NT_SECOND : NAN;
}

static double completeness(const struct nt_snapshot_job *job)
{
	return job->completeness;
}

static double started(const struct nt_snapshot_job *job)
{
	return (double)job->since_ns / (double)NT_SECOND;
}

/* Incidents of severity info are notes, and cost nothing. */
static double slowdown(const struct nt_snapshot_job *job)
{
	double most = 1;

	for (size_t i = 0; i < job->incidents; i++)
		if (strcmp(job->incident[i]->severity, "info") != 0 &&
		    job->incident[i]->slowdown > most)
			most = job->incident[i]->slowdown;
	return most;
}

static const struct job_family {
	struct nt_metric metric;
	double (*read)(const struct nt_snapshot_job *job);
} families[] = {
	{{"neutracer_job_ranks", NT_METRIC_GAUGE, "Ranks of the job that are observed.", NULL},
	 live_ranks},
	{{"neutracer_job_size", NT_METRIC_GAUGE, "Ranks of the job as its processes state it.",
	  NULL},
	 size},
	{{"neutracer_job_nodes", NT_METRIC_GAUGE, "Nodes of the job.", NULL}, nodes},
	{{"neutracer_job_step_seconds", NT_METRIC_GAUGE_NS,
	  "Median of the step times of its ranks.", NULL},
	 step},
	{{"neutracer_job_slowdown_ratio", NT_METRIC_GAUGE,
	  "Step time by that without the worst firing incident; 1 without one.", NULL},
	 slowdown},
	{{"neutracer_job_completeness_ratio", NT_METRIC_GAUGE,
	  "Share of the expected windows in the last frame.", NULL},
	 completeness},
	{{"neutracer_job_start_time_seconds", NT_METRIC_GAUGE_NS,
	  "When the job was first seen, since 1970.", NULL},
	 started},
};

static const struct nt_metric state_metric = {
	"neutracer_job_state", NT_METRIC_GAUGE,
	"1 for the state of the job: running, hung or unobserved.", NULL};
static const struct nt_metric incidents_metric = {"neutracer_job_incidents", NT_METRIC_GAUGE,
						  "Firing incidents of the job, by severity.",
						  NULL};

static int begin_job(const struct scrape *scrape, const char *name,
		     const struct nt_snapshot_job *job)
{
	int r = nt_buf_printf(scrape->out, "%s{", name);

	return r < 0 ? r : nt_job_metrics_labels(job, scrape->out);
}

static int write_values(const struct scrape *scrape, const struct job_family *family)
{
	int r = begin_family(scrape, &family->metric);

	for (size_t i = 0; r == 0 && i < scrape->jobs; i++) {
		double value = family->read(scrape->job[i]);

		if (!isfinite(value))
			continue;
		r = begin_job(scrape, family->metric.name, scrape->job[i]);
		if (r == 0)
			r = nt_buf_printf(scrape->out, "} %.15g\n", value);
	}
	return r;
}

static int write_states(const struct scrape *scrape)
{
	int r = begin_family(scrape, &state_metric);

	for (size_t i = 0; r == 0 && i < scrape->jobs; i++) {
		r = begin_job(scrape, state_metric.name, scrape->job[i]);
		if (r == 0)
			r = nt_buf_printf(scrape->out, ",state=\"%s\"} 1\n",
					  nt_job_state_name(scrape->job[i]->state));
	}
	return r;
}

static unsigned int count_incidents(const struct nt_snapshot_job *job, const char *severity)
{
	unsigned int count = 0;

	for (size_t i = 0; i < job->incidents; i++)
		count += !strcmp(job->incident[i]->severity, severity);
	return count;
}

static int write_incident_counts(const struct scrape *scrape)
{
	static const char *const severities[] = {"critical", "warning", "info"};
	int r = begin_family(scrape, &incidents_metric);

	for (size_t i = 0; i < scrape->jobs; i++) {
		for (size_t k = 0; r == 0 && k < sizeof(severities) / sizeof(severities[0]); k++) {
			r = begin_job(scrape, incidents_metric.name, scrape->job[i]);
			if (r == 0)
				r = nt_buf_printf(scrape->out, ",severity=\"%s\"} %u\n",
						  severities[k],
						  count_incidents(scrape->job[i], severities[k]));
		}
	}
	return r;
}

static int write_jobs(const struct scrape *scrape)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(families) / sizeof(families[0]); i++)
		r = write_values(scrape, &families[i]);
	if (r == 0)
		r = write_states(scrape);
	return r < 0 ? r : write_incident_counts(scrape);
}

/* ---- nodes with running ranks -------------------------------------------------------------------- */

static struct node_series read_node(const struct nt_snapshot_node *node, struct nt_node_desk *desk)
{
	struct node_series series = {node, NAN, NAN, NAN};
	struct nt_node_desk_score score;

	if (!desk || !nt_node_desk_find(desk, node->name, &score) || !score.is_scored)
		return series;
	series.alarm = score.state == NT_FLEET_ALARM;
	if (score.state == NT_FLEET_LEARNING)
		return series;
	series.score = score.score;
	series.threshold = score.threshold;
	return series;
}

static void collect_nodes(struct scrape *scrape, const struct nt_snapshot *snapshot,
			  struct nt_node_desk *desk)
{
	for (size_t i = 0; i < snapshot->nodes; i++) {
		if (!snapshot->node[i].ranks)
			continue;
		if (scrape->nodes < NT_JOB_METRICS_MAX_NODES)
			scrape->node[scrape->nodes++] = read_node(&snapshot->node[i], desk);
		else
			scrape->left_out[NT_SERIES_NODE]++;
	}
}

enum node_value {
	NODE_RANKS,
	NODE_OBSERVED,
	NODE_SCORE,
	NODE_THRESHOLD,
	NODE_ALARM,
	NODE_VALUES,
};

static const struct nt_metric node_metrics[NODE_VALUES] = {
	[NODE_RANKS] = {"neutracer_node_ranks", NT_METRIC_GAUGE, "Ranks that run on the node.",
			NULL},
	[NODE_OBSERVED] = {"neutracer_node_observed", NT_METRIC_GAUGE,
			   "1 if data of the node arrived in the last 10 s, 0 otherwise.", NULL},
	[NODE_SCORE] = {"neutracer_node_anomaly_score", NT_METRIC_GAUGE,
			"Anomaly score of the metrics of the node.", NULL},
	[NODE_THRESHOLD] = {"neutracer_node_anomaly_threshold", NT_METRIC_GAUGE,
			    "Score from which on the node has an alarm.", NULL},
	[NODE_ALARM] = {"neutracer_node_anomaly_alarm", NT_METRIC_GAUGE,
			"1 while the score of the node has an alarm, 0 otherwise.", NULL},
};

static double node_number(const struct node_series *series, enum node_value value)
{
	switch (value) {
	case NODE_RANKS:
		return series->node->ranks;
	case NODE_OBSERVED:
		return !series->node->silent;
	case NODE_SCORE:
		return series->score;
	case NODE_THRESHOLD:
		return series->threshold;
	case NODE_ALARM:
		return series->alarm;
	case NODE_VALUES:
		break;
	}
	return NAN;
}

static int write_node(const struct scrape *scrape, const struct node_series *series,
		      enum node_value value)
{
	const double number = node_number(series, value);
	int r;

	if (!isfinite(number))
		return 0;
	r = nt_buf_printf(scrape->out, "%s{", node_metrics[value].name);
	if (r == 0)
		r = nt_metrics_write_label("node", series->node->name, true, scrape->out);
	return r < 0 ? r : nt_buf_printf(scrape->out, "} %.9g\n", number);
}

static int write_nodes(const struct scrape *scrape)
{
	int r = 0;

	for (int value = 0; r == 0 && value < NODE_VALUES; value++) {
		r = begin_family(scrape, &node_metrics[value]);
		for (size_t i = 0; r == 0 && i < scrape->nodes; i++)
			r = write_node(scrape, &scrape->node[i], (enum node_value)value);
	}
	return r;
}

/* ---- firing incidents, a series for each culprit ------------------------------------------------ */

static const struct nt_metric slowdown_metric = {
	"neutracer_incident_slowdown_ratio", NT_METRIC_GAUGE,
	"Slowdown of the job by a firing incident, a series for each culprit.", NULL};
static const struct nt_metric since_metric = {
	"neutracer_incident_start_time_seconds", NT_METRIC_GAUGE_NS,
	"When a firing incident began, since 1970, a series for each culprit.", NULL};

/* What distinguishes the culprits of an incident. */
static bool is_same_culprit(const struct nt_culprit *one, const struct nt_culprit *other)
{
	return one->has_rank == other->has_rank && one->rank == other->rank &&
	       !strcmp(one->kind, other->kind) && !strcmp(one->node, other->node) &&
	       !strcmp(one->name, other->name) && !strcmp(one->peer, other->peer);
}

static bool is_repeated(const struct nt_wire_incident *incident, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (is_same_culprit(&incident->culprit[i], &incident->culprit[number]))
			return true;
	return false;
}

/* culprit NULL: the incident names none. */
static int write_incident_labels(const struct nt_wire_incident *incident,
				 const struct nt_culprit *culprit, struct nt_buf *out)
{
	char rank[16] = "";
	int r;

	if (culprit && culprit->has_rank)
		(void)snprintf(rank, sizeof(rank), "%" PRIu32, culprit->rank);
	const struct {
		const char *name, *value;
	} labels[] = {
		{"incident", incident->id},
		{"severity", incident->severity},
		{"class", incident->class},
		{"cause", incident->cause},
		{"kind", culprit ? culprit->kind : ""},
		{"rank", rank},
		{"node", culprit ? culprit->node : ""},
		{"rank_pod", culprit ? culprit->pod : ""},
		{"device", culprit ? culprit->name : ""},
		{"peer", culprit ? culprit->peer : ""},
	};

	r = 0;
	for (size_t i = 0; r == 0 && i < sizeof(labels) / sizeof(labels[0]); i++)
		r = nt_metrics_write_label(labels[i].name, labels[i].value, false, out);
	return r;
}

struct incident_row {
	const struct nt_snapshot_job *job;
	const struct nt_wire_incident *incident;
	const struct nt_culprit *culprit; /* NULL: none */
};

struct incident_rows {
	struct incident_row row[NT_JOB_METRICS_MAX_CULPRITS];
	size_t count;
};

static void add_incident_row(struct scrape *scrape, struct incident_rows *rows,
			     const struct nt_snapshot_job *job,
			     const struct nt_wire_incident *incident,
			     const struct nt_culprit *culprit)
{
	if (rows->count < NT_JOB_METRICS_MAX_CULPRITS)
		rows->row[rows->count++] = (struct incident_row){job, incident, culprit};
	else
		scrape->left_out[NT_SERIES_CULPRIT]++;
}

static void collect_incident(struct scrape *scrape, struct incident_rows *rows,
			     const struct nt_snapshot_job *job,
			     const struct nt_wire_incident *incident)
{
	bool is_named = false;

	for (size_t i = 0; i < incident->culprits; i++) {
		if (!nt_json_culprit_accuses(&incident->culprit[i]) || is_repeated(incident, i))
			continue;
		add_incident_row(scrape, rows, job, incident, &incident->culprit[i]);
		is_named = true;
	}
	if (!is_named)
		add_incident_row(scrape, rows, job, incident, NULL);
}

static void collect_incidents(struct scrape *scrape, struct incident_rows *rows)
{
	for (size_t i = 0; i < scrape->jobs; i++)
		for (size_t k = 0; k < scrape->job[i]->incidents; k++)
			if (strcmp(scrape->job[i]->incident[k]->severity, "info") != 0)
				collect_incident(scrape, rows, scrape->job[i],
						 scrape->job[i]->incident[k]);
}

static int write_incident_family(const struct scrape *scrape, const struct incident_rows *rows,
				 const struct nt_metric *metric)
{
	int r = begin_family(scrape, metric);

	for (size_t i = 0; r == 0 && i < rows->count; i++) {
		const struct incident_row *row = &rows->row[i];
		const double value =
			metric == &slowdown_metric
				? row->incident->slowdown
				: (double)row->incident->since_real_ns / (double)NT_SECOND;

		r = begin_job(scrape, metric->name, row->job);
		if (r == 0)
			r = write_incident_labels(row->incident, row->culprit, scrape->out);
		if (r == 0)
			r = nt_buf_printf(scrape->out, "} %.15g\n", value);
	}
	return r;
}

/* ---- ranks ------------------------------------------------------------------------------------- */

/* A rank that two processes claim has the series of one of them. */
static bool has_rank(const struct scrape *scrape, const struct nt_snapshot_job *job,
		     const struct nt_snapshot_rank *rank)
{
	for (size_t i = scrape->ranks; i > 0 && scrape->rank[i - 1].job == job; i--) {
		const struct nt_snapshot_rank *other = scrape->rank[i - 1].rank;

		if (other->rank == rank->rank && other->rank_known == rank->rank_known)
			return true;
	}
	return false;
}

static const struct nt_snapshot_rank *find_rank(const struct nt_snapshot_job *job, uint32_t number)
{
	const size_t first = nt_search_first(0, job->ranks, i, job->rank[i].rank >= number);

	for (size_t i = first; i < job->ranks && job->rank[i].rank == number; i++)
		if (job->rank[i].rank_known)
			return &job->rank[i];
	return NULL;
}

static void add_culprit(struct scrape *scrape, const struct nt_snapshot_job *job, uint32_t number)
{
	const struct nt_snapshot_rank *rank = find_rank(job, number);

	if (!rank || has_rank(scrape, job, rank))
		return;
	if (scrape->ranks < NT_JOB_METRICS_MAX_CULPRITS)
		scrape->rank[scrape->ranks++] = (struct nt_rank_series){job, rank};
	else
		scrape->left_out[NT_SERIES_RANK]++;
}

/* The rank that an incident names, or the ranks of a node that it names. Rows are in the order of jobs. */
static void collect_culprits(struct scrape *scrape, const struct incident_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct incident_row *row = &rows->row[i];
		const struct nt_culprit *culprit = row->culprit;

		if (culprit && culprit->has_rank)
			add_culprit(scrape, row->job, culprit->rank);
		for (size_t k = 0; culprit && k < culprit->rank_count; k++)
			add_culprit(scrape, row->job, culprit->ranks[k]);
	}
}

/* Ranks of a job ascend, so the series of one number are neighbours. */
static void collect_requested(struct scrape *scrape, const struct nt_snapshot_job *job)
{
	for (size_t i = 0; i < job->ranks; i++) {
		const struct nt_snapshot_rank *rank = &job->rank[i];
		const struct nt_rank_series *last =
			scrape->ranks ? &scrape->rank[scrape->ranks - 1] : NULL;

		if (rank->ended)
			continue;
		if (scrape->ranks == NT_JOB_METRICS_MAX_RANKS ||
		    (last && last->job == job && last->rank->rank == rank->rank &&
		     last->rank->rank_known == rank->rank_known))
			scrape->left_out[NT_SERIES_RANK]++;
		else
			scrape->rank[scrape->ranks++] = (struct nt_rank_series){job, rank};
	}
}

/* ---- what limits left out ----------------------------------------------------------------------- */

#define LEFT_OUT "Items without series in this scrape because of a limit."

static const struct nt_metric left_out_metrics[NT_SERIES_KIND_END] = {
	[NT_SERIES_JOB] = {"neutracer_aggregator_series_left_out", NT_METRIC_GAUGE, LEFT_OUT,
			   "what=\"job\""},
	[NT_SERIES_NODE] = {"neutracer_aggregator_series_left_out", NT_METRIC_GAUGE, LEFT_OUT,
			    "what=\"node\""},
	[NT_SERIES_CULPRIT] = {"neutracer_aggregator_series_left_out", NT_METRIC_GAUGE, LEFT_OUT,
			       "what=\"culprit\""},
	[NT_SERIES_RANK] = {"neutracer_aggregator_series_left_out", NT_METRIC_GAUGE, LEFT_OUT,
			    "what=\"rank\""},
};

static int write_left_out(const struct scrape *scrape)
{
	int r = begin_family(scrape, &left_out_metrics[0]);

	for (int i = 0; r == 0 && i < NT_SERIES_KIND_END; i++)
		r = nt_buf_printf(scrape->out, "%s{%s} %" PRIu64 "\n", left_out_metrics[i].name,
				  left_out_metrics[i].labels, scrape->left_out[i]);
	return r;
}

/* ---- scrapes ------------------------------------------------------------------------------------ */

int nt_job_metrics_write(const struct nt_snapshot *snapshot, struct nt_node_desk *desk,
			 enum nt_metrics_format format, struct nt_buf *out)
{
	nt_autofree struct scrape *scrape = calloc(1, sizeof(*scrape));
	nt_autofree struct incident_rows *rows = calloc(1, sizeof(*rows));
	int r;

	if (!scrape || !rows)
		return -ENOMEM;
	scrape->out = out;
	scrape->format = format;
	collect_jobs(scrape, snapshot);
	collect_nodes(scrape, snapshot, desk);
	collect_incidents(scrape, rows);
	collect_culprits(scrape, rows);
	r = write_jobs(scrape);
	if (r == 0)
		r = write_nodes(scrape);
	if (r == 0)
		r = write_incident_family(scrape, rows, &slowdown_metric);
	if (r == 0)
		r = write_incident_family(scrape, rows, &since_metric);
	if (r == 0)
		r = nt_rank_metrics_write(scrape->rank, scrape->ranks, format, out);
	return r < 0 ? r : write_left_out(scrape);
}

int nt_job_metrics_write_ranks(const struct nt_snapshot *snapshot, const char *wanted,
			       enum nt_metrics_format format, struct nt_buf *out)
{
	nt_autofree struct scrape *scrape = calloc(1, sizeof(*scrape));
	int r;

	if (!scrape)
		return -ENOMEM;
	scrape->out = out;
	scrape->format = format;
	for (size_t i = 0; i < snapshot->jobs; i++) {
		const struct nt_snapshot_job *job = snapshot->job[i];

		if (!job->is_summary && job->state != NT_JOB_ENDED &&
		    nt_snapshot_job_matches(job, wanted))
			collect_requested(scrape, job);
	}
	r = nt_rank_metrics_write(scrape->rank, scrape->ranks, format, out);
	return r < 0 ? r : write_left_out(scrape);
}
