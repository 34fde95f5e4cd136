/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Alerts of Opsgenie, and of Jira Service Management, which takes the same requests. */
#include <curl/curl.h>
#include <errno.h>
#include <string.h>

#include "aggregator/notify/format/format.h"
#include "aggregator/notify/format/format_text.h"
#include "proto/json.h"

/* All in characters; the details together have 8,000. */
enum {
	MESSAGE_MAX = 130,
	DESCRIPTION_MAX = 15000,
	ENTITY_MAX = 512,
	TAG_MAX = 50,
	DETAIL_MAX = 700,
};

static json_t *cut_text(const char *value, size_t max)
{
	nt_autoformattext struct nt_format_text text = {.max = max, .unit = NT_FORMAT_UTF16};

	return nt_format_text_add(&text, value) < 0 ? NULL : json_string(nt_format_text_get(&text));
}

static json_t *details_of(const struct nt_notice *notice)
{
	nt_autojson json_t *details = json_object();

	for (size_t i = 0; i < notice->fields; i++)
		if (json_object_set_new(details, notice->field[i].name,
					cut_text(notice->field[i].value, DETAIL_MAX)))
			return NULL;
	return nt_take(details);
}

static json_t *description_of(const struct nt_notice *notice)
{
	nt_autoformattext struct nt_format_text text = {
		.max = DESCRIPTION_MAX,
		.unit = NT_FORMAT_UTF16,
	};
	int r = nt_format_text_add(&text, notice->summary);

	if (r == 0 && notice->link[0])
		r = nt_format_text_add(&text, "\n");
	if (r == 0)
		r = nt_format_text_add(&text, notice->link);
	return r < 0 ? NULL : json_string(nt_format_text_get(&text));
}

static json_t *tags_of(const struct nt_notice *notice)
{
	const char *const tags[] = {"neutracer", nt_notice_severity_name(notice->severity),
				    notice->class};
	nt_autojson json_t *list = json_array();

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (*tags[i] && json_array_append_new(list, cut_text(tags[i], TAG_MAX)))
			return NULL;
	return nt_take(list);
}

static json_t *alert_of(const struct nt_notice *notice)
{
	static const char *const priorities[] = {"P5", "P3", "P1"};
	nt_autojson json_t *alert = json_object();
	int failed = 0;

	failed |= json_object_set_new(alert, "message", cut_text(notice->title, MESSAGE_MAX));
	failed |= json_object_set_new(alert, "alias", json_string(notice->incident));
	failed |= json_object_set_new(alert, "description", description_of(notice));
	failed |= json_object_set_new(alert, "priority", json_string(priorities[notice->severity]));
	failed |= json_object_set_new(alert, "source", json_string("NeuTracer"));
	if (notice->node[0])
		failed |= json_object_set_new(alert, "entity", cut_text(notice->node, ENTITY_MAX));
	failed |= json_object_set_new(alert, "tags", tags_of(notice));
	failed |= json_object_set_new(alert, "details", details_of(notice));
	return failed ? NULL : nt_take(alert);
}

/* …/alerts/ALIAS/close?identifierType=alias */
static int write_close_url(const struct nt_format_input *input, struct nt_format_post *post)
{
	char *alias = curl_easy_escape(NULL, input->notice[0]->incident, 0);
	int r = alias ? nt_format_put(&post->url, input->url) : -ENOMEM;

	if (r == 0)
		r = nt_format_put(&post->url, "/");
	if (r == 0)
		r = nt_format_put(&post->url, alias);
	if (r == 0)
		r = nt_format_put(&post->url, "/close?identifierType=alias");
	curl_free(alias);
	return r;
}

static int write_key(const struct nt_format_input *input, struct nt_format_post *post)
{
	int r = nt_format_put(&post->authorization, "Authorization: GenieKey ");

	return r == 0 ? nt_format_put(&post->authorization, input->secret) : r;
}

/* …/heartbeats/NAME/ping beside …/alerts */
static int write_ping_url(const struct nt_format_input *input, struct nt_format_post *post)
{
	static const char alerts[] = "/alerts";
	char *name = curl_easy_escape(NULL, input->beat, 0);
	size_t len = strlen(input->url), tail = sizeof(alerts) - 1;
	int r = name ? nt_format_put(&post->url, input->url) : -ENOMEM;

	if (r == 0 && len > tail && !strcmp(input->url + len - tail, alerts))
		post->url.len -= tail;
	if (r == 0)
		r = nt_format_put(&post->url, "/heartbeats/");
	if (r == 0)
		r = nt_format_put(&post->url, name);
	if (r == 0)
		r = nt_format_put(&post->url, "/ping");
	curl_free(name);
	return r;
}

int nt_opsgenie_beat(const struct nt_format_input *input, struct nt_format_post *post)
{
	int r = write_key(input, post);

	if (r == 0)
		r = write_ping_url(input, post);
	return r == 0 ? nt_format_finish(input, json_object(), post) : r;
}

int nt_opsgenie_write(const struct nt_format_input *input, struct nt_format_post *post)
{
	const struct nt_notice *notice = input->notice[0];
	bool is_over = notice->state == NT_NOTICE_RESOLVED;
	int r = write_key(input, post);

	if (r == 0 && is_over)
		r = write_close_url(input, post);
	if (r < 0)
		return r;
	return nt_format_finish(input,
				is_over ? json_pack("{s:s, s:o}", "source", "NeuTracer", "note",
						    cut_text(notice->title, MESSAGE_MAX))
					: alert_of(notice),
				post);
}
