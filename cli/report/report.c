/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/report/report_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/report/remediation.h"
#include "common/base/parse_number.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	NOTE_BYTES = 512,
	UNIT_BYTES = 32,
	/* lines of a text: longer lists would push the verdicts out of view */
	MAX_COLLECTIVES = 32,
	MAX_UNCOVERED_JOBS = 8, /* jobs with a stated reason for a missing verdict */
};

/* Long times are shown in seconds, numbers without a unit; *ret_unit begins with a blank. */
static double scale(const struct nt_wire_evidence *e, char ret_unit[UNIT_BYTES])
{
	const bool is_long = strcmp(e->unit, "ms") == 0 && fmax(e->value, e->peers) >= 1000.0;

	(void)snprintf(ret_unit, UNIT_BYTES, " %s", is_long ? "s" : e->unit);
	if (strcmp(e->unit, "1") == 0)
		ret_unit[0] = '\0';
	return is_long ? 1e-3 : 1.0;
}

static int print_evidence(const struct nt_wire_incident *incident, struct nt_buf *buf)
{
	int r = 0;

	for (size_t i = 0; i < incident->evidences && r == 0; i++) {
		const struct nt_wire_evidence *e = &incident->evidence[i];
		char unit[UNIT_BYTES];
		const double times = scale(e, unit);

		r = nt_buf_printf(buf, "    %s: %.4g%s, peers %.4g, width %.2g (%s, %u windows)\n",
				  e->what, e->value * times, unit, e->peers * times,
				  e->width * times, e->method, e->windows);
	}
	return r;
}

/* Whether another incident's job has the same name. */
static bool is_ambiguous(const struct nt_judgement *judgement,
			 const struct nt_wire_incident *incident)
{
	for (size_t i = 0; i < judgement->incidents; i++) {
		const struct nt_wire_incident *other = &judgement->judged[i].incident;

		if (strcmp(other->job, incident->job) == 0 &&
		    strcmp(other->namespace, incident->namespace) == 0 &&
		    strcmp(other->job_key, incident->job_key) != 0)
			return true;
	}
	return false;
}

/* "job train/llm: ", if there are several. */
static int print_job(const struct nt_report *report, const struct nt_wire_incident *incident,
		     struct nt_buf *buf)
{
	bool is_keyed;
	int r;

	if (report->jobs < 2)
		return 0;
	is_keyed = is_ambiguous(report->judgement, incident);
	r = nt_buf_printf(buf, "job %s%s%s%s%s%s", incident->namespace,
			  *incident->namespace ? "/" : "", incident->job, is_keyed ? " (" : "",
			  is_keyed ? incident->job_key : "", is_keyed ? ")" : "");
	if (r == 0 && incident->attempt > 1)
		r = nt_buf_printf(buf, " attempt %u", incident->attempt);
	return r ?: nt_buf_printf(buf, ": ");
}

static int print_incident(const struct nt_report *report, const struct nt_wire_incident *incident,
			  struct nt_buf *buf)
{
	int r;

	r = nt_buf_printf(buf, "\n%s: ", incident->severity);
	r = r ?: print_job(report, incident, buf);
	r = r
		    ?: nt_buf_printf(buf, "%s\n    %s%s%s, %s, since ", incident->summary,
				     incident->class, *incident->cause ? ", " : "", incident->cause,
				     incident->state);
	r = r ?: nt_report_time(report, incident->since_real_ns, buf);
	if (r == 0 && incident->until_real_ns) {
		r = nt_buf_printf(buf, " until ");
		r = r ?: nt_report_time(report, incident->until_real_ns, buf);
	}
	/* A hang has none. */
	if (r == 0 && incident->slowdown > 0.0)
		r = nt_buf_printf(buf, "; slowdown %.2f", incident->slowdown);
	r = r
		    ?: nt_buf_printf(buf, "%s %s, confidence %.2f, completeness %.2f\n",
				     incident->slowdown > 0.0 ? "," : ";",
				     nt_tier_name(incident->tier), incident->confidence,
				     nt_parse_percent(incident->completeness) / 100.0);
	if (r == 0 && *nt_remediation_find(incident))
		r = nt_buf_printf(buf, "    to do: %s\n", nt_remediation_find(incident));
	return r ?: print_evidence(incident, buf);
}

static int by_lateness(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x < *y) - (*x > *y);
}

/* If there are more calls than are printed: those of this lateness or more. */
static int find_late(const struct nt_report *report, uint64_t *ret_lateness_ns)
{
	nt_autofree uint64_t *lateness = calloc(report->collectives + 1, sizeof(*lateness));

	if (!lateness)
		return -ENOMEM;
	for (size_t i = 0; i < report->collectives; i++)
		lateness[i] = report->collective[i].lateness_ns;
	qsort(lateness, report->collectives, sizeof(*lateness), by_lateness);
	*ret_lateness_ns =
		report->collectives > MAX_COLLECTIVES ? lateness[MAX_COLLECTIVES - 1] : 0;
	return 0;
}

static int print_collectives(const struct nt_report *report, struct nt_buf *buf)
{
	uint64_t late_ns = 0;
	size_t lines = 0;
	int r;

	if (!report->collectives)
		return 0;
	r = find_late(report, &late_ns);
	r = r
		    ?: nt_buf_printf(buf, "\n%4s  %-20s %6s  %9s %12s %12s %12s\n", "call",
				     "collective", "ranks", "last rank", "late by", "spread",
				     "transfer");
	for (size_t i = 0; i < report->collectives && lines < MAX_COLLECTIVES && r == 0; i++) {
		const struct nt_trace_collective *c = &report->collective[i];

		if (c->lateness_ns < late_ns)
			continue;
		lines++;
		r = nt_buf_printf(
			buf, "%4" PRIu64 "  %-20.20s %6zu  %9u %9.3f ms %9.3f ms %9.3f ms\n",
			c->number, c->name, c->ranks, c->last_rank, (double)c->lateness_ns / 1e6,
			(double)c->spread_ns / 1e6, (double)c->transfer_ns / 1e6);
	}
	if (r == 0 && report->collectives > lines)
		r = nt_buf_printf(
			buf,
			"and %zu more, at which the last rank came no later; --json lists all\n",
			report->collectives - lines);
	return r;
}

static void describe_damage(const struct nt_bus_damage *damage, char note[NOTE_BYTES])
{
	if (!damage->places) {
		(void)snprintf(note, NOTE_BYTES,
			       "%s ends in %" PRIu64
			       " bytes of an incomplete message: torn, or still being written",
			       damage->segment, damage->tail_bytes);
		return;
	}
	(void)snprintf(note, NOTE_BYTES,
		       "%s is damaged at %" PRIu64 " place%s: %" PRIu64 " bytes were skipped",
		       damage->segment, damage->places + (damage->tail_bytes > 0),
		       damage->places + (damage->tail_bytes > 0) == 1 ? "" : "s",
		       damage->bytes + damage->tail_bytes);
}

static int each_damage(const struct nt_recording *recording, nt_report_note_fn *take, void *data)
{
	char note[NOTE_BYTES];
	int r = 0;

	for (size_t i = 0; i < recording->damages && r == 0; i++) {
		describe_damage(&recording->damage[i], note);
		r = take(data, note);
	}
	if (r == 0 && recording->unnamed) {
		(void)snprintf(note, sizeof(note),
			       "further segments are damaged at %" PRIu64 " places",
			       recording->unnamed);
		r = take(data, note);
	}
	return r;
}

static int note_windows(const struct nt_windows *windows, nt_report_note_fn *take, void *data)
{
	char note[NOTE_BYTES];

	if (!windows->windows_left_out && !windows->marks_left_out && !windows->jobs_left_out)
		return 0;
	(void)snprintf(note, sizeof(note),
		       "%" PRIu64 " windows, %" PRIu64
		       " marks and the windows of further jobs (%" PRIu64
		       ") are over the caps and not listed",
		       windows->windows_left_out, windows->marks_left_out, windows->jobs_left_out);
	return take(data, note);
}

static bool has_incident(const struct nt_judgement *judgement, const struct nt_judged_job *job)
{
	for (size_t i = 0; i < judgement->incidents; i++)
		if (strcmp(judgement->judged[i].incident.job_key, job->key) == 0)
			return true;
	return false;
}

bool nt_report_is_short(const struct nt_report *report)
{
	const struct nt_judgement *judgement = report->judgement;

	for (size_t i = 0; i < judgement->jobs; i++)
		if (nt_coverage_is_enough(&judgement->job[i].coverage))
			return false;
	return judgement->jobs > 0 && !judgement->incidents;
}

/* A hang was long enough to be judged, or no rank hangs. */
static int note_stand(const struct nt_report *report, nt_report_note_fn *take, void *data)
{
	const double least_s = (double)nt_rules_default().hang_min_ns / 1e9;
	char note[NOTE_BYTES];

	if (!report->stands || report->judgement->incidents)
		return 0;
	if (!report->waits)
		return take(data, "no rank waits in a call: these dumps show no hang");
	/* The longest comes first. */
	if ((double)report->wait[0].wait_ns / 1e9 >= least_s)
		return 0;
	(void)snprintf(note, sizeof(note),
		       "no rank waited for longer than %.1f s: a hang takes at least %.0f s",
		       (double)report->wait[0].wait_ns / 1e9, least_s);
	return take(data, note);
}

/* The groups determine the peers of a rank. */
static int note_groups(const struct nt_report *report, nt_report_note_fn *take, void *data)
{
	if (!report->ungrouped)
		return 0;
	return take(data,
		    report->groupless
			    ? "exports of nsys do not state process groups, as traces of PyTorch's "
			      "profiler do: each rank was compared with its own history only"
			    : "these traces do not state process groups (those of PyTorch 2.3 and "
			      "later do): each rank was compared with its own history only");
}

/* Without the launches of its kernels a host that is slow looks like a device that waits. */
static int note_host(const struct nt_report *report, nt_report_note_fn *take, void *data)
{
	char note[NOTE_BYTES], of[64] = "";

	if (!report->hostless)
		return 0;
	if (report->hostless < report->ranks)
		(void)snprintf(of, sizeof(of), " of %zu of %zu ranks", report->hostless,
			       report->ranks);
	(void)snprintf(note, sizeof(note),
		       "host work%s is not recorded, as the files lack the launches of kernels: "
		       "a rank with a slow host is not found",
		       of);
	return take(data, note);
}

/* Why a job has no verdict, if not because it is healthy. */
static int note_coverage(const struct nt_report *report, nt_report_note_fn *take, void *data)
{
	const struct nt_judgement *judgement = report->judgement;
	char note[NOTE_BYTES], prefix[NT_JUDGED_NAME + 8] = "";
	size_t listed = 0, more = 0;
	int r = 0;

	for (size_t i = 0; i < judgement->jobs && r == 0; i++) {
		const struct nt_judged_job *job = &judgement->job[i];

		if (has_incident(judgement, job) || nt_coverage_is_whole(&job->coverage))
			continue;
		if (listed == MAX_UNCOVERED_JOBS) {
			more++;
			continue;
		}
		listed++;
		if (judgement->jobs > 1)
			(void)snprintf(prefix, sizeof(prefix), "job %s: ", job->name);
		r = nt_coverage_each(&job->coverage, prefix, report->steps ? "step" : "window",
				     take, data);
	}
	if (r < 0 || !more)
		return r;
	(void)snprintf(note, sizeof(note), "%zu further jobs were judged in part or not at all",
		       more);
	return take(data, note);
}

static int note_missing(const struct nt_report *report, nt_report_note_fn *take, void *data)
{
	nt_autobuf struct nt_buf note = {0};
	int r;

	r = nt_buf_printf(&note, "no dump of rank%s ", report->missings > 1 ? "s" : "");
	r = r ?: nt_report_ranks(report->missing, report->missings, &note);
	r = r
		    ?: nt_buf_printf(&note, ": whether others wait for %s is not recorded",
				     report->missings > 1 ? "them" : "it");
	r = r ?: nt_buf_append(&note, "", 1);
	return r ?: take(data, (const char *)note.data);
}

int nt_report_each_note(const struct nt_report *report, nt_report_note_fn *take, void *data)
{
	char note[NOTE_BYTES];
	int r = 0;

	for (size_t i = 0; i < report->input_notes && r == 0; i++)
		r = take(data, report->input_note[i]);
	if (r == 0 && report->world > report->ranks) {
		(void)snprintf(note, sizeof(note), "%zu of %zu ranks were given: incomplete",
			       report->ranks, report->world);
		r = take(data, note);
	}
	if (r == 0 && report->missings)
		r = note_missing(report, take, data);
	if (r == 0 && report->dropped) {
		(void)snprintf(note, sizeof(note),
			       "%" PRIu64
			       " calls of process groups beyond %d of a rank were left out",
			       report->dropped, NT_FRAME_MAX_COMMS);
		r = take(data, note);
	}
	if (r == 0 && report->cut)
		r = take(data, "the last line is cut short and was left out");
	if (r == 0 && report->recording)
		r = each_damage(report->recording, take, data);
	if (r == 0 && report->skipped) {
		(void)snprintf(note, sizeof(note),
			       "%" PRIu64 " message%s missing or could not be read: incomplete",
			       report->skipped, report->skipped == 1 ? " is" : "s are");
		r = take(data, note);
	}
	if (r == 0)
		r = note_groups(report, take, data);
	if (r == 0)
		r = note_host(report, take, data);
	if (r == 0)
		r = note_stand(report, take, data);
	if (r == 0)
		r = note_coverage(report, take, data);
	if (r == 0 && report->lists_windows)
		r = note_windows(report->judgement->windows, take, data);
	return r;
}

struct lines {
	const char *prefix;
	struct nt_buf *buf;
};

static int print_note(void *data, const char *note)
{
	const struct lines *lines = data;

	return nt_buf_printf(lines->buf, "%s%s\n", lines->prefix, note);
}

static int list_note(void *data, const char *note)
{
	return json_array_append_new(data, nt_json_text(note));
}

void nt_report_recording(struct nt_report *report, const struct nt_recording *recording,
			 const struct nt_judgement *judgement)
{
	report->jobs = recording->jobs;
	report->ranks = recording->ranks;
	report->frames = recording->frames;
	report->start_ns = recording->start_ns;
	report->end_ns = recording->end_ns;
	report->recording = recording;
	report->skipped = recording->refused + recording->missing;
	report->judgement = judgement;
}

void nt_report_trace(struct nt_report *report, const struct nt_trace *trace,
		     const struct nt_judgement *judgement)
{
	for (size_t i = 0; i < trace->frames; i++)
		if (trace->frame[i].frame.ranks > report->ranks)
			report->ranks = trace->frame[i].frame.ranks;
	if (trace->given)
		report->ranks = trace->given;
	report->jobs = 1;
	report->frames = trace->frames;
	report->steps = !trace->step;
	report->world = trace->world;
	report->missing = trace->missing;
	report->missings = trace->missings;
	report->dropped = trace->dropped;
	report->cut = trace->cut;
	report->start_ns = trace->frame[0].frame.start_ns;
	report->end_ns = trace->frame[trace->frames - 1].frame.end_ns;
	report->collective = trace->collective;
	report->collectives = trace->collectives;
	report->stands = trace->hangs;
	report->ungrouped = trace->ungrouped;
	report->groupless = trace->groupless;
	report->hostless = trace->hostless;
	report->wait = trace->wait;
	report->waits = trace->waits;
	report->waits_dropped = trace->waits_dropped;
	report->judgement = judgement;
}

int nt_report_notes(const struct nt_report *report, const char *prefix, struct nt_buf *buf)
{
	struct lines lines = {prefix, buf};

	return nt_report_each_note(report, print_note, &lines);
}

bool nt_report_accuses(const struct nt_wire_incident *incident)
{
	if (strcmp(incident->severity, "info") != 0)
		return true;
	for (size_t i = 0; i < incident->culprits; i++)
		if (nt_json_culprit_accuses(&incident->culprit[i]))
			return true;
	return false;
}

int nt_report_text(const struct nt_report *report, struct nt_buf *buf)
{
	const struct nt_judgement *judgement = report->judgement;
	size_t accused = 0;
	int r;

	r = nt_buf_printf(buf, "%s: ", report->source);
	if (r == 0 && report->jobs > 1)
		r = nt_buf_printf(buf, "%zu jobs, ", report->jobs);
	r = r
		    ?: nt_buf_printf(buf, "%zu rank%s, %zu window%s, %.1f s\n", report->ranks,
				     report->ranks == 1 ? "" : "s", report->frames,
				     report->frames == 1 ? "" : "s",
				     (double)(report->end_ns - report->start_ns) / 1e9);
	r = r ?: nt_report_notes(report, "", buf);
	r = r ?: print_collectives(report, buf);
	r = r ?: nt_report_hang_text(report, buf);
	for (size_t i = 0; i < judgement->incidents && r == 0; i++) {
		const struct nt_wire_incident *incident = &judgement->judged[i].incident;

		accused += nt_report_accuses(incident);
		r = print_incident(report, incident, buf);
	}
	if (r == 0 && !accused)
		r = nt_buf_printf(buf, "\n%s\n",
				  nt_report_is_short(report)
					  ? "too little was recorded to name a culprit"
					  : "no rank, node or link is to blame");
	return r < 0 || !report->lists_windows ? r : nt_report_windows_text(report, buf);
}

static json_t *collectives(const struct nt_report *report)
{
	nt_autojson json_t *list = json_array();

	for (size_t i = 0; i < report->collectives; i++) {
		const struct nt_trace_collective *c = &report->collective[i];

		if (json_array_append_new(list,
					  json_pack("{s:I, s:s, s:I, s:I, s:f, s:f, s:f}", "number",
						    (json_int_t)c->number, "name", c->name, "ranks",
						    (json_int_t)c->ranks, "last_rank",
						    (json_int_t)c->last_rank, "lateness_seconds",
						    (double)c->lateness_ns / 1e9, "spread_seconds",
						    (double)c->spread_ns / 1e9, "transfer_seconds",
						    (double)c->transfer_ns / 1e9)) < 0)
			return NULL;
	}
	return json_incref(list);
}

static json_t *notes(const struct nt_report *report)
{
	nt_autojson json_t *list = json_array();

	return nt_report_each_note(report, list_note, list) < 0 ? NULL : json_incref(list);
}

static json_t *damage(const struct nt_report *report)
{
	nt_autojson json_t *list = json_array();

	for (size_t i = 0; report->recording && i < report->recording->damages; i++) {
		const struct nt_bus_damage *damage = &report->recording->damage[i];

		if (json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I}", "segment",
							  damage->segment, "places",
							  (json_int_t)damage->places, "bytes",
							  (json_int_t)damage->bytes, "tail_bytes",
							  (json_int_t)damage->tail_bytes)) < 0)
			return NULL;
	}
	return json_incref(list);
}

static json_t *incidents(const struct nt_judgement *judgement)
{
	nt_autojson json_t *list = json_array();

	for (size_t i = 0; i < judgement->incidents; i++)
		if (json_array_append_new(list, nt_json_incident(&judgement->judged[i].incident)) <
		    0)
			return NULL;
	return json_incref(list);
}

int nt_report_json(const struct nt_report *report, struct nt_buf *buf)
{
	nt_autojson json_t *root = json_object();
	int r = 0;

	r |= json_object_set_new(root, "source", nt_json_text(report->source));
	r |= json_object_set_new(root, "jobs", json_integer((json_int_t)report->jobs));
	r |= json_object_set_new(root, "ranks", json_integer((json_int_t)report->ranks));
	r |= json_object_set_new(
		root, "expected_ranks",
		json_integer((json_int_t)(report->world ? report->world : report->ranks)));
	r |= json_object_set_new(root, "windows", json_integer((json_int_t)report->frames));
	r |= json_object_set_new(root, "relative_times", json_boolean(report->relative));
	r |= json_object_set_new(root, "start", nt_json_time(report->start_ns));
	r |= json_object_set_new(root, "end", nt_json_time(report->end_ns));
	r |= json_object_set_new(root, "missing_messages",
				 json_integer((json_int_t)report->skipped));
	if (report->recording)
		r |= json_object_set_new(root, "damage", damage(report));
	r |= json_object_set_new(root, "notes", notes(report));
	if (report->collectives)
		r |= json_object_set_new(root, "collectives", collectives(report));
	if (report->waits)
		r |= nt_report_hang_json(report, root);
	r |= json_object_set_new(root, "incidents", incidents(report->judgement));
	if (report->lists_windows)
		r |= json_object_set_new(root, "window_findings", nt_report_windows_json(report));
	if (r < 0)
		return -ENOMEM;
	return nt_json_dump(root, true, buf);
}
