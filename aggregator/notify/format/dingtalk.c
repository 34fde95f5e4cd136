/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Custom robots of DingTalk: Markdown. */
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/notify/format/format.h"
#include "aggregator/notify/format/format_markdown.h"
#include "aggregator/notify/format/format_text.h"
#include "aggregator/notify/format/signature.h"
#include "common/system/clock.h"
#include "proto/json.h"

/* A body has at most 20 KB; in JSON a character of ours needs two bytes at most. */
enum {
	TITLE_MAX = 200,
	TEXT_MAX = 9000,
	STRING_BYTES = 1024,
};

/* The time and the sign are parameters of the URL. */
static int sign(const struct nt_format_input *input, struct nt_format_post *post)
{
	char time[24], string[STRING_BYTES], signature[NT_SIGNATURE_TEXT], parameters[256];
	char *escaped;
	int r;

	(void)snprintf(time, sizeof(time), "%" PRIu64, (uint64_t)(input->now_ns / NT_MILLISECOND));
	(void)snprintf(string, sizeof(string), "%s\n%s", time, input->secret);
	r = nt_signature_write(input->secret, string, signature);
	if (r < 0)
		return r;
	escaped = curl_easy_escape(NULL, signature, 0);
	if (!escaped)
		return -ENOMEM;
	(void)snprintf(parameters, sizeof(parameters), "%ctimestamp=%s&sign=%s",
		       strchr(input->url, '?') ? '&' : '?', time, escaped);
	curl_free(escaped);
	r = nt_format_put(&post->url, input->url);
	return r == 0 ? nt_format_put(&post->url, parameters) : r;
}

int nt_dingtalk_write(const struct nt_format_input *input, struct nt_format_post *post)
{
	const struct nt_notice *notice = input->notice[0];
	nt_autoformattext struct nt_format_text title = {.max = TITLE_MAX};
	nt_autoformattext struct nt_format_text text = {
		.max = TEXT_MAX,
		.escape = nt_format_markdown_wide,
	};
	int r = *input->secret ? sign(input, post) : 0;

	if (r == 0)
		r = nt_format_text_add(&title, notice->title);
	if (r == 0)
		r = nt_format_text_add_markup(&text, "### ");
	if (r == 0)
		r = nt_format_text_add(&text, notice->title);
	if (r == 0)
		r = nt_format_text_add_markup(&text, "\n\n");
	if (r == 0)
		r = nt_format_markdown_add(&text, notice, "\n\n");
	if (r < 0)
		return r;
	return nt_format_finish(
		input,
		json_pack("{s:s, s:{s:s, s:s}, s:{s:[], s:b}}", "msgtype", "markdown", "markdown",
			  "title", nt_format_text_get(&title), "text", nt_format_text_get(&text),
			  "at", "atMobiles", "isAtAll", 0),
		post);
}

/* -1: the service is busy. 130101: over the rate, for ten minutes. */
void nt_dingtalk_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt)
{
	static const long long later[] = {-1};
	static const struct nt_format_code code = {
		.member = "errcode",
		.later = later,
		.laters = sizeof(later) / sizeof(later[0]),
		.limited = 130101,
		.limited_ns = 10 * NT_MINUTE,
	};

	nt_format_judge_code(reply, &code, attempt);
}
