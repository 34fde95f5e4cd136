/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages of the outbox: their delivery, retries and digests. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "aggregator/notify/notify_impl.h"
#include "common/system/clock.h"
#include "common/system/log.h"

static const uint64_t store_retry_ns = NT_SECOND;

/* Full jitter: uniform from 0 to the doubled delay, so that retries do not synchronise. */
static uint64_t retry_delay_ns(const struct nt_notify *notify, uint32_t attempts)
{
	uint64_t delay_ns = notify->options.first_retry_ns, random = 0;

	for (uint32_t i = 1; i < attempts && delay_ns < notify->options.longest_retry_ns; i++)
		delay_ns *= 2;
	if (delay_ns > notify->options.longest_retry_ns)
		delay_ns = notify->options.longest_retry_ns;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = nt_clock_mono_ns();
	return random % (delay_ns + 1);
}

/* What a receiver requests is followed, but it cannot silence us for longer than a limit. */
static uint64_t wait_ns(const struct nt_notify *notify, const struct nt_outbox_message *message,
			const struct nt_attempt *attempt)
{
	uint64_t delay_ns = retry_delay_ns(notify, message->attempts);
	uint64_t wanted_ns = attempt->retry_after_ns;

	if (wanted_ns > notify->options.longest_wait_ns)
		wanted_ns = notify->options.longest_wait_ns;
	return delay_ns < wanted_ns ? wanted_ns : delay_ns;
}

/* What is still so is worth sending after a long outage, too. */
static uint64_t patience_ns(const struct nt_notify *notify, const struct nt_outbox_message *message)
{
	bool is_open = !message->resolved && !message->is_over;

	return is_open && notify->options.give_up_open_ns > notify->options.give_up_ns
		       ? notify->options.give_up_open_ns
		       : notify->options.give_up_ns;
}

static enum nt_outbox_result judge(struct nt_notify_line *line,
				   const struct nt_outbox_message *message,
				   const struct nt_attempt *attempt, uint64_t *next_ns)
{
	struct nt_notify *notify = line->notify;

	if (attempt->outcome == NT_ATTEMPT_TAKEN) {
		nt_notify_count(line, NT_NOTIFY_SENT, 1);
		return NT_OUTBOX_SENT;
	}
	if (attempt->outcome == NT_ATTEMPT_REFUSED) {
		nt_notify_count(line, NT_NOTIFY_FAILED, 1);
		(void)nt_warn(0,
			      "receiver '%s' refuses message %s: HTTP %ld, code %lld: %s; it is "
			      "not sent again",
			      message->receiver, message->id, attempt->status, attempt->code,
			      attempt->reason);
		return NT_OUTBOX_FAILED;
	}
	/* One time for all messages of a digest. */
	if (!*next_ns)
		*next_ns = nt_clock_real_ns() + wait_ns(notify, message, attempt);
	if (*next_ns > message->queued_real_ns + patience_ns(notify, message)) {
		nt_notify_count(line, NT_NOTIFY_DROPPED, 1);
		(void)nt_warn(0, "receiver '%s': message %s given up after %u failed attempts",
			      message->receiver, message->id, message->attempts);
		return NT_OUTBOX_EXPIRED;
	}
	nt_notify_count(line, NT_NOTIFY_RETRIED, 1);
	if (message->attempts == 1)
		(void)nt_warn(0,
			      "receiver '%s': message %s failed, to be retried: %s (HTTP %ld, "
			      "code %lld)",
			      message->receiver, message->id, attempt->reason, attempt->status,
			      attempt->code);
	return NT_OUTBOX_RETRY;
}

/*
 * Records the result; retries until the store accepts it, as a sent message must not be sent again.
 * False: stopping.
 */
static bool note(struct nt_notify *notify, const struct nt_outbox_message *message,
		 enum nt_outbox_result result, uint64_t next_ns)
{
	while (nt_store_outbox_done(notify->options.store, message->number, result,
				    nt_clock_real_ns(), next_ns) < 0) {
		if (!nt_notify_pause(notify, store_retry_ns))
			return false;
	}
	return true;
}

/* next_ns: when those are due that are retried; 0: that depends on the number of attempts. */
static bool note_at(struct nt_notify_line *line, size_t first, size_t count,
		    const struct nt_attempt *attempt, uint64_t next_ns)
{
	bool goes_on = true;

	if (count > 1 && attempt->outcome == NT_ATTEMPT_TAKEN)
		nt_notify_count(line, NT_NOTIFY_DIGESTED, count);
	for (size_t i = first; i < first + count && goes_on; i++) {
		const struct nt_outbox_message *message = &line->message[i];
		enum nt_outbox_result result = judge(line, message, attempt, &next_ns);

		goes_on = note(line->notify, message, result, next_ns);
	}
	return goes_on;
}

static bool note_all(struct nt_notify_line *line, size_t first, size_t count,
		     const struct nt_attempt *attempt)
{
	return note_at(line, first, count, attempt, 0);
}

/* One request. */
static bool try_some(struct nt_notify_line *line, size_t first, size_t count,
		     struct nt_attempt *ret_attempt)
{
	struct nt_sender_message message[NT_STORE_MAX_BATCH];
	size_t left_out = 0;
	int r;

	*ret_attempt = (struct nt_attempt){.outcome = NT_ATTEMPT_LATER, .reason = "out of memory"};
	for (size_t i = 0; i < count; i++)
		message[i] = (struct nt_sender_message){
			.id = line->message[first + i].id,
			.body = line->message[first + i].body,
			.body_len = line->message[first + i].body_len,
			.severities = line->message[first + i].severities,
		};
	r = nt_sender_send(&line->sender, message, count, ret_attempt, &left_out);
	atomic_fetch_add(&line->notify->kube_left_out, left_out);
	/* Aborted: they stay in the outbox. */
	return r < 0 || ret_attempt->outcome != NT_ATTEMPT_ABORTED;
}

/* The content of one of them, or their number, may be the reason. 0: one is no message. */
static bool may_be_split(const struct nt_attempt *attempt)
{
	return attempt->outcome == NT_ATTEMPT_REFUSED &&
	       (attempt->status == 0 || attempt->status == 400 || attempt->status == 403 ||
		attempt->status == 413 || attempt->status == 422);
}

/*
 * Each is refused for itself alone. The next owner of a shard does not wait for all of them: the rest
 * goes back to the outbox once one fails otherwise, or after a time, but at least one is sent.
 */
static bool send_each(struct nt_notify_line *line)
{
	const uint64_t until_ns = nt_clock_mono_ns() + line->notify->options.split_ns;
	struct nt_attempt attempt = {0};
	bool goes_on = true;
	size_t i = 0;

	while (i < line->messages && goes_on) {
		if (i && nt_clock_mono_ns() >= until_ns) {
			attempt = (struct nt_attempt){.outcome = NT_ATTEMPT_LATER,
						      .reason = "others took too long"};
			return note_at(line, i, line->messages - i, &attempt, nt_clock_real_ns());
		}
		goes_on = try_some(line, i, 1, &attempt);
		if (attempt.outcome == NT_ATTEMPT_LATER)
			break;
		if (goes_on)
			goes_on = note_all(line, i, 1, &attempt);
		i++;
	}
	return goes_on && note_all(line, i, line->messages - i, &attempt);
}

static bool send_all(struct nt_notify_line *line)
{
	struct nt_attempt attempt;

	if (!try_some(line, 0, line->messages, &attempt))
		return false;
	if (line->messages == 1 || line->sender.format->is_chat || !may_be_split(&attempt))
		return note_all(line, 0, line->messages, &attempt);
	return send_each(line);
}

static void release_all(struct nt_notify_line *line)
{
	for (size_t i = 0; i < line->messages; i++)
		nt_outbox_message_release(&line->message[i]);
	line->messages = 0;
}

/* With the last token all that is due goes into one message; what does not fit waits. */
static void take_more(struct nt_notify_line *line)
{
	size_t more = 0;

	if (!nt_sender_takes_several(&line->sender) ||
	    nt_token_bucket_left(&line->bucket, nt_clock_mono_ns()))
		return;
	if (nt_store_outbox_more(line->notify->options.store, line->name, nt_clock_real_ns(),
				 NT_STORE_MAX_BATCH - 1, line->message + 1, &more) == 0)
		line->messages += more;
}

int nt_notify_deliver(struct nt_notify_line *line, uint64_t *ret_next_ns, bool *ret_goes_on)
{
	struct nt_notify *notify = line->notify;
	uint64_t now_ns = nt_clock_mono_ns();
	int r;

	*ret_goes_on = true;
	if (!nt_token_bucket_left(&line->bucket, now_ns)) {
		*ret_next_ns = nt_clock_real_ns() +
			       (nt_token_bucket_next_ns(&line->bucket, now_ns) - now_ns);
		return 0;
	}
	r = nt_store_outbox_next(notify->options.store, line->name, nt_clock_real_ns(),
				 &line->message[0], ret_next_ns);
	if (r <= 0)
		return r;
	(void)nt_token_bucket_take(&line->bucket, now_ns);
	line->messages = 1;
	take_more(line);
	*ret_goes_on = send_all(line);
	release_all(line);
	return 1;
}
