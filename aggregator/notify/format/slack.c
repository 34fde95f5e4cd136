/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Slack's incoming webhooks: Block Kit. */
#include <errno.h>
#include <string.h>

#include "aggregator/notify/format/format.h"
#include "aggregator/notify/format/format_text.h"
#include "proto/json.h"

/* Slack accepts 150, 3,000, ten fields of 2,000, and about 12,000 in all. */
enum {
	HEADER_MAX = 150,
	SUMMARY_MAX = 2000,
	FIELD_MAX = 700,
	FALLBACK_MAX = 300,
};

/* In mrkdwn these three alone begin links, mentions and entities. */
static const char *escape(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	default:
		return NULL;
	}
}

static json_t *mrkdwn(const char *name, const char *value, const char *link, size_t max)
{
	nt_autoformattext struct nt_format_text text = {
		.max = max,
		.unit = NT_FORMAT_UTF16,
		.escape = escape,
	};
	nt_autobuf struct nt_buf markup = {0};
	int r = 0;

	if (name)
		r = nt_buf_printf(&markup, "*%s*\n", name);
	else if (link && *link)
		r = nt_buf_printf(&markup, "<%s|Details>  ", link);
	if (r == 0 && markup.len)
		r = nt_format_text_add_markup(&text, (const char *)markup.data);
	if (r == 0)
		r = nt_format_text_add(&text, value);
	if (r < 0)
		return NULL;
	/* verbatim: names of the text become no links or mentions. */
	return json_pack("{s:s, s:s, s:b}", "type", "mrkdwn", "text", nt_format_text_get(&text),
			 "verbatim", 1);
}

static json_t *header_of(const struct nt_notice *notice)
{
	nt_autoformattext struct nt_format_text text = {.max = HEADER_MAX, .unit = NT_FORMAT_UTF16};

	if (nt_format_text_add(&text, notice->title) < 0)
		return NULL;
	return json_pack("{s:s, s:{s:s, s:s, s:b}}", "type", "header", "text", "type", "plain_text",
			 "text", nt_format_text_get(&text), "emoji", 0);
}

static json_t *fields_of(const struct nt_notice *notice)
{
	nt_autojson json_t *fields = json_array();

	for (size_t i = 0; i < notice->fields; i++) {
		const struct nt_notice_field *field = &notice->field[i];

		if (json_array_append_new(fields,
					  mrkdwn(field->name, field->value, NULL, FIELD_MAX)))
			return NULL;
	}
	return nt_take(fields);
}

static json_t *blocks_of(const struct nt_notice *notice)
{
	nt_autojson json_t *blocks = json_array();
	const char *summary = notice->summary[0] ? notice->summary : notice->title;
	int failed = 0;

	failed |= json_array_append_new(blocks, header_of(notice));
	failed |= json_array_append_new(
		blocks, json_pack("{s:s, s:o}", "type", "section", "text",
				  mrkdwn(NULL, summary, notice->link, SUMMARY_MAX)));
	if (notice->fields)
		failed |= json_array_append_new(blocks, json_pack("{s:s, s:o}", "type", "section",
								  "fields", fields_of(notice)));
	return failed ? NULL : nt_take(blocks);
}

int nt_slack_write(const struct nt_format_input *input, struct nt_format_post *post)
{
	const struct nt_notice *notice = input->notice[0];
	nt_autoformattext struct nt_format_text fallback = {
		.max = FALLBACK_MAX,
		.unit = NT_FORMAT_UTF16,
		.escape = escape,
	};

	if (nt_format_text_add(&fallback, notice->title) < 0)
		return -ENOMEM;
	return nt_format_finish(input,
				json_pack("{s:s, s:o}", "text", nt_format_text_get(&fallback),
					  "blocks", blocks_of(notice)),
				post);
}

void nt_slack_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt)
{
	const char *text = reply->body.data ? (const char *)reply->body.data : "";

	if (attempt->outcome != NT_ATTEMPT_TAKEN ||
	    (!strncmp(text, "ok", 2) && strspn(text + 2, "\r\n") == strlen(text + 2)))
		return;
	attempt->outcome = NT_ATTEMPT_LATER;
	attempt->reason = "the answer is not of this service";
}
