/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Streams of Server-Sent Events: replies that do not end. Private to common/http/httpd*.c.
 *
 * A stream without news is suspended and costs no time of the server's threads. One thread resumes
 * streams: up to ten times a second when there are events, and for a ping every 15 s. A stream keeps
 * an ordinary slot; its deadline moves whenever its client has taken all that was sent. So a client
 * that does not read is cut off at that deadline, or earlier when its next event left the ring.
 */
#ifndef NT_COMMON_HTTP_HTTPD_STREAM_H
#define NT_COMMON_HTTP_HTTPD_STREAM_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/http/event_ring.h"
#include "common/http/httpd.h"
#include "common/http/httpd_slots.h"
#include "common/http/session.h"

struct nt_stream;

struct nt_streams_limits {
	uint32_t streams, streams_per_address; /* none may be 0 */
	uint64_t ping_ns; /* a stream without events gets a ping after this time */
	uint64_t stall_ns; /* a client that takes nothing for this time is cut off */
	uint64_t life_ns; /* of a stream; then it ends, and its client comes again */
};

struct nt_streams_stats {
	uint64_t opened, refused; /* refused: over the limits */
	uint64_t dropped; /* of a client that read too slowly */
	uint32_t now;
};

struct nt_streams {
	/* Whether a stream may go on: before each text, and once a second. NULL: always. */
	bool (*is_authorized)(void *data, const struct nt_credential *credential);
	void *data; /* for is_authorized */
	struct nt_event_ring *ring; /* borrowed; NULL: no streams */
	struct nt_streams_limits limits;
	struct nt_slots *slots; /* borrowed */
	pthread_t pump;
	bool pump_runs;
	pthread_mutex_t lock; /* protects everything below; taken before those of ring and slots */
	pthread_cond_t wake; /* of the pump */
	struct nt_stream *first;
	struct nt_streams_stats stats;
	bool is_closing;
};

void nt_streams_init(struct nt_streams *streams, struct nt_event_ring *ring, struct nt_slots *slots,
		     const struct nt_streams_limits *limits);
/* Starts the thread, unless there is no ring. -EAGAIN. */
NT_MUST_CHECK int nt_streams_start(struct nt_streams *streams);
/* Ends all streams and the thread, before the daemon is stopped. */
void nt_streams_stop(struct nt_streams *streams);
/* After the daemon has stopped. */
void nt_streams_destroy(struct nt_streams *streams);

/*
 * A response that streams the events that the reply wants. The caller owns the response, and queues
 * it on the connection. The stream ends when the credential is not accepted any more. -EBUSY: over the limits; -ENOMEM.
 */
NT_MUST_CHECK int nt_streams_open(struct nt_streams *streams, struct MHD_Connection *connection,
				  struct nt_slot *slot, const struct nt_httpd_stream *wanted,
				  const struct nt_credential *credential,
				  struct MHD_Response **ret_response);

void nt_streams_stats(struct nt_streams *streams, struct nt_streams_stats *ret_stats);

#endif
