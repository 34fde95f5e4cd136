/* SPDX-License-Identifier: GPL-3.0-or-later */
/* PagerDuty's Events API v2. */
#include <errno.h>

#include "aggregator/notify/format/format.h"
#include "aggregator/notify/format/format_text.h"
#include "common/system/clock.h"
#include "proto/json.h"

/* An event has at most 512,000 bytes. */
enum {
	SUMMARY_MAX = 1024,
};

static json_t *details_of(const struct nt_notice *notice)
{
	nt_autojson json_t *details = json_object();
	int failed = 0;

	failed |= json_object_set_new(details, "Summary", json_string(notice->summary));
	for (size_t i = 0; i < notice->fields; i++)
		failed |= json_object_set_new(details, notice->field[i].name,
					      json_string(notice->field[i].value));
	return failed ? NULL : nt_take(details);
}

static json_t *payload_of(const struct nt_notice *notice)
{
	nt_autoformattext struct nt_format_text summary = {
		.max = SUMMARY_MAX,
		.unit = NT_FORMAT_UTF16,
	};
	nt_autojson json_t *payload = json_object();
	const char *source = notice->node[0] ? notice->node : notice->job;
	int failed = nt_format_text_add(&summary, notice->title);

	failed |=
		json_object_set_new(payload, "summary", json_string(nt_format_text_get(&summary)));
	failed |=
		json_object_set_new(payload, "source", json_string(*source ? source : "neutracer"));
	failed |= json_object_set_new(payload, "severity",
				      json_string(nt_notice_severity_name(notice->severity)));
	if (notice->since_ns)
		failed |= json_object_set_new(payload, "timestamp", nt_json_time(notice->since_ns));
	failed |= json_object_set_new(payload, "component", nt_json_text(notice->job));
	failed |= json_object_set_new(payload, "group", nt_json_text(notice->namespace));
	failed |= json_object_set_new(payload, "class", nt_json_text(notice->class));
	failed |= json_object_set_new(payload, "custom_details", details_of(notice));
	return failed ? NULL : nt_take(payload);
}

static int set_trigger(json_t *event, const struct nt_notice *notice)
{
	int failed = 0;

	failed |= json_object_set_new(event, "client", json_string("NeuTracer"));
	if (notice->link[0]) {
		failed |= json_object_set_new(event, "client_url", json_string(notice->link));
		failed |= json_object_set_new(
			event, "links",
			json_pack("[{s:s, s:s}]", "href", notice->link, "text", "Details"));
	}
	failed |= json_object_set_new(event, "payload", payload_of(notice));
	return failed;
}

int nt_pagerduty_write(const struct nt_format_input *input, struct nt_format_post *post)
{
	const struct nt_notice *notice = input->notice[0];
	bool is_over = notice->state == NT_NOTICE_RESOLVED;
	nt_autojson json_t *event = json_object();
	int failed = 0;

	failed |= json_object_set_new(event, "routing_key", json_string(input->secret));
	failed |= json_object_set_new(event, "event_action",
				      json_string(is_over ? "resolve" : "trigger"));
	failed |= json_object_set_new(event, "dedup_key", json_string(notice->incident));
	if (!is_over)
		failed |= set_trigger(event, notice);
	return failed ? -ENOMEM : nt_format_finish(input, nt_take(event), post);
}
