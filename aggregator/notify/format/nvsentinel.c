/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * NVSentinel's health events: a gRPC call on the socket of its platform connector. Only incidents
 * that accuse a node are events. Unless configured, an event is for storage alone, so that nothing
 * of the cluster is changed by it.
 */
#include <errno.h>
#include <string.h>

#include "aggregator/notify/format/format.h"
#include "common/base/bytes.h"
#include "common/system/clock.h"
#include "proto/field.h"

enum {
	GRPC_FRAME = 5, /* a flag, and the length of the message */

	/* Fields of NVSentinel's health_event.proto. */
	EVENTS_VERSION = 1,
	EVENTS_EVENT = 2,
	EVENT_VERSION = 1,
	EVENT_AGENT = 2,
	EVENT_COMPONENT = 3,
	EVENT_CHECK = 4,
	EVENT_IS_FATAL = 5,
	EVENT_IS_HEALTHY = 6,
	EVENT_MESSAGE = 7,
	EVENT_ACTION = 8,
	EVENT_ENTITY = 10,
	EVENT_METADATA = 11,
	EVENT_TIME = 12,
	EVENT_NODE = 13,
	EVENT_STRATEGY = 16,
	PAIR_FIRST = 1, /* of an entity, of metadata, of a time */
	PAIR_SECOND = 2,

	ACTION_CONTACT_SUPPORT = 5,
	STRATEGY_EXECUTE = 1,
	STRATEGY_STORE_ONLY = 2,
};

/* ---- fields ---------------------------------------------------------------------------------- */

static int put_varint(struct nt_buf *buf, uint64_t value)
{
	uint8_t bytes[NT_VARINT_MAX];

	return nt_buf_append(buf, bytes, nt_varint_put(bytes, value));
}

/* A 0 is left out. */
static int put_number(struct nt_buf *buf, uint32_t field, uint64_t value)
{
	int r;

	if (!value)
		return 0;
	r = put_varint(buf, (uint64_t)field << NT_FIELD_TYPE_BITS | NT_FIELD_VARINT);
	return r == 0 ? put_varint(buf, value) : r;
}

static int put_part(struct nt_buf *buf, uint32_t field, const void *data, size_t len)
{
	int r = put_varint(buf, (uint64_t)field << NT_FIELD_TYPE_BITS | NT_FIELD_PART);

	if (r == 0)
		r = put_varint(buf, len);
	return r == 0 && len ? nt_buf_append(buf, data, len) : r;
}

static int put_string(struct nt_buf *buf, uint32_t field, const char *text)
{
	return *text ? put_part(buf, field, text, strlen(text)) : 0;
}

/* An entity, or an entry of metadata. Without a value it is left out. */
static int put_pair(struct nt_buf *buf, uint32_t field, const char *first, const char *second)
{
	nt_autobuf struct nt_buf pair = {0};
	int r = *second ? put_string(&pair, PAIR_FIRST, first) : 0;

	if (r == 0)
		r = put_string(&pair, PAIR_SECOND, second);
	return r == 0 && pair.len ? put_part(buf, field, pair.data, pair.len) : r;
}

static int put_time(struct nt_buf *buf, uint64_t real_ns)
{
	nt_autobuf struct nt_buf time = {0};
	int r = put_number(&time, PAIR_FIRST, real_ns / NT_SECOND);

	if (r == 0)
		r = put_number(&time, PAIR_SECOND, real_ns % NT_SECOND);
	return r == 0 ? put_part(buf, EVENT_TIME, time.data, time.len) : r;
}

/* ---- the event ------------------------------------------------------------------------------- */

static const char *component_of(const struct nt_notice *notice)
{
	if (!strcmp(notice->class, "network"))
		return "NIC";
	return *notice->gpu ? "GPU" : "Node";
}

static int put_state(struct nt_buf *event, const struct nt_format_input *input,
		     const struct nt_notice *notice)
{
	bool is_over = notice->state == NT_NOTICE_RESOLVED;
	bool is_fatal = !is_over && !notice->is_sample && notice->severity == NT_NOTICE_CRITICAL;
	bool remediates = input->remediate && !notice->is_sample;
	int r = put_number(event, EVENT_IS_FATAL, is_fatal);

	if (r == 0)
		r = put_number(event, EVENT_IS_HEALTHY, is_over);
	if (r == 0)
		r = put_string(event, EVENT_MESSAGE,
			       *notice->summary ? notice->summary : notice->title);
	if (r == 0)
		r = put_number(event, EVENT_ACTION, is_fatal ? ACTION_CONTACT_SUPPORT : 0);
	if (r == 0)
		r = put_number(event, EVENT_STRATEGY,
			       remediates ? STRATEGY_EXECUTE : STRATEGY_STORE_ONLY);
	return r;
}

/* The incident is an entity, so that the end of one does not heal a node that has another. */
static int put_entities(struct nt_buf *event, const struct nt_notice *notice)
{
	int r = put_pair(event, EVENT_ENTITY, "GPU_UUID", notice->gpu);

	if (r == 0)
		r = put_pair(event, EVENT_ENTITY, "NEUTRACER_INCIDENT", notice->incident);
	if (r == 0)
		r = put_pair(event, EVENT_METADATA, "class", notice->class);
	if (r == 0)
		r = put_pair(event, EVENT_METADATA, "cause", notice->cause);
	if (r == 0)
		r = put_pair(event, EVENT_METADATA, "job", notice->job);
	return r == 0 ? put_pair(event, EVENT_METADATA, "namespace", notice->namespace) : r;
}

static int put_event(struct nt_buf *event, const struct nt_format_input *input,
		     const struct nt_notice *notice)
{
	int r = put_number(event, EVENT_VERSION, 1);

	if (r == 0)
		r = put_string(event, EVENT_AGENT, "neutracer");
	if (r == 0)
		r = put_string(event, EVENT_COMPONENT, component_of(notice));
	if (r == 0)
		r = put_string(event, EVENT_CHECK, "NeuTracerDegraded");
	if (r == 0)
		r = put_state(event, input, notice);
	if (r == 0)
		r = put_entities(event, notice);
	if (r == 0)
		r = put_time(event, input->now_ns);
	return r == 0 ? put_string(event, EVENT_NODE, notice->node) : r;
}

static int write_frame(const struct nt_buf *message, struct nt_format_post *post)
{
	const uint8_t head[GRPC_FRAME] = {0, (uint8_t)(message->len >> 24),
					  (uint8_t)(message->len >> 16),
					  (uint8_t)(message->len >> 8), (uint8_t)message->len};
	int r = nt_buf_append(&post->body, head, sizeof(head));

	return r == 0 ? nt_buf_append(&post->body, message->data, message->len) : r;
}

int nt_nvsentinel_write(const struct nt_format_input *input, struct nt_format_post *post)
{
	const struct nt_notice *notice = input->notice[0];
	nt_autobuf struct nt_buf event = {0};
	nt_autobuf struct nt_buf events = {0};
	int r = nt_format_put(
		&post->url, "http://localhost/datamodels.PlatformConnector/HealthEventOccurredV1");

	/* An empty body is not sent. */
	if (r < 0 || !*notice->node)
		return r;
	r = put_event(&event, input, notice);
	if (r == 0)
		r = put_number(&events, EVENTS_VERSION, 1);
	if (r == 0)
		r = put_part(&events, EVENTS_EVENT, event.data, event.len);
	if (r == 0)
		r = write_frame(&events, post);
	return r < 0 ? -ENOMEM : 0;
}

/* gRPC answers 200, and its status says what came of the call. */
void nt_nvsentinel_judge(const struct nt_http_post_reply *reply, struct nt_attempt *attempt)
{
	enum {
		OK = 0,
		INVALID_ARGUMENT = 3,
		PERMISSION_DENIED = 7,
		UNIMPLEMENTED = 12,
		UNAUTHENTICATED = 16,
	};

	if (attempt->outcome != NT_ATTEMPT_TAKEN)
		return;
	attempt->code = reply->grpc_status;
	attempt->reason = "the gRPC status";
	switch (reply->grpc_status) {
	case OK:
		break;
	case INVALID_ARGUMENT:
	case PERMISSION_DENIED:
	case UNIMPLEMENTED:
	case UNAUTHENTICATED:
		attempt->outcome = NT_ATTEMPT_REFUSED;
		break;
	default:
		attempt->outcome = NT_ATTEMPT_LATER;
	}
}
