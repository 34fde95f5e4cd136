/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Samples: a message that is marked as a test, on request. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/notify/notify_impl.h"
#include "common/system/clock.h"
#include "proto/json.h"

static json_t *sample_incident(const char *id, uint64_t now_ns, bool resolved)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s,"
			 " s:[{s:s, s:i, s:s, s:s, s:[]}], s:o, s:o, s:o, s:f, s:{s:f},"
			 " s:[{s:s, s:s, s:f, s:f, s:s, s:i}], s:s, s:[]}",
			 "id", id, "state", resolved ? "resolved" : "firing", "severity", "info",
			 "class", "unknown", "cause", "a test", "job", "neutracer-test", "attempt",
			 1, "namespace", "test", "culprits", "kind", "rank", "rank", 0, "node",
			 "test-node", "pod", "test-pod", "peers", "since", nt_json_time(now_ns),
			 "until", resolved ? nt_json_time(now_ns) : json_null(), "seen",
			 nt_json_time(now_ns), "slowdown", 1.0, "cost", "gpu_hours", 0.0,
			 "evidence", "what", "own work of the step", "unit", "ms", "value", 100.0,
			 "peers", 100.0, "method", "ratio", "windows", 1, "summary",
			 "This is a test of the receiver. No job is concerned.", "stacks");
}

static int write_sample(const char *id, uint64_t now_ns, bool resolved, struct nt_buf *body)
{
	nt_autojson json_t *message =
		json_pack("{s:s, s:b, s:o, s:o}", "type",
			  resolved ? "incident.resolved" : "incident.test", "test", 1, "timestamp",
			  nt_json_time(now_ns), "data", sample_incident(id, now_ns, resolved));

	return message ? nt_json_dump(message, false, body) : -ENOMEM;
}

static int send_one(struct nt_notify_line *line, uint64_t now_ns, bool resolved,
		    struct nt_attempt *ret_attempt)
{
	nt_autobuf struct nt_buf body = {0};
	char id[40], message_id[64];
	size_t left_out = 0;
	int r;

	(void)snprintf(id, sizeof(id), "test-%016" PRIx64, now_ns);
	(void)snprintf(message_id, sizeof(message_id), "msg_%s", id);
	r = write_sample(id, now_ns, resolved, &body);
	if (r < 0)
		return r;
	return nt_sender_send(&line->sender,
			      &(struct nt_sender_message){.id = message_id,
							  .body = (const char *)body.data,
							  .body_len = body.len},
			      1, ret_attempt, &left_out);
}

static struct nt_attempt send_sample(struct nt_notify_line *line)
{
	struct nt_attempt attempt = {.outcome = NT_ATTEMPT_LATER, .reason = "out of memory"};
	uint64_t now_ns = nt_clock_real_ns();
	int r = send_one(line, now_ns, false, &attempt);

	/* So that it does not stay open. */
	if (r == 0 && attempt.outcome == NT_ATTEMPT_TAKEN && line->sender.format->keeps_incidents)
		(void)!send_one(line, now_ns, true, &attempt);
	return attempt;
}

void nt_notify_send_sample(struct nt_notify_line *line)
{
	struct nt_notify *notify = line->notify;
	struct nt_attempt attempt;
	bool wanted;

	pthread_mutex_lock(&notify->lock);
	wanted = line->sample.state == NT_NOTIFY_SAMPLE_WAITING;
	pthread_mutex_unlock(&notify->lock);
	if (!wanted)
		return;
	attempt = send_sample(line);
	pthread_mutex_lock(&notify->lock);
	line->sample.attempt = attempt;
	line->sample.state = NT_NOTIFY_SAMPLE_DONE;
	pthread_mutex_unlock(&notify->lock);
}

int nt_notify_request_sample(struct nt_notify *notify, const char *name, uint64_t *ret_number)
{
	struct nt_notify_line *line = NULL;
	int r = 0;

	for (size_t i = 0; i < notify->receivers; i++)
		if (!strcmp(notify->line[i].name, name))
			line = &notify->line[i];
	if (!line)
		return -ENOENT;
	if (line->sender.options.kube)
		return -ENOTSUP;
	pthread_mutex_lock(&notify->lock);
	if (line->sample.state == NT_NOTIFY_SAMPLE_WAITING)
		r = -EBUSY;
	if (r == 0) {
		line->sample.state = NT_NOTIFY_SAMPLE_WAITING;
		*ret_number = ++line->sample.number;
		line->woken = true;
		pthread_cond_broadcast(&notify->wake);
	}
	pthread_mutex_unlock(&notify->lock);
	return r;
}
