/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/ingest.h"

#include <errno.h>
#include <string.h>

#include "common/base/codec.h"
#include "common/base/hash.h"
#include "common/base/table.h"

/* 146 years, far above real times and sums; larger values could overflow the sums of a frame. */
#define TIME_MAX_NS  (1ULL << 62)
#define SUM_MAX_NS   (1ULL << 50)
#define STEPS_MAX    (1U << 24)
#define SLACK_NS     1000000000ULL /* a sender may read its clock twice */
#define SAVE_VERSION 2 /* 1: only the bits near the newest */

struct message_stream {
	uint64_t id;
	struct nt_dedup dedup;
	uint64_t last_ns; /* real time of the newest message */
	UT_hash_handle hh;
};

struct nt_ingest {
	struct message_stream *stream, *again; /* again: of the replay */
	struct nt_ingest_counters counters;
	nt_ingest_refused_fn refused;
	void *data;
	const struct nt_signing_policy *policy; /* borrowed; NULL: off */
};

int nt_ingest_new(nt_ingest_refused_fn refused, void *data, struct nt_ingest **ret_ingest)
{
	struct nt_ingest *ingest = calloc(1, sizeof(*ingest));

	if (!ingest)
		return -ENOMEM;
	ingest->refused = refused;
	ingest->data = data;
	*ret_ingest = ingest;
	return 0;
}

static void free_stream(struct message_stream *stream)
{
	nt_dedup_release(&stream->dedup);
	free(stream);
}

static void free_streams(struct message_stream **streams)
{
	struct message_stream *stream, *next;

	HASH_ITER(hh, *streams, stream, next)
	{
		HASH_DEL(*streams, stream);
		free_stream(stream);
	}
}

void nt_ingest_free(struct nt_ingest *ingest)
{
	if (!ingest)
		return;
	free_streams(&ingest->stream);
	free_streams(&ingest->again);
	free(ingest);
}

void nt_ingest_set_signatures(struct nt_ingest *ingest, const struct nt_signing_policy *policy)
{
	ingest->policy = policy;
}

void nt_ingest_caught_up(struct nt_ingest *ingest)
{
	free_streams(&ingest->again);
}

const struct nt_ingest_counters *nt_ingest_counters(const struct nt_ingest *ingest)
{
	return &ingest->counters;
}

/* ---- streams --------------------------------------------------------------------------------- */

static uint64_t stream_id(const struct nt_message *message, enum nt_topic topic)
{
	uint64_t hash = nt_hash_text(NT_HASH_SEED, message->agent);

	hash = nt_hash_u64(hash, message->boot);
	hash = nt_hash_u64(hash, topic);
	return nt_hash_text(hash, message->key);
}

static int find_stream(struct nt_ingest *ingest, struct message_stream **streams,
		       const struct nt_message *message, uint64_t id,
		       struct message_stream **ret_stream)
{
	struct message_stream *stream;

	HASH_FIND(hh, *streams, &id, sizeof(id), stream);
	if (!stream && HASH_COUNT(*streams) >= NT_INGEST_MAX_STREAMS) {
		ingest->counters.unwatched++;
	} else if (!stream) {
		stream = calloc(1, sizeof(*stream));
		if (!stream)
			return -ENOMEM;
		stream->id = id;
		nt_dedup_start(&stream->dedup, message->seq);
		HASH_ADD(hh, *streams, id, sizeof(stream->id), stream);
		if (!nt_table_has(stream)) {
			free(stream);
			return -ENOMEM;
		}
	}
	*ret_stream = stream;
	return 0;
}

/* ---- validation ------------------------------------------------------------------------------ */

static bool body_fits(enum nt_topic topic, enum nt_body body)
{
	switch (topic) {
	case NT_TOPIC_WINDOW:
		return body == NT_BODY_WINDOW || body == NT_BODY_HEARTBEAT;
	case NT_TOPIC_NODE:
		return body == NT_BODY_NODE || body == NT_BODY_HEARTBEAT;
	case NT_TOPIC_DETAIL:
		return body == NT_BODY_DETAIL;
	default:
		return true;
	}
}

static const char *window_fault(const struct nt_message *message)
{
	const struct nt_window *window = &message->window;
	const uint64_t sums[] = {
		window->end_boot_ns - window->start_boot_ns,
		window->own_ns,
		window->host_ns,
		window->blocked_ns,
		window->comm_ns,
		window->step_ns,
		window->own_blocked_ns,
		window->gpu_lag_ns,
		window->ended_early_ns,
		window->host.on_cpu_ns,
		window->host.run_queue_ns,
		window->host.off_cpu_io_ns,
		window->host.gc_ns,
		window->host.process_cpu_ns,
		window->host.system_ns,
		window->host.quota_ns,
		window->host.off_cpu_file_ns,
		window->host.off_cpu_fault_ns,
		window->host.reclaim_ns,
		window->host.compaction_ns,
		window->host.process_io_ns,
		window->host.taken_ns,
		window->host.taker_ns,
	};

	if (window->end_boot_ns < window->start_boot_ns)
		return "window ends before it starts";
	if (window->end_boot_ns > message->boot_ns + SLACK_NS)
		return "window ends after it was sent";
	if (window->rank.start_boot_ns > window->end_boot_ns)
		return "process starts after its window";
	if (window->steps > STEPS_MAX)
		return "too many steps for a window";
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		if (sums[i] > SUM_MAX_NS)
			return "a sum of the window is too large";
	if (!window->rank.node[0])
		return "window without a node";
	return NULL;
}

/* The reason for refusal, a constant, or NULL if the message is valid. */
static const char *message_fault(const struct nt_message *message, enum nt_topic topic)
{
	if (!message->agent[0])
		return "message without an agent";
	if (!message->seq)
		return "message without a sequence number";
	if (!body_fits(topic, message->body))
		return "body does not belong to the topic";
	if (message->boot_ns > TIME_MAX_NS || message->real_ns > TIME_MAX_NS)
		return "time is out of range";
	if (message->watermark_boot_ns > message->boot_ns + SLACK_NS)
		return "watermark is ahead of its clock";
	/* Otherwise boot clock times would lie before 1970. */
	if (message->boot_ns > message->real_ns)
		return "clock pair is impossible";
	if (message->body == NT_BODY_WINDOW)
		return window_fault(message);
	return NULL;
}

static void refuse(struct nt_ingest *ingest, const struct nt_bus_record *record, bool again,
		   uint64_t *counter, const char *reason)
{
	if (again)
		return;
	(*counter)++;
	if (ingest->refused)
		ingest->refused(ingest->data, record, reason);
}

/* The node that the message is about. */
static const char *node_of(const struct nt_message *message)
{
	if (message->body == NT_BODY_WINDOW)
		return message->window.rank.node;
	return message->body == NT_BODY_NODE ? message->node.node : message->agent;
}

/*
 * Verifies the signature. If the message is refused, gives the reason and the counter. The agent
 * named in a message is a claim that the signature proves.
 */
static bool check_signature(const struct nt_signing_policy *policy,
			    const struct nt_bus_record *record, const struct nt_message *message,
			    struct nt_ingest_counters *counters, uint64_t **ret_counter,
			    const char **ret_reason)
{
	enum nt_signed signature;

	if (!policy || policy->mode == NT_SIGNING_OFF || !policy->secrets)
		return true;
	signature = nt_node_secrets_verify(policy->secrets, message->agent, record);
	if (signature == NT_SIGNED_MISSING && policy->mode == NT_SIGNING_ACCEPT)
		return true;
	if (signature == NT_SIGNED_MISSING) {
		*ret_counter = &counters->without_signature;
		*ret_reason = "no signature";
	} else if (signature == NT_SIGNED_UNKNOWN) {
		*ret_counter = &counters->unknown_secret;
		*ret_reason = "signed with a key of another secret";
	} else if (signature != NT_SIGNED_VALID) {
		*ret_counter = &counters->wrong_signature;
		*ret_reason = "wrong signature";
	} else if (strcmp(node_of(message), message->agent) != 0) {
		*ret_counter = &counters->other_node;
		*ret_reason = "signed by another node than the one it names";
	} else {
		counters->verified++;
		return true;
	}
	return false;
}

int nt_ingest_take(struct nt_ingest *ingest, const struct nt_bus_record *record, uint64_t latest_ns,
		   bool again, struct nt_message **ret_message)
{
	nt_auto(nt_message) struct nt_message *message = NULL;
	struct nt_ingest_counters ignored = {0};
	struct nt_ingest_counters *counters = again ? &ignored : &ingest->counters;
	struct message_stream *stream;
	uint64_t *counter;
	const char *fault;
	int r;

	counters->records++;
	counters->bytes += record->value_len;
	r = nt_message_decode(record->value, record->value_len, &message);
	if (r == -EBADMSG) {
		refuse(ingest, record, again, &counters->undecodable, "not a message");
		return 0;
	}
	if (r < 0)
		return r;
	if (message->body == NT_BODY_NONE) {
		counters->unknown++;
		return 0;
	}
	if (!check_signature(ingest->policy, record, message, counters, &counter, &fault)) {
		refuse(ingest, record, again, counter, fault);
		return 0;
	}
	fault = message_fault(message, record->topic);
	if (fault) {
		refuse(ingest, record, again, &counters->impossible, fault);
		return 0;
	}
	if (latest_ns && message->real_ns > latest_ns) {
		refuse(ingest, record, again, &counters->ahead, "clock is ahead");
		return 0;
	}
	r = find_stream(ingest, again ? &ingest->again : &ingest->stream, message,
			stream_id(message, record->topic), &stream);
	if (r < 0)
		return r;
	if (stream) {
		r = nt_dedup_take(&stream->dedup, message->seq, &counters->dedup);
		counters->duplicates += r == 0;
		if (r <= 0)
			return r;
		if (message->real_ns > stream->last_ns)
			stream->last_ns = message->real_ns;
	}
	counters->messages++;
	*ret_message = nt_take(message);
	return 1;
}

void nt_ingest_sweep(struct nt_ingest *ingest, uint64_t before_ns)
{
	struct message_stream *stream, *next;

	HASH_ITER(hh, ingest->stream, stream, next)
	{
		if (stream->last_ns >= before_ns)
			continue;
		HASH_DEL(ingest->stream, stream);
		free_stream(stream);
	}
}

/* ---- saved ----------------------------------------------------------------------------------- */

int nt_ingest_save(const struct nt_ingest *ingest, struct nt_buf *buf)
{
	struct nt_codec codec = {.out = buf};

	nt_codec_put_u32(&codec, SAVE_VERSION);
	nt_codec_put_u32(&codec, HASH_COUNT(ingest->stream));
	for (const struct message_stream *stream = ingest->stream; stream;
	     stream = stream->hh.next) {
		nt_codec_put_u64(&codec, stream->id);
		nt_codec_put_u64(&codec, stream->last_ns);
		nt_dedup_save(&stream->dedup, &codec);
	}
	return codec.error;
}

static void load_stream(struct message_stream *stream, uint32_t version, struct nt_codec *codec)
{
	struct nt_dedup *dedup = &stream->dedup;

	stream->id = nt_codec_get_u64(codec);
	if (version == SAVE_VERSION) {
		stream->last_ns = nt_codec_get_u64(codec);
		nt_dedup_load(dedup, codec);
		return;
	}
	dedup->joined = dedup->first = nt_codec_get_u64(codec);
	dedup->newest = nt_codec_get_u64(codec);
	stream->last_ns = nt_codec_get_u64(codec);
	for (size_t i = 0; i < sizeof(dedup->seen) / sizeof(dedup->seen[0]); i++)
		dedup->seen[i] = nt_codec_get_u64(codec);
}

int nt_ingest_load(struct nt_ingest *ingest, const void *data, size_t size)
{
	struct nt_codec codec = {.loads = true, .in = data, .in_size = size};
	struct message_stream *loaded = NULL;
	uint32_t version, count;

	version = nt_codec_get_u32(&codec);
	if (version < 1 || version > SAVE_VERSION)
		return -EBADMSG;
	count = nt_codec_get_count(&codec, NT_INGEST_MAX_STREAMS);
	for (uint32_t i = 0; i < count && !codec.error; i++) {
		struct message_stream *stream = calloc(1, sizeof(*stream)), *same;

		if (!stream) {
			codec.error = -ENOMEM;
			break;
		}
		load_stream(stream, version, &codec);
		HASH_REPLACE(hh, loaded, id, sizeof(stream->id), stream, same);
		if (same)
			free_stream(same);
		if (!nt_table_has(stream)) {
			free_stream(stream);
			codec.error = -ENOMEM;
		}
	}
	if (codec.error) {
		free_streams(&loaded);
		return codec.error;
	}
	free_streams(&ingest->stream);
	ingest->stream = loaded;
	return 0;
}
