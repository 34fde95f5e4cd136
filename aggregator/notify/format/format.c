/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/format/format.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "proto/json.h"

/* Rates are below what the services accept: https is the only channel to them that is observed. */
static const struct nt_receiver_format formats[NT_RECEIVER_KINDS] = {
	[NT_RECEIVER_WEBHOOK] = {.name = "webhook",
				 .secret = NT_RECEIVER_SECRET_OPTIONAL,
				 .notices_silence = true,
				 .rate = 600},
	[NT_RECEIVER_ALERTMANAGER] = {.name = "alertmanager",
				      .secret = NT_RECEIVER_SECRET_OPTIONAL,
				      .keeps_incidents = true,
				      .rate = 600,
				      .notices_silence = true,
				      .write = nt_alertmanager_write,
				      .beat = nt_alertmanager_beat},
	/* One message a second and channel. */
	[NT_RECEIVER_SLACK] = {.name = "slack",
			       .is_url_secret = true,
			       .is_chat = true,
			       .rate = 30,
			       .write = nt_slack_write,
			       .judge = nt_slack_judge},
	/* 100 a minute and 5 a second for each bot. */
	[NT_RECEIVER_FEISHU] = {.name = "feishu",
				.secret = NT_RECEIVER_SECRET_OPTIONAL,
				.is_url_secret = true,
				.is_chat = true,
				.rate = 20,
				.write = nt_feishu_write,
				.judge = nt_feishu_judge},
	/* 20 a minute; more, and the bot is blocked for 10 minutes. */
	[NT_RECEIVER_DINGTALK] = {.name = "dingtalk",
				  .secret = NT_RECEIVER_SECRET_OPTIONAL,
				  .is_url_secret = true,
				  .is_chat = true,
				  .rate = 16,
				  .write = nt_dingtalk_write,
				  .judge = nt_dingtalk_judge},
	/* 20 a minute. */
	[NT_RECEIVER_WECOM] = {.name = "wecom",
			       .is_url_secret = true,
			       .is_chat = true,
			       .rate = 16,
			       .write = nt_wecom_write,
			       .judge = nt_wecom_judge},
	/* 4 a second. */
	[NT_RECEIVER_TEAMS] = {.name = "teams",
			       .is_url_secret = true,
			       .is_chat = true,
			       .rate = 30,
			       .write = nt_teams_write,
			       .judge = nt_teams_judge},
	[NT_RECEIVER_PAGERDUTY] = {.name = "pagerduty",
				   .url = "https://events.pagerduty.com/v2/enqueue",
				   .secret = NT_RECEIVER_SECRET_REQUIRED,
				   .keeps_incidents = true,
				   .rate = 120,
				   .write = nt_pagerduty_write},
	[NT_RECEIVER_OPSGENIE] = {.name = "opsgenie",
				  .url = "https://api.opsgenie.com/v2/alerts",
				  .secret = NT_RECEIVER_SECRET_REQUIRED,
				  .keeps_incidents = true,
				  .rate = 120,
				  .notices_silence = true,
				  .write = nt_opsgenie_write,
				  .beat = nt_opsgenie_beat},
	[NT_RECEIVER_NVSENTINEL] = {.name = "nvsentinel",
				    .is_socket = true,
				    .keeps_incidents = true,
				    .rate = 600,
				    .write = nt_nvsentinel_write,
				    .judge = nt_nvsentinel_judge},
};

const struct nt_receiver_format *nt_receiver_format_of(enum nt_receiver_kind kind)
{
	return &formats[kind];
}

bool nt_receiver_url_is_valid(enum nt_receiver_kind kind, const char *url)
{
	static const char prefix[] = "unix:///";

	if (!formats[kind].is_socket)
		return nt_http_url_is_valid(url);
	return !strncmp(url, prefix, sizeof(prefix) - 1) &&
	       strlen(url) < sizeof(((struct sockaddr_un *)0)->sun_path);
}

void nt_format_post_release(struct nt_format_post *post)
{
	nt_buf_release(&post->url);
	nt_buf_release(&post->body);
	nt_buf_release(&post->authorization);
}

int nt_format_put(struct nt_buf *buf, const char *text)
{
	int r = nt_buf_append(buf, text, strlen(text) + 1);

	if (r < 0)
		return -ENOMEM;
	buf->len--;
	return 0;
}

int nt_format_finish(const struct nt_format_input *input, json_t *json, struct nt_format_post *post)
{
	nt_autojson json_t *own = json;
	int r;

	if (!own)
		return -ENOMEM;
	r = post->url.len ? 0 : nt_format_put(&post->url, input->url);
	if (r == 0)
		r = nt_json_dump(own, false, &post->body);
	return r == 0 ? nt_format_put(&post->body, "") : -ENOMEM;
}

static bool is_later(const struct nt_format_code *code, long long value)
{
	for (size_t i = 0; i < code->laters; i++)
		if (code->later[i] == value)
			return true;
	return value == code->limited;
}

void nt_format_judge_code(const struct nt_http_post_reply *reply, const struct nt_format_code *code,
			  struct nt_attempt *attempt)
{
	nt_autojson json_t *body = NULL;
	const json_t *value = NULL;

	if (nt_json_load(reply->body.data ? (const char *)reply->body.data : "", reply->body.len,
			 &body) == 0)
		value = json_object_get(body, code->member);
	if (!json_is_integer(value)) {
		if (attempt->outcome != NT_ATTEMPT_TAKEN)
			return;
		attempt->outcome = NT_ATTEMPT_LATER;
		attempt->reason = "the answer is not of this service";
		return;
	}
	attempt->code = json_integer_value(value);
	if (!attempt->code)
		return;
	/* A gateway before the service has codes of its own: where its status says later, it is later. */
	if (attempt->outcome != NT_ATTEMPT_LATER)
		attempt->outcome =
			is_later(code, attempt->code) ? NT_ATTEMPT_LATER : NT_ATTEMPT_REFUSED;
	attempt->reason = "the code in the answer";
	if (attempt->code == code->limited && attempt->retry_after_ns < code->limited_ns)
		attempt->retry_after_ns = code->limited_ns;
}
