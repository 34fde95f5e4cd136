/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/publish/limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/system/clock.h"

#define CLEAR_NS NT_MINUTE

static const struct {
	const char *name, *one, *many;
} words[] = {
	[NT_LIMIT_DISCOVERY] = {"discovery", "process", "processes"},
	[NT_LIMIT_PROCESSES] = {"processes", "process", "processes"},
	[NT_LIMIT_KEYS] = {"keys", "rank", "ranks"},
	[NT_LIMIT_COMMS] = {"communicators", "call", "calls"},
	[NT_LIMIT_ORPHANS] = {"orphans", "event", "events"},
	[NT_LIMIT_ATTACHMENTS] = {"attachments", "library file", "library files"},
};

enum nt_limit_news nt_limits_look(struct nt_limits *limits, enum nt_limit_what what,
				  const struct nt_share *share, uint64_t mono_ns)
{
	nt_share_read(share, &limits->of[what].report);
	if (limits->of[what].report.left_out) {
		limits->of[what].over_ns = mono_ns;
		if (limits->of[what].reported)
			return NT_LIMIT_NONE;
		limits->of[what].reported = true;
		return NT_LIMIT_BEGINS;
	}
	if (!limits->of[what].reported || mono_ns < limits->of[what].over_ns + CLEAR_NS)
		return NT_LIMIT_NONE;
	limits->of[what].reported = false;
	return NT_LIMIT_ENDS;
}

const char *nt_limit_name(enum nt_limit_what what)
{
	return words[what].name;
}

const char *nt_limit_text(const struct nt_limits *limits, enum nt_limit_what what,
			  char text[NT_LIMIT_TEXT])
{
	const struct nt_share_report *report = &limits->of[what].report;
	const bool all = report->left_out == report->left_out_most;

	if (all)
		(void)snprintf(text, NT_LIMIT_TEXT, "%" PRIu64 " %s left out, of %s (cap %u)",
			       report->left_out,
			       report->left_out == 1 ? words[what].one : words[what].many,
			       report->owner, report->cap);
	else
		(void)snprintf(text, NT_LIMIT_TEXT,
			       "%" PRIu64 " %s left out, %" PRIu64 " of them of %s (cap %u)",
			       report->left_out, words[what].many, report->left_out_most,
			       report->owner, report->cap);
	return text;
}

size_t nt_limits_list(const struct nt_limits *limits, struct nt_node_limit ret_limit[NT_LIMIT_END])
{
	size_t n = 0;

	for (int i = 0; i < NT_LIMIT_END; i++) {
		const struct nt_share_report *report = &limits->of[i].report;

		if (!report->left_out)
			continue;
		ret_limit[n++] = (struct nt_node_limit){
			.what = words[i].name,
			.unit = words[i].many,
			.owner = report->owner,
			.left_out = report->left_out,
			.owner_left_out = report->left_out_most,
			.cap = report->cap,
		};
	}
	return n;
}
