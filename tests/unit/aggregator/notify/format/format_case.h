/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages of an invented incident, and the requests that formats make of them. */
#ifndef NT_TESTS_UNIT_AGGREGATOR_NOTIFY_FORMAT_FORMAT_CASE_H
#define NT_TESTS_UNIT_AGGREGATOR_NOTIFY_FORMAT_FORMAT_CASE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/notify/format/format.h"
#include "common/base/utf8.h"
#include "common/system/clock.h"
#include "proto/json.h"
#include "tests/api/snapshot_scene.h"

#define CASE_NOW_NS (NT_TEST_TIME_NS + NT_MINUTE)

/* With a GPU, a cause, money and a stack. */
static inline struct nt_wire_incident case_incident(const char *state)
{
	static struct nt_culprit culprit;
	static struct nt_wire_stack_frame frames[] = {
		{.function = "all_reduce", .file = "train.py", .line = 112},
		{.function = "step", .file = "train.py", .line = 80},
	};
	static struct nt_wire_incident_stack stack[] = {
		{.rank = 5,
		 .is_culprit = true,
		 .real_ns = NT_TEST_TIME_NS,
		 .stack = {.name = "python",
			   .is_main = true,
			   .frame = frames,
			   .frames = 2,
			   .state = "S",
			   .wait = "",
			   .interpreter = "3.11",
			   .python_reason = "",
			   .native_reason = ""}},
	};
	struct nt_wire_incident incident;

	culprit = nt_test_rank_5;
	culprit.gpu = "GPU-0f2a";
	incident = nt_test_incident("00000000000000f1", state, &culprit, 1);
	incident.cause = "clock-held-down: power";
	incident.cost.has_money = true;
	incident.cost.money = 31;
	incident.cost.currency = "USD";
	incident.stack = stack;
	incident.stacks = 1;
	return incident;
}

/* As the store writes it. */
static inline void case_body(const struct nt_wire_incident *incident, struct nt_buf *body)
{
	bool resolved = !strcmp(incident->state, "resolved");
	nt_autojson json_t *message =
		json_pack("{s:s, s:o, s:o}", "type",
			  resolved ? "incident.resolved" : "incident.firing", "timestamp",
			  nt_json_time(incident->seen_real_ns), "data", nt_json_incident(incident));

	assert_non_null(message);
	assert_int_equal(nt_json_dump(message, false, body), 0);
}

static inline void case_notice(const struct nt_wire_incident *incident, struct nt_notice *notice)
{
	nt_autobuf struct nt_buf body = {0};

	case_body(incident, &body);
	assert_int_equal(nt_notice_read((const char *)body.data, body.len,
					"https://neutracer.example/i/", false, notice),
			 0);
	notice->severities = 1U << notice->severity;
}

static inline void case_write(enum nt_receiver_kind kind, const struct nt_notice *notice,
			      struct nt_format_post *post)
{
	static const char *const urls[NT_RECEIVER_KINDS] = {
		[NT_RECEIVER_ALERTMANAGER] = "http://alertmanager:9093/",
		[NT_RECEIVER_DINGTALK] = "https://oapi.dingtalk.com/robot/send?access_token=t",
		[NT_RECEIVER_PAGERDUTY] = "https://events.pagerduty.com/v2/enqueue",
		[NT_RECEIVER_OPSGENIE] = "https://api.opsgenie.com/v2/alerts",
	};
	const struct nt_receiver_format *format = nt_receiver_format_of(kind);
	const struct nt_format_input input = {
		.notice = &notice,
		.notices = 1,
		.url = urls[kind] ? urls[kind] : "https://chat.example/hook",
		.secret = format->secret == NT_RECEIVER_SECRET_NONE ? "" : "s3cret",
		.now_ns = CASE_NOW_NS,
		.alive_ns = 4 * NT_MINUTE,
	};

	assert_int_equal(format->write(&input, post), 0);
}

/* The body as JSON, which every format makes. The caller frees it. */
static inline json_t *case_json(const struct nt_format_post *post)
{
	json_t *json = NULL;

	assert_true(nt_utf8_is_valid((const char *)post->body.data, post->body.len));
	assert_int_equal(nt_json_load(post->body.data, post->body.len, &json), 0);
	return json;
}

#endif
