/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Workflows of Microsoft Teams: an adaptive card. Runs of text know no markup, so names need no escapes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/notify/format/format.h"
#include "aggregator/notify/format/format_text.h"
#include "proto/json.h"

/* A message has at most 28 KB, counted as UTF-16; in JSON a character may need two. */
enum {
	TITLE_MAX = 300,
	TEXT_MAX = 450,
	LINES_MAX = 24, /* of a template's text */
};

static json_t *run_of(const char *value, bool is_bold)
{
	nt_autoformattext struct nt_format_text text = {.max = TEXT_MAX, .unit = NT_FORMAT_UTF16};

	if (nt_format_text_add(&text, value) < 0)
		return NULL;
	return json_pack("{s:s, s:s, s:s}", "type", "TextRun", "text", nt_format_text_get(&text),
			 "weight", is_bold ? "Bolder" : "Default");
}

static json_t *title_of(const struct nt_notice *notice)
{
	static const char *const colours[] = {"accent", "warning", "attention"};
	nt_autoformattext struct nt_format_text text = {.max = TITLE_MAX, .unit = NT_FORMAT_UTF16};
	const char *colour =
		notice->state == NT_NOTICE_RESOLVED ? "good" : colours[notice->severity];

	if (nt_format_text_add(&text, notice->title) < 0)
		return NULL;
	return json_pack("{s:s, s:[{s:s, s:s, s:s, s:s, s:s}]}", "type", "RichTextBlock", "inlines",
			 "type", "TextRun", "text", nt_format_text_get(&text), "weight", "Bolder",
			 "size", "Medium", "color", colour);
}

static json_t *line_of(const char *name, const char *value)
{
	nt_autojson json_t *runs = json_array();
	int failed = 0;

	if (name) {
		failed |= json_array_append_new(runs, run_of(name, true));
		failed |= json_array_append_new(runs, run_of(": ", true));
	}
	failed |= json_array_append_new(runs, run_of(value, false));
	return failed ? NULL
		      : json_pack("{s:s, s:o}", "type", "RichTextBlock", "inlines", nt_take(runs));
}

/* A text of a template has several lines. */
static int add_lines_of(json_t *body, const char *text)
{
	int failed = 0;

	for (unsigned int lines = 0; *text && lines < LINES_MAX; lines++) {
		char line[NT_NOTICE_BODY];
		size_t len = strcspn(text, "\n");

		(void)snprintf(line, sizeof(line), "%.*s", (int)len, text);
		if (len)
			failed |= json_array_append_new(body, line_of(NULL, line));
		text += len + (text[len] == '\n');
	}
	return failed;
}

static json_t *body_of(const struct nt_notice *notice)
{
	nt_autojson json_t *body = json_array();
	int failed = 0;

	failed |= json_array_append_new(body, title_of(notice));
	failed |= add_lines_of(body, notice->summary);
	for (size_t i = 0; i < notice->fields; i++)
		failed |= json_array_append_new(
			body, line_of(notice->field[i].name, notice->field[i].value));
	return failed ? NULL : nt_take(body);
}

static json_t *card_of(const struct nt_notice *notice)
{
	nt_autojson json_t *card = json_pack("{s:s, s:s, s:s, s:o, s:{s:s}}", "$schema",
					     "http://adaptivecards.io/schemas/adaptive-card.json",
					     "type", "AdaptiveCard", "version", "1.2", "body",
					     body_of(notice), "msteams", "width", "Full");

	if (notice->link[0] &&
	    json_object_set_new(card, "actions",
				json_pack("[{s:s, s:s, s:s}]", "type", "Action.OpenUrl", "title",
					  "Details", "url", notice->link)))
		return NULL;
	return nt_take(card);
}

int nt_teams_write(const struct nt_format_input *input, struct nt_format_post *post)
{
	return nt_format_finish(input,
				json_pack("{s:s, s:[{s:s, s:n, s:o}]}", "type", "message",
					  "attachments", "contentType",
					  "application/vnd.microsoft.card.adaptive", "contentUrl",
					  "content", card_of(input->notice[0])),
				post);
}

/* Some flows pass on a failure of Teams with status 200 and this text. */
void nt_teams_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt)
{
	if (attempt->outcome != NT_ATTEMPT_TAKEN || !reply->body.data ||
	    !strstr((const char *)reply->body.data, "failed with error"))
		return;
	attempt->outcome = NT_ATTEMPT_LATER;
	attempt->reason = "the failure in the answer";
}
