/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kinds of receivers: how a notice becomes a request of each, and what the answer means. One
 * file a kind; the table is in format.c. Limits are those that each service documents.
 */
#ifndef NT_AGGREGATOR_NOTIFY_FORMAT_FORMAT_H
#define NT_AGGREGATOR_NOTIFY_FORMAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/notify/attempt.h"
#include "aggregator/notify/http_post.h"
#include "aggregator/notify/notice.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"

enum nt_receiver_kind {
	NT_RECEIVER_WEBHOOK, /* signed as specified by Standard Webhooks */
	NT_RECEIVER_ALERTMANAGER,
	NT_RECEIVER_SLACK,
	NT_RECEIVER_FEISHU, /* and Lark */
	NT_RECEIVER_DINGTALK,
	NT_RECEIVER_WECOM,
	NT_RECEIVER_TEAMS,
	NT_RECEIVER_PAGERDUTY,
	NT_RECEIVER_OPSGENIE, /* and Jira Service Management */
	NT_RECEIVER_KINDS,
};

#define NT_RECEIVER_KIND_NAMES                                                                     \
	"webhook alertmanager slack feishu dingtalk wecom teams pagerduty opsgenie"

enum nt_receiver_secret {
	NT_RECEIVER_SECRET_NONE,
	NT_RECEIVER_SECRET_OPTIONAL,
	NT_RECEIVER_SECRET_REQUIRED,
};

struct nt_format_input {
	const struct nt_notice *const *notice; /* one; Alertmanager takes several */
	size_t notices;
	const char *url;
	const char *secret; /* "": none */
	uint64_t now_ns; /* real time */
	const char *who, *beat; /* of a heartbeat: the aggregator, and the service's name of it */
	uint64_t beat_ns; /* between heartbeats */
	uint64_t alive_ns; /* Alertmanager: an alert resolves if it is not repeated for so long */
};

/* A request. All zero is empty. */
struct nt_format_post {
	struct nt_buf url, body; /* both end with a NUL that is not counted */
	struct nt_buf authorization; /* "Authorization: …"; empty: none */
};

void nt_format_post_release(struct nt_format_post *post);
#define nt_autoformatpost __attribute__((cleanup(nt_format_post_release)))

struct nt_receiver_format {
	const char *name;
	const char *url; /* where the service always is; NULL: must be configured */
	enum nt_receiver_secret secret;
	bool is_url_secret; /* the URL alone permits to send */
	bool is_chat; /* several messages can become one; repeats are messages */
	bool notices_silence; /* takes heartbeats */
	bool keeps_incidents; /* a sample has to be resolved */
	uint32_t rate; /* messages a minute unless configured */
	/* NULL: a message of the outbox is sent as it is. -ENOMEM. */
	int (*write)(const struct nt_format_input *input, struct nt_format_post *post);
	/* A heartbeat, of which the service notices the absence. NULL: it has none. -ENOMEM. */
	int (*beat)(const struct nt_format_input *input, struct nt_format_post *post);
	/* After nt_http_post_judge(): the outcome by the body. NULL: the status decides. */
	void (*judge)(const struct nt_http_post_reply *reply, struct nt_attempt *attempt);
};

const struct nt_receiver_format *nt_receiver_format_of(enum nt_receiver_kind kind);

/* ---- of the kinds: for the table, and for each other ------------------------------------------ */

int nt_alertmanager_write(const struct nt_format_input *input, struct nt_format_post *post);
int nt_slack_write(const struct nt_format_input *input, struct nt_format_post *post);
int nt_feishu_write(const struct nt_format_input *input, struct nt_format_post *post);
int nt_dingtalk_write(const struct nt_format_input *input, struct nt_format_post *post);
int nt_wecom_write(const struct nt_format_input *input, struct nt_format_post *post);
int nt_teams_write(const struct nt_format_input *input, struct nt_format_post *post);
int nt_pagerduty_write(const struct nt_format_input *input, struct nt_format_post *post);
int nt_opsgenie_write(const struct nt_format_input *input, struct nt_format_post *post);

int nt_alertmanager_beat(const struct nt_format_input *input, struct nt_format_post *post);
int nt_opsgenie_beat(const struct nt_format_input *input, struct nt_format_post *post);

void nt_slack_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt);
void nt_feishu_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt);
void nt_dingtalk_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt);
void nt_wecom_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt);
void nt_teams_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt);

/* Appends the text and a NUL that is not counted. -ENOMEM. */
NT_MUST_CHECK int nt_format_put(struct nt_buf *buf, const char *text);
/* Writes the URL and the body. Consumes json; NULL gives -ENOMEM. */
NT_MUST_CHECK int nt_format_finish(const struct nt_format_input *input, json_t *json,
				   struct nt_format_post *post);

/* A code in the body of a 2xx answer. */
struct nt_format_code {
	const char *member; /* "errcode" */
	const long long *later; /* codes to retry; all others but 0 are refusals */
	size_t laters;
	long long limited; /* the rate limit, … */
	uint64_t limited_ns; /* … and for how long it lasts */
};

/* Success is code 0. A body that is no such JSON is not of the service: it is retried. */
void nt_format_judge_code(const struct nt_http_post_reply *reply, const struct nt_format_code *code,
			  struct nt_attempt *attempt);

#endif
