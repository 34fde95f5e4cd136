/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Custom bots of Feishu and Lark: a card of schema 2.0. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "aggregator/notify/format/format.h"
#include "aggregator/notify/format/format_markdown.h"
#include "aggregator/notify/format/format_text.h"
#include "aggregator/notify/format/signature.h"
#include "common/system/clock.h"
#include "proto/json.h"

/* A body has at most 20 KB; in JSON a character of ours needs two bytes at most. */
enum {
	TITLE_MAX = 400,
	CONTENT_MAX = 9000,
	KEY_BYTES = 1024,
};

/* Its Markdown understands entities. */
static const char *escape(char c)
{
	switch (c) {
	case '&':
		return "&#38;";
	case '<':
		return "&#60;";
	case '>':
		return "&#62;";
	case '*':
		return "&#42;";
	case '_':
		return "&#95;";
	case '~':
		return "&#126;";
	case '`':
		return "&#96;";
	case '[':
		return "&#91;";
	case ']':
		return "&#93;";
	case '(':
		return "&#40;";
	case ')':
		return "&#41;";
	case '#':
		return "&#35;";
	case '!':
		return "&#33;";
	case '$':
		return "&#36;";
	case '\\':
		return "&#92;";
	default:
		return NULL;
	}
}

static const char *template_of(const struct nt_notice *notice)
{
	static const char *const colours[] = {"blue", "orange", "red"};

	return notice->state == NT_NOTICE_RESOLVED ? "green" : colours[notice->severity];
}

static json_t *card_of(const struct nt_notice *notice)
{
	nt_autoformattext struct nt_format_text title = {.max = TITLE_MAX};
	nt_autoformattext struct nt_format_text content = {.max = CONTENT_MAX, .escape = escape};

	if (nt_format_text_add(&title, notice->title) < 0 ||
	    nt_format_markdown_add(&content, notice, "\n") < 0)
		return NULL;
	return json_pack("{s:s, s:{s:s, s:{s:s, s:s}}, s:{s:[{s:s, s:s}]}}", "schema", "2.0",
			 "header", "template", template_of(notice), "title", "tag", "plain_text",
			 "content", nt_format_text_get(&title), "body", "elements", "tag",
			 "markdown", "content", nt_format_text_get(&content));
}

/* The key is the time and the secret; the message is empty. */
static int sign(const struct nt_format_input *input, json_t *body)
{
	char time[24], key[KEY_BYTES], signature[NT_SIGNATURE_TEXT];
	int failed = 0;

	(void)snprintf(time, sizeof(time), "%" PRIu64, (uint64_t)(input->now_ns / NT_SECOND));
	(void)snprintf(key, sizeof(key), "%s\n%s", time, input->secret);
	if (nt_signature_write(key, "", signature) < 0)
		return -ENOMEM;
	failed |= json_object_set_new(body, "timestamp", json_string(time));
	failed |= json_object_set_new(body, "sign", json_string(signature));
	return failed ? -ENOMEM : 0;
}

int nt_feishu_write(const struct nt_format_input *input, struct nt_format_post *post)
{
	nt_autojson json_t *body = json_object();
	int failed = 0;

	if (*input->secret && sign(input, body) < 0)
		return -ENOMEM;
	failed |= json_object_set_new(body, "msg_type", json_string("interactive"));
	failed |= json_object_set_new(body, "card", card_of(input->notice[0]));
	return failed ? -ENOMEM : nt_format_finish(input, nt_take(body), post);
}

/* 11232: too many messages. */
void nt_feishu_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt)
{
	static const struct nt_format_code code = {
		.member = "code",
		.limited = 11232,
		.limited_ns = 10 * NT_SECOND,
	};

	nt_format_judge_code(reply, &code, attempt);
}
