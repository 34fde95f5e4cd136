/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/httpd_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/buf.h"
#include "common/system/clock.h"
#include "common/system/thread.h"

enum {
	BLOCK_BYTES = 4096, /* libmicrohttpd's buffer of a response */
	READ_BYTES = 16 << 10, /* copied from the ring at a time */
	RETRY_MS = 3000, /* a client's pause before it comes again */
};

#define PUMP_NS (NT_SECOND / 10)
#define LOOK_NS NT_SECOND

struct nt_stream {
	struct nt_stream *next, *previous;
	struct nt_streams *streams;
	struct MHD_Connection *connection;
	struct nt_slot *slot;
	struct nt_buf text; /* of which `taken` bytes were passed on */
	size_t taken;
	uint64_t number; /* of the last event in text */
	bool has_topic;
	char topic[NT_EVENT_TOPIC_BYTES];
	struct nt_credential credential;
	uint64_t opened_ns, ping_ns, taken_ns; /* monotonic: begin, next ping, last progress */
	bool is_suspended, is_gone, has_ended;
};

/* ---- one stream; the caller holds the lock --------------------------------------------------- */

static int add_control(struct nt_stream *stream, const char *kind)
{
	char id[NT_EVENT_ID_BYTES];

	nt_event_ring_id(stream->streams->ring, stream->number, id);
	return nt_buf_printf(&stream->text, "id: %s\nevent: %s\ndata: {}\n\n", id, kind);
}

static bool may_read(const struct nt_stream *stream)
{
	const struct nt_streams *streams = stream->streams;

	return !streams->is_authorized ||
	       streams->is_authorized(streams->data, &stream->credential);
}

/* Reads news into the text. False: the stream ends. */
static bool fill(struct nt_stream *stream, uint64_t now_ns)
{
	struct nt_streams *streams = stream->streams;
	int r;

	if (streams->is_closing || stream->is_gone ||
	    now_ns - stream->opened_ns >= streams->limits.life_ns || !may_read(stream))
		return false;
	nt_buf_clear(&stream->text);
	stream->taken = 0;
	r = nt_event_ring_read(streams->ring, stream->has_topic ? stream->topic : NULL, READ_BYTES,
			       &stream->number, &stream->text);
	if (r == -ESTALE)
		streams->stats.dropped++;
	if (r == 0 && !stream->text.len && now_ns >= stream->ping_ns)
		r = add_control(stream, "ping");
	if (stream->text.len)
		stream->ping_ns = now_ns + streams->limits.ping_ns;
	return r == 0;
}

static ssize_t give(struct nt_stream *stream, char *buf, size_t max)
{
	struct nt_streams *streams = stream->streams;
	const uint64_t now_ns = nt_clock_mono_ns();
	size_t n;

	stream->taken_ns = now_ns;
	if (stream->slot)
		nt_slots_extend(streams->slots, stream->slot, now_ns + streams->limits.stall_ns);
	if (stream->taken == stream->text.len && !fill(stream, now_ns)) {
		stream->has_ended = true;
		return MHD_CONTENT_READER_END_OF_STREAM;
	}
	n = stream->text.len - stream->taken;
	if (n > max)
		n = max;
	if (!n) {
		MHD_suspend_connection(stream->connection);
		stream->is_suspended = true;
		return 0;
	}
	memcpy(buf, stream->text.data + stream->taken, n);
	stream->taken += n;
	return (ssize_t)n;
}

/* ---- called by libmicrohttpd ----------------------------------------------------------------- */

/* Called again only when the client's socket has taken all before. */
static ssize_t read_stream(void *data, uint64_t at, char *buf, size_t max)
{
	struct nt_stream *stream = data;
	ssize_t n;

	(void)at;
	pthread_mutex_lock(&stream->streams->lock);
	n = give(stream, buf, max);
	pthread_mutex_unlock(&stream->streams->lock);
	return n;
}

static void free_stream(void *data)
{
	struct nt_stream *stream = data;
	struct nt_streams *streams = stream->streams;

	pthread_mutex_lock(&streams->lock);
	if (stream->previous)
		stream->previous->next = stream->next;
	else
		streams->first = stream->next;
	if (stream->next)
		stream->next->previous = stream->previous;
	streams->stats.now--;
	if (!stream->has_ended && stream->taken_ns &&
	    nt_clock_mono_ns() - stream->taken_ns >= streams->limits.stall_ns)
		streams->stats.dropped++;
	pthread_mutex_unlock(&streams->lock);
	nt_buf_release(&stream->text);
	free(stream);
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_over(const struct nt_streams *streams, const struct nt_slot *slot)
{
	uint32_t same = 0;

	for (const struct nt_stream *one = streams->first; one; one = one->next)
		same += one->slot && slot && one->slot->address == slot->address;
	return streams->is_closing || streams->stats.now >= streams->limits.streams ||
	       same >= streams->limits.streams_per_address;
}

static int begin(struct nt_stream *stream, const struct nt_event_wish *wanted)
{
	struct nt_event_ring *ring = stream->streams->ring;
	int r;

	stream->number = nt_event_ring_last(ring);
	r = nt_buf_printf(&stream->text, "retry: %d\n\n", RETRY_MS);
	if (r < 0)
		return r;
	/* The first event has an id, so that a client that loses its stream at once can resume. */
	if (!wanted->after)
		return add_control(stream, "ping");
	if (nt_event_ring_find(ring, wanted->after, &stream->number) < 0)
		return add_control(stream, "reset");
	return 0;
}

static int new_stream(struct nt_streams *streams, struct MHD_Connection *connection,
		      struct nt_slot *slot, const struct nt_event_wish *wanted,
		      const struct nt_credential *credential, struct nt_stream **ret_stream)
{
	nt_autofree struct nt_stream *stream = calloc(1, sizeof(*stream));
	int r;

	if (!stream)
		return -ENOMEM;
	stream->streams = streams;
	stream->connection = connection;
	stream->slot = slot;
	stream->opened_ns = nt_clock_mono_ns();
	stream->ping_ns = stream->opened_ns + streams->limits.ping_ns;
	stream->credential = *credential;
	stream->has_topic = wanted->topic;
	if (wanted->topic)
		(void)snprintf(stream->topic, sizeof(stream->topic), "%s", wanted->topic);
	r = begin(stream, wanted);
	if (r < 0) {
		nt_buf_release(&stream->text);
		return r;
	}
	*ret_stream = nt_take(stream);
	return 0;
}

int nt_streams_open(struct nt_streams *streams, struct MHD_Connection *connection,
		    struct nt_slot *slot, const struct nt_event_wish *wanted,
		    const struct nt_credential *credential, struct MHD_Response **ret_response)
{
	struct MHD_Response *response;
	struct nt_stream *stream;
	int r;

	if (!streams->ring)
		return -EBUSY;
	r = new_stream(streams, connection, slot, wanted, credential, &stream);
	if (r < 0)
		return r;
	pthread_mutex_lock(&streams->lock);
	if (is_over(streams, slot)) {
		streams->stats.refused++;
		pthread_mutex_unlock(&streams->lock);
		nt_buf_release(&stream->text);
		free(stream);
		return -EBUSY;
	}
	stream->next = streams->first;
	if (stream->next)
		stream->next->previous = stream;
	streams->first = stream;
	streams->stats.now++;
	streams->stats.opened++;
	pthread_mutex_unlock(&streams->lock);
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream,
						     stream, free_stream);
	if (!response) {
		free_stream(stream);
		return -ENOMEM;
	}
	*ret_response = response;
	return 0;
}

/* ---- the pump -------------------------------------------------------------------------------- */

/*
 * Whether the peer has closed, or may not read on. libmicrohttpd does not look at suspended
 * connections.
 */
static bool look_at_peer(struct nt_stream *stream)
{
	struct pollfd peer = {.fd = stream->slot ? stream->slot->fd : -1, .events = POLLRDHUP};

	/* Unread bytes, such as the end of TLS, do not hide it. */
	stream->is_gone =
		(poll(&peer, 1, 0) > 0 && peer.revents & (POLLRDHUP | POLLHUP | POLLERR)) ||
		!may_read(stream);
	return stream->is_gone;
}

static bool is_due(struct nt_stream *stream, uint64_t now_ns, bool looks)
{
	const struct nt_streams *streams = stream->streams;

	return streams->is_closing || stream->number < nt_event_ring_last(streams->ring) ||
	       now_ns >= stream->ping_ns || now_ns - stream->opened_ns >= streams->limits.life_ns ||
	       (looks && look_at_peer(stream));
}

/*
 * A suspended connection is neither closed nor freed before it is resumed, and only this thread
 * resumes: so it is resumed without the lock, which libmicrohttpd's threads take in turn.
 */
static void resume_due(struct nt_streams *streams, bool looks)
{
	const uint64_t now_ns = nt_clock_mono_ns();
	struct MHD_Connection *due[64];
	size_t count;

	do {
		count = 0;
		for (struct nt_stream *one = streams->first;
		     one && count < sizeof(due) / sizeof(due[0]); one = one->next) {
			if (!one->is_suspended || !is_due(one, now_ns, looks))
				continue;
			one->is_suspended = false;
			due[count++] = one->connection;
		}
		pthread_mutex_unlock(&streams->lock);
		for (size_t i = 0; i < count; i++)
			MHD_resume_connection(due[i]);
		pthread_mutex_lock(&streams->lock);
	} while (count == sizeof(due) / sizeof(due[0]));
}

static void *run_pump(void *data)
{
	struct nt_streams *streams = data;
	uint64_t looked_ns = 0;

	pthread_mutex_lock(&streams->lock);
	while (!streams->is_closing) {
		const uint64_t now_ns = nt_clock_mono_ns();
		const bool looks = now_ns - looked_ns >= LOOK_NS;

		if (looks)
			looked_ns = now_ns;
		resume_due(streams, looks);
		/* A new stream is not suspended yet, and needs no wake-up. */
		if (!streams->is_closing)
			(void)nt_thread_wait(&streams->wake, &streams->lock, now_ns + PUMP_NS);
	}
	resume_due(streams, false);
	pthread_mutex_unlock(&streams->lock);
	return NULL;
}

void nt_streams_init(struct nt_streams *streams, struct nt_event_ring *ring, struct nt_slots *slots,
		     const struct nt_streams_limits *limits)
{
	*streams = (struct nt_streams){.ring = ring, .slots = slots, .limits = *limits};
	pthread_mutex_init(&streams->lock, NULL);
	nt_thread_condition_init(&streams->wake);
}

int nt_streams_start(struct nt_streams *streams)
{
	int r;

	if (!streams->ring)
		return 0;
	r = nt_thread_start(&streams->pump, run_pump, streams);
	streams->pump_runs = r == 0;
	return r;
}

void nt_streams_stop(struct nt_streams *streams)
{
	if (!streams->pump_runs)
		return;
	pthread_mutex_lock(&streams->lock);
	streams->is_closing = true;
	pthread_cond_signal(&streams->wake);
	pthread_mutex_unlock(&streams->lock);
	(void)pthread_join(streams->pump, NULL);
	streams->pump_runs = false;
}

void nt_streams_destroy(struct nt_streams *streams)
{
	pthread_cond_destroy(&streams->wake);
	pthread_mutex_destroy(&streams->lock);
}

void nt_streams_stats(struct nt_streams *streams, struct nt_streams_stats *ret_stats)
{
	pthread_mutex_lock(&streams->lock);
	*ret_stats = streams->stats;
	pthread_mutex_unlock(&streams->lock);
}
