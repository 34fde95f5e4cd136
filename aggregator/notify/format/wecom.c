/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Group robots of WeCom: Markdown of at most 4,096 bytes. */
#include <errno.h>

#include "aggregator/notify/format/format.h"
#include "aggregator/notify/format/format_markdown.h"
#include "aggregator/notify/format/format_text.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	CONTENT_MAX = 4096,
};

static const char *colour_of(const struct nt_notice *notice)
{
	if (notice->state == NT_NOTICE_RESOLVED)
		return "<font color=\"info\">";
	return notice->severity == NT_NOTICE_INFO ? "<font color=\"comment\">"
						  : "<font color=\"warning\">";
}

int nt_wecom_write(const struct nt_format_input *input, struct nt_format_post *post)
{
	const struct nt_notice *notice = input->notice[0];
	nt_autoformattext struct nt_format_text content = {
		.max = CONTENT_MAX,
		.escape = nt_format_markdown_wide,
	};
	int r = nt_format_text_add_markup(&content, colour_of(notice));

	/* The title is bounded, so its tag is always closed. */
	if (r == 0)
		r = nt_format_text_add(&content, notice->title);
	if (r == 0)
		r = nt_format_text_add_markup(&content, "</font>\n");
	if (r == 0)
		r = nt_format_markdown_add(&content, notice, "\n");
	if (r < 0)
		return r;
	return nt_format_finish(input,
				json_pack("{s:s, s:{s:s}}", "msgtype", "markdown", "markdown",
					  "content", nt_format_text_get(&content)),
				post);
}

/* -1: the service is busy. 45009: over the rate. */
void nt_wecom_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt)
{
	static const long long later[] = {-1};
	static const struct nt_format_code code = {
		.member = "errcode",
		.later = later,
		.laters = sizeof(later) / sizeof(later[0]),
		.limited = 45009,
		.limited_ns = NT_MINUTE,
	};

	nt_format_judge_code(reply, &code, attempt);
}
