/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "aggregator/notify/sender.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/notify/kube_notice.h"
#include "aggregator/notify/template.h"
#include "common/base/version.h"
#include "common/system/clock.h"
#include "proto/json.h"

enum {
	SOCKET_PREFIX = sizeof("unix://") - 1, /* of a URL, before the path */
};

/* ---- the sender ------------------------------------------------------------------------------ */

static int copy_urls(struct nt_sender *sender, const struct nt_sender_options *options)
{
	if (options->urls > NT_SENDER_URLS || !options->urls)
		return -EINVAL;
	for (size_t i = 0; i < options->urls; i++) {
		if (!nt_receiver_url_is_valid(options->kind, options->url[i]))
			return -EINVAL;
		sender->url[i] = strdup(options->url[i]);
		if (!sender->url[i])
			return -ENOMEM;
	}
	return 0;
}

static int copy_text(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return text && !*ret_copy ? -ENOMEM : 0;
}

int nt_sender_init(struct nt_sender *sender, const struct nt_sender_options *options)
{
	int r;

	*sender = (struct nt_sender){.format = nt_receiver_format_of(options->kind),
				     .options = *options};
	sender->options.url = NULL;
	sender->options.secret = sender->options.incident_url = NULL;
	sender->options.title = sender->options.text = sender->options.beat = NULL;
	if (options->kube)
		return 0;
	r = copy_urls(sender, options);
	if (r == 0 && options->kind == NT_RECEIVER_WEBHOOK)
		r = nt_webhook_key_read(options->secret, &sender->key);
	if (r < 0)
		return r;
	sender->secret = strdup(options->secret ? options->secret : "");
	r = sender->secret ? 0 : -ENOMEM;
	if (r == 0)
		r = copy_text(options->incident_url, &sender->incident_url);
	if (r == 0)
		r = copy_text(options->title, &sender->title);
	if (r == 0)
		r = copy_text(options->text, &sender->text);
	return r == 0 ? copy_text(options->beat, &sender->beat) : r;
}

static void free_secret(char *text)
{
	if (text)
		OPENSSL_cleanse(text, strlen(text));
	free(text);
}

void nt_sender_release(struct nt_sender *sender)
{
	for (size_t i = 0; i < NT_SENDER_URLS; i++)
		free_secret(sender->url[i]);
	free_secret(sender->secret);
	free(sender->incident_url);
	free(sender->title);
	free(sender->text);
	free(sender->beat);
	OPENSSL_cleanse(&sender->key, sizeof(sender->key));
}

bool nt_sender_takes_several(const struct nt_sender *sender)
{
	return !sender->options.kube &&
	       (sender->format->is_chat || sender->options.kind == NT_RECEIVER_ALERTMANAGER);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* A part of the path or of the query that is long enough to be a secret. */
static bool repeats_part(const char *answer, const char *path)
{
	enum {
		SECRET_BYTES = 16,
	};
	static const char between[] = "/?&=";

	for (size_t len; *path; path += len + (path[len] != '\0')) {
		len = strcspn(path, between);
		if (len >= SECRET_BYTES && memmem(answer, strlen(answer), path, len))
			return true;
	}
	return false;
}

/* An answer that repeats a secret is not shown. */
static void hide_secrets(const struct nt_sender *sender, const char *url,
			 struct nt_attempt *attempt)
{
	const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
	const char *query = path ? strchr(path, '?') : NULL;
	bool shows = path && strlen(path) > 1 && strstr(attempt->answer, path);

	shows |= query && query[1] && strstr(attempt->answer, query + 1);
	shows |= path && repeats_part(attempt->answer, path);
	shows |= *sender->secret && strstr(attempt->answer, sender->secret);
	if (shows)
		(void)snprintf(attempt->answer, sizeof(attempt->answer),
			       "(not shown, as it repeats a secret)");
}

static int post_webhook(const struct nt_sender *sender, const struct nt_sender_message *message,
			struct nt_attempt *ret_attempt)
{
	return nt_webhook_send(
		&(struct nt_webhook_post){
			.url = sender->url[0],
			.id = message->id,
			.body = message->body,
			.body_len = message->body_len,
			.key = &sender->key,
			.time_s = nt_clock_real_ns() / NT_SECOND,
			.connect_timeout_ns = sender->options.connect_timeout_ns,
			.total_timeout_ns = sender->options.total_timeout_ns,
			.abort = sender->options.abort,
		},
		ret_attempt);
}

/* Wipes the authorization. */
static int post_request(const struct nt_sender *sender, const char *url,
			struct nt_format_post *post, struct nt_attempt *ret_attempt)
{
	nt_autopostreply struct nt_http_post_reply reply = {0};
	const char *header = (const char *)post->authorization.data;
	int r;

	r = nt_http_post_send(
		&(struct nt_http_post){
			.url = (const char *)post->url.data,
			.body = post->body.data,
			.body_len = post->body.len,
			.grpc_socket = sender->format->is_socket ? url + SOCKET_PREFIX : NULL,
			.header = &header,
			.headers = header ? 1 : 0,
			.connect_timeout_ns = sender->options.connect_timeout_ns,
			.total_timeout_ns = sender->options.total_timeout_ns,
			.abort = sender->options.abort,
		},
		&reply);
	if (post->authorization.data)
		OPENSSL_cleanse(post->authorization.data, post->authorization.len);
	if (r < 0)
		return r;
	nt_http_post_judge(&reply, ret_attempt);
	if (sender->format->judge)
		sender->format->judge(&reply, ret_attempt);
	hide_secrets(sender, url, ret_attempt);
	return 0;
}

static int post_to(const struct nt_sender *sender, const char *url,
		   const struct nt_notice *const *notice, size_t notices,
		   struct nt_attempt *ret_attempt)
{
	const struct nt_format_input input = {
		.notice = notice,
		.notices = notices,
		.url = url,
		.secret = sender->secret,
		.now_ns = nt_clock_real_ns(),
		.alive_ns = sender->options.alive_ns,
		.remediate = sender->options.remediate,
	};
	nt_autoformatpost struct nt_format_post post = {0};
	int r = sender->format->write(&input, &post);

	if (r == 0 && !post.body.len) {
		*ret_attempt = (struct nt_attempt){.reason = "there is nothing to send"};
		return 0;
	}
	return r == 0 ? post_request(sender, url, &post, ret_attempt) : r;
}

/* The replicas of Alertmanager do not share alerts: each gets them. */
static int post_to_all(const struct nt_sender *sender, const struct nt_notice *const *notice,
		       size_t notices, struct nt_attempt *ret_attempt)
{
	struct nt_attempt best = {.outcome = NT_ATTEMPT_ABORTED};

	for (size_t i = 0; i < sender->options.urls; i++) {
		struct nt_attempt attempt;
		int r = post_to(sender, sender->url[i], notice, notices, &attempt);

		if (r < 0)
			return r;
		if (attempt.outcome == NT_ATTEMPT_ABORTED && best.outcome != NT_ATTEMPT_TAKEN) {
			*ret_attempt = attempt;
			return 0;
		}
		if (attempt.outcome < best.outcome)
			best = attempt;
	}
	*ret_attempt = best;
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

static int read_notices(const struct nt_sender *sender, const struct nt_sender_message *message,
			size_t count, struct nt_notice *notice)
{
	for (size_t i = 0; i < count; i++) {
		int r = nt_notice_read(message[i].body, message[i].body_len, sender->incident_url,
				       message[i].is_reminder, &notice[i]);

		if (r < 0)
			return r;
		notice[i].severities = message[i].severities;
		nt_template_apply(sender->title, sender->text, &notice[i]);
	}
	return 0;
}

static int post_notices(const struct nt_sender *sender, const struct nt_sender_message *message,
			size_t count, struct nt_attempt *ret_attempt)
{
	nt_autofree const struct nt_notice **list = calloc(count, sizeof(*list));
	/* One more for a digest. */
	nt_autofree struct nt_notice *notice = calloc(count + 1, sizeof(*notice));
	int r;

	if (!list || !notice)
		return -ENOMEM;
	r = read_notices(sender, message, count, notice);
	if (r == -EBADMSG) {
		*ret_attempt = (struct nt_attempt){.outcome = NT_ATTEMPT_REFUSED,
						   .reason = "it is no message"};
		return 0;
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		list[i] = &notice[i];
	if (count > 1 && sender->format->is_chat) {
		nt_notice_digest(list, count, &notice[count]);
		list[0] = &notice[count];
		count = 1;
	}
	return post_to_all(sender, list, count, ret_attempt);
}

static int send_kube(const struct nt_sender *sender, const struct nt_sender_message *message,
		     struct nt_attempt *ret_attempt, size_t *ret_left_out)
{
	return nt_kube_notice_send(sender->options.kube,
				   &(struct nt_kube_notice){
					   .id = message->id,
					   .body = message->body,
					   .body_len = message->body_len,
					   .conditions = sender->options.conditions,
					   .action = sender->options.action,
					   .timeout_ns = sender->options.total_timeout_ns,
				   },
				   ret_attempt, ret_left_out);
}

int nt_sender_send(const struct nt_sender *sender, const struct nt_sender_message *message,
		   size_t count, struct nt_attempt *ret_attempt, size_t *ret_left_out)
{
	int r;

	if (sender->options.kube)
		return send_kube(sender, message, ret_attempt, ret_left_out);
	if (sender->format->write)
		return post_notices(sender, message, count, ret_attempt);
	r = post_webhook(sender, message, ret_attempt);
	if (r == 0)
		hide_secrets(sender, sender->url[0], ret_attempt);
	return r;
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

static int beat_webhook(const struct nt_sender *sender, const char *who,
			struct nt_attempt *ret_attempt)
{
	const uint64_t now_ns = nt_clock_real_ns();
	nt_autobuf struct nt_buf body = {0};
	nt_autojson json_t *message =
		json_pack("{s:s, s:o, s:{s:s, s:s, s:f}}", "type", "heartbeat", "timestamp",
			  nt_json_time(now_ns), "data", "aggregator", who, "version", NT_VERSION,
			  "interval_seconds", (double)sender->options.beat_ns / NT_SECOND);
	char id[128];
	int r = message ? nt_json_dump(message, false, &body) : -ENOMEM;

	if (r < 0)
		return r;
	(void)snprintf(id, sizeof(id), "msg_heartbeat_%.64s_%" PRIu64, who, now_ns);
	return post_webhook(sender,
			    &(struct nt_sender_message){.id = id,
							.body = (const char *)body.data,
							.body_len = body.len},
			    ret_attempt);
}

static int beat_at(const struct nt_sender *sender, const char *url, const char *who,
		   struct nt_attempt *ret_attempt)
{
	const struct nt_format_input input = {
		.url = url,
		.secret = sender->secret,
		.now_ns = nt_clock_real_ns(),
		.alive_ns = sender->options.alive_ns,
		.who = who,
		.beat = sender->beat,
		.beat_ns = sender->options.beat_ns,
	};
	nt_autoformatpost struct nt_format_post post = {0};
	int r = sender->format->beat(&input, &post);

	return r == 0 ? post_request(sender, url, &post, ret_attempt) : r;
}

int nt_sender_beat(const struct nt_sender *sender, const char *who, struct nt_attempt *ret_attempt)
{
	struct nt_attempt worst = {.outcome = NT_ATTEMPT_TAKEN};

	if (!sender->format->beat)
		return beat_webhook(sender, who, ret_attempt);
	for (size_t i = 0; i < sender->options.urls; i++) {
		struct nt_attempt attempt;
		int r = beat_at(sender, sender->url[i], who, &attempt);

		if (r < 0)
			return r;
		if (attempt.outcome > worst.outcome)
			worst = attempt;
	}
	*ret_attempt = worst;
	return 0;
}
