/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /metrics: the snapshot's rows, and the counters of HTTP, store and notifier. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api_impl.h"
#include "aggregator/api/job_metrics.h"
#include "common/base/version.h"
#include "common/system/clock.h"
#include "common/system/metrics.h"

enum {
	BUILD_INFO,
	START_TIME,
	HTTP_2XX,
	HTTP_3XX,
	HTTP_4XX,
	HTTP_5XX,
	HTTP_CONNECTIONS,
	HTTP_CONNECTIONS_NOW,
	HTTP_REAPED,
	HTTP_OVER_LIMIT,
	HTTP_EVICTED,
	HTTP_AUTH_FAILURES,
	HTTP_AUTH_LIMITED,
	HTTP_BODIES_TOO_LARGE,
	HTTP_HANDLER_ERRORS,
	HTTP_TOKENS_OLD,
	HTTP_STREAMS,
	HTTP_STREAMS_REFUSED,
	HTTP_STREAMS_DROPPED,
	HTTP_STREAMS_NOW,
	EVENTS_POSTED,
	EVENTS_REFUSED,
	EVENTS_EVICTED,
	HTTP_CERTS_REFUSED,
	HTTP_SESSIONS,
	HTTP_SESSIONS_EVICTED,
	AUDIT_CHANGES,
	AUDIT_REFUSED,
	AUDIT_DROPPED,
	AUDIT_UNWRITTEN,
	AUDIT_UNREADABLE,
	SERIES_RANKS,
	SERIES_BYTES,
	SERIES_OVER_CAP,
	SERIES_FAILED,
	STORE_INCIDENTS_WRITTEN,
	STORE_INCIDENTS_STALE,
	STORE_STATES_WRITTEN,
	STORE_STATE_BYTES,
	STORE_WRITE_ERRORS,
	STORE_UNSAVED,
	STORE_UNSAVED_DROPPED,
	STORE_PRUNED,
	STORE_TAKEN,
	STORE_DELIVERIES_REFUSED,
	STORE_HEALTHY,
	STORE_INCIDENTS,
	STORE_FILE_BYTES,
	OUTBOX_QUEUED,
	OUTBOX_SKIPPED,
	OUTBOX_ADOPTED,
	NOTIFY_SILENT_OVER_CAP,
	OUTBOX_WAITING,
	OUTBOX_FLAPS,
	OUTBOX_FLAPS_NOW,
	OUTBOX_FLAP_HELD,
	OUTBOX_FLAP_UNCOUNTED,
	NOTIFY_SENT,
	NOTIFY_RETRIED,
	NOTIFY_FAILED,
	NOTIFY_EXPIRED,
	NOTIFY_KUBE_LEFT_OUT,
	NOTIFY_KUBE_ACTED,
	NOTIFY_KUBE_LIFTED,
	NOTIFY_KUBE_LIMITED,
	ENROL_GRANTED,
	ENROL_DENIED,
	ENROL_FAILED,
	ENROL_OVER_CAP,
	METRICS,
};

#define HTTP         "neutracer_aggregator_http_"
#define EVENTS       "neutracer_aggregator_events_"
#define AUDIT        "neutracer_aggregator_audit_"
#define SERIES       "neutracer_aggregator_series_"
#define STORE        "neutracer_aggregator_store_"
#define ENROL        "neutracer_aggregator_enrol_"
#define REVIEWS      "Reviews of tokens in requests for node keys, by result."
#define KUBE_ACTIONS "neutracer_aggregator_kube_actions_"
#define NOTIFY       "neutracer_aggregator_notifications_"

static const struct nt_metric table[METRICS] = {
	[BUILD_INFO] = {"neutracer_aggregator_build_info", NT_METRIC_GAUGE,
			"Version of the program as a label; always "
			"1.",
			"version=\"" NT_VERSION "\""},
	[START_TIME] = {"neutracer_aggregator_start_time_seconds", NT_METRIC_GAUGE_NS,
			"Start time of the REST interface, since 1970.", NULL},
	[HTTP_2XX] = {HTTP "requests_total", NT_METRIC_COUNTER, "Responses by status class.",
		      "status=\"2xx\""},
	[HTTP_3XX] = {HTTP "requests_total", NT_METRIC_COUNTER, "Responses by status class.",
		      "status=\"3xx\""},
	[HTTP_4XX] = {HTTP "requests_total", NT_METRIC_COUNTER, "Responses by status class.",
		      "status=\"4xx\""},
	[HTTP_5XX] = {HTTP "requests_total", NT_METRIC_COUNTER, "Responses by status class.",
		      "status=\"5xx\""},
	[HTTP_CONNECTIONS] = {HTTP "connections_total", NT_METRIC_COUNTER, "Connections accepted.",
			      NULL},
	[HTTP_CONNECTIONS_NOW] = {HTTP "open_connections", NT_METRIC_GAUGE, "Connections open now.",
				  NULL},
	[HTTP_REAPED] = {HTTP "connections_reaped_total", NT_METRIC_COUNTER,
			 "Connections closed because a request took too long to arrive.", NULL},
	[HTTP_OVER_LIMIT] = {HTTP "connections_over_limit_total", NT_METRIC_COUNTER,
			     "Connections above the limits, on which only health checks and "
			     "metrics are served.",
			     NULL},
	[HTTP_EVICTED] = {HTTP "connections_evicted_total", NT_METRIC_COUNTER,
			  "Connections above the limits that were closed for a later one.", NULL},
	[HTTP_AUTH_FAILURES] = {HTTP "unauthorized_total", NT_METRIC_COUNTER,
				"Requests without a valid token.", NULL},
	[HTTP_AUTH_LIMITED] = {HTTP "unauthorized_limited_total", NT_METRIC_COUNTER,
			       "Requests without a valid token from an address that sent many.",
			       NULL},
	[HTTP_BODIES_TOO_LARGE] = {HTTP "bodies_too_large_total", NT_METRIC_COUNTER,
				   "Requests refused because of the size of their body.", NULL},
	[HTTP_HANDLER_ERRORS] = {HTTP "errors_total", NT_METRIC_COUNTER,
				 "Requests that failed with an internal error.", NULL},
	[HTTP_TOKENS_OLD] =
		{HTTP "tokens_old", NT_METRIC_GAUGE,
		 "1 if the token file is missing or not valid, so that its earlier tokens remain "
		 "valid.",
		 NULL},
	[HTTP_STREAMS] = {HTTP "streams_total", NT_METRIC_COUNTER, "Streams of events opened.",
			  NULL},
	[HTTP_STREAMS_REFUSED] = {HTTP "streams_refused_total", NT_METRIC_COUNTER,
				  "Streams of events refused because of the limits.", NULL},
	[HTTP_STREAMS_DROPPED] = {HTTP "streams_dropped_total", NT_METRIC_COUNTER,
				  "Streams ended because the client read too slowly.", NULL},
	[HTTP_STREAMS_NOW] = {HTTP "open_streams", NT_METRIC_GAUGE, "Streams of events open now.",
			      NULL},
	[EVENTS_POSTED] = {EVENTS "total", NT_METRIC_COUNTER, "Events for streams.", NULL},
	[EVENTS_REFUSED] = {EVENTS "refused_total", NT_METRIC_COUNTER,
			    "Events left out: no memory, or too large.", NULL},
	[EVENTS_EVICTED] = {EVENTS "evicted_total", NT_METRIC_COUNTER,
			    "Events removed from the ring by later ones.", NULL},
	[HTTP_CERTS_REFUSED] = {HTTP "client_certificates_refused_total", NT_METRIC_COUNTER,
				"Requests whose client certificate was missing or not valid.",
				NULL},
	[HTTP_SESSIONS] = {HTTP "sessions", NT_METRIC_GAUGE, "Sessions of browsers now.", NULL},
	[HTTP_SESSIONS_EVICTED] = {HTTP "sessions_evicted_total", NT_METRIC_COUNTER,
				   "Sessions ended in favour of a later one, at the cap.", NULL},
	[AUDIT_CHANGES] = {AUDIT "entries_total", NT_METRIC_COUNTER,
			   "Entries of the audit log, by result.", "result=\"accepted\""},
	[AUDIT_REFUSED] = {AUDIT "entries_total", NT_METRIC_COUNTER,
			   "Entries of the audit log, by result.", "result=\"refused\""},
	[AUDIT_DROPPED] = {AUDIT "dropped_total", NT_METRIC_COUNTER,
			   "Oldest entries of the audit log that were removed at its caps.", NULL},
	[AUDIT_UNWRITTEN] = {AUDIT "unwritten_total", NT_METRIC_COUNTER,
			     "Entries of the audit log that could not be written to its file.",
			     NULL},
	[AUDIT_UNREADABLE] = {AUDIT "unreadable_total", NT_METRIC_COUNTER,
			      "Lines of the file of the audit log that were left out at the start.",
			      NULL},
	[SERIES_RANKS] = {SERIES "ranks", NT_METRIC_GAUGE, "Ranks whose recent past is kept.",
			  NULL},
	[SERIES_BYTES] = {SERIES "bytes", NT_METRIC_GAUGE, "Memory of the recent past of ranks.",
			  NULL},
	[SERIES_OVER_CAP] = {SERIES "ranks_over_cap", NT_METRIC_GAUGE,
			     "Ranks over the cap, whose recent past is not kept.", NULL},
	[SERIES_FAILED] = {SERIES "failed_total", NT_METRIC_COUNTER,
			   "Frames of a job that got no point, for want of memory.", NULL},
	[STORE_INCIDENTS_WRITTEN] = {STORE "incident_writes_total", NT_METRIC_COUNTER,
				     "Versions of incidents written.", NULL},
	[STORE_INCIDENTS_STALE] = {STORE "incidents_stale_total", NT_METRIC_COUNTER,
				   "Versions of incidents that were stored already.", NULL},
	[STORE_STATES_WRITTEN] = {STORE "state_writes_total", NT_METRIC_COUNTER,
				  "Snapshots of the detection's state written.", NULL},
	[STORE_STATE_BYTES] = {STORE "state_bytes_total", NT_METRIC_COUNTER,
			       "Bytes of the snapshots of the detection's state.", NULL},
	[STORE_WRITE_ERRORS] = {STORE "write_errors_total", NT_METRIC_COUNTER,
				"Transactions that could not be written.", NULL},
	[STORE_UNSAVED] = {STORE "unsaved_incidents", NT_METRIC_GAUGE,
			   "Incidents in memory only, because they cannot be written.", NULL},
	[STORE_UNSAVED_DROPPED] = {STORE "unsaved_dropped_total", NT_METRIC_COUNTER,
				   "Incidents lost because they could not be written for too "
				   "long.",
				   NULL},
	[STORE_PRUNED] = {STORE "incidents_pruned_total", NT_METRIC_COUNTER,
			  "Old incidents removed because of the caps.", NULL},
	[STORE_TAKEN] = {STORE "incidents_taken_total", NT_METRIC_COUNTER,
			 "Versions of incidents of other aggregators that were stored.", NULL},
	[STORE_DELIVERIES_REFUSED] = {STORE "deliveries_refused_total", NT_METRIC_COUNTER,
				      "Malformed deliveries in incidents of other aggregators.",
				      NULL},
	[STORE_HEALTHY] = {STORE "healthy", NT_METRIC_GAUGE,
			   "1 if the last write succeeded, 0 otherwise.", NULL},
	[STORE_INCIDENTS] = {STORE "incidents", NT_METRIC_GAUGE, "Incidents stored now.", NULL},
	[STORE_FILE_BYTES] = {STORE "file_bytes", NT_METRIC_GAUGE, "Size of the database now.",
			      NULL},
	[OUTBOX_QUEUED] = {NOTIFY "queued_total", NT_METRIC_COUNTER,
			   "Messages added to the "
			   "outbox.",
			   NULL},
	[OUTBOX_SKIPPED] = {NOTIFY "skipped_total", NT_METRIC_COUNTER,
			    "Messages of a resolution whose alarm was never delivered.", NULL},
	[OUTBOX_ADOPTED] =
		{NOTIFY "adopted_total", NT_METRIC_COUNTER,
		 "Messages taken over from another aggregator, which may have sent them.", NULL},
	[OUTBOX_FLAPS] = {NOTIFY "flaps_total", NT_METRIC_COUNTER,
			  "Culprits whose incidents began and ended too often to send each.", NULL},
	[OUTBOX_FLAPS_NOW] = {NOTIFY "flapping", NT_METRIC_GAUGE,
			      "Culprits whose messages are held now, as they flap.", NULL},
	[OUTBOX_FLAP_HELD] = {NOTIFY "flap_held_total", NT_METRIC_COUNTER,
			      "Messages of beginnings that were held, as the culprit flaps.", NULL},
	[OUTBOX_FLAP_UNCOUNTED] = {NOTIFY "flap_uncounted_total", NT_METRIC_COUNTER,
				   "Beginnings and ends over the cap of flap control, which does "
				   "not hold their messages.",
				   NULL},
	[NOTIFY_SILENT_OVER_CAP] = {"neutracer_aggregator_silent_jobs_over_cap", NT_METRIC_GAUGE,
				    "Silent jobs over the cap of own alerts, which have no alert.",
				    NULL},
	[OUTBOX_WAITING] = {NOTIFY "waiting", NT_METRIC_GAUGE, "Messages in the outbox now.", NULL},
	[NOTIFY_SENT] = {NOTIFY "total", NT_METRIC_COUNTER, "Attempts to deliver, by result.",
			 "result=\"sent\""},
	[NOTIFY_RETRIED] = {NOTIFY "total", NT_METRIC_COUNTER, "Attempts to deliver, by result.",
			    "result=\"retried\""},
	[NOTIFY_FAILED] = {NOTIFY "total", NT_METRIC_COUNTER, "Attempts to deliver, by result.",
			   "result=\"failed\""},
	[NOTIFY_EXPIRED] = {NOTIFY "total", NT_METRIC_COUNTER, "Attempts to deliver, by result.",
			    "result=\"expired\""},
	[NOTIFY_KUBE_ACTED] = {KUBE_ACTIONS "total", NT_METRIC_COUNTER,
			       "Actions on nodes that many incidents accused, by result.",
			       "result=\"done\""},
	[NOTIFY_KUBE_LIFTED] = {KUBE_ACTIONS "total", NT_METRIC_COUNTER,
				"Actions on nodes that many incidents accused, by result.",
				"result=\"undone\""},
	[NOTIFY_KUBE_LIMITED] = {KUBE_ACTIONS "total", NT_METRIC_COUNTER,
				 "Actions on nodes that many incidents accused, by result.",
				 "result=\"over-limit\""},
	[NOTIFY_KUBE_LEFT_OUT] =
		{NOTIFY "kube_left_out_total", NT_METRIC_COUNTER,
		 "Pods and nodes without an Event: deleted, badly named, refused, or too many.",
		 NULL},
	[ENROL_GRANTED] = {ENROL "reviews_total", NT_METRIC_COUNTER, REVIEWS, "result=\"granted\""},
	[ENROL_DENIED] = {ENROL "reviews_total", NT_METRIC_COUNTER, REVIEWS, "result=\"denied\""},
	[ENROL_FAILED] = {ENROL "reviews_total", NT_METRIC_COUNTER, REVIEWS, "result=\"failed\""},
	[ENROL_OVER_CAP] = {ENROL "reviews_total", NT_METRIC_COUNTER, REVIEWS,
			    "result=\"over-cap\""},
};

/* One row for each receiver and result: receivers are configured, and at most 16. */
static const struct nt_metric receiver_metric = {
	"neutracer_aggregator_receiver_messages_total", NT_METRIC_COUNTER,
	"Messages by receiver and result; the digested ones are among those sent.", NULL};

enum {
	RECEIVER_METRICS = NT_STORE_MAX_RECEIVERS * NT_NOTIFY_RESULTS,
	LABELS_BYTES = 160,
};

struct receiver_metrics {
	uint64_t value[RECEIVER_METRICS];
	char labels[RECEIVER_METRICS][LABELS_BYTES];
	size_t count;
};

static void read_receiver(struct receiver_metrics *out, const struct nt_notify_view *view)
{
	for (int i = 0; i < NT_NOTIFY_RESULTS; i++) {
		char *labels = out->labels[out->count];

		/* Names are of a-z, 0-9 and '-'. */
		(void)snprintf(labels, LABELS_BYTES, "receiver=\"%.63s\",kind=\"%s\",result=\"%s\"",
			       view->name, view->kind,
			       nt_notify_result_name((enum nt_notify_result)i));
		out->value[out->count++] = view->count[i];
	}
}

/* The end of OpenMetrics is written by the caller's table, which therefore comes last. */
static int write_receivers(struct nt_notify *notify, enum nt_metrics_format format,
			   struct nt_buf *out)
{
	nt_autofree struct receiver_metrics *metrics = calloc(1, sizeof(*metrics));
	const char *name = receiver_metric.name;
	int r;

	if (!metrics)
		return -ENOMEM;
	for (size_t i = 0; i < nt_notify_receivers(notify); i++) {
		struct nt_notify_view view;

		nt_notify_view(notify, i, &view);
		read_receiver(metrics, &view);
	}
	r = nt_metrics_write_family(name, true, receiver_metric.help, format, out);
	for (size_t i = 0; r == 0 && i < metrics->count; i++)
		r = nt_buf_printf(out, "%s{%s} %" PRIu64 "\n", name, metrics->labels[i],
				  metrics->value[i]);
	return r;
}

static void set_http(struct nt_metrics *metrics, struct nt_httpd *httpd)
{
	struct nt_httpd_stats stats;

	nt_httpd_stats(httpd, &stats);
	for (size_t i = 0; i < 4; i++)
		nt_metrics_set(metrics, HTTP_2XX + i, stats.requests[i + 2]);
	nt_metrics_set(metrics, HTTP_CONNECTIONS, stats.connections);
	nt_metrics_set(metrics, HTTP_CONNECTIONS_NOW, stats.connections_now);
	nt_metrics_set(metrics, HTTP_REAPED, stats.reaped);
	nt_metrics_set(metrics, HTTP_OVER_LIMIT, stats.over_limit);
	nt_metrics_set(metrics, HTTP_EVICTED, stats.evicted);
	nt_metrics_set(metrics, HTTP_AUTH_FAILURES, stats.auth_failures);
	nt_metrics_set(metrics, HTTP_AUTH_LIMITED, stats.auth_limited);
	nt_metrics_set(metrics, HTTP_BODIES_TOO_LARGE, stats.bodies_too_large);
	nt_metrics_set(metrics, HTTP_HANDLER_ERRORS, stats.handler_errors);
	nt_metrics_set(metrics, HTTP_TOKENS_OLD, stats.tokens_are_old);
	nt_metrics_set(metrics, HTTP_STREAMS, stats.streams);
	nt_metrics_set(metrics, HTTP_STREAMS_REFUSED, stats.streams_refused);
	nt_metrics_set(metrics, HTTP_STREAMS_DROPPED, stats.streams_dropped);
	nt_metrics_set(metrics, HTTP_STREAMS_NOW, stats.streams_now);
	nt_metrics_set(metrics, HTTP_CERTS_REFUSED, stats.certs_refused);
	nt_metrics_set(metrics, HTTP_SESSIONS, stats.sessions.now);
	nt_metrics_set(metrics, HTTP_SESSIONS_EVICTED, stats.sessions.evicted);
}

static void set_events(struct nt_metrics *metrics, struct nt_event_desk *desk)
{
	struct nt_event_desk_stats stats;

	nt_event_desk_stats(desk, &stats);
	nt_metrics_set(metrics, EVENTS_POSTED, stats.ring.posted);
	nt_metrics_set(metrics, EVENTS_REFUSED, stats.ring.refused + stats.failed);
	nt_metrics_set(metrics, EVENTS_EVICTED, stats.ring.evicted);
}

static void set_audit(struct nt_metrics *metrics, struct nt_audit *audit)
{
	struct nt_audit_stats stats;

	nt_audit_stats(audit, &stats);
	nt_metrics_set(metrics, AUDIT_CHANGES, stats.changes);
	nt_metrics_set(metrics, AUDIT_REFUSED, stats.refused);
	nt_metrics_set(metrics, AUDIT_DROPPED, stats.dropped);
	nt_metrics_set(metrics, AUDIT_UNWRITTEN, stats.unwritten);
	nt_metrics_set(metrics, AUDIT_UNREADABLE, stats.unreadable);
}

static void set_series(struct nt_metrics *metrics, struct nt_series_desk *desk)
{
	struct nt_series_desk_stats stats;

	nt_series_desk_stats(desk, &stats);
	nt_metrics_set(metrics, SERIES_RANKS, stats.ranks);
	nt_metrics_set(metrics, SERIES_BYTES, stats.bytes);
	nt_metrics_set(metrics, SERIES_OVER_CAP, stats.ranks_over_cap);
	nt_metrics_set(metrics, SERIES_FAILED, stats.failed);
}

static void set_store(struct nt_metrics *metrics, struct nt_store *store)
{
	struct nt_store_stats stats;

	nt_store_stats(store, &stats);
	nt_metrics_set(metrics, STORE_INCIDENTS_WRITTEN, stats.incidents_written);
	nt_metrics_set(metrics, STORE_INCIDENTS_STALE, stats.incidents_stale);
	nt_metrics_set(metrics, STORE_STATES_WRITTEN, stats.states_written);
	nt_metrics_set(metrics, STORE_STATE_BYTES, stats.state_bytes);
	nt_metrics_set(metrics, STORE_WRITE_ERRORS, stats.write_errors);
	nt_metrics_set(metrics, STORE_UNSAVED, stats.unsaved_now);
	nt_metrics_set(metrics, STORE_UNSAVED_DROPPED, stats.unsaved_dropped);
	nt_metrics_set(metrics, STORE_PRUNED, stats.pruned);
	nt_metrics_set(metrics, STORE_TAKEN, stats.taken);
	nt_metrics_set(metrics, STORE_DELIVERIES_REFUSED, stats.deliveries_refused);
	nt_metrics_set(metrics, STORE_HEALTHY, stats.healthy);
	nt_metrics_set(metrics, STORE_INCIDENTS, stats.incidents_now);
	nt_metrics_set(metrics, STORE_FILE_BYTES, stats.file_bytes_now);
	nt_metrics_set(metrics, OUTBOX_QUEUED, stats.queued);
	nt_metrics_set(metrics, OUTBOX_SKIPPED, stats.queue_skipped);
	nt_metrics_set(metrics, OUTBOX_ADOPTED, stats.adopted);
	nt_metrics_set(metrics, OUTBOX_WAITING, stats.outbox_now);
	nt_metrics_set(metrics, OUTBOX_FLAPS, stats.flaps);
	nt_metrics_set(metrics, OUTBOX_FLAPS_NOW, stats.flaps_now);
	nt_metrics_set(metrics, OUTBOX_FLAP_HELD, stats.flap_held);
	nt_metrics_set(metrics, OUTBOX_FLAP_UNCOUNTED, stats.flap_uncounted);
}

static void set_notify(struct nt_metrics *metrics, const struct nt_notify *notify)
{
	struct nt_notify_stats stats;

	nt_notify_stats(notify, &stats);
	nt_metrics_set(metrics, NOTIFY_SENT, stats.sent);
	nt_metrics_set(metrics, NOTIFY_RETRIED, stats.retried);
	nt_metrics_set(metrics, NOTIFY_FAILED, stats.failed);
	nt_metrics_set(metrics, NOTIFY_EXPIRED, stats.expired);
	nt_metrics_set(metrics, NOTIFY_KUBE_LEFT_OUT, stats.kube_left_out);
	nt_metrics_set(metrics, NOTIFY_KUBE_ACTED, stats.kube_acted);
	nt_metrics_set(metrics, NOTIFY_KUBE_LIFTED, stats.kube_lifted);
	nt_metrics_set(metrics, NOTIFY_KUBE_LIMITED, stats.kube_limited);
}

static void set_enrol(struct nt_metrics *metrics, struct nt_enrol *enrol)
{
	struct nt_enrol_stats stats;

	nt_enrol_stats(enrol, &stats);
	nt_metrics_set(metrics, ENROL_GRANTED, stats.granted);
	nt_metrics_set(metrics, ENROL_DENIED, stats.denied);
	nt_metrics_set(metrics, ENROL_FAILED, stats.failed);
	nt_metrics_set(metrics, ENROL_OVER_CAP, stats.over_cap);
}

/* A row of the snapshot is named without _total. */
static int write_row(const struct nt_snapshot_metric *row, bool first,
		     enum nt_metrics_format format, struct nt_buf *out)
{
	const char *suffix = row->gauge ? "" : "_total";
	char name[128];
	int r = 0;

	(void)snprintf(name, sizeof(name), "%s%s", row->name, suffix);
	if (first)
		r = nt_metrics_write_family(name, !row->gauge, row->help, format, out);
	if (r < 0)
		return r;
	/* Integers are printed in full: 10000000, not 1e+07. */
	return nt_buf_printf(out, row->labels[0] ? "%s{%s} %.*f\n" : "%s%s %.*f\n", name,
			     row->labels, row->value == floor(row->value) ? 0 : 6, row->value);
}

static bool is_written(const struct nt_snapshot *snapshot, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (!strcmp(snapshot->metric[i].name, snapshot->metric[row].name))
			return true;
	return false;
}

/* Rows of one name are adjacent in the text, wherever they are in the table. */
static int write_snapshot(const struct nt_snapshot *snapshot, enum nt_metrics_format format,
			  struct nt_buf *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < snapshot->metrics; i++) {
		if (is_written(snapshot, i))
			continue;
		for (size_t k = i; r == 0 && k < snapshot->metrics; k++)
			if (!strcmp(snapshot->metric[i].name, snapshot->metric[k].name))
				r = write_row(&snapshot->metric[k], k == i, format, out);
	}
	return r;
}

/* A scrape of the ranks of some jobs has nothing else, so that no series is there twice. */
static int reply_ranks(const struct nt_snapshot *snapshot, const char *wanted,
		       enum nt_metrics_format format, struct nt_httpd_reply *reply)
{
	int r = 0;

	if (snapshot)
		r = nt_job_metrics_write_ranks(snapshot, wanted, format, &reply->body);
	return r < 0 ? r : nt_metrics_write_end(format, &reply->body);
}

static int write_own(const struct nt_api *api, enum nt_metrics_format format, struct nt_buf *out)
{
	nt_auto(nt_metrics) struct nt_metrics *metrics = NULL;
	int r = nt_metrics_new(table, METRICS, &metrics);

	if (r < 0)
		return r;
	nt_metrics_set(metrics, BUILD_INFO, 1);
	nt_metrics_set(metrics, START_TIME, api->started_real_ns);
	set_http(metrics, api->httpd);
	if (api->options.event_desk)
		set_events(metrics, api->options.event_desk);
	set_audit(metrics, api->audit);
	if (api->options.series_desk)
		set_series(metrics, api->options.series_desk);
	if (api->options.store)
		set_store(metrics, api->options.store);
	if (api->options.notify)
		set_notify(metrics, api->options.notify);
	if (api->options.silent_over_cap)
		nt_metrics_set(metrics, NOTIFY_SILENT_OVER_CAP,
			       api->options.silent_over_cap(api->options.silent_data));
	if (api->options.enrol)
		set_enrol(metrics, api->options.enrol);
	return nt_metrics_write(metrics, format, out);
}

int nt_api_metrics(void *data, const struct nt_httpd_request *request, struct nt_httpd_reply *reply)
{
	const struct nt_api *api = data;
	nt_autosnapshot const struct nt_snapshot *snapshot =
		nt_snapshot_acquire(api->options.board);
	enum nt_metrics_format format = nt_metrics_accepted(nt_httpd_header(request, "Accept"));
	const char *wanted;
	int r = nt_api_query_text(request, "ranks", reply, &wanted);

	if (r)
		return r < 0 ? r : 0;
	reply->content_type = nt_metrics_content_type(format);
	if (wanted)
		return reply_ranks(snapshot, wanted, format, reply);
	if (snapshot) {
		r = write_snapshot(snapshot, format, &reply->body);
		if (r == 0)
			r = nt_job_metrics_write(snapshot, api->options.node_desk, format,
						 &reply->body);
	}
	if (r == 0 && api->options.notify)
		r = write_receivers(api->options.notify, format, &reply->body);
	return r < 0 ? r : write_own(api, format, &reply->body);
}
