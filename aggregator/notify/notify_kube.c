/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nodes that were tainted or cordoned: undone once they are quiet, looked at each minute. */
#include "aggregator/notify/notify_impl.h"
#include "common/system/clock.h"

static const uint64_t lift_every_ns = NT_MINUTE;

uint64_t nt_notify_lift(struct nt_notify_line *line)
{
	struct nt_notify *notify = line->notify;
	struct nt_kube_try try = {
		.kube = line->sender.options.kube,
		.timeout_ns = notify->options.total_timeout_ns,
	};
	uint64_t now_ns = nt_clock_mono_ns();

	if (!line->sender.options.action)
		return UINT64_MAX;
	if (now_ns < line->lift_ns)
		return line->lift_ns;
	/* A failure is retried a minute later. */
	(void)!nt_kube_action_lift(&notify->action, &try);
	line->lift_ns = nt_clock_mono_ns() + lift_every_ns;
	return line->lift_ns;
}
