/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reminders: open incidents are sent again. Alertmanager gets all of them in each interval, as it
 * lets an alert expire that is not repeated. In a chat each is due at multiples of the interval
 * since its first message. Reminders are not kept in the outbox: one that fails is not retried.
 */
#include <string.h>

#include "aggregator/notify/notify_impl.h"
#include "common/system/clock.h"

enum {
	PAGE = 64, /* alerts in a request to Alertmanager */
};

static const uint64_t longest_check_ns = 15 * NT_SECOND;

/* Whether a multiple of the interval has passed since the last check. */
static bool is_due(const struct nt_notify_line *line, const struct nt_store_firing *firing,
		   uint64_t now_ns)
{
	uint64_t sent_ns = firing->sent_real_ns, before_ns = line->reminded_ns;

	if (!line->sender.format->is_chat)
		return true;
	if (before_ns < sent_ns)
		before_ns = sent_ns;
	return now_ns > sent_ns &&
	       (now_ns - sent_ns) / line->repeat_ns > (before_ns - sent_ns) / line->repeat_ns;
}

static void send_page(struct nt_notify_line *line, const struct nt_sender_message *message,
		      size_t count)
{
	struct nt_attempt attempt = {.outcome = NT_ATTEMPT_LATER};
	size_t left_out = 0;
	bool taken;

	if (!count)
		return;
	(void)nt_token_bucket_take(&line->bucket, nt_clock_mono_ns());
	taken = nt_sender_send(&line->sender, message, count, &attempt, &left_out) == 0 &&
		attempt.outcome == NT_ATTEMPT_TAKEN;
	nt_notify_count(line, taken ? NT_NOTIFY_REPEATED : NT_NOTIFY_REPEAT_FAILED, count);
}

/* Returns the number of incidents of the page; fewer than PAGE: it is the last. */
static size_t remind_page(struct nt_notify_line *line, uint64_t now_ns, uint64_t *after)
{
	struct nt_sender_message message[PAGE];
	struct nt_store_firing firing[PAGE];
	size_t count = 0;
	int listed =
		nt_store_list_firing(line->notify->options.store, line->name, *after, PAGE, firing);

	for (int i = 0; i < listed; i++) {
		*after = firing[i].number;
		if (!is_due(line, &firing[i], now_ns))
			continue;
		message[count++] = (struct nt_sender_message){
			.id = "reminder",
			.body = firing[i].body,
			.body_len = firing[i].body_len,
			.severities = firing[i].severities,
			.is_reminder = true,
		};
	}
	send_page(line, message, count);
	if (listed > 0)
		nt_store_firing_release(firing, (size_t)listed);
	return listed > 0 ? (size_t)listed : 0;
}

uint64_t nt_notify_remind(struct nt_notify_line *line)
{
	uint64_t mono_ns = nt_clock_mono_ns(), now_ns = nt_clock_real_ns(), after = 0;
	uint64_t check_ns = line->repeat_ns;

	if (!line->repeat_ns)
		return UINT64_MAX;
	if (mono_ns < line->remind_ns)
		return line->remind_ns;
	/* Reminders in a chat keep to the rate; they stay due. */
	if (line->sender.format->is_chat && !nt_token_bucket_left(&line->bucket, mono_ns))
		return nt_token_bucket_next_ns(&line->bucket, mono_ns);
	while (!atomic_load(&line->notify->abort) && remind_page(line, now_ns, &after) == PAGE)
		;
	line->reminded_ns = now_ns;
	if (line->sender.format->is_chat && check_ns > longest_check_ns)
		check_ns = longest_check_ns;
	line->remind_ns = mono_ns + check_ns;
	return line->remind_ns;
}
