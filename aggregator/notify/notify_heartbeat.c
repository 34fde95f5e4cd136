/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Heartbeats: the receiver's side notices where they stop. They are not kept in the outbox: one that
 * fails is not retried before the next is due.
 */
#include "aggregator/notify/notify_impl.h"
#include "common/system/clock.h"

static const uint64_t check_ns = NT_SECOND; /* while the aggregator is not known to work */

void nt_notify_keep_alive(struct nt_notify *notify, uint64_t until_ns)
{
	atomic_store(&notify->alive_until_ns, until_ns);
}

uint64_t nt_notify_beat(struct nt_notify_line *line)
{
	struct nt_notify *notify = line->notify;
	struct nt_attempt attempt = {.outcome = NT_ATTEMPT_LATER};
	uint64_t now_ns = nt_clock_mono_ns();
	bool is_taken;

	if (!line->heartbeat_ns)
		return UINT64_MAX;
	if (now_ns < line->beat_ns)
		return line->beat_ns;
	if (now_ns >= atomic_load(&notify->alive_until_ns))
		return now_ns + check_ns;
	is_taken = nt_sender_beat(&line->sender, notify->host, &attempt) == 0 &&
		   attempt.outcome == NT_ATTEMPT_TAKEN;
	nt_notify_count(line, is_taken ? NT_NOTIFY_HEARTBEAT : NT_NOTIFY_HEARTBEAT_FAILED, 1);
	line->beat_ns = now_ns + line->heartbeat_ns;
	return line->beat_ns;
}
