/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Alertmanager's API v2. An alert is identified by its labels, so only what never changes is a
 * label, and the severity, by which people route: where it rises, the alert of the lower one ends.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/notify/format/format.h"
#include "common/system/clock.h"
#include "proto/json.h"

static int set_label(json_t *object, const char *name, const char *value)
{
	/* Alertmanager refuses an empty name, and drops an empty value. */
	return *value ? json_object_set_new(object, name, json_string(value)) : 0;
}

static json_t *labels_of(const struct nt_notice *notice, enum nt_notice_severity severity)
{
	nt_autojson json_t *labels = json_object();
	int failed = 0;

	failed |= set_label(labels, "alertname",
			    notice->is_sample ? "NeuTracerTest" : "NeuTracerIncident");
	failed |= set_label(labels, "severity", nt_notice_severity_name(severity));
	failed |= set_label(labels, "incident", notice->incident);
	failed |= set_label(labels, "job", notice->job);
	failed |= set_label(labels, "namespace", notice->namespace);
	return failed ? NULL : nt_take(labels);
}

static int set_fields(json_t *annotations, const struct nt_notice *notice)
{
	int failed = 0;

	for (size_t i = 0; i < notice->fields; i++) {
		char name[32];

		/* "Since" becomes since. */
		(void)snprintf(name, sizeof(name), "%s", notice->field[i].name);
		if (name[0] >= 'A' && name[0] <= 'Z')
			name[0] = (char)(name[0] - 'A' + 'a');
		failed |= set_label(annotations, name, notice->field[i].value);
	}
	return failed;
}

static json_t *annotations_of(const struct nt_notice *notice)
{
	nt_autojson json_t *annotations = json_object();
	int failed = 0;

	failed |= set_label(annotations, "title", notice->title);
	failed |= set_label(annotations, "summary", notice->summary);
	failed |= set_label(annotations, "class", notice->class);
	failed |= set_label(annotations, "cause", notice->cause);
	failed |= set_fields(annotations, notice);
	return failed ? NULL : nt_take(annotations);
}

static int add_alert(json_t *list, const struct nt_format_input *input,
		     const struct nt_notice *notice, enum nt_notice_severity severity, bool is_over)
{
	nt_autojson json_t *alert = json_object();
	/* It refuses an alert that ends before it begins, also by a difference of clocks. */
	uint64_t since_ns = notice->since_ns < input->now_ns ? notice->since_ns : input->now_ns;
	uint64_t ends_ns = is_over ? input->now_ns : input->now_ns + input->alive_ns;
	int failed = 0;

	failed |= json_object_set_new(alert, "labels", labels_of(notice, severity));
	failed |= json_object_set_new(alert, "annotations", annotations_of(notice));
	failed |= json_object_set_new(alert, "startsAt", nt_json_time(since_ns));
	failed |= json_object_set_new(alert, "endsAt", nt_json_time(ends_ns));
	if (notice->link[0])
		failed |= json_object_set_new(alert, "generatorURL", json_string(notice->link));
	return failed || json_array_append(list, alert) ? -ENOMEM : 0;
}

/* The severity of an incident can fall, and that of its alert does not. */
static enum nt_notice_severity sent_severity(const struct nt_notice *notice)
{
	enum nt_notice_severity severity = NT_NOTICE_CRITICAL;

	if (notice->state != NT_NOTICE_STILL_FIRING || !notice->severities)
		return notice->severity;
	while (severity > NT_NOTICE_INFO && !(notice->severities & 1U << severity))
		severity--;
	return severity;
}

static int add_notice(json_t *list, const struct nt_format_input *input,
		      const struct nt_notice *notice)
{
	bool is_over = notice->state == NT_NOTICE_RESOLVED;
	int r = 0;

	if (!is_over || !notice->severities)
		return add_alert(list, input, notice, sent_severity(notice), is_over);
	for (int i = 0; r == 0 && i < NT_NOTICE_SEVERITIES; i++)
		if (notice->severities & 1U << i)
			r = add_alert(list, input, notice, (enum nt_notice_severity)i, true);
	return r;
}

/* Of an alert whose severity has risen: ends those of the lower severities. */
static int end_lower(json_t *list, const struct nt_format_input *input,
		     const struct nt_notice *notice)
{
	int r = 0;

	if (notice->state != NT_NOTICE_FIRING)
		return 0;
	for (int i = 0; r == 0 && i < (int)notice->severity; i++)
		if (notice->severities & 1U << i)
			r = add_alert(list, input, notice, (enum nt_notice_severity)i, true);
	return r;
}

static int write_authorization(const struct nt_format_input *input, struct nt_format_post *post)
{
	int r;

	if (!*input->secret)
		return 0;
	r = nt_format_put(&post->authorization, "Authorization: Bearer ");
	return r == 0 ? nt_format_put(&post->authorization, input->secret) : r;
}

/* The configured URL is that of Alertmanager, as in Prometheus, or already that of its alerts. */
static int write_url(const struct nt_format_input *input, struct nt_format_post *post)
{
	static const char path[] = "/api/v2/alerts";
	const size_t path_len = sizeof(path) - 1;
	size_t len = strlen(input->url);
	int r = nt_format_put(&post->url, input->url);

	if (r < 0 || (len >= path_len && !strcmp(input->url + len - path_len, path)))
		return r;
	while (post->url.len && post->url.data[post->url.len - 1] == '/')
		post->url.len--;
	return nt_format_put(&post->url, path);
}

int nt_alertmanager_write(const struct nt_format_input *input, struct nt_format_post *post)
{
	nt_autojson json_t *list = json_array();
	int r = list ? write_authorization(input, post) : -ENOMEM;

	if (r == 0)
		r = write_url(input, post);

	for (size_t i = 0; r == 0 && i < input->notices; i++) {
		r = add_notice(list, input, input->notice[i]);
		if (r == 0)
			r = end_lower(list, input, input->notice[i]);
	}
	return r == 0 ? nt_format_finish(input, nt_take(list), post) : r;
}

/* An alert that always fires: Alertmanager's routes send it to a service that notices its absence. */
int nt_alertmanager_beat(const struct nt_format_input *input, struct nt_format_post *post)
{
	enum {
		ALIVE_BEATS = 4, /* until the alert expires */
	};
	int r = write_authorization(input, post);

	if (r == 0)
		r = write_url(input, post);
	if (r < 0)
		return r;
	return nt_format_finish(
		input,
		json_pack("[{s:{s:s, s:s, s:s}, s:{s:s}, s:o, s:o}]", "labels", "alertname",
			  "NeuTracerWatchdog", "severity", "none", "aggregator", input->who,
			  "annotations", "summary",
			  "This alert always fires. Where it is missing, NeuTracer's aggregator or "
			  "the way to Alertmanager has failed.",
			  "startsAt", nt_json_time(input->now_ns), "endsAt",
			  nt_json_time(input->now_ns + ALIVE_BEATS * input->beat_ns)),
		post);
}
